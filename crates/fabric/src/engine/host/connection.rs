//! A connection between two external hosts that is no flow: what their programs say to each other.
//!
//! Nothing counts what it carries and nobody waits for it. But the virtual switches of its hosts
//! see its packets as they see those of flows.

use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_transport::Transports;
use weft_units::Time;

use super::outbox::End;
use super::{Host, HostCall, Side};
use crate::engine::external_hosts::Frame;

/// A connection, there with its first packet.
pub struct ExternalConnection {
    /// At the host that sent the first packet, and at the other one.
    ends: [End; 2],
    hosts: [HostId; 2],
    /// When the data was sent that came last to each of them.
    stamps: [Time; 2],
}

impl ExternalConnection {
    /// Connection of a packet, which its first host sends.
    pub fn new<T: Transports>(host: &Host<T>, packet: &Packet, frame: &Frame) -> Self {
        let hosts = [packet.src, packet.dst];
        let entropy = frame.entropy.unwrap_or_default();
        let end = |side, host_and_peer| {
            let scheme = host.rest.virtual_switch.scheme.new_flow();
            End::new(packet.flow, side, host_and_peer, entropy, PacketFlags::default(), scheme)
        };
        let ends = [end(Side::Sender, (hosts[0], hosts[1])), end(Side::Receiver, (hosts[1], hosts[0]))];
        Self { ends, hosts, stamps: [Time::ZERO; 2] }
    }

    /// The host at one end.
    pub const fn host(&self, side: Side) -> HostId {
        match side {
            Side::Sender => self.hosts[0],
            Side::Receiver => self.hosts[1],
        }
    }

    fn place(&self, host: HostId) -> usize {
        usize::from(host != self.hosts[0])
    }

    /// One of its hosts begins to send a packet: the fields that its end gives it, and what its
    /// host scheme does with it.
    pub fn sends<T: Transports>(
        &mut self,
        host: &mut Host<T>,
        packet: &mut Packet,
        frame: &Frame,
        here: &mut HostCall<'_, '_, '_>,
    ) {
        let place = self.place(packet.src);
        let end = &mut self.ends[place];
        // As RFC 7323 §3 has it of time stamps.
        packet.sent = if packet.kind == Kind::Ack { self.stamps[place] } else { here.nic.now() };
        packet.entropy = end.entropy();
        if here.common.hooks.on_send {
            host.rest.virtual_switch.route(end, packet, here);
            if frame.ends {
                host.rest.virtual_switch.finished(end, here);
            }
        }
    }

    /// A packet comes to the host scheme of one of its hosts: what is passed on now, in order.
    pub fn passes<T: Transports>(
        &mut self,
        host: &mut Host<T>,
        packet: Packet,
        here: &mut HostCall<'_, '_, '_>,
    ) -> Vec<Packet> {
        let place = self.place(packet.dst);
        host.rest.virtual_switch.receive(&mut self.ends[place], packet, here)
    }

    /// The host scheme's timer for one of its ends is due: what is passed on now, in order.
    pub fn flow_scheme_timer<T: Transports>(
        &mut self,
        host: &mut Host<T>,
        side: Side,
        here: &mut HostCall<'_, '_, '_>,
    ) -> Vec<Packet> {
        let end = &mut self.ends[usize::from(side == Side::Receiver)];
        if end.flow_scheme_timer_is_due(here.nic.now()) {
            host.rest.virtual_switch.flow_timer(end, here)
        } else {
            Vec::new()
        }
    }

    /// A packet comes to one of its hosts.
    pub fn receives(&mut self, packet: &Packet) {
        if packet.kind == Kind::Data {
            self.stamps[self.place(packet.dst)] = packet.sent;
        }
    }
}

/// The connections of a run, by number.
#[derive(Default)]
pub struct ExternalConnections(Vec<Option<Box<ExternalConnection>>>);

impl ExternalConnections {
    /// Connection of a packet that its host sends: there from now on.
    pub fn open<T: Transports>(
        &mut self,
        host: &Host<T>,
        packet: &Packet,
        frame: &Frame,
    ) -> Option<&mut ExternalConnection> {
        let place = packet.flow.connection()? as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        let new = || Box::new(ExternalConnection::new(host, packet, frame));
        Some(self.0[place].get_or_insert_with(new))
    }

    /// The connection with this number, if it is there.
    pub fn get(&mut self, flow: FlowId) -> Option<&mut ExternalConnection> {
        self.0.get_mut(flow.connection()? as usize)?.as_deref_mut()
    }
}
