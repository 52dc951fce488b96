//! Transports of a run: one, or several by label.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_packet::{Class, ClassName};
use weft_units::Mistake;

use crate::{AnyProtocol, ParamError, Protocol, Several, TransportSpec, Visitor};

/// Transports of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)] // There is one a spec.
pub enum TransportsSpec {
    /// One transport for all flows: the table `[transport]`.
    One(TransportSpec),
    /// Several side by side: tables `[[transport]]`. Traffic names them by label; what names none
    /// has the first.
    Several(Vec<LabelledTransport>),
}

/// One of several transports in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelledTransport {
    /// Label by which traffic refers to the transport. Default: its name, as in `"dctcp"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The class of the flows that it carries, as far as traffic says nothing of them. Default:
    /// they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// The transport and its parameters.
    #[serde(flatten)]
    pub transport: TransportSpec,
}

/// Transports that a run cannot have: which key, what was found, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key} is {found}; allowed: {allowed}")]
pub struct TransportsError {
    /// The key in the spec, as in `transport[1].g`.
    pub key: String,
    /// Rejected value, as it is written in a spec.
    pub found: String,
    /// Allowed values.
    pub allowed: String,
    /// This error reported at another key, for a spec that has that one alone.
    pub or: Option<Box<Self>>,
}

impl TransportsError {
    fn new(key: impl Into<String>, found: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { key: key.into(), found: found.into(), allowed: allowed.into(), or: None }
    }

    /// A parameter of the transport in this table.
    fn within(table: &str, error: ParamError) -> Self {
        let ParamError { key, found, allowed, or } = error;
        let or = or.map(|other| Box::new(Self::within(table, *other)));
        Self { key: format!("{table}.{key}"), found, allowed, or }
    }
}

impl From<TransportsError> for Mistake {
    fn from(error: TransportsError) -> Self {
        let TransportsError { key, found, allowed, or } = error;
        let mistake = Self::at(key, format!(" is {found}; allowed: {allowed}")).found(found).allowed(allowed);
        mistake.or(or.map(|other| Self::from(*other)))
    }
}

impl Default for TransportsSpec {
    fn default() -> Self {
        Self::One(TransportSpec::default())
    }
}

impl From<TransportSpec> for TransportsSpec {
    fn from(transport: TransportSpec) -> Self {
        Self::One(transport)
    }
}

impl LabelledTransport {
    /// Label by which traffic refers to the transport.
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(self.transport.name())
    }
}

impl TransportsSpec {
    /// The most transports of a run.
    const MOST: usize = 256;

    /// The labels of several transports, by number; none for one alone.
    pub fn labels(&self) -> Vec<String> {
        match self {
            Self::One(_) => Vec::new(),
            Self::Several(transports) => {
                transports.iter().map(|transport| transport.label().to_owned()).collect()
            }
        }
    }

    /// The class of the flows of each of several transports, by number, as far as it gives them
    /// one.
    pub fn classes(&self) -> Vec<Option<Class>> {
        match self {
            Self::One(_) => Vec::new(),
            Self::Several(transports) => {
                transports.iter().map(|transport| transport.class.map(Class::from)).collect()
            }
        }
    }

    /// Every transport, by number.
    pub fn all(&self) -> impl Iterator<Item = &TransportSpec> {
        let (one, several) = match self {
            Self::One(transport) => (Some(transport), &[][..]),
            Self::Several(transports) => (None, transports.as_slice()),
        };
        one.into_iter().chain(several.iter().map(|labelled| &labelled.transport))
    }

    /// Checks the parameters, and whether the transports can be in one run.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn validate(&self) -> Result<(), TransportsError> {
        match self {
            Self::One(transport) => {
                transport.validate().map_err(|error| TransportsError::within("transport", error))
            }
            Self::Several(transports) => build(transports).map(drop),
        }
    }

    /// Does something with the transports.
    ///
    /// # Errors
    /// As [`TransportsSpec::validate`].
    pub fn with_transports<V: Visitor>(&self, visitor: V) -> Result<V::Output, TransportsError> {
        match self {
            Self::One(transport) => {
                transport.visit(visitor).map_err(|error| TransportsError::within("transport", error))
            }
            Self::Several(transports) => Ok(visitor.visit(build(transports)?)),
        }
    }
}

fn build(transports: &[LabelledTransport]) -> Result<Several, TransportsError> {
    if !(1..=TransportsSpec::MOST).contains(&transports.len()) {
        let found = format!("a list of {} transports", transports.len());
        return Err(TransportsError::new("transport", found, format!("1 to {}", TransportsSpec::MOST)));
    }
    check_labels(transports)?;
    let mut built = Vec::with_capacity(transports.len());
    for (number, labelled) in transports.iter().enumerate() {
        let protocol = labelled.transport.build();
        let table = format!("transport[{number}]");
        built.push(protocol.map_err(|error| TransportsError::within(&table, error))?);
    }
    check_credits(transports, &built)?;
    let first = built.remove(0);
    Ok(Several::new(first, built))
}

fn check_labels(transports: &[LabelledTransport]) -> Result<(), TransportsError> {
    for (number, labelled) in transports.iter().enumerate() {
        let (key, label) = (format!("transport[{number}].label"), labelled.label());
        if label.is_empty() {
            return Err(TransportsError::new(key, "\"\"", "a label that traffic can name, as in \"bulk\""));
        }
        if let Some(twin) = transports[..number].iter().position(|other| other.label() == label) {
            let allowed = format!("a label of its own: it is that of transport[{twin}], too");
            return Err(TransportsError::new(key, format!("{label:?}"), allowed));
        }
    }
    Ok(())
}

/// All ports have one queue for credits: transports that need it must agree on it.
fn check_credits(transports: &[LabelledTransport], built: &[AnyProtocol]) -> Result<(), TransportsError> {
    let needs =
        built.iter().enumerate().filter_map(|(number, transport)| Some((number, transport.credit_ports()?)));
    let mut needs = needs;
    let Some((first, wanted)) = needs.next() else { return Ok(()) };
    match needs.find(|(_, other)| *other != wanted) {
        None => Ok(()),
        Some((other, _)) => Err(TransportsError::new(
            format!("transport[{other}]"),
            format!("{:?} with other credits than transport[{first}]", transports[other].label()),
            "the same credit_size, credit_queue, credit_burst, mss and header, since all ports have one queue for credits",
        )),
    }
}

impl<'de> Deserialize<'de> for TransportsSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableOrList;

        impl<'de> serde::de::Visitor<'de> for TableOrList {
            type Value = TransportsSpec;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table, as in [transport], or tables, as in [[transport]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TransportsSpec, A::Error> {
                TransportSpec::deserialize(MapAccessDeserializer::new(map)).map(TransportsSpec::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TransportsSpec, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(TransportsSpec::Several)
            }
        }

        deserializer.deserialize_any(TableOrList)
    }
}

/// The alternatives of a schema, one a transport.
fn variants(schema: &mut Schema) -> Option<&mut Vec<serde_json::Value>> {
    schema.get_mut("oneOf").and_then(serde_json::Value::as_array_mut)
}

/// A table of any transport, or a list of tables with labels.
impl JsonSchema for TransportsSpec {
    fn schema_name() -> Cow<'static, str> {
        "TransportsSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = TransportSpec::json_schema(generator);
        let several = json_schema!({
            "description": "Several transports in one run: tables `[[transport]]`.",
            "type": "array",
            "minItems": 1,
            "maxItems": Self::MOST,
            "items": generator.subschema_for::<LabelledTransport>(),
        });
        if let Some(variants) = variants(&mut schema) {
            variants.push(several.to_value());
        }
        schema
    }
}

/// A table of any transport with a label and a class beside its parameters.
impl JsonSchema for LabelledTransport {
    fn schema_name() -> Cow<'static, str> {
        "LabelledTransport".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = TransportSpec::json_schema(generator);
        let label = json_schema!({
            "description": "What traffic calls it. Default: its name.",
            "type": ["string", "null"],
        });
        let class = generator.subschema_for::<Option<ClassName>>();
        for variant in variants(&mut schema).into_iter().flatten() {
            if let Some(properties) = variant.get_mut("properties").and_then(serde_json::Value::as_object_mut)
            {
                properties.insert("label".to_owned(), label.clone().to_value());
                properties.insert("class".to_owned(), class.clone().to_value());
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transports;

    #[derive(Debug, Deserialize, Serialize)]
    struct Spec {
        transport: TransportsSpec,
    }

    fn read(text: &str) -> TransportsSpec {
        toml::from_str::<Spec>(text).unwrap().transport
    }

    struct Names;

    impl Visitor for Names {
        type Output = usize;

        fn visit<T: Transports + 'static>(self, transports: T) -> usize {
            transports.all().count()
        }
    }

    #[test]
    fn a_table_is_one_transport_and_tables_are_several_with_labels() {
        let one = read("[transport]\nname = 'mptcp'\nsubflows = 2");
        assert_eq!((one.labels(), one.with_transports(Names)), (Vec::new(), Ok(1)));
        let text = "[[transport]]\nname = 'tcp'\nsack = true\n\
                    [[transport]]\nlabel = 'bulk'\nclass = 'best-effort'\nname = 'tcp'";
        let several = read(text);
        assert_eq!(several.labels(), ["tcp", "bulk"]);
        assert_eq!(several.classes(), [None, Some(Class::BestEffort)]);
        assert_eq!(several.with_transports(Names), Ok(2));
        let written = toml::to_string(&Spec { transport: several.clone() }).unwrap();
        assert_eq!(read(&written), several);
    }

    #[test]
    fn transports_that_cannot_be_in_one_run_are_refused_by_key() {
        let cases = [
            ("[transport]\nname = 'dctcp'\ng = 2.0", "transport.g is 2; allowed: above 0, at most 1"),
            (
                "[[transport]]\nname = 'tcp'\n[[transport]]\nname = 'dctcp'\ng = 2.0",
                "transport[1].g is 2; allowed",
            ),
            (
                "[[transport]]\nname = 'tcp'\n[[transport]]\nname = 'tcp'",
                "transport[1].label is \"tcp\"; allowed: a label of its own: it is that of transport[0], too",
            ),
            ("[[transport]]\nname = 'tcp'\nlabel = ''", "transport[0].label is \"\"; allowed: a label"),
            (
                "[[transport]]\nname = 'expresspass'\n[[transport]]\nname = 'tcp'\n\
                 [[transport]]\nname = 'maxpass'\ncredit_queue = 77",
                "transport[2] is \"maxpass\" with other credits than transport[0]; allowed: the same credit_size",
            ),
        ];
        for (text, expected) in cases {
            let found = read(text).validate().unwrap_err().to_string();
            assert!(found.starts_with(expected), "{found}");
        }
        assert!(TransportsSpec::Several(Vec::new()).validate().is_err());
    }

    #[test]
    fn the_schema_offers_a_table_of_each_transport_and_a_list_of_them_with_labels() {
        let schema = schemars::schema_for!(TransportsSpec).to_value();
        let variants = schema["oneOf"].as_array().unwrap();
        assert_eq!(variants.len(), TransportSpec::list().len() + 1);
        let items = schema.pointer("/$defs/LabelledTransport/oneOf").unwrap().as_array().unwrap();
        for key in ["label", "class"] {
            assert!(items.iter().all(|item| item["properties"].get(key).is_some()), "{key}");
            assert!(variants.iter().all(|variant| variant["properties"].get(key).is_none()), "{key}");
        }
    }

    #[test]
    fn a_mistake_in_one_of_several_is_told_as_in_one_alone() {
        let message = |text| toml::from_str::<Spec>(text).unwrap_err().to_string();
        assert!(message("[[transport]]\nname = 'tcp'\nsak = true").contains("unknown field `sak`"));
        assert!(message("[[transport]]\nname = 'ttcp'").contains("unknown variant `ttcp`"));
        assert!(message("transport = 3").contains("a table, as in [transport], or tables"));
    }
}
