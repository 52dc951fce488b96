//! Which round-trip times acknowledgements show to a sender that goes by time, and how the
//! retransmission timeout follows them: as in `tcp_clean_rtx_queue`, `tcp_ack_update_rtt` and
//! `tcp_rtt_estimator` of Linux 6.1.

use weft_units::{Span, Time};

use crate::tcp::timers::elapsed;

/// When the segments were sent that an acknowledgement tells of.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tcp) struct Samples {
    /// The first and the last that was sent once, is acknowledged in order now, and had not been
    /// told of before.
    in_order: Option<(Time, Time)>,
    /// The first and the last that was sent once and is newly reported beyond a hole.
    beyond: Option<(Time, Time)>,
    /// Some that are acknowledged in order were sent again.
    again: bool,
}

/// The round-trip times of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tcp) struct Sample {
    /// Round-trip time of the oldest segment, with the time for which its acknowledgement was
    /// delayed: for the timeout.
    pub of_first: Span,
    /// Round-trip time of the newest segment: of the path.
    pub of_last: Span,
}

fn take_in(times: &mut Option<(Time, Time)>, sent: Time) {
    *times = Some((times.map_or(sent, |(first, _)| first), sent));
}

impl Samples {
    /// A segment is acknowledged in order; `known`: it had been told of.
    pub fn acknowledged(&mut self, sent: Time, again: bool, known: bool) {
        self.again |= again;
        if !again && !known {
            take_in(&mut self.in_order, sent);
        }
    }

    /// A segment beyond a hole is told of.
    pub fn arrived_beyond(&mut self, sent: Time, again: bool, known: bool) {
        if !again && !known {
            take_in(&mut self.beyond, sent);
        }
    }

    /// The sample at `now`. Karn's rule: nothing in order if some of that was sent again; then what
    /// arrived beyond a hole tells, and else, if there is new data, the time stamp that it echoes,
    /// in steps of `tick`.
    pub fn sample(self, now: Time, echo: Option<Time>, tick: Span) -> Option<Sample> {
        let since =
            |(first, last): (Time, Time)| Sample { of_first: now.since(first), of_last: now.since(last) };
        let in_order = self.in_order.filter(|_| !self.again).map(since);
        let beyond = self.beyond.map(since);
        let by_segments = in_order.or(beyond).map(|sample| Sample {
            // What arrived beyond a hole was sent last.
            of_last: beyond.unwrap_or(sample).of_last,
            ..sample
        });
        by_segments.or_else(|| {
            let rtt = elapsed(tick, echo?, now);
            Some(Sample { of_first: rtt, of_last: rtt })
        })
    }

    /// How long ago the first segment was sent that arrived beyond a hole.
    pub fn of_first_beyond(self, now: Time) -> Option<Span> {
        self.beyond.map(|(first, _)| now.since(first))
    }
}

/// Four times the mean deviation of round-trip times as `tcp_rtt_estimator` has it: the largest of
/// each round trip counts, at least the least timeout, and what is smaller than before lowers it by
/// a quarter a round trip at most.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tcp) struct Deviation {
    mean: Span,
    /// The largest in this round trip.
    largest: Span,
    /// Addition of the timeout to the smoothed round-trip time.
    pub allowed: Span,
    /// When this segment is acknowledged the round trip is over.
    round_end: u32,
}

impl Deviation {
    /// Takes the first sample, or another, while the smoothed round trip was `smoothed` and `una`
    /// and `next` are the segments to be acknowledged and sent next.
    pub fn sample(&mut self, rtt: Span, smoothed: Span, least: Span, (una, next): (u32, u32)) {
        if smoothed.is_zero() {
            self.mean = rtt.saturating_mul(2);
            self.allowed = self.mean.max(least);
            (self.largest, self.round_end) = (self.allowed, next);
            return;
        }
        let error = Span::from_ps(rtt.as_ps().abs_diff(smoothed.as_ps()));
        let quarter = self.mean / 4;
        self.mean = if error <= quarter {
            self.mean.saturating_sub(quarter.saturating_sub(error))
        } else if rtt < smoothed {
            // A round trip that became short makes no long timeout.
            self.mean + error.saturating_sub(quarter) / 8
        } else {
            self.mean + error.saturating_sub(quarter)
        };
        self.largest = self.largest.max(self.mean);
        self.allowed = self.allowed.max(self.largest);
        if una > self.round_end {
            let above = self.allowed.saturating_sub(self.largest);
            self.allowed = self.allowed.saturating_sub(above / 4);
            (self.largest, self.round_end) = (least, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Time {
        Time::ZERO.saturating_add(Span::from_us(us))
    }

    /// Samples of the first and of the last segment in microseconds, at 2,400 us with time stamps
    /// in milliseconds and an echo of 300 us.
    fn shown(samples: Samples) -> Option<(f64, f64)> {
        let sample = samples.sample(us(2_400), Some(us(300)), Span::from_ms(1));
        sample.map(|sample| (sample.of_first.as_us(), sample.of_last.as_us()))
    }

    #[test]
    fn what_is_in_order_tells_first_then_what_is_beyond_a_hole_and_then_the_clock() {
        let mut samples = Samples::default();
        assert_eq!(shown(samples), Some((2_000.0, 2_000.0)), "two ticks");
        samples.acknowledged(us(100), false, true);
        assert_eq!(shown(samples), Some((2_000.0, 2_000.0)), "it was known");
        samples.acknowledged(us(1_400), false, false);
        samples.acknowledged(us(1_900), false, false);
        assert_eq!(shown(samples), Some((1_000.0, 500.0)));
        samples.arrived_beyond(us(2_000), false, false);
        assert_eq!(shown(samples), Some((1_000.0, 400.0)), "the newest is beyond the hole");
        // Karn's rule.
        samples.acknowledged(us(1_950), true, false);
        assert_eq!(shown(samples), Some((400.0, 400.0)));
    }

    #[test]
    fn without_new_data_the_clock_says_nothing_and_what_was_sent_again_neither() {
        let mut samples = Samples::default();
        samples.arrived_beyond(us(2_000), true, false);
        assert_eq!(samples.sample(us(2_400), None, Span::ZERO), None);
        let exact = samples.sample(us(2_400), Some(us(300)), Span::ZERO).unwrap();
        assert_eq!(exact.of_first, Span::from_us(2_100));
        let soon = samples.sample(us(2_400), Some(us(2_300)), Span::from_ms(1)).unwrap();
        assert_eq!(soon.of_first, Span::from_ms(1), "a tick at least");
    }
}
