//! A switch's exact table of connections: by addresses and five-tuple, for as many as are alive.
//!
//! Tables of flowlets are indexed by a hash and shared by whoever meets there. A scheme that
//! promises order to each connection cannot share: it keeps the tuple, and forgets who is gone.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use weft_packet::{HostId, Packet};
use weft_units::mix64;

/// A connection: its sender, its receiver, and what stands for the five-tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    const fn of(src: HostId, dst: HostId, entropy: u32) -> Self {
        Self((entropy as u64) << 32 | (src.0 as u64) << 16 | dst.0 as u64)
    }

    /// The one that a packet of its sender belongs to.
    pub const fn sent(packet: &Packet) -> Self {
        Self::of(packet.src, packet.dst, packet.entropy)
    }

    /// The one that a packet for its sender belongs to.
    pub const fn answered(packet: &Packet) -> Self {
        Self::of(packet.dst, packet.src, packet.entropy)
    }
}

/// Spreads a key, whose bits are not random, over the table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix64(value);
    }
}

/// State that a switch keeps of each connection. It is never walked through but to forget the dead,
/// whatever their order.
#[derive(Debug, Clone)]
pub struct Connections<V> {
    map: HashMap<Key, V, BuildHasherDefault<Spread>>,
    most: usize,
    /// How many there are when the dead are looked for next.
    sweep_at: usize,
    peak: usize,
}

impl<V: Default> Connections<V> {
    const FIRST_SWEEP: usize = 256;

    /// Room for so many connections at once.
    pub fn new(most: usize) -> Self {
        Self { map: HashMap::default(), most, sweep_at: Self::FIRST_SWEEP.min(most), peak: 0 }
    }

    /// State of a connection, read-only.
    pub fn look(&self, key: Key) -> Option<&V> {
        self.map.get(&key)
    }

    /// State of a connection, if there is any.
    pub fn get(&mut self, key: Key) -> Option<&mut V> {
        self.map.get_mut(&key)
    }

    /// State of a connection; a new one begins with the default. `None` if there is no room: all
    /// that are there live on, by `is_dead`.
    pub fn entry(&mut self, key: Key, is_dead: impl Fn(&V) -> bool) -> Option<&mut V> {
        if self.map.len() >= self.sweep_at && !self.map.contains_key(&key) {
            self.map.retain(|_, value| !is_dead(value));
            self.sweep_at = (2 * self.map.len()).clamp(Self::FIRST_SWEEP.min(self.most), self.most);
            if self.map.len() >= self.most {
                return None;
            }
        }
        self.peak = self.peak.max(self.map.len() + usize::from(!self.map.contains_key(&key)));
        Some(self.map.entry(key).or_default())
    }

    /// A connection is over.
    pub fn remove(&mut self, key: Key) -> Option<V> {
        self.map.remove(&key)
    }

    /// Bytes that the most at once took.
    pub const fn state_bytes(&self) -> u64 {
        (self.peak * (size_of::<Key>() + size_of::<V>())) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{packet, with};

    use super::*;

    fn key(entropy: u32) -> Key {
        Key::sent(&packet(entropy))
    }

    #[test]
    fn an_answer_belongs_to_the_connection_that_it_answers() {
        let sent = with(packet(7), |packet| (packet.src, packet.dst) = (HostId(3), HostId(40)));
        let answer = with(packet(7), |packet| (packet.src, packet.dst) = (HostId(40), HostId(3)));
        assert_eq!(Key::sent(&sent), Key::answered(&answer));
        assert_ne!(Key::sent(&sent), Key::sent(&answer));
        assert_ne!(key(7), key(8));
    }

    #[test]
    fn there_is_room_for_so_many_that_live_and_the_dead_make_room() {
        let mut table = Connections::<u32>::new(300);
        for number in 0..300 {
            *table.entry(key(number), |_| false).expect("room") = number;
        }
        assert!(table.entry(key(1_000), |_| false).is_none(), "all live");
        assert_eq!(table.entry(key(7), |_| false).copied(), Some(7), "who is there stays");
        assert!(table.entry(key(1_000), |&number| number % 2 == 1).is_some());
        assert_eq!((table.get(key(6)).copied(), table.get(key(7)).copied()), (Some(6), None));
        assert_eq!(table.state_bytes(), 300 * 12, "the most at once");
        assert_eq!((table.remove(key(6)), table.remove(key(6))), (Some(6), None));
    }

    #[test]
    fn a_table_of_one_connection_has_room_for_one() {
        let mut table = Connections::<u32>::new(1);
        assert!(table.entry(key(1), |_| false).is_some());
        assert!(table.entry(key(2), |_| false).is_none());
    }
}
