//! Congestion of a path by one packet's round trip (MEET eq. 1, MEET Alg. 1), and by many together
//! (MEET Alg. 2).

use weft_units::Span;

/// The congestion value of a packet in us^3: `C = (t - K)^3`, and 0 below K (MEET eq. 1, MEET Alg.
/// 1 lines 1 to 4).
#[inline]
pub fn congestion(rtt: Span, k: Span) -> f64 {
    let above = rtt.saturating_sub(k).as_us();
    above * above * above
}

/// Congestion values of one path added up: `C_total` and `P_total` of MEET Alg. 2.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// `C_total`, in us^3.
    pub total: f64,
    /// `P_total`, in packets.
    pub packets: u32,
}

impl Tally {
    /// One packet more (MEET Alg. 2 lines 2 to 4).
    #[inline]
    pub fn add(&mut self, congestion: f64) {
        self.merge(Self { total: congestion, packets: 1 });
    }

    /// Adds the findings of another host.
    #[inline]
    pub fn merge(&mut self, other: Self) {
        self.total += other.total;
        self.packets = self.packets.saturating_add(other.packets);
    }

    /// The path's congestion value (MEET Alg. 2 line 7); `None` if nobody found anything.
    pub fn mean(self) -> Option<f32> {
        (self.packets > 0).then(|| (self.total / f64::from(self.packets)) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_votes_with_the_cube_of_its_delay_above_k() {
        // K = 60 us: (61 - 60)^3 = 1, (70 - 60)^3 = 1,000, (100 - 60)^3 = 64,000, (62.5 - 60)^3 =
        // 15.625.
        let k = Span::from_us(60);
        for (rtt_ns, expected) in [
            (0, 0.0),
            (40_000, 0.0),
            (60_000, 0.0),
            (61_000, 1.0),
            (62_500, 15.625),
            (70_000, 1e3),
            (100_000, 64e3),
        ] {
            assert_eq!(congestion(Span::from_ns(rtt_ns), k).to_bits(), f64::to_bits(expected), "{rtt_ns} ns");
        }
    }

    #[test]
    fn a_path_is_worth_the_mean_of_its_votes() {
        let mut tally = Tally::default();
        assert_eq!(tally.mean(), None);
        for vote in [0.0, 1.0, 1_000.0, 999.0] {
            tally.add(vote);
        }
        assert_eq!(tally, Tally { total: 2_000.0, packets: 4 });
        assert_eq!(tally.mean(), Some(500.0));
    }
}
