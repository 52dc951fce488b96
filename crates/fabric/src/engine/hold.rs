//! Packets that the scheme of a switch holds back in the switch's memory, until it lets them go.
//!
//! Where the ports of a switch share its memory, these packets take of it, too, and are on the
//! account of the port by which they came: so there may be no room for one, and a pause because of
//! it. What a packet takes it takes along to the queue of a port.

use weft_packet::{Kind, PortId};
use weft_topology::Tier;

use super::link::FarEnd;
use super::network::{Network, NextHop};
use super::pause::Origin;
use super::pool::{NO_PACKET, PacketIndex};
use super::shared_buffer::BufferAccount;

/// Packets that switches hold back.
#[derive(Default)]
pub struct HoldQueues {
    /// By switch, as far as any holds something.
    switches: Vec<AtSwitch>,
    /// By packet, as far as any was held in shared buffer: where it is on the books.
    places: Vec<Option<BufferAccount>>,
}

/// Packets that one switch holds back.
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

impl HoldQueues {
    fn queue(&mut self, switch: u32, queue: u32) -> &mut Option<Queue> {
        let switch = switch as usize;
        self.switches.resize_with(self.switches.len().max(switch + 1), AtSwitch::default);
        let (queues, queue) = (&mut self.switches[switch].queues, queue as usize);
        queues.resize(queues.len().max(queue + 1), None);
        &mut queues[queue]
    }

    /// Bytes of packets that the scheme of a switch holds back now: they are queued in the switch's
    /// memory, at no port.
    pub fn bytes(&self, switch: u32) -> u64 {
        self.switches.get(switch as usize).map_or(0, |own| own.bytes)
    }

    /// Bytes of memory that the queues take, packets aside.
    pub fn memory_bytes(&self) -> usize {
        let queues: usize = self.switches.iter().map(|own| own.queues.capacity()).sum();
        queues * size_of::<Option<Queue>>()
            + self.switches.capacity() * size_of::<AtSwitch>()
            + self.places.capacity() * size_of::<Option<BufferAccount>>()
    }
}

impl Network<'_> {
    /// A packet that is at a switch waits in a queue of the switch's scheme.
    pub(super) fn hold(&mut self, at: FarEnd, queue: u32, index: PacketIndex) {
        if self.shared_buffers.is_some() && !self.finds_room(at, queue, index) {
            return;
        }
        let packet = &mut self.pool[index];
        packet.next = NO_PACKET;
        // Nothing asks when it came any more: since when it waits.
        packet.arrive = self.now;
        let bytes = u64::from(packet.wire_bytes);
        let place = self.hold_queues.queue(at.switch, queue);
        let tail = place.map_or(NO_PACKET, |queue| queue.tail);
        let head = place.map_or(index, |queue| queue.head);
        *place = Some(Queue { head, tail: index, at });
        if tail != NO_PACKET {
            self.pool[tail].next = index;
        }
        self.hold_queues.switches[at.switch as usize].bytes += bytes;
    }

    /// Whether the memory that the ports of a switch share takes a packet that is to be held back.
    /// If not, it is no more.
    #[cold]
    fn finds_room(&mut self, at: FarEnd, queue: u32, index: PacketIndex) -> bool {
        let packet = &self.pool[index];
        let (link, is_open) = match self.way(at, self.topology.rack_of_host[packet.dst.index()], packet) {
            NextHop::Only(link) => (link, false),
            NextHop::Several(group) => (at.first_link + u32::from(self.routes.group(group).0[0].0), true),
            // Where it will leave is for its route to say, and it may be nowhere.
            NextHop::Pinned | NextHop::None => return true,
        };
        self.book_blocked(link, index);
        let Some((switch, place, bytes)) = self.to_be_held(link, queue, index, is_open) else { return true };
        let port = PortId((link - at.first_link) as u16);
        if let Err(cause) = self.admit_at(switch, place, bytes, port.0) {
            if is_open {
                // If its header is left, that goes by the first way.
                self.pool[index].note_choice(port, self.trail_base);
            }
            self.refuse_to_hold(link, index, place.class, cause);
            return false;
        }
        let places = &mut self.hold_queues.places;
        places.resize(places.len().max(index as usize + 1), None);
        places[index as usize] = Some(place);
        true
    }

    /// The packets of these queues go on, each queue's in the order in which they came.
    pub(super) fn release_hold_queues(&mut self, switch: usize, queues: Vec<u32>) {
        for queue in queues {
            let Some(Queue { head, at, .. }) = self.hold_queues.queue(switch as u32, queue).take() else {
                continue;
            };
            let mut next = head;
            while next != NO_PACKET {
                let index = next;
                next = self.pool[index].next;
                self.release_packet(at, index);
            }
        }
    }

    /// A packet that was held back goes on. It waited as if at the port by which it leaves.
    fn release_packet(&mut self, at: FarEnd, index: PacketIndex) {
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
        self.hold_queues.switches[at.switch as usize].bytes -= bytes;
        let place = self.hold_queues.places.get_mut(index as usize).and_then(Option::take);
        let origin = place.map_or(Origin::HERE, |place| Origin::held(place, bytes as u16));
        let before = self.comes_from(origin);
        self.forget_blocked();
        self.forward_apart(at, index);
        self.account_released(at.switch as usize, before);
    }

    /// [`Self::forward`] as a call, for packets that have waited.
    #[inline(never)]
    pub(super) fn forward_apart(&mut self, at: FarEnd, index: PacketIndex) {
        self.forward(at, index);
    }
}
