//! Which fault a lost packet is charged to: by where it was lost, why, and when. Each packet is
//! charged once or to nobody, so what faults cost adds up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weft_fabric::{Drop, DropCause, DropSite, Hit};
use weft_topology::{FaultSpan, Routes, Topology};
use weft_units::Time;

/// A fault, by its place in the spec, and the one of its links because of which the packet is no
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    pub fault: u32,
    pub link: u32,
}

/// Charges losses to the faults of a run.
pub struct Blame<'a> {
    topology: &'a Topology,
    spans: &'a [FaultSpan],
    divided_at: &'a [Time],
    /// The tables without any link down, where a packet had no way.
    healthy: Option<Routes>,
    /// By switch and rack: the links of all healthy ways from there, the nearest first.
    ways: BTreeMap<(u32, u16), Vec<u32>>,
}

/// Whether a link of the fault is down.
pub const fn cuts(span: &FaultSpan) -> bool {
    matches!(span.down, Some(true))
}

/// Whether a fault takes packets itself: they find its links down, or the wire loses or swallows
/// them.
pub fn takes_packets(span: &FaultSpan) -> bool {
    cuts(span) || loses(span) || swallows(span)
}

fn loses(span: &FaultSpan) -> bool {
    span.loss.is_some_and(|share| share > 0.0)
}

fn swallows(span: &FaultSpan) -> bool {
    span.blackhole.is_some_and(|share| share > 0.0)
}

fn is_in_force(span: &FaultSpan, at: Time) -> bool {
    span.from <= at && span.until.is_none_or(|until| at < until)
}

impl<'a> Blame<'a> {
    /// For a run with these faults, which these instants divide.
    pub const fn new(topology: &'a Topology, spans: &'a [FaultSpan], divided_at: &'a [Time]) -> Self {
        Self { topology, spans, divided_at, healthy: None, ways: BTreeMap::new() }
    }

    /// When a phase begins.
    pub fn begin_of(&self, phase: u32) -> Time {
        (phase as usize).checked_sub(1).map_or(Time::ZERO, |before| self.divided_at[before])
    }

    /// The fault that packets are charged to that were lost so; none if no fault is to blame.
    pub fn of_loss(&mut self, loss: &Drop) -> Option<Charge> {
        let at = self.begin_of(loss.phase);
        match (loss.place, loss.cause) {
            (DropSite::Node(node), DropCause::NoRoute) => self.of_missing_way(node, loss.towards?, at),
            (DropSite::Node(_), _) => None,
            (DropSite::Link(link), DropCause::Down) => self.of_link(link, at, cuts),
            (DropSite::Link(link), DropCause::Loss) => self.of_link(link, at, loses),
            (DropSite::Link(link), DropCause::Blackhole) => self.of_link(link, at, swallows),
            // A queue is full for many reasons: of the faults of its link a slow one is to blame,
            // or else any.
            (DropSite::Link(link), _) => {
                let slows = |span: &FaultSpan| span.rate.is_some() || span.delay.is_some();
                self.in_force_at(link, at, slows).or_else(|| self.in_force_at(link, at, |_| true))
            }
        }
    }

    /// The fault that a flow met there.
    pub fn of_hit(&mut self, hit: &Hit) -> Option<Charge> {
        let at = self.begin_of(hit.phase);
        match hit.place {
            DropSite::Node(node) => self.of_missing_way(node, hit.towards?, at),
            DropSite::Link(link) => self.of_link(link, at, takes_packets),
        }
    }

    /// The last fault of the spec that hits the link, is in force and does this: it is the one that
    /// applies. What is lost at the very end of a fault is charged to the one that ended last.
    fn of_link(&self, link: u32, at: Time, does: fn(&FaultSpan) -> bool) -> Option<Charge> {
        self.in_force_at(link, at, does).or_else(|| {
            let mine = self.numbered().filter(|(_, span)| does(span) && span.links.contains(&link));
            let over = mine.filter(|(_, span)| span.until.is_some_and(|until| until <= at));
            over.max_by_key(|(fault, span)| (span.until, *fault)).map(|(fault, _)| Charge { fault, link })
        })
    }

    fn in_force_at(&self, link: u32, at: Time, does: impl Fn(&FaultSpan) -> bool) -> Option<Charge> {
        let mine = self.numbered().filter(|(_, span)| span.links.contains(&link) && is_in_force(span, at));
        mine.filter(|(_, span)| does(span)).last().map(|(fault, _)| Charge { fault, link })
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &'a FaultSpan)> + use<'a> {
        (0..).zip(self.spans)
    }

    /// A switch had no way to a rack: the fault that cut the last of its healthy ways. Tables may
    /// know late that a link is back, so of those that are over the last one counts. Where none of
    /// these ways is cut, tables went by others that are.
    fn of_missing_way(&mut self, node: u32, rack: u16, at: Time) -> Option<Charge> {
        let links = self.ways_from(node, rack).to_vec();
        let on_way = |span: &FaultSpan| links.iter().find(|link| span.links.contains(link)).copied();
        let cut = |nearest: &dyn Fn(&FaultSpan) -> Option<u32>| {
            let mine = self.numbered().filter(|(_, span)| cuts(span) && span.from <= at);
            let mine: Vec<_> = mine.filter_map(|(fault, span)| Some((fault, span, nearest(span)?))).collect();
            let in_force = mine.iter().filter(|(_, span, _)| is_in_force(span, at));
            let last = in_force.max_by_key(|(fault, span, _)| (span.from, *fault));
            let over = || mine.iter().max_by_key(|(fault, span, _)| (span.until, *fault));
            last.or_else(over).map(|&(fault, _, link)| Charge { fault, link })
        };
        cut(&on_way).or_else(|| cut(&|span| span.links.first().copied()))
    }

    fn ways_from(&mut self, node: u32, rack: u16) -> &[u32] {
        let (topology, spans) = (self.topology, self.spans);
        let healthy = self.healthy.get_or_insert_with(|| {
            let mut healthy = topology.clone();
            for &link in spans.iter().filter(|span| cuts(span)).flat_map(|span| &span.links) {
                healthy.links[link as usize].condition.up = true;
            }
            Routes::at_start(&healthy)
        });
        self.ways.entry((node, rack)).or_insert_with(|| {
            let (mut links, mut seen) = (Vec::new(), BTreeSet::from([node]));
            let mut waiting = VecDeque::from([node]);
            while let Some(node) = waiting.pop_front() {
                let Some(switch) = (node as usize).checked_sub(topology.hosts) else { continue };
                for link in healthy.next_links(topology, switch, usize::from(rack)) {
                    links.push(link);
                    let far = topology.links[link as usize].to.0;
                    if seen.insert(far) {
                        waiting.push_back(far);
                    }
                }
            }
            links
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_topology::{Fabric, FabricSpec};
    use weft_units::Span;

    use super::super::phases::divided_at;
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Three leaves and two spines, and faults.
    fn fabric(faults: &[&str]) -> Fabric {
        let faults: Vec<String> = faults.iter().map(|fault| format!("[[fault]]\n{fault}\n")).collect();
        let text =
            format!("kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 1\n{}", faults.concat());
        let spec: FabricSpec = toml::from_str(&text).unwrap();
        spec.build(1, Path::new(".")).unwrap()
    }

    /// Who is charged with a loss then; the link by its name.
    fn charged(
        fabric: &Fabric,
        place: &str,
        cause: DropCause,
        towards: Option<u16>,
        us: u64,
    ) -> Option<(u32, String)> {
        let topology = &fabric.topology;
        let divided_at = divided_at(&fabric.spans);
        let link = (0..topology.links.len() as u32).find(|&link| topology.link_name(link) == place);
        let node = topology.names.iter().position(|name| name == place);
        let place = link.map_or_else(|| DropSite::Node(node.unwrap() as u32), DropSite::Link);
        let phase = divided_at.partition_point(|end| *end <= at(us)) as u32;
        let loss = Drop { phase, place, cause, towards, packets: 1, first: at(us), last: at(us) };
        let found = Blame::new(topology, &fabric.spans, &divided_at).of_loss(&loss)?;
        Some((found.fault, topology.link_name(found.link)))
    }

    #[test]
    fn a_loss_is_charged_to_the_fault_of_its_link_and_time_that_does_such_a_thing() {
        let fabric = fabric(&[
            "link = 'leaf0-spine1'\ndelay = '1us'",
            "link = 'leaf2-spine1'\ndown = true\nat = '2ms'\nuntil = '4ms'",
            "link = 'leaf0>spine1'\nloss = 0.1\nat = '3ms'\nuntil = '5ms'",
            "link = 'leaf0>spine1'\nrate = '1Gbps'\nat = '3ms'\nuntil = '5ms'",
        ]);
        let by = |fault: u32, link: &str| Some((fault, link.to_owned()));
        let charged = |place, cause, towards, us| charged(&fabric, place, cause, towards, us);
        assert_eq!(charged("leaf0>spine1", DropCause::Queue, None, 1_000), by(0, "leaf0>spine1"));
        assert_eq!(charged("leaf0>spine1", DropCause::Queue, None, 3_500), by(3, "leaf0>spine1"));
        assert_eq!(charged("leaf0>spine1", DropCause::Loss, None, 3_500), by(2, "leaf0>spine1"));
        assert_eq!(charged("leaf0>spine0", DropCause::Queue, None, 3_500), None, "no fault hits that link");
        assert_eq!(charged("spine1>leaf2", DropCause::Down, None, 2_500), by(1, "spine1>leaf2"));
        assert_eq!(
            charged("spine1>leaf2", DropCause::Down, None, 4_000),
            by(1, "spine1>leaf2"),
            "at its end"
        );
        assert_eq!(charged("spine1", DropCause::NoRoute, Some(2), 2_500), by(1, "spine1>leaf2"));
        assert_eq!(
            charged("spine1", DropCause::NoRoute, Some(2), 4_500),
            by(1, "spine1>leaf2"),
            "tables are late"
        );
        assert_eq!(charged("leaf0", DropCause::Input, None, 2_500), None);
    }

    #[test]
    fn who_has_no_way_left_is_charged_to_the_fault_that_cut_the_last_one() {
        let fabric = fabric(&[
            "link = 'leaf0>spine0'\ndown = true\nat = '1ms'",
            "link = 'spine1>leaf2'\ndown = true\nat = '2ms'",
            "link = 'leaf1-spine0'\ndown = true\nat = '3ms'",
        ]);
        let no_way = |rack, us| charged(&fabric, "leaf0", DropCause::NoRoute, Some(rack), us);
        assert_eq!(no_way(2, 2_500), Some((1, "spine1>leaf2".to_owned())));
        assert_eq!(no_way(2, 3_500), Some((1, "spine1>leaf2".to_owned())), "the third is on no way there");
    }
}
