//! A node of one of Chakra's traces.
//!
//! Both readers hand it over as the JSON form has it, so that one conversion decides what is taken
//! and what is refused.
//!
//! Invariant: a field or an attribute that no list here has is rejected. One that is passed over
//! moves no flow.

use serde_json::Value;
use weft_units::Span;

use super::lines::Mistake;
use crate::error::did_you_mean;
use crate::{MAX_FLOW_BYTES, TrafficError};

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeType {
    /// It takes its duration, and its turn on this processor, whatever it does: computing, or
    /// loading from memory.
    Computation(Processor),
    Send,
    Recv,
    Collective,
}

/// Processor on which computations of a rank take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// The accelerator: one stream of kernels.
    Accelerator = 0,
    /// The host's CPU: operations that say so.
    Cpu = 1,
    /// Unit that moves data to memory and from there.
    Memory = 2,
}

/// The collectives that traces have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollType {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Reduce,
    Barrier,
}

/// Where in its file a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    /// In this line, from 1.
    Line(usize),
    /// It is this message, from 1, and begins at this byte, from 0.
    Message {
        /// Which one.
        number: usize,
        /// Where it begins.
        offset: usize,
    },
}

impl Stands {
    /// The line, or the number of the message.
    pub const fn number(self) -> usize {
        match self {
            Self::Line(number) | Self::Message { number, .. } => number,
        }
    }

    /// The error about what stands here in `file`.
    pub fn bad(self, file: &str, (found, allowed): Mistake) -> TrafficError {
        let file = file.to_owned();
        match self {
            Self::Line(line) => TrafficError::BadLine { file, line, found, allowed },
            Self::Message { number, offset } => {
                TrafficError::BadMessage { file, message: number, offset, found, allowed }
            }
        }
    }
}

/// A node of a trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub stands: Stands,
    pub id: u64,
    pub kind: NodeType,
    pub waits_for: Vec<u64>,
    micros: f64,
    /// Kind and bytes of the collective, if the node is one.
    pub collective: Option<(CollType, u64)>,
    pub bytes: Option<u64>,
    pub from: Option<u64>,
    pub to: Option<u64>,
    pub tag: u64,
    pub group: String,
}

impl Node {
    /// Time that the node takes by itself: nothing, if it communicates.
    pub fn takes(&self) -> Span {
        if matches!(self.kind, NodeType::Computation(_)) {
            Span::from_s_f64(self.micros / 1e6)
        } else {
            Span::ZERO
        }
    }
}

/// The fields of a node that are read (`schema/protobuf/et_def.proto`), by the names of the
/// protocol, of its JSON form, and of the feeder for JSON (`json_node.cpp`).
const READ: [&str; 14] = [
    "id",
    "Id",
    "type",
    "NodeType",
    "ctrl_deps",
    "ctrlDeps",
    "data_deps",
    "dataDeps",
    "duration_micros",
    "durationMicros",
    "runtime",
    "attr",
    "name",
    "Name",
];
/// Those that say nothing of what is sent, and when.
const PASSED_OVER: [&str; 4] = ["start_time_micros", "startTimeMicros", "inputs", "outputs"];
/// The attributes that are read.
const READ_ATTRIBUTES: [&str; 11] = [
    "comm_type",
    "comm_size",
    "comm_src",
    "comm_dst",
    "comm_tag",
    "pg_name",
    "involved_dim",
    "is_cpu_op",
    "runtime",
    "num_ops",
    "tensor_size",
];
/// Those that Chakra's converter and ASTRA-sim's generators write besides.
const PASSED_OVER_ATTRIBUTES: [&str; 12] = [
    "comm_priority",
    "rf_id",
    "fw_parent",
    "seq_id",
    "scope",
    "tid",
    "fw_tid",
    "op_schema",
    "stream",
    "name",
    "inputs",
    "outputs",
];
/// The fields of `GlobalMetadata`, and those of a trace of `PyTorch` that its attributes repeat.
const METADATA: [&str; 8] =
    ["version", "attr", "schema", "pid", "time", "start_ts", "finish_ts", "input_file"];

/// Refuses a name that no list has.
fn check_name(what: &str, found: &str, lists: &[&[&str]]) -> Result<(), Mistake> {
    if lists.iter().any(|list| list.contains(&found)) {
        return Ok(());
    }
    let known: Vec<&str> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    let near = did_you_mean(found, known.iter().copied());
    Err((format!("{what} {found:?}"), format!("{}{near}", known.join(", "))))
}

/// Refuses an object without a type that is no metadata: a node whose type is missing or misspelt.
pub(crate) fn check_metadata(value: &Value) -> Result<(), Mistake> {
    let mut names = value.as_object().into_iter().flat_map(|object| object.keys());
    names.find(|name| !METADATA.contains(&name.as_str())).map_or(Ok(()), |name| {
        let known = METADATA.into_iter().chain(["type", "NodeType"]);
        let near = did_you_mean(name, known);
        let allowed = format!("a node with a type, or metadata with {}{near}", METADATA.join(", "));
        Err((format!("{name:?} in an object without a type"), allowed))
    })
}

/// Refuses fields and attributes that are not known, and attributes that come twice or have no
/// value that is read.
fn check_fields(id: u64, value: &Value) -> Result<(), Mistake> {
    for name in value.as_object().into_iter().flat_map(|object| object.keys()) {
        let all = [&READ[..], &PASSED_OVER, &READ_ATTRIBUTES, &PASSED_OVER_ATTRIBUTES];
        check_name(&format!("node {id}: the field"), name, &all)?;
    }
    let Some(list) = value.get("attr") else { return Ok(()) };
    let attributes = list
        .as_array()
        .ok_or_else(|| (format!("node {id}: attr = {list}"), "a list of attributes".to_owned()))?;
    let mut seen: Vec<&str> = Vec::with_capacity(attributes.len());
    for attribute in attributes {
        let name = attribute.get("name").and_then(Value::as_str).unwrap_or_default();
        check_name(&format!("node {id}: the attribute"), name, &[&READ_ATTRIBUTES, &PASSED_OVER_ATTRIBUTES])?;
        if seen.contains(&name) || value.get(name).is_some_and(|_| READ_ATTRIBUTES.contains(&name)) {
            return Err((format!("node {id}: {name} again"), "each attribute once".to_owned()));
        }
        seen.push(name);
        let is_read = READ_ATTRIBUTES.contains(&name) && name != "involved_dim";
        if is_read && values(attribute).count() != 1 {
            let found = format!("node {id}: {name} with {} values that are read", values(attribute).count());
            return Err((found, "one value, as in \"int64Val\": 1".to_owned()));
        }
    }
    Ok(())
}

/// A node out of its JSON form, if it is one: metadata is none.
pub(crate) fn node(value: &Value, stands: Stands) -> Result<Option<Node>, Mistake> {
    let Some(kind) = field(value, &["type", "NodeType"]) else {
        return check_metadata(value).map(|()| None);
    };
    let Some(kind) = node_type(kind)? else { return Ok(None) };
    let of_cpu = is_cpu_op(value)? && kind == NodeType::Computation(Processor::Accelerator);
    let kind = if of_cpu { NodeType::Computation(Processor::Cpu) } else { kind };
    let id = field(value, &["id", "Id"]).map_or(Some(0), whole);
    let id = id.ok_or_else(|| ("an id that is no whole number".to_owned(), "a whole number".to_owned()))?;
    check_fields(id, value)?;
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
    // ASTRA-sim's roofline makes times of these, for an accelerator that is not known here.
    for name in ["num_ops", "tensor_size"] {
        let is_timed = micros > 0.0 || !matches!(kind, NodeType::Computation(_));
        if !is_timed && attribute(value, name).is_some_and(|held| decimal(held) != Some(0.0)) {
            let found = format!("node {id}: {name} without duration_micros");
            return Err((found, "duration_micros, the time that it takes".to_owned()));
        }
    }
    let bytes = number("comm_size")?;
    let collective = if kind == NodeType::Collective {
        let found = attribute(value, "comm_type");
        let coll = coll_type(found).map_err(|(found, allowed)| (format!("node {id}: {found}"), allowed))?;
        // What a barrier carries is nothing that a trace would say.
        let bytes = if coll == CollType::Barrier { Some(0) } else { bytes };
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
    // Which ranks those dimensions have is known to the simulator that the trace was made for. To
    // take all would be another collective.
    if kind == NodeType::Collective && group.is_none() && !involves_all(value)? {
        let found = format!("node {id}: an involved_dim that leaves a dimension out, without pg_name");
        return Err((found, "pg_name, the group that takes part".to_owned()));
    }
    Ok(Some(Node {
        stands,
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

/// The attribute of this name.
fn listed<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let list = value.get("attr").and_then(Value::as_array)?;
    list.iter().find(|attribute| attribute.get("name").and_then(Value::as_str) == Some(name))
}

/// Whether a collective is of all dimensions of the fabric that a trace was made for: unless it
/// says otherwise.
fn involves_all(value: &Value) -> Result<bool, Mistake> {
    let Some(attribute) = listed(value, "involved_dim") else { return Ok(true) };
    let values = field(attribute, &["boolList", "bool_list"]).map(|list| list.get("values"));
    let is_all = |values: &Vec<Value>| values.iter().map(Value::as_bool).collect::<Option<Vec<_>>>();
    match values {
        // An empty list is left out.
        Some(None) => Ok(true),
        Some(Some(Value::Array(values))) if is_all(values).is_some() => {
            Ok(values.iter().all(|value| value == &Value::Bool(true)))
        }
        _ => Err((format!("involved_dim {attribute}"), "a boolList of true and false".to_owned())),
    }
}

/// Whether a computation says that it is of the CPU: as a truth value or as a number.
fn is_cpu_op(value: &Value) -> Result<bool, Mistake> {
    let Some(held) = attribute(value, "is_cpu_op") else { return Ok(false) };
    let is_true = held.as_bool().or_else(|| whole(held).map(|number| number > 0));
    is_true.ok_or_else(|| (format!("is_cpu_op = {held}"), "true, false, or a number".to_owned()))
}

/// Value of an attribute: the value beside its name, whatever its type; or the field of this name.
fn attribute<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    listed(value, name).and_then(held).or_else(|| value.get(name))
}

/// The value beside the name of an attribute.
fn held(attribute: &Value) -> Option<&Value> {
    values(attribute).next()
}

fn values(attribute: &Value) -> impl Iterator<Item = &Value> {
    let is_value = |key: &str| key.ends_with("Val") || key.ends_with("_val") || key == "value";
    let fields = attribute.as_object().into_iter().flatten();
    fields.filter(move |(key, _)| is_value(key)).map(|(_, value)| value)
}

/// A whole number, as such or as a text: JSON has those of 64 bits as texts.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn decimal(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// Kind of a node; none if it is metadata.
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
        Some(2 | 3) => Ok(Some(NodeType::Computation(Processor::Memory))),
        Some(4) => Ok(Some(NodeType::Computation(Processor::Accelerator))),
        Some(5) => Ok(Some(NodeType::Send)),
        Some(6) => Ok(Some(NodeType::Recv)),
        Some(7) => Ok(Some(NodeType::Collective)),
        _ => Err((format!("type {found}"), NAMES[1..].join(", "))),
    }
}

fn coll_type(found: Option<&Value>) -> Result<CollType, Mistake> {
    const KNOWN: [(u64, &str, CollType); 7] = [
        (0, "ALL_REDUCE", CollType::AllReduce),
        (1, "REDUCE", CollType::Reduce),
        (2, "ALL_GATHER", CollType::AllGather),
        (5, "BROADCAST", CollType::Broadcast),
        (6, "ALL_TO_ALL", CollType::AllToAll),
        (7, "REDUCE_SCATTER", CollType::ReduceScatter),
        (9, "BARRIER", CollType::Barrier),
    ];
    let is = |(number, name, _): &&(u64, &str, CollType)| {
        found.is_some_and(|found| whole(found) == Some(*number) || found.as_str() == Some(*name))
    };
    let kind = KNOWN.iter().find(is).map(|known| known.2);
    let said = found.map_or_else(|| "no comm_type".to_owned(), |found| format!("comm_type {found}"));
    kind.ok_or_else(|| (said, KNOWN.map(|(number, name, _)| format!("{name} ({number})")).join(", ")))
}
