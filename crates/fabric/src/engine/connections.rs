//! Packets of external hosts that belong to no flow: those of their programs. To queues and schemes
//! they are data, acknowledgements and requests, as those of flows are; but nothing here counts
//! what they carry, and no receiver waits for it.

use weft_packet::{FlowId, Packet};
use weft_transport::Transports;

use super::external_hosts::{ExternalPacket, Frame};
use super::host::{HostCall, HostPort, Side};
use super::partition::Partition;

/// A host of a partition, and what a call there can reach.
macro_rules! at_host {
    ($partition:ident, $host:expr, |$node:ident, $here:ident| $call:expr) => {{
        let host = $host;
        let $node = &mut $partition.hosts[$partition.network.map.cable(host) as usize];
        let $here = &mut HostCall {
            nic: HostPort::new(&mut $partition.network, host),
            common: &mut $partition.common,
        };
        $call
    }};
}

impl<T: Transports> Partition<'_, T> {
    /// A packet of a connection leaves its host: by way of the host scheme, if there is one.
    pub fn send_of_connection(&mut self, ExternalPacket { mut packet, frame, .. }: ExternalPacket) {
        let Some(external) = self.external.as_deref_mut() else { return };
        at_host!(self, packet.src, |host, here| {
            let Some(connection) = external.connections.open(host, &packet, &frame) else { return };
            connection.sends(host, &mut packet, &frame, here);
            here.nic.send_frame(packet, frame);
        });
    }

    /// A packet of a connection reached its host: by way of the host scheme, if there is one that
    /// wants to see it.
    pub fn receive_of_connection(&mut self, mut packet: Packet, frame: Frame) {
        let Some(external) = self.external.as_deref_mut() else { return };
        let Some(connection) = external.connections.get(packet.flow) else { return };
        if self.common.hooks.on_receive {
            packet.next = external.inside.put(frame);
            let passed = at_host!(self, packet.dst, |host, here| connection.passes(host, packet, here));
            return self.deliver_of_connection(passed);
        }
        connection.receives(&packet);
        external.deliver(&packet, frame, self.network.now);
    }

    /// The host scheme passed on these.
    fn deliver_of_connection(&mut self, passed: Vec<Packet>) {
        let Some(external) = self.external.as_deref_mut() else { return };
        for packet in &passed {
            let Some(frame) = external.inside.take(packet.next) else { continue };
            if let Some(connection) = external.connections.get(packet.flow) {
                connection.receives(packet);
            }
            external.deliver(packet, frame, self.network.now);
        }
        self.common.actions.recycle(passed);
    }

    /// The host scheme's timer for one end of a connection is due.
    pub fn connection_scheme_timer(&mut self, side: Side, flow: FlowId) {
        let Some(external) = self.external.as_deref_mut() else { return };
        let Some(connection) = external.connections.get(flow) else { return };
        let at = connection.host(side);
        let passed = at_host!(self, at, |host, here| connection.flow_scheme_timer(host, side, here));
        self.deliver_of_connection(passed);
    }
}
