//! How fast packets could be at best where failures change routes in mid-run: over any links that
//! ever work, in any order.
//!
//! While routes change, a packet may take a way that no table leads all along, and packets of one
//! flow may take ways of different lengths. So this bound knows no paths. It holds for every walk
//! from one edge switch to another:
//!
//! - a walk takes at least the least delay of any walk, and at least the least service of any walk;
//! - a link leads at most one hop further from the source, and at most one hop nearer to the
//!   destination. So for each distance every walk takes one of the links from that distance to the
//!   next: each such set of links is a cut, where packets wait for each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use weft_units::{Bytes, Rate};

use super::{Hop, Train};
use crate::{LinkSpec, Topology};

const FAR: u32 = u32::MAX;
const NO_LINK: u32 = u32::MAX;

/// The least times between edge switches over any links that work.
#[derive(Debug, Clone, Default)]
pub(super) struct Rerouted {
    /// By rack, once it was asked for.
    from: BTreeMap<u16, Source>,
    to: BTreeMap<u16, Layers>,
}

/// Results of the search from one rack.
#[derive(Debug, Clone)]
struct Source {
    layers: Layers,
    /// By switch, the last link of the walk with the least delay that leads there, and of that with
    /// the least service; [`NO_LINK`] if there is none.
    by_delay: Vec<u32>,
    by_service: Vec<u32>,
}

/// Links between switches, sorted by how far they are from a switch.
#[derive(Debug, Clone)]
struct Layers {
    /// By switch, hops.
    distance: Vec<u32>,
    /// The cut from each distance to the next: how many links, and the rate of the fastest.
    cuts: Vec<(u64, Rate)>,
}

/// The links between switches that work.
struct Graph<'a> {
    topology: &'a Topology,
}

impl<'a> Graph<'a> {
    /// The ports of a switch: each link with the switch at its far end.
    fn links(&self, switch: u32) -> impl Iterator<Item = (u32, u32, &'a LinkSpec)> + use<'a> {
        let Topology { hosts, first_link, links, .. } = self.topology;
        let (hosts, node) = (*hosts, *hosts + switch as usize);
        (first_link[node]..first_link[node + 1]).filter_map(move |number| {
            let link = &links[number as usize];
            let far_end = (link.to.0 as usize).checked_sub(hosts).filter(|_| link.condition.up)?;
            Some((number, far_end as u32, link))
        })
    }

    /// The links that lead to a switch: each with the switch that it comes from.
    fn links_to(&self, switch: u32) -> impl Iterator<Item = (u32, u32, &'a LinkSpec)> + use<'a> {
        let Topology { hosts, first_link, links, reverse, .. } = self.topology;
        let (hosts, node) = (*hosts, *hosts + switch as usize);
        (first_link[node]..first_link[node + 1]).filter_map(move |number| {
            let number = reverse[number as usize];
            let link = &links[number as usize];
            let near_end = (link.from.0 as usize).checked_sub(hosts).filter(|_| link.condition.up)?;
            Some((number, near_end as u32, link))
        })
    }

    /// How far switches are from this one, or it from them if packets go `towards` it, and the cuts
    /// on the way.
    fn layers(&self, switch: u32, towards: bool) -> Layers {
        let mut distance = vec![FAR; self.topology.switches];
        let mut order = vec![switch];
        distance[switch as usize] = 0;
        let (mut next, mut cuts) = (0, Vec::<(u64, Rate)>::new());
        while let Some(&near) = order.get(next) {
            next += 1;
            let own = distance[near as usize];
            let mut visit = |(_, far, link): (u32, u32, &LinkSpec)| {
                if distance[far as usize] == FAR {
                    distance[far as usize] = own + 1;
                    order.push(far);
                }
                if distance[far as usize] == own + 1 {
                    cuts.resize(cuts.len().max(own as usize + 1), (0, Rate::default()));
                    let (count, fastest) = &mut cuts[own as usize];
                    (*count, *fastest) = (*count + 1, link.condition.rate.max(*fastest));
                }
            };
            if towards {
                self.links_to(near).for_each(&mut visit);
            } else {
                self.links(near).for_each(&mut visit);
            }
        }
        Layers { distance, cuts }
    }

    /// The walks from a switch that are shortest by the first of two costs, and then by the second:
    /// the last link to each switch.
    fn shortest(&self, from: u32, cost: impl Fn(&LinkSpec) -> (u64, u64)) -> Vec<u32> {
        let mut best = vec![(u64::MAX, u64::MAX); self.topology.switches];
        let mut last = vec![NO_LINK; self.topology.switches];
        best[from as usize] = (0, 0);
        let mut heap = BinaryHeap::from([Reverse(((0, 0), from))]);
        while let Some(Reverse((so_far, switch))) = heap.pop() {
            if best[switch as usize] < so_far {
                continue;
            }
            for (number, far, link) in self.links(switch) {
                let (first, second) = cost(link);
                let there = (so_far.0.saturating_add(first), so_far.1.saturating_add(second));
                if there < best[far as usize] {
                    (best[far as usize], last[far as usize]) = (there, number);
                    heap.push(Reverse((there, far)));
                }
            }
        }
        last
    }

    /// The links of the walk to a switch, the last one first, given the last link to each.
    fn walk(&self, last: &[u32], to: u32) -> impl Iterator<Item = u32> {
        let before = |link: u32| self.topology.links[link as usize].from.0 as usize - self.topology.hosts;
        let known = |link: u32| (link != NO_LINK).then_some(link);
        std::iter::successors(known(last[to as usize]), move |&link| known(last[before(link)]))
    }

    fn source(&self, switch: u32) -> Source {
        /// Longer than any packet: the walk that is shortest for it is so for all but a picosecond
        /// a hop.
        const LONG: Bytes = Bytes::new(1 << 20);
        let costs = |link: &LinkSpec| {
            let Hop { rate, delay } = Hop::of(link);
            (delay.as_ps(), rate.service(LONG).as_ps())
        };
        let service_first = |link: &LinkSpec| {
            let (delay, service) = costs(link);
            (service, delay)
        };
        Source {
            layers: self.layers(switch, false),
            by_delay: self.shortest(switch, costs),
            by_service: self.shortest(switch, service_first),
        }
    }
}

impl Rerouted {
    /// Packets cross all that lies between the edge switches of two racks. The destination is
    /// reached by some walk.
    pub(super) fn cross(&mut self, topology: &Topology, src_rack: u16, dst_rack: u16, train: &mut Train) {
        let graph = Graph { topology };
        let [start, end] = [src_rack, dst_rack].map(|rack| topology.switch_of_rack[usize::from(rack)]);
        let source = self.from.entry(src_rack).or_insert_with(|| graph.source(start));
        let target = self.to.entry(dst_rack).or_insert_with(|| graph.layers(end, true));
        let hops = source.layers.distance[end as usize] as usize;
        for &(links, fastest) in source.layers.cuts.iter().take(hops).chain(target.cuts.iter().take(hops)) {
            train.spread(links, fastest);
        }
        let walk = |last: &[u32]| -> Vec<u32> { graph.walk(last, end).collect() };
        let (by_delay, by_service) = (walk(&source.by_delay), walk(&source.by_service));
        let hop = |&link: &u32| Hop::of(&topology.links[link as usize]);
        let delay = by_delay.iter().map(|link| hop(link).delay.as_ps()).fold(0, u64::saturating_add);
        // Two walks with the same sum for a long packet may round differently for a shorter one.
        let rounding = if by_delay == by_service { 0 } else { by_service.len() as u64 };
        let service = |bytes: u64| {
            let all = by_service.iter().map(|link| hop(link).service(bytes)).fold(0, u64::saturating_add);
            all.saturating_sub(rounding).saturating_add(delay)
        };
        train.first_full = train.first_full.saturating_add(service(train.full_bytes));
        train.last = train.last.saturating_add(service(train.last_bytes));
    }
}
