//! State of a flow at one end, at a host.

use weft_packet::{HostId, Packet, PacketFlags};
use weft_units::Time;

use super::super::echo::Echo;
use super::meter::Meter;

/// One flow at one end: what it sends, and what its acknowledgements tell.
#[derive(Debug, Default)]
pub struct Flow {
    /// Sending rate of the flow.
    pub meter: Meter,
    /// When it last took a path or tried to leave one.
    pub tried: Time,
    /// When an acknowledgement last came by its path, or it took that.
    pub heard: Time,
    /// Bytes by its path, headers included.
    pub sent: u64,
    /// One past the highest segment that it sent.
    pub next: u32,
    /// That segments below are sent again tells nothing of this path: they were sent by another
    /// one, or before a timeout.
    pub repaired: u32,
    /// Whether no such segment was sent again yet.
    pub unrepaired: bool,
    /// Where it goes.
    pub dst: HostId,
    /// The path of what it sends; of its acknowledgements, the path of the data.
    pub path: Option<u16>,
    /// Whether it timed out since its last packet.
    pub timed_out: bool,
    /// Contents of the flow's next acknowledgement.
    pub echo: Echo,
}

impl Flow {
    /// From now on it takes this path.
    pub fn take(&mut self, path: u16, now: Time) {
        self.path = Some(path);
        self.sent = 0;
        (self.tried, self.heard) = (now, now);
        self.forgive();
    }

    /// Retransmissions of segments sent until now tell nothing of the current path.
    pub fn forgive(&mut self) {
        (self.repaired, self.unrepaired) = (self.next, true);
    }

    /// Whether a data packet goes out again because its path lost it. The first recovery after a
    /// move goes on to the last segment that is out when it begins: it belongs to the path before
    /// as a whole (RFC 6582: `recover`).
    #[inline]
    pub fn repeats(&mut self, packet: &Packet) -> bool {
        if !packet.flags.has(PacketFlags::RETRANSMISSION) {
            return false;
        }
        if packet.seq < self.repaired && std::mem::take(&mut self.unrepaired) {
            self.repaired = self.next;
        }
        packet.seq >= self.repaired
    }
}
