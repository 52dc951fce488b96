//! The nodes of one of Chakra's traces, out of JSON.

use serde_json::Value;
use weft_units::Span;

use super::lines::Mistake;
use crate::{MAX_FLOW_BYTES, TrafficError};

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeType {
    /// It takes its duration, whatever it does: computing, or loading from memory.
    Computation,
    Send,
    Recv,
    Collective,
}

/// The collectives that traces have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollType {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
}

/// A node of a trace.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub line: usize,
    pub id: u64,
    pub kind: NodeType,
    pub waits_for: Vec<u64>,
    micros: f64,
    /// What it is and how many bytes, if it is a collective.
    pub collective: Option<(CollType, u64)>,
    pub bytes: Option<u64>,
    pub from: Option<u64>,
    pub to: Option<u64>,
    pub tag: u64,
    pub group: String,
}

impl Node {
    /// What it takes by itself: nothing, if it communicates.
    pub fn takes(&self) -> Span {
        if self.kind == NodeType::Computation { Span::from_s_f64(self.micros / 1e6) } else { Span::ZERO }
    }
}

/// The nodes of a trace: objects one behind the other as Chakra's own converter writes them, or a list of them, by itself or as
/// `nodes`. What has no type is no node: the metadata.
pub(crate) fn nodes(file: &str, text: &str) -> Result<Vec<Node>, TrafficError> {
    let line_at = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let bad = |line, (found, allowed): Mistake| TrafficError::BadLine {
        file: file.to_owned(),
        line,
        found,
        allowed,
    };
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut all = Vec::new();
    loop {
        let skipped = text[stream.byte_offset()..].len() - text[stream.byte_offset()..].trim_start().len();
        let line = line_at(stream.byte_offset() + skipped);
        let Some(value) = stream.next() else { break };
        let value = value.map_err(|error| bad(error.line(), (error.to_string(), "JSON".to_owned())))?;
        let list = match value {
            Value::Array(list) => list,
            Value::Object(mut object) => {
                match object.remove("nodes").or_else(|| object.remove("workload_graph")) {
                    Some(Value::Array(list)) => list,
                    _ => vec![Value::Object(object)],
                }
            }
            other => return Err(bad(line, (other.to_string(), "an object, or a list of them".to_owned()))),
        };
        for value in list {
            all.extend(node(&value, line).map_err(|mistake| bad(line, mistake))?);
        }
    }
    if all.is_empty() {
        let (found, allowed) = ("no node".to_owned(), "at least one object with a type".to_owned());
        return Err(TrafficError::BadFile { file: file.to_owned(), found, allowed });
    }
    Ok(all)
}

/// A node, if it is one.
fn node(value: &Value, line: usize) -> Result<Option<Node>, Mistake> {
    let Some(kind) = field(value, &["type", "NodeType"]) else { return Ok(None) };
    let kind = node_type(kind)?;
    let Some(kind) = kind else { return Ok(None) };
    let id = field(value, &["id", "Id"]).map_or(Some(0), whole);
    let id = id.ok_or_else(|| ("an id that is no whole number".to_owned(), "a whole number".to_owned()))?;
    let list = |names: &[&str]| -> Result<Vec<u64>, Mistake> {
        let Some(list) = field(value, names) else { return Ok(Vec::new()) };
        let ids = list.as_array().and_then(|list| list.iter().map(whole).collect());
        ids.ok_or_else(|| (format!("node {id}: {} = {list}", names[0]), "a list of ids".to_owned()))
    };
    let mut waits_for = list(&["ctrl_deps", "ctrlDeps"])?;
    waits_for.extend(list(&["data_deps", "dataDeps"])?);
    let number = |name: &str| -> Result<Option<u64>, Mistake> {
        let Some(found) = attribute(value, name) else { return Ok(None) };
        let number = whole(found);
        number
            .map(Some)
            .ok_or_else(|| (format!("node {id}: {name} = {found}"), "a whole number from 0".to_owned()))
    };
    let micros = field(value, &["duration_micros", "durationMicros", "runtime"]);
    let micros = micros.or_else(|| attribute(value, "runtime"));
    let micros = micros.map_or(Some(0.0), decimal).filter(|micros| (0.0..=1e12).contains(micros));
    let micros = micros
        .ok_or_else(|| (format!("node {id}: a duration that cannot be"), "microseconds from 0".to_owned()))?;
    let bytes = number("comm_size")?;
    let collective = if kind == NodeType::Collective {
        let found = attribute(value, "comm_type");
        let coll = coll_type(found).map_err(|(found, allowed)| (format!("node {id}: {found}"), allowed))?;
        let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_FLOW_BYTES) else {
            return Err((
                format!("node {id} without a size that can be"),
                format!("comm_size, 0 to {MAX_FLOW_BYTES}"),
            ));
        };
        Some((coll, bytes))
    } else {
        None
    };
    let group =
        attribute(value, "pg_name").map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned));
    Ok(Some(Node {
        line,
        id,
        kind,
        waits_for,
        micros,
        collective,
        bytes,
        from: number("comm_src")?,
        to: number("comm_dst")?,
        tag: number("comm_tag")?.unwrap_or(0),
        group: group.unwrap_or_default(),
    }))
}

/// The field with the first of these names that there is.
fn field<'v>(value: &'v Value, names: &[&str]) -> Option<&'v Value> {
    names.iter().find_map(|name| value.get(name))
}

/// What an attribute holds: the value beside its name, whatever its type; or the field of this name.
fn attribute<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let listed = value.get("attr").and_then(Value::as_array).and_then(|list| {
        list.iter().find(|attribute| attribute.get("name").and_then(Value::as_str) == Some(name))
    });
    let is_value =
        |(key, _): &(&String, &Value)| key.ends_with("Val") || key.ends_with("_val") || *key == "value";
    let held = listed.and_then(Value::as_object).and_then(|held| held.iter().find(is_value));
    held.map(|(_, value)| value).or_else(|| value.get(name))
}

/// A whole number, as such or as a text: JSON has those of 64 bits as texts.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn decimal(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// What a node is; none if it is metadata.
fn node_type(found: &Value) -> Result<Option<NodeType>, Mistake> {
    const NAMES: [&str; 8] = [
        "INVALID_NODE",
        "METADATA_NODE",
        "MEM_LOAD_NODE",
        "MEM_STORE_NODE",
        "COMP_NODE",
        "COMM_SEND_NODE",
        "COMM_RECV_NODE",
        "COMM_COLL_NODE",
    ];
    let number = found.as_str().and_then(|name| NAMES.iter().position(|known| *known == name));
    match number.or_else(|| whole(found).map(|number| number as usize)) {
        Some(1) => Ok(None),
        Some(2..=4) => Ok(Some(NodeType::Computation)),
        Some(5) => Ok(Some(NodeType::Send)),
        Some(6) => Ok(Some(NodeType::Recv)),
        Some(7) => Ok(Some(NodeType::Collective)),
        _ => Err((format!("type {found}"), NAMES[1..].join(", "))),
    }
}

fn coll_type(found: Option<&Value>) -> Result<CollType, Mistake> {
    const KNOWN: [(u64, &str, CollType); 4] = [
        (0, "ALL_REDUCE", CollType::AllReduce),
        (2, "ALL_GATHER", CollType::AllGather),
        (6, "ALL_TO_ALL", CollType::AllToAll),
        (7, "REDUCE_SCATTER", CollType::ReduceScatter),
    ];
    let is = |(number, name, _): &&(u64, &str, CollType)| {
        found.is_some_and(|found| whole(found) == Some(*number) || found.as_str() == Some(*name))
    };
    let kind = KNOWN.iter().find(is).map(|known| known.2);
    let said = found.map_or_else(|| "no comm_type".to_owned(), |found| format!("comm_type {found}"));
    kind.ok_or_else(|| (said, KNOWN.map(|(number, name, _)| format!("{name} ({number})")).join(", ")))
}
