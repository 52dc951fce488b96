//! Packets on their way from one part of the fabric to another.
//!
//! A packet's arrival is known when it is queued, so it is posted at once, and waits at its destination until its time comes.
//! Time there is cut into days as long as the least delay between parts: what is posted on one day arrives on a later one.

use std::sync::Arc;

use weft_packet::Packet;
use weft_units::{Span, Time};

/// What travels beside a packet.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Its option word.
    pub option: u32,
    /// Its contents.
    pub contents: Option<Arc<[u32]>>,
}

/// Packets for one part. Each says when it arrives, and in place of the packet behind it the link that it comes by, as the fabric
/// numbers them.
#[derive(Debug, Default)]
pub struct Bag {
    packets: Vec<Packet>,
    /// What few packets have: by place, ascending.
    beside: Vec<(u32, Beside)>,
}

impl Bag {
    /// Puts a packet in.
    #[inline]
    pub fn push(&mut self, packet: Packet, beside: Option<Beside>) {
        if let Some(beside) = beside {
            self.beside.push((self.packets.len() as u32, beside));
        }
        self.packets.push(packet);
    }

    /// Whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How many packets are in it.
    pub const fn len(&self) -> usize {
        self.packets.len()
    }

    /// The packets, by place.
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// A packet and what travels beside it. That is taken out.
    #[inline]
    pub fn open(&mut self, place: u32) -> (Packet, Option<Beside>) {
        let found = self.beside.binary_search_by_key(&place, |of| of.0);
        let beside = found.ok().map(|found| std::mem::take(&mut self.beside[found].1));
        (self.packets[place as usize], beside)
    }

    /// Empties it, and hands out each packet with what travels beside it, in order.
    pub fn empty(&mut self, mut take: impl FnMut(Packet, Option<Beside>)) {
        let mut beside = self.beside.drain(..).peekable();
        for (place, packet) in (0u32..).zip(self.packets.drain(..)) {
            let own = beside.next_if(|of| of.0 == place);
            take(packet, own.map(|of| of.1));
        }
    }

    /// Throws away what is in it.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.beside.clear();
    }

    /// Puts what is in another one behind what is in this one.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return std::mem::swap(self, other);
        }
        let before = self.packets.len() as u32;
        self.packets.append(&mut other.packets);
        self.beside.extend(other.beside.drain(..).map(|(place, beside)| (place + before, beside)));
    }
}

/// What leaves a part, or several parts that are worked by one thread: a bag for each part.
#[derive(Debug, Default)]
pub struct Outbox {
    bags: Vec<Bag>,
    /// The parts for which there is something.
    used: Vec<u32>,
    /// When the first packet arrives that was posted since this was last asked, in ps.
    earliest_ps: u64,
    /// Packets that have been handed out.
    sent: u64,
}

impl Outbox {
    /// Nothing, for so many parts.
    pub fn new(parts: usize) -> Self {
        Self {
            bags: (0..parts).map(|_| Bag::default()).collect(),
            used: Vec::new(),
            earliest_ps: u64::MAX,
            sent: 0,
        }
    }

    /// Puts in a packet for a part.
    #[inline]
    pub fn post(&mut self, part: u32, packet: Packet, beside: Option<Beside>) {
        let bag = &mut self.bags[part as usize];
        if bag.is_empty() {
            self.used.push(part);
        }
        self.earliest_ps = self.earliest_ps.min(packet.arrive.as_ps());
        bag.push(packet, beside);
    }

    /// When the first packet arrives that was posted since this was last asked, in ps; `u64::MAX` if none was.
    pub const fn take_earliest_ps(&mut self) -> u64 {
        std::mem::replace(&mut self.earliest_ps, u64::MAX)
    }

    /// Hands out what is there for each part. What is taken of a bag is gone, and all of it is to be taken.
    pub fn send(&mut self, mut deliver: impl FnMut(u32, &mut Bag)) {
        for part in self.used.drain(..) {
            let bag = &mut self.bags[part as usize];
            self.sent += bag.len() as u64;
            deliver(part, bag);
        }
    }

    /// How many packets have been handed out.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
}

/// Days in a page, and pages ahead that have a bag of their own.
const PAGE: u64 = 64;

/// The mail that one part has still to receive: by day as far as the page of today goes, by page for the pages that follow, and
/// what is further ahead.
#[derive(Debug)]
pub struct Mailbox {
    day_ps: u64,
    days: Box<[Bag]>,
    pages: Box<[Bag]>,
    /// Which days and pages hold something.
    days_used: u64,
    pages_used: u64,
    far: Bag,
    /// The first page of which `far` holds something.
    far_page: u64,
    /// Days before this one have been handed out.
    today: u64,
}

impl Mailbox {
    /// Empty, with days of this length, which is not zero.
    pub fn new(day: Span) -> Self {
        let bags = || (0..PAGE).map(|_| Bag::default()).collect();
        Self {
            day_ps: day.as_ps(),
            days: bags(),
            pages: bags(),
            days_used: 0,
            pages_used: 0,
            far: Bag::default(),
            far_page: u64::MAX,
            today: 0,
        }
    }

    /// Takes in a packet, for a day that has not been handed out.
    #[inline]
    pub fn put(&mut self, packet: Packet, beside: Option<Beside>) {
        let day = packet.arrive.as_ps() / self.day_ps;
        debug_assert!(day >= self.today, "mail comes before its day begins");
        let (page, ahead) = (day / PAGE, day / PAGE - self.today / PAGE);
        if ahead == 0 {
            self.days_used |= 1 << (day % PAGE);
            self.days[(day % PAGE) as usize].push(packet, beside);
        } else if ahead < PAGE {
            self.pages_used |= 1 << (page % PAGE);
            self.pages[(page % PAGE) as usize].push(packet, beside);
        } else {
            self.far_page = self.far_page.min(page);
            self.far.push(packet, beside);
        }
    }

    /// Hands out the mail of a day, in no order, into `bag`, which is empty. The days before it hold none, unless they were
    /// handed out. Nothing if the day has been handed out.
    pub fn hand_out(&mut self, day: u64, bag: &mut Bag) {
        if day < self.today {
            return;
        }
        self.turn_to(day);
        self.days_used &= !(1 << (day % PAGE));
        std::mem::swap(bag, &mut self.days[(day % PAGE) as usize]);
        self.turn_to(day + 1);
    }

    /// Whether the mail of a day was handed out.
    pub const fn has_handed_out(&self, day: u64) -> bool {
        day < self.today
    }

    /// Takes mail of the last day back that was handed out, and will hand it out again.
    pub fn take_in_again(&mut self, day: u64, bag: &mut Bag) {
        debug_assert!(day + 1 == self.today, "only the day before can be had again");
        if day / PAGE != self.today / PAGE {
            // The days of the new page wait with the pages again.
            let opened = self.all_of_days();
            self.today = day;
            for (packet, beside) in opened {
                self.put(packet, beside);
            }
        }
        self.today = day;
        bag.empty(|packet, beside| self.put(packet, beside));
    }

    fn all_of_days(&mut self) -> Vec<(Packet, Option<Beside>)> {
        let mut all = Vec::new();
        self.days_used = 0;
        self.days.iter_mut().for_each(|bag| bag.empty(|packet, beside| all.push((packet, beside))));
        all
    }

    /// Makes this day today. With a new page its days are sorted out, and so are pages that were too far ahead.
    fn turn_to(&mut self, day: u64) {
        let (before, page) = (self.today / PAGE, day / PAGE);
        self.today = day;
        if page == before {
            return;
        }
        if self.far_page < page + PAGE {
            self.far_page = u64::MAX;
            let mut far = std::mem::take(&mut self.far);
            far.empty(|packet, beside| self.put(packet, beside));
        }
        if self.pages_used >> (page % PAGE) & 1 == 1 {
            self.pages_used &= !(1 << (page % PAGE));
            let mut opened = std::mem::take(&mut self.pages[(page % PAGE) as usize]);
            opened.empty(|packet, beside| self.put(packet, beside));
            self.pages[(page % PAGE) as usize] = opened;
        }
    }

    /// The first day for which there may be mail: none before it; none if there is no mail.
    pub fn next_day(&self) -> Option<u64> {
        let (page, place) = (self.today / PAGE, self.today % PAGE);
        let days = self.days_used >> place;
        if days > 0 {
            return Some(self.today + u64::from(days.trailing_zeros()));
        }
        let pages = self.pages_used.rotate_right((page % PAGE) as u32);
        let next = if pages > 0 { Some(page + u64::from(pages.trailing_zeros())) } else { None };
        next.or((self.far_page < u64::MAX).then_some(self.far_page)).map(|page| page * PAGE)
    }

    /// When the first packet arrives, or an instant before; none if there is no mail.
    pub fn next_time(&self) -> Option<Time> {
        self.next_day().map(|day| Time::from_ps(day * self.day_ps))
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        let bags = self.days.iter().chain(&self.pages).chain(std::iter::once(&self.far));
        bags.map(Bag::len).sum()
    }

    /// Takes out what comes by a link, by arrival: the link changes its condition.
    pub fn take_back(&mut self, link: u32) -> Vec<(Packet, Option<Beside>)> {
        let (mut taken, mut kept) = (Vec::new(), Bag::default());
        let bags = self.days.iter_mut().chain(&mut self.pages).chain(std::iter::once(&mut self.far));
        for bag in bags {
            bag.empty(|packet, beside| {
                if packet.next == link { taken.push((packet, beside)) } else { kept.push(packet, beside) }
            });
            bag.append(&mut kept);
        }
        // Stable: packets that arrive at one instant stay in the order in which they were posted.
        taken.sort_by_key(|(packet, _)| packet.arrive);
        taken
    }
}

#[cfg(test)]
mod tests;
