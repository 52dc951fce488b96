//! Packets that the scheme of a switch holds back in the switch's memory, until it lets them go.

use weft_packet::Kind;
use weft_topology::Tier;

use super::link::FarEnd;
use super::memory::OWN;
use super::network::Network;
use super::pool::{NO_PACKET, PacketIndex};

/// What switches hold back.
#[derive(Default)]
pub struct Held {
    /// By switch, as far as any holds something.
    switches: Vec<AtSwitch>,
}

/// What one switch holds back.
#[derive(Default)]
struct AtSwitch {
    /// The queues, by the numbers that its scheme has for them.
    queues: Vec<Option<Queue>>,
    /// Bytes in all of them.
    bytes: u64,
}

/// Packets in the order in which they came, threaded through the packets as on a link.
#[derive(Clone, Copy)]
struct Queue {
    head: PacketIndex,
    tail: PacketIndex,
    at: FarEnd,
}

impl Held {
    fn queue(&mut self, switch: u32, queue: u32) -> &mut Option<Queue> {
        let switch = switch as usize;
        self.switches.resize_with(self.switches.len().max(switch + 1), AtSwitch::default);
        let (queues, queue) = (&mut self.switches[switch].queues, queue as usize);
        queues.resize(queues.len().max(queue + 1), None);
        &mut queues[queue]
    }

    /// Bytes of packets that the scheme of a switch holds back now: they are queued in the switch's memory, at no port.
    pub fn bytes(&self, switch: u32) -> u64 {
        self.switches.get(switch as usize).map_or(0, |own| own.bytes)
    }

    /// Bytes of memory that the queues take, packets aside.
    pub fn memory_bytes(&self) -> usize {
        let queues: usize = self.switches.iter().map(|own| own.queues.capacity()).sum();
        queues * size_of::<Option<Queue>>() + self.switches.capacity() * size_of::<AtSwitch>()
    }
}

impl Network<'_> {
    /// A packet that is at a switch waits in a queue of the switch's scheme.
    pub(super) fn hold(&mut self, at: FarEnd, queue: u32, index: PacketIndex) {
        let packet = &mut self.pool[index];
        packet.next = NO_PACKET;
        // Nothing asks when it came any more: since when it waits.
        packet.arrive = self.now;
        let bytes = u64::from(packet.wire_bytes);
        let place = self.held.queue(at.switch, queue);
        let tail = place.map_or(NO_PACKET, |queue| queue.tail);
        let head = place.map_or(index, |queue| queue.head);
        *place = Some(Queue { head, tail: index, at });
        if tail != NO_PACKET {
            self.pool[tail].next = index;
        }
        self.held.switches[at.switch as usize].bytes += bytes;
    }

    /// The packets of these queues go on, each queue's in the order in which they came. They are on the account of no port: by which one
    /// they came is forgotten, and who is behind it has long sent on.
    pub(super) fn let_go(&mut self, switch: usize, queues: Vec<u32>) {
        let came_by = self.comes_by(OWN);
        for queue in queues {
            let Some(Queue { head, at, .. }) = self.held.queue(switch as u32, queue).take() else { continue };
            let mut next = head;
            while next != NO_PACKET {
                let index = next;
                next = self.pool[index].next;
                self.go_on(at, index);
            }
        }
        self.comes_by(came_by);
    }

    /// A packet that was held back goes on. It waited as if at the port by which it leaves.
    fn go_on(&mut self, at: FarEnd, index: PacketIndex) {
        let tier = match self.topology.rack_of_host[self.pool[index].dst.index()] {
            rack if rack == at.rack => Tier::Last,
            _ if at.rack == FarEnd::NO_RACK => Tier::Spine,
            _ => Tier::Leaf,
        };
        let packet = &mut self.pool[index];
        packet.next = NO_PACKET;
        let waited = self.now.since(packet.arrive).as_ps();
        if packet.kind == Kind::Data {
            packet.add_wait_ps(tier as usize, waited);
        }
        let bytes = u64::from(packet.wire_bytes);
        self.held.switches[at.switch as usize].bytes -= bytes;
        self.forward_apart(at, index);
    }

    /// [`Self::forward`] as a call, for packets that have waited.
    #[inline(never)]
    pub(super) fn forward_apart(&mut self, at: FarEnd, index: PacketIndex) {
        self.forward(at, index);
    }
}
