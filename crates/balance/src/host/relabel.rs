//! A header field that switches hash and a sender may change: an IPv6 flow label, a TTL, the source
//! port of a tunnel.

use weft_packet::Packet;

use crate::HostContext;

/// Addition of a flow's label to its hash. The first label adds nothing: the flow goes where ECMP
/// takes its five-tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Label(u32);

impl Label {
    /// Draws another label. Where it leads, nobody knows: perhaps to the same path.
    pub fn change<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        // Any number but the one it is.
        self.0 = self.0.wrapping_add(1 + cx.random().below(u32::MAX));
    }

    /// Writes the label into a packet's header.
    #[inline]
    pub const fn write(self, packet: &mut Packet) {
        packet.entropy ^= self.0;
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{FakeHost, packet, with};

    use super::*;

    #[test]
    fn the_first_label_changes_nothing_and_every_change_something() {
        let (mut host, mut label) = (FakeHost::new(1, 1), Label::default());
        let entropy = |label: Label| with(packet(77), |packet| label.write(packet)).entropy;
        assert_eq!(entropy(label), 77);
        for _ in 0..1_000 {
            let before = entropy(label);
            label.change(&mut host);
            assert_ne!(entropy(label), before);
        }
    }
}
