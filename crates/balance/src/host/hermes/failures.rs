//! Failures that timeouts and retransmissions reveal: a path that swallows a pair of hosts, or
//! drops at random.

use weft_packet::HostId;
use weft_units::{Span, Time};

/// Timeouts of a destination on a path, since an acknowledgement last came by it.
#[derive(Debug, Clone, Copy)]
struct Pair {
    key: (HostId, u16),
    timeouts: u8,
    failed_until: Time,
}

/// The blackholes that a host has met: by destination and path, and so by pair of hosts. Only pairs
/// that have timed out take room: at most one for each host and path to it.
#[derive(Debug, Clone, Default)]
pub struct Blackholes {
    pairs: Vec<Pair>,
}

impl Blackholes {
    fn place(&self, dst: HostId, path: u16) -> Result<usize, usize> {
        self.pairs.binary_search_by_key(&(dst, path), |pair| pair.key)
    }

    /// A flow to `dst` timed out on `path`. True if from now on, for the time given, the path is a
    /// blackhole for the pair. What times out while it is one says nothing new.
    pub fn timed_out(&mut self, dst: HostId, path: u16, now: Time, limit: u8, failed_for: Span) -> bool {
        let place = self.place(dst, path).unwrap_or_else(|place| {
            let key = (dst, path);
            self.pairs.insert(place, Pair { key, timeouts: 0, failed_until: Time::ZERO });
            place
        });
        let pair = &mut self.pairs[place];
        if now < pair.failed_until {
            return false;
        }
        pair.timeouts = pair.timeouts.saturating_add(1);
        if pair.timeouts < limit {
            return false;
        }
        // After the time given it begins from nothing.
        pair.timeouts = 0;
        pair.failed_until = now.saturating_add(failed_for);
        true
    }

    /// A packet to `dst` by `path` was acknowledged: it is no blackhole for the pair.
    #[inline]
    pub fn acknowledged(&mut self, dst: HostId, path: u16) {
        if !self.pairs.is_empty()
            && let Ok(place) = self.place(dst, path)
        {
            self.pairs.remove(place);
        }
    }

    /// Whether `path` is a blackhole for the pair.
    #[inline]
    pub fn swallow(&self, dst: HostId, path: u16, now: Time) -> bool {
        !self.pairs.is_empty()
            && self.place(dst, path).is_ok_and(|place| now < self.pairs[place].failed_until)
    }

    /// Bytes that it keeps.
    pub fn state_bytes(&self) -> u64 {
        (self.pairs.len() * size_of::<Pair>()) as u64
    }
}

/// Packets of one path, and how many of them were sent again, in a window of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Losses {
    until: Time,
    sent: u32,
    again: u32,
}

impl Losses {
    /// A packet goes out, perhaps again.
    #[inline]
    pub fn count(&mut self, again: bool) {
        self.sent += 1;
        self.again += u32::from(again);
    }

    /// A timeout: what comes again of it goes out by whatever path, but was lost on this one.
    pub fn count_timeout(&mut self) {
        self.again += 1;
    }

    /// Whether the window is over. It begins with a packet, and the first packet after it ends it.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }

    /// Begins the next window, and says whether more than this share was sent again in the last
    /// one. Fewer packets than one loss would be too many of say nothing.
    pub fn renew(&mut self, now: Time, window: Span, share: f64) -> bool {
        let last = std::mem::replace(self, Self { until: now.saturating_add(window), sent: 0, again: 0 });
        let sent = f64::from(last.sent);
        sent * share >= 1.0 && f64::from(last.again) > sent * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Span = Span::from_ms(50);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn three_timeouts_of_a_pair_on_a_path_without_an_acknowledgement_are_a_blackhole() {
        let (mut holes, far, other) = (Blackholes::default(), HostId(20), HostId(21));
        let mut time_out = |at, dst, path| holes.timed_out(dst, path, ms(at), 3, HOLD);
        // Other destinations and other paths count for themselves.
        assert!(!time_out(1, far, 2) && !time_out(2, far, 2));
        assert!(!time_out(3, other, 2) && !time_out(4, far, 3));
        assert!(time_out(5, far, 2), "the third");
        assert!((6..20).all(|at| !time_out(at, far, 2)), "known");
        let swallowed =
            |at| [(far, 2), (other, 2), (far, 3)].map(|(dst, path)| holes.swallow(dst, path, ms(at)));
        assert_eq!(swallowed(5), [true, false, false]);
        assert_eq!(swallowed(54), [true, false, false]);
        assert_eq!(swallowed(55), [false; 3], "for 50 ms");
    }

    #[test]
    fn an_acknowledgement_begins_the_count_anew() {
        let (mut holes, far) = (Blackholes::default(), HostId(20));
        for round in 0..5 {
            assert!(
                !holes.timed_out(far, 2, ms(round), 3, HOLD) && !holes.timed_out(far, 2, ms(round), 3, HOLD)
            );
            holes.acknowledged(far, 3);
            holes.acknowledged(far, 2);
        }
        assert_eq!(holes.state_bytes(), 0);
        for _ in 0..3 {
            holes.timed_out(far, 2, ms(9), 3, HOLD);
        }
        assert!(holes.swallow(far, 2, ms(9)));
        holes.acknowledged(far, 2);
        assert!(!holes.swallow(far, 2, ms(9)), "what comes back was not swallowed");
    }

    #[test]
    fn more_than_one_percent_sent_again_is_lossy_and_few_packets_say_nothing() {
        for (sent, again, lossy) in [
            (0, 0, false),
            (99, 50, false),
            (100, 1, false),
            (100, 2, true),
            (1_000, 10, false),
            (1_000, 11, true),
        ] {
            let mut losses = Losses::default();
            assert!(losses.is_over(ms(0)));
            assert!(!losses.renew(ms(0), Span::from_ms(10), 0.01), "nothing yet");
            (0..sent).for_each(|packet| losses.count(packet < again));
            assert!(!losses.is_over(ms(9)) && losses.is_over(ms(10)));
            assert_eq!(losses.renew(ms(10), Span::from_ms(10), 0.01), lossy, "{again} of {sent}");
            assert!(!losses.renew(ms(20), Span::from_ms(10), 0.01), "counted once");
        }
    }

    #[test]
    fn a_timeout_counts_as_one_sent_again() {
        let mut losses = Losses::default();
        (0..100).for_each(|packet| losses.count(packet < 1));
        losses.count_timeout();
        assert!(losses.renew(ms(10), Span::from_ms(10), 0.01));
    }
}
