//! Packets that a port put on its link before their time.

use weft_units::Time;

use crate::engine::fetch::fetch_first;
use crate::engine::pool::{NO_PACKET, PacketIndex};
use crate::engine::scheduler::Tokens;

/// A packet that was put on the link before it goes into service, and what was before: see
/// `service.rs`.
#[derive(Debug, Clone, Copy)]
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

impl Ahead {
    /// A place that is not in use: its values have no meaning.
    const NOTHING: Self = Self {
        begins_at: 0,
        since: Time::ZERO,
        service_ps: 0,
        free_at: 0,
        tokens: Tokens { full_at: 0, part: 0 },
        index: NO_PACKET,
        behind: NO_PACKET,
        wire_bytes: 0,
    };
}

/// All of them, in order. A list that is read on from `first`: that is fewer instructions than a
/// ring. No `Vec`, for the values that its capacity cannot have would tell the ports apart that
/// there are not, which is asked for each packet: and this is in the last line of a port, which few
/// packets need.
#[derive(Debug, Default)]
pub(super) struct Planned {
    packets: Box<[Ahead]>,
    /// Those before this place have gone into service.
    first: u32,
    /// Those from this place on are not in use.
    end: u32,
}

impl Planned {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those that are in use, and those that have gone into service.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn used(&self) -> &[Ahead] {
        self.packets.get(..self.end as usize).unwrap_or_default()
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
        let mut first = self.first as usize;
        let used = self.used();
        while used.get(first).is_some_and(|packet| packet.begins_at < now) {
            first += 1;
        }
        let left = used.len() - first;
        if left == 0 {
            self.clear();
        } else {
            self.first = first as u32;
        }
        left
    }

    /// The first one.
    #[inline]
    pub fn first(&self) -> Option<&Ahead> {
        self.used().get(self.first as usize)
    }

    /// All of them: of some the time may have come.
    pub fn iter(&self) -> impl Iterator<Item = &Ahead> {
        self.used()[self.first as usize..].iter()
    }

    /// One more, behind the others.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn push(&mut self, packet: Ahead) {
        if self.end as usize >= self.packets.len() {
            self.make_room();
        }
        if let Some(place) = self.packets.get_mut(self.end as usize) {
            *place = packet;
            self.end += 1;
        }
    }

    /// Room for one more: where half is used up, that is used again.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.first >= self.end.div_ceil(2) {
            self.packets.copy_within(self.first as usize..self.end as usize, 0);
            (self.first, self.end) = (0, self.end - self.first);
        }
        if self.end as usize >= self.packets.len() {
            let mut packets = std::mem::take(&mut self.packets).into_vec();
            packets.resize((2 * packets.len()).max(4), Ahead::NOTHING);
            self.packets = packets.into_boxed_slice();
        }
    }

    /// Takes out the last one.
    pub fn pop(&mut self) -> Option<Ahead> {
        if self.first == self.end {
            return None;
        }
        self.end -= 1;
        self.packets.get(self.end as usize).copied()
    }

    /// Forgets all of them.
    #[inline]
    pub const fn clear(&mut self) {
        (self.first, self.end) = (0, 0);
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
        assert!(planned.packets.len() < 400, "places are used again");
        planned.count(next);
        assert_eq!(planned.pop().map(|packet| packet.begins_at), Some(next));
        assert!(planned.pop().is_none() && planned.first().is_none());
    }
}
