//! The receive window as Linux 6.1 offers it: small at first, then as much as may come in the next
//! round trip (dynamic right-sizing). The application reads at once whatever is in order.
//!
//! The rules are those of `tcp_rcv_space_adjust`, `tcp_grow_window`, `tcp_rcv_rtt_update`,
//! `__tcp_select_window` and `tcp_select_window`, in segments for bytes.

use weft_packet::Packet;
use weft_units::{Span, Time};

use super::timers::elapsed;

/// The rules, which all flows share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offers {
    /// Segments.
    pub first: u32,
    /// Segments, at least `first`.
    pub most: u32,
    /// Tick of time stamps; zero is exact.
    pub tick: Span,
}

/// Segments assumed to be read in the round before the first: `TCP_INIT_CWND`.
pub(super) const FIRST_ROUND: u32 = 10;
/// For how many segments the window grows with each that arrives.
const GROWS_BY: u32 = 2;
/// Memory of a segment, bytes: a packet of 1,500 bytes and what is kept of it, rounded up
/// (`skb->truesize`).
pub(super) const SEGMENT_MEMORY: u64 = 2_304;
/// Share of the window that a segment beyond a hole takes, in percent of its payload of 1,448
/// bytes: a byte of the window stands for two of memory.
const HELD_PERCENT: u64 = (100 * SEGMENT_MEMORY / 2).div_ceil(1_448);
/// The weight of a new sample in the receiver's round trip.
const WEIGHT: u64 = 8;

/// Window that a receiver offers, and its state.
#[derive(Debug, Clone)]
pub(super) struct Offered {
    /// Segments that the buffer has room for, `window_clamp`.
    room: u32,
    /// How many of them are offered by now, `rcv_ssthresh`.
    grown: u32,
    /// One past the last segment that may be sent. It never goes back.
    edge: u32,
    /// Window that the last acknowledgement offered, `rcv_wnd`.
    last: u32,
    round: Round,
    /// The round trip as the receiver sees it; zero before there is one.
    rtt: Span,
    /// The time stamp, in ticks, of the last sample.
    sampled: Option<u64>,
    /// Since when a whole window is waited for, and where it ends.
    window: Option<(Time, u32)>,
}

/// A round trip in which what is read is counted, `rcvq_space`.
#[derive(Debug, Clone, Copy)]
struct Round {
    since: Option<Time>,
    /// The first segment of the round.
    from: u32,
    /// Segments that were read in the largest round before.
    most: u32,
}

impl Offers {
    /// Initial window of a connection.
    pub fn begin(self) -> Offered {
        Offered {
            room: self.first,
            grown: self.first,
            edge: self.first,
            last: self.first,
            round: Round { since: None, from: 0, most: FIRST_ROUND.min(self.first) },
            rtt: Span::ZERO,
            sampled: None,
            window: None,
        }
    }
}

impl Offered {
    /// A segment has arrived, before it is acknowledged. `expected`: the next one in order after
    /// it; `held`: how many are held. Whether the window has grown: then it is acknowledged at
    /// once.
    pub fn arrives(&mut self, offers: Offers, packet: &Packet, expected: u32, held: u32, now: Time) -> bool {
        self.sample_stamp(offers.tick, packet.sent, now);
        if packet.seq < expected {
            self.sample_window(expected, now);
        }
        let before = self.grown;
        self.grown = before.max(self.free(held).min(before.saturating_add(GROWS_BY)));
        self.grown > before
    }

    /// The round trip as the receiver sees it; zero before there is one.
    pub const fn round_trip(&self) -> Span {
        self.rtt
    }

    /// The window that an acknowledgement of `expected` offers, in segments.
    pub fn window(&mut self, expected: u32, held: u32) -> u16 {
        let window = self.free(held).min(self.grown);
        self.edge = self.edge.max(expected.saturating_add(window));
        self.last = self.edge - expected;
        self.last.min(u32::from(u16::MAX)) as u16
    }

    /// The application reads what is in order: all below `expected`.
    pub fn reads(&mut self, offers: Offers, expected: u32, now: Time) {
        let since = *self.round.since.get_or_insert(now);
        if self.rtt.is_zero() || now.since(since) < self.rtt {
            return;
        }
        let Round { from, most, .. } = self.round;
        let read = expected - from;
        if read > most {
            // Twice what was read, in case of losses, and a cushion; and more if it becomes more
            // from round to round, as in slow start.
            let (read, most) = (u64::from(read), u64::from(most));
            let steady = 2 * read + 16;
            let grows = 2 * (steady * (read - most) / most);
            let room = (steady + grows).min(u64::from(offers.most)) as u32;
            self.room = self.room.max(room);
        }
        self.round = Round { since: Some(now), from: expected, most: most.max(read) };
    }

    /// Free room beside `held` segments.
    fn free(&self, held: u32) -> u32 {
        let taken = u64::from(held) * HELD_PERCENT / 100;
        u64::from(self.room).saturating_sub(taken) as u32
    }

    /// The round trip by time stamps: once for each that is new, and one tick at least. A receiver
    /// takes it from when its acknowledgement was sent that the sender echoes; here from when the
    /// segment was sent: acknowledgements hardly wait.
    fn sample_stamp(&mut self, tick: Span, sent: Time, now: Time) {
        if tick.is_zero() {
            return self.sample(now.since(sent), false);
        }
        let ticks = |time: Time| time.as_ps() / tick.as_ps();
        if self.sampled != Some(ticks(sent)) {
            self.sampled = Some(ticks(sent));
            self.sample(elapsed(tick, sent, now), false);
        }
    }

    /// The round trip by the time in which a whole window arrives: it is that at most.
    fn sample_window(&mut self, expected: u32, now: Time) {
        let since = match self.window {
            Some((_, end)) if expected < end => return,
            Some((since, _)) => Some(since),
            None => None,
        };
        if let Some(since) = since {
            self.sample(now.since(since).max(Span::from_us(1)), true);
        }
        self.window = Some((now, expected.saturating_add(self.last)));
    }

    fn sample(&mut self, took: Span, at_most: bool) {
        if self.rtt.is_zero() || took < self.rtt {
            self.rtt = took;
        } else if !at_most {
            self.rtt = Span::from_ps(self.rtt.as_ps() - self.rtt.as_ps() / WEIGHT + took.as_ps() / WEIGHT);
        }
    }
}
