//! TOML values for serde, with errors that keep what serde knows: which name was found, and which
//! there are.
//!
//! The deserializer of the crate `toml` says the same in words, which would have to be read again.

use std::fmt::{self, Display};

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{self, Expected, IntoDeserializer, Unexpected, Visitor};
use toml::Value;

/// Mistake that serde found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A key that is none of the known ones.
    UnknownField { found: String, known: &'static [&'static str] },
    /// A name that is none of the known ones.
    UnknownVariant { found: String, known: &'static [&'static str] },
    /// A key that must be there.
    MissingField(&'static str),
    /// A value of another type, or out of range: what was expected.
    Unfitting(String),
    /// A text that its type refuses: what it says of it, and what is allowed.
    Refused { said: String, allowed: String },
    /// Message of a type of Weft on its own text.
    Said(String),
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { found, .. } => write!(f, "unknown key {found:?}"),
            Self::UnknownVariant { found, .. } => write!(f, "unknown name {found:?}"),
            Self::MissingField(field) => write!(f, "{field} is missing"),
            Self::Unfitting(expected) => write!(f, "expected {expected}"),
            Self::Refused { said: text, .. } | Self::Said(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::Said(message.to_string().replace('\n', " "))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Unfitting(expected.to_string())
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Other(said) => Self::Refused { said: said.to_owned(), allowed: expected.to_string() },
            _ => Self::Unfitting(expected.to_string()),
        }
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownVariant { found: found.to_owned(), known }
    }

    fn unknown_field(found: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownField { found: found.to_owned(), known }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::MissingField(field)
    }
}

/// A TOML value as serde reads it.
pub(super) struct Node<'a>(pub &'a Value);

impl IntoDeserializer<'_, Fault> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> de::Deserializer<'de> for Node<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(text) => visitor.visit_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(yes) => visitor.visit_bool(*yes),
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Node))),
            Value::Table(table) => {
                let entries = table.iter().map(|(key, value)| (key.as_str(), Node(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    /// Visits the value as one that is present: TOML has no null.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(name.as_str().into_deserializer()),
            Value::Table(table) => {
                let entries = table.iter().map(|(key, value)| (key.as_str(), Node(value)));
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries)))
            }
            _ => Err(Fault::Unfitting("variant identifier".to_owned())),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}
