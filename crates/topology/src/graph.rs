//! Fabrics from a file that lists nodes and links.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use weft_units::{Rate, Span, read_regular_file};

use super::leaf_spine::numbered;
use super::plan::{Cable, Census, Plan, check_count, check_delay, check_rate};
use crate::spec::{FabricError, GraphSpec, unknown_name};

/// The names of its tiers.
pub(crate) const TIERS: &[&str] = &["host-switch", "switch-switch"];

/// Contents of a graph file. It is public so that whoever reads specs can say what does not fit, as
/// of any other table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphFile {
    hosts: Vec<Nodes>,
    switches: Vec<Nodes>,
    /// Rate of links that give none.
    rate: Option<Rate>,
    /// Propagation of links that give none.
    delay: Option<Span>,
    #[serde(default)]
    link: Vec<Link>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a node is a name, or { prefix = \"host\", count = 16 }")]
enum Nodes {
    Name(String),
    Numbered(Numbered),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbered {
    prefix: String,
    count: u32,
}

/// Cables from every node of `from` to every node of `to`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    from: Ends,
    to: Ends,
    rate: Option<Rate>,
    delay: Option<Span>,
    #[serde(default = "one")]
    count: u32,
}

const fn one() -> u32 {
    1
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "an end of a link is a name, or a list of names")]
enum Ends {
    One(String),
    Several(Vec<String>),
}

impl Ends {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// The fabric in the file. Nodes and ports are in the order of the file.
pub(crate) fn plan(spec: &GraphSpec, base_dir: &Path) -> Result<Plan, FabricError> {
    let file = read(spec, base_dir)?;
    file.plan().map_err(|error| file.located(spec, error))
}

/// A mistake that became known when the plan of the file was laid out, with its place in the file.
pub(crate) fn blamed(spec: &GraphSpec, base_dir: &Path, error: FabricError) -> FabricError {
    match read(spec, base_dir) {
        Ok(file) => file.located(spec, error),
        Err(error) => error,
    }
}

fn read(spec: &GraphSpec, base_dir: &Path) -> Result<GraphFile, FabricError> {
    let path = base_dir.join(&spec.file);
    let error = |reason: String| FabricError::File { path: spec.file.display().to_string(), reason };
    let text = read_regular_file(&path).map_err(|e| error(e.to_string()))?;
    toml::from_str(&text).map_err(|e| error(e.to_string().trim_end().to_owned()))
}

impl GraphFile {
    fn plan(&self) -> Result<Plan, FabricError> {
        let count = |nodes: &[Nodes]| nodes.iter().map(Nodes::count).sum();
        let (hosts, switches): (u64, u64) = (count(&self.hosts), count(&self.switches));
        if hosts == 0 || switches == 0 {
            let key = if hosts == 0 { "hosts" } else { "switches" };
            return Err(FabricError::bad(key, &0, "at least 1"));
        }
        self.census(hosts, switches).check()?;
        let mut plan = Plan {
            hosts: names(&self.hosts, "hosts")?,
            switches: names(&self.switches, "switches")?,
            cables: Vec::new(),
            tiers: TIERS,
        };
        let numbers = numbers(&plan);
        let mut cables = Vec::new();
        for (index, link) in self.link.iter().enumerate() {
            self.add(link, &format!("link[{index}]"), &numbers, hosts as u32, &mut cables)?;
        }
        plan.cables = cables;
        Ok(plan)
    }

    /// The mistake with the place in this file.
    fn located(&self, spec: &GraphSpec, error: FabricError) -> FabricError {
        let key = self.key_of(&error);
        FabricError::InFile { path: spec.file.display().to_string(), key, error: Box::new(error) }
    }

    /// The key that a mistake is at.
    fn key_of(&self, error: &FabricError) -> Option<String> {
        let links = |ends: &[&String]| {
            let joins = |link: &Link| {
                ends.iter().all(|end| link.from.names().contains(end) || link.to.names().contains(end))
            };
            self.link.iter().rposition(joins).map(|index| format!("link[{index}]"))
        };
        let listed = |name: &str| {
            let lists = [("switches", &self.switches), ("hosts", &self.hosts)];
            lists.into_iter().find_map(|(key, nodes)| {
                let place = nodes.iter().rposition(|nodes| nodes.holds(name))?;
                Some(format!("{key}[{place}]"))
            })
        };
        match error {
            FabricError::BadValue { key, .. }
            | FabricError::Missing { key, .. }
            | FabricError::UnknownName { key, .. } => Some(key.clone()),
            FabricError::HostCables { host, .. } => links(&[host]).or_else(|| listed(host)),
            FabricError::BadCable { from, to, .. } => links(&[from, to]),
            FabricError::DuplicateName { name } => listed(name),
            FabricError::Disconnected { to, .. } => links(&[to]).or_else(|| listed(to)),
            _ => None,
        }
    }

    fn census(&self, hosts: u64, switches: u64) -> Census {
        let pairs = |link: &Link| link.from.names().len() as u64 * link.to.names().len() as u64;
        let of_link = |link: &Link| pairs(link).saturating_mul(link.count.into());
        let cables = self.link.iter().map(of_link).fold(0, u64::saturating_add);
        Census { hosts, switches, racks: 0, cables, ports: 0, keys: "the lists in the graph file" }
    }

    fn add(
        &self,
        link: &Link,
        key: &str,
        numbers: &BTreeMap<&str, u32>,
        hosts: u32,
        cables: &mut Vec<Cable>,
    ) -> Result<(), FabricError> {
        let missing = |field: &str| FabricError::Missing {
            key: format!("{key}.{field}"),
            reason: format!("neither the link nor the file's {field:?} says it"),
        };
        let rate = link.rate.or(self.rate).ok_or_else(|| missing("rate"))?;
        let delay = link.delay.or(self.delay).ok_or_else(|| missing("delay"))?;
        check_rate(&format!("{key}.rate"), rate)?;
        check_delay(&format!("{key}.delay"), delay)?;
        check_count(&format!("{key}.count"), link.count)?;
        for (end, names) in [("from", link.from.names()), ("to", link.to.names())] {
            if names.is_empty() {
                return Err(FabricError::bad(format!("{key}.{end}"), &"[]", "at least one name"));
            }
        }
        let node = |name: &String, end: &str| {
            let known = || numbers.keys().copied();
            let unknown = || unknown_name(format!("{key}.{end}"), "node", name, known);
            numbers.get(name.as_str()).copied().ok_or_else(unknown)
        };
        for from in link.from.names() {
            for to in link.to.names() {
                let (a, b) = (node(from, "from")?, node(to, "to")?);
                let tier = u8::from(a >= hosts && b >= hosts);
                cables.extend((0..link.count).map(|_| Cable { a, b, rate, delay, tier }));
            }
        }
        Ok(())
    }
}

impl Nodes {
    /// Whether a node of these has this name.
    fn holds(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Numbered(nodes) => {
                let number = name.strip_prefix(&nodes.prefix).and_then(|rest| rest.parse::<u32>().ok());
                number.is_some_and(|number| number < nodes.count)
            }
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Name(_) => 1,
            Self::Numbered(nodes) => nodes.count.into(),
        }
    }
}

fn names(nodes: &[Nodes], key: &str) -> Result<Vec<String>, FabricError> {
    let mut names = Vec::new();
    for nodes in nodes {
        let name = match nodes {
            Nodes::Name(name) => name,
            Nodes::Numbered(numbered) => &numbered.prefix,
        };
        // A link's name is made of its nodes' names, '-', '>' and '.'.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(FabricError::bad(
                key,
                &format!("{name:?}"),
                "a name of letters, digits and underscores",
            ));
        }
        match nodes {
            Nodes::Name(name) => names.push(name.clone()),
            Nodes::Numbered(nodes) => names.extend(numbered(&nodes.prefix, nodes.count)),
        }
    }
    Ok(names)
}

/// The number of each node. Of two with one name either: the plan refuses them.
fn numbers(plan: &Plan) -> BTreeMap<&str, u32> {
    let names = plan.hosts.iter().chain(&plan.switches);
    names.zip(0u32..).map(|(name, number)| (name.as_str(), number)).collect()
}
