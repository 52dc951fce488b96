//! REPS: entropies that an acknowledgement brought back without a mark are used again, once; for
//! all other packets one is drawn (Bonato et al., EuroSys 2026, arXiv 2407.21625).
//!
//! A flow keeps the last few good entropies in a ring. A packet takes the oldest that was not used
//! again yet, or any if there is none: so a flow begins as oblivious spraying does, and what it
//! finds good it goes on with. When a failure is suspected the ring freezes for a while: no entropy
//! is drawn, as it could lead to the failure; used ones serve again, in turn. After that a few
//! packets explore.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet};
use weft_units::{Span, Time};

use super::entropy::{self, Entropies, EntropyFeedback, EntropyNote, Returned};
use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

#[cfg(test)]
mod tests;

/// Parameters of REPS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How many entropies there are to draw from: a power of two, 1 to 65,536. Source: §2.2, the
    /// values of a UDP source port, and §4.7 for fewer; `uet-htsim` has 64 unless told otherwise
    /// (`-paths`).
    pub entropies: u32,
    /// Good entropies that a flow keeps: 1 to 8. Source: 8 (§3.1, Table 1).
    pub buffer: u8,
    /// When a flow takes it that there is a failure: `timeouts`, with each retransmission timeout;
    /// `quiet-timeouts`, with those before which round trips were short, so that no full queue
    /// explains them; `never`. Source: appendix A: timeouts where full queues trim, quiet ones
    /// where they drop, and no great harm in a wrong guess; §C.4 for never; `uet-htsim` takes
    /// timeouts.
    pub freeze: Freeze,
    /// With `quiet-timeouts`: how many idle round trips the longest round trip may have been: 1 or
    /// more. Source: a guess; appendix A says "high" and "low".
    pub quiet: f64,
    /// With `quiet-timeouts`: how long before a timeout round trips count (time); those of up to
    /// twice that do. Source: a guess; appendix A says "for some time".
    pub look_back: Span,
    /// How long a flow stays frozen (time). Source: 10 ms in `uet-htsim` (`exit_freeze_after`); the
    /// paper has a time, too, but gives none (§3.2).
    pub freeze_for: Span,
    /// Packets after a freeze of which some explore: 0 to 65,535. Source: 16 in `uet-htsim`
    /// (`explore_counter`); the paper gives none (Alg. 1).
    pub explore: u16,
    /// One of so many packets after a freeze takes an entropy that is drawn: 1 to 255. Source: Alg.
    /// 2: one of as many as the buffer holds; `uet-htsim` draws for each, which is 1.
    pub explore_every: u8,
}

/// When a flow takes it that there is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// With each retransmission timeout.
    #[default]
    Timeouts,
    /// With a retransmission timeout before which round trips were short.
    QuietTimeouts,
    /// Never.
    Never,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            entropies: Entropies::ALL,
            buffer: 8,
            freeze: Freeze::Timeouts,
            quiet: 2.0,
            look_back: Span::from_ms(1),
            freeze_for: Span::from_ms(10),
            explore: 16,
            explore_every: 8,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found, allowed| Err(ParameterError { key, found, allowed });
        entropy::check(self.entropies, Entropies::ALL, "a power of two, 1 to 65536")?;
        if !(1..=MOST_KEPT).contains(&usize::from(self.buffer)) {
            return refuse("buffer", self.buffer.to_string(), "1 to 8");
        }
        if !(self.quiet >= 1.0 && self.quiet.is_finite()) {
            return refuse("quiet", self.quiet.to_string(), "1 or more");
        }
        if self.look_back < Span::from_us(1) {
            return refuse("look_back", self.look_back.to_string(), "1us or more");
        }
        if self.explore_every == 0 {
            return refuse("explore_every", "0".to_owned(), "1 to 255");
        }
        Ok(())
    }
}

const MOST_KEPT: usize = 8;

/// Good entropies, the last few, in a ring. The `fresh` latest were not used again yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ring {
    kept: [u16; MOST_KEPT],
    /// Where the next one is written.
    head: u8,
    fresh: u8,
    filled: u8,
    /// Where used ones serve again next.
    again: u8,
}

impl Ring {
    /// Alg. 1: a good entropy came back.
    fn keep(&mut self, entropy: u16, size: u8) {
        self.kept[usize::from(self.head)] = entropy;
        self.head = (self.head + 1) % size;
        self.fresh = (self.fresh + 1).min(size);
        self.filled = (self.filled + 1).min(size);
    }

    /// Alg. 2: the oldest one that was not used again yet.
    fn take(&mut self, size: u8) -> Option<u16> {
        self.fresh = self.fresh.checked_sub(1)?;
        let place = (self.head + size - 1 - self.fresh) % size;
        Some(self.kept[usize::from(place)])
    }

    /// Alg. 2, frozen: the next one of all, used or not.
    fn take_again(&mut self) -> Option<u16> {
        let place = self.again.checked_rem(self.filled)?;
        self.again = place + 1;
        Some(self.kept[usize::from(place)])
    }
}

/// The longest round trip of late: of the period that goes on and of the one before, in ns.
#[derive(Debug, Clone, Copy, Default)]
struct Longest {
    period: u32,
    ns: [u32; 2],
}

impl Longest {
    fn turn(&mut self, now: Time, period: Span) {
        let number = (now.as_ps() / period.as_ps()) as u32;
        match number.wrapping_sub(self.period) {
            0 => return,
            1 => self.ns = [0, self.ns[0]],
            _ => self.ns = [0; 2],
        }
        self.period = number;
    }

    fn note(&mut self, now: Time, period: Span, rtt: Span) {
        self.turn(now, period);
        self.ns[0] = self.ns[0].max((rtt.as_ps() / 1_000).min(u32::MAX.into()) as u32);
    }

    fn longest(&mut self, now: Time, period: Span) -> Span {
        self.turn(now, period);
        Span::from_ns(self.ns[0].max(self.ns[1]).into())
    }
}

/// REPS at one host.
#[derive(Debug, Clone)]
pub struct Reps {
    params: Params,
    entropies: Entropies,
    /// By rack: what is no long round trip; empty unless timeouts are to be quiet ones.
    short_rtts: Box<[Span]>,
    counts: Counts,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    recycled: u64,
    reused: u64,
    drawn: u64,
    freezes: u64,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    ring: Ring,
    returned: Returned,
    /// Until when it is frozen; zero if it is not.
    frozen_until: Time,
    /// Packets that may explore still.
    exploring: u16,
    /// The rack that it sends to.
    rack: u16,
    longest: Longest,
}

impl Flow {
    const fn is_frozen(&self) -> bool {
        self.frozen_until.as_ps() > 0
    }
}

impl Reps {
    /// Alg. 1: the freeze is over.
    fn thaw(&self, now: Time, flow: &mut Flow) {
        if flow.is_frozen() && now > flow.frozen_until {
            flow.frozen_until = Time::ZERO;
            flow.exploring = self.params.explore;
        }
    }

    /// Alg. 2.
    fn next<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) -> u16 {
        self.thaw(cx.now(), flow);
        if flow.exploring > 0 {
            flow.exploring -= 1;
            if flow.exploring.is_multiple_of(self.params.explore_every.into()) {
                self.counts.drawn += 1;
                return self.entropies.draw(cx);
            }
        }
        if let Some(entropy) = flow.ring.take(self.params.buffer) {
            self.counts.recycled += 1;
            return entropy;
        }
        if flow.is_frozen()
            && let Some(entropy) = flow.ring.take_again()
        {
            self.counts.reused += 1;
            return entropy;
        }
        self.counts.drawn += 1;
        self.entropies.draw(cx)
    }

    /// Appendix A: whether a timeout is taken for a failure.
    fn suspects(&self, now: Time, flow: &mut Flow) -> bool {
        match self.params.freeze {
            Freeze::Timeouts => true,
            Freeze::Never => false,
            Freeze::QuietTimeouts => {
                let short = self.short_rtts.get(usize::from(flow.rack)).copied().unwrap_or_default();
                flow.longest.longest(now, self.params.look_back) <= short
            }
        }
    }
}

impl HostScheme for Reps {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        let short = |rtt: &Span| Span::from_ps((rtt.as_ps() as f64 * params.quiet) as u64);
        let short_rtts = if params.freeze == Freeze::QuietTimeouts { info.base_rtts } else { &[] };
        Self {
            params: params.clone(),
            entropies: Entropies::new(params.entropies),
            short_rtts: short_rtts.iter().map(short).collect(),
            counts: Counts::default(),
        }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, ..HostHooks::default() }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        if packet.kind != Kind::Data {
            return flow.returned.stamp(packet);
        }
        if !self.short_rtts.is_empty() {
            flow.rack = cx.rack_of(packet.dst);
        }
        let entropy = self.next(cx, flow);
        EntropyNote { entropy, fate: EntropyFeedback::Good }.write(packet);
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        flow.returned.note(&packet);
        if entropy::is_acknowledgement(packet.kind)
            && let Some(note) = EntropyNote::read(&packet)
        {
            let now = cx.now();
            self.thaw(now, flow);
            if note.fate == EntropyFeedback::Good {
                flow.ring.keep(note.entropy, self.params.buffer);
            }
            if !self.short_rtts.is_empty()
                && let Some(rtt) = now.checked_since(packet.sent)
            {
                flow.longest.note(now, self.params.look_back, rtt);
            }
        }
        cx.deliver(packet);
    }

    fn timed_out<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        let now = cx.now();
        self.thaw(now, flow);
        if !flow.is_frozen() && flow.exploring == 0 && self.suspects(now, flow) {
            self.counts.freezes += 1;
            flow.frozen_until = now.saturating_add(self.params.freeze_for);
        }
    }

    /// Bytes of the short round trips to each rack, if they are kept.
    fn state_bytes(&self) -> u64 {
        self.short_rtts.len() as u64 * 8
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("recycled", self.counts.recycled);
        count("reused", self.counts.reused);
        count("drawn", self.counts.drawn);
        count("freezes", self.counts.freezes);
    }
}
