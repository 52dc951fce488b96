//! Host stack between a sender and the card of its host in Linux 6.1: segments that leave in bursts
//! (segmentation offload), and small queues, which keep the most of a flow out of its host's own
//! queue.
//!
//! Both are off unless the configuration asks for them. The rules are those of `tcp_write_xmit`,
//! `tcp_tso_autosize`, `tcp_tso_should_defer`, `tcp_small_queue_check` and `tcp_cwnd_validate`.

use std::collections::VecDeque;

use weft_units::{Span, Time};

use super::send_queue::{SendQueue, Sizes};
use crate::congestion::Window;

/// The rules, which all flows share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stack {
    /// Payload of a full segment, bytes.
    pub mss: u64,
    /// How long at its own rate a flow may wait in its host's queue; zero has no limit.
    pub small_queue: Span,
    /// Bytes that a flow may have there at most, whatever its rate.
    pub small_queue_most: u64,
    /// Bytes that a packet counts there beyond its payload.
    pub overhead: u64,
    /// Payload bytes that are handed over at once, at most; below two segments each goes by itself.
    pub burst: u64,
    /// Whether the rate of a flow limits when it hands over.
    pub paces: bool,
    /// Whether an application writes as far ahead as its buffer allows, and not all at once.
    pub writes_ahead: bool,
}

/// A window is left to grow before it is used for a burst: a third of it, `tcp_tso_win_divisor`.
const WINDOW_DIVISOR: u32 = 3;
/// The share of a burst that a short path allows whatever the rate is halved for each 512 us of the
/// smallest round trip, `tcp_tso_rtt_log`.
const RTT_SHIFT: u32 = 9;
/// Segments of a burst at least, `tcp_min_tso_segs`.
const LEAST_BURST: u64 = 2;
/// No burst is waited for beyond this, neither since the last one nor until the next
/// acknowledgement.
const PATIENCE: Span = Span::from_ms(1);
/// Segments of a flow that are not paced, those at its beginning: `tcp_update_skb_after_send`.
const UNPACED: u32 = 10;
/// A burst is cut when so many of its packets' times are left until its turn: byte queue limits let
/// a card that is never idle have three packets, of which one leaves (`dql_completed`).
const CUT_AHEAD: u64 = 2;
/// The rate of a flow counts twice before half of the threshold of slow start, and 1.2 times
/// afterwards: `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`.
const GAINS: (f64, f64) = (2.0, 1.2);

/// Inputs of the rules: a sender that may send new segments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow<'w> {
    pub window: &'w Window,
    /// The first segment that is not acknowledged, the next one, one past the highest sent, one
    /// past the last that the receiver allows, and one past the last of the flow.
    pub una: u32,
    pub next: u32,
    pub max: u32,
    pub edge: u32,
    pub segments: u32,
    pub in_network: u32,
    pub smoothed_rtt: Span,
    pub min_rtt: Span,
    /// A loss is being repaired.
    pub recovers: bool,
    /// When the first segment was sent that is not acknowledged.
    pub first_sent: Option<Time>,
}

/// Segments of a sender that are still in its host's queue, and its use of the window.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    /// When each segment has left, in order, and the bytes that it counts.
    leaving: VecDeque<(Time, u64)>,
    /// When each burst is cut into segments, and the bytes that these count beyond what it did.
    cuts: VecDeque<(Time, u64)>,
    bytes: u64,
    /// When there is room again, if the queue is what the sender waits for.
    pub resume_at: Time,
    last: Time,
    /// When the next segment may be handed over, if the flow is paced.
    paced_until: Time,
    /// The first segment of the last burst.
    burst: u32,
    /// Data that the application has written.
    pub queue: SendQueue,
    /// When it was, or is, cut into segments.
    cut: Time,
    /// The sender waits for more of its window.
    waits: bool,
    /// The window was what limited the sender in this round, or the most that was unacknowledged,
    /// and where the round ends.
    is_limited: bool,
    most: u32,
    round_end: u32,
}

impl Default for Handed {
    fn default() -> Self {
        Self {
            leaving: VecDeque::new(),
            cuts: VecDeque::new(),
            bytes: 0,
            resume_at: Time::NEVER,
            last: Time::ZERO,
            paced_until: Time::ZERO,
            burst: 0,
            queue: SendQueue::default(),
            cut: Time::ZERO,
            waits: false,
            is_limited: true,
            most: 0,
            round_end: 0,
        }
    }
}

/// Burst state of a sender that counts acknowledgements; one that finds losses by time has it per
/// segment.
#[derive(Debug, Clone)]
pub(super) struct Bursts {
    pub handed: Handed,
    /// The first segment of each that is not acknowledged as a whole, and when it was handed over.
    out: VecDeque<(u32, Time)>,
    /// The least that the smoothed round trip was.
    pub min_rtt: Span,
}

impl Default for Bursts {
    fn default() -> Self {
        Self { handed: Handed::default(), out: VecDeque::new(), min_rtt: Span::MAX }
    }
}

impl Bursts {
    /// Takes note of where the sender stands: what is acknowledged, the highest that was sent, and
    /// its round trip.
    pub fn follow(&mut self, una: u32, max: u32, smoothed_rtt: Span) {
        if una == max {
            self.out.clear();
        }
        while self.out.get(1).is_some_and(|&(first, _)| first <= una) {
            self.out.pop_front();
        }
        if !smoothed_rtt.is_zero() {
            self.min_rtt = self.min_rtt.min(smoothed_rtt);
        }
    }

    /// When the burst was handed over that the first segment belongs to that is not acknowledged.
    pub fn first_sent(&self) -> Option<Time> {
        self.out.front().map(|&(_, at)| at)
    }

    /// A burst is handed over, from this segment on.
    pub fn hands_over(&mut self, segment: u32, now: Time) {
        self.handed.begins(segment);
        self.handed.last = now;
        self.out.push_back((segment, now));
    }
}

impl Stack {
    /// Whether it keeps the most of a flow out of its host's queue.
    pub const fn keeps_queue_small(&self) -> bool {
        !self.small_queue.is_zero()
    }

    /// Whether segments leave in bursts.
    pub const fn sends_bursts(&self) -> bool {
        self.burst >= 2 * self.mss
    }

    /// Bytes that the flow sends in `span` as its window and round trip say, before the first round
    /// trip without limit.
    fn at_rate(&self, span: Span, flow: &Flow<'_>) -> u64 {
        if flow.smoothed_rtt.is_zero() {
            return u64::MAX;
        }
        let Window { cwnd, ssthresh, .. } = *flow.window;
        let gain = if cwnd < ssthresh / 2.0 { GAINS.0 } else { GAINS.1 };
        let window = cwnd.floor().max(f64::from(flow.max - flow.una)) * self.mss as f64;
        (gain * window * span.as_ps() as f64 / flow.smoothed_rtt.as_ps() as f64) as u64
    }

    /// Segments of a burst at most: what the flow sends in a millisecond, and more on short paths.
    fn largest_burst(&self, flow: &Flow<'_>) -> u32 {
        let halvings = (flow.min_rtt.as_ps() / Span::from_us(1).as_ps()) >> RTT_SHIFT;
        let for_near = if halvings < u64::from(u32::BITS) { self.burst >> halvings } else { 0 };
        let bytes = self.at_rate(PATIENCE, flow).saturating_add(for_near).min(self.burst);
        (bytes / self.mss).max(LEAST_BURST) as u32
    }

    /// Sizes of packets in the send queue.
    pub const fn sizes(&self) -> Sizes {
        Sizes { mss: self.mss, overhead: self.overhead, full: (self.burst / self.mss) as u32 }
    }

    /// How many new segments are to be handed over now; none if it is better to wait for an
    /// acknowledgement. The window has room.
    pub fn burst(&self, flow: &Flow<'_>, handed: &mut Handed, now: Time) -> u32 {
        let offered = flow.edge.saturating_sub(flow.next);
        let full = self.sizes().full;
        if full < 2 {
            return offered.min(flow.segments.saturating_sub(flow.next)).min(1);
        }
        let (end, is_last) = handed.queue.first_packet(flow.next, flow.segments, full);
        let packet = end.saturating_sub(flow.next);
        if offered == 0 || packet == 0 {
            return 0;
        }
        let window = flow.window.segments();
        let allowed = window - flow.in_network;
        let first = First { packet, is_last, largest: self.largest_burst(flow), allowed, offered };
        if packet > 1 && defers(flow, handed, now, first) {
            handed.waits |= allowed < offered && allowed <= packet;
            return 0;
        }
        // Two bursts at least are to be on their way.
        let count = packet.min(allowed.min((window / 2).max(1))).min(first.largest).min(offered);
        handed.queue.cut_off(flow.next + count);
        count
    }

    /// Whether the host's queue has so little of the flow that it may hand over more: `count`
    /// segments, new or `again`. If not, the sender is to ask at [`Handed::resume_at`].
    pub fn has_room(&self, flow: &Flow<'_>, handed: &mut Handed, count: u32, again: bool) -> bool {
        if !self.keeps_queue_small() {
            return true;
        }
        let burst = u64::from(count) * self.mss + self.overhead;
        let limit = self.at_rate(self.small_queue, flow).max(2 * burst).min(self.small_queue_most);
        let limit = if again { 2 * limit } else { limit };
        // A sender with one burst out, or none, need not wait for its host. Linux counts one byte
        // more: `sk_wmem_alloc` begins with 1.
        if handed.bytes < limit || flow.una >= handed.burst {
            return true;
        }
        handed.resume_at = handed.when_below(limit);
        false
    }

    /// Whether the rate of the flow lets it hand over more now. If not, the sender is to ask at
    /// [`Handed::resume_at`].
    pub fn is_its_time(&self, handed: &mut Handed, now: Time) -> bool {
        if !self.paces || handed.paced_until <= now {
            return true;
        }
        handed.resume_at = handed.paced_until;
        false
    }

    /// So many segments were handed over: the next ones wait until these have left at the flow's
    /// rate.
    pub fn paces_after(&self, flow: &Flow<'_>, handed: &mut Handed, count: u32, now: Time) {
        if !self.paces || flow.max < UNPACED {
            return;
        }
        let second = Span::from_s(1);
        let bytes_a_second = self.at_rate(second, flow);
        if bytes_a_second < u64::MAX {
            let bytes = u128::from(count) * u128::from(self.mss);
            let takes_ps = bytes * u128::from(second.as_ps()) / u128::from(bytes_a_second.max(1));
            handed.paced_until = now.saturating_add(Span::from_ps(takes_ps as u64));
        }
    }

    /// A segment is handed over, the first of a burst or another. If the stack keeps its host's
    /// queue small, `sent` says from when to when it leaves the host.
    ///
    /// A burst is one packet until it is nearly its turn. Then it is cut, and each segment counts
    /// what only the first did, until it has left: `tcp_gso_segment`.
    pub fn hands_over(&self, handed: &mut Handed, now: Time, is_first: bool, sent: Option<(Time, Time)>) {
        handed.last = now;
        let Some((turn, leaves)) = sent else { return };
        handed.leaving.push_back((leaves, self.mss + self.overhead));
        handed.bytes += self.mss;
        if is_first {
            handed.bytes += self.overhead;
            let ahead = leaves.since(turn) * CUT_AHEAD;
            handed.cut = now.saturating_add(turn.since(now).saturating_sub(ahead));
        } else if handed.cut <= now {
            handed.bytes += self.overhead;
        } else {
            match handed.cuts.back_mut().filter(|cut| cut.0 == handed.cut) {
                Some(cut) => cut.1 += self.overhead,
                None => handed.cuts.push_back((handed.cut, self.overhead)),
            }
        }
    }
}

/// The packet that is first in the queue, and what may be sent of it, in segments.
#[derive(Debug, Clone, Copy)]
struct First {
    packet: u32,
    /// There is no other behind it.
    is_last: bool,
    /// Segments that the rate of the flow allows at once.
    largest: u32,
    /// Segments that the congestion window and the receive window have room for.
    allowed: u32,
    offered: u32,
}

/// Whether a larger burst is worth waiting for: `tcp_tso_should_defer`.
fn defers(flow: &Flow<'_>, handed: &Handed, now: Time, first: First) -> bool {
    let First { packet, is_last, largest, allowed, offered } = first;
    let room = allowed.min(offered);
    let window = flow.window.segments().min(flow.edge - flow.una);
    let suffices = room >= largest || WINDOW_DIVISOR * room >= window || (!is_last && room >= packet);
    if flow.recovers || now.since(handed.last) > PATIENCE || suffices {
        return false;
    }
    let soon = PATIENCE.min(flow.smoothed_rtt / 2);
    let awaited = flow.first_sent.map(|sent| sent.saturating_add(flow.smoothed_rtt));
    if awaited.is_none_or(|at| at > now.saturating_add(soon)) {
        return false;
    }
    // The last packet of a flow will not get any larger.
    room <= packet || flow.next + packet < flow.segments
}

impl Handed {
    /// Forgets what has left the host by now.
    pub fn settle(&mut self, now: Time) {
        self.resume_at = Time::NEVER;
        while let Some(&(at, more)) = self.cuts.front()
            && at <= now
        {
            self.cuts.pop_front();
            self.bytes += more;
        }
        while let Some(&(at, bytes)) = self.leaving.front()
            && at <= now
        {
            self.leaving.pop_front();
            self.bytes -= bytes;
        }
    }

    /// A burst of new segments begins with this one.
    pub const fn begins(&mut self, segment: u32) {
        self.burst = segment;
    }

    /// Whether the last burst of new segments began with this one.
    pub const fn began_with(&self, segment: u32) -> bool {
        self.burst == segment
    }

    /// When the queue has less than `limit` bytes of the flow.
    fn when_below(&self, limit: u64) -> Time {
        let mut bytes = self.bytes;
        let mut cuts = self.cuts.iter().peekable();
        for &(at, leaving) in &self.leaving {
            while let Some(&(_, more)) = cuts.next_if(|cut| cut.0 <= at) {
                bytes += more;
            }
            bytes -= leaving;
            if bytes < limit {
                return at;
            }
        }
        Time::NEVER
    }

    /// The sender has sent what it could: remembers whether the window was what limited it.
    pub fn note_use(&mut self, flow: &Flow<'_>, has_sent: bool) {
        let is_limited = std::mem::take(&mut self.waits) || flow.in_network >= flow.window.segments();
        if !has_sent && !is_limited {
            return;
        }
        let out = flow.max - flow.una;
        if flow.una >= self.round_end || is_limited || (!self.is_limited && out > self.most) {
            (self.is_limited, self.most, self.round_end) = (is_limited, out, flow.next);
        }
    }

    /// Whether the window may grow: a window that is not used says nothing of the path.
    pub fn uses(&self, window: &Window) -> bool {
        self.is_limited || (window.cwnd < window.ssthresh && window.segments() < 2 * self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Time {
        Time::ZERO.saturating_add(Span::from_us(us))
    }

    fn stack(burst_segments: u64) -> Stack {
        Stack {
            mss: 1_000,
            small_queue: Span::from_ms(1),
            small_queue_most: u64::MAX,
            overhead: 100,
            burst: 1_000 * burst_segments,
            paces: false,
            writes_ahead: false,
        }
    }

    #[test]
    fn a_burst_counts_as_one_packet_until_two_others_are_ahead_and_then_as_many() {
        let stack = stack(4);
        let mut handed = Handed::default();
        // Two bursts of four segments, each of which takes 10 us. It is the turn of the first, and
        // the card takes the second after 20 us.
        for segment in 0..8 {
            let turn = us(10 * segment);
            stack.hands_over(&mut handed, us(0), segment % 4 == 0, Some((turn, us(10 * segment + 10))));
        }
        assert_eq!(handed.bytes, 4 * 1_100 + 4_100);
        let below = [8_500, 7_400, 6_600, 5_500, 4_401, 4_400, 3_300, 1_101, 1_100]
            .map(|limit| handed.when_below(limit));
        assert_eq!(below, [10, 20, 30, 40, 40, 50, 60, 70, 80].map(us));
        for (at, bytes) in [
            (0, 8_500),
            (10, 7_400),
            (20, 6_600),
            (30, 5_500),
            (40, 4_400),
            (50, 3_300),
            (79, 1_100),
            (80, 0),
        ] {
            handed.settle(us(at));
            assert_eq!(handed.bytes, bytes, "{at} us");
        }
    }

    #[test]
    fn a_packet_that_was_cut_off_and_had_to_wait_stays_as_long() {
        let stack = stack(8);
        let window = Window::new(20.0, 100.0, 0.0);
        let flow = |next, in_network| Flow {
            window: &window,
            una: 0,
            next,
            max: next,
            edge: 100,
            segments: 100,
            in_network,
            smoothed_rtt: Span::from_ms(1),
            min_rtt: Span::from_us(10),
            recovers: true,
            first_sent: None,
        };
        let mut handed = Handed::default();
        assert_eq!(stack.burst(&flow(16, 17), &mut handed, us(0)), 3, "as the window says");
        assert_eq!(stack.burst(&flow(16, 10), &mut handed, us(0)), 3, "though there is more room by now");
        assert_eq!(
            stack.burst(&flow(19, 10), &mut handed, us(0)),
            5,
            "the rest of what was written together"
        );
        assert_eq!(stack.burst(&flow(24, 10), &mut handed, us(0)), 8);
    }
}
