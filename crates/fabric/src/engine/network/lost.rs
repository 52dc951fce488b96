//! Packets that are no more: which of the fabric's accounts each of them is on.

use weft_packet::Kind;

use super::Network;
use crate::engine::drops::{DropCause, DropSite};
use crate::engine::link::FarEnd;
use crate::engine::pool::PacketIndex;
use crate::engine::retransmission_causes::Dropped;
use crate::engine::special::Special;

impl Network<'_> {
    /// A switch has no way to a packet's destination.
    #[cold]
    pub(super) fn drop_unroutable(&mut self, at: FarEnd, index: PacketIndex) {
        // Credits are counted by themselves wherever they are lost.
        self.counts.unroutable += u64::from(self.pool[index].kind != Kind::Credit);
        let node = self.topology.hosts as u32 + self.map.switch_number(at.switch);
        self.note_loss(DropSite::Node(node), DropCause::NoRoute, index);
        self.discard(index);
    }

    /// A packet finds the queue of the node full at which it is; the topology numbers that so.
    #[cold]
    pub(in crate::engine) fn drop_at_input(&mut self, node: u32, index: PacketIndex) {
        // Credits are counted by themselves wherever they are lost.
        self.counts.input_dropped += u64::from(self.pool[index].kind != Kind::Credit);
        self.note_loss(DropSite::Node(node), DropCause::Input, index);
        self.discard(index);
    }

    /// A port's queue does not take a packet.
    #[cold]
    pub(in crate::engine) fn refuse(&mut self, link: u32, index: PacketIndex) {
        self.trace_offered(link, index);
        let is_up = self
            .state
            .specials
            .get(self.state.links[link as usize].special as usize)
            .is_none_or(Special::is_up);
        self.drop_at(link, if is_up { DropCause::Queue } else { DropCause::Down }, index);
    }

    /// The wire loses a packet.
    #[cold]
    pub(in crate::engine) fn lose_on_wire(&mut self, link: u32, index: PacketIndex) {
        let special = self.state.specials.get(self.state.links[link as usize].special as usize);
        let is_swallowed = special.is_some_and(|special| special.swallows(&self.pool[index]));
        self.drop_at(link, if is_swallowed { DropCause::Blackhole } else { DropCause::Loss }, index);
    }

    /// A packet is lost at a link.
    #[cold]
    pub(in crate::engine) fn drop_at(&mut self, link: u32, cause: DropCause, index: PacketIndex) {
        let drops = &mut self.drops[link as usize];
        let count =
            if self.pool[index].kind == Kind::Credit { &mut drops.credits } else { &mut drops.dropped };
        *count += 1;
        self.note_loss(DropSite::Link(self.map.number(link)), cause, index);
        self.discard(index);
    }

    fn note_loss(&mut self, place: DropSite, cause: DropCause, index: PacketIndex) {
        let Some(losses) = &mut self.losses else { return };
        let packet = &self.pool[index];
        if packet.kind != Kind::Credit {
            let towards =
                (cause == DropCause::NoRoute).then(|| self.topology.rack_of_host[packet.dst.index()]);
            losses.note(place, cause, towards, packet, self.now);
        }
    }

    /// A packet goes onto a link with rules of its own: where that changes at some time, or loses
    /// packets, somebody may want to know.
    #[inline]
    pub(in crate::engine) fn note_passing(&mut self, link: u32, index: PacketIndex) {
        let Some(losses) = &mut self.losses else { return };
        let special = self.state.specials.get(self.state.links[link as usize].special as usize);
        let loses = special.is_some_and(Special::loses);
        if loses || self.changes[link as usize] {
            losses.note_passing(self.map.number(link), loses, &self.pool[index], self.now);
        }
    }

    fn discard(&mut self, index: PacketIndex) {
        self.counts.dropped += 1;
        drop(self.pool.take_frame(index));
        let packet = self.pool.remove(index);
        match packet.kind {
            Kind::Data if packet.flow.connection().is_some() => {}
            Kind::Data => self.dropped.push(Dropped::new(&packet, self.now)),
            Kind::Message | Kind::CreditRequest => drop(self.contents_of(&packet)),
            Kind::Credit => self.counts.credits_dropped += 1,
            _ => {}
        }
    }
}
