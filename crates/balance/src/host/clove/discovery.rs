//! Which entropy leads over which path: traceroutes, and the choice among what they find.
//!
//! Each candidate entropy is traced hop by hop: the switch where the hop limit expires answers with
//! itself and the port by which the packet came in, which names the cable. The first switch is the
//! host's own and the same for all, so the first limit is 2. The answer of the receiving host
//! itself ends a trace.

use crate::Expired;

/// A probe to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Entropy that switches hash.
    pub entropy: u32,
    /// Hop limit of the probe.
    pub hop_limit: u8,
    /// Number that the answer must carry: see [`Discovery::answer`].
    pub number: u32,
}

/// An entropy and the cables between switches that it leads over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredPath {
    /// Entropy that switches are to hash.
    pub entropy: u32,
    /// Where packets come in, switch by switch.
    pub links: Box<[Expired]>,
}

impl DiscoveredPath {
    /// An explicit route: its label stands for an entropy, and for the links.
    pub fn route(label: u32) -> Self {
        Self { entropy: label, links: Box::from([Expired { switch: label, port: 0 }]) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Complete,
    Lost,
}

#[derive(Debug, Clone)]
struct Trace {
    entropy: u32,
    links: Vec<Expired>,
    /// Timeouts since the last answer.
    timeouts: u8,
    state: State,
}

impl Trace {
    /// The hop limit whose answer is awaited.
    fn hop_limit(&self) -> u8 {
        FIRST_HOP + self.links.len() as u8
    }
}

const FIRST_HOP: u8 = 2;

/// Traces of one round.
#[derive(Debug, Clone)]
pub struct Discovery {
    round: u16,
    traces: Vec<Trace>,
    open: usize,
}

impl Discovery {
    /// Most traces of a round.
    pub const TRACES: u32 = 256;
    /// How often a hop is asked before its trace is given up: traceroute's number.
    pub const TRIES: u8 = 3;
    /// A trace over more switches is given up: it goes in circles.
    const MAX_LINKS: usize = 32;

    /// A round with these entropies, at most [`Self::TRACES`].
    pub fn new(round: u16, entropies: impl IntoIterator<Item = u32>) -> Self {
        let trace = |entropy| Trace { entropy, links: Vec::new(), timeouts: 0, state: State::Open };
        let traces: Vec<Trace> = entropies.into_iter().take(Self::TRACES as usize).map(trace).collect();
        Self { round, open: traces.len(), traces }
    }

    /// Next probes of every trace that is not over.
    pub fn probes(&self) -> Vec<Probe> {
        let open = |&index: &usize| self.traces[index].state == State::Open;
        (0..self.traces.len()).filter(open).map(|index| self.probe(index)).collect()
    }

    fn probe(&self, index: usize) -> Probe {
        let trace = &self.traces[index];
        let number = index as u32 | u32::from(trace.hop_limit()) << 8 | u32::from(self.round) << 16;
        Probe { entropy: trace.entropy, hop_limit: trace.hop_limit(), number }
    }

    /// An answer with the number of a probe came, from a switch or from the receiving host: what to
    /// ask next. Answers that nobody waits for (any more) change nothing.
    pub fn answer(&mut self, number: u32, expired: Option<Expired>) -> Option<Probe> {
        let index = (number & 0xff) as usize;
        if index >= self.traces.len()
            || self.traces[index].state != State::Open
            || self.probe(index).number != number
        {
            return None;
        }
        let trace = &mut self.traces[index];
        trace.timeouts = 0;
        let Some(link) = expired else {
            self.end(index, State::Complete);
            return None;
        };
        trace.links.push(link);
        if trace.links.len() > Self::MAX_LINKS {
            self.end(index, State::Lost);
            return None;
        }
        Some(self.probe(index))
    }

    /// Answers have had their time: gives up traces that were asked often enough; the others are to
    /// be asked again.
    pub fn time_out(&mut self) {
        for index in 0..self.traces.len() {
            let trace = &mut self.traces[index];
            if trace.state == State::Open {
                trace.timeouts += 1;
                if trace.timeouts >= Self::TRIES {
                    self.end(index, State::Lost);
                }
            }
        }
    }

    fn end(&mut self, index: usize, state: State) {
        self.traces[index].state = state;
        self.open -= 1;
    }

    /// Whether every trace is over.
    pub const fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Traces that were given up.
    pub fn lost(&self) -> usize {
        self.traces.iter().filter(|trace| trace.state == State::Lost).count()
    }

    /// At most `most` of the paths that were traced, each with the first entropy that leads over
    /// it.
    pub fn choose(self, most: usize) -> Vec<DiscoveredPath> {
        let complete = self.traces.into_iter().filter(|trace| trace.state == State::Complete);
        least_shared(
            complete
                .map(|trace| DiscoveredPath { entropy: trace.entropy, links: trace.links.into() })
                .collect(),
            most,
        )
    }
}

/// Distinct paths, at most `most`, one after the other: the one that has the fewest links in common
/// with those chosen before (counted once for each of them), the first of equals.
fn least_shared(found: Vec<DiscoveredPath>, most: usize) -> Vec<DiscoveredPath> {
    // Each with the links that it shares so far.
    let mut rest: Vec<(usize, DiscoveredPath)> = found.into_iter().map(|found| (0, found)).collect();
    let mut chosen = Vec::new();
    while chosen.len() < most
        && let Some(next) = (0..rest.len()).min_by_key(|&index| rest[index].0)
    {
        let (_, next) = rest.remove(next);
        rest.retain(|(_, other)| other.links != next.links);
        for (shared, other) in &mut rest {
            *shared += other.links.iter().filter(|link| next.links.contains(link)).count();
        }
        chosen.push(next);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(switch: u32, port: u16) -> Expired {
        Expired { switch, port }
    }

    /// A path by the switches that it passes after the first one.
    fn found(entropy: u32, switches: &[(u32, u16)]) -> DiscoveredPath {
        DiscoveredPath { entropy, links: switches.iter().map(|&(switch, port)| link(switch, port)).collect() }
    }

    fn chosen(found: &[DiscoveredPath], most: usize) -> Vec<u32> {
        least_shared(found.to_vec(), most).into_iter().map(|found| found.entropy).collect()
    }

    #[test]
    fn the_choice_follows_the_table_worked_by_hand() {
        // From edge 0 of a fat-tree of 4 ports to edge 6 of another pod. Links as (switch, port):
        // aggregation 8 or 9, cores 16 to 19, aggregation 14 or 15, edge 6.
        let by = |entropy, up, core, down, last| {
            found(entropy, &[(up, 0), (core, 0), (down, (core % 2) as u16), (6, last)])
        };
        let traces = [
            by(1, 8, 16, 14, 2),
            by(2, 8, 17, 14, 2), // shares the first and the last link with 1
            by(3, 8, 16, 14, 2), // the path of 1
            by(4, 9, 18, 15, 3), // shares nothing with 1
            by(5, 9, 19, 15, 3), // shares two links with 4
            by(6, 9, 18, 15, 3), // the path of 4
        ];
        assert_eq!(chosen(&traces, 64), [1, 4, 2, 5], "all distinct paths, the disjoint ones first");
        assert_eq!(chosen(&traces, 3), [1, 4, 2]);
        assert_eq!(chosen(&traces, 1), [1]);
        assert_eq!(chosen(&[], 4), [0u32; 0]);
    }

    #[test]
    fn a_link_counts_once_for_each_chosen_path_that_takes_it() {
        let traces = [
            found(1, &[(8, 0), (10, 0)]),
            found(2, &[(8, 0), (11, 0)]),
            found(3, &[(8, 0), (12, 0)]),
            found(4, &[(7, 0), (10, 0)]),
        ];
        // 2, 3 and 4 share one link with 1. Then 3 shares its one with two, 4 still with one.
        assert_eq!(chosen(&traces, 64), [1, 2, 4, 3]);
    }

    #[test]
    fn parallel_cables_are_different_links() {
        assert_eq!(chosen(&[found(1, &[(4, 0), (1, 0)]), found(2, &[(4, 1), (1, 0)])], 64), [1, 2]);
    }

    #[test]
    fn a_trace_asks_hop_by_hop_until_the_far_edge_answers() {
        let mut round = Discovery::new(7, [50, 60]);
        let probes = round.probes();
        assert_eq!(
            probes.iter().map(|probe| (probe.entropy, probe.hop_limit)).collect::<Vec<_>>(),
            [(50, 2), (60, 2)]
        );
        let next = round.answer(probes[1].number, Some(link(4, 1))).expect("the next hop");
        assert_eq!((next.entropy, next.hop_limit), (60, 3));
        assert_eq!(round.answer(probes[1].number, Some(link(4, 1))), None, "that hop has answered");
        let last = round.answer(next.number, Some(link(1, 3))).expect("the receiving host");
        assert_eq!(last.hop_limit, 4);
        assert_eq!(round.answer(last.number, None), None);
        assert!(!round.is_over(), "the other trace is not");
        assert_eq!(round.answer(last.number ^ (1 << 16), None), None, "another round's");
        assert_eq!(round.answer(last.number | 0xff, None), None, "no such trace");
        assert_eq!(round.choose(8), [found(60, &[(4, 1), (1, 3)])]);
    }

    #[test]
    fn a_hop_is_asked_three_times_and_an_answer_begins_the_count_anew() {
        let mut round = Discovery::new(0, [50, 60]);
        let first = round.probes();
        round.time_out();
        round.time_out();
        assert_eq!(round.probes(), first, "asked again, with the same numbers");
        round.answer(first[0].number, Some(link(4, 0)));
        round.time_out();
        assert_eq!((round.lost(), round.probes().len()), (1, 1), "60 is given up");
        assert_eq!(round.answer(first[1].number, Some(link(5, 0))), None, "too late");
        round.time_out();
        assert!(!round.is_over());
        round.time_out();
        assert_eq!((round.is_over(), round.lost()), (true, 2));
        assert!(round.choose(8).is_empty());
    }

    #[test]
    fn a_trace_in_circles_ends() {
        let mut round = Discovery::new(0, [50]);
        let mut probe = round.probes().pop();
        let mut hops = 0;
        while let Some(asked) = probe {
            hops += 1;
            probe = round.answer(asked.number, Some(link(hops % 3, 0)));
        }
        assert_eq!((round.is_over(), round.lost()), (true, 1));
    }
}
