//! The congestion window of all paths together, and what is in flight (MP-RDMA §3.2).
//!
//! A sender knows no more than the first packet that is missing, `una`, and counts acknowledgements
//! of packets beyond it: by those its window is inflated, for they have left the network. So
//! `cwnd + inflate - (next - una)` packets may be sent.
//!
//! The count is right however acknowledgements overtake each other: one whose packet is in order by
//! now is counted late, after it was taken off. One that is lost is taken off and never counted. So
//! when nothing is known to have come beyond what is in order, the count begins anew, at nothing,
//! and what comes late from before that counts no more.

use super::Rules;

#[derive(Debug, Clone)]
pub(super) struct Window {
    /// In packets.
    pub cwnd: f64,
    /// Packets beyond the first missing one that are known to have come, less those in order of
    /// which nothing was heard yet.
    inflate: i32,
    /// Acknowledgements of the packets below count no more.
    counted_from: u32,
}

impl Window {
    pub const fn new(rules: &Rules) -> Self {
        Self { cwnd: rules.initial, inflate: 0, counted_from: 0 }
    }

    /// An acknowledgement: the window grows by a packet a round trip, and shrinks by half of those
    /// that were marked.
    #[inline]
    pub fn acknowledged(&mut self, rules: &Rules, is_marked: bool) {
        if is_marked {
            self.lower(rules, 0.5);
        } else {
            self.cwnd += 1.0 / self.cwnd;
        }
    }

    /// So many packets less.
    #[inline]
    pub fn lower(&mut self, rules: &Rules, packets: f64) {
        self.cwnd = (self.cwnd - packets).max(rules.least);
    }

    /// Less by a share of it.
    pub fn cut(&mut self, rules: &Rules, share: f64) {
        self.lower(rules, self.cwnd * share);
    }

    /// This packet has come, and was not known to have.
    #[inline]
    pub const fn came(&mut self, packet: u32) {
        if packet >= self.counted_from {
            self.inflate += 1;
        }
    }

    /// So many packets more are in order. `una` is missing; `is_all` says that nothing is known to
    /// have come beyond it.
    #[inline]
    pub const fn advanced(&mut self, packets: u32, una: u32, is_all: bool) {
        if is_all {
            (self.inflate, self.counted_from) = (0, una);
        } else {
            self.inflate -= packets.cast_signed();
        }
    }

    /// How many packets may be sent beside so many that are not in order yet; negative if too many
    /// were.
    #[inline]
    pub fn room(&self, outstanding: u32) -> i64 {
        self.cwnd as i64 + i64::from(self.inflate) - i64::from(outstanding)
    }
}
