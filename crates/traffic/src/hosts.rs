//! Sets of hosts as a spec writes them: `[0, 4, "8-15"]`.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{FabricShape, TrafficError};

/// A host's number, or the first and the last of several in a row: `4`, or `"8-15"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRange {
    /// The first host.
    pub first: u16,
    /// The last host; at least `first`.
    pub last: u16,
}

impl FromStr for HostRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!(
                "{text:?} is not a range of hosts; write a number, or the first and the last as in \"0-15\""
            )),
        }
    }
}

impl fmt::Display for HostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for HostRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last {
            serializer.serialize_u16(self.first)
        } else {
            serializer.collect_str(self)
        }
    }
}

impl<'de> Deserialize<'de> for HostRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Range;
        impl Visitor<'_> for Range {
            type Value = HostRange;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a host's number, or a range such as \"0-15\"")
            }
            fn visit_u64<E: Error>(self, host: u64) -> Result<HostRange, E> {
                let said = || format!("there is no host {host}; the last is at most {}", u16::MAX);
                let refused = || E::invalid_value(Unexpected::Other(&said()), &self);
                let host = u16::try_from(host).map_err(|_| refused())?;
                Ok(HostRange { first: host, last: host })
            }
            fn visit_i64<E: Error>(self, host: i64) -> Result<HostRange, E> {
                let said = format!("there is no host {host}");
                match u64::try_from(host) {
                    Ok(host) => self.visit_u64(host),
                    Err(_) => Err(E::invalid_value(Unexpected::Other(&said), &self)),
                }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<HostRange, E> {
                text.parse().map_err(|error: String| E::invalid_value(Unexpected::Other(&error), &self))
            }
        }
        deserializer.deserialize_any(Range)
    }
}

impl schemars::JsonSchema for HostRange {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostRange".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A host's number, or the first and the last of several in a row, as in \"0-15\".",
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": u16::MAX },
                { "type": "string", "pattern": "^[0-9]+(-[0-9]+)?$", "examples": ["0-15"] },
            ],
        })
    }
}

/// The hosts in `ranges`, in order, each once. `key` is where the ranges stand in a spec.
///
/// # Errors
/// A range that the fabric does not have, or no range.
pub fn hosts_in(ranges: &[HostRange], key: &str, shape: &FabricShape) -> Result<Vec<u16>, TrafficError> {
    let mut chosen = vec![false; shape.hosts()];
    for range in ranges {
        // `first` may exceed `last` in a range that was not read from text.
        let slots = chosen.get_mut(usize::from(range.first)..=usize::from(range.last));
        let Some(slots) = slots.filter(|slots| !slots.is_empty()) else {
            return Err(TrafficError::bad_value(key, range, format!("hosts 0 to {}", shape.hosts() - 1)));
        };
        slots.fill(true);
    }
    if ranges.is_empty() {
        return Err(TrafficError::bad_value(key, "[]", "at least one host"));
    }
    Ok(shape.all_hosts().into_iter().filter(|&host| chosen[usize::from(host)]).collect())
}

/// `host`, if the fabric has it.
pub(crate) fn known_host(host: u16, key: String, shape: &FabricShape) -> Result<u16, TrafficError> {
    if usize::from(host) < shape.hosts() {
        return Ok(host);
    }
    Err(TrafficError::bad_value(key, host, format!("a host, 0 to {}", shape.hosts() - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::leaf_spine;

    #[test]
    fn ranges_survive_their_text_form() {
        let read: Vec<HostRange> = serde_json::from_str(r#"[3, "7", "8-15"]"#).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"[3,7,"8-15"]"#);
    }

    #[test]
    fn what_is_not_a_range_is_refused_with_an_example() {
        for text in ["\"15-8\"", "\"a\"", "\"\"", "70000", "-1", "\"0-70000\"", "true"] {
            let message = serde_json::from_str::<HostRange>(text).unwrap_err().to_string();
            assert!(message.contains("host"), "{message}");
        }
    }

    #[test]
    fn sets_are_sorted_without_duplicates_and_within_the_fabric() {
        let shape = leaf_spine();
        let range = |first, last| HostRange { first, last };
        assert_eq!(hosts_in(&[range(5, 5), range(1, 3), range(2, 5)], "k", &shape).unwrap(), [1, 2, 3, 4, 5]);
        for bad in [range(10, 16), range(16, 16), range(5, 4), range(9, 2)] {
            let message = hosts_in(&[bad], "traffic.sources", &shape).unwrap_err().to_string();
            assert!(message.contains("traffic.sources = ") && message.contains("hosts 0 to 15"), "{message}");
        }
    }
}
