//! A part of a run's flows, from its beginning on: a time, a number of flows or a share of them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use weft_units::Span;

/// How far something reaches: `"5ms"` of simulated time, `500` flows, or `0.2` of all flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// Flows that start within this time; not zero.
    Time(Span),
    /// So many flows; at least 1.
    Flows(u32),
    /// This share of the flows, above 0 and below 1; rounded to whole flows.
    Share(f64),
}

impl Extent {
    const ALLOWED: &str = "a time as in \"5ms\", a number of flows as in 500, or a share of the flows above 0 and below 1, as in 0.2";

    fn refuse<E: de::Error>(found: &dyn fmt::Display) -> E {
        E::custom(format!("found {found}; allowed is {}", Self::ALLOWED))
    }
}

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Time(time) => time.serialize(serializer),
            Self::Flows(flows) => serializer.serialize_u32(*flows),
            Self::Share(share) => serializer.serialize_f64(*share),
        }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl de::Visitor<'_> for Read {
            type Value = Extent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Extent::ALLOWED)
            }

            fn visit_u64<E: de::Error>(self, flows: u64) -> Result<Extent, E> {
                let read = u32::try_from(flows).ok().filter(|&flows| flows > 0).map(Extent::Flows);
                read.ok_or_else(|| Extent::refuse(&flows))
            }

            fn visit_i64<E: de::Error>(self, flows: i64) -> Result<Extent, E> {
                let read = u32::try_from(flows).ok().filter(|&flows| flows > 0).map(Extent::Flows);
                read.ok_or_else(|| Extent::refuse(&flows))
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<Extent, E> {
                let read = (share > 0.0 && share < 1.0).then_some(Extent::Share(share));
                read.ok_or_else(|| Extent::refuse(&share))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
                match text.parse::<Span>() {
                    Ok(time) if !time.is_zero() => Ok(Extent::Time(time)),
                    Ok(_) => Err(Extent::refuse(&format!("{text:?}"))),
                    Err(error) => Err(E::custom(format!("{error}; allowed is {}", Extent::ALLOWED))),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Extent {
    fn schema_name() -> Cow<'static, str> {
        "Extent".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Span>();
        json_schema!({
            "anyOf": [
                time,
                { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use toml::Value;

    use super::*;
    use crate::spec::decode;

    fn read(text: &str) -> Result<Extent, String> {
        let value: toml::Table = format!("value = {text}").parse().unwrap();
        decode::<Extent>(&value["value"]).map_err(|misfit| misfit.mistake.to_string())
    }

    #[test]
    fn a_time_a_number_and_a_share_are_told_apart_by_how_they_are_written() {
        assert_eq!(read("'5ms'"), Ok(Extent::Time(Span::from_ms(5))));
        assert_eq!(read("500"), Ok(Extent::Flows(500)));
        assert_eq!(read("0.25"), Ok(Extent::Share(0.25)));
        for text in ["'5ms'", "500", "0.25"] {
            let written = Value::try_from(read(text).unwrap()).unwrap();
            assert_eq!(decode::<Extent>(&written).unwrap(), read(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn what_leaves_no_flow_or_no_doubt_is_refused() {
        for text in ["0", "-3", "1.0", "0.0", "-0.5", "nan", "'0ms'", "'5'", "'20%'", "true", "5000000000"] {
            let said = read(text).unwrap_err();
            assert!(said.contains("a share of the flows above 0 and below 1"), "{text}: {said}");
        }
    }
}
