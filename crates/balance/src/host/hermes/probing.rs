//! Probes: the agent of a rack measures three paths to each other rack, and tells its rack (Hermes
//! §3.1).
//!
//! Power of two choices with memory: each time two paths at random, and the best one of the time
//! before. The agents are the first hosts of the racks. A probe is an ECN-capable packet; the far
//! agent sends it back, with its mark noted, by the path with the same number. What came back is
//! told to the rack's other hosts in one packet for each.

use std::sync::Arc;

use weft_packet::{HostId, Route};
use weft_units::{Span, Stream, Time, mix64};

use super::params::Params;
use crate::{HostContext, HostInfo, Message};

/// Kind of a message: the low bits of its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Probe,
    /// With the mark that the probe had.
    Answer {
        marked: bool,
    },
    Report,
}

impl Kind {
    pub const fn tag(self) -> u32 {
        match self {
            Self::Probe => 0,
            Self::Answer { marked } => 1 | (marked as u32) << 8,
            Self::Report => 2,
        }
    }

    pub const fn of(tag: u32) -> Self {
        match tag & 0xff {
            0 => Self::Probe,
            1 => Self::Answer { marked: tag >> 8 & 1 == 1 },
            _ => Self::Report,
        }
    }
}

/// Bytes of a probe and of its answer on the wire: the least Ethernet frame. Source: the paper
/// (recalled).
pub const PROBE_BYTES: u16 = 64;

/// Result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    pub rack: u16,
    pub path: u16,
    pub rtt: Span,
    pub marked: bool,
}

impl Finding {
    /// Bytes in a report.
    const BYTES: usize = 8;
    /// Ethernet, IP and UDP.
    const HEADER_BYTES: usize = 18 + 20 + 8;
    /// As many as fit into 1,500 bytes.
    const PER_REPORT: usize = (1_500 - Self::HEADER_BYTES) / Self::BYTES;
    const MARKED: u32 = 1 << 31;

    /// Rack and path; round trip in nanoseconds, at most 2.1 s, and the mark.
    fn words(self) -> [u32; 2] {
        let ns = (self.rtt.as_ps() / 1_000).min(u64::from(Self::MARKED) - 1) as u32;
        let marked = if self.marked { Self::MARKED } else { 0 };
        [u32::from(self.rack) << 16 | u32::from(self.path), ns | marked]
    }

    fn of(words: [u32; 2]) -> Self {
        Self {
            rack: (words[0] >> 16) as u16,
            path: words[0] as u16,
            rtt: Span::from_ns(u64::from(words[1] & !Self::MARKED)),
            marked: words[1] & Self::MARKED != 0,
        }
    }

    /// Findings in a report.
    pub fn read(contents: &[u32]) -> impl Iterator<Item = Self> {
        contents.chunks_exact(2).map(|words| Self::of([words[0], words[1]]))
    }

    /// Bytes on the wire of a report of so many.
    fn report_bytes(count: usize) -> u16 {
        (Self::HEADER_BYTES + count * Self::BYTES).max(usize::from(PROBE_BYTES)) as u16
    }
}

/// Another rack, as the agent sees it.
#[derive(Debug, Clone, Copy)]
struct Target {
    agent: HostId,
    rack: u16,
    routes: u16,
    /// The answer with the shortest round trip since the last probes went out.
    best: Option<(Span, u16)>,
}

/// Probing agent of a rack.
#[derive(Debug, Clone)]
pub struct Agent {
    interval: Span,
    samples: usize,
    probe_best: bool,
    /// How long after its probes a report follows.
    report_after: Span,
    targets: Box<[Target]>,
    /// The other hosts of the rack.
    rack_hosts: Box<[HostId]>,
    found: Vec<u32>,
    /// Labels of the probes for one rack, in order: used again.
    labels: Vec<u16>,
    host: HostId,
    pub counts: Counts,
}

/// Counters of the messages that an agent sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub probes: u64,
    pub reports: u64,
    pub report_bytes: u64,
}

/// Timers of a host.
pub mod token {
    pub const PROBE: u32 = 0;
    pub const REPORT: u32 = 1;
    /// And the number of a path: a flow that it had is over.
    pub const OVER: u32 = 2;
}

impl Agent {
    /// The agent, if this host is the first of its rack and there is a path to choose. A report
    /// follows after the longest time that the answer of a path which is not bad can take.
    pub fn new(params: &Params, info: &HostInfo<'_>) -> Option<Self> {
        let (&first, others) = info.rack_hosts.split_first()?;
        let target = |rack: u16| Target {
            agent: info.first_hosts[usize::from(rack)],
            rack,
            routes: info.routes[usize::from(rack)],
            best: None,
        };
        let targets: Box<[Target]> = (0..info.racks)
            .filter(|&rack| rack != info.rack)
            .map(target)
            .filter(|to| to.routes > 1)
            .collect();
        if first != info.host || targets.is_empty() {
            return None;
        }
        let answered = |to: &Target| params.answered_after(info.base_rtts[usize::from(to.rack)]);
        Some(Self {
            interval: params.probe_interval,
            samples: usize::from(params.samples),
            probe_best: params.probe_best,
            report_after: targets.iter().map(answered).max()?.min(params.probe_interval),
            targets,
            rack_hosts: others.into(),
            found: Vec::new(),
            labels: Vec::new(),
            host: info.host,
            counts: Counts::default(),
        })
    }

    /// Agents begin anywhere within an interval, so that they do not probe in step.
    pub fn start<C: HostContext + ?Sized>(&self, cx: &mut C) {
        let share = cx.random().unit();
        cx.set_host_timer(Span::from_ps((self.interval.as_ps() as f64 * share) as u64), token::PROBE);
    }

    /// Probes each rack: the best path of the last time and some at random.
    pub fn probe<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        cx.set_host_timer(self.interval, token::PROBE);
        if !self.rack_hosts.is_empty() {
            cx.set_host_timer(self.report_after, token::REPORT);
        }
        for target in &mut self.targets {
            // A rack without hosts has no agent.
            let routes = target.routes.min(cx.routes_to_rack(target.rack));
            if routes < 2 || cx.rack_of(target.agent) != target.rack {
                continue;
            }
            self.labels.clear();
            let best = target.best.take().filter(|&(_, label)| self.probe_best && label < routes);
            self.labels.extend(best.map(|(_, label)| label));
            draw_others(&mut self.labels, routes, self.samples, cx.random());
            for &label in &self.labels {
                cx.send(probe(self.host, target.agent, label, cx.now()));
            }
            self.counts.probes += self.labels.len() as u64;
        }
    }

    /// An answer came.
    pub fn note(&mut self, finding: Finding) {
        let place = self.targets.binary_search_by_key(&finding.rack, |target| target.rack);
        if let Ok(place) = place {
            let best = &mut self.targets[place].best;
            if best.is_none_or(|(rtt, _)| finding.rtt < rtt) {
                *best = Some((finding.rtt, finding.path));
            }
        }
        if !self.rack_hosts.is_empty() {
            self.found.extend(finding.words());
        }
    }

    /// Tells the rack what came back since the last report.
    pub fn report<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        for words in self.found.chunks(Finding::PER_REPORT * 2) {
            let contents: Arc<[u32]> = words.into();
            let wire_bytes = Finding::report_bytes(words.len() / 2);
            for &peer in &self.rack_hosts {
                let contents = Some(Arc::clone(&contents));
                cx.send(Message {
                    peer,
                    wire_bytes,
                    tag: Kind::Report.tag(),
                    contents,
                    ..Message::default()
                });
            }
            self.counts.reports += self.rack_hosts.len() as u64;
            self.counts.report_bytes += self.rack_hosts.len() as u64 * u64::from(wire_bytes);
        }
        self.found.clear();
    }

    /// Bytes that it keeps.
    pub fn state_bytes(&self) -> u64 {
        (self.targets.len() * size_of::<Target>() + self.rack_hosts.len() * size_of::<HostId>()) as u64
    }
}

/// A probe of one path.
fn probe(from: HostId, to: HostId, label: u16, now: Time) -> Message {
    Message {
        peer: to,
        wire_bytes: PROBE_BYTES,
        route: Route::label(label),
        // A pair of agents is a flow.
        entropy: mix64(u64::from(from.0) << 16 | u64::from(to.0)) as u32,
        tag: Kind::Probe.tag(),
        number: u32::from(label),
        stamp: now,
        marked: true,
        ..Message::default()
    }
}

/// The answer to a probe, by this route, with this time stamp.
pub fn answer(probe: &Message, route: Route, stamp: Time) -> Message {
    Message {
        peer: probe.peer,
        wire_bytes: PROBE_BYTES,
        route,
        entropy: probe.entropy,
        tag: Kind::Answer { marked: probe.marked }.tag(),
        number: probe.number,
        stamp,
        ..Message::default()
    }
}

/// The route back with the same number, if there is a choice. Where both directions have the same
/// choices, it leads over the same switches.
#[inline]
pub fn mirrored(label: u16, routes: u16) -> Route {
    if routes > 1 { Route::label(label % routes) } else { Route::ANY }
}

/// Adds to the labels, which are in order and different, up to so many others below `routes`.
fn draw_others(labels: &mut Vec<u16>, routes: u16, count: usize, random: &mut Stream) {
    for _ in 0..count.min(usize::from(routes) - labels.len()) {
        // One of those that are left, counted past those that are taken.
        let mut label = random.below(u32::from(routes) - labels.len() as u32) as u16;
        let mut place = 0;
        while labels.get(place).is_some_and(|&taken| taken <= label) {
            label += 1;
            place += 1;
        }
        labels.insert(place, label);
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Purpose;

    use super::*;

    #[test]
    fn a_finding_survives_the_report() {
        for rtt in [Span::ZERO, Span::from_us(55), Span::from_ns(2_147_483_647)] {
            for (rack, path, marked) in [(0, 0, false), (u16::MAX, u16::MAX - 1, true)] {
                let finding = Finding { rack, path, rtt, marked };
                assert_eq!(Finding::read(&finding.words()).collect::<Vec<_>>(), [finding]);
            }
        }
        let slow = Finding { rack: 1, path: 2, rtt: Span::from_s(9), marked: false };
        assert_eq!(Finding::of(slow.words()).rtt, Span::from_ns(2_147_483_647));
    }

    #[test]
    fn a_report_takes_eight_bytes_a_finding_and_at_least_a_frame() {
        assert_eq!([1, 2, 3, 21, 181].map(Finding::report_bytes), [64, 64, 70, 214, 1_494]);
        assert_eq!(Finding::PER_REPORT, 181);
    }

    #[test]
    fn kinds_survive_the_tag() {
        for kind in [Kind::Probe, Kind::Answer { marked: false }, Kind::Answer { marked: true }, Kind::Report]
        {
            assert_eq!(Kind::of(kind.tag()), kind);
        }
    }

    #[test]
    fn random_paths_differ_from_each_other_and_from_the_best_and_are_all_as_likely() {
        let mut stream = Stream::new(1, Purpose::HostScheme, 0);
        let mut counts = [0u64; 8];
        for _ in 0..7_000 {
            let mut labels = vec![3];
            draw_others(&mut labels, 8, 2, &mut stream);
            assert_eq!(labels.len(), 3);
            assert!(labels.is_sorted_by(|a, b| a < b) && labels.contains(&3) && labels[2] < 8, "{labels:?}");
            for &label in &labels {
                counts[usize::from(label)] += 1;
            }
        }
        assert_eq!(counts[3], 7_000);
        // 2,000 each; five standard deviations of 38.
        assert!(counts.iter().all(|&count| count == 7_000 || (1_810..2_190).contains(&count)), "{counts:?}");
        let mut few = vec![1];
        draw_others(&mut few, 2, 5, &mut stream);
        assert_eq!(few, [0, 1], "no more than there are");
    }
}
