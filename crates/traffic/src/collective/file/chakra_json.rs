//! The nodes of one of Chakra's traces, out of JSON.

use serde_json::Value;

use super::chakra_node::{Node, Stands, check_metadata, node};
use super::lines::Mistake;
use crate::TrafficError;

/// The nodes of a trace: objects one behind the other as Chakra's own converter writes them, or a
/// list of them, by itself or as `nodes` or `workload_graph`. An object without a type is the
/// metadata.
pub(crate) fn nodes(file: &str, text: &str) -> Result<Vec<Node>, TrafficError> {
    let line_at = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let bad = |line, mistake: Mistake| Stands::Line(line).bad(file, mistake);
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
                    Some(Value::Array(list)) => {
                        check_metadata(&Value::Object(object)).map_err(|mistake| bad(line, mistake))?;
                        list
                    }
                    _ => vec![Value::Object(object)],
                }
            }
            other => return Err(bad(line, (other.to_string(), "an object, or a list of them".to_owned()))),
        };
        for value in list {
            all.extend(node(&value, Stands::Line(line)).map_err(|mistake| bad(line, mistake))?);
        }
    }
    if all.is_empty() {
        let (found, allowed) = ("no node".to_owned(), "at least one object with a type".to_owned());
        return Err(TrafficError::BadFile { file: file.to_owned(), found, allowed });
    }
    Ok(all)
}
