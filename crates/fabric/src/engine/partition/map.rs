//! The partition map: the numbers of links, switches and hosts inside a partition.
//!
//! A network that is the whole fabric calls everything as the fabric does. A partition numbers its
//! own links and switches from 0, in the order of the fabric's numbers, so that the order of events
//! is the same.

use std::ops::Range;

use weft_packet::{HostId, PortId};
use weft_topology::{LinkSpec, PartitionNodes, Routes, Topology};

use super::numbers::Numbers;
use crate::engine::link::FarEnd;
use crate::engine::switch::racks_of_switches;

/// The ports of a top-tier switch that was split that lead to one partition.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// The switch, as the fabric numbers it.
    switch: u32,
    /// The first of the ports, and how many they are.
    first_port: u16,
    count: u16,
    /// The first of them as a link here.
    first_link: u32,
}

/// The ports at the two ends of a link.
#[derive(Debug, Clone, Copy)]
struct Ends {
    /// The switch that sends on it, as a switch here; [`Ends::NO_SWITCH`] for a host, and for a
    /// top-tier switch that was split.
    from: u32,
    /// The port by which it leaves its near end, and the one by which it enters its far end.
    leaves_by: PortId,
    enters_by: PortId,
}

impl Ends {
    const NO_SWITCH: u32 = u32::MAX;

    fn of(fabric: &Topology, number: u32, here: impl Fn(u32) -> Option<u32>) -> Self {
        let from = fabric.links[number as usize].from.0;
        let switch = from.checked_sub(fabric.hosts as u32).and_then(here);
        Self {
            from: switch.unwrap_or(Self::NO_SWITCH),
            leaves_by: PortId((number - fabric.first_link[from as usize]) as u16),
            enters_by: entry_port(fabric, number),
        }
    }
}

/// The port by which a packet on this link of a fabric enters the node at the far end.
pub fn entry_port(fabric: &Topology, number: u32) -> PortId {
    let far = fabric.links[number as usize].to.0 as usize;
    PortId((fabric.reverse[number as usize] - fabric.first_link[far]) as u16)
}

/// A partition of a fabric, or all of it.
pub struct PartitionMap<'a> {
    /// The fabric.
    pub fabric: &'a Topology,
    hosts: Range<u32>,
    /// The fabric's numbers, by those here.
    links: Vec<u32>,
    switches: Vec<u32>,
    /// The first port of each switch, as a link here. Ports of a switch are neighbours.
    first_ports: Vec<u32>,
    /// By host from the first one on: the link to it.
    last_hops: Vec<u32>,
    /// Top-tier switches that were split: they are numbered behind the others.
    split: Vec<Split>,
    rack_of_switch: Vec<u16>,
    /// By link; those by which packets come from elsewhere are behind the others.
    ends: Vec<Ends>,
}

impl<'a> PartitionMap<'a> {
    /// All of a fabric.
    pub fn whole(fabric: &'a Topology) -> Self {
        Self {
            fabric,
            hosts: 0..fabric.hosts as u32,
            links: (0..fabric.links.len() as u32).collect(),
            switches: (0..fabric.switches as u32).collect(),
            first_ports: fabric.first_link[fabric.hosts..].to_vec(),
            last_hops: fabric.link_to_host.clone(),
            split: Vec::new(),
            rack_of_switch: racks_of_switches(fabric),
            ends: (0..fabric.links.len() as u32).map(|link| Ends::of(fabric, link, Some)).collect(),
        }
    }

    /// The number of a switch that is here among the nodes of the fabric.
    pub fn node_of(&self, switch: u32) -> u32 {
        self.fabric.hosts as u32 + self.switches[switch as usize]
    }

    /// A partition of a fabric. `split` are the top-tier switches that were split.
    pub fn of_partition(fabric: &'a Topology, partition: &PartitionNodes, split: Range<u32>) -> Self {
        let here = |link: u32| partition.links.partition_point(|&other| other < link) as u32;
        let ports = |switch: u32| {
            let node = fabric.hosts + switch as usize;
            fabric.first_link[node]..fabric.first_link[node + 1]
        };
        let split = split.map(|switch| {
            let Range { start, end } = ports(switch);
            let (first_link, behind) = (here(start), here(end));
            // Its ports that lead here are neighbours.
            let first_port =
                partition.links.get(first_link as usize).map_or(0, |&link| link.saturating_sub(start));
            Split { switch, first_port: first_port as u16, count: (behind - first_link) as u16, first_link }
        });
        let hosts = partition.hosts.start as usize..partition.hosts.end as usize;
        let of_switch = racks_of_switches(fabric);
        let switch_here =
            |switch: u32| partition.switches.binary_search(&switch).ok().map(|place| place as u32);
        debug_assert!(
            fabric.link_to_host[hosts.clone()].iter().all(|link| partition.links.binary_search(link).is_ok()),
            "a host is in the partition of its switch"
        );
        Self {
            ends: partition.links.iter().map(|&link| Ends::of(fabric, link, switch_here)).collect(),
            fabric,
            hosts: partition.hosts.clone(),
            first_ports: partition.switches.iter().map(|&switch| here(ports(switch).start)).collect(),
            last_hops: fabric.link_to_host[hosts].iter().map(|&link| here(link)).collect(),
            split: split.collect(),
            rack_of_switch: partition.switches.iter().map(|&switch| of_switch[switch as usize]).collect(),
            links: partition.links.clone(),
            switches: partition.switches.clone(),
        }
    }

    /// The tables of its switches, those that were split behind the others.
    pub fn rows(&self, all: &Routes) -> Routes {
        let mut rows = all.rows(&self.switches);
        for split in &self.split {
            rows.push_some_ports(all, split.switch, split.first_port, split.count);
        }
        rows
    }

    /// Whether it is the whole fabric.
    pub fn is_whole(&self) -> bool {
        self.links.len() == self.fabric.links.len()
    }

    /// How many links it has.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// The fabric's numbers of its links.
    pub fn numbers(&self) -> Numbers {
        if self.is_whole() {
            Numbers::default()
        } else {
            Numbers::of_partition(&self.links, self.fabric.links.len())
        }
    }

    /// Packets that are sent in another partition, or sent through the exchange in this one, may
    /// come by the link with this number of the fabric: it has one more number here, the next.
    pub fn add_entry(&mut self, number: u32) {
        let ends = Ends::of(self.fabric, number, |_| None);
        self.ends.push(ends);
    }

    /// The links of other partitions by which packets may come here, as the fabric numbers them,
    /// and where each leads.
    pub fn entries(&self) -> impl Iterator<Item = (u32, FarEnd)> + use<'a, '_> {
        let all = (0..self.fabric.links.len() as u32).filter(|&number| self.link(number).is_none());
        all.filter_map(|number| {
            let to = self.fabric.links[number as usize].to.0.checked_sub(self.fabric.hosts as u32)?;
            Some((number, self.far_end(to)?))
        })
    }

    /// The fabric's number of a link.
    pub fn number(&self, link: u32) -> u32 {
        self.links[link as usize]
    }

    /// The number here of a link of the fabric, if it is one of this partition.
    pub fn link(&self, number: u32) -> Option<u32> {
        self.links.binary_search(&number).ok().map(|link| link as u32)
    }

    /// Spec of a link.
    pub fn spec(&self, link: u32) -> &'a LinkSpec {
        &self.fabric.links[self.links[link as usize] as usize]
    }

    /// Specs of all links, in their order.
    pub fn specs(&self) -> impl Iterator<Item = &'a LinkSpec> + use<'a, '_> {
        self.links.iter().map(|&number| &self.fabric.links[number as usize])
    }

    /// The fabric's numbers of its switches, in their order.
    pub fn switches(&self) -> &[u32] {
        &self.switches
    }

    /// The fabric's number of a switch that is here, or some of whose ports are.
    pub fn switch_number(&self, switch: u32) -> u32 {
        let here = switch as usize;
        self.switches.get(here).copied().unwrap_or_else(|| self.split[here - self.switches.len()].switch)
    }

    /// The links of a switch's ports.
    #[inline]
    pub fn ports(&self, switch: usize) -> Range<usize> {
        let node = self.fabric.hosts + self.switches[switch] as usize;
        let count = (self.fabric.first_link[node + 1] - self.fabric.first_link[node]) as usize;
        let first = self.first_ports[switch] as usize;
        first..first + count
    }

    /// The first of a host's own links, which is its cable.
    #[inline]
    pub fn cable(&self, host: HostId) -> u32 {
        u32::from(host.0) - self.hosts.start
    }

    /// The link to a host of this partition.
    #[inline]
    pub fn last_hop(&self, host: HostId) -> u32 {
        self.last_hops[(u32::from(host.0) - self.hosts.start) as usize]
    }

    /// Hosts of the partition, as the fabric numbers them.
    pub fn hosts(&self) -> Range<u32> {
        self.hosts.clone()
    }

    /// Where a link leads. What is in another partition is of no meaning here: what goes there goes
    /// through the exchange.
    pub fn leads_to(&self, link: u32) -> FarEnd {
        let to = self.spec(link).to.0.checked_sub(self.fabric.hosts as u32);
        to.and_then(|switch| self.far_end(switch)).unwrap_or(FarEnd::AT_HOST)
    }

    /// Facts on a switch of the fabric that an arriving packet needs, if that is here: all of it,
    /// or some ports.
    #[inline]
    pub fn far_end(&self, switch: u32) -> Option<FarEnd> {
        if let Some(split) = self.split.first().filter(|first| first.switch <= switch) {
            let place = (switch - split.switch) as usize;
            let first_link = self.split[place].first_link;
            return Some(FarEnd { switch: (self.switches.len() + place) as u32, first_link, rack: u16::MAX });
        }
        let here = self.switches.binary_search(&switch).ok()?;
        let (first_link, rack) = (self.first_ports[here], self.rack_of_switch[here]);
        Some(FarEnd { switch: here as u32, first_link, rack })
    }

    /// Whether packets that a link carries may leave this partition by it.
    pub fn may_leave(&self, link: u32) -> bool {
        let Some(to) = self.spec(link).to.0.checked_sub(self.fabric.hosts as u32) else { return false };
        self.split.first().is_some_and(|first| first.switch <= to)
            || self.switches.binary_search(&to).is_err()
    }

    /// The switch that sends on a link, and its port's number; none for a host's cable.
    #[inline]
    pub fn port_of(&self, link: u32) -> Option<(usize, PortId)> {
        let ends = &self.ends[link as usize];
        (ends.from != Ends::NO_SWITCH).then_some((ends.from as usize, ends.leaves_by))
    }

    /// The port by which a packet on a link enters the switch, or the host, at the far end.
    #[inline]
    pub fn enters_by(&self, link: u32) -> PortId {
        self.ends[link as usize].enters_by
    }
}
