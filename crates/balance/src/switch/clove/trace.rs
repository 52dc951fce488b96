//! Probes of a leaf to find paths, and their answers: packets of switches, addressed to hosts, so
//! that the switches between forward them as they do data. The leaf of the host takes them.

use weft_packet::{FlowId, HostId, Packet};

use crate::host::clove::Probe;
use crate::{Expired, Message};

/// Kind of a discovery packet, in [`Packet::scheme`]; [`Packet::seq`] is the number of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A probe, which may pass so many switches, the one where it is counted.
    Probe { left: u8 },
    /// The probe's hop limit expired there.
    Expired(Expired),
    /// It reached the leaf of its host.
    Reached,
}

impl Word {
    const PROBE: u32 = 1 << 30;
    const EXPIRED: u32 = 2 << 30;
    const REACHED: u32 = 3 << 30;

    /// Reads the kind of a switch's packet, if it is one of these.
    pub fn read(packet: &Packet) -> Option<Self> {
        let low = packet.scheme as u16;
        match packet.scheme & Self::REACHED {
            Self::PROBE => Some(Self::Probe { left: low as u8 }),
            Self::EXPIRED => Some(Self::Expired(Expired { switch: packet.flow.0, port: low })),
            Self::REACHED => Some(Self::Reached),
            _ => None,
        }
    }

    /// Writes it: a port, and a switch in place of the flow's number.
    pub fn write(self, packet: &mut Packet) {
        packet.scheme = match self {
            Self::Probe { left } => Self::PROBE | u32::from(left),
            Self::Expired(at) => {
                packet.flow = FlowId(at.switch);
                Self::EXPIRED | u32::from(at.port)
            }
            Self::Reached => Self::REACHED,
        };
    }
}

/// A probe from a leaf, on behalf of its host `own`, to a host of the destination.
pub fn probe(own: HostId, peer: HostId, probe: Probe) -> Packet {
    let mut packet = Packet::control(0);
    (packet.src, packet.dst) = (own, peer);
    (packet.entropy, packet.seq) = (probe.entropy, probe.number);
    // The leaf that sends it is the first switch on the way.
    Word::Probe { left: probe.hop_limit - 1 }.write(&mut packet);
    packet
}

/// The answer to a probe, as long as one of ICMP.
pub fn answer(probe: &Packet, word: Word) -> Packet {
    let mut packet = Packet::control(0);
    (packet.src, packet.dst) = (probe.dst, probe.src);
    (packet.entropy, packet.seq) = (probe.entropy, probe.seq);
    packet.wire_bytes = Message::EXPIRED_BYTES;
    word.write(&mut packet);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let words = [
            Word::Probe { left: 1 },
            Word::Probe { left: u8::MAX },
            Word::Expired(Expired { switch: 0, port: 0 }),
            Word::Expired(Expired { switch: u32::MAX, port: u16::MAX }),
            Word::Reached,
        ];
        for word in words {
            let mut packet = Packet::control(0);
            assert_eq!(Word::read(&packet), None);
            word.write(&mut packet);
            assert_eq!(Word::read(&packet), Some(word));
        }
    }

    #[test]
    fn an_answer_goes_back_with_the_number_and_the_entropy_of_its_probe() {
        let sent = probe(HostId(3), HostId(17), Probe { entropy: 9, hop_limit: 3, number: 42 });
        assert_eq!((Word::read(&sent), sent.wire_bytes), (Some(Word::Probe { left: 2 }), 64));
        let back = answer(&sent, Word::Reached);
        assert_eq!((back.src, back.dst, back.entropy, back.seq), (HostId(17), HostId(3), 9, 42));
        assert_eq!(back.wire_bytes, 74);
    }
}
