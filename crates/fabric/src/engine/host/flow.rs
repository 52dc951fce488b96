//! The two ends of a flow: each belongs to its own host.

use std::mem::offset_of;

use weft_packet::Packet;
use weft_units::Time;

use super::log::Completion;
use super::outbox::FlowEnd;
use crate::engine::fct_breakdown::{FollowedPackets, Paused};

/// No packet has arrived yet: trails have 16 bits.
const NO_TRAIL: u32 = u32::MAX;

/// Which end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where its bytes come from.
    Sender,
    /// Where they go.
    Receiver,
}

impl Side {
    /// The end that a packet is for.
    #[inline]
    pub const fn of(packet: &Packet) -> Self {
        if packet.kind.is_for_sender() { Self::Sender } else { Self::Receiver }
    }
}

/// The sending end of a flow, with its transport's state. In whole cache lines, all of which every
/// acknowledgement needs.
#[repr(C, align(64))]
pub struct Sender<S> {
    /// The transport's state.
    pub state: S,
    /// State of the flow's end at the host.
    pub end: FlowEnd,
}

/// The receiving end of a flow, with its transport's state and what its packets went through. What
/// every data packet needs comes first, in whole cache lines.
#[repr(C, align(64))]
pub struct Receiver<R> {
    /// The transport's state.
    pub state: R,
    /// State of the flow's end at the host.
    pub end: FlowEnd,
    /// How long its data packets waited in queues, by [`crate::Tier`], in ps.
    pub wait_ps: [u64; 4],
    last_trail: u32,
    /// How often a data packet came over another path than the one before.
    pub path_changes: u32,
    /// Where its time goes.
    pub followed: FollowedPackets,
    /// How it came to have everything, if it has.
    pub complete: Option<Completion>,
}

impl<S> Sender<S> {
    /// So many bytes at its beginning are what every packet needs.
    pub const HOT_BYTES: usize = size_of::<Self>();
}

impl<R> Receiver<R> {
    /// So many bytes at its beginning are what every packet needs.
    pub const HOT_BYTES: usize = offset_of!(Self, followed) + FollowedPackets::HOT_BYTES;

    /// An end that nothing has reached yet, of a flow that started then.
    pub const fn new(end: FlowEnd, state: R, start: Time) -> Self {
        Self {
            state,
            end,
            wait_ps: [0; 4],
            last_trail: NO_TRAIL,
            path_changes: 0,
            followed: FollowedPackets::new(start),
            complete: None,
        }
    }

    /// Adds up what a data packet went through. How long pauses kept it is asked if it is followed.
    #[inline]
    pub fn note_path(&mut self, packet: &Packet, now: Time, paused: impl FnOnce() -> Paused) {
        for (tier, sum) in self.wait_ps.iter_mut().enumerate() {
            *sum += packet.wait_ps(tier);
        }
        let trail = u32::from(packet.trail);
        self.path_changes += u32::from(self.last_trail != trail && self.last_trail != NO_TRAIL);
        self.last_trail = trail;
        self.followed.note(packet, now, paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// As many bytes as the ends of a TCP take: see there.
    type Sending = [u64; 16];
    type Receiving = [u64; 8];

    #[test]
    fn what_every_packet_needs_of_an_end_is_in_three_cache_lines() {
        assert_eq!(size_of::<FlowEnd>(), 64);
        assert_eq!(Sender::<Sending>::HOT_BYTES, 3 * 64);
        const { assert!(Receiver::<Receiving>::HOT_BYTES <= 3 * 64) };
    }
}
