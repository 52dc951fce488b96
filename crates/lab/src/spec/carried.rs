//! A transport in place of another: which keys it keeps, and in what two transports differ that
//! nobody asked to differ.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value as Json;
use toml::Value;
use weft_transport::{TransportSpec, TransportsSpec};

use super::variant::Named;
use crate::catalog::transports;

/// Keys that several transports have and that tell one from another: congestion control and use of
/// ECN.
const DEFINING: [&str; 3] = ["dcqcn", "ecn", "g"];

/// Transports and their keys that mean something else than keys of the same name and type
/// elsewhere.
const APART: [(&str, &str); 3] = [("mprdma", "paths"), ("uec", "initial_window"), ("uec", "max_window")];

/// Properties of a parameter in the registry.
#[derive(Debug)]
struct Known {
    kind: String,
    default: Json,
}

/// The parameters of every transport, by its name and by key.
static KNOWN: LazyLock<BTreeMap<String, BTreeMap<String, Known>>> = LazyLock::new(|| {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let parameters = |entry: &Json| {
        let listed = entry["parameters"].as_array().into_iter().flatten();
        listed
            .map(|one| {
                let known = Known { kind: text(&one["type"]), default: one["default"].clone() };
                (text(&one["key"]), known)
            })
            .collect()
    };
    let entries = transports();
    entries.as_array().into_iter().flatten().map(|entry| (text(&entry["name"]), parameters(entry))).collect()
});

fn known(transport: &str, key: &str) -> Option<&'static Known> {
    KNOWN.get(transport)?.get(key)
}

/// Fate of a key when another transport takes the place of the one that it was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The transport keeps it.
    Kept,
    /// No such key: what is left out is reported.
    Unknown,
    /// A key of the same name with another meaning.
    Another,
    /// The key is a part of what the name of a transport stands for.
    Defines,
}

/// Fate of `key` in the transport `name`; `owner` is the transport that it was written for, if it
/// was for one.
fn fate(owner: Option<&str>, name: &str, key: &str) -> Fate {
    let of_owner = owner.and_then(|owner| known(owner, key));
    let Some(own) = known(name, key) else {
        // A key that no transport has is a mistake, which the types of the spec report.
        let is_key = KNOWN.values().any(|parameters| parameters.contains_key(key));
        return if is_key { Fate::Unknown } else { Fate::Kept };
    };
    let Some(before) = of_owner else { return Fate::Kept };
    let is_apart = |transport: &str| APART.contains(&(transport, key));
    let fits = own.kind == before.kind || (own.kind == "number" && before.kind == "integer");
    if DEFINING.contains(&key) {
        Fate::Defines
    } else if !fits || is_apart(name) || owner.is_some_and(is_apart) {
        Fate::Another
    } else {
        Fate::Kept
    }
}

/// For which transport each key of the table `[transport]` was written; an empty name stands for
/// those of a list, which a sweep takes in turn.
#[derive(Debug, Default)]
pub(super) struct Owners(BTreeMap<String, String>);

impl Owners {
    /// The keys of a table were written for the transport that it names.
    pub fn of_table(table: Option<&Value>) -> Self {
        let Some(table) = table.and_then(Value::as_table) else { return Self::default() };
        let name = name_of(table);
        Self(table.keys().map(|key| (key.clone(), name.clone())).collect())
    }

    /// A change wrote this key while the table had this name: for that transport if it has the key,
    /// else for all that have it.
    pub fn changed(&mut self, table: Option<&Value>, key: &str) {
        let name = table.and_then(Value::as_table).map(name_of).unwrap_or_default();
        if known(&name, key).is_some() {
            self.0.insert(key.to_owned(), name);
        } else {
            self.0.remove(key);
        }
    }

    /// Keys that were named with this transport.
    pub fn named(&mut self, name: &str, keys: &[String]) {
        self.0.extend(keys.iter().map(|key| (key.clone(), name.to_owned())));
    }

    /// Takes out of the table what its transport does not keep, and reports it. With `strict`, a
    /// key that was written for no other transport stays, so that it is a mistake.
    pub fn settle(&self, table: &mut toml::Table, strict: bool) -> Vec<String> {
        let name = name_of(table);
        let mut gone: BTreeMap<(Fate, &str), Vec<String>> = BTreeMap::new();
        for (key, value) in table.iter().filter(|(key, _)| *key != Named::Transport.tag()) {
            let owner = self.0.get(key).map(String::as_str);
            if owner == Some(name.as_str()) || (owner.is_none() && strict) {
                continue;
            }
            let owner = owner.filter(|owner| !owner.is_empty());
            // A key that its own transport does not have is a mistake of whoever wrote it.
            if owner.is_some_and(|owner| known(owner, key).is_none()) {
                continue;
            }
            match fate(owner, &name, key) {
                Fate::Kept => {}
                // The transport's own value is none that it would have to give up.
                Fate::Defines if is_default(&name, key, value) => {}
                fate => gone.entry((fate, owner.unwrap_or_default())).or_default().push(key.clone()),
            }
        }
        gone.values().flatten().for_each(|key| drop(table.remove(key)));
        gone.iter().map(|((fate, owner), keys)| note(*fate, owner, &name, keys)).collect()
    }

    /// The first key, or name, that is none of the transport that it was written for; and that
    /// transport.
    pub fn mistake(&self) -> Option<(&str, &str)> {
        let tag = Named::Transport.tag();
        let is_wrong = |key: &str, owner: &str| match KNOWN.get(owner) {
            None => key == tag,
            Some(parameters) => key != tag && !parameters.contains_key(key),
        };
        let mut pairs = self.0.iter().map(|(key, owner)| (key.as_str(), owner.as_str()));
        pairs.find(|(key, owner)| !owner.is_empty() && is_wrong(key, owner))
    }
}

fn is_default(transport: &str, key: &str, value: &Value) -> bool {
    known(transport, key)
        .is_some_and(|own| serde_json::to_value(value).is_ok_and(|value| value == own.default))
}

fn name_of(table: &toml::Table) -> String {
    let default = TransportSpec::default();
    match table.get(Named::Transport.tag()) {
        None => default.name().to_owned(),
        Some(name) => name.as_str().unwrap_or_default().to_owned(),
    }
}

fn note(fate: Fate, owner: &str, name: &str, keys: &[String]) -> String {
    let listed = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let one = keys.len() == 1;
    match fate {
        Fate::Defines => {
            let (verb, own) = if one { ("defines", "its own") } else { ("define", "its own") };
            format!("{listed} {verb} {owner}; {name} keeps {own}")
        }
        Fate::Another => {
            let verb = if one { "means" } else { "mean" };
            format!("{listed} of {owner} {verb} something else in {name}; ignored")
        }
        Fate::Unknown | Fate::Kept => {
            format!("{name} has no key{} {listed}; ignored", if one { "" } else { "s" })
        }
    }
}

/// A quantity of a transport that decides completion times whatever the transport's algorithm is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Name of the quantity, as in "packet size".
    pub quantity: &'static str,
    /// The transport's key for it.
    pub key: &'static str,
    /// Value of the quantity, with its unit.
    pub value: String,
    /// Whether the variant itself says it.
    pub asked: bool,
}

/// The quantities, and the keys that transports have for them.
const CONDITIONS: [(&str, &[&str]); 4] = [
    ("packet size", &["mss", "mtu"]),
    ("header", &["header"]),
    ("initial window", &["initial_window", "bdp_cap"]),
    ("minimum timeout", &["min_rto", "rto_low", "timeout", "rto", "retransmit_timeout"]),
];

/// The conditions of a run's transport, which itself asks for these keys; none with several
/// transports.
pub(super) fn conditions(transports: &TransportsSpec, asked: &[String]) -> Vec<Condition> {
    let TransportsSpec::One(transport) = transports else { return Vec::new() };
    let Ok(Json::Object(values)) = serde_json::to_value(transport) else { return Vec::new() };
    let is_asked = |key: &str| asked.iter().any(|own| own == key || own == "profile");
    let found = CONDITIONS.iter().filter_map(|(quantity, keys)| {
        let (key, known) = keys.iter().find_map(|key| Some((*key, known(transport.name(), key)?)))?;
        let value = values.get(key).filter(|value| !value.is_null()).unwrap_or(&known.default);
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let value = with_unit(transport.name(), key, value);
        Some(Condition { quantity, key, value, asked: is_asked(key) })
    });
    found.collect()
}

/// A number with its unit: windows are counted in packets, but for one transport's.
fn with_unit(transport: &str, key: &str, value: String) -> String {
    match value.parse::<f64>() {
        Err(_) => value,
        Ok(number) if APART.contains(&(transport, key)) => format!("{number} bandwidth-delay products"),
        Ok(number) => format!("{number} packets"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(written: toml::Table, name: &str) -> (toml::Table, Vec<String>) {
        let mut table = written;
        let owners = Owners::of_table(Some(&Value::Table(table.clone())));
        table.insert("name".to_owned(), name.into());
        let notes = owners.settle(&mut table, false);
        (table, notes)
    }

    #[test]
    fn a_transport_keeps_every_key_that_it_has_and_that_means_the_same() {
        let tcp =
            toml::toml! { name = "tcp" mss = "9000B" min_rto = "200ms" initial_window = 4 ack_size = "60B" };
        for kin in ["dctcp", "mptcp"] {
            let (table, notes) = settled(tcp.clone(), kin);
            assert_eq!((table.len(), notes), (tcp.len(), Vec::new()), "{kin}");
        }
        let (swift, notes) = settled(tcp, "swift");
        assert_eq!(swift, toml::toml! { name = "swift" initial_window = 4 ack_size = "60B" });
        assert_eq!(notes, ["swift has no keys `mss`, `min_rto`; ignored"]);
    }

    #[test]
    fn a_key_of_another_meaning_is_not_kept() {
        let (uec, notes) = settled(toml::toml! { name = "swift" max_window = 20.0 mtu = "2KiB" }, "uec");
        assert_eq!(uec, toml::toml! { name = "uec" mtu = "2KiB" });
        assert_eq!(notes, ["`max_window` of swift means something else in uec; ignored"]);
        let (roce, notes) = settled(toml::toml! { name = "tcp" profile = "linux" }, "roce");
        assert_eq!(roce, toml::toml! { name = "roce" });
        assert_eq!(notes, ["`profile` of tcp means something else in roce; ignored"]);
    }

    #[test]
    fn congestion_control_and_ecn_are_the_transports_own() {
        for (written, name, expected) in [
            (toml::toml! { name = "irn" dcqcn = false }, "roce", "`dcqcn` defines irn; roce keeps its own"),
            (toml::toml! { name = "dctcp" g = 0.5 }, "roce", "`g` defines dctcp; roce keeps its own"),
            (toml::toml! { name = "tcp" ecn = "classic" }, "mptcp", "`ecn` defines tcp; mptcp keeps its own"),
            (
                toml::toml! { name = "tcp" congestion = "cubic" },
                "dctcp",
                "dctcp has no key `congestion`; ignored",
            ),
        ] {
            let (table, notes) = settled(written, name);
            assert_eq!(table.len(), 1, "{name}");
            assert_eq!(notes, [expected]);
        }
        let (_, notes) = settled(toml::toml! { name = "roce" dcqcn = false }, "irn");
        assert_eq!(notes, Vec::<String>::new(), "that is how irn is anyway");
    }

    #[test]
    fn every_shared_key_is_listed_with_what_it_means() {
        for (transport, key) in APART {
            assert!(known(transport, key).is_some(), "{transport}.{key}");
        }
        let sharing = |key: &str| KNOWN.values().filter(|parameters| parameters.contains_key(key)).count();
        assert!(DEFINING.iter().all(|key| sharing(key) > 1));
    }

    #[test]
    fn every_transport_has_the_quantities_that_are_compared() {
        for info in TransportSpec::list() {
            let table = toml::Table::from_iter([("name".to_owned(), info.name.into())]);
            let transport: TransportSpec = Value::Table(table).try_into().unwrap();
            let found = conditions(&transport.into(), &[]);
            let quantities: Vec<_> = found.iter().map(|one| one.quantity).collect();
            for needed in ["packet size", "header", "minimum timeout"] {
                assert!(quantities.contains(&needed), "{}: {quantities:?}", info.name);
            }
            assert!(found.iter().all(|one| !one.value.is_empty() && one.value != "null"), "{found:?}");
        }
    }
}
