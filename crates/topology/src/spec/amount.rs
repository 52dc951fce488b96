//! Text forms of buffer sizes, marking thresholds and packet rates: `"375KB"`, `"250packets"`,
//! `"unlimited"`, `"never"`, `"25000pps"`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_units::{Bytes, Span};

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

/// Packets per second: `"25000pps"`, `"25Kpps"` or `"1Mpps"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRate(u64);

impl PacketRate {
    /// Units of its text form, the largest first.
    const UNITS: [(&'static str, u64); 3] = [("Mpps", 1_000_000), ("Kpps", 1_000), ("pps", 1)];
    /// The largest one: a packet a nanosecond.
    const MOST: u64 = 1_000_000_000;

    /// How long one packet takes, rounded up to a picosecond.
    pub const fn per_packet(self) -> Span {
        Span::from_ps(1_000_000_000_000_u64.div_ceil(self.0))
    }
}

impl FromStr for PacketRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("{text:?} is not a number of packets per second: write one as in \"25000pps\"");
        let with_unit = |&(unit, factor): &(&str, u64)| Some((text.trim().strip_suffix(unit)?, factor));
        let (count, factor) = Self::UNITS.iter().find_map(with_unit).ok_or_else(refused)?;
        let count: u64 = count.trim_end().parse().map_err(|_| refused())?;
        let rate = count.saturating_mul(factor);
        if (1..=Self::MOST).contains(&rate) { Ok(Self(rate)) } else { Err(refused()) }
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}pps", self.0)
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
text_form!(
    PacketRate,
    "PacketRate",
    "whole packets per second (\"25000pps\", \"25Kpps\", \"1Mpps\"), 1pps to 1000Mpps",
    r"^[0-9]+ *(Mpps|Kpps|pps)$"
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
    fn packet_rates_are_whole_packets_per_second() {
        for (text, ps) in [
            ("25000pps", 40_000_000),
            ("25Kpps", 40_000_000),
            ("1 Mpps", 1_000_000),
            ("3pps", 333_333_333_334),
        ] {
            assert_eq!(
                text.parse().map(|rate: PacketRate| rate.per_packet()),
                Ok(Span::from_ps(ps)),
                "{text}"
            );
        }
        for text in ["0pps", "1.5pps", "pps", "12", "-1pps", "1001Mpps", "99999999999999999999pps"] {
            assert!(text.parse::<PacketRate>().is_err(), "{text}");
        }
        assert_eq!("25Kpps".parse::<PacketRate>().map(|rate| rate.to_string()).as_deref(), Ok("25000pps"));
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
