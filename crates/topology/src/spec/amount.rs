//! Text forms of buffer sizes and marking thresholds: `"375KB"`, `"250packets"`, `"unlimited"`, `"never"`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_units::Bytes;

use crate::{Limit, Threshold};

/// The backlog at which a queue begins to mark, or that it never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `"never"`.
    Never,
    /// `"97500B"` or `"65packets"`.
    Above(Threshold),
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let packets = trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet"));
        let Some(count) = packets else {
            return trimmed
                .parse::<Bytes>()
                .map(|bytes| Self::Bytes(bytes.as_u64()))
                .map_err(|e| e.to_string());
        };
        let allowed = format!("{text:?} is not a number of packets: write one as in \"250packets\"");
        count.trim_end().parse().map(Self::Packets).map_err(|_| allowed)
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => Bytes::new(*bytes).fmt(f),
            Self::Packets(packets) => write!(f, "{packets}packets"),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "unlimited" { Ok(Self::Unlimited) } else { text.parse().map(Self::AtMost) }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::AtMost(threshold) => threshold.fmt(f),
        }
    }
}

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "never" { Ok(Self::Never) } else { text.parse().map(Self::Above) }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Above(threshold) => threshold.fmt(f),
        }
    }
}

/// Gives a type its text form in specs: serde and JSON Schema.
macro_rules! text_form {
    ($type:ty, $name:literal, $expecting:literal, $pattern:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|reason| {
                            let said = format!("{reason}; allowed is {}", $expecting);
                            E::invalid_value(serde::de::Unexpected::Other(&said), &$expecting)
                        })
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $expecting, "pattern": $pattern })
            }
        }
    };
}

text_form!(
    Limit,
    "Buffer",
    "a size (\"375KB\"), a number of packets (\"250packets\") or \"unlimited\"",
    r"^(unlimited|[0-9]+(\.[0-9]+)? *(GB|MB|KB|GiB|MiB|KiB|B|packets?))$"
);
text_form!(
    Mark,
    "Mark",
    "a size (\"97500B\"), a number of packets (\"65packets\") or \"never\"",
    r"^(never|[0-9]+(\.[0-9]+)? *(GB|MB|KB|GiB|MiB|KiB|B|packets?))$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_survive_their_text_form() {
        for text in ["375KB", "250packets", "unlimited", "1B"] {
            assert_eq!(text.parse::<Limit>().map(|limit| limit.to_string()).as_deref(), Ok(text));
        }
        for text in ["97500B", "65packets", "never"] {
            assert_eq!(text.parse::<Mark>().map(|mark| mark.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("250 packets".parse(), Ok(Threshold::Packets(250)));
    }

    #[test]
    fn a_wrong_amount_says_what_is_allowed() {
        for text in ["-1packets", "1.5packets", "packets", "375", "12 parrots", "", "5000000000packets"] {
            let error =
                toml::from_str::<std::collections::BTreeMap<String, Limit>>(&format!("buffer = {text:?}"));
            let message = error.unwrap_err().to_string();
            assert!(message.contains("\"250packets\") or \"unlimited\""), "{text}: {message}");
        }
    }
}
