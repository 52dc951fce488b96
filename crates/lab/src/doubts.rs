//! Doubts about a run that its reader should know before its figures: flowlets that end nowhere,
//! and flows that are locked out of a queue.

use std::collections::VecDeque;

use weft_balance::SchemeSpec;
use weft_fabric::{Results, base_rtt};
use weft_topology::{Fabric, Marking, Routes, Tier, Topology};
use weft_transport::{Protocol, Transports, TransportsSpec, Visitor};
use weft_units::Span;

use crate::results::rows::FlowRow;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    moves: Moves,
    lock_outs: LockOuts,
}

impl Doubts {
    /// Adds a flow: the next one, in their order, of a run with these results.
    pub fn add(&mut self, row: &FlowRow, topology: &Topology, results: &Results) {
        if row.background {
            return;
        }
        // The hits are of packets that met a fault, lost or not.
        self.moves.add(row, &topology.rack_of_host, !results.hits.is_empty());
        self.lock_outs.add(row, results.end.as_us());
    }

    /// Says what there is to say. An external scheme is none of these.
    pub fn warnings(
        self,
        scheme: Option<&SchemeSpec>,
        transports: &TransportsSpec,
        fabric: &Fabric,
    ) -> Vec<String> {
        let moves = scheme.and_then(|scheme| self.moves.warning(scheme, transports, fabric));
        // Faults lose packets of some flows and not of others, whatever the queues do.
        let lock_outs = fabric.spans.is_empty().then(|| self.lock_outs.warning(transports, &fabric.topology));
        moves.into_iter().chain(lock_outs.flatten()).collect()
    }
}

/// A scheme that moves a smaller share of the flows that it could move is as good as one that moves
/// none.
const LEAST_MOVED: f64 = 0.01;

/// Flows that a scheme could have moved: those between racks that sent several packets.
#[derive(Debug, Default)]
struct Moves {
    movable: u64,
    /// Packets came by several paths, and not only since a timeout made a pause.
    moved: u64,
    /// Packets came by several paths, but no more often than the flow timed out: each of these
    /// silences ends a flowlet of any gap.
    after_timeouts: u64,
    /// All that arrived came by one path, or nothing did; but what it sent by another may be lost
    /// to a fault.
    perhaps: u64,
}

impl Moves {
    /// Adds a flow. `by_faults`: whether packets of any flow met a fault. A fault takes all packets
    /// of a path; a full queue takes some packets of many, of which others arrive and show the
    /// path.
    fn add(&mut self, row: &FlowRow, rack_of_host: &[u16], by_faults: bool) {
        let rack = |host: u16| rack_of_host.get(usize::from(host));
        let has_lost = row.dropped_segments > 0 && by_faults;
        if rack(row.src) == rack(row.dst) || (row.segments_received < 2 && !has_lost) {
            return;
        }
        self.movable += 1;
        let is_by_timeouts = row.path_changes <= row.timeouts;
        self.moved += u64::from(row.path_changes > 0 && !is_by_timeouts);
        self.after_timeouts += u64::from(row.path_changes > 0 && is_by_timeouts);
        self.perhaps += u64::from(row.path_changes == 0 && has_lost);
    }

    /// Whether hardly any flow moved, as far as can be known.
    fn are_few(&self) -> bool {
        self.movable > 0 && ((self.moved + self.perhaps) as f64) < LEAST_MOVED * self.movable as f64
    }

    /// How many flows moved, and what that makes of the scheme.
    fn words(&self, is_blind: bool) -> (String, &'static str) {
        let all = self.movable;
        let moved = match (self.moved, self.perhaps) {
            (0, 0) => "no flow".to_owned(),
            (some, 0) => format!("{some} of {all} flows"),
            (some, perhaps) => format!("at most {} of {all} flows", some + perhaps),
        };
        let so = if self.moved + self.perhaps > 0 {
            "nearly all stayed on their first path"
        } else if self.after_timeouts > 0 {
            "flows changed their path after a timeout alone"
        } else if is_blind {
            "it never changed a path, so it is ECMP with other random paths; its difference from ecmp is chance"
        } else {
            "every flow stayed on its first path"
        };
        (moved, so)
    }

    /// Says that a scheme that switches flowlets moved hardly any flow, if so.
    fn warning(&self, scheme: &SchemeSpec, transports: &TransportsSpec, fabric: &Fabric) -> Option<String> {
        if !self.are_few() {
            return None;
        }
        // Only CLOVE's gap depends on it; to find it takes a walk over all pairs of racks.
        scheme.flowlets(Span::ZERO)?;
        let topology = fabric.topology.at_its_best(&fabric.faults);
        if Routes::at_start(&topology).most_choices(&topology) == 0 {
            return None;
        }
        let rtt = base_rtt(transports, &fabric.topology, &fabric.faults).ok().filter(|rtt| !rtt.is_zero())?;
        let rule = scheme.flowlets(rtt)?;
        let (name, gap) = (scheme.name(), rule.gap.rounded());
        let (moved, so) = self.words(rule.is_blind);
        let rtts = rule.gap.as_us() / rtt.as_us();
        let moved = if self.after_timeouts > 0 { format!("{moved} by its gaps") } else { moved };
        Some(format!("{name} moved {moved}: its gap of {gap} is {} round trips; {so}", short(rtts)))
    }
}

/// A number with two digits, or all digits before the point.
fn short(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Flows are equal that begin so near to each other, as a share of the time that they need alone.
const TOGETHER: f64 = 0.1;
/// So many groups of equal flows are open at a time: those that began last.
const OPEN: usize = 64;
/// A flow is locked out that lost so many packets, ...
const LEAST_LOST: u32 = 50;
/// ... and that many of those that it sent, or nearly all that the group lost.
const LOST_OF_ITS_OWN: f64 = 0.2;
const LOST_OF_ALL: f64 = 0.9;
/// And it began in earnest when the other one was done: it took so much longer, in times that it
/// needs alone.
const LATER: f64 = 0.9;

/// Equal flows to one host: of one size and class, over one transport, which begin together.
#[derive(Debug)]
struct Group {
    dst: u16,
    size_bytes: u64,
    class: &'static str,
    transport: Option<String>,
    start_us: f64,
    ideal_us: f64,
    flows: u32,
    lost: u64,
    /// The one that lost most, and the first that was done without a loss.
    worst: Option<Fate>,
    unharmed: Option<Fate>,
}

#[derive(Debug, Clone, Copy)]
struct Fate {
    flow: u32,
    lost: u32,
    sent: u64,
    /// Until the end of the run, if it did not finish.
    took_us: f64,
}

/// Drop-tail lock-out: a full queue takes the packets of one flow and drops those of another, time
/// after time, since both come at the rate at which it empties (Floyd and Jacobson, "On Traffic
/// Phase Effects in Packet-Switched Gateways", 1992).
#[derive(Debug, Default)]
struct LockOuts {
    open: VecDeque<Group>,
    found: u64,
    /// The first one in words, and the transport of its flows if there are several.
    first: Option<(String, Option<String>)>,
}

/// Remedies against lock-out in a spec.
#[derive(Debug, Clone, Copy)]
struct Remedies {
    /// The transport of the flows acts upon marks.
    uses_ecn: bool,
    /// Ports of switches mark.
    marks: bool,
    /// And drop at random what cannot be marked.
    drops_at_random: bool,
}

/// Asks whether each transport acts upon marks.
struct AskEcn;

impl Visitor for AskEcn {
    type Output = Vec<bool>;

    fn visit<T: Transports + 'static>(self, transports: T) -> Vec<bool> {
        transports.all().map(Protocol::uses_ecn).collect()
    }
}

impl Remedies {
    /// Remedies of flows of this transport, or of the only one.
    fn of(transports: &TransportsSpec, label: Option<&str>, topology: &Topology) -> Self {
        let number =
            label.and_then(|label| transports.labels().iter().position(|known| known == label)).unwrap_or(0);
        let uses_ecn = transports.with_transports(AskEcn).is_ok_and(|all| all.get(number) == Some(&true));
        let queues = || {
            let ports = topology.links.iter().filter(|link| link.tier != Tier::Host);
            ports.flat_map(|link| match &link.classes {
                Some(spec) => spec.classes.iter().map(|class| class.queue.marking).collect(),
                None => vec![link.queue.marking],
            })
        };
        Self {
            uses_ecn,
            marks: queues().any(|marking| marking != Marking::Never),
            drops_at_random: queues().any(|marking| matches!(marking, Marking::Red { .. })),
        }
    }

    /// Names what is missing.
    const fn words(self) -> &'static str {
        match (self.uses_ecn, self.marks, self.drops_at_random) {
            (true, true, _) => "The queue marks already, but too late for these flows",
            (true, false, _) => {
                "A queue that marks (fabric.switch_queue.mark or fabric.switch_queue.red) takes packets of both"
            }
            (false, _, true) => {
                "The queue drops at random already; a transport that uses ECN hears its marks"
            }
            (false, true, false) => {
                "A transport that uses ECN hears the marks of the queue; one that drops at random (fabric.switch_queue.red) takes packets \
                 of both"
            }
            (false, false, false) => {
                "A queue that marks (fabric.switch_queue.mark, with a transport that uses ECN) or drops at random \
                 (fabric.switch_queue.red) takes packets of both"
            }
        }
    }
}

impl LockOuts {
    /// Adds a flow: the next one, in their order. The run ended then.
    fn add(&mut self, row: &FlowRow, end_us: f64) {
        let (Some(ideal_us), Some(start_us)) = (row.ideal_fct_us, row.start_us) else { return };
        if row.segments_sent < u64::from(LEAST_LOST) {
            return;
        }
        let lost = row.dropped_segments;
        let took_us = row.fct_us.unwrap_or(end_us - start_us);
        let fate = Fate { flow: row.id, lost, sent: row.segments_sent, took_us };
        let known = self.open.iter().position(|group| group.takes(row, start_us));
        let place = known.unwrap_or_else(|| {
            if self.open.len() == OPEN {
                self.close_oldest();
            }
            self.open.push_back(Group {
                dst: row.dst,
                size_bytes: row.size_bytes,
                class: row.class,
                transport: row.transport.clone(),
                start_us,
                ideal_us,
                flows: 0,
                lost: 0,
                worst: None,
                unharmed: None,
            });
            self.open.len() - 1
        });
        let group = &mut self.open[place];
        group.flows += 1;
        group.lost += u64::from(lost);
        if group.worst.is_none_or(|worst| lost > worst.lost) {
            group.worst = Some(fate);
        }
        let is_first = group.unharmed.is_none_or(|unharmed| took_us < unharmed.took_us);
        if lost == 0 && row.fct_us.is_some() && is_first {
            group.unharmed = Some(fate);
        }
    }

    /// Says that a flow was locked out, if one was, and names what the spec lacks against that.
    fn warning(mut self, transports: &TransportsSpec, topology: &Topology) -> Option<String> {
        self.close_all();
        let (_, transport) = self.first.as_ref()?;
        let remedies = Remedies::of(transports, transport.as_deref(), topology);
        Some(format!("{}. {}", self.words()?, remedies.words()))
    }

    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close_oldest();
        }
    }

    fn words(&self) -> Option<String> {
        let (first, _) = self.first.as_ref()?;
        let more = match self.found {
            1 => String::new(),
            found => format!(" (and in {} more groups of equal flows)", found - 1),
        };
        Some(format!("drop-tail lock-out: {first}{more}"))
    }

    fn close_oldest(&mut self) {
        let Some(group) = self.open.pop_front() else { return };
        let Some(said) = group.lock_out() else { return };
        self.found += 1;
        self.first.get_or_insert((said, group.transport));
    }
}

impl Group {
    fn takes(&self, row: &FlowRow, start_us: f64) -> bool {
        (self.dst, self.size_bytes, self.class) == (row.dst, row.size_bytes, row.class)
            && self.transport == row.transport
            && (start_us - self.start_us).abs() <= TOGETHER * self.ideal_us
    }

    fn lock_out(&self) -> Option<String> {
        let (worst, unharmed) = (self.worst?, self.unharmed?);
        let share = f64::from(worst.lost) / worst.sent as f64;
        let of_all = f64::from(worst.lost) / self.lost as f64;
        let later_us = worst.took_us - unharmed.took_us;
        let is_locked_out = worst.lost >= LEAST_LOST
            && (share >= LOST_OF_ITS_OWN || of_all >= LOST_OF_ALL)
            && later_us >= LATER * self.ideal_us;
        is_locked_out.then(|| {
            format!(
                "of {} equal flows to host {}, flow {} lost {} packets and flow {} none",
                self.flows, self.dst, worst.flow, worst.lost, unharmed.flow
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow of 100 KB to host 9 that would take 80 us alone.
    fn flow(id: u32, fct_us: Option<f64>, sent: u64, lost: u32) -> FlowRow {
        FlowRow {
            id,
            src: id as u16,
            dst: 9,
            start_us: Some(0.0),
            size_bytes: 100_000,
            fct_us,
            ideal_fct_us: Some(80.0),
            segments_sent: sent,
            segments_received: sent - u64::from(lost),
            dropped_segments: lost,
            ..FlowRow::default()
        }
    }

    fn found(rows: &[FlowRow]) -> Option<String> {
        let mut lock_outs = LockOuts::default();
        for row in rows {
            lock_outs.add(row, 1_000.0);
        }
        lock_outs.close_all();
        lock_outs.words()
    }

    /// The warning's words about 300 quiet flows between two racks and `more` flows.
    fn moves(more: &[FlowRow], by_faults: bool, is_blind: bool) -> Option<(String, &'static str)> {
        let mut moves = Moves::default();
        let quiet: Vec<FlowRow> =
            (0..300).map(|id| FlowRow { src: 0, ..flow(id, Some(81.0), 100, 0) }).collect();
        for row in quiet.iter().chain(more) {
            moves.add(row, &[0, 0, 0, 0, 0, 1, 1, 1, 1, 1], by_faults);
        }
        moves.are_few().then(|| moves.words(is_blind))
    }

    #[test]
    fn a_flow_that_lost_all_that_it_sent_by_a_path_may_have_moved() {
        let lost = |received: u64| FlowRow { segments_received: received, ..flow(0, None, 100, 10) };
        for received in [90, 2] {
            let mut five = vec![lost(received); 5];
            assert_eq!(moves(&five, true, true), None, "{received} of 100 arrived");
            assert!(moves(&five, false, true).is_some(), "a queue was full");
            for row in &mut five {
                row.timeouts = 1;
            }
            assert!(moves(&five, false, true).is_some(), "{received} of 100 arrived and show the path");
        }
        assert_eq!(moves(&vec![lost(0); 5], true, true), None, "all was lost to a fault");
        let moved = FlowRow { path_changes: 3, ..flow(0, Some(81.0), 100, 0) };
        assert_eq!(moves(&vec![moved.clone(); 5], true, true), None);
        let said = |more: &[FlowRow]| moves(more, true, true).unwrap();
        assert_eq!(said(std::slice::from_ref(&moved)).0, "1 of 301 flows");
        let (few, so) = said(&[moved, lost(0)]);
        assert_eq!(few, "at most 2 of 302 flows");
        assert_eq!(so, "nearly all stayed on their first path");
    }

    #[test]
    fn a_flow_that_changed_its_path_after_timeouts_alone_did_not_move_by_a_gap() {
        let timed_out = FlowRow { path_changes: 2, timeouts: 2, ..flow(0, Some(900.0), 100, 10) };
        let (moved, so) = moves(&vec![timed_out.clone(); 100], false, true).unwrap();
        assert_eq!((moved.as_str(), so), ("no flow", "flows changed their path after a timeout alone"));
        let more = FlowRow { path_changes: 3, ..timed_out };
        assert_eq!(moves(&vec![more; 100], false, true), None);
    }

    #[test]
    fn only_where_chance_chose_all_paths_it_is_chance() {
        let (moved, so) = moves(&[], false, true).unwrap();
        assert_eq!(moved, "no flow");
        assert!(
            so.ends_with("so it is ECMP with other random paths; its difference from ecmp is chance"),
            "{so}"
        );
        assert_eq!(moves(&[], false, false).unwrap().1, "every flow stayed on its first path");
    }

    #[test]
    fn a_flow_that_loses_what_another_of_its_size_does_not_is_locked_out() {
        let said = "drop-tail lock-out: of 2 equal flows to host 9, flow 4 lost 60 packets and flow 3 none";
        for late in [Some(160.0), None] {
            let warning = found(&[flow(3, Some(81.0), 100, 0), flow(4, late, 1_000, 60)]);
            assert!(warning.as_ref().is_some_and(|text| text.starts_with(said)), "{warning:?}");
        }
        // Of eight, one alone loses everything.
        let mut eight: Vec<FlowRow> =
            (0..7).map(|id| flow(id, Some(560.0 + f64::from(id)), 100, 0)).collect();
        eight.push(flow(7, Some(640.0), 2_000, 100));
        assert!(
            found(&eight).is_some_and(|text| text.contains("of 8 equal flows to host 9, flow 7 lost 100"))
        );
    }

    #[test]
    fn flows_that_share_their_losses_or_their_time_are_not() {
        let first = flow(3, Some(81.0), 100, 0);
        let other = |change: fn(&mut FlowRow)| {
            let mut row = flow(4, Some(160.0), 1_000, 60);
            change(&mut row);
            row
        };
        assert_eq!(found(&[flow(3, Some(81.0), 101, 1), other(|_| {})]), None, "both lose");
        assert_eq!(found(&[first.clone(), other(|row| row.dropped_segments = 49)]), None, "few are lost");
        assert_eq!(
            found(&[first.clone(), other(|row| row.fct_us = Some(120.0))]),
            None,
            "it is done soon after"
        );
        assert_eq!(found(&[first.clone(), other(|row| row.dst = 8)]), None, "another queue");
        assert_eq!(found(&[first.clone(), other(|row| row.size_bytes += 1)]), None, "another size");
        assert_eq!(found(&[first.clone(), other(|row| row.start_us = Some(9.0))]), None, "another time");
        // Sixteen with losses of their own, of which one is lucky.
        let mut many: Vec<FlowRow> = (0..15).map(|id| flow(id, Some(1_200.0), 1_000, 60)).collect();
        many.push(flow(15, Some(700.0), 100, 0));
        assert_eq!(found(&many), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_group_of_equal_flows_is_judged_when_it_is_the_oldest_of_many() {
        let mut rows = vec![flow(0, Some(81.0), 100, 0), flow(1, Some(170.0), 1_000, 60)];
        for number in 0..200u32 {
            rows.push(FlowRow {
                start_us: Some(100.0 * f64::from(number + 1)),
                ..flow(number + 2, Some(81.0), 100, 0)
            });
        }
        assert!(found(&rows).is_some());
    }
}
