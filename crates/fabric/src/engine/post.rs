//! What goes to another part of the fabric, and what comes from one.

use weft_packet::Packet;
use weft_topology::{Parts, Topology};
use weft_units::Time;

use super::fetch::fetch;
use super::link::{FarEnd, Link};
use super::mail::{Bag, Beside, Outbox};
use super::network::{Network, take};
use super::pool::{Kept, NO_PACKET, PacketIndex, Pool};

/// Which part packets go to that leave theirs.
#[derive(Debug)]
pub struct Addresses {
    /// Whether the highest switches are split: then the destination decides.
    is_split: bool,
    /// By rack, and by switch that is whole.
    of_rack: Vec<u32>,
    of_switch: Vec<u32>,
    /// By link of the fabric: the switch that it leads to; of no meaning for one to a host. What says where mail goes, and few
    /// bytes each: a look at the link itself would be a wait for memory each time.
    switch_behind: Vec<u32>,
}

impl Addresses {
    /// Of a fabric in these parts.
    pub fn new(topology: &Topology, parts: &Parts) -> Self {
        let mut of_switch = vec![0; topology.switches];
        for (number, part) in parts.parts.iter().enumerate() {
            part.switches.iter().for_each(|&switch| of_switch[switch as usize] = number as u32);
        }
        let of_rack = topology.switch_of_rack.iter().map(|&switch| of_switch[switch as usize]).collect();
        let switch_of = |node: u32| node.saturating_sub(topology.hosts as u32);
        let switch_behind = topology.links.iter().map(|link| switch_of(link.to.0)).collect();
        Self { is_split: !parts.split.is_empty(), of_rack, of_switch, switch_behind }
    }

    /// The part that a packet comes to at the far end of a link that may lead to another part, and has this number: it leads to a switch.
    #[inline]
    fn part(&self, topology: &Topology, number: impl Fn() -> u32, packet: &Packet) -> u32 {
        if self.is_split {
            self.of_rack[usize::from(topology.rack_of_host[packet.dst.index()])]
        } else {
            self.of_switch[self.switch_behind(number()) as usize]
        }
    }

    /// The switch that a link leads to, both as the fabric numbers them.
    #[inline]
    fn switch_behind(&self, number: u32) -> u32 {
        self.switch_behind[number as usize]
    }
}

/// Of a link that leads to no other part.
pub const STAYS: u64 = u64::MAX;

/// Whether anything may travel beside a packet.
#[inline(always)]
#[allow(clippy::inline_always)]
fn has_more(pool: &Pool, index: PacketIndex) -> bool {
    pool.has_options() || pool.has_blocked() || pool[index].contents().is_some()
}

/// Takes out what travels beside a packet that is about to be taken out.
#[cold]
fn beside(pool: &mut Pool, index: PacketIndex) -> Option<Beside> {
    let packet = pool[index];
    let (option, contents, kept) = (pool.option(index), pool.contents().take(&packet), pool.kept(index));
    let has_more = option > 0 || contents.is_some() || kept != Kept::default();
    has_more.then_some(Beside { option, contents, kept })
}

/// The post office of a part: what leaves it.
pub struct PostOffice {
    /// The part's number.
    pub own: u32,
    /// Which part is whose.
    pub addresses: std::sync::Arc<Addresses>,
    /// By link: when the last packet arrives that was put on it, in ps; [`STAYS`] if it leads to no other part.
    pub latest: Vec<u64>,
    /// What is to be carried to other parts.
    pub outbox: Outbox,
}

impl Network<'_> {
    /// A packet is on its way over a link, to arrive at this time or, behind another one, later. True if it leaves this part by
    /// that; otherwise it goes on here, at the time that is returned.
    #[inline]
    pub(super) fn post(&mut self, link: u32, index: PacketIndex, at_ps: u64) -> Result<u64, ()> {
        let Some(office) = &mut self.office else { return Ok(at_ps) };
        let latest = &mut office.latest[link as usize];
        if *latest == STAYS {
            return Ok(at_ps);
        }
        *latest = at_ps.max(*latest);
        let arrive = *latest;
        let Some(part) = self.part_elsewhere(link, index) else { return Ok(arrive) };
        self.send_off(link, index, part, arrive);
        Err(())
    }

    /// At the end of a window, a packet is on its way over a link: to another part, or by mail to this one.
    pub(super) fn post_at_end(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let Some(office) = &self.office else { return };
        let part = office.addresses.part(self.topology, || self.site.number(link), &self.pool[index]);
        self.send_off(link, index, part, arrive);
    }

    /// Queues a packet on a link that its profile describes, and that may lead to another part, or drops it: see [`Self::enqueue`].
    #[inline(never)]
    pub(super) fn enqueue_leaving<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let state = &mut self.state.links[link as usize];
        let (packet, profile) = (&mut self.pool[index], &self.state.profiles[state.profile]);
        // It arrives later than what was put on it before: its delay does not change.
        let taken = take(now, link, state, packet, profile, &mut self.drops, &mut self.counts);
        let Some((backlog, arrive)) = taken else { return self.refuse(link, index) };
        let tier = state.tier;
        if SHOWN && self.sees(tier) {
            self.tell_of_queued(link, index, backlog);
        }
        match self.part_elsewhere(link, index) {
            Some(part) => self.send_off(link, index, part, arrive),
            None => self.put_on_list_in_order(link, index, arrive),
        }
    }

    /// The part that a packet comes to at the far end of a link that may lead to another part; none if it stays in this one.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn part_elsewhere(&self, link: u32, index: PacketIndex) -> Option<u32> {
        let office = self.office.as_ref()?;
        let number = || self.site.number(link);
        let part = office.addresses.part(self.topology, number, &self.pool[index]);
        (part != office.own).then_some(part)
    }

    /// A packet leaves this part by a link, to arrive at this time.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn send_off(&mut self, link: u32, index: PacketIndex, part: u32, arrive_ps: u64) {
        let number = self.site.number(link);
        let Some(office) = &mut self.office else { return };
        let packet = &mut self.pool[index];
        (packet.arrive, packet.next) = (Time::from_ps(arrive_ps), number);
        if has_more(&self.pool, index)
            && let Some(beside) = beside(&mut self.pool, index)
        {
            office.outbox.put_beside(part, beside);
        }
        office.outbox.post(part, &self.pool[index]);
        self.pool.free(index);
    }

    /// Packets that are sent in another part may come by the link with this number of the fabric, which leads here. They have a list of
    /// their own here, in the order in which they arrive.
    pub(super) fn add_entry(&mut self, number: u32, far_end: FarEnd) {
        let tier = self.topology.links[number as usize].tier as u8;
        self.state.links.push(Link::idle(far_end, 0, tier));
        self.site.add_entry(number);
        self.events.add_link(number);
    }

    /// Takes in a packet from another part, which says when it arrives, and in place of the packet behind it by which link.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn take_in_mail(&mut self, packet: &Packet, beside: Option<Beside>) {
        let link = self.events.numbers().here(packet.next);
        let index = self.take_in(packet, beside);
        self.put_on_list_in_order(link, index, packet.arrive.as_ps());
    }

    /// Asks for what it will take to take in a packet some packets later.
    #[inline]
    pub fn fetch_for_mail(&self, packet: &Packet) {
        if let Some(link) = self.state.links.get(self.events.numbers().here(packet.next) as usize) {
            fetch(link);
        }
        self.pool.warm_free(Bag::AHEAD);
    }

    /// Takes back what was posted to this part over the link with this number of the fabric, by arrival.
    pub fn take_back_mail(&mut self, number: u32) -> Vec<(Packet, Option<Beside>)> {
        let link = self.events.numbers().here(number);
        if (link as usize) < self.site.link_count() || link as usize >= self.state.links.len() {
            return Vec::new();
        }
        let members = self.take_members(link);
        let state = &mut self.state.links[link as usize];
        (state.head, state.tail) = (NO_PACKET, NO_PACKET);
        let pool = &mut self.pool;
        let take = |index| {
            let beside = beside(pool, index);
            (pool.remove(index), beside)
        };
        members.into_iter().map(take).collect()
    }

    /// Puts a packet from another part into the pool, with what travels beside it.
    #[inline]
    pub fn take_in(&mut self, packet: &Packet, beside: Option<Beside>) -> PacketIndex {
        let index = self.pool.insert(*packet);
        if beside.is_some() || self.pool.has_options() || self.pool.has_blocked() {
            self.keep(index, beside.unwrap_or_default());
        }
        index
    }

    #[cold]
    fn keep(&mut self, index: PacketIndex, beside: Beside) {
        self.pool.set_option(index, beside.option);
        self.pool.set_kept(index, beside.kept);
        if let Some(contents) = beside.contents {
            let mut body = self.pool[index].message_body();
            body.contents = Some(self.pool.contents().keep(contents));
            self.pool[index].set_message_body(body);
        }
    }

    /// Puts packets back on the link by which they left this part, in the order in which they arrive: the link changes its
    /// condition. A link that changes leads to one part.
    pub(super) fn recall(&mut self, link: u32, posted: Vec<(Packet, Option<Beside>)>) {
        let mut members: Vec<PacketIndex> = Vec::with_capacity(posted.len());
        for (packet, beside) in posted {
            let index = self.take_in(&packet, beside);
            if let Some(&ahead) = members.last() {
                self.pool[ahead].next = index;
            }
            members.push(index);
        }
        let (Some(&head), Some(&tail)) = (members.first(), members.last()) else { return };
        let state = &mut self.state.links[link as usize];
        (state.head, state.tail) = (head, tail);
        state.head_arrive = self.pool[head].arrive.as_ps();
        self.events.push_link(state, link);
    }

    /// Posts again what is on a link that leads to another part, when its condition has changed.
    pub(super) fn post_again(&mut self, link: u32) {
        match &mut self.office {
            Some(office) if office.latest[link as usize] != STAYS => office.latest[link as usize] = 0,
            _ => return,
        }
        let members = self.take_members(link);
        let state = &mut self.state.links[link as usize];
        (state.head, state.tail) = (NO_PACKET, NO_PACKET);
        for index in members {
            let arrive = self.pool[index].arrive.as_ps();
            // What goes to this part went on here before the change, too.
            if let Ok(arrive) = self.post(link, index, arrive) {
                self.put_on_list(link, index, arrive);
            }
        }
    }
}
