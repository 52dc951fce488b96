//! How flows start and end.

use weft_packet::{FlowId, HostId, PacketFlags};
use weft_traffic::Flow;
use weft_transport::Protocol;
use weft_units::mix64;

use super::super::active::{NOT_ACTIVE, Receiver, Sender};
use super::super::endpoint::{End, Ends, HostOutbox};
use super::super::event_set::{EventKey, EventKind};
use super::super::ports;
use super::super::results::arrived;
use super::Simulation;

impl<P: Protocol> Simulation<'_, P> {
    /// The next flow starts.
    pub(super) fn start_flow(&mut self) {
        let index = self.next_flow;
        let flow = &self.flows[index];
        self.next_flow += 1;
        if let Some(next) = self.flows.get(self.next_flow) {
            let key = EventKey::new(EventKind::FlowStart, self.next_flow as u32);
            self.network.events.push_timer(next.start, key);
        }
        let size = self.size(flow);
        let id = FlowId(index as u32);
        let entropy = (mix64(self.hash_key ^ index as u64) >> 32) as u32;
        let class = PacketFlags::of_class(flow.class);
        let (subflows, flows) = (self.protocol.subflows(), self.flows.len() as u32);
        let ports = self.ports(flow, entropy);
        let edge = |host| self.hosts.scheme(host).new_flow();
        let sender = End::sender(id, flow.src, flow.dst, entropy, class, edge(flow.src));
        let sender = Ends::new(sender, subflows, flows, || edge(flow.src)).with_ports(ports.clone());
        let sender = Sender { end: sender, state: self.protocol.sender(size) };
        let receiver = End::receiver(id, flow.dst, flow.src, entropy, class, edge(flow.dst));
        let receiver = Ends::new(receiver, subflows, flows, || edge(flow.dst)).with_ports(ports);
        let receiver = Receiver::new(receiver, self.protocol.receiver(size), flow.start);
        let place = self.active.insert(sender, receiver);
        self.set_place(id, place);
        let Some(sender) = &mut self.active.sender[place as usize] else { return };
        let mut out = HostOutbox { network: &mut self.network, hosts: &mut self.hosts, end: &mut sender.end };
        self.protocol.start(&mut sender.state, &mut out);
    }

    /// The entropies of a flow's ports, if it has several. A scheme at hosts may change them on the way, so then it has one.
    fn ports(&self, flow: &Flow, own: u32) -> Box<[u32]> {
        let most = self.protocol.ports();
        if most == 1 || self.hosts.steers() {
            return Box::default();
        }
        let rack = |host: HostId| self.topology.rack_of_host[host.index()];
        ports::apart(&self.network, (rack(flow.src), rack(flow.dst)), own, most)
    }

    /// Notes the place of a flow, under the numbers of all its subflows.
    fn set_place(&mut self, flow: FlowId, place: u32) {
        for entry in self.place[flow.index()..].iter_mut().step_by(self.flows.len()) {
            *entry = place;
        }
    }

    /// The sender knows that all is delivered: the flow costs only its row from now on.
    pub(super) fn finish(&mut self, flow: FlowId, place: u32) {
        self.set_place(flow, NOT_ACTIVE);
        self.finished += 1;
        self.all_done = self.finished == self.finite;
        if let Some(sender) = &mut self.active.sender[place as usize] {
            for end in sender.end.all() {
                self.hosts.finished(end, &mut self.network);
            }
        }
        self.record(flow, place);
        if let Some(sampler) = &mut self.sampler {
            sampler.deliveries.end(flow.index(), self.records[flow.index()].delivered_bytes);
        }
        self.records[flow.index()].acknowledged = Some(self.network.now);
        for subflow in (flow.0..).step_by(self.flows.len()).take(self.protocol.subflows() as usize) {
            self.network.mappings.forget(FlowId(subflow));
        }
        self.active.remove(place);
    }

    /// Writes what both ends counted into the flow's row.
    pub(super) fn record(&mut self, flow: FlowId, place: u32) {
        let record = &mut self.records[flow.index()];
        for subflow in (flow.0..).step_by(self.flows.len()).take(self.protocol.subflows() as usize) {
            let (dropped, retransmissions) = self.network.copies.settle(FlowId(subflow));
            record.dropped += dropped;
            record.retransmissions += retransmissions;
        }
        if let Some(sender) = &self.active.sender[place as usize] {
            record.sender = self.protocol.sender_stats(&sender.state);
        }
        if let Some(receiver) = &self.active.receiver[place as usize] {
            record.receiver = self.protocol.receiver_stats(&receiver.state);
            let flow = &self.flows[flow.index()];
            record.delivered_bytes = arrived(&record.receiver, flow, self.sizes.payload_bytes());
            record.path_changes = receiver.path_changes;
            record.wait_ps = receiver.wait_ps;
        }
    }
}
