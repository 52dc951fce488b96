//! The end of a simulation: what it leaves behind.

use weft_balance::SwitchScheme;
use weft_packet::FlowId;
use weft_traffic::Flow;
use weft_transport::Protocol;

use super::Simulation;
use crate::engine::active::{NOT_ACTIVE, Receiver, Sender};
use crate::engine::results::{FlowRecord, LinkTotals, MemoryUse, Results, SchemeCounter};

impl<P: Protocol> Simulation<'_, P> {
    /// What the run leaves behind, finished or not.
    pub fn into_results(mut self) -> Results {
        let samples = self.sampler.take().map(|mut sampler| {
            sampler.deliveries.sum_up(&self.protocol, &self.active);
            sampler.finish(&mut self.network)
        });
        for index in 0..self.flows.len() {
            let place = self.place[index];
            if place != NOT_ACTIVE {
                self.record(FlowId(index as u32), place);
            }
        }
        let links = self.network.links.iter().zip(self.network.drops());
        Results {
            links: links
                .map(|(link, drops)| LinkTotals {
                    packets: link.packets,
                    bytes: link.bytes,
                    dropped: drops.dropped,
                    marked: drops.marked,
                    credits_dropped: drops.credits,
                })
                .collect(),
            samples: samples.unwrap_or_default(),
            observations: self.network.observations(),
            paths: self.paths.take().map(|paths| paths.into_totals(&self.network)).unwrap_or_default(),
            traces: self.network.traces(),
            largest_packet_bytes: self.sizes.full_bytes,
            scheme: self.scheme_counters(),
            packets: self.network.counts,
            in_flight: self.network.in_flight(),
            events: self.events,
            end: self.network.now,
            memory: self.memory(),
            flows: self.records,
        }
    }

    fn scheme_counters(&self) -> Vec<SchemeCounter> {
        let mut counters: Vec<SchemeCounter> = Vec::new();
        let mut count =
            |name: &'static str, value: u64| match counters.iter_mut().find(|entry| entry.name == name) {
                Some(counter) => counter.value += value,
                None => counters.push(SchemeCounter { name: name.to_owned(), value }),
            };
        self.network.schemes.iter().for_each(|scheme| scheme.counters(&mut count));
        self.hosts.schemes().iter().for_each(|scheme| scheme.counters(&mut count));
        let per_switch = self.network.schemes.iter().map(SwitchScheme::state_bytes).max();
        let per_host = self.hosts.schemes().iter().map(weft_balance::EdgeScheme::state_bytes).max();
        if self.network.has_credit_ports() {
            self.count_credits(&mut count);
        }
        count("state_bytes_per_switch", per_switch.unwrap_or_default());
        count("state_bytes_per_host", per_host.unwrap_or_default());
        counters
    }

    /// Credits sent, dropped on the way, and come in vain: their sender had nothing to send, or its flow had ended.
    fn count_credits(&self, count: &mut impl FnMut(&'static str, u64)) {
        let sent = self.records.iter().map(|record| record.receiver.credits_sent).sum();
        let wasted: u64 = self.records.iter().map(|record| record.sender.wasted_credits).sum();
        count("credits_sent", sent);
        count("credits_dropped", self.network.counts.credits_dropped);
        count("credits_wasted", wasted + self.stray_credits);
        if self.protocol.ports() > 1 {
            let reselections =
                self.records.iter().map(|record| u64::from(record.receiver.reselections)).sum();
            count("path_reselections", reselections);
        }
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse {
            fabric: self.network.memory_bytes(),
            per_active_flow: size_of::<Option<Sender<P::Sender>>>()
                + size_of::<Option<Receiver<P::Receiver>>>(),
            peak_active_flows: self.active.sender.len(),
            per_flow: size_of::<Flow>() + size_of::<FlowRecord>() + size_of::<u32>(),
        }
    }
}
