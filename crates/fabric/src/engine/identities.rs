//! Identities of every run, whatever its spec: counts that are kept in several places agree, and no
//! quantity is larger than it can be.
//!
//! A debug build checks the fabric's when a run ends, and the lab those of each flow, so all tests
//! and the fuzzer do. Each function returns a sentence for each identity that does not hold.

use std::collections::BTreeMap;
use std::fmt;

use weft_packet::Packet;
use weft_topology::Topology;
use weft_traffic::Flow;
use weft_units::{Rate, Time};

use super::drops::{DropCause, DropSite};
use super::fct_breakdown::FctBreakdown;
use super::results::{FlowRecord, Results};
use super::sampler::LinkSample;

/// Identities that do not hold.
#[derive(Default)]
struct Found(Vec<String>);

impl Found {
    fn equal<T: Copy + PartialEq + fmt::Debug>(&mut self, what: impl fmt::Display, one: T, other: T) {
        if one != other {
            self.0.push(format!("{what}: {one:?} and {other:?}"));
        }
    }

    fn at_most<T: Copy + PartialOrd + fmt::Debug>(&mut self, what: impl fmt::Display, one: T, most: T) {
        if one > most {
            self.0.push(format!("{what}: {one:?} is more than {most:?}"));
        }
    }
}

/// Checks a run that ended, in a debug build.
///
/// # Panics
/// If an identity does not hold.
pub fn check(topology: &Topology, results: &Results) {
    if cfg!(debug_assertions) {
        let wrong = of_run(topology, results);
        assert!(wrong.is_empty(), "books do not agree: {}", wrong.join("; "));
    }
}

/// Identities of packets, links, classes, pauses and samples of a run that ended.
pub fn of_run(topology: &Topology, results: &Results) -> Vec<String> {
    let mut found = Found::default();
    of_packets(results, &mut found);
    of_losses(results, &mut found);
    of_links(topology, results, &mut found);
    of_classes(topology, results, &mut found);
    of_pauses(results, &mut found);
    if results.samples.every.is_some() {
        of_samples(topology, results, &mut found);
    }
    found.0
}

/// Every packet that was sent has arrived, is lost, or is under way; and every loss is on one
/// account.
fn of_packets(results: &Results, found: &mut Found) {
    let packets = &results.packets;
    let known = packets.delivered + packets.dropped + results.in_flight;
    found.equal("packets sent, and delivered, dropped or in flight", packets.sent, known);
    let sum = |of: fn(&super::LinkTotals) -> u64| results.links.iter().map(of).sum::<u64>();
    found.equal(
        "packets dropped, and those at links, without a route and at inputs",
        packets.dropped - packets.credits_dropped,
        sum(|link| link.dropped) + packets.unroutable + packets.input_dropped,
    );
    found.at_most("credits dropped at links", sum(|link| link.credits_dropped), packets.credits_dropped);
    let taken = sum(|link| link.packets);
    found.at_most("arrivals of packets that links took", packets.hops, taken);
    found.at_most("packets that links took", taken, packets.hops + packets.dropped + results.in_flight);
}

/// Where losses are noted by place, cause and time they are those of the links.
fn of_losses(results: &Results, found: &mut Found) {
    if results.losses.is_empty() {
        return;
    }
    let packets = &results.packets;
    let mut by_link = vec![0; results.links.len()];
    let (mut unroutable, mut at_inputs) = (0, 0);
    for loss in &results.losses {
        match (loss.place, loss.cause) {
            (DropSite::Link(link), _) => by_link[link as usize] += loss.packets,
            (DropSite::Node(_), DropCause::NoRoute) => unroutable += loss.packets,
            (DropSite::Node(_), _) => at_inputs += loss.packets,
        }
        found.at_most("the first loss of a row", loss.first, loss.last);
        found.at_most("the last loss of a row", loss.last, results.end);
    }
    found.equal("losses without a route", unroutable, packets.unroutable);
    found.equal("losses at inputs", at_inputs, packets.input_dropped);
    for (link, (lost, totals)) in by_link.into_iter().zip(&results.links).enumerate() {
        found.equal(format_args!("losses of link {link}"), lost, totals.dropped);
    }
}

/// No link sends more than it can.
fn of_links(topology: &Topology, results: &Results, found: &mut Found) {
    for (link, (totals, spec)) in (0..).zip(results.links.iter().zip(&topology.links)) {
        let rate = results.mean_rate(link, spec.condition.rate, Time::ZERO, results.end);
        let most = carried(rate, Time::ZERO, results.end);
        found.at_most(format_args!("bytes that link {link} sent"), totals.sent_bytes(), most);
        found.at_most(format_args!("bytes that link {link} marked"), totals.marked, totals.packets);
        let waiting = totals.never_sent_bytes + totals.backlog_bytes;
        found.at_most(format_args!("bytes that link {link} never sent"), waiting, totals.bytes);
    }
}

/// The bytes that leave at this rate in this time, and a byte or two of rounding.
fn carried(rate: Rate, from: Time, to: Time) -> u64 {
    const PS_BITS: u128 = 8_000_000_000_000;
    let time = u128::from(to.as_ps() - from.as_ps());
    // A mean rate is a whole number of bits per second.
    ((u128::from(rate.as_bps() + 1) * time).div_ceil(PS_BITS)) as u64 + 1
}

/// Classes of a port took and marked what their link did, but for pauses and credits, and dropped
/// no more.
fn of_classes(topology: &Topology, results: &Results, found: &mut Found) {
    let mut sums: BTreeMap<u32, [u64; 4]> = BTreeMap::new();
    for of_class in &results.classes {
        let totals = of_class.totals;
        let sum = sums.entry(of_class.link).or_default();
        let own = [totals.packets, totals.bytes, totals.marked, totals.dropped];
        sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    let has_credits = results.scheme.iter().any(|counter| counter.name == "credits_sent");
    let may_pause = topology.shared_buffer.is_some_and(|memory| memory.pause.is_some());
    for (link, [packets, bytes, marked, dropped]) in sums {
        let totals = &results.links[link as usize];
        let of = |what: &str| format!("{what} of link {link} and of its classes");
        found.at_most(of("packets"), packets, totals.packets);
        found.at_most(of("bytes"), bytes, totals.bytes);
        found.at_most(of("drops"), dropped, totals.dropped);
        found.equal(of("marks"), marked, totals.marked);
        // Beside its classes a link sends pause frames, and credits, whose sizes differ.
        if !has_credits {
            let frames = totals.packets.saturating_sub(packets);
            let least = u64::from(Packet::LEAST_WIRE_BYTES);
            found.equal(of("bytes"), totals.bytes, bytes + frames * least);
            found.at_most(of("packets beside classes"), frames, if may_pause { u64::MAX } else { 0 });
        }
    }
}

/// A class of a port is paused because of one link at a time.
fn of_pauses(results: &Results, found: &mut Found) {
    let mut by_class: BTreeMap<(u32, u8), u64> = BTreeMap::new();
    for pause in &results.pauses {
        let (link, totals) = (pause.link, &pause.totals);
        *by_class.entry((link, pause.class)).or_default() += totals.paused.as_ps();
        found.at_most(format_args!("the longest pause of link {link}"), totals.longest, totals.paused);
        let most = u128::from(totals.longest.as_ps()) * u128::from(totals.pauses);
        found.at_most(format_args!("the pauses of link {link}"), u128::from(totals.paused.as_ps()), most);
        found.at_most(format_args!("the last pause of link {link}"), totals.last, results.end);
    }
    for ((link, class), paused) in by_class {
        let what = format_args!("the pauses of class {class} of link {link}").to_string();
        found.at_most(what, paused, results.end.as_ps());
    }
}

/// Intervals add up to the run; in none a link sends more than it can, or holds more than the most
/// that it held.
fn of_samples(topology: &Topology, results: &Results, found: &mut Found) {
    #[derive(Debug, Default, Clone, Copy, PartialEq)]
    struct Sums {
        sent_bytes: u64,
        dropped: u64,
        marked: u64,
        paused_ps: u64,
    }
    let mut sums = vec![(Sums::default(), 0); results.links.len()];
    let every = results.samples.every.map_or(1, |every| every.as_ps().max(1));
    for sample in &results.samples.links {
        let LinkSample {
            at,
            link,
            dropped,
            marked,
            sent_bytes,
            backlog_bytes,
            largest_backlog_bytes,
            paused,
        } = *sample;
        let here = format!("of link {link} at {at:?}");
        found.at_most(format_args!("the backlog {here}"), backlog_bytes, largest_backlog_bytes);
        let begin = Time::from_ps((at.as_ps() - 1) / every * every);
        let first = topology.links[link as usize].condition.rate;
        let most = carried(results.mean_rate(link, first, begin, at), begin, at);
        found.at_most(format_args!("bytes sent {here}"), sent_bytes, most);
        let (sum, last) = &mut sums[link as usize];
        sum.sent_bytes += sent_bytes;
        sum.dropped += u64::from(dropped);
        sum.marked += u64::from(marked);
        sum.paused_ps += paused.as_ps();
        *last = if at == results.end { backlog_bytes } else { 0 };
    }
    let mut paused = vec![0; results.links.len()];
    for pause in &results.pauses {
        paused[pause.link as usize] += pause.totals.paused.as_ps();
    }
    for (link, ((sum, backlog_bytes), totals)) in sums.into_iter().zip(&results.links).enumerate() {
        let whole = Sums {
            sent_bytes: totals.bytes.saturating_sub(totals.never_sent_bytes + backlog_bytes),
            dropped: totals.dropped,
            marked: totals.marked,
            paused_ps: paused[link],
        };
        found.equal(format_args!("all intervals of link {link}, and the run"), sum, whole);
    }
}

/// Identities of one flow in a run that ended then. `is_bounded` says whether its ideal is one of
/// the fabric that it ran over.
pub fn of_flow(flow: &Flow, record: &FlowRecord, end: Time, is_bounded: bool) -> Vec<String> {
    let mut found = Found::default();
    let start = record.start(flow);
    if !flow.background {
        found.at_most("bytes delivered", record.delivered_bytes, flow.size_bytes);
    }
    if let Some(delivered) = record.delivered {
        let fct = delivered.since(start);
        found.equal("bytes delivered of a flow that finished", record.delivered_bytes, flow.size_bytes);
        found.at_most("the start of a flow that finished", start, delivered);
        found.at_most("the end of a flow", delivered, end);
        if is_bounded {
            found.at_most("the ideal completion time", record.ideal, fct);
        }
        // In full, so that a new part is not forgotten.
        let FctBreakdown {
            transmission,
            waits,
            reordering,
            timeouts,
            acknowledgement,
            window,
            pause,
            paused_tier: _,
            paused_trail: _,
            trails: _,
        } = record.fct_breakdown;
        let parts = [transmission, reordering, timeouts, acknowledgement, window, pause];
        let sum: u64 = parts.iter().chain(&waits).map(|part| part.as_ps()).sum();
        found.equal("the parts of a completion time, and the whole", sum, fct.as_ps());
    }
    if let Some(acknowledged) = record.acknowledged {
        found.at_most("the last byte before the last acknowledgement", record.delivered, Some(acknowledged));
        found.equal("whether the receiver of an acknowledged flow has all", record.delivered.is_some(), true);
    }
    let (sender, receiver) = (&record.sender, &record.receiver);
    found.at_most(
        "segments that arrived or were dropped",
        receiver.segments_received + u64::from(record.dropped),
        sender.segments_sent,
    );
    found.at_most("retransmissions", u64::from(sender.retransmissions), sender.segments_sent);
    found.at_most("segments out of order", u64::from(receiver.out_of_order), receiver.segments_received);
    for (what, count) in [
        ("duplicates", receiver.duplicates),
        ("refused", receiver.refused),
        ("marked", receiver.marked),
        ("on another path", record.path_changes),
    ] {
        let arrived = receiver.segments_received + u64::from(receiver.trimmed);
        found.at_most(format_args!("segments {what}"), u64::from(count), arrived);
    }
    let reasons = record.retransmissions;
    let all = reasons.after_loss + reasons.after_reordering + reasons.after_timeout;
    found.at_most("retransmissions by reason", all, sender.retransmissions);
    found.0
}
