//! Mail in the timing wheel: packets from other parts that arrive before it has gone round.

use super::{EventKey, EventKind, EventSet, NONE, SLOTS};
use crate::engine::link::Link;
use crate::engine::mail::Posted;
use crate::engine::pool::{PacketIndex, Pool};
use weft_units::{Span, Time};

impl EventSet {
    /// Makes the wheel cover this, at least. Before the first event.
    pub fn cover(&mut self, horizon: Span) {
        let width = (horizon.as_ps() / (SLOTS as u64 - 2) + 1).next_power_of_two();
        self.shift = self.shift.max(width.trailing_zeros());
        self.find_stop();
    }

    /// The number of one more piece of mail: of what comes by one link at one instant, what has an earlier one comes first. It is
    /// written in place of the packet behind.
    #[inline]
    pub const fn number_mail(&mut self) -> u32 {
        self.posted = self.posted.wrapping_add(1);
        self.posted
    }

    /// The port of this link has something to post at the end of the window in which this time is, or of a later one.
    #[inline]
    pub fn list_leaving(&mut self, link: u32, at: u64) {
        self.leaving.push(link);
        self.leaves_at = self.leaves_at.min(at);
    }

    /// Takes out the links that were listed.
    pub fn take_leaving(&mut self) -> Vec<u32> {
        self.leaves_at = u64::MAX;
        std::mem::take(&mut self.leaving)
    }

    /// A port that was listed sends next at this time.
    pub fn leaves_again(&mut self, at: u64) {
        self.leaves_at = self.leaves_at.min(at);
    }

    /// Puts those back that have more.
    pub fn put_leaving(&mut self, links: Vec<u32>) {
        self.leaving = links;
    }

    /// Nothing happens before this time: what arrives soon after it is within the wheel.
    pub fn turn_to(&mut self, at: Time) {
        if self.next == self.batch.len() {
            self.loaded = self.loaded.max((at.as_ps() >> self.shift).saturating_sub(1));
        }
    }

    /// Adds a piece of mail, unless it is due beyond the wheel: then false, and nothing has happened.
    #[inline]
    pub fn push_mail(&mut self, posted: Posted, pool: &Pool) -> bool {
        let slot = posted.0 >> self.shift;
        if slot.wrapping_sub(self.loaded).wrapping_sub(1) < SLOTS as u64 - 1 {
            let number = self.near.insert_mail(posted, self.slots[slot as usize % SLOTS]);
            self.put_first(slot, number);
            return true;
        }
        if slot <= self.loaded {
            self.push_mail_now(posted, pool);
        }
        slot <= self.loaded
    }

    /// Adds a piece of mail for the loaded slot or before.
    #[cold]
    fn push_mail_now(&mut self, posted: Posted, pool: &Pool) {
        let event = (posted.0, self.near.insert_mail(posted, NONE));
        let rest = &self.batch[self.next..];
        let at = rest.partition_point(|&other| self.rank(other, pool) < self.rank(event, pool));
        self.batch.insert(self.next + at, event);
    }

    /// The packet and the link of what the batch holds by this number, if it is mail.
    #[inline]
    pub fn mail(&self, number: u32) -> Option<(PacketIndex, u32)> {
        self.near.mail(number)
    }

    /// Takes out what comes by a link, as the fabric numbers it. Slow: for faults.
    pub fn take_back_mail(&mut self, links: &mut [Link], link: u32) -> Vec<Posted> {
        let taken = self.near.mail_by(link).into_iter().filter_map(|number| {
            let (time, (index, link)) = (self.near.entry(number).0, self.near.mail(number)?);
            match self.batch[self.next..].iter().position(|&(_, other)| other == number) {
                Some(at) => drop(self.batch.remove(self.next + at)),
                None => self.unchain(links, number, time),
            }
            self.near.remove(number);
            Some((time, link, index))
        });
        taken.collect()
    }

    /// Sorts what is due at one instant, where not only links are in the batch: the numbers of others are in no order.
    pub(super) fn sort_instants(&mut self, pool: &Pool) {
        let mut batch = std::mem::take(&mut self.batch);
        for instant in batch.chunk_by_mut(|one, other| one.0 == other.0).filter(|instant| instant.len() > 1) {
            instant.sort_unstable_by_key(|&event| self.rank(event, pool));
        }
        self.batch = batch;
    }

    /// What events of a batch are sorted by: what comes by one link at one instant stays in the order in which it was sent.
    fn rank(&self, (time, number): (u64, u32), pool: &Pool) -> (u64, EventKey, u32) {
        let Some((index, link)) = self.near.mail(number) else { return (time, self.key_of(number), 0) };
        (time, EventKey::new(EventKind::Arrival, link), self.age_of(index, pool))
    }

    /// The less, the longer ago it was numbered.
    fn age_of(&self, index: PacketIndex, pool: &Pool) -> u32 {
        u32::MAX - self.posted.wrapping_sub(pool[index].next)
    }

    /// Brings mail that comes by one link into the order in which it arrives.
    pub fn sort_mail(&self, mail: &mut [Posted], pool: &Pool) {
        mail.sort_unstable_by_key(|&(time, _, index)| (time, self.age_of(index, pool)));
    }
}
