//! Payload that receivers got in each interval, by receiver and kind of flow.
//!
//! Nothing is counted per packet for it. At a look, the sum over the flows that are active and the
//! flows that have ended is compared with the sum at the look before.

use weft_packet::{Class, HostId};
use weft_traffic::Flow;
use weft_transport::{Protocol, Transports};
use weft_units::Time;

use super::host::{Host, RunPlan};
use super::results::arrived;
use super::sampler::Row;

/// A kind of flow is a class, and whether it is a background flow.
pub const KINDS: usize = 2 * Class::COUNT;

/// Payload that one receiver got of one kind of flow in one interval. Nothing: no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The end of the interval.
    pub at: Time,
    /// The receiver.
    pub host: HostId,
    /// The class of the flows.
    pub class: Class,
    /// Whether they are background flows.
    pub background: bool,
    /// Payload that arrived for the first time. While a flow goes on, its last segment counts as a
    /// full one.
    pub payload_bytes: u64,
}

/// Deliveries to receivers so far.
pub struct Deliveries<'a> {
    flows: &'a [Flow],
    /// Payload of all flows by receiver and kind, by now and by the look before.
    total: Vec<u64>,
    before: Vec<u64>,
    /// The rows, by time, receiver and kind.
    pub rows: Vec<Delivery>,
}

impl<'a> Deliveries<'a> {
    /// Nothing was delivered yet.
    pub fn new(hosts: usize, flows: &'a [Flow]) -> Self {
        let zeros = vec![0; hosts * KINDS];
        Self { flows, total: zeros.clone(), before: zeros, rows: Vec::new() }
    }

    /// Sums up what each host got by now.
    pub fn sum_up<'h, T: Transports + 'h>(
        &mut self,
        plan: &RunPlan<'_, T>,
        hosts: impl Iterator<Item = &'h Host<T>>,
    ) {
        for (host, total) in hosts.zip(self.total.chunks_exact_mut(KINDS)) {
            total.copy_from_slice(&host.log().closed_bytes);
            for receiver in host.receivers() {
                let stats = plan.of(&receiver.end).receiver_stats(&receiver.state);
                let flow = &self.flows[receiver.end.flow().index()];
                total[kind_of(flow)] += arrived(&stats, flow, plan.payload_bytes(flow));
            }
        }
    }

    /// A row for each receiver and kind that got something since the look before. The sum is up to
    /// date.
    pub fn note(&mut self, at: Time) {
        for (place, (total, before)) in self.total.iter().zip(&mut self.before).enumerate() {
            let payload_bytes = total.saturating_sub(*before);
            *before = *total;
            if payload_bytes > 0 {
                let kind = place % KINDS;
                self.rows.push(Delivery {
                    at,
                    host: HostId((place / KINDS) as u16),
                    class: Class::ALL[kind / 2],
                    background: kind % 2 == 1,
                    payload_bytes,
                });
            }
        }
    }
}

/// The number of a flow's kind.
pub fn kind_of(flow: &Flow) -> usize {
    kind(flow.class, flow.background)
}

const fn kind(class: Class, background: bool) -> usize {
    2 * class as usize + background as usize
}

impl Row for Delivery {
    fn at(&self) -> Time {
        self.at
    }

    fn key(&self) -> u32 {
        (self.host.index() * KINDS + kind(self.class, self.background)) as u32
    }

    fn end_at(&mut self, at: Time) {
        self.at = at;
    }

    fn absorb(&mut self, later: &Self) {
        self.payload_bytes += later.payload_bytes;
    }
}
