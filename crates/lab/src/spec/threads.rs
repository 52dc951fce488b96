//! `run.threads`: how many threads a run works with.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU16;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How many threads a run works with. It says how a run is done, not what comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Threads {
    /// `"automatic"`: as many as there are cores for it and as it has a use for.
    #[default]
    Automatic,
    /// So many, 1 to [`Threads::MOST`].
    Fixed(NonZeroU16),
}

impl Threads {
    /// The most that may be asked for.
    pub const MOST: u16 = 1_024;
    const AUTOMATIC: &str = "automatic";
    const ALLOWED: &str = "\"automatic\", or a whole number from 1 to 1024";

    /// So many, if so many may be asked for.
    pub fn fixed(count: u64) -> Option<Self> {
        let count = u16::try_from(count).ok().filter(|&count| count <= Self::MOST)?;
        NonZeroU16::new(count).map(Self::Fixed)
    }

    /// Whether it is left open.
    pub const fn is_automatic(&self) -> bool {
        matches!(self, Self::Automatic)
    }
}

impl Serialize for Threads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Automatic => serializer.serialize_str(Self::AUTOMATIC),
            Self::Fixed(count) => serializer.serialize_u16(count.get()),
        }
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl de::Visitor<'_> for Read {
            type Value = Threads;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Threads::ALLOWED)
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Threads, E> {
                Threads::fixed(count)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(count), &Threads::ALLOWED))
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Threads, E> {
                let read = u64::try_from(count).ok().and_then(Threads::fixed);
                read.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(count), &Threads::ALLOWED))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Threads, E> {
                if text == Threads::AUTOMATIC {
                    return Ok(Threads::Automatic);
                }
                Err(E::invalid_value(de::Unexpected::Str(text), &Threads::ALLOWED))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Threads {
    fn schema_name() -> Cow<'static, str> {
        "Threads".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "enum": [Self::AUTOMATIC] },
                { "type": "integer", "minimum": 1, "maximum": Self::MOST },
            ]
        })
    }
}
