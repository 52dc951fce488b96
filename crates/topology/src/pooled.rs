//! A fabric whose racks share one queue: for what no load balancer can win between them.
//!
//! In place of all switches above the racks stands one, and in place of each rack's uplinks one
//! link up and one link down, with the rates of the cables together. A byte that waits for an
//! uplink of its rack while another one is idle does not exist there. What is kept: hosts, racks,
//! their cables, and the delay of the shortest cable of each rack.
//!
//! Limits and thresholds are those of the cables' queues together, so that they take as long to
//! fill and to drain as one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_units::{Rate, Time};

use crate::plan::RATES;
use crate::{
    ClassSpec, ClassesSpec, Condition, FaultEvent, Limit, LinkSpec, Marking, NodeId, QueueSpec, Threshold,
    Tier, Topology,
};

/// The name of the switch in the middle.
pub const POOL: &str = "pool";

/// A fabric that cannot be pooled so that it bounds the real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPooled {
    /// Two racks have a cable between them: one hop, where the pooled fabric has two.
    #[error("cables lead from rack to rack: a pooled fabric would be slower there")]
    Neighbours,
    /// Uplinks that are faster together than the engine can compute with.
    #[error("the uplinks of a rack are faster together than {}", RATES.end())]
    TooFast,
    /// There is no other rack.
    #[error("there is one rack: nothing to pool")]
    OneRack,
    /// Switches whose ports share memory: how much of it a pooled port would have is not defined.
    #[error("the ports of a switch share its memory")]
    Memory,
}

/// The pooled fabric of `topology`, and how it changes with these faults.
///
/// # Errors
/// A fabric for which the pooled one is no bound.
pub fn pooled(topology: &Topology, faults: &[FaultEvent]) -> Result<(Topology, Vec<FaultEvent>), NotPooled> {
    if topology.racks() < 2 {
        return Err(NotPooled::OneRack);
    }
    if topology.shared_buffer.is_some() {
        return Err(NotPooled::Memory);
    }
    let edge = |node: NodeId| {
        let switch = (node.0 as usize).checked_sub(topology.hosts);
        switch.is_some_and(|switch| topology.tier_of_switch[switch] == 0)
    };
    if topology.links.iter().any(|link| edge(link.from) && edge(link.to)) {
        return Err(NotPooled::Neighbours);
    }
    let pools = Pools::of(topology);
    let built = pools.topology(topology);
    if built.links.iter().any(|link| link.condition.rate > *RATES.end()) {
        return Err(NotPooled::TooFast);
    }
    let faults = pools.faults(topology, faults, &built);
    Ok((built, faults))
}

/// The links of the fabric that become one, by rack: those up, and those down.
struct Pools {
    up: Vec<Vec<u32>>,
    down: Vec<Vec<u32>>,
}

impl Pools {
    fn of(topology: &Topology) -> Self {
        let uplinks = |&switch: &u32| -> Vec<u32> {
            let node = topology.hosts + switch as usize;
            let ports = topology.first_link[node]..topology.first_link[node + 1];
            ports.filter(|&link| topology.links[link as usize].tier == Tier::Leaf).collect()
        };
        let up: Vec<Vec<u32>> = topology.switch_of_rack.iter().map(uplinks).collect();
        let back = |links: &Vec<u32>| links.iter().map(|&link| topology.reverse[link as usize]).collect();
        Self { down: up.iter().map(back).collect(), up }
    }

    /// Hosts, then racks, then the pool: the ports of a rack are those to its hosts, then the one
    /// up.
    fn topology(&self, topology: &Topology) -> Topology {
        let (hosts, racks) = (topology.hosts, topology.racks());
        let pool = (hosts + racks) as u32;
        let rack_of_switch = |node: NodeId| {
            let switch = node.0 - hosts as u32;
            let rack = topology.switch_of_rack.iter().position(|&other| other == switch);
            hosts as u32 + rack.unwrap_or_default() as u32
        };
        let mut links: Vec<LinkSpec> = Vec::new();
        for link in &topology.links[..hosts] {
            links.push(LinkSpec { to: NodeId(rack_of_switch(link.to)), ..link.clone() });
        }
        for (rack, &switch) in topology.switch_of_rack.iter().enumerate() {
            let (node, own) = (hosts + switch as usize, NodeId((hosts + rack) as u32));
            let ports = topology.first_link[node] as usize..topology.first_link[node + 1] as usize;
            let to_hosts = topology.links[ports].iter().filter(|link| link.tier == Tier::Last);
            links.extend(to_hosts.map(|link| LinkSpec { from: own, ..link.clone() }));
            links.push(together(topology, &self.up[rack], own, NodeId(pool)));
        }
        for (rack, down) in self.down.iter().enumerate() {
            links.push(together(topology, down, NodeId(pool), NodeId((hosts + rack) as u32)));
        }
        let mut first_link = vec![0u32; hosts + racks + 2];
        for link in &links {
            first_link[link.from.0 as usize + 1] += 1;
        }
        for node in 1..first_link.len() {
            first_link[node] += first_link[node - 1];
        }
        // Between two nodes there is one cable.
        let ends: BTreeMap<(u32, u32), u32> =
            (0u32..).zip(&links).map(|(number, link)| ((link.from.0, link.to.0), number)).collect();
        let reverse: Vec<u32> = links.iter().map(|link| ends[&(link.to.0, link.from.0)]).collect();
        let rack_names = topology.switch_of_rack.iter().map(|&switch| hosts + switch as usize);
        let names = (0..hosts).chain(rack_names).map(|node| topology.names[node].clone());
        Topology {
            hosts,
            switches: racks + 1,
            link_to_host: reverse[..hosts].to_vec(),
            links,
            first_link,
            rack_of_host: topology.rack_of_host.clone(),
            switch_of_rack: (0..racks as u32).collect(),
            tier_of_switch: (0..racks).map(|_| 0).chain([1]).collect(),
            names: names.chain([POOL.to_owned()]).collect(),
            reverse,
            overhead_bytes: topology.overhead_bytes,
            // A bound is none the less one where a program that forwards takes no time.
            software: None,
            shared_buffer: None,
        }
    }

    /// Faults of pooled links when their cables change: one event for all that happens to a link at
    /// one time.
    fn faults(&self, topology: &Topology, faults: &[FaultEvent], built: &Topology) -> Vec<FaultEvent> {
        let hosts = topology.hosts;
        // Links to and from hosts, by their number in the fabric; and pooled ones by those of their
        // cables.
        let mut number_of: BTreeMap<u32, u32> = BTreeMap::new();
        let mut cables_of: BTreeMap<u32, &[u32]> = BTreeMap::new();
        for host in 0..hosts as u32 {
            number_of.insert(host, host);
            number_of.insert(topology.link_to_host[host as usize], built.link_to_host[host as usize]);
        }
        for rack in 0..topology.racks() {
            let up = built.first_link[hosts + rack + 1] - 1;
            let down = built.reverse[up as usize];
            for (number, cables) in [(up, &self.up[rack]), (down, &self.down[rack])] {
                number_of.extend(cables.iter().map(|&cable| (cable, number)));
                cables_of.insert(number, cables);
            }
        }
        let mut now: Vec<Condition> = topology.links.iter().map(|link| link.condition).collect();
        let mut changed: BTreeMap<(Time, u32), FaultEvent> = BTreeMap::new();
        for fault in faults {
            now[fault.link as usize] = fault.condition;
            // Cables between switches above the racks are in no pooled link.
            let Some(&link) = number_of.get(&fault.link) else { continue };
            let condition = cables_of
                .get(&link)
                .map_or(fault.condition, |cables| best(cables.iter().map(|&cable| now[cable as usize])));
            changed.insert((fault.at, link), FaultEvent { link, condition, ..*fault });
        }
        changed.into_values().collect()
    }
}

/// The condition of several cables as one: all rates that work, and of the rest what the best one
/// has.
fn best(cables: impl Iterator<Item = Condition> + Clone) -> Condition {
    let working = cables.clone().filter(|cable| cable.up);
    // Of a link that is down only its rate is looked at, which is not zero.
    let is_up = working.clone().next().is_some();
    let used: Vec<Condition> = if is_up { working.collect() } else { cables.collect() };
    let least = |of: fn(&Condition) -> f64| used.iter().map(of).fold(1.0, f64::min);
    let bps = used.iter().map(|cable| cable.rate.as_bps()).fold(0, u64::saturating_add);
    Condition {
        up: is_up,
        rate: Rate::from_bps(bps.max(1)),
        delay: used.iter().map(|cable| cable.delay).min().unwrap_or_default(),
        loss: least(|cable| cable.loss),
        blackhole: least(|cable| cable.blackhole),
    }
}

/// These links as one.
fn together(topology: &Topology, links: &[u32], from: NodeId, to: NodeId) -> LinkSpec {
    let specs: Vec<&LinkSpec> = links.iter().map(|&link| &topology.links[link as usize]).collect();
    let first = specs[0];
    let classes = first.classes.as_ref().map(|own| {
        let class = |(place, class): (usize, &ClassSpec)| {
            let all = specs
                .iter()
                .map(|spec| spec.classes.as_ref().map_or(spec.queue, |own| own.classes[place].queue));
            ClassSpec { queue: queues(&all.collect::<Vec<_>>()), ..*class }
        };
        Arc::new(ClassesSpec {
            classes: own.classes.iter().enumerate().map(class).collect(),
            ..(**own).clone()
        })
    });
    LinkSpec {
        from,
        to,
        tier: first.tier,
        condition: best(specs.iter().map(|spec| spec.condition)),
        queue: queues(&specs.iter().map(|spec| spec.queue).collect::<Vec<_>>()),
        classes,
    }
}

/// These queues as one. They count in one way: all are of one kind of port.
fn queues(all: &[QueueSpec]) -> QueueSpec {
    let sum = |of: &dyn Fn(&QueueSpec) -> Option<Threshold>| {
        all.iter().map(of).reduce(|a, b| match (a?, b?) {
            (Threshold::Bytes(a), Threshold::Bytes(b)) => Some(Threshold::Bytes(a.saturating_add(b))),
            (Threshold::Packets(a), Threshold::Packets(b)) => Some(Threshold::Packets(a.saturating_add(b))),
            _ => None,
        })
    };
    let limit = sum(&|queue| match queue.limit {
        Limit::AtMost(limit) => Some(limit),
        Limit::Unlimited => None,
    });
    let mark = sum(&|queue| match queue.marking {
        Marking::Step(mark) => Some(mark),
        _ => None,
    });
    let marking = match (all[0].marking, mark.flatten()) {
        (Marking::Red { min, max, probability }, _) => {
            let count = all.len() as u64;
            Marking::Red { min: min.saturating_mul(count), max: max.saturating_mul(count), probability }
        }
        (Marking::Leaving { min, max, probability }, _) => {
            let count = all.len() as u64;
            Marking::Leaving { min: min.saturating_mul(count), max: max.saturating_mul(count), probability }
        }
        (_, Some(mark)) => Marking::Step(mark),
        _ => Marking::Never,
    };
    QueueSpec { limit: limit.flatten().map_or(Limit::Unlimited, Limit::AtMost), marking }
}
