//! Text forms of quantities: a decimal number and a unit, exact to the integer they stand for.

use thiserror::Error;

/// A text that is not the quantity it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{found:?} is not a {quantity}: {reason}; write {}", self.allowed())]
pub struct QuantityError {
    /// The text as it was found.
    pub found: String,
    /// Quantity that was expected: "time", "rate" or "size".
    pub quantity: &'static str,
    /// Reason why it is wrong.
    pub reason: String,
    /// The units that are allowed, separated by commas.
    pub units: String,
    /// A correct example.
    pub example: &'static str,
}

impl QuantityError {
    /// Form of an allowed value.
    pub fn allowed(&self) -> String {
        format!("a number and a unit ({}), as in {:?}", self.units, self.example)
    }

    /// This error as one of serde's, which knows what is allowed apart from the sentence.
    pub fn refused<E: serde::de::Error>(&self) -> E {
        let (said, allowed) = (self.to_string(), self.allowed());
        E::invalid_value(serde::de::Unexpected::Other(&said), &allowed.as_str())
    }
}

/// One kind of quantity: its name, an example, and each unit with its size in the base unit.
/// The first unit that divides a value is the one it is printed with.
pub(crate) struct Quantity {
    pub name: &'static str,
    pub example: &'static str,
    pub units: &'static [(&'static str, u64)],
}

impl Quantity {
    fn error(&self, found: &str, reason: impl Into<String>) -> QuantityError {
        let units = self.units.iter().map(|unit| unit.0).collect::<Vec<_>>().join(", ");
        QuantityError {
            found: found.to_owned(),
            quantity: self.name,
            reason: reason.into(),
            units,
            example: self.example,
        }
    }

    /// Reads `text` as a whole number of base units. A fraction is allowed as long as the value is
    /// whole.
    pub fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(self.error(text, "it is negative"));
        }
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
        if number.is_empty() {
            return Err(self.error(text, "it has no number"));
        }
        if unit.is_empty() {
            return Err(self.error(text, "the unit is missing"));
        }
        let Some(&(_, scale)) = self.units.iter().find(|candidate| candidate.0 == unit) else {
            let nearest = self.units.iter().find(|candidate| candidate.0.eq_ignore_ascii_case(unit));
            let hint = nearest.map(|n| format!(" (did you mean {:?}?)", n.0)).unwrap_or_default();
            return Err(self.error(text, format!("{unit:?} is not a unit of {}{hint}", self.name)));
        };
        self.scaled(text, number, scale)
    }

    /// `number` times `scale`, exactly, or why not.
    fn scaled(&self, text: &str, number: &str, scale: u64) -> Result<u64, QuantityError> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        let malformed = || self.error(text, format!("{number:?} is not a number"));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(malformed());
        }
        let too_large = || self.error(text, "it is too large");
        let too_fine = || self.error(text, "it is finer than the smallest unit that is kept");
        let digits = format!("{whole}{fraction}");
        let mantissa: u128 = digits.parse().map_err(|_| too_large())?;
        let denominator = 10u128.checked_pow(fraction.len() as u32).ok_or_else(too_fine)?;
        let product = mantissa.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
        if product % denominator != 0 {
            return Err(too_fine());
        }
        u64::try_from(product / denominator).map_err(|_| too_large())
    }

    /// The shortest exact text: the largest unit that divides `value`.
    pub fn format(&self, value: u64) -> String {
        let smallest = self.units.last().map_or("", |unit| unit.0);
        if value == 0 {
            return format!("0{smallest}");
        }
        let fitting = self.units.iter().find(|unit| value.is_multiple_of(unit.1));
        fitting.map_or_else(|| format!("{value}{smallest}"), |unit| format!("{}{}", value / unit.1, unit.0))
    }
}

/// Gives a newtype over `u64` its text form: `FromStr`, `Display`, serde and JSON Schema.
macro_rules! text_form {
    ($type:ty, $quantity:expr, $schema_name:literal, $pattern:literal) => {
        impl std::str::FromStr for $type {
            type Err = crate::QuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $quantity.parse(text).map(Self)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$quantity.format(self.0))
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        let quantity = &$quantity;
                        write!(f, "a {} with its unit, as in {:?}", quantity.name, quantity.example)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|error: crate::QuantityError| error.refused())
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $schema_name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let quantity = &$quantity;
                schemars::json_schema!({
                    "type": "string",
                    "description": format!("A {} with its unit, as in {:?}.", quantity.name, quantity.example),
                    "pattern": $pattern,
                    "examples": [quantity.example],
                })
            }
        }
    };
}
pub(crate) use text_form;
