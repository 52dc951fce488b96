//! The JSON Schema of a spec, and finding one's way in it: what a key means.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use toml::Value as Toml;

use super::Spec;
use super::defaults::tell;
use super::path::{KeyPath, Step};
use super::python_class;

/// JSON Schema of a whole spec.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let mut schema = schemars::schema_for!(Spec).to_value();
        tell(&mut schema);
        python_class::tell(&mut schema);
        if let Some(object) = schema.as_object_mut() {
            object.insert("title".to_owned(), "Weft spec".into());
        }
        schema
    });
    &SCHEMA
}

/// The schemas that may stand behind `node`: references followed, alternatives opened up.
pub(crate) fn alternatives<'a>(root: &'a Value, node: &'a Value) -> Vec<&'a Value> {
    let mut found = Vec::new();
    open(root, node, &mut found, 0);
    found
}

fn open<'a>(root: &'a Value, node: &'a Value, found: &mut Vec<&'a Value>, depth: usize) {
    /// No schema of Weft is nested deeper; a reference to itself must end somewhere.
    const DEEPEST: usize = 16;
    if depth > DEEPEST {
        return;
    }
    found.push(node);
    let referred = node["$ref"].as_str().and_then(|link| root.pointer(link.trim_start_matches('#')));
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| node[*key].as_array()).flatten();
    for inner in referred.into_iter().chain(lists) {
        open(root, inner, found, depth + 1);
    }
}

/// The properties of an object schema, with those of what it refers to. Variants of other names are
/// left out.
pub(crate) fn properties<'a>(root: &'a Value, node: &'a Value) -> Map<String, Value> {
    let mut found = Map::new();
    for schema in alternatives(root, node) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            found.entry(key.clone()).or_insert_with(|| property.clone());
        }
    }
    found
}

/// The constant that tells a variant from its siblings: its key and value.
pub(crate) fn tag(schema: &Value) -> Option<(&str, &str)> {
    let properties = schema["properties"].as_object()?;
    properties.iter().find_map(|(key, property)| Some((key.as_str(), property["const"].as_str()?)))
}

/// The schemas that may stand behind a place in a spec and behind each place above it, outermost
/// first.
pub(crate) struct SchemaTrail(Vec<Vec<&'static Value>>);

impl SchemaTrail {
    /// The trail of the whole spec.
    pub fn root() -> Self {
        Self(vec![vec![schema()]])
    }

    /// The schemas of the place that the trail leads to, whose value is `node`, with their
    /// alternatives.
    pub fn fitting(&self, node: &Toml) -> Vec<&'static Value> {
        let here: &[&'static Value] = self.0.last().map_or(&[], Vec::as_slice);
        match node {
            Toml::Array(_) => here.iter().flat_map(|s| alternatives(schema(), s)).collect(),
            _ => matching(schema(), here, node),
        }
    }

    /// Does something with the trail of what lies one step below schemas from [`Self::fitting`].
    pub fn below(&mut self, fitting: &[&'static Value], step: &Step, act: impl FnOnce(&mut Self)) {
        self.0.push(
            fitting
                .iter()
                .filter_map(|s| match step {
                    Step::Key(key) => s["properties"].get(key),
                    Step::Index(_) => s.get("items"),
                })
                .collect(),
        );
        act(self);
        self.0.pop();
    }

    /// The description of the place. A key of a map has none: that of the map stands.
    pub fn description(&self) -> Option<String> {
        let below_root = self.0.iter().skip(1).rev();
        below_root.flatten().find_map(|node| description(schema(), node))
    }
}

/// The alternatives of `schemas` that `value` can be, judged by the tags.
fn matching<'a>(root: &'a Value, schemas: &[&'a Value], value: &Toml) -> Vec<&'a Value> {
    let fits = |schema: &Value| {
        tag(schema).is_none_or(|(key, name)| value.get(key).and_then(Toml::as_str) == Some(name))
    };
    let mut found = Vec::new();
    for schema in schemas {
        collect_fitting(root, schema, &fits, &mut found);
    }
    found
}

fn collect_fitting<'a>(
    root: &'a Value,
    node: &'a Value,
    fits: &dyn Fn(&Value) -> bool,
    found: &mut Vec<&'a Value>,
) {
    if !fits(node) {
        return;
    }
    found.push(node);
    let referred = node["$ref"].as_str().and_then(|link| root.pointer(link.trim_start_matches('#')));
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| node[*key].as_array()).flatten();
    for inner in referred.into_iter().chain(lists) {
        collect_fitting(root, inner, fits, found);
    }
}

/// The nearest description of a property: its own, or its type's.
pub(crate) fn description(root: &Value, schema: &Value) -> Option<String> {
    let found = alternatives(root, schema).into_iter().find_map(|s| s["description"].as_str());
    found.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The variants of the table at `path`, or of a table of the list there, that are told apart by a
/// tag.
pub(crate) fn variants(path: &KeyPath) -> Vec<&'static Value> {
    let root = schema();
    let mut node = root;
    for step in &path.0 {
        let inner = alternatives(root, node).into_iter().find_map(|schema| match step {
            Step::Key(key) => schema["properties"].get(key),
            Step::Index(_) => schema.get("items"),
        });
        let Some(inner) = inner else { return Vec::new() };
        node = inner;
    }
    alternatives(root, node).into_iter().filter(|schema| tag(schema).is_some()).collect()
}
