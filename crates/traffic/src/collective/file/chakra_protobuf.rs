//! The nodes of one of Chakra's traces, out of a `.et` file: messages of
//! `schema/protobuf/et_def.proto`, each behind its length as a varint. The first one is
//! `GlobalMetadata`, all others are `Node`.

use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};
use prost::{DecodeError, Message};
use serde_json::{Map, Value, json};

use super::chakra_node::{Node, Stands, node};
use super::lines::Mistake;
use crate::TrafficError;

/// The messages, of each the fields that are read.
mod message {
    /// Message before the nodes: nothing in it is needed, but it has to be one.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct GlobalMetadata {
        #[prost(string, tag = "1")]
        pub version: String,
        #[prost(message, repeated, tag = "2")]
        pub attributes: Vec<Attribute>,
    }

    /// A node.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Node {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int32, tag = "3")]
        pub kind: i32,
        #[prost(uint64, repeated, tag = "4")]
        pub ctrl_deps: Vec<u64>,
        #[prost(uint64, repeated, tag = "5")]
        pub data_deps: Vec<u64>,
        #[prost(uint64, tag = "7")]
        pub duration_micros: u64,
        #[prost(message, repeated, tag = "10")]
        pub attributes: Vec<Attribute>,
    }

    /// A name and what it stands for.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Attribute {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(oneof = "Held", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
        pub held: Option<Held>,
    }

    /// Value of an attribute. Which of the types of a number it is is up to who writes the trace.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Held {
        #[prost(double, tag = "3")]
        Double(f64),
        #[prost(float, tag = "5")]
        Float(f32),
        #[prost(int32, tag = "7")]
        Int32(i32),
        #[prost(int64, tag = "9")]
        Int64(i64),
        #[prost(uint32, tag = "11")]
        Uint32(u32),
        #[prost(uint64, tag = "13")]
        Uint64(u64),
        #[prost(sint32, tag = "15")]
        Sint32(i32),
        #[prost(sint64, tag = "17")]
        Sint64(i64),
        #[prost(fixed32, tag = "19")]
        Fixed32(u32),
        #[prost(fixed64, tag = "21")]
        Fixed64(u64),
        #[prost(sfixed32, tag = "23")]
        Sfixed32(i32),
        #[prost(sfixed64, tag = "25")]
        Sfixed64(i64),
        #[prost(bool, tag = "27")]
        Bool(bool),
        #[prost(message, tag = "28")]
        Bools(BoolList),
        #[prost(string, tag = "29")]
        Text(String),
    }

    /// A list of truth values.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct BoolList {
        #[prost(bool, repeated, tag = "1")]
        pub values: Vec<bool>,
    }
}

/// A message that has been cut out of its file.
struct Cut<'b> {
    stands: Stands,
    bytes: &'b [u8],
}

/// The nodes of a trace.
pub(crate) fn nodes(file: &str, bytes: &[u8]) -> Result<Vec<Node>, TrafficError> {
    let messages = messages(bytes).map_err(|(stands, mistake)| stands.bad(file, mistake))?;
    let missing = |found: &str, allowed: &str| TrafficError::BadFile {
        file: file.to_owned(),
        found: found.to_owned(),
        allowed: allowed.to_owned(),
    };
    let Some((first, others)) = messages.split_first() else {
        return Err(missing("no byte", "GlobalMetadata and then nodes, as Chakra's protobuf has them"));
    };
    check_metadata(first.bytes).map_err(|mistake| first.stands.bad(file, mistake))?;
    let mut all = Vec::with_capacity(others.len());
    for Cut { stands, bytes } in others {
        let read = decode::<message::Node>(bytes, "Node", &NODE_FIELDS)
            .and_then(|message| node(&json_of(message), *stands));
        all.extend(read.map_err(|mistake| stands.bad(file, mistake))?);
    }
    if all.is_empty() {
        return Err(missing("no node", "at least one Node that is no metadata"));
    }
    Ok(all)
}

/// Cuts a file into messages.
fn messages(bytes: &[u8]) -> Result<Vec<Cut<'_>>, (Stands, Mistake)> {
    let mut all = Vec::new();
    let mut left = bytes;
    while !left.is_empty() {
        let stands = Stands::Message { number: all.len() + 1, offset: bytes.len() - left.len() };
        let length = prost::decode_length_delimiter(&mut left).map_err(|_| {
            let found = "no length of a message".to_owned();
            (stands, (found, "a varint, as before each message of a .et file".to_owned()))
        })?;
        let Some((bytes, rest)) = left.split_at_checked(length) else {
            let found = format!("a message of {length} B of which the file has {}", left.len());
            return Err((stands, (found, "whole messages, each behind its length".to_owned())));
        };
        all.push(Cut { stands, bytes });
        left = rest;
    }
    Ok(all)
}

/// Refuses what is not `GlobalMetadata`. A node could pass for it, since what is unknown is
/// skipped: it would be lost.
fn check_metadata(bytes: &[u8]) -> Result<(), Mistake> {
    if message::Node::decode(bytes).is_ok_and(|node| node.kind != 0) {
        return Err(("a Node".to_owned(), "GlobalMetadata, which comes first".to_owned()));
    }
    decode::<message::GlobalMetadata>(bytes, "GlobalMetadata, which comes first", &METADATA_FIELDS)
        .map(|_| ())
}

/// Decodes a message that has no field that the protocol does not have.
fn decode<M: Message + Default>(bytes: &[u8], name: &str, fields: &[u32; 3]) -> Result<M, Mistake> {
    match check_numbers(bytes, fields).map_err(|error| undecodable(name, &error))? {
        None => M::decode(bytes).map_err(|error| undecodable(name, &error)),
        Some(unknown) => Err((unknown, format!("the fields of {name}, as in Chakra's et_def.proto"))),
    }
}

/// The highest number of a field of `Node`, the number of its attributes, and the highest one of a
/// field of those.
const NODE_FIELDS: [u32; 3] = [10, 10, 32];
/// Fields of `GlobalMetadata`.
const METADATA_FIELDS: [u32; 3] = [2, 2, 32];

/// The field that the protocol does not have, if there is one: decoding would pass it over.
fn check_numbers(
    bytes: &[u8],
    [last, attributes, last_of_attribute]: &[u32; 3],
) -> Result<Option<String>, DecodeError> {
    let mut left = bytes;
    while !left.is_empty() {
        let (number, wire_type) = decode_key(&mut left)?;
        if number > *last {
            return Ok(Some(format!("a field {number}")));
        }
        if number == *attributes && wire_type == WireType::LengthDelimited {
            let length = prost::decode_length_delimiter(&mut left)?;
            let Some((attribute, rest)) = left.split_at_checked(length) else { return Ok(None) };
            if let Some(unknown) = check_numbers(attribute, &[*last_of_attribute, u32::MAX, 0])? {
                return Ok(Some(format!("{unknown} in an attribute")));
            }
            left = rest;
        } else {
            skip_field(wire_type, number, &mut left, DecodeContext::default())?;
        }
    }
    Ok(None)
}

fn undecodable(allowed: &str, error: &DecodeError) -> Mistake {
    (format!("what is none ({error})"), format!("the message {allowed}"))
}

/// A node in its JSON form. What is not there is left out, as Chakra's converter does it.
fn json_of(node: message::Node) -> Value {
    let mut form = Map::new();
    form.insert("id".to_owned(), node.id.into());
    form.insert("type".to_owned(), node.kind.into());
    form.insert("ctrl_deps".to_owned(), node.ctrl_deps.into());
    form.insert("data_deps".to_owned(), node.data_deps.into());
    if node.duration_micros > 0 {
        form.insert("duration_micros".to_owned(), node.duration_micros.into());
    }
    form.insert("attr".to_owned(), node.attributes.into_iter().map(json_of_attribute).collect());
    Value::Object(form)
}

fn json_of_attribute(message::Attribute { name, held }: message::Attribute) -> Value {
    use message::Held;
    let value: Value = match held {
        None => return json!({ "name": name }),
        Some(Held::Bools(list)) => return json!({ "name": name, "bool_list": { "values": list.values } }),
        Some(Held::Double(value)) => value.into(),
        Some(Held::Float(value)) => value.into(),
        Some(Held::Int32(value) | Held::Sint32(value) | Held::Sfixed32(value)) => value.into(),
        Some(Held::Int64(value) | Held::Sint64(value) | Held::Sfixed64(value)) => value.into(),
        Some(Held::Uint32(value) | Held::Fixed32(value)) => value.into(),
        Some(Held::Uint64(value) | Held::Fixed64(value)) => value.into(),
        Some(Held::Bool(value)) => value.into(),
        Some(Held::Text(value)) => value.into(),
    };
    json!({ "name": name, "value": value })
}

#[cfg(test)]
mod tests;
