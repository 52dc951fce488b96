//! The simulated network card of a host. The card itself is in the kernel
//! (`linux-hosts/kernel/weft_cards.c`); this says what it is like, and reckons as it does, so that
//! what it sends can be checked.

use weft_units::{Bytes, Rate, Span};

use crate::error::Error;

/// Properties of a host's card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// Bits per second on its cable; at least 1 Mbit/s.
    pub rate: Rate,
    /// A promise of the world: nothing that a card begins to send is felt by any host of this
    /// kernel before this much later. The longer, the faster the run. Whole nanoseconds count; at
    /// least one.
    pub lookahead: Span,
    /// Bytes on the cable beside the IP packet, e.g. 38 for Ethernet with preamble, check sum and
    /// gap.
    pub overhead_bytes: u32,
    /// Bytes that a packet with its overhead takes at least, e.g. 84 for Ethernet.
    pub min_bytes: u32,
    /// The largest IP packet, 576 to 65,535 bytes.
    pub mtu: u32,
    /// Packets that the card takes before the queueing discipline has to wait; at least one.
    pub ring: u32,
    /// Whether the kernel may make segments of many packets and cut them before the card, as hosts
    /// do today.
    pub segmentation: bool,
    /// Packets that may wait for the host's CPU; more are dropped. 0: any number.
    pub receive_ring: u32,
    /// Whether packets that the CPU takes together are joined before the stack sees them (GRO), as
    /// hosts do today.
    pub receive_offload: bool,
    /// From the first packet that waits to the interrupt, 1 s at most; zero: at once. Whole
    /// nanoseconds count.
    pub interrupt_delay: Span,
    /// So many packets that wait are an interrupt before that; 0: however many.
    pub interrupt_packets: u32,
    /// CPU time of the host per packet, one that arrives as well as one that is sent; 1 ms at most.
    pub cpu_per_packet: Span,
    /// And each byte of the IP packet; 1 us at most.
    pub cpu_per_byte: Span,
}

impl Card {
    /// An Ethernet card with 256 places, packets of 1,500 bytes, segmentation and joining;
    /// interrupts come at once, and the CPU takes no time.
    pub const fn ethernet(rate: Rate, lookahead: Span) -> Self {
        Self {
            rate,
            lookahead,
            overhead_bytes: 38,
            min_bytes: 84,
            mtu: 1_500,
            ring: 256,
            segmentation: true,
            receive_ring: 0,
            receive_offload: true,
            interrupt_delay: Span::ZERO,
            interrupt_packets: 0,
            cpu_per_packet: Span::ZERO,
            cpu_per_byte: Span::ZERO,
        }
    }

    /// How long an IP packet of `bytes` bytes takes on the cable.
    pub const fn service(&self, bytes: usize) -> Span {
        let wire = bytes as u64 + self.overhead_bytes as u64;
        let wire = if wire < self.min_bytes as u64 { self.min_bytes as u64 } else { wire };
        self.rate.service(Bytes::new(wire))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what, found: u64, allowed| Err(Error::Card { what, found, allowed });
        if self.rate < Rate::from_bps(1_000_000) {
            return wrong("rate in bit/s", self.rate.as_bps(), "1,000,000 or more");
        }
        if self.lookahead_ns() == 0 {
            return wrong("lookahead in ps", self.lookahead.as_ps(), "1,000 or more");
        }
        if !(576..=65_535).contains(&self.mtu) {
            return wrong("MTU", self.mtu.into(), "576 to 65,535");
        }
        if self.ring == 0 {
            return wrong("ring", 0, "1 or more");
        }
        if self.overhead_bytes > 10_000 || self.min_bytes > 10_000 {
            return wrong(
                "bytes of overhead",
                self.overhead_bytes.max(self.min_bytes).into(),
                "10,000 or less",
            );
        }
        self.check_receiving()
    }

    fn check_receiving(&self) -> Result<(), Error> {
        let wrong = |what, found: u64, allowed| Err(Error::Card { what, found, allowed });
        if self.interrupt_delay > Span::from_s(1) || (1..1_000).contains(&self.interrupt_delay.as_ps()) {
            return wrong("interrupt delay in ps", self.interrupt_delay.as_ps(), "0, or 1,000 to 10^12");
        }
        if self.interrupt_packets > 0 && self.interrupt_delay == Span::ZERO {
            // Fewer than that would wait for ever.
            return wrong("interrupt packets", self.interrupt_packets.into(), "0 without an interrupt delay");
        }
        if self.cpu_per_packet > Span::from_ms(1) {
            return wrong("CPU per packet in ps", self.cpu_per_packet.as_ps(), "0 to 10^9");
        }
        if self.cpu_per_byte > Span::from_us(1) {
            return wrong("CPU per byte in ps", self.cpu_per_byte.as_ps(), "0 to 10^6");
        }
        Ok(())
    }

    pub(crate) const fn byte_ps_scaled(&self) -> u64 {
        self.rate.ps_per_byte().as_scaled()
    }

    pub(crate) const fn lookahead_ns(&self) -> u64 {
        self.lookahead.as_ps() / 1_000
    }

    pub(crate) const fn interrupt_ns(&self) -> u64 {
        self.interrupt_delay.as_ps() / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_its_bytes_and_its_framing_at_the_cards_rate() {
        let card = Card::ethernet(Rate::from_bps(100_000_000), Span::from_us(50));
        assert_eq!(card.service(1_500), Span::from_ns(123_040));
        assert_eq!(card.service(20), Span::from_ns(84 * 80), "no frame is shorter than 84 bytes");
    }

    #[test]
    fn a_card_that_could_not_work_is_refused_with_what_is_allowed() {
        let good = Card::ethernet(Rate::from_gbps(1), Span::from_us(1));
        assert!(good.check().is_ok());
        for bad in [
            Card { rate: Rate::from_bps(999_999), ..good },
            Card { lookahead: Span::from_ps(999), ..good },
            Card { mtu: 575, ..good },
            Card { mtu: 65_536, ..good },
            Card { ring: 0, ..good },
            Card { overhead_bytes: 10_001, ..good },
            Card { interrupt_delay: Span::from_ps(999), ..good },
            Card { interrupt_delay: Span::from_ms(1_001), ..good },
            Card { interrupt_packets: 2, ..good },
            Card { cpu_per_packet: Span::from_us(1_001), ..good },
            Card { cpu_per_byte: Span::from_ns(1_001), ..good },
        ] {
            let message = bad.check().unwrap_err().to_string();
            assert!(message.contains("allowed"), "{message}");
        }
    }
}
