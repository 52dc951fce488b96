//! Variants of a comparison, and their notation: a load balancer, a transport, a kind of hosts, or
//! several of these.
//!
//! `letflow:gap=100us` is a load balancer, with the spec's transport and hosts; `maxpass:keep=3` a
//! transport, with the spec's load balancer; `mptcp+ecmp:hash=shared` a transport, then a load
//! balancer; `linux+letflow` has Linux hosts; `my.py:Least:gap=3us` is a load balancer that is a
//! class in a file of Python. The same form stands for a table of a spec: `scheme =
//! "letflow:gap=100us"`, `fabric = "fat-tree:k=8"`, `hosts = "linux"`.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Value;
use weft_units::Mistake;

use super::document::parse_value;
use super::error::{SpecError, did_you_mean, nearest};
use super::python_class;
use crate::linux::HostsSpec;

/// A table of a spec that can be written by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// Kind of hosts.
    Hosts,
    /// Transport that carries the bytes.
    Transport,
    /// Scheme that chooses the paths.
    Scheme,
    /// Hosts, switches, cables.
    Fabric,
}

impl Named {
    /// Every table that can.
    pub(super) const ALL: [Self; 4] = [Self::Hosts, Self::Transport, Self::Scheme, Self::Fabric];
    /// Tables that a variant may set, in the order in which it names them.
    const COMPARED: [Self; 3] = [Self::Hosts, Self::Transport, Self::Scheme];

    /// The table's name in a spec.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Transport => "transport",
            Self::Scheme => "scheme",
            Self::Fabric => "fabric",
        }
    }

    /// The key that names what the table is of.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Transport | Self::Scheme => "name",
            Self::Hosts | Self::Fabric => "kind",
        }
    }

    /// The table of this name, if it can be written by a name.
    pub(crate) fn of_table(table: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|named| named.table() == table)
    }

    fn names(self) -> Vec<&'static str> {
        match self {
            Self::Hosts => HostsSpec::KINDS.to_vec(),
            Self::Transport => weft_transport::TransportSpec::list().iter().map(|info| info.name).collect(),
            Self::Scheme => weft_balance::schemes().iter().map(|info| info.name).collect(),
            Self::Fabric => weft_topology::fabrics().iter().map(|info| info.name).collect(),
        }
    }

    /// Noun for one of them in messages.
    const fn noun(self) -> &'static str {
        match self {
            Self::Hosts => "kind of hosts",
            Self::Transport => "transport",
            Self::Scheme => "scheme",
            Self::Fabric => "fabric",
        }
    }
}

/// A name with parameters, in place of a table of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The table.
    pub named: Named,
    /// Name of the scheme, transport or kind of hosts.
    pub name: String,
    /// Keys of the table, with dots for tables within it, and their values, as they are written.
    pub parameters: Vec<(String, String)>,
}

impl Part {
    /// Reads `letflow:gap=100us` as this table.
    ///
    /// # Errors
    /// A name that there is not, or a parameter that is not `key=value`.
    pub fn parse(named: Named, text: &str) -> Result<Self, SpecError> {
        let in_python = python_class::named(text).filter(|_| named == Named::Scheme);
        let written = in_python.or_else(|| text.split(':').next()).unwrap_or_default();
        let name = written.trim();
        let known = named.names();
        if in_python.is_none() && !known.contains(&name) {
            return Err(SpecError::unknown(named.noun(), name, known));
        }
        let parameters = text[written.len()..].split(':').skip(1).map(|assignment| {
            let parts = assignment.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            let given = parts.filter(|(key, value)| !key.is_empty() && !value.is_empty());
            given.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or_else(|| {
                let allowed = format!("key=value after each colon, as in {name}:key=value");
                let sentence = format!("{:?} has {:?}: expected {allowed}", text.trim(), assignment.trim());
                SpecError::from(Mistake::new(sentence).found(assignment.trim()).allowed(allowed))
            })
        });
        let parameters: Vec<(String, String)> = parameters.collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        if let Some((key, _)) = parameters.iter().find(|(key, _)| !seen.insert(key)) {
            let sentence = format!("{:?} has {key} twice: expected each parameter once", text.trim());
            return Err(Mistake::new(sentence).found(key).allowed("each parameter once").into());
        }
        Ok(Self { named, name: name.to_owned(), parameters })
    }

    /// The name with its parameters, as it is written.
    pub fn text(&self) -> String {
        self.parameters.iter().fold(self.name.clone(), |text, (key, value)| format!("{text}:{key}={value}"))
    }

    /// Puts the table into a spec.
    pub(crate) fn enter(&self, root: &mut toml::Table) {
        let empty = || Value::Table(toml::Table::new());
        self.fill(root.entry(self.named.table()).or_insert_with(empty));
    }

    /// Puts the name and the parameters into a table of a spec. A table of another name loses its
    /// parameters, which mean nothing to this one; a transport's stay, for whoever has all changes
    /// to choose from them.
    pub(crate) fn fill(&self, table: &mut Value) {
        let tag = self.named.tag();
        let is_kept = |own: &toml::Table| {
            self.named == Named::Transport || own.get(tag).and_then(Value::as_str) == Some(&self.name)
        };
        let own = table.as_table_mut().filter(|own| is_kept(own));
        let mut filled = own.map(std::mem::take).unwrap_or_default();
        filled.insert(tag.to_owned(), self.name.clone().into());
        self.parameters.iter().for_each(|(key, value)| put(&mut filled, key, parse_value(value)));
        *table = Value::Table(filled);
    }
}

/// Puts a value into a table; a key with dots goes to the tables within it.
fn put(table: &mut toml::Table, key: &str, value: Value) {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return;
    };
    let mut within = match table.remove(first) {
        Some(Value::Table(within)) => within,
        _ => toml::Table::new(),
    };
    put(&mut within, rest, value);
    table.insert(first.to_owned(), within.into());
}

/// One of those that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Label of the variant: its text, without blanks.
    pub label: String,
    /// The label as the name of a file.
    pub slug: String,
    /// Parts that replace the spec's: a kind of hosts, a transport, a load balancer, or some of
    /// these in this order. None if it is external.
    pub parts: Vec<Part>,
}

impl Variant {
    /// Reads a variant.
    ///
    /// # Errors
    /// A name that there is not, parts in the wrong order, or a parameter that is not `key=value`.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parts: Vec<Part> = Vec::new();
        for part in text.split('+') {
            let part = part_of(part)?;
            if let Some(before) = parts.last().filter(|before| before.named >= part.named) {
                let order = Named::COMPARED.map(Named::noun).join(", then the ");
                let example = format!("{}+{}", part.name, before.name);
                let sentence = if before.named == part.named {
                    format!("{:?} has two of a kind: {} and {}", text.trim(), before.name, part.name)
                } else {
                    let noun = part.named.noun();
                    format!(
                        "{:?}: the {noun} comes before the {}, as in {example}",
                        text.trim(),
                        before.named.noun()
                    )
                };
                let allowed = format!("the {order}");
                return Err(Mistake::new(sentence).found(text.trim()).allowed(allowed).into());
            }
            parts.push(part);
        }
        let label = parts.iter().map(Part::text).collect::<Vec<_>>().join("+");
        // A file is where whoever named it is, not where the spec is.
        for part in &mut parts {
            part.name = python_class::rebased(&part.name, Path::new("."));
        }
        Ok(Self { slug: slug(&label), label, parts })
    }

    /// A variant that is no part of a spec: an external scheme.
    pub fn outside(label: impl Into<String>) -> Self {
        let label = label.into();
        Self { slug: slug(&label), label, parts: Vec::new() }
    }
}

/// Reads one part: whose name it has, that it is.
fn part_of(text: &str) -> Result<Part, SpecError> {
    if python_class::named(text).is_some() {
        return Part::parse(Named::Scheme, text);
    }
    let name = text.split(':').next().unwrap_or_default().trim();
    if python_class::is_file_alone(name) {
        let allowed = "the file and a class in it";
        let sentence = format!("{name:?} names no load balancer: expected {allowed}, as in {name}:Least");
        return Err(Mistake::new(sentence).found(name).allowed(allowed).into());
    }
    if let Some(named) = Named::COMPARED.into_iter().find(|named| named.names().contains(&name)) {
        return Part::parse(named, text);
    }
    let [hosts, transports, known] = Named::COMPARED.map(Named::names);
    let near = nearest(name, known.iter().chain(&transports).chain(&hosts).copied());
    let allowed =
        format!("{}; transports: {}; hosts: {}", known.join(", "), transports.join(", "), hosts.join(", "));
    let sentence = format!("there is no scheme {name:?}{} (known: {allowed})", did_you_mean(near));
    Err(Mistake::new(sentence).found(name).allowed(allowed).nearest(near).into())
}

/// A label as the name of a file: `letflow:gap=100us` becomes `letflow-gap-100us`.
pub fn slug(label: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let parts = label.split(|c| !plain(c)).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("-");
    match joined.trim_matches(['-', '.']) {
        "" => "scheme".to_owned(),
        slug => slug.to_owned(),
    }
}

/// Refuses to compare nothing, and the same twice.
///
/// # Errors
/// No variant, or two that would be called the same.
pub fn check_variants(variants: &[Variant]) -> Result<(), SpecError> {
    if variants.is_empty() {
        return Err(SpecError::new("no scheme to compare: name at least one, for example ecmp,letflow"));
    }
    let mut seen = BTreeSet::new();
    for variant in variants {
        if !seen.insert(&variant.slug) {
            let label = &variant.label;
            let mistake = Mistake::new(format!("{label:?} is named twice among the schemes to compare"));
            return Err(mistake.found(label).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_a_balancer_a_transport_or_both() {
        let parts = |text: &str| {
            let parts = Variant::parse(text).unwrap().parts;
            parts.iter().map(|part| (part.named.table(), part.text())).collect::<Vec<_>>()
        };
        assert_eq!(parts("letflow:gap=100us"), [("scheme", "letflow:gap=100us".to_owned())]);
        assert_eq!(parts(" maxpass: keep = 3"), [("transport", "maxpass:keep=3".to_owned())]);
        assert_eq!(
            parts("mptcp + ecmp:hash=shared"),
            [("transport", "mptcp".to_owned()), ("scheme", "ecmp:hash=shared".to_owned())]
        );
    }

    #[test]
    fn a_class_in_a_file_of_python_is_a_balancer_called_as_it_is_written_and_found_from_here() {
        let variant = Variant::parse("dctcp+ my.py:Least:gap=3us").unwrap();
        assert_eq!(
            (variant.label.as_str(), variant.slug.as_str()),
            ("dctcp+my.py:Least:gap=3us", "dctcp-my.py-Least-gap-3us")
        );
        let here = std::env::current_dir().unwrap();
        assert_eq!(variant.parts[1].name, format!("{}:Least", here.join("my.py").display()));
        assert_eq!(variant.parts[1].parameters, [("gap".to_owned(), "3us".to_owned())]);
    }

    #[test]
    fn hosts_come_first() {
        let variant = Variant::parse("linux:ring=64+dctcp+letflow").unwrap();
        let tables: Vec<_> = variant.parts.iter().map(|part| part.named.table()).collect();
        assert_eq!(tables, ["hosts", "transport", "scheme"]);
        assert_eq!(variant.label, "linux:ring=64+dctcp+letflow");
    }

    #[test]
    fn blanks_make_no_other_label_and_no_other_variant() {
        let variants = ["letflow:gap=1us", "letflow: gap=1us"].map(|text| Variant::parse(text).unwrap());
        assert_eq!(variants[0], variants[1]);
        assert!(check_variants(&variants).unwrap_err().to_string().contains("named twice"));
        assert!(check_variants(&[]).is_err());
        let outside = [Variant::outside("letflow"), Variant::parse("letflow").unwrap()];
        assert!(check_variants(&outside).is_err(), "one directory cannot hold both");
    }

    #[test]
    fn labels_become_harmless_file_names() {
        for (label, expected) in [
            ("ecmp", "ecmp"),
            ("letflow:gap=100us", "letflow-gap-100us"),
            ("tcp+ecmp:hash=shared", "tcp-ecmp-hash-shared"),
            ("../../etc", "etc"),
            ("::", "scheme"),
        ] {
            assert_eq!(slug(label), expected);
        }
    }

    #[test]
    fn what_is_no_variant_is_answered_with_the_nearest_name_and_the_form() {
        for (text, expected) in [
            ("letflw", "there is no scheme \"letflw\"; did you mean \"letflow\"?"),
            ("dctpc", "did you mean \"dctcp\"?"),
            ("dctcp+letflw", "there is no scheme \"letflw\""),
            ("letflow+dctcp", "the transport comes before the scheme, as in dctcp+letflow"),
            ("dctcp+linux", "the kind of hosts comes before the transport, as in linux+dctcp"),
            ("ecmp+letflow", "two of a kind: ecmp and letflow"),
            ("linus", "did you mean \"linux\"?"),
            ("dctcp:g", "\"dctcp:g\" has \"g\": expected key=value"),
            (
                "letflow:gap=50us: gap=60us",
                "\"letflow:gap=50us: gap=60us\" has gap twice: expected each parameter once",
            ),
            (
                "my.py",
                "\"my.py\" names no load balancer: expected the file and a class in it, as in my.py:Least",
            ),
            ("my.py:Least:gap", "\"my.py:Least:gap\" has \"gap\": expected key=value after each colon"),
            ("", "there is no scheme \"\""),
        ] {
            let message = Variant::parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn parameters_of_the_spec_stay_with_the_scheme_that_they_belong_to() {
        let spec = || Value::from(toml::toml! { name = "letflow" gap = "9us" });
        let filled = |text| {
            let mut table = spec();
            Part::parse(Named::Scheme, text).unwrap().fill(&mut table);
            table
        };
        assert_eq!(filled("letflow"), spec());
        assert_eq!(filled("letflow:gap=1us"), Value::from(toml::toml! { name = "letflow" gap = "1us" }));
        assert_eq!(filled("ecmp"), Value::from(toml::toml! { name = "ecmp" }));
    }

    #[test]
    fn a_parameter_with_dots_is_of_a_table_within() {
        let mut table = Value::from(toml::toml! { kind = "linux" ring = 64 kernel = { sack = 0 } });
        Part::parse(Named::Hosts, "linux:kernel.quick_ack=1:ring=9").unwrap().fill(&mut table);
        let expected = toml::toml! { kind = "linux" ring = 9 kernel = { sack = 0, quick_ack = 1 } };
        assert_eq!(table, Value::from(expected));
    }
}
