//! Snapshot of a run between two events: nothing of it changes the run.

use weft_packet::{FlowId, Kind, PacketFlags};
use weft_transport::{Protocol, ReceiverStats, Transports};
use weft_units::{Rate, Time};

use super::{Engine, inner};
use crate::engine::follow::{Decision, Follow};
use crate::engine::host::{HostLog, RunPlan};
use crate::engine::network::Network;
use crate::engine::partition::Partition;
use crate::engine::pool::NO_PACKET;
use crate::engine::results::arrived;

/// A run at an instant. Its lists are used again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// By link, as the topology numbers them.
    pub links: Vec<LinkNow>,
    /// Packets on links and in queues, by link in order of arrival. Packets that wait in a port
    /// with several classes are not among them, nor those that the wire will lose.
    pub packets: Vec<PacketNow>,
    /// By flow.
    pub flows: Vec<FlowNow>,
}

/// A link at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkNow {
    /// Bytes that are queued, with what is left of the packet in service.
    pub backlog_bytes: u64,
    /// Rate of the link.
    pub rate: Rate,
    /// Whether it works.
    pub is_up: bool,
    /// Bytes that it was given to send so far.
    pub bytes: u64,
    /// Packets dropped so far.
    pub dropped: u64,
    /// Packets that got a congestion mark so far.
    pub marked: u64,
}

/// A packet at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketNow {
    /// The link that it is on, or waits for.
    pub link: u32,
    /// Flow of the packet; of no meaning for packets of load balancers.
    pub flow: u32,
    /// Kind of the packet.
    pub kind: Kind,
    /// Segment of the packet, or the next one that is expected.
    pub segment: u32,
    /// Bytes that it takes on a link.
    pub wire_bytes: u16,
    /// Whether a queue has marked it.
    pub is_marked: bool,
    /// When its last bit leaves the queue.
    pub leaves: Time,
    /// When its last bit arrives at the far end.
    pub arrives: Time,
}

/// A flow at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowNow {
    /// When its receiver had the last byte, if it has.
    pub delivered: Option<Time>,
    /// Payload that arrived, each byte once, to a segment.
    pub delivered_bytes: u64,
    /// How long its data packets that arrived waited in queues, summed by [`weft_topology::Tier`],
    /// in ps.
    pub wait_ps: [u64; 4],
    /// Data packets that arrived.
    pub arrived: u64,
    /// Data packets that arrived behind a hole.
    pub out_of_order: u64,
    /// Data packets that came by another path than the one before.
    pub path_changes: u64,
    /// Segments sent again.
    pub resent: u64,
}

impl<T: Transports> Engine<'_, T> {
    /// Looks at everything as it is at `at`.
    pub fn look(&mut self, at: Time, seen: &mut Snapshot) {
        seen.links.clear();
        seen.links.resize(self.topology.links.len(), LinkNow::NONE);
        seen.packets.clear();
        seen.flows.clear();
        seen.flows.resize(self.plan.flows.len(), FlowNow::default());
        let plan = &self.plan;
        for partition in self.partitions.iter_mut().map(inner) {
            partition.network.show_links(at, seen);
            partition.show_flows(plan, seen);
        }
    }

    /// Follows a flow from now on, or none.
    pub fn follow(&mut self, flow: Option<u32>) {
        let total = self.plan.flows.len() as u32;
        for partition in self.partitions_mut() {
            partition.network.follow(flow.map(|flow| Follow::new(flow, total)));
        }
    }

    /// Takes the decisions for the followed flow since the last call, by time.
    pub fn take_decisions(&mut self) -> Vec<Decision> {
        let follows = self.partitions_mut().filter_map(|partition| partition.network.follow.as_mut());
        let mut decisions: Vec<Decision> = follows.flat_map(|follow| follow.take()).collect();
        decisions.sort_by_key(|decision| decision.at);
        decisions
    }
}

impl LinkNow {
    const NONE: Self =
        Self { backlog_bytes: 0, rate: Rate::from_bps(1), is_up: true, bytes: 0, dropped: 0, marked: 0 };
}

impl Network<'_> {
    fn show_links(&mut self, at: Time, seen: &mut Snapshot) {
        self.catch_up(at, false);
        for (link, state) in self.state.links.iter().take(self.map.link_count()).enumerate() {
            let (number, drops) = (self.map.number(link as u32), self.drops(link));
            seen.links[number as usize] = LinkNow {
                backlog_bytes: self.backlog_at(link, at),
                rate: self.rate(link),
                is_up: self.state.local_up[link],
                bytes: state.bytes,
                dropped: drops.dropped,
                marked: drops.marked,
            };
            let delay_ps = self.state.profiles[state.profile].delay_ps;
            let mut index = state.head;
            while index != NO_PACKET {
                let packet = &self.pool[index];
                seen.packets.push(PacketNow {
                    link: number,
                    flow: packet.flow.0,
                    kind: packet.kind,
                    segment: packet.seq,
                    wire_bytes: packet.wire_bytes,
                    is_marked: packet.flags.has(PacketFlags::CE),
                    leaves: Time::from_ps(packet.arrive.as_ps().saturating_sub(delay_ps)),
                    arrives: packet.arrive,
                });
                index = if index == state.tail { NO_PACKET } else { packet.next };
            }
        }
    }
}

impl<T: Transports> Partition<'_, T> {
    fn show_flows(&self, plan: &RunPlan<'_, T>, seen: &mut Snapshot) {
        for host in &self.hosts {
            seen.add_log(plan, host.log());
            for receiver in host.receivers() {
                let stats = plan.of(&receiver.end).receiver_stats(&receiver.state);
                let complete = receiver.complete.map(|complete| complete.at);
                seen.add_receiver(
                    plan,
                    receiver.end.flow(),
                    complete,
                    &stats,
                    receiver.wait_ps,
                    receiver.path_changes,
                );
            }
            for sender in host.senders() {
                let stats = plan.of(&sender.end).sender_stats(&sender.state);
                seen.flows[sender.end.flow().index()].resent += u64::from(stats.retransmissions);
            }
        }
    }
}

impl Snapshot {
    /// Ends that are closed.
    fn add_log<T: Transports>(&mut self, plan: &RunPlan<'_, T>, log: &HostLog) {
        for record in &log.received {
            let complete = record.delivered.map(|complete| complete.at);
            self.add_receiver(
                plan,
                record.flow,
                complete,
                &record.stats,
                record.wait_ps,
                record.path_changes,
            );
        }
        for record in &log.sent {
            self.flows[record.flow.index()].resent += u64::from(record.stats.retransmissions);
        }
    }

    /// A receiving end: a flow may have several, one after the other.
    fn add_receiver<T: Transports>(
        &mut self,
        plan: &RunPlan<'_, T>,
        flow: FlowId,
        complete: Option<Time>,
        stats: &ReceiverStats,
        wait_ps: [u64; 4],
        path_changes: u32,
    ) {
        let traffic = plan.traffic(flow);
        let now = &mut self.flows[flow.index()];
        let bytes = arrived(stats, traffic, plan.payload_bytes(traffic));
        now.delivered = now.delivered.or(complete);
        now.delivered_bytes = now.delivered_bytes.max(bytes);
        now.arrived += stats.segments_received;
        now.out_of_order += u64::from(stats.out_of_order);
        now.path_changes += u64::from(path_changes);
        for (sum, wait) in now.wait_ps.iter_mut().zip(wait_ps) {
            *sum += wait;
        }
    }
}
