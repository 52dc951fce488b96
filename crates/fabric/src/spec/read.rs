//! Reading the table by its kind. Derived code would lose the place of a mistake on the way; this names the key.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use toml::{Table, Value};

use super::{FabricError, FabricSpec, FatTreeSpec, GraphSpec, LeafSpineSpec, unknown_name};

const KINDS: [&str; 3] = ["leaf-spine", "fat-tree", "graph"];

impl<'de> Deserialize<'de> for FabricSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Table::deserialize(deserializer)?;
        let spec = match table.remove("kind") {
            None => Err(format!("fabric.kind is missing: it is one of {}", KINDS.join(", "))),
            Some(Value::String(kind)) => match kind.as_str() {
                "leaf-spine" => keys(table, LeafSpineSpec::KEYS).map(Self::LeafSpine),
                "fat-tree" => keys(table, FatTreeSpec::KEYS).map(Self::FatTree),
                "graph" => keys(table, GraphSpec::KEYS).map(Self::Graph),
                found => Err(unknown("fabric.kind", "kind", found, &KINDS).to_string()),
            },
            Some(other) => Err(format!("fabric.kind = {other}: allowed is one of {}", KINDS.join(", "))),
        };
        spec.map_err(D::Error::custom)
    }
}

fn unknown(key: &str, what: &'static str, found: &str, known: &[&str]) -> FabricError {
    unknown_name(key.to_owned(), what, found, || known.iter().copied())
}

/// What the table says, or one message with the key in it.
fn keys<T: DeserializeOwned>(table: Table, known: &[&str]) -> Result<T, String> {
    if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(unknown("fabric", "key", key, known).to_string());
    }
    table.try_into().map_err(|error: toml::de::Error| {
        // The place comes last, as in "\nin `switch_queue.buffer`".
        let text = error.to_string();
        match text.trim_end().rsplit_once("\nin `") {
            Some((reason, place)) => format!("fabric.{}: {reason}", place.trim_end_matches('`')),
            None => format!("fabric: {}", text.trim_end()),
        }
    })
}
