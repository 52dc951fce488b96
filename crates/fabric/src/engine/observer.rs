//! Watches the queues of switches' ports packet by packet, over windows of time: only if asked for.
//!
//! For each packet of hosts that a queue takes: what it found queued, when it left the queue for
//! the wire, and how long after the packet before it that was. A packet belongs to the window in
//! which it left the queue. On a port with one queue that is known when it is queued; if the link
//! changes its rate or fails meanwhile, the window keeps what was expected.

use weft_balance::Queued;
use weft_units::{Bytes, Span, Time};

/// One port in one window. A window in which no packet left the queue has no observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The end of the window.
    pub at: Time,
    /// The port's link, as the topology numbers it.
    pub link: u32,
    /// Capacity of the queue, or none if it has no limit; a limit in packets counts as so many of
    /// full size.
    pub full: Option<Bytes>,
    /// Packets that left the queue in the window.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the last of them found queued.
    pub found_bytes: u64,
    /// Bytes that each of them found queued, summed.
    pub found_bytes_sum: u64,
    /// From the packet before until the last of them left the queue.
    pub interval: Span,
    /// Intervals between packets that left the queue, summed.
    pub interval_sum: Span,
}

/// One port.
#[derive(Debug, Clone, Default)]
struct Port {
    full: Option<Bytes>,
    /// When the last packet left the queue, in ps; none before the first.
    last_leaves: Option<u64>,
    /// The window that is open: the last one in which a packet left.
    open: Option<Observation>,
}

/// Observations so far.
pub struct Observer {
    window: u64,
    ports: Vec<Port>,
    seen: Vec<Observation>,
}

impl Observer {
    /// Watches the ports of links whose queues hold so much, over windows of this length, which is
    /// not zero.
    pub fn new(window: Span, buffers: impl Iterator<Item = Option<Bytes>>) -> Self {
        let ports = buffers.map(|full| Port { full, ..Port::default() });
        Self { window: window.as_ps(), ports: ports.collect(), seen: Vec::new() }
    }

    /// The queue of a link took a packet of `wire_bytes`.
    pub fn note(&mut self, link: u32, packet: &Queued, wire_bytes: u16) {
        let port = &mut self.ports[link as usize];
        let leaves = packet.leaves.as_ps();
        // The first packet of a port comes after no other.
        let Some(last_leaves) = port.last_leaves.replace(leaves) else { return };
        let interval = Span::from_ps(leaves.saturating_sub(last_leaves));
        let at = Time::from_ps((leaves / self.window + 1).saturating_mul(self.window));
        if let Some(closed) = port.open.take_if(|open| open.at != at) {
            self.seen.push(closed);
        }
        let open = port.open.get_or_insert(Observation {
            at,
            link,
            full: port.full,
            packets: 0,
            bytes: 0,
            found_bytes: 0,
            found_bytes_sum: 0,
            interval: Span::ZERO,
            interval_sum: Span::ZERO,
        });
        open.packets += 1;
        open.bytes += u64::from(wire_bytes);
        open.found_bytes = packet.found_bytes;
        open.found_bytes_sum += packet.found_bytes;
        open.interval = interval;
        open.interval_sum += interval;
    }

    /// All observations by time and link, but for windows that are not over by `end`.
    pub fn into_observations(mut self, end: Time) -> Vec<Observation> {
        let open = self.ports.iter_mut().filter_map(|port| port.open.take());
        self.seen.extend(open);
        self.seen.retain(|observation| observation.at <= end);
        self.seen.sort_unstable_by_key(|observation| (observation.at, observation.link));
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use weft_balance::PortId;

    use super::*;

    const US: u64 = 1_000_000;

    fn packet(leaves_us: u64, found_bytes: u64) -> Queued {
        let leaves = Time::from_ps(leaves_us * US);
        Queued { port: PortId(0), leaves, found_bytes, sent_before: 0 }
    }

    #[test]
    fn windows_hold_what_left_the_queue_in_them_by_hand() {
        let mut observer = Observer::new(Span::from_us(10), [None, Some(Bytes::from_kb(10))].into_iter());
        // The first packet has no interval and is no observation.
        for (leaves_us, found) in [(1, 0), (4, 3_000), (9, 5_000), (30, 7_000), (95, 0)] {
            observer.note(1, &packet(leaves_us, found), 1_000);
        }
        let seen = observer.into_observations(Time::ZERO + Span::from_us(99));
        let us = |us| Time::ZERO + Span::from_us(us);
        let expected = [
            Observation {
                at: us(10),
                link: 1,
                full: Some(Bytes::from_kb(10)),
                packets: 2,
                bytes: 2_000,
                found_bytes: 5_000,
                found_bytes_sum: 8_000,
                interval: Span::from_us(5),
                interval_sum: Span::from_us(8),
            },
            Observation {
                at: us(40),
                link: 1,
                full: Some(Bytes::from_kb(10)),
                packets: 1,
                bytes: 1_000,
                found_bytes: 7_000,
                found_bytes_sum: 7_000,
                interval: Span::from_us(21),
                interval_sum: Span::from_us(21),
            },
        ];
        assert_eq!(seen, expected, "the window that ends at 100 us was not over");
    }

    #[test]
    fn observations_are_by_time_and_link_whatever_the_order_in_which_windows_closed() {
        let mut observer = Observer::new(Span::from_us(10), [None; 3].into_iter());
        for link in [2, 0] {
            for leaves_us in [1, 3, 13] {
                observer.note(link, &packet(leaves_us, 0), 1_000);
            }
        }
        let seen = observer.into_observations(Time::ZERO + Span::from_us(100));
        let keys: Vec<_> = seen.iter().map(|seen| (seen.at.as_us() as u64, seen.link)).collect();
        assert_eq!(keys, [(10, 0), (10, 2), (20, 0), (20, 2)]);
    }
}
