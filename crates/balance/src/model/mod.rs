//! Models of papers as pure functions: thresholds that schemes compute, and closed forms to set
//! beside a run.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ParameterError;

pub mod lbt;
pub mod tr;

/// Inputs of a model, with defaults: enough to work everything out.
pub trait Inputs: Default + Serialize + DeserializeOwned + JsonSchema {
    /// The model's name.
    const NAME: &'static str;
    /// Summary of the model, in a line.
    const TITLE: &'static str;
    /// Where it was published.
    const SOURCE: &'static str;

    /// Works everything out, equation by equation.
    ///
    /// # Errors
    /// The first value that the equations do not hold for.
    fn work_out(&self) -> Result<Working, ParameterError>;
}

/// Results of a model for its inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Working {
    /// Every quantity, in the order in which one follows from those before.
    pub quantities: Vec<Quantity>,
    /// Conclusions from the quantities, in sentences.
    pub conclusions: Vec<String>,
}

/// One number that a model works out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quantity {
    /// Name of the quantity in tables and in JSON.
    pub key: &'static str,
    /// The equation of the paper that gives it; "text" if the paper has it without a number, "-" if
    /// it is not the paper's.
    pub equation: &'static str,
    /// The paper's symbol.
    pub symbol: &'static str,
    /// Meaning of the quantity.
    pub meaning: &'static str,
    /// Unit of the quantity: "B", "us", "paths", "packets", "rounds", or "" for a share.
    pub unit: &'static str,
    /// Value of the quantity; JSON has null for an infinite one.
    pub value: f64,
}

impl Working {
    /// The value of a quantity, if there is one with this key.
    pub fn value(&self, key: &str) -> Option<f64> {
        self.quantities.iter().find(|quantity| quantity.key == key).map(|quantity| quantity.value)
    }
}

/// One row of [`Working::quantities`]: key, equation, symbol, meaning, unit, value.
pub(crate) type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, f64);

/// Quantities from rows that can be read as a table.
pub(crate) fn quantities(rows: impl IntoIterator<Item = Row>) -> Vec<Quantity> {
    let quantity = |(key, equation, symbol, meaning, unit, value)| Quantity {
        key,
        equation,
        symbol,
        meaning,
        unit,
        value,
    };
    rows.into_iter().map(quantity).collect()
}
