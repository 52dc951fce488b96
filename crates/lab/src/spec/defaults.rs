//! Defaults that no type can have: what a table is of, unless it says so.

use serde_json::Value as Json;
use toml::Value;

use super::variant::Named;

/// Default name of a table of this kind.
pub(super) const fn by_default(named: Named) -> &'static str {
    match named {
        Named::Hosts => "simulated",
        Named::Transport => "dctcp",
        Named::Scheme => "ecmp",
        Named::Fabric => "leaf-spine",
    }
}

/// Names what the tables of a spec are of where they do not say it: each of a list of tables as
/// well.
pub(super) fn complete(spec: &mut Value) {
    let Some(root) = spec.as_table_mut() else { return };
    let empty = || Value::Table(toml::Table::new());
    for named in Named::ALL {
        let name = |table: &mut toml::Table| {
            table.entry(named.tag()).or_insert_with(|| by_default(named).into());
        };
        match root.entry(named.table()).or_insert_with(empty) {
            Value::Table(table) => name(table),
            Value::Array(tables) => tables.iter_mut().filter_map(Value::as_table_mut).for_each(name),
            _ => {}
        }
    }
    root.entry("traffic").or_insert_with(empty);
}

/// Says in the schema of a spec what [`complete`] does: no table is required, and its default kind
/// need not be named.
pub(super) fn tell(schema: &mut Json) {
    if let Some(root) = schema.as_object_mut() {
        root.remove("required");
    }
    for named in Named::ALL {
        let definition =
            schema["properties"][named.table()]["$ref"].as_str().and_then(|link| link.split('/').next_back());
        let definition = definition.unwrap_or_default().to_owned();
        tell_of(&mut schema["$defs"][definition.as_str()], named);
        if named == Named::Transport {
            tell_of(&mut schema["$defs"]["LabelledTransport"], named);
        }
    }
}

fn tell_of(definition: &mut Json, named: Named) {
    let (tag, default) = (named.tag(), by_default(named));
    for variant in definition["oneOf"].as_array_mut().into_iter().flatten() {
        if variant["properties"][tag]["const"] != default {
            continue;
        }
        variant["properties"][tag]["default"] = default.into();
        if let Some(required) = variant["required"].as_array_mut() {
            required.retain(|key| key != tag);
        }
    }
}
