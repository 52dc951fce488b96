//! When traffic moves away from links that became slow in mid-run: only for faults that lose
//! nothing, so that losses do not tell.
//!
//! A look at the links costs the run nothing that moves a result: it reads what they were given and
//! what waits there.

use std::collections::{BTreeMap, BTreeSet};

use weft_topology::{FaultSpan, Topology};
use weft_units::{Bytes, Span, Time};

/// Looks follow each other at this interval at first.
const EVERY: Span = Span::from_us(10);
/// Later at this part of the time since the fault began: however long it lasts, there are some
/// hundred looks.
const FINE: u64 = 200;
/// So many packets of full size longer than every other queue is longer.
const MARGIN_PACKETS: u64 = 2;

/// Bytes that were offered to links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfferedBytes {
    /// Bytes, those that were slowed.
    pub slowed: Bytes,
    /// Bytes, those and the ones that could have been taken in their place.
    pub all: Bytes,
}

impl OfferedBytes {
    const fn others(self) -> Bytes {
        less(self.all, self.slowed)
    }

    const fn since(self, then: Self) -> Self {
        Self { slowed: less(self.slowed, then.slowed), all: less(self.all, then.all) }
    }
}

const fn less(now: Bytes, then: Bytes) -> Bytes {
    Bytes::new(now.as_u64() - then.as_u64())
}

/// Outcome for links that a fault slowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DegradedLink {
    /// The fault's place in [`super::SimulationInput::spans`].
    pub fault: u32,
    /// When the queue of one of them was last seen to be longer than those of all others in its
    /// place, by more than two packets of full size, while the fault lasted; none if it never was.
    pub crowded_until: Option<Time>,
    /// From the start of the run to the fault.
    pub before: OfferedBytes,
    /// From then until it ended, or the run.
    pub during: OfferedBytes,
    /// From its end to that of the run.
    pub after: OfferedBytes,
    /// Bytes that others were given while the fault lasted, since its queue was last the longest:
    /// without any, traffic did not move away, it ceased.
    pub others_since: Bytes,
}

/// State of a link at one look.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Bytes that it was given to send, since the run began.
    pub bytes: u64,
    /// Bytes that wait there.
    pub backlog_bytes: u64,
}

/// Looks at them.
#[derive(Debug)]
pub struct DegradedLinkWatch {
    faults: Vec<Watched>,
    margin_bytes: u64,
}

#[derive(Debug)]
struct Watched {
    from: Time,
    until: Option<Time>,
    places: Vec<LinkGroup>,
    state: State,
    /// Bytes offered to the links until the fault began, and until it ended.
    at_begin: OfferedBytes,
    at_end: OfferedBytes,
    /// Bytes offered to others until the queue was last the longest.
    others_when_crowded: Bytes,
    seen: DegradedLink,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    ToCome,
    Lasting,
    Over,
}

/// Links of which a packet takes one: slowed, and as they were.
#[derive(Debug, Default)]
struct LinkGroup {
    slowed: Vec<u32>,
    others: Vec<u32>,
}

impl DegradedLinkWatch {
    /// Watches the faults that begin in mid-run and slow or delay links, and no more; none if there
    /// are none.
    pub fn of(spans: &[FaultSpan], topology: &Topology, full_bytes: u16) -> Option<Self> {
        let watched = |(number, span): (u32, &FaultSpan)| {
            let slows = span.rate.is_some() || span.delay.is_some();
            let loses = span.down.is_some() || span.loss.is_some() || span.blackhole.is_some();
            let places = if slows && !loses && span.from > Time::ZERO {
                places(topology, &span.links)
            } else {
                Vec::new()
            };
            let none = OfferedBytes::default();
            (!places.is_empty()).then_some(Watched {
                from: span.from,
                until: span.until,
                places,
                state: State::ToCome,
                at_begin: none,
                at_end: none,
                others_when_crowded: Bytes::ZERO,
                seen: DegradedLink {
                    fault: number,
                    crowded_until: None,
                    before: none,
                    during: none,
                    after: none,
                    others_since: Bytes::ZERO,
                },
            })
        };
        let faults: Vec<Watched> = (0..).zip(spans).filter_map(watched).collect();
        let margin_bytes = MARGIN_PACKETS * u64::from(full_bytes);
        (!faults.is_empty()).then_some(Self { faults, margin_bytes })
    }

    /// When the first of them begins.
    pub fn first(&self) -> Option<Time> {
        self.faults.iter().map(|fault| fault.from).min()
    }

    /// Looks at this instant, by `look`. Returns when to look again, if ever.
    pub fn look(&mut self, at: Time, look: &mut dyn FnMut(u32) -> Found) -> Option<Time> {
        let margin_bytes = self.margin_bytes;
        self.faults.iter_mut().filter_map(|fault| fault.look(at, margin_bytes, look)).min()
    }

    /// Looks a last time, at the end of the run, and hands out what was seen of the faults that had
    /// begun.
    pub fn finish(mut self, end: Time, look: &mut dyn FnMut(u32) -> Found) -> Vec<DegradedLink> {
        self.look(end, look);
        for fault in &mut self.faults {
            fault.look_back(look);
        }
        self.faults.into_iter().filter(|fault| fault.state != State::ToCome).map(|fault| fault.seen).collect()
    }
}

impl Watched {
    fn look(&mut self, at: Time, margin_bytes: u64, look: &mut dyn FnMut(u32) -> Found) -> Option<Time> {
        if self.state == State::Over {
            return None;
        }
        if at < self.from {
            return Some(self.from);
        }
        let (given, is_crowded) = self.see(margin_bytes, look);
        if self.state == State::ToCome {
            self.state = State::Lasting;
            (self.at_begin, self.seen.before, self.others_when_crowded) = (given, given, given.others());
        } else {
            self.seen.during = given.since(self.at_begin);
        }
        if is_crowded {
            self.seen.crowded_until = Some(at);
            self.others_when_crowded = given.others();
        }
        self.at_end = given;
        self.seen.others_since = less(given.others(), self.others_when_crowded);
        if self.until.is_some_and(|until| until <= at) {
            self.state = State::Over;
            return None;
        }
        let step = Span::from_ps(at.since(self.from).as_ps() / FINE).max(EVERY);
        let next = at.saturating_add(step);
        Some(self.until.map_or(next, |until| next.min(until)))
    }

    /// Counts the bytes offered to the links since the fault ended, if it did.
    fn look_back(&mut self, look: &mut dyn FnMut(u32) -> Found) {
        if self.state == State::Over {
            self.seen.after = self.see(0, look).0.since(self.at_end);
        }
    }

    /// Bytes offered to all links until now, and whether one that is slowed has the longest queue
    /// of its place.
    fn see(&self, margin_bytes: u64, look: &mut dyn FnMut(u32) -> Found) -> (OfferedBytes, bool) {
        let (mut slowed_bytes, mut other_bytes, mut is_crowded) = (0, 0, false);
        for place in &self.places {
            let mut longest = |links: &[u32], bytes: &mut u64| {
                let found = links.iter().map(|&link| look(link)).inspect(|found| *bytes += found.bytes);
                found.map(|found| found.backlog_bytes).max().unwrap_or(0)
            };
            let slow = longest(&place.slowed, &mut slowed_bytes);
            let other = longest(&place.others, &mut other_bytes);
            is_crowded |= slow > other + margin_bytes;
        }
        let [slowed, all] = [slowed_bytes, slowed_bytes + other_bytes].map(Bytes::new);
        (OfferedBytes { slowed, all }, is_crowded)
    }
}

/// The places of these links: those of one switch that lead up, or those that lead down to one
/// switch. Links without any in their place are left out.
fn places(topology: &Topology, links: &[u32]) -> Vec<LinkGroup> {
    // Hosts come first among nodes; they are below all switches.
    let height = |node: u32| {
        let switch = (node as usize).checked_sub(topology.hosts);
        switch.map_or(0, |switch| 1 + u32::from(topology.tier_of_switch[switch]))
    };
    let key = |link: u32| {
        let spec = &topology.links[link as usize];
        let (from, to) = (spec.from.0, spec.to.0);
        let is_down = height(to) < height(from);
        (is_down, if is_down { to } else { from }, spec.tier as u8)
    };
    let hit: BTreeSet<u32> = links.iter().copied().collect();
    let mut found: BTreeMap<(bool, u32, u8), LinkGroup> =
        hit.iter().map(|&link| (key(link), LinkGroup::default())).collect();
    for link in 0..topology.links.len() as u32 {
        let Some(place) = found.get_mut(&key(link)) else { continue };
        if hit.contains(&link) { place.slowed.push(link) } else { place.others.push(link) }
    }
    found.into_values().filter(|place| !place.others.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_topology::{Fabric, FabricSpec};

    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Three leaves and three spines, and a fault.
    fn fabric(fault: &str) -> Fabric {
        let text =
            format!("kind = 'leaf-spine'\nleaves = 3\nspines = 3\nhosts_per_leaf = 2\n[[fault]]\n{fault}");
        let spec: FabricSpec = toml::from_str(&text).unwrap();
        spec.build(1, Path::new(".")).unwrap()
    }

    fn watch(fault: &str) -> Option<DegradedLinkWatch> {
        let fabric = fabric(fault);
        DegradedLinkWatch::of(&fabric.spans, &fabric.topology, 1_500)
    }

    #[test]
    fn the_links_in_whose_place_others_could_be_taken_are_known_in_both_directions() {
        let fabric = fabric("link = 'leaf0-spine1'\nrate = '1Gbps'\nat = '1ms'");
        let name = |links: &[u32]| -> Vec<String> {
            links.iter().map(|&link| fabric.topology.link_name(link)).collect()
        };
        let found: Vec<_> = places(&fabric.topology, &fabric.spans[0].links)
            .iter()
            .map(|place| (name(&place.slowed), name(&place.others)))
            .collect();
        let expected = [
            (["leaf0>spine1"], ["leaf0>spine0", "leaf0>spine2"]),
            (["spine1>leaf0"], ["spine0>leaf0", "spine2>leaf0"]),
        ];
        let expected = expected
            .map(|(slowed, others)| (slowed.map(str::to_owned).to_vec(), others.map(str::to_owned).to_vec()));
        assert_eq!(found, expected);
    }

    #[test]
    fn only_faults_that_slow_in_mid_run_and_lose_nothing_are_watched() {
        assert!(watch("link = 'leaf0-spine1'\nrate = '1Gbps'\nat = '1ms'").is_some());
        assert!(watch("link = 'leaf0-spine1'\ndelay = '50us'\nat = '1ms'").is_some());
        assert!(watch("link = 'leaf0-spine1'\nrate = '1Gbps'").is_none(), "from the start");
        assert!(watch("link = 'leaf0-spine1'\nrate = '1Gbps'\nloss = 0.1\nat = '1ms'").is_none());
        assert!(watch("link = 'leaf0-spine1'\ndown = true\nat = '1ms'").is_none());
        assert!(watch("link = 'host0-leaf0'\nrate = '1Gbps'\nat = '1ms'").is_none(), "no other way");
    }

    /// The slow uplink gets 100 bytes a microsecond until 40 us into the fault, each other one 300;
    /// the queue of the slow one is 5,000 bytes longer until then, and 3,000 bytes, which is two
    /// packets, after it.
    #[test]
    fn shares_and_the_last_time_at_which_its_queue_was_the_longest_are_told() {
        let mut watch =
            watch("link = 'leaf0>spine1'\nrate = '1Gbps'\nat = '100us'\nuntil = '200us'").unwrap();
        let slow = watch.faults[0].places[0].slowed[0];
        let found = |now: u64| {
            move |link: u32| {
                if link != slow {
                    return Found { bytes: 300 * now, backlog_bytes: 7_000 };
                }
                let backlog_bytes = if now <= 140 { 12_000 } else { 10_000 };
                Found { bytes: 100 * now.min(140), backlog_bytes }
            }
        };
        assert_eq!(watch.first(), Some(at(100)));
        let mut now = 100;
        let mut looks = Vec::new();
        while let Some(next) = watch.look(at(now), &mut found(now)) {
            looks.push(now);
            now = next.since(Time::ZERO).as_ps() / 1_000_000;
        }
        assert_eq!((looks, now), ((100..200).step_by(10).collect(), 200));
        let seen = watch.finish(at(500), &mut found(500));
        let given = |slowed, all| OfferedBytes { slowed: Bytes::new(slowed), all: Bytes::new(all) };
        assert_eq!(
            seen,
            [DegradedLink {
                fault: 0,
                crowded_until: Some(at(140)),
                before: given(10_000, 70_000),
                during: given(4_000, 64_000),
                after: given(0, 180_000),
                others_since: Bytes::new(36_000),
            }],
            "what comes after it counts by itself"
        );
    }

    #[test]
    fn a_fault_that_lasts_is_looked_at_some_hundred_times_and_one_to_come_is_not_told() {
        let mut lasting = watch("link = 'leaf0-spine1'\nrate = '1Gbps'\nat = '1us'").unwrap();
        let idle = |_| Found { bytes: 0, backlog_bytes: 0 };
        let (mut now, mut looks) = (at(1), 0);
        while now < Time::ZERO + Span::from_s(1) {
            now = lasting.look(now, &mut { idle }).unwrap();
            looks += 1;
        }
        assert!((1_000..2_000).contains(&looks), "{looks}");
        let to_come = watch("link = 'leaf0-spine1'\nrate = '1Gbps'\nat = '1ms'").unwrap();
        assert_eq!(to_come.finish(at(500), &mut { idle }), []);
    }
}
