//! Entropies: a number in each packet's header that switches hash beside the five-tuple (a UDP
//! source port, an IPv6 flow label), and what comes back of it.
//!
//! The sending host writes an entropy into each data packet. The far edge copies that of the last
//! one that came, with what queues did to it, into the next acknowledgement of the flow, positive
//! or negative; the acknowledgement is hashed with it, too, as in REPS (§3.1). So where each packet
//! is acknowledged, each acknowledgement tells of its own packet.

use weft_packet::{Kind, Packet, PacketFlags};

use crate::{HostContext, ParameterError};

/// Outcome of a packet on its way to the receiving host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum EntropyFeedback {
    /// It came as it was sent.
    #[default]
    Good,
    /// A queue marked it.
    Marked,
    /// A full queue cut its payload off.
    Trimmed,
}

/// The header bits that these schemes own: 19 of the 32.
///
/// | bits | field |
/// |---|---|
/// | 0 to 15 | the entropy |
/// | 16 | there is one |
/// | 17 | on the way back: the packet was marked |
/// | 18 | on the way back: the packet was trimmed |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntropyNote {
    /// The entropy, as the sending host chose it.
    pub entropy: u16,
    /// Outcome of the packet that had it.
    pub fate: EntropyFeedback,
}

impl EntropyNote {
    const PRESENT: u32 = 1 << 16;
    const MARKED: u32 = 1 << 17;
    const TRIMMED: u32 = 1 << 18;

    const fn bits(self) -> u32 {
        let fate = match self.fate {
            EntropyFeedback::Good => 0,
            EntropyFeedback::Marked => Self::MARKED,
            EntropyFeedback::Trimmed => Self::TRIMMED,
        };
        self.entropy as u32 | Self::PRESENT | fate
    }

    const fn of_bits(bits: u32) -> Option<Self> {
        if bits & Self::PRESENT == 0 {
            return None;
        }
        let fate = if bits & Self::TRIMMED != 0 {
            EntropyFeedback::Trimmed
        } else if bits & Self::MARKED != 0 {
            EntropyFeedback::Marked
        } else {
            EntropyFeedback::Good
        };
        Some(Self { entropy: bits as u16, fate })
    }

    /// Writes it into a packet's header, and into what switches hash.
    #[inline]
    pub const fn write(self, packet: &mut Packet) {
        packet.scheme = self.bits();
        packet.entropy ^= self.entropy as u32;
    }

    /// Reads it, if there is one.
    #[inline]
    pub const fn read(packet: &Packet) -> Option<Self> {
        Self::of_bits(packet.scheme)
    }
}

/// The receiving end of a flow: what its next acknowledgement will tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Returned {
    /// The bits of the note, or 0.
    bits: u32,
}

impl Returned {
    /// A packet of the flow arrived.
    #[inline]
    pub const fn note(&mut self, packet: &Packet) {
        if !matches!(packet.kind, Kind::Data | Kind::Trimmed) {
            return;
        }
        let Some(EntropyNote { entropy, .. }) = EntropyNote::read(packet) else { return };
        let fate = if matches!(packet.kind, Kind::Trimmed) {
            EntropyFeedback::Trimmed
        } else if packet.flags.has(PacketFlags::CE) {
            EntropyFeedback::Marked
        } else {
            EntropyFeedback::Good
        };
        self.bits = EntropyNote { entropy, fate }.bits();
    }

    /// A packet of the flow leaves: an acknowledgement takes the note with it.
    #[inline]
    pub fn stamp(&mut self, packet: &mut Packet) {
        if is_acknowledgement(packet.kind)
            && let Some(note) = EntropyNote::of_bits(std::mem::take(&mut self.bits))
        {
            note.write(packet);
        }
    }
}

/// Whether it acknowledges data, positively or negatively.
#[inline]
pub const fn is_acknowledgement(kind: Kind) -> bool {
    matches!(kind, Kind::Ack | Kind::Nack)
}

/// The entropies that a scheme draws from: 0 up to a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entropies {
    mask: u16,
}

impl Entropies {
    /// As many as a UDP source port has values.
    pub const ALL: u32 = 1 << 16;

    /// So many, a power of two of at most [`Self::ALL`].
    pub const fn new(count: u32) -> Self {
        Self { mask: (count - 1) as u16 }
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.mask as u32 + 1
    }

    /// Any of them.
    #[inline]
    pub fn draw<C: HostContext + ?Sized>(self, cx: &mut C) -> u16 {
        cx.random().below(self.count()) as u16
    }
}

/// Refuses a number of entropies that is no power of two, or more than `most`; `allowed` says so.
///
/// # Errors
/// The parameter, `entropies`.
pub fn check(count: u32, most: u32, allowed: &'static str) -> Result<(), ParameterError> {
    if count.is_power_of_two() && count <= most {
        return Ok(());
    }
    Err(ParameterError { key: "entropies", found: count.to_string(), allowed })
}

/// All entropies in turn, in an order that is drawn anew each time round: the turn's number with
/// some of its bits flipped, the same for a whole round (`uet-htsim`, `UecMpOblivious`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permutation {
    turn: u16,
    flip: u16,
    begun: bool,
}

impl Permutation {
    /// The entropy whose turn it is; the next one's comes then.
    #[inline]
    pub fn next<C: HostContext + ?Sized>(&mut self, cx: &mut C, entropies: Entropies) -> u16 {
        if !self.begun {
            *self = Self { turn: 0, flip: entropies.draw(cx), begun: true };
        }
        let entropy = self.peek();
        self.pass(cx, entropies);
        entropy
    }

    /// The entropy whose turn it is, once [`Self::next`] was called.
    #[inline]
    const fn peek(self) -> u16 {
        self.turn ^ self.flip
    }

    fn pass<C: HostContext + ?Sized>(&mut self, cx: &mut C, entropies: Entropies) {
        if self.turn == entropies.mask {
            *self = Self { turn: 0, flip: entropies.draw(cx), begun: true };
        } else {
            self.turn += 1;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use crate::testing::{FakeHost, packet, with};

    use super::*;

    /// The acknowledgement of all segments below `seq` that tells this.
    pub fn ack(seq: u32, entropy: u16, fate: EntropyFeedback) -> Packet {
        with(packet(1), |ack| {
            (ack.kind, ack.seq) = (Kind::Ack, seq);
            ack.scheme = EntropyNote { entropy, fate }.bits();
        })
    }

    fn arrival(entropy: u16, kind: Kind, ce: bool) -> Packet {
        with(packet(1), |packet| {
            EntropyNote { entropy, fate: EntropyFeedback::Good }.write(packet);
            packet.kind = kind;
            packet.flags = packet.flags.with_if(PacketFlags::CE, ce);
        })
    }

    fn told(returned: &mut Returned, kind: Kind) -> Option<EntropyNote> {
        EntropyNote::read(&with(packet(1), |ack| {
            ack.kind = kind;
            returned.stamp(ack);
        }))
    }

    #[test]
    fn a_note_survives_the_header_and_an_untouched_header_has_none() {
        for fate in [EntropyFeedback::Good, EntropyFeedback::Marked, EntropyFeedback::Trimmed] {
            for entropy in [0, 1, u16::MAX] {
                let note = EntropyNote { entropy, fate };
                let sent = with(packet(0x77), |packet| note.write(packet));
                assert_eq!((EntropyNote::read(&sent), sent.entropy), (Some(note), 0x77 ^ u32::from(entropy)));
            }
        }
        assert_eq!(EntropyNote::read(&packet(1)), None);
    }

    #[test]
    fn an_acknowledgement_tells_of_the_last_packet_that_came_and_tells_it_once() {
        let mut returned = Returned::default();
        assert_eq!(told(&mut returned, Kind::Ack), None);
        returned.note(&arrival(3, Kind::Data, true));
        returned.note(&arrival(5, Kind::Data, false));
        assert_eq!(told(&mut returned, Kind::Cnp), None, "a congestion notification takes nothing");
        assert_eq!(
            told(&mut returned, Kind::Ack),
            Some(EntropyNote { entropy: 5, fate: EntropyFeedback::Good })
        );
        assert_eq!(told(&mut returned, Kind::Ack), None, "told once");
        returned.note(&arrival(3, Kind::Data, true));
        assert_eq!(
            told(&mut returned, Kind::Ack),
            Some(EntropyNote { entropy: 3, fate: EntropyFeedback::Marked })
        );
        returned.note(&arrival(9, Kind::Trimmed, true));
        assert_eq!(
            told(&mut returned, Kind::Nack),
            Some(EntropyNote { entropy: 9, fate: EntropyFeedback::Trimmed })
        );
        returned.note(&arrival(9, Kind::Ack, true));
        assert_eq!(told(&mut returned, Kind::Ack), None, "an acknowledgement is not acknowledged");
    }

    #[test]
    fn a_permutation_takes_every_entropy_once_a_round_and_rounds_differ() {
        let (mut host, entropies) = (FakeHost::new(1, 7), Entropies::new(16));
        let mut turns = Permutation::default();
        let rounds: Vec<Vec<u16>> =
            (0..8).map(|_| (0..16).map(|_| turns.next(&mut host, entropies)).collect()).collect();
        for round in &rounds {
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 16, "{round:?}");
        }
        assert!(rounds.iter().collect::<BTreeSet<_>>().len() > 4, "orders are drawn: {rounds:?}");
    }

    #[test]
    fn as_many_entropies_as_a_port_number_has_values_are_the_most() {
        assert_eq!((Entropies::new(Entropies::ALL).count(), Entropies::new(1).count()), (65_536, 1));
        let key = |count| check(count, Entropies::ALL, "").map_err(|error| error.key);
        assert_eq!([key(1), key(64), key(65_536)], [Ok(()); 3]);
        assert_eq!([key(0), key(48), key(131_072)], [Err("entropies"); 3]);
    }
}
