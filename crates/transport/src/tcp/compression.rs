//! Acknowledgements that a receiver leaves out while it tells of holes, as Linux does (SACK
//! compression): the last few segments of a burst are told of by one acknowledgement, and not each
//! by its own.
//!
//! The rules are those of `__tcp_ack_snd_check`.

use weft_units::{Span, Time};

/// The rules, which all flows share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compresses {
    /// So many are left out at most; more than 0.
    pub most: u16,
    /// One is sent after a share of the round trip, but after this at most, ...
    pub delay: Span,
    /// ... and so much later.
    pub slack: Span,
}

/// `TCP_FASTRETRANS_THRESH`: so many that tell of a hole are sent, for senders that count them.
const TOLD_AT_ONCE: u8 = 3;
/// The delay is this part of the round trip.
const PART_OF_ROUND_TRIP: u64 = 20;

/// State of a receiver on the acknowledgements that it left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Compression {
    /// When the SYN was answered, until the answer to that.
    answered: Option<Time>,
    /// The round trip of the handshake; zero without one.
    handshake: Span,
    /// `compressed_ack_rcv_nxt` and `dup_ack_counter`: how many acknowledgements of this number
    /// told of a hole.
    number: u32,
    told: u8,
    /// `compressed_ack`: how many were left out since one was sent.
    left_out: u16,
    /// When one is sent, if any was left out.
    due: Time,
}

impl Compression {
    /// With more blocks nothing is left out. Linux counts on two being told.
    pub const BLOCKS: usize = 2;

    /// The SYN is answered now.
    pub const fn answers_syn(&mut self, now: Time) {
        self.answered = Some(now);
    }

    /// A segment arrives: the first one answers the answer to the SYN.
    pub fn arrives(&mut self, now: Time) {
        if let Some(answered) = self.answered.take() {
            self.handshake = now.since(answered);
        }
    }

    /// When one is to be sent, if any was left out.
    pub fn due(&self) -> Option<Time> {
        (self.left_out > 0).then_some(self.due)
    }

    /// An acknowledgement is sent: it tells of all.
    pub const fn tells(&mut self) {
        self.left_out = 0;
    }

    /// Whether an acknowledgement of `number` that tells of a hole is left out; then, until when.
    /// `rtt`: the round trip by what arrives; zero if that is not known.
    pub fn leaves_out(&mut self, rules: Compresses, number: u32, rtt: Span, now: Time) -> Option<Time> {
        if self.left_out >= rules.most || self.due().is_some_and(|due| due <= now) {
            return None;
        }
        if self.number != number {
            (self.number, self.told) = (number, 0);
        }
        if self.told < TOLD_AT_ONCE {
            self.told += 1;
            return None;
        }
        if self.left_out == 0 {
            let known = [rtt, self.handshake].into_iter().filter(|rtt| !rtt.is_zero());
            let part = known.min().map_or(Span::ZERO, |rtt| Span::from_ps(rtt.as_ps() / PART_OF_ROUND_TRIP));
            self.due = now.saturating_add(part.min(rules.delay)).saturating_add(rules.slack);
        }
        self.left_out += 1;
        Some(self.due)
    }
}
