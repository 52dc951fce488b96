//! Mail in the timing wheel: packets from other parts that arrive before it has gone round.

use super::{Event, EventKey, EventKind, EventSet, NONE, SLOTS};
use crate::engine::fetch::fetch;
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

    /// Asks for the slot of what arrives then.
    #[inline]
    pub fn fetch_slot(&self, at: Time) {
        fetch(&self.slots[(at.as_ps() >> self.shift) as usize % SLOTS]);
    }

    /// Adds a piece of mail for the loaded slot or before.
    #[cold]
    fn push_mail_now(&mut self, posted: Posted, pool: &Pool) {
        let event = Event::new(posted.0, posted.1, self.near.insert_mail(posted, NONE));
        let before = |&other: &Event| self.rank(other, pool) < self.rank(event, pool);
        let at = self.batch[self.next..].partition_point(before);
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
            match self.batch[self.next..].iter().position(|event| event.number() == number) {
                Some(at) => drop(self.batch.remove(self.next + at)),
                None => self.unchain(links, number, time),
            }
            self.near.remove(number);
            Some((time, link, index))
        });
        taken.collect()
    }

    /// Brings those of the batch into order whose time and rank are the same: packets that come by one link at one instant, and some timers.
    /// Both are rare.
    pub(super) fn sort_alike(&mut self, pool: &Pool) {
        let mut from = 0;
        while let Some(at) = self.batch[from..].windows(2).position(|pair| pair[0].is_like(pair[1])) {
            from += at;
            let first = self.batch[from];
            let count = self.batch[from..].iter().take_while(|event| event.is_like(first)).count();
            let mut batch = std::mem::take(&mut self.batch);
            batch[from..from + count].sort_unstable_by_key(|&event| self.rank(event, pool));
            self.batch = batch;
            from += count;
        }
    }

    /// What events of a batch are sorted by: what comes by one link at one instant stays in the order in which it was sent.
    fn rank(&self, event: Event, pool: &Pool) -> (u64, EventKey, u32) {
        let (time, number) = (event.time(), event.number());
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
