//! The ports of a flow's end beyond its first.

use super::outbox::End;

/// The ports of a flow but for the first.
#[derive(Default)]
pub struct ExtraPorts {
    /// The ends there.
    pub others: Vec<End>,
    /// By port, the first too, and its segment: the segment of the flow, as the options of the
    /// packets that arrived said.
    pub carried: Vec<Vec<u32>>,
    by_entropy: ByEntropy,
}

impl ExtraPorts {
    /// The ends of ports that are told by their numbers, and what packets carried.
    pub fn numbered(others: Vec<End>, carried: Vec<Vec<u32>>) -> Self {
        Self { others, carried, by_entropy: ByEntropy::default() }
    }

    /// The ends of ports that are told by their entropies.
    pub fn name(&mut self, others: Vec<End>) {
        self.by_entropy = ByEntropy::new(&others);
        self.others = others;
    }

    /// The port with this entropy; the first one if none of the others has it.
    #[inline]
    pub fn port_with(&self, entropy: u32) -> u8 {
        let port = self.by_entropy.0[ByEntropy::place(entropy)];
        let Some(other) = usize::from(port).checked_sub(1) else { return 0 };
        if self.others.get(other).is_some_and(|end| end.entropy() == entropy) {
            return port;
        }
        self.search(entropy)
    }

    /// The port with this entropy, by search, where another port has its place in the table.
    #[inline(never)]
    fn search(&self, entropy: u32) -> u8 {
        let other = self.others.iter().position(|end| end.entropy() == entropy);
        other.map_or(0, |other| other as u8 + 1)
    }
}

/// Where a port may be found by its entropy: a table in place of a search, for each packet that
/// comes asks.
struct ByEntropy([u8; Self::PLACES]);

impl ByEntropy {
    const PLACES: usize = 64;

    /// In each place the first of these ends, as a port: 0 where there is none.
    fn new(others: &[End]) -> Self {
        let mut ports = [0; Self::PLACES];
        for (end, port) in others.iter().zip(1u8..) {
            let place = &mut ports[Self::place(end.entropy())];
            *place = if *place == 0 { port } else { *place };
        }
        Self(ports)
    }

    /// Entropies are hashes: any of their bits will do.
    #[inline]
    const fn place(entropy: u32) -> usize {
        entropy as usize % Self::PLACES
    }
}

impl Default for ByEntropy {
    fn default() -> Self {
        Self([0; Self::PLACES])
    }
}

#[cfg(test)]
mod tests {
    use weft_balance::AnyHostFlow;
    use weft_packet::{FlowId, HostId, PacketFlags};

    use super::*;
    use crate::engine::host::Side;

    #[test]
    fn each_of_as_many_ports_as_there_may_be_is_found_by_its_entropy_and_no_other_one() {
        let end = |entropy| {
            let hosts = (HostId(0), HostId(1));
            End::new(FlowId(0), Side::Sender, hosts, entropy, PacketFlags::default(), AnyHostFlow::None)
        };
        let mut more = ExtraPorts::default();
        assert_eq!(more.port_with(7), 0);
        // Four or so to a place.
        let entropy = |port: u8| 1_000 + 3 * u32::from(port);
        more.name((1..=254).map(|port| end(entropy(port))).collect());
        for port in 1..=254 {
            assert_eq!(more.port_with(entropy(port)), port);
            assert_eq!(more.port_with(entropy(port) + 1), 0);
        }
    }
}
