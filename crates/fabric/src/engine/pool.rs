//! The packets that are in the fabric: each stays in one place until it leaves.

use weft_packet::Packet;

/// A packet's place in the [`Pool`].
pub type PacketIndex = u32;

/// No packet.
pub const NO_PACKET: PacketIndex = u32::MAX;

/// Packets by index, with the free places in a stack: the last one freed is the first one used again, and still warm.
#[derive(Default)]
pub struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketIndex>,
}

impl Pool {
    /// Puts a packet in.
    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketIndex {
        if let Some(index) = self.free.pop() {
            self.packets[index as usize] = packet;
            return index;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as PacketIndex
    }

    /// Takes a packet out.
    #[inline]
    pub fn remove(&mut self, index: PacketIndex) -> Packet {
        self.free.push(index);
        self.packets[index as usize]
    }

    /// Fetches a packet that will be asked for soon, if there is one: nothing waits for it now.
    #[inline]
    pub fn warm(&self, index: PacketIndex) {
        std::hint::black_box(self.packets.get(index as usize).map(|packet| packet.next));
    }

    /// How many packets are in it.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Packet>() + self.free.capacity() * size_of::<PacketIndex>()
    }
}

impl std::ops::Index<PacketIndex> for Pool {
    type Output = Packet;
    #[inline]
    fn index(&self, index: PacketIndex) -> &Packet {
        &self.packets[index as usize]
    }
}

impl std::ops::IndexMut<PacketIndex> for Pool {
    #[inline]
    fn index_mut(&mut self, index: PacketIndex) -> &mut Packet {
        &mut self.packets[index as usize]
    }
}
