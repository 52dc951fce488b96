//! From names and cables to a checked [`Topology`].

use std::collections::BTreeSet;
use std::sync::Arc;

use weft_units::{Rate, Span};

use super::{ClassesSpec, Condition, LinkSpec, NodeId, QueueSpec, Tier, Topology};
use crate::spec::FabricError;

/// The most hosts: host numbers have 16 bits, so that a packet is one cache line. docs/speed.md
/// says what more would cost.
const MAX_HOSTS: u64 = 1 << 16;
/// The most ports of a switch: port numbers share 16 bits with group numbers.
const MAX_PORTS: u64 = (1 << 15) - 1;
/// The most cables, so that a fabric fits in memory.
const MAX_CABLES: u64 = 1 << 22;
/// The most switches, for the same reason.
const MAX_SWITCHES: u64 = 1 << 20;
/// The most table entries, switches times racks, likewise.
const MAX_ROUTES: u64 = 100_000_000;
/// The most steps that finding routes may take: a search from every rack over all links between
/// switches, and a walk between every two racks. Some seconds; no fabric of a data center comes
/// near, a line of thousands of switches does.
const MAX_STEPS: u64 = 2_000_000_000;
/// Rates that the engine's arithmetic is good for.
pub(crate) const RATES: std::ops::RangeInclusive<Rate> = Rate::from_bps(1_000_000)..=Rate::from_gbps(100_000);
/// The longest delay of a link.
const MAX_DELAY: Span = Span::from_s(10);

/// A cable: two links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cable {
    /// One end: a node number, hosts first.
    pub a: u32,
    /// The other end.
    pub b: u32,
    /// In each direction.
    pub rate: Rate,
    /// Propagation in each direction.
    pub delay: Span,
    /// Index of the cable's tier in [`Plan::tiers`].
    pub tier: u8,
}

/// Layout of a fabric by a builder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Names of hosts.
    pub hosts: Vec<String>,
    /// Names of switches.
    pub switches: Vec<String>,
    /// In the order of the ports at both ends.
    pub cables: Vec<Cable>,
    /// Names of the groups that cables fall into.
    pub tiers: &'static [&'static str],
}

/// Values that all links of a fabric share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// At each host, each way.
    pub stack_delay: Span,
    /// At each switch.
    pub switch_delay: Span,
    /// Overhead of every packet, on every link.
    pub overhead_bytes: u16,
    /// At every switch port.
    pub switch_queue: PortQueues,
    /// At every host.
    pub host_queue: PortQueues,
}

/// The queues of a port: one, or one for each of several classes.
#[derive(Debug, Clone)]
pub(crate) struct PortQueues {
    pub queue: QueueSpec,
    pub classes: Option<Arc<ClassesSpec>>,
}

/// Refuses a rate that the engine cannot compute with.
pub(crate) fn check_rate(key: &str, rate: Rate) -> Result<(), FabricError> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    Err(FabricError::bad(key, &rate, format!("{} to {}", RATES.start(), RATES.end())))
}

/// Refuses a delay beyond any network.
pub(crate) fn check_delay(key: &str, delay: Span) -> Result<(), FabricError> {
    if delay <= MAX_DELAY {
        return Ok(());
    }
    Err(FabricError::bad(key, &delay, format!("at most {MAX_DELAY}")))
}

/// Refuses zero.
pub(crate) fn check_count(key: &str, count: u32) -> Result<(), FabricError> {
    if count > 0 { Ok(()) } else { Err(FabricError::bad(key, &count, "at least 1")) }
}

/// The numbers of a fabric, checked before anything of that size is built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Census {
    pub hosts: u64,
    pub switches: u64,
    pub racks: u64,
    pub cables: u64,
    /// Ports of the switch that has most.
    pub ports: u64,
    /// The keys that these follow from.
    pub keys: &'static str,
}

impl Census {
    pub(crate) fn check(&self) -> Result<(), FabricError> {
        let routes = self.switches.saturating_mul(self.racks);
        let limits = [
            ("hosts", self.hosts, MAX_HOSTS),
            ("ports at one switch", self.ports, MAX_PORTS),
            ("cables", self.cables, MAX_CABLES),
            ("switches", self.switches, MAX_SWITCHES),
            ("routing table entries (switches times racks)", routes, MAX_ROUTES),
        ];
        let over = limits.into_iter().find(|&(_, found, most)| found > most);
        over.map_or(Ok(()), |(what, found, most)| {
            Err(FabricError::TooLarge { what, found, most, keys: self.keys })
        })
    }
}

/// Refuses a fabric in which finding routes would take minutes or more.
fn check_steps(topology: &Topology) -> Result<(), FabricError> {
    let racks = topology.racks() as u64;
    let links = topology.links.iter().filter(|link| matches!(link.tier, Tier::Leaf | Tier::Spine)).count();
    let walks = racks.saturating_mul(racks).saturating_mul(hops(topology));
    let found = walks.max(racks.saturating_mul(links as u64));
    if found <= MAX_STEPS {
        return Ok(());
    }
    let what = "steps to find all routes (racks times racks times hops, or racks times links)";
    Err(FabricError::TooLarge { what, found, most: MAX_STEPS, keys: "the fabric" })
}

/// Hops from the first rack's switch to the switch that is farthest away: at least half of the
/// longest way.
fn hops(topology: &Topology) -> u64 {
    let mut seen = vec![false; topology.switches];
    let mut wave: Vec<u32> = topology.switch_of_rack.first().copied().into_iter().collect();
    let mut hops = 0;
    loop {
        wave.retain(|&switch| !std::mem::replace(&mut seen[switch as usize], true));
        let nodes = wave.iter().map(|&switch| topology.hosts + switch as usize);
        let ports =
            nodes.map(|node| topology.first_link[node] as usize..topology.first_link[node + 1] as usize);
        let ends = ports.flat_map(|ports| &topology.links[ports]).map(|link| link.to.0 as usize);
        let next = ends.filter_map(|node| node.checked_sub(topology.hosts)).filter(|&switch| !seen[switch]);
        wave = next.map(|switch| switch as u32).collect();
        if wave.is_empty() {
            return hops;
        }
        hops += 1;
    }
}

impl Plan {
    /// The name of a node.
    pub(crate) fn name(&self, node: u32) -> &str {
        let node = node as usize;
        if node < self.hosts.len() { &self.hosts[node] } else { &self.switches[node - self.hosts.len()] }
    }

    fn is_host(&self, node: u32) -> bool {
        (node as usize) < self.hosts.len()
    }

    /// The fabric, and both links of each cable (from `a`, from `b`).
    ///
    /// Ports of a switch: those to hosts first, then the others, each in the order of cables.
    pub(crate) fn topology(&self, shared: &Shared) -> Result<(Topology, Vec<[u32; 2]>), FabricError> {
        self.check_cables()?;
        let mut ends: Vec<End> = Vec::with_capacity(2 * self.cables.len());
        for (cable, &Cable { a, b, .. }) in self.cables.iter().enumerate() {
            ends.push(End { from: a, up: !self.is_host(b), cable: cable as u32, to: b });
            ends.push(End { from: b, up: !self.is_host(a), cable: cable as u32, to: a });
        }
        ends.sort_unstable();
        let first_link = self.first_links(&ends);
        self.check_ports(&first_link)?;
        self.check_connected(&ends, &first_link)?;

        let mut links_of_cable = vec![[u32::MAX; 2]; self.cables.len()];
        for (link, end) in ends.iter().enumerate() {
            let direction = usize::from(self.cables[end.cable as usize].a != end.from);
            links_of_cable[end.cable as usize][direction] = link as u32;
        }
        let reverse = ends.iter().enumerate().map(|(link, end)| {
            let [there, back] = links_of_cable[end.cable as usize];
            if there == link as u32 { back } else { there }
        });
        let reverse = reverse.collect();
        let tier_of_switch = self.tiers_of_switches(&ends, &first_link);
        let links = ends.iter().map(|end| self.link(end, &tier_of_switch, shared)).collect();
        let topology = self.assembled(links, first_link, tier_of_switch, reverse, shared.overhead_bytes);
        Census {
            hosts: topology.hosts as u64,
            switches: topology.switches as u64,
            racks: topology.racks() as u64,
            cables: self.cables.len() as u64,
            ports: 0,
            keys: "the fabric",
        }
        .check()?;
        check_steps(&topology)?;
        Ok((topology, links_of_cable))
    }

    fn check_cables(&self) -> Result<(), FabricError> {
        let mut names = BTreeSet::new();
        if let Some(name) = self.hosts.iter().chain(&self.switches).find(|name| !names.insert(*name)) {
            return Err(FabricError::DuplicateName { name: name.clone() });
        }
        for cable in &self.cables {
            let reason = match (cable.a == cable.b, self.is_host(cable.a) && self.is_host(cable.b)) {
                (true, _) => "both ends are one node",
                (_, true) => "a host connects to a switch",
                _ => continue,
            };
            let (from, to) = (self.name(cable.a).to_owned(), self.name(cable.b).to_owned());
            return Err(FabricError::BadCable { from, to, reason });
        }
        Ok(())
    }

    fn first_links(&self, ends: &[End]) -> Vec<u32> {
        let mut first_link = vec![0u32; self.hosts.len() + self.switches.len() + 1];
        for end in ends {
            first_link[end.from as usize + 1] += 1;
        }
        for node in 1..first_link.len() {
            first_link[node] += first_link[node - 1];
        }
        first_link
    }

    fn check_ports(&self, first_link: &[u32]) -> Result<(), FabricError> {
        let ports = |node: usize| first_link[node + 1] - first_link[node];
        if let Some(host) = (0..self.hosts.len()).find(|&host| ports(host) != 1) {
            return Err(FabricError::HostCables {
                host: self.hosts[host].clone(),
                cables: ports(host) as usize,
            });
        }
        let most = (self.hosts.len()..first_link.len() - 1).map(|node| u64::from(ports(node))).max();
        let ports = most.unwrap_or_default();
        Census { hosts: 0, switches: 0, racks: 0, cables: 0, ports, keys: "the number of cables" }.check()
    }

    fn check_connected(&self, ends: &[End], first_link: &[u32]) -> Result<(), FabricError> {
        let nodes = first_link.len() - 1;
        let mut reached = vec![false; nodes];
        let mut queue = Vec::from_iter((nodes > 0).then_some(0u32));
        while let Some(node) = queue.pop() {
            if std::mem::replace(&mut reached[node as usize], true) {
                continue;
            }
            let ports = first_link[node as usize] as usize..first_link[node as usize + 1] as usize;
            queue.extend(ends[ports].iter().map(|end| end.to).filter(|&to| !reached[to as usize]));
        }
        reached.iter().position(|reached| !reached).map_or(Ok(()), |node| {
            let (from, to) = (self.name(0).to_owned(), self.name(node as u32).to_owned());
            Err(FabricError::Disconnected { from, to })
        })
    }

    /// Hops from the nearest host of each switch, from 0.
    fn tiers_of_switches(&self, ends: &[End], first_link: &[u32]) -> Vec<u8> {
        let mut tiers = vec![u8::MAX; self.switches.len()];
        let edge = |end: &&End| self.is_host(end.from);
        let mut wave: Vec<u32> = ends.iter().filter(edge).map(|end| end.to).collect();
        for tier in 0..u8::MAX {
            wave.retain(|&node| {
                let slot = &mut tiers[node as usize - self.hosts.len()];
                let new = *slot == u8::MAX;
                *slot = (*slot).min(tier);
                new
            });
            let ports =
                |node: u32| first_link[node as usize] as usize..first_link[node as usize + 1] as usize;
            wave = wave.iter().flat_map(|&node| &ends[ports(node)]).map(|end| end.to).collect();
            wave.retain(|&node| !self.is_host(node) && tiers[node as usize - self.hosts.len()] == u8::MAX);
            if wave.is_empty() {
                break;
            }
        }
        tiers
    }

    fn link(&self, end: &End, tier_of_switch: &[u8], shared: &Shared) -> LinkSpec {
        let cable = &self.cables[end.cable as usize];
        let (from_host, to_host) = (self.is_host(end.from), self.is_host(end.to));
        let tier = match (from_host, to_host) {
            (true, _) => Tier::Host,
            (_, true) => Tier::Last,
            _ if tier_of_switch[end.from as usize - self.hosts.len()] == 0 => Tier::Leaf,
            _ => Tier::Spine,
        };
        let stack = if from_host || to_host { shared.stack_delay } else { Span::ZERO };
        let queues = if from_host { &shared.host_queue } else { &shared.switch_queue };
        let processing = if to_host { Span::ZERO } else { shared.switch_delay };
        LinkSpec {
            from: NodeId(end.from),
            to: NodeId(end.to),
            tier,
            condition: Condition {
                up: true,
                rate: cable.rate,
                delay: cable.delay + stack + processing,
                loss: 0.0,
                blackhole: 0.0,
            },
            queue: queues.queue,
            classes: queues.classes.clone(),
        }
    }

    fn assembled(
        &self,
        links: Vec<LinkSpec>,
        first_link: Vec<u32>,
        tier_of_switch: Vec<u8>,
        reverse: Vec<u32>,
        overhead_bytes: u16,
    ) -> Topology {
        let hosts = self.hosts.len();
        let is_edge = |switch: &u32| tier_of_switch[*switch as usize] == 0;
        let switch_of_rack: Vec<u32> = (0..self.switches.len() as u32).filter(is_edge).collect();
        let mut rack_of_switch = vec![0u16; self.switches.len()];
        for (rack, &switch) in switch_of_rack.iter().enumerate() {
            rack_of_switch[switch as usize] = rack as u16;
        }
        let rack_of_host =
            links[..hosts].iter().map(|link| rack_of_switch[link.to.0 as usize - hosts]).collect();
        Topology {
            hosts,
            switches: self.switches.len(),
            link_to_host: reverse[..hosts].to_vec(),
            links,
            first_link,
            rack_of_host,
            switch_of_rack,
            tier_of_switch,
            names: self.hosts.iter().chain(&self.switches).cloned().collect(),
            reverse,
            overhead_bytes,
            software: None,
            shared_buffer: None,
        }
    }
}

/// One end of a cable. Its order is the order of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    from: u32,
    /// Whether it leads to a switch.
    up: bool,
    cable: u32,
    to: u32,
}
