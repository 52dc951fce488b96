//! What a port put on its link before its time.

use weft_units::Time;

use crate::engine::fetch::fetch_first;
use crate::engine::pool::PacketIndex;
use crate::engine::scheduler::Tokens;

/// A packet that was put on the link before it goes into service, and what was before: see `service.rs`.
#[derive(Debug)]
pub(super) struct Ahead {
    /// When it goes into service, in ps. Until then, that instant included, it can be taken back.
    pub begins_at: u64,
    /// When it came to the port.
    pub since: Time,
    /// How long it takes to send.
    pub service_ps: u64,
    /// When the transmitter was to be free, in ps, and what the bucket had.
    pub free_at: u64,
    pub tokens: Tokens,
    pub index: PacketIndex,
    /// The packet before it on the link, if that has not arrived.
    pub behind: PacketIndex,
    pub wire_bytes: u16,
}

/// All of them, in order. A list that is read on from `first`: that is fewer instructions than a ring.
#[derive(Debug, Default)]
pub(super) struct Planned {
    packets: Vec<Ahead>,
    /// Those before this place have gone into service.
    first: usize,
}

impl Planned {
    /// None.
    pub const fn new() -> Self {
        Self { packets: Vec::new(), first: 0 }
    }

    /// Asks for the first ones.
    #[inline]
    pub fn fetch(&self) {
        if let Some(first) = self.first() {
            fetch_first(first, 2 * size_of::<Ahead>());
        }
    }

    /// How many there are whose time has not come by now, in ps. The others are forgotten.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn count(&mut self, now: u64) -> usize {
        let mut first = self.first;
        while self.packets.get(first).is_some_and(|packet| packet.begins_at < now) {
            first += 1;
        }
        if first == self.packets.len() {
            self.clear();
            return 0;
        }
        self.first = first;
        self.packets.len() - first
    }

    /// The first one.
    #[inline]
    pub fn first(&self) -> Option<&Ahead> {
        self.packets.get(self.first)
    }

    /// All of them: of some the time may have come.
    pub fn iter(&self) -> impl Iterator<Item = &Ahead> {
        self.packets[self.first..].iter()
    }

    /// One more, behind the others.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn push(&mut self, packet: Ahead) {
        if self.packets.len() == self.packets.capacity() {
            self.make_room();
        }
        self.packets.push(packet);
    }

    /// Room for one more: where half is used up, that is used again.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.first >= self.packets.len().div_ceil(2) {
            self.packets.drain(..self.first);
            self.first = 0;
        }
        self.packets.reserve(1);
    }

    /// Takes out the last one.
    pub fn pop(&mut self) -> Option<Ahead> {
        if self.first < self.packets.len() { self.packets.pop() } else { None }
    }

    /// Forgets all of them.
    #[inline]
    pub fn clear(&mut self) {
        self.packets.clear();
        self.first = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(begins_at: u64) -> Ahead {
        let (since, tokens) = (Time::ZERO, Tokens::default());
        Ahead { begins_at, since, service_ps: 0, free_at: 0, tokens, index: 0, behind: 0, wire_bytes: 0 }
    }

    #[test]
    fn those_whose_time_has_come_are_gone_and_the_others_stay_in_order() {
        let mut planned = Planned::new();
        let mut next = 0;
        // Now more come than go, now fewer.
        for now in 0..1_000 {
            for _ in 0..(now / 100) % 3 {
                next = next.max(now) + 1;
                planned.push(ahead(next));
            }
            let left: Vec<u64> =
                planned.iter().map(|packet| packet.begins_at).filter(|&at| at >= now).collect();
            assert_eq!(planned.count(now), left.len());
            assert_eq!(planned.first().map(|packet| packet.begins_at), left.first().copied());
            assert!(planned.iter().map(|packet| packet.begins_at).eq(left));
        }
        assert!(planned.packets.capacity() < 400, "places are used again");
        planned.count(next);
        assert_eq!(planned.pop().map(|packet| packet.begins_at), Some(next));
        assert!(planned.pop().is_none() && planned.first().is_none());
    }
}
