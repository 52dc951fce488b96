//! Breadth-first search from every rack, and the groups that follow.

use std::collections::BTreeMap;

use weft_packet::PortId;

use super::{LinkKnowledge, Routes};
use crate::Topology;

const BPS_PER_MBPS: u64 = 1_000_000;
const FAR: u32 = u32::MAX;

/// A link between switches, as the search sees it.
struct Edge {
    /// The switch at the far end.
    to: u32,
    port: u16,
    /// Mbit/s, at least 1.
    rate: u64,
    /// Whether all switches take it to be up.
    known: bool,
    /// Whether its own switch does.
    local: bool,
    /// Whether all switches take the opposite direction to be up.
    back_known: bool,
}

/// The links between switches, by the switch that they leave.
struct Graph {
    edges: Vec<Edge>,
    /// First edge of each switch, and one more.
    first: Vec<u32>,
}

impl Graph {
    fn new(topology: &Topology, known: &LinkKnowledge, local_up: &[bool]) -> Self {
        let mut graph = Self { edges: Vec::new(), first: vec![0] };
        for node in topology.hosts..topology.hosts + topology.switches {
            let first = topology.first_link[node];
            for link in first..topology.first_link[node + 1] {
                let spec = &topology.links[link as usize];
                let Some(to) = (spec.to.0 as usize).checked_sub(topology.hosts) else { continue };
                graph.edges.push(Edge {
                    to: to as u32,
                    port: (link - first) as u16,
                    rate: (known.rate[link as usize].as_bps() / BPS_PER_MBPS).max(1),
                    known: known.up[link as usize],
                    local: local_up[link as usize],
                    back_known: known.up[topology.reverse[link as usize] as usize],
                });
            }
            graph.first.push(graph.edges.len() as u32);
        }
        graph
    }

    fn switches(&self) -> usize {
        self.first.len() - 1
    }

    fn edges(&self, switch: u32) -> &[Edge] {
        &self.edges[self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize]
    }
}

/// What one search finds, kept from rack to rack to spare the allocations.
struct Search {
    /// Hops to the rack's edge switch, by what all know.
    distance: Vec<u32>,
    /// Mbit/s towards the rack, by what all know.
    capacity: Vec<u64>,
    /// Switches in order of distance.
    order: Vec<u32>,
}

impl Search {
    fn run(&mut self, graph: &Graph, target: u32) {
        self.distance.fill(FAR);
        self.order.clear();
        self.order.push(target);
        self.distance[target as usize] = 0;
        self.capacity[target as usize] = u64::MAX;
        let mut next = 0;
        while let Some(&switch) = self.order.get(next) {
            next += 1;
            let further = self.distance[switch as usize] + 1;
            // The search runs against the packets: it follows each link from its far end.
            for edge in graph.edges(switch).iter().filter(|edge| edge.back_known) {
                if self.distance[edge.to as usize] == FAR {
                    self.distance[edge.to as usize] = further;
                    self.order.push(edge.to);
                }
            }
            if switch != target {
                self.capacity[switch as usize] = self.capacity_of(graph, switch);
            }
        }
    }

    /// Nearer switches are done already.
    fn capacity_of(&self, graph: &Graph, switch: u32) -> u64 {
        let known = graph.edges(switch).iter().filter(|edge| edge.known && self.leads(switch, edge));
        known.map(|edge| self.behind(edge)).fold(0, u64::saturating_add)
    }

    /// Whether the far end is nearer to the rack.
    fn leads(&self, switch: u32, edge: &Edge) -> bool {
        let far_end = self.distance[edge.to as usize];
        far_end < FAR && far_end + 1 == self.distance[switch as usize]
    }

    /// Mbit/s towards the rack through this link.
    fn behind(&self, edge: &Edge) -> u64 {
        edge.rate.min(self.capacity[edge.to as usize])
    }
}

/// The distinct groups of one switch.
#[derive(Default)]
struct Groups {
    /// From members to number. A member is a port in the upper and its weight in the lower half.
    numbers: BTreeMap<Vec<u64>, u16>,
    /// The group that was asked for last: most racks share one.
    last: Option<(Vec<u64>, u16)>,
}

impl Groups {
    fn number(&mut self, members: &[u64]) -> u16 {
        if let Some((_, number)) = self.last.as_ref().filter(|(last, _)| last == members) {
            return *number;
        }
        // Numbers stay below 2^15 - 1: a switch has at most a group a rack, and a fabric at most 10,000 racks.
        let next = self.numbers.len() as u16;
        let number = *self.numbers.entry(members.to_vec()).or_insert(next);
        self.last = Some((members.to_vec(), number));
        number
    }
}

pub(super) fn compute(topology: &Topology, known: &LinkKnowledge, local_up: &[bool]) -> Routes {
    let graph = Graph::new(topology, known, local_up);
    let (switches, racks) = (graph.switches(), topology.racks());
    let mut search = Search {
        distance: vec![FAR; switches],
        capacity: vec![0; switches],
        order: Vec::with_capacity(switches),
    };
    let mut table = vec![Routes::NONE; switches * racks];
    let mut groups: Vec<Groups> = (0..switches).map(|_| Groups::default()).collect();
    let mut members: Vec<u64> = Vec::new();
    for (rack, &target) in topology.switch_of_rack.iter().enumerate() {
        search.run(&graph, target);
        for &switch in &search.order[1..] {
            members.clear();
            let usable = graph.edges(switch).iter().filter(|edge| edge.local && search.leads(switch, edge));
            members.extend(usable.map(|edge| {
                let weight = search.behind(edge).clamp(1, u64::from(u32::MAX));
                u64::from(edge.port) << 32 | weight
            }));
            table[switch as usize * racks + rack] = match members.as_slice() {
                [] => Routes::NONE,
                [single] => (single >> 32) as u16,
                several => Routes::GROUP + groups[switch as usize].number(several),
            };
        }
    }
    flattened(racks, table, groups)
}

/// Groups of all switches, one after the other.
fn flattened(racks: usize, table: Vec<u16>, by_switch: Vec<Groups>) -> Routes {
    let mut routes = Routes {
        racks,
        table,
        group_base: Vec::with_capacity(by_switch.len()),
        groups: Vec::new(),
        ports: Vec::new(),
        weights: Vec::new(),
    };
    for groups in by_switch {
        routes.group_base.push(routes.groups.len() as u32);
        let mut numbered: Vec<(u16, Vec<u64>)> = groups.numbers.into_iter().map(|(m, n)| (n, m)).collect();
        numbered.sort_unstable();
        for (_, members) in numbered {
            routes.groups.push((routes.ports.len() as u32, members.len() as u32));
            routes.ports.extend(members.iter().map(|member| PortId((member >> 32) as u16)));
            routes.weights.extend(members.iter().map(|member| *member as u32));
        }
    }
    routes
}
