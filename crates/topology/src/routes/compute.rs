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
    /// Mbit/s of the cables that lead to the same switch, of those that this switch takes to be up.
    bundle_rate: u64,
    /// Mbit/s of the cables that lead to the same switch, of those that all switches take to be up:
    /// at the first cable of the bundle, and 0 at the others.
    known_bundle_rate: u64,
    /// Whether its own switch takes it to be up.
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
        // By the switch at the far end: Mbit/s of its cables, of those locally up and of those
        // known to be.
        let mut bundles: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for node in topology.hosts..topology.hosts + topology.switches {
            let first = topology.first_link[node];
            for link in first..topology.first_link[node + 1] {
                let spec = &topology.links[link as usize];
                let Some(to) = (spec.to.0 as usize).checked_sub(topology.hosts) else { continue };
                let rate = (known.rate[link as usize].as_bps() / BPS_PER_MBPS).max(1);
                let (local, of_all) = bundles.entry(to as u32).or_default();
                *local += if local_up[link as usize] { rate } else { 0 };
                *of_all += if known.up[link as usize] { rate } else { 0 };
                graph.edges.push(Edge {
                    to: to as u32,
                    port: (link - first) as u16,
                    rate,
                    bundle_rate: 0,
                    known_bundle_rate: 0,
                    local: local_up[link as usize],
                    back_known: known.up[topology.reverse[link as usize] as usize],
                });
            }
            let begin = graph.first[graph.first.len() - 1] as usize;
            for edge in &mut graph.edges[begin..] {
                let (local, of_all) = bundles.entry(edge.to).or_default();
                (edge.bundle_rate, edge.known_bundle_rate) = (*local, std::mem::take(of_all));
            }
            bundles.clear();
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

/// State of one search, reused for every rack to spare the allocations.
struct Search {
    /// Hops to the rack's edge switch, by what all know.
    distance: Vec<u32>,
    /// Mbit/s towards the rack, by what all know.
    capacity: Vec<u64>,
    /// Switches in order of distance.
    order: Vec<u32>,
    /// Where a switch sends packets for the rack: the port in the upper half, and its weight in the
    /// lower half.
    members: Vec<u64>,
}

impl Search {
    /// Finds the ways of all switches that have any, and tells `found` the members of each, nearer
    /// switches first.
    ///
    /// When it is a switch's turn all that are nearer are done, so one walk over its links finds
    /// who comes next, where packets go, and what comes through.
    fn run(&mut self, graph: &Graph, target: u32, mut found: impl FnMut(u32, &[u64])) {
        self.distance.fill(FAR);
        self.order.clear();
        self.order.push(target);
        self.distance[target as usize] = 0;
        self.capacity[target as usize] = u64::MAX;
        let mut next = 0;
        while let Some(&switch) = self.order.get(next) {
            next += 1;
            let own = self.distance[switch as usize];
            let nearer = own.checked_sub(1);
            let mut through = 0u64;
            self.members.clear();
            for edge in graph.edges(switch) {
                let far_end = &mut self.distance[edge.to as usize];
                // The search runs against the packets: it follows each link from its far end.
                if *far_end == FAR && edge.back_known {
                    *far_end = own + 1;
                    self.order.push(edge.to);
                } else if Some(*far_end) == nearer {
                    let behind = self.capacity[edge.to as usize];
                    through = through.saturating_add(edge.known_bundle_rate.min(behind));
                    if edge.local {
                        // Parallel cables share what their far end can pass on, by their rates.
                        let share = if edge.bundle_rate > behind {
                            let shared = u128::from(edge.rate) * u128::from(behind);
                            (shared / u128::from(edge.bundle_rate)) as u64
                        } else {
                            edge.rate
                        };
                        let weight = share.clamp(1, u64::from(u32::MAX));
                        self.members.push(u64::from(edge.port) << 32 | weight);
                    }
                }
            }
            if switch != target {
                self.capacity[switch as usize] = through;
                found(switch, &self.members);
            }
        }
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
        // Numbers stay below 2^15 - 1: a switch has at most a group a rack, and a fabric at most
        // 10,000 racks.
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
        members: Vec::new(),
    };
    let mut table = vec![Routes::NONE; switches * racks];
    let mut groups: Vec<Groups> = (0..switches).map(|_| Groups::default()).collect();
    for (rack, &target) in topology.switch_of_rack.iter().enumerate() {
        search.run(&graph, target, |switch, members| {
            table[switch as usize * racks + rack] = match members {
                [] => Routes::NONE,
                [single] => (single >> 32) as u16,
                several => Routes::GROUP + groups[switch as usize].number(several),
            };
        });
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
