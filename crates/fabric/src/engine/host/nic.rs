//! A host's access to the fabric: its own cable, its own timers, and the map that its operator gave
//! it.

use std::sync::Arc;

use weft_balance::Message;
use weft_packet::{FlowId, HostId, Packet, PacketFlags};
use weft_units::{PicosPerByte, Time};

use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::external_hosts::Frame;
use crate::engine::fct_breakdown::Paused;
use crate::engine::network::Network;
use weft_topology::Routes;

use super::rnic::Gate;

/// One host's way to the fabric. Whatever runs at a host gets this and not the network: so it
/// cannot reach another node.
pub struct HostPort<'n, 'a> {
    network: &'n mut Network<'a>,
    host: HostId,
}

impl<'n, 'a> HostPort<'n, 'a> {
    /// Access of this host.
    #[inline]
    pub const fn new(network: &'n mut Network<'a>, host: HostId) -> Self {
        Self { network, host }
    }

    /// The host.
    pub const fn host(&self) -> HostId {
        self.host
    }

    /// The time now.
    #[inline]
    pub const fn now(&self) -> Time {
        self.network.now
    }

    /// A host scheme has seen a packet that this host is about to send.
    pub fn note_label(&mut self, packet: &Packet) {
        self.network.note_label(packet);
    }

    /// Puts a packet of this host into its output queue. Inlined by force: see [`Network::send`].
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn send(&mut self, packet: Packet) {
        debug_assert_eq!(packet.src, self.host, "a host sends its own packets");
        self.network.send(packet);
    }

    /// Sends a packet when the host's CPU has worked on it, if that takes time.
    pub fn send_apart(&mut self, packet: Packet) {
        debug_assert_eq!(packet.src, self.host, "a host sends its own packets");
        self.network.send_apart(packet);
    }

    /// Sends a packet with an option word that travels with it.
    pub fn send_with_option(&mut self, packet: Packet, option: u32) {
        debug_assert_eq!(packet.src, self.host, "a host sends its own packets");
        self.network.send_with_option(packet, option);
    }

    /// Sends a packet with contents that travel with it.
    pub fn send_with_contents(&mut self, packet: Packet, contents: Arc<[u32]>) {
        debug_assert_eq!(packet.src, self.host, "a host sends its own packets");
        self.network.send_with_contents(packet, contents);
    }

    /// Sends a packet of an external host, with its bytes.
    pub fn send_frame(&mut self, packet: Packet, frame: Frame) {
        debug_assert_eq!(packet.src, self.host, "a host sends its own packets");
        self.network.send_frame(packet, frame);
    }

    /// Queues a message of this host's host scheme.
    pub fn send_message(&mut self, message: Message) {
        self.network.send_message(self.host, message);
    }

    /// The message that a packet brought here.
    pub fn message_of(&mut self, packet: &Packet) -> Message {
        self.network.message_of(packet)
    }

    /// Contents that a packet brought here beside its 64 bytes, if any.
    pub fn contents_of(&mut self, packet: &Packet) -> Option<Arc<[u32]>> {
        self.network.contents_of(packet)
    }

    /// How long a byte takes on the host's cable now.
    pub fn pace(&self) -> PicosPerByte {
        self.network.pace(self.network.map.cable(self.host))
    }

    /// When all that waits in the host's queue now has left it.
    pub fn free_at(&self) -> Time {
        self.network.free_at(self.network.map.cable(self.host))
    }

    /// The class of the host's port that data of flows of this class belongs to.
    pub fn lane_of(&self, class: PacketFlags) -> u8 {
        let mut data = Packet::default();
        data.flags = class;
        self.network.class_of(self.network.map.cable(self.host), &data) as u8
    }

    /// Whether a packet of this class of the host's port that an RDMA card pulls may go there now.
    /// `left_at` is when the last one will have left, where that is known. This is the one place
    /// that says so.
    pub fn gate(&self, lane: usize, left_at: Time) -> Gate {
        let cable = self.network.map.cable(self.host);
        let of_queue = if left_at > self.network.now { Gate::Until(left_at) } else { Gate::Open };
        self.network.class_gate(cable, lane).unwrap_or(of_queue)
    }

    /// How long a class of the host's port has been paused so far, in ps.
    pub fn paused_ps(&self, lane: usize) -> u64 {
        self.network.class_paused_ps(self.network.map.cable(self.host), lane)
    }

    /// How long a class of the host's port had been paused when data of it that a queue pair sent,
    /// and that had waited, left last, in ps.
    pub fn paused_when_data_left_ps(&self, lane: usize) -> u64 {
        self.network.paused_when_data_left_ps(self.network.map.cable(self.host), lane)
    }

    /// The queue pair that is asked now would have sent so much earlier, in ps, but for pauses.
    /// That counts for the data that it sends now. None is asked any more: `None`.
    pub fn set_stopped_ps(&mut self, stopped_ps: Option<u64>) {
        self.network.set_stopped_ps(stopped_ps);
    }

    /// How long pauses kept a packet on its way that has just come to the host.
    pub fn paused_on_way(&self, packet: &Packet) -> Paused {
        self.network.paused_on_way(packet)
    }

    /// When a packet that was just sent will have left the cable. It takes time even where the
    /// cable is down, which takes nothing: then as much as one of `full_bytes` would.
    pub fn leaves_at(&self, full_bytes: u16) -> Time {
        let leaves = self.network.link_free_at(self.network.map.cable(self.host));
        if leaves > self.network.now { leaves } else { self.network.now + self.pace().service(full_bytes) }
    }

    /// Arms the timer of the host's RDMA card.
    pub fn set_card_timer(&mut self, at: Time) {
        self.network.events.push_timer(at, EventKey::new(EventKind::Card, u32::from(self.host.0)));
    }

    /// Arms a timer of one of this host's flows.
    pub fn set_flow_timer(&mut self, at: Time, kind: EventKind, flow: FlowId) {
        self.network.events.push_timer(at, EventKey::new(kind, flow.0));
    }

    /// Arms a timer of this host's host scheme.
    pub fn set_host_timer(&mut self, at: Time, token: u32) {
        self.network.events.push_timer(at, EventKey::host_timer(self.host.0, token));
    }

    /// The tables that explicit routes go by, as the operator's map has them.
    pub fn map(&self) -> &Routes {
        self.network.explicit_routes()
    }

    /// The tables in force, as the operator's map has them.
    pub fn routes(&self) -> &Routes {
        &self.network.tables.routes
    }
}
