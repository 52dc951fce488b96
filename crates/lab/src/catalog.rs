//! Catalog of schemes, transports and the like, with parameters, defaults and sources: read from
//! the registries and their schemas.

use serde::Serialize;
use serde_json::{Map, Value, json};
use weft_transport::TransportSpec;

use crate::bins::SizeRange;
use crate::results::output::file_of;
use crate::results::rows::TABLES;
use crate::results::table::Column;
use crate::spec::SpecError;
use crate::spec::schema::{alternatives, description, properties};

/// One parameter of something that a spec can name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// The key, as in `gap` or `switch_queue.buffer`; `fault[].link` is in every entry of a list.
    pub key: String,
    /// "time", "rate", "size", "size | packets", "number", "integer", "boolean", "string", or the
    /// names that are allowed.
    #[serde(rename = "type")]
    pub kind: String,
    /// The units that are allowed; empty if it has none.
    pub unit: String,
    /// The value if the spec has none; null if it must have one, or if nothing stands for absence.
    pub default: Value,
    /// Description of the parameter.
    pub doc: String,
    /// Where the default is from.
    pub source: String,
}

/// The kinds of things that [`catalog`] lists.
pub const KINDS: [&str; 9] =
    ["schemes", "transports", "workloads", "fabrics", "presets", "models", "bins", "groups", "tables"];

/// Lists everything of one kind: name, title, source, parameters, and what else is known of it.
///
/// # Errors
/// A kind that is not one of [`KINDS`].
pub fn catalog(kind: &str) -> Result<Value, SpecError> {
    match kind {
        "schemes" => Ok(schemes()),
        "transports" => Ok(transports()),
        "workloads" => Ok(workloads()),
        "fabrics" => Ok(fabrics()),
        "presets" => presets(),
        "models" => Ok(models()),
        "bins" => bins(),
        "groups" => Ok(groups()),
        "tables" => Ok(tables()),
        _ => Err(SpecError::unknown("catalog", kind, KINDS)),
    }
}

fn presets() -> Result<Value, SpecError> {
    let entries = crate::presets::presets()?.into_iter().map(|preset| {
        json!({
            "name": preset.name,
            "title": preset.title,
            "source": preset.source,
            "schemes": preset.schemes,
            "notes": preset.notes,
            "spec": preset.spec,
            "open": preset.open,
            "parameters": [],
        })
    });
    Ok(entries.collect())
}

fn bins() -> Result<Value, SpecError> {
    let entries = crate::bins::bin_sets()?.into_iter().map(|set| {
        let labels: Vec<_> = set.ranges.iter().map(|range| range.label.as_str()).collect();
        let bounds: Vec<_> = set.ranges.iter().map(bounds).collect();
        json!({
            "name": set.name,
            "title": set.title,
            "source": set.source,
            "ranges": labels.join(", "),
            "bounds": bounds,
            "parameters": [],
        })
    });
    Ok(entries.collect())
}

/// The groups of flow sizes that every summary has.
fn groups() -> Value {
    let entries = crate::bins::groups().into_iter().map(|(name, range)| {
        let mut entry = bounds(&range);
        entry["name"] = name.into();
        entry["source"] = "every summary".into();
        entry["parameters"] = json!([]);
        entry
    });
    entries.collect()
}

/// A range with its smallest and its largest size, both in it; no end is null.
fn bounds(range: &SizeRange) -> Value {
    json!({
        "title": range.label,
        "from_bytes": range.from,
        "up_to_bytes": (range.up_to < u64::MAX).then_some(range.up_to),
    })
}

fn tables() -> Value {
    let column = |column: &Column| {
        json!({
            "name": column.name,
            "type": column.kind.name(),
            "unit": column.unit,
            "null": column.null,
            "only": column.only,
            "doc": column.doc(),
        })
    };
    let entries = TABLES.into_iter().map(|table| {
        json!({
            "name": table.name,
            "title": format!("a row for {}", table.row),
            "source": file_of(table.name),
            "asked_by": table.asked_by,
            "columns": table.columns.iter().map(column).collect::<Vec<_>>(),
            "parameters": [],
        })
    });
    entries.collect()
}

fn schemes() -> Value {
    let entries = weft_balance::schemes().iter().map(|info| {
        json!({
            "name": info.name,
            "title": info.title,
            "source": info.source,
            "place": info.place,
            "order": info.order,
            "parameters": parameters(&info.parameters, &info.parameters),
        })
    });
    entries.collect()
}

/// Every transport with its parameters.
pub(crate) fn transports() -> Value {
    let entries = TransportSpec::list().iter().map(|info| {
        let parameters = parameters(info.schema.as_value(), info.schema.as_value());
        json!({ "name": info.name, "title": info.title, "source": info.source, "parameters": parameters })
    });
    entries.collect()
}

fn workloads() -> Value {
    let entries = weft_traffic::workloads().iter().map(|info| {
        let mut entry = serde_json::to_value(info).unwrap_or_default();
        if let Some(object) = entry.as_object_mut() {
            object.insert("parameters".to_owned(), json!([]));
        }
        entry
    });
    entries.collect()
}

fn fabrics() -> Value {
    let entries = weft_topology::fabrics().iter().map(|info| {
        let parameters = parameters(&info.parameters, &info.parameters);
        json!({ "name": info.name, "title": info.title, "source": info.source, "parameters": parameters })
    });
    entries.collect()
}

fn models() -> Value {
    let entries = crate::model::MODELS.iter().map(|model| {
        let schema = (model.schema)();
        json!({
            "name": model.name,
            "title": model.title,
            "source": model.source,
            "parameters": parameters(&schema, &schema),
        })
    });
    entries.collect()
}

/// The parameters that an object schema describes; tables within it are opened up.
fn parameters(root: &Value, schema: &Value) -> Vec<Parameter> {
    let mut found = Vec::new();
    collect(root, &properties(root, schema), "", &Value::Null, &mut found);
    found
}

fn collect(
    root: &Value,
    table: &Map<String, Value>,
    prefix: &str,
    defaults: &Value,
    found: &mut Vec<Parameter>,
) {
    /// A table in a table in a table: deeper than any spec.
    const DEEPEST: usize = 4;
    for (key, schema) in table {
        let key = format!("{prefix}{key}");
        let own = &defaults[&key[prefix.len()..]];
        let default = if own.is_null() { &schema["default"] } else { own };
        let opened = alternatives(root, schema);
        let items = opened.iter().find_map(|schema| schema.get("items"));
        let inner = properties(root, items.unwrap_or(schema));
        if inner.is_empty() || key.matches('.').count() >= DEEPEST {
            found.push(parameter(root, key, schema, default));
            continue;
        }
        let below = if items.is_some() { format!("{key}[].") } else { format!("{key}.") };
        collect(root, &inner, &below, default, found);
    }
}

fn parameter(root: &Value, key: String, schema: &Value, default: &Value) -> Parameter {
    let text = description(root, schema).unwrap_or_default();
    let (doc, source) = split_source(&text);
    let default = match default {
        Value::Null => stated_default(&doc),
        other => other.clone(),
    };
    let (kind, unit) = kind_of(root, schema);
    Parameter { key, kind, unit, default, doc, source }
}

/// A doc comment and its last sentence, "Source: …".
fn split_source(text: &str) -> (String, String) {
    match text.rsplit_once("Source:") {
        Some((doc, source)) => (doc.trim().to_owned(), source.trim().trim_end_matches('.').to_owned()),
        None => (text.trim().to_owned(), String::new()),
    }
}

/// Value of "Default: …" in a doc comment, where the schema has none: "none", "as `host_rate`".
fn stated_default(doc: &str) -> Value {
    let Some((_, rest)) = doc.split_once("Default: ") else { return Value::Null };
    let sentence = rest.split(". ").next().unwrap_or(rest);
    sentence.trim_end_matches('.').into()
}

/// The type of a parameter in a word, and its units.
fn kind_of(root: &Value, schema: &Value) -> (String, String) {
    let opened = alternatives(root, schema);
    let units = opened.iter().find_map(|schema| schema["pattern"].as_str()).map(units_in).unwrap_or_default();
    let mut references = opened.iter().filter_map(|schema| schema["$ref"].as_str()?.rsplit('/').next());
    let quantity = references.find(|name| matches!(*name, "Time" | "Rate" | "Size" | "PacketRate"));
    let quantity = quantity.map(|name| if name == "PacketRate" { "packet rate" } else { name });
    let named = opened.iter().filter_map(|schema| schema["const"].as_str().map(|name| vec![name]));
    let listed = opened.iter().filter_map(|schema| schema["enum"].as_array());
    let listed = listed.map(|names| names.iter().filter_map(Value::as_str).collect());
    let names: Vec<&str> = named.chain(listed).flatten().collect();
    match quantity {
        // A word may stand in its place.
        Some(name) => {
            return ([&[name.to_lowercase().as_str()], names.as_slice()].concat().join(" | "), units);
        }
        // The limits of a queue, in bytes or packets.
        _ if units.ends_with("packets") => return ("size | packets".to_owned(), units),
        _ => {}
    }
    if !names.is_empty() {
        return (names.join(" | "), units);
    }
    let mut kinds: Vec<&str> = Vec::new();
    for schema in &opened {
        let single = schema["type"].as_str().into_iter();
        let several = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for kind in single.chain(several) {
            if kind != "null" && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    (kinds.join(" | "), units)
}

/// The units in the pattern of a quantity: its last group.
fn units_in(pattern: &str) -> String {
    let group = pattern.rsplit_once('(').and_then(|(_, rest)| rest.split(')').next());
    group.map(|units| units.replace('|', ", ").replace('?', "")).unwrap_or_default()
}
