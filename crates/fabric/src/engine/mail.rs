//! Packets on their way from one part of the fabric to another.
//!
//! A packet's arrival is known when it is queued, so it is posted at once, and waits at its destination until its time comes.
//! Time there is cut into days as long as the least delay between parts: what is posted on one day arrives on a later one.

use std::sync::Arc;

use weft_packet::Packet;
use weft_units::{Span, Time};

use super::fetch::fetch_numbered;
use super::pool::{Kept, PacketIndex};

/// What travels beside a packet.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Its option word.
    pub option: u32,
    /// Its contents.
    pub contents: Option<Arc<[u32]>>,
    /// How long pauses kept it.
    pub kept: Kept,
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
        // What is written next was read last in the window before.
        fetch_numbered(&self.packets, self.packets.len() + Self::AHEAD);
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

    /// So many places before its turn a packet is told of.
    pub const AHEAD: usize = 8;

    /// Empties it, and hands out each packet with what travels beside it, in order; and, if it is there and nothing travels beside any, the
    /// one whose turn comes [`Self::AHEAD`] places later.
    #[inline]
    pub fn empty(&mut self, mut take: impl FnMut(&Packet, Option<Beside>, Option<&Packet>)) {
        if self.beside.is_empty() {
            let packets = self.packets.iter().enumerate();
            packets.for_each(|(place, packet)| take(packet, None, self.packets.get(place + Self::AHEAD)));
        } else {
            let mut beside = self.beside.drain(..).peekable();
            for (place, packet) in (0u32..).zip(&self.packets) {
                let own = beside.next_if(|of| of.0 == place);
                take(packet, own.map(|of| of.1), None);
            }
        }
        self.packets.clear();
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

/// A packet from another part: when it arrives, in ps, by which link as the fabric numbers them, and its place in the pool.
pub type Posted = (u64, u32, PacketIndex);

/// Days in a page, and pages ahead that have a list of their own.
const PAGE: u64 = 64;

/// The mail that one part has still to receive, and that is due beyond its timing wheel: by day as far as the page of today goes, by
/// page for the pages that follow, and what is further ahead. Mail that comes by one link stays in the order in which it was put in.
#[derive(Debug)]
pub struct Mailbox {
    day_ps: u64,
    days: Box<[Vec<Posted>]>,
    pages: Box<[Vec<Posted>]>,
    /// Which days and pages hold something.
    days_used: u64,
    pages_used: u64,
    far: Vec<Posted>,
    /// The first page of which `far` holds something.
    far_page: u64,
    /// Days before this one have been handed out.
    today: u64,
    /// Room that lists had which hold nothing now: the last one is used first, and still warm.
    spare: Vec<Vec<Posted>>,
}

impl Mailbox {
    /// Empty, with days of this length, which is not zero.
    pub fn new(day: Span) -> Self {
        let lists = || (0..PAGE).map(|_| Vec::new()).collect();
        Self {
            day_ps: day.as_ps(),
            days: lists(),
            pages: lists(),
            days_used: 0,
            pages_used: 0,
            far: Vec::new(),
            far_page: u64::MAX,
            today: 0,
            spare: Vec::new(),
        }
    }

    /// Takes in a piece of mail, for a day that has not been handed out.
    #[inline]
    pub fn put(&mut self, posted: Posted) {
        let day = posted.0 / self.day_ps;
        debug_assert!(day >= self.today, "mail comes before its day begins");
        let (page, ahead) = (day / PAGE, day / PAGE - self.today / PAGE);
        let (used, list, place) = if ahead == 0 {
            (&mut self.days_used, &mut self.days, day % PAGE)
        } else if ahead < PAGE {
            (&mut self.pages_used, &mut self.pages, page % PAGE)
        } else {
            self.far_page = self.far_page.min(page);
            return self.far.push(posted);
        };
        let list = &mut list[place as usize];
        if *used >> place & 1 == 0 {
            *used |= 1 << place;
            *list = self.spare.pop().unwrap_or_default();
        }
        list.push(posted);
    }

    /// Hands out the mail of a day, in no order, in place of what is in `mail`. The days before it hold none, unless they were
    /// handed out. Nothing if the day has been handed out.
    pub fn hand_out(&mut self, day: u64, mail: &mut Vec<Posted>) {
        mail.clear();
        if day < self.today {
            return;
        }
        self.turn_to(day);
        let place = day % PAGE;
        if self.days_used >> place & 1 == 1 {
            self.days_used &= !(1 << place);
            let own = std::mem::take(&mut self.days[place as usize]);
            self.spare.push(std::mem::replace(mail, own));
        }
        self.turn_to(day + 1);
    }

    /// When a day begins.
    pub const fn begin_of(&self, day: u64) -> Time {
        Time::from_ps(day * self.day_ps)
    }

    /// Makes this day today. With a new page its days are sorted out, and so are pages that were too far ahead.
    #[inline]
    fn turn_to(&mut self, day: u64) {
        let (before, page) = (self.today / PAGE, day / PAGE);
        self.today = day;
        if page != before {
            self.open(page);
        }
    }

    fn open(&mut self, page: u64) {
        if self.far_page < page + PAGE {
            self.far_page = u64::MAX;
            for posted in std::mem::take(&mut self.far) {
                self.put(posted);
            }
        }
        let place = page % PAGE;
        if self.pages_used >> place & 1 == 1 {
            self.pages_used &= !(1 << place);
            let mut opened = std::mem::take(&mut self.pages[place as usize]);
            for posted in opened.drain(..) {
                self.put(posted);
            }
            self.spare.push(opened);
        }
    }

    /// The first day for which there may be mail: none before it; none if there is no mail.
    #[inline]
    fn next_day(&self) -> Option<u64> {
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
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.next_day().map(|day| Time::from_ps(day * self.day_ps))
    }

    /// Takes out what comes by a link, in no order: the link changes its condition.
    pub fn take_back(&mut self, link: u32) -> Vec<Posted> {
        let lists = self.days.iter_mut().chain(&mut self.pages).chain(std::iter::once(&mut self.far));
        lists.flat_map(|list| list.extract_if(.., |posted| posted.1 == link)).collect()
    }
}

#[cfg(test)]
mod tests;
