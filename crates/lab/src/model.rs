//! The analytic models of papers: their inputs as text, what follows from them as JSON.

use serde::Serialize;
use serde_json::{Value, json};
use weft_balance::model::{Inputs, lbt, tr};
use weft_units::Mistake;

use crate::spec::{SpecError, decode, parse_value};

/// A model of a paper.
#[derive(Debug)]
pub(crate) struct Model {
    pub name: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    /// JSON Schema of its inputs.
    pub schema: fn() -> Value,
    work_out: fn(&toml::Value) -> Result<Value, SpecError>,
}

/// Every model.
pub(crate) const MODELS: [Model; 2] = [model::<lbt::Inputs>(), model::<tr::Inputs>()];

const fn model<I: Inputs>() -> Model {
    Model {
        name: I::NAME,
        title: I::TITLE,
        source: I::SOURCE,
        schema: || schemars::schema_for!(I).to_value(),
        work_out: work_out_from::<I>,
    }
}

/// Works a model out: `{"model", "inputs", "quantities": [{"key", "equation", "symbol", "meaning",
/// "unit", "value"}], "conclusions"}`. An infinite value is null. Each input is a key and its value
/// in TOML or as a bare string; those that are not given have their defaults.
///
/// # Errors
/// An unknown model or input, or a value that it cannot have.
pub fn work_out(name: &str, inputs: Vec<(String, String)>) -> Result<Value, SpecError> {
    let Some(model) = MODELS.iter().find(|model| model.name == name) else {
        return Err(SpecError::unknown("model", name, MODELS.map(|model| model.name)));
    };
    let table: toml::Table = inputs.into_iter().map(|(key, value)| (key, parse_value(&value))).collect();
    (model.work_out)(&table.into())
}

fn work_out_from<I: Inputs>(given: &toml::Value) -> Result<Value, SpecError> {
    let inputs: I = decode(given).map_err(|misfit| *misfit.mistake)?;
    let working = inputs.work_out().map_err(Mistake::from)?;
    Ok(json!({
        "model": I::NAME,
        "inputs": to_value(&inputs)?,
        "quantities": to_value(&working.quantities)?,
        "conclusions": working.conclusions,
    }))
}

fn to_value(value: &impl Serialize) -> Result<Value, SpecError> {
    serde_json::to_value(value).map_err(|error| SpecError::new(format!("cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn every_model_works_its_defaults_out_and_lists_where_they_are_from() {
        for model in &MODELS {
            let worked = work_out(model.name, given(&[])).unwrap();
            assert!(worked["quantities"].as_array().unwrap().len() > 5);
            let catalog = crate::catalog("models").unwrap();
            let entry = catalog.as_array().unwrap().iter().find(|entry| entry["name"] == model.name).unwrap();
            for parameter in entry["parameters"].as_array().unwrap() {
                let given = ["doc", "source", "type"].map(|field| parameter[field].as_str().unwrap());
                // The load is the only input that is no symbol with a default.
                let has_source = !given[1].is_empty() || parameter["key"] == "load";
                assert!(has_source && !given[0].is_empty() && !given[2].is_empty(), "{parameter}");
            }
        }
    }

    #[test]
    fn what_is_infinite_is_null() {
        let worked = work_out("lbt", given(&[("load", "1")])).unwrap();
        let quantities = worked["quantities"].as_array().unwrap();
        let wait = quantities.iter().find(|quantity| quantity["key"] == "wait_2").unwrap();
        assert_eq!(wait["value"], Value::Null);
    }

    #[test]
    fn mistakes_get_one_message_that_names_what_is_allowed() {
        for (name, pairs, expected) in [
            ("lbtt", given(&[]), "there is no model \"lbtt\"; allowed: lbt, tr; did you mean \"lbt\"?"),
            ("lbt", given(&[("rate", "10")]), "rate = 10: expected a rate with its unit"),
            ("lbt", given(&[("load", "-1")]), "load is -1: above 0"),
            ("lbt", given(&[("lod", "1")]), "did you mean \"load\"?"),
            ("tr", given(&[("flows", "-1")]), "flows = -1: expected a whole number from 0"),
            ("tr", given(&[("good_paths", "0"), ("bad_paths", "0")]), "good_paths is 0: at least 1"),
        ] {
            let message = work_out(name, pairs).unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains('\n'), "{message}");
        }
    }
}
