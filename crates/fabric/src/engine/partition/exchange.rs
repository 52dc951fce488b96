//! The exchange: packets that go to other partitions, and those that come from them.

use weft_packet::Packet;
use weft_topology::{Partitioning, Topology};
use weft_units::Time;

use super::batches::{Batch, OutgoingBatches, PacketExtras};
use crate::engine::fetch::fetch;
use crate::engine::link::{FarEnd, Link};
use crate::engine::network::{Network, take};
use crate::engine::pool::{Kept, NO_PACKET, PacketIndex, Pool};

/// To which partition a packet goes that leaves its own.
#[derive(Debug)]
pub struct Destinations {
    /// Whether the highest switches are split: then the destination decides.
    is_split: bool,
    /// By rack, and by switch that is whole.
    of_rack: Vec<u32>,
    of_switch: Vec<u32>,
    /// By link of the fabric: the switch that it leads to; meaningless for one to a host. A compact
    /// table: to read the link itself would miss the cache each time.
    switch_behind: Vec<u32>,
}

impl Destinations {
    /// The destinations in a fabric that is partitioned so.
    pub fn new(topology: &Topology, partitions: &Partitioning) -> Self {
        let mut of_switch = vec![0; topology.switches];
        for (number, partition) in partitions.partitions.iter().enumerate() {
            partition.switches.iter().for_each(|&switch| of_switch[switch as usize] = number as u32);
        }
        let of_rack = topology.switch_of_rack.iter().map(|&switch| of_switch[switch as usize]).collect();
        let switch_of = |node: u32| node.saturating_sub(topology.hosts as u32);
        let switch_behind = topology.links.iter().map(|link| switch_of(link.to.0)).collect();
        Self { is_split: !partitions.split.is_empty(), of_rack, of_switch, switch_behind }
    }

    /// The partition at the far end of a link that leads to a switch and may lead to another
    /// partition. `number` is the fabric's.
    #[inline]
    fn partition(&self, topology: &Topology, number: impl Fn() -> u32, packet: &Packet) -> u32 {
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

/// In place of a time, for a link that leads to no other partition.
pub const STAYS: u64 = u64::MAX;

/// Whether a packet may have extras.
#[inline(always)]
#[allow(clippy::inline_always)]
fn has_more(pool: &Pool, index: PacketIndex) -> bool {
    pool.has_options() || pool.has_blocked() || pool[index].contents().is_some()
}

/// Takes out the extras of a packet that is about to leave.
#[cold]
fn extras(pool: &mut Pool, index: PacketIndex) -> Option<PacketExtras> {
    let packet = pool[index];
    let (option, contents, kept) = (pool.option(index), pool.contents().take(&packet), pool.kept(index));
    let has_more = option > 0 || contents.is_some() || kept != Kept::default();
    has_more.then_some(PacketExtras { option, contents, kept })
}

/// A partition's end of the exchange: what leaves it.
pub struct Exchange {
    /// The partition's number.
    pub own: u32,
    /// Which partition has which nodes.
    pub destinations: std::sync::Arc<Destinations>,
    /// By link: when the last packet arrives that was put on it, in ps; [`STAYS`] if it leads to no
    /// other partition.
    pub latest: Vec<u64>,
    /// Packets for other partitions.
    pub outgoing: OutgoingBatches,
}

impl Network<'_> {
    /// A packet is on its way over a link, to arrive at this time or, behind another one, later.
    /// True if it leaves this partition by that; otherwise it goes on here, at the time that is
    /// returned.
    #[inline]
    pub fn send_out(&mut self, link: u32, index: PacketIndex, at_ps: u64) -> Result<u64, ()> {
        let Some(exchange) = &mut self.exchange else { return Ok(at_ps) };
        let latest = &mut exchange.latest[link as usize];
        if *latest == STAYS {
            return Ok(at_ps);
        }
        *latest = at_ps.max(*latest);
        let arrive = *latest;
        let Some(partition) = self.partition_elsewhere(link, index) else { return Ok(arrive) };
        self.send_off(link, index, partition, arrive);
        Err(())
    }

    /// At the end of a window, a packet is on its way over a link: to another partition, or through
    /// the exchange to this one.
    pub fn send_at_end(&mut self, link: u32, index: PacketIndex, arrive: u64) {
        let Some(exchange) = &self.exchange else { return };
        let partition =
            exchange.destinations.partition(self.topology, || self.map.number(link), &self.pool[index]);
        self.send_off(link, index, partition, arrive);
    }

    /// Queues a packet on a link that its profile describes, and that may lead to another
    /// partition, or drops it: see [`Self::enqueue`].
    #[inline(never)]
    pub fn enqueue_leaving<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let state = &mut self.state.links[link as usize];
        let (packet, profile) = (&mut self.pool[index], &self.state.profiles[state.profile]);
        // It arrives later than what was put on it before: its delay does not change.
        let taken = take(now, link, state, packet, profile, &mut self.drops, &mut self.counts);
        let Some((backlog, arrive)) = taken else { return self.refuse(link, index) };
        let tier = state.tier;
        if SHOWN && self.watches(tier) {
            self.notify_enqueued(link, index, backlog);
        }
        match self.partition_elsewhere(link, index) {
            Some(partition) => self.send_off(link, index, partition, arrive),
            None => self.put_on_list_in_order(link, index, arrive),
        }
    }

    /// The partition that a packet comes to at the far end of a link that may lead to another
    /// partition; none if it stays in this one.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn partition_elsewhere(&self, link: u32, index: PacketIndex) -> Option<u32> {
        let exchange = self.exchange.as_ref()?;
        let number = || self.map.number(link);
        let partition = exchange.destinations.partition(self.topology, number, &self.pool[index]);
        (partition != exchange.own).then_some(partition)
    }

    /// A packet leaves this partition by a link, to arrive at this time.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn send_off(&mut self, link: u32, index: PacketIndex, partition: u32, arrive_ps: u64) {
        let number = self.map.number(link);
        let Some(exchange) = &mut self.exchange else { return };
        let packet = &mut self.pool[index];
        (packet.arrive, packet.next) = (Time::from_ps(arrive_ps), number);
        if has_more(&self.pool, index)
            && let Some(extras) = extras(&mut self.pool, index)
        {
            exchange.outgoing.put_extras(partition, extras);
        }
        exchange.outgoing.push(partition, &self.pool[index]);
        self.pool.free(index);
    }

    /// Packets that are sent in another partition may come by the link with this number of the
    /// fabric, which leads here. They have a list of their own here, in the order in which they
    /// arrive.
    pub fn add_entry(&mut self, number: u32, far_end: FarEnd) {
        let tier = self.topology.links[number as usize].tier as u8;
        self.state.links.push(Link::idle(far_end, 0, tier));
        self.map.add_entry(number);
        self.events.add_link(number);
    }

    /// Takes in a packet from another partition, which says when it arrives, and in place of the
    /// packet behind it by which link.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn take_in_sent(&mut self, packet: &Packet, extras: Option<PacketExtras>) {
        let link = self.events.numbers().here(packet.next);
        let index = self.take_in(packet, extras);
        self.put_on_list_in_order(link, index, packet.arrive.as_ps());
    }

    /// Asks for what it will take to take in a packet some packets later.
    #[inline]
    pub fn prefetch_sent(&self, packet: &Packet) {
        if let Some(link) = self.state.links.get(self.events.numbers().here(packet.next) as usize) {
            fetch(link);
        }
        self.pool.warm_free(Batch::AHEAD);
    }

    /// Takes back what was sent to this partition over the link with this number of the fabric, by
    /// arrival.
    pub fn take_back_sent(&mut self, number: u32) -> Vec<(Packet, Option<PacketExtras>)> {
        let link = self.events.numbers().here(number);
        if (link as usize) < self.map.link_count() || link as usize >= self.state.links.len() {
            return Vec::new();
        }
        let members = self.take_members(link);
        let state = &mut self.state.links[link as usize];
        (state.head, state.tail) = (NO_PACKET, NO_PACKET);
        let pool = &mut self.pool;
        let take = |index| {
            let extras = extras(pool, index);
            (pool.remove(index), extras)
        };
        members.into_iter().map(take).collect()
    }

    /// Puts a packet from another partition into the pool, with its extras.
    #[inline]
    pub fn take_in(&mut self, packet: &Packet, extras: Option<PacketExtras>) -> PacketIndex {
        let index = self.pool.insert(*packet);
        if extras.is_some() || self.pool.has_options() || self.pool.has_blocked() {
            self.keep(index, extras.unwrap_or_default());
        }
        index
    }

    #[cold]
    fn keep(&mut self, index: PacketIndex, extras: PacketExtras) {
        self.pool.set_option(index, extras.option);
        self.pool.set_kept(index, extras.kept);
        if let Some(contents) = extras.contents {
            let mut body = self.pool[index].message_body();
            body.contents = Some(self.pool.contents().keep(contents));
            self.pool[index].set_message_body(body);
        }
    }

    /// Puts packets back on the link by which they left this partition, in the order in which they
    /// arrive: the link changes its condition. A link that changes leads to one partition.
    pub fn recall(&mut self, link: u32, sent: Vec<(Packet, Option<PacketExtras>)>) {
        let mut members: Vec<PacketIndex> = Vec::with_capacity(sent.len());
        for (packet, extras) in sent {
            let index = self.take_in(&packet, extras);
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

    /// Sends again what is on a link to another partition, when the link's condition has changed.
    pub fn send_again(&mut self, link: u32) {
        match &mut self.exchange {
            Some(exchange) if exchange.latest[link as usize] != STAYS => exchange.latest[link as usize] = 0,
            _ => return,
        }
        let members = self.take_members(link);
        let state = &mut self.state.links[link as usize];
        (state.head, state.tail) = (NO_PACKET, NO_PACKET);
        for index in members {
            let arrive = self.pool[index].arrive.as_ps();
            // What goes to this partition went on here before the change, too.
            if let Ok(arrive) = self.send_out(link, index, arrive) {
                self.put_on_list(link, index, arrive);
            }
        }
    }
}
