//! Which links a few flows took, over time: only if asked for.

use std::collections::BTreeMap;

use weft_packet::{Kind, Packet};
use weft_traffic::Flow;
use weft_units::{Span, Time};

/// More rows than this are merged by two intervals. At some 32 bytes a row in the map: 16 MB.
const MOST_ROWS: usize = 500_000;

/// Packets of a traced flow on one link in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowTrace {
    /// The end of the interval; the last one may end after the run.
    pub at: Time,
    /// Length of the interval.
    pub interval: Span,
    /// The flow.
    pub flow: u32,
    /// The link, as the topology numbers them.
    pub link: u32,
    /// Data packets that were queued there, or dropped for want of room.
    pub packets: u32,
}

/// Watches the packets of some flows at switches.
pub struct Tracer {
    /// The flows, in ascending order.
    flows: Vec<u32>,
    /// How many flows there are: subflows are numbered beyond them.
    total: u32,
    every: Span,
    /// By interval (from 0), flow and link.
    packets: BTreeMap<(u64, u32, u32), u32>,
}

impl Tracer {
    /// Watches the `count` largest flows: those that never end, then by size, then the earlier
    /// ones.
    pub fn new(count: usize, flows: &[Flow], every: Span) -> Self {
        let mut order: Vec<u32> = (0..flows.len() as u32).collect();
        let size = |index: u32| {
            let flow = &flows[index as usize];
            if flow.background { u64::MAX } else { flow.size_bytes }
        };
        // A stable sort keeps the earlier ones first.
        order.sort_by_key(|&index| std::cmp::Reverse(size(index)));
        order.truncate(count);
        order.sort_unstable();
        Self { flows: order, total: flows.len().max(1) as u32, every, packets: BTreeMap::new() }
    }

    /// A packet is about to be queued on a link of a switch.
    pub fn note(&mut self, packet: &Packet, link: u32, now: Time) {
        let flow = packet.flow.0 % self.total;
        if packet.kind != Kind::Data
            || packet.flow.connection().is_some()
            || self.flows.binary_search(&flow).is_err()
        {
            return;
        }
        let interval = now.as_ps() / self.every.as_ps().max(1);
        *self.packets.entry((interval, flow, link)).or_default() += 1;
        if self.packets.len() > MOST_ROWS {
            self.merge();
        }
    }

    /// The tracer with intervals of this length, which is its own, doubled some times.
    fn seen_every(mut self, every: Span) -> Self {
        while self.every < every {
            self.merge();
        }
        self
    }

    /// Makes one interval of every two.
    fn merge(&mut self) {
        self.every = self.every.saturating_mul(2);
        for ((interval, flow, link), packets) in std::mem::take(&mut self.packets) {
            *self.packets.entry((interval / 2, flow, link)).or_default() += packets;
        }
    }

    /// Traces by the tracers of all parts, by time, flow and link: as one would have seen it who
    /// sees all of the fabric.
    pub fn into_traces(tracers: Vec<Self>) -> Vec<FlowTrace> {
        let Some(every) = tracers.iter().map(|tracer| tracer.every).max() else { return Vec::new() };
        let together = tracers.into_iter().map(|tracer| tracer.seen_every(every)).reduce(|mut sum, other| {
            sum.packets.extend(other.packets);
            sum
        });
        let Some(mut sum) = together else { return Vec::new() };
        // Rows only become more as time goes on: so it does not matter when they are found to be
        // too many.
        while sum.packets.len() > MOST_ROWS {
            sum.merge();
        }
        let every = sum.every;
        let end = |interval: u64| Time::ZERO + every.saturating_mul(interval + 1);
        let rows = sum.packets.into_iter().map(|((interval, flow, link), packets)| FlowTrace {
            at: end(interval),
            interval: every,
            flow,
            link,
            packets,
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::{Class, FlowId, HostId};

    use super::*;

    fn flow(size_bytes: u64, background: bool) -> Flow {
        let (src, dst) = (HostId(0), HostId(1));
        Flow { start: Time::ZERO, src, dst, size_bytes, class: Class::Unknown, background, transport: 0 }
    }

    fn packet(flow: u32, kind: Kind) -> Packet {
        let mut packet = Packet::default();
        (packet.flow, packet.kind) = (FlowId(flow), kind);
        packet
    }

    #[test]
    fn the_largest_flows_are_watched_the_endless_first_and_the_earlier_of_two_alike() {
        let flows = [flow(5, false), flow(9, false), flow(0, true), flow(9, false), flow(9, false)];
        let watched = |count| Tracer::new(count, &flows, Span::from_us(1)).flows;
        assert_eq!(watched(1), [2]);
        assert_eq!(watched(3), [1, 2, 3]);
        assert_eq!(watched(9), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn data_packets_of_watched_flows_are_counted_by_interval_and_link() {
        let flows = [flow(9, false), flow(5, false)];
        let mut tracer = Tracer::new(1, &flows, Span::from_us(10));
        for (us, flow, kind, link) in [
            (0, 0, Kind::Data, 7),
            (9, 0, Kind::Data, 7),
            (9, 0, Kind::Ack, 7),
            (9, 1, Kind::Data, 7),
            (10, 0, Kind::Data, 7),
            (10, 0, Kind::Data, 8),
        ] {
            tracer.note(&packet(flow, kind), link, Time::ZERO + Span::from_us(us));
        }
        tracer.merge();
        tracer.note(&packet(0, Kind::Data), 8, Time::ZERO + Span::from_us(20));
        let mut of_another_part = Tracer::new(1, &flows, Span::from_us(10));
        of_another_part.note(&packet(0, Kind::Data), 9, Time::ZERO + Span::from_us(19));
        let found: Vec<_> = Tracer::into_traces(vec![tracer, of_another_part])
            .iter()
            .map(|row| (row.at.as_us(), row.interval.as_us(), row.flow, row.link, row.packets))
            .collect();
        let of_one = [(20.0, 20.0, 0, 7, 3), (20.0, 20.0, 0, 8, 1)];
        assert_eq!(found, [&of_one[..], &[(20.0, 20.0, 0, 9, 1), (40.0, 20.0, 0, 8, 1)]].concat());
    }
}
