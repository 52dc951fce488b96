//! The end of a simulation: what it leaves behind.

use weft_balance::SwitchScheme;
use weft_topology::Ideal;
use weft_traffic::Flow;
use weft_transport::{Multipath, ReceiverOf, SenderOf, Transports};

use super::Engine;
use crate::engine::host::{HostLog, Plan, Receiver, Sender};
use crate::engine::merge::flow_records;
use crate::engine::network::{Network, PacketCounts};
use crate::engine::paths::{PathMeter, PathTotal};
use crate::engine::results::{FlowRecord, LinkTotals, MemoryUse, Results, SchemeCounter};

impl<T: Transports> Engine<'_, T> {
    /// What the run leaves behind, finished or not.
    pub fn into_results(mut self) -> Results {
        let samples = self.sampler.take().map(|mut sampler| {
            sampler.deliveries.sum_up(&self.plan, &self.hosts);
            sampler.finish(&mut self.network)
        });
        let memory = self.memory();
        let mut counters = Counters::default();
        self.count_schemes(&mut counters);
        let state_bytes = self.state_bytes();
        let Self { hosts, plan, mut network, common, faults, timers, .. } = self;
        let mut logs: Vec<HostLog> = hosts.into_iter().map(|host| host.into_log(&plan)).collect();
        let paths = paths(&mut logs, &network);
        let strays = logs.iter().map(|log| log.stray_credits).sum();
        let ideal = Ideal::new(common.topology.at_its_best(faults));
        let flows = flow_records(&plan, ideal, logs, &network.dropped);
        if network.has_credit_ports() {
            count_credits(&mut counters, &plan, &flows, &network.counts, strays);
        }
        for (name, value) in state_bytes {
            counters.count(name, value);
        }
        Results {
            links: links(&network),
            samples: samples.unwrap_or_default(),
            observations: network.observations(),
            paths,
            traces: network.traces(),
            largest_packet_bytes: common.sizes.full_bytes,
            scheme: counters.0,
            packets: network.counts,
            in_flight: network.in_flight(),
            events: network.counts.hops + timers,
            end: network.now,
            memory,
            flows,
        }
    }

    /// What schemes counted.
    fn count_schemes(&self, counters: &mut Counters) {
        let mut count = |name: &'static str, value: u64| counters.count(name, value);
        self.network.schemes.iter().for_each(|scheme| scheme.counters(&mut count));
        self.hosts.iter().for_each(|host| host.scheme().counters(&mut count));
    }

    /// The most state that any node keeps.
    fn state_bytes(&self) -> [(&'static str, u64); 2] {
        let per_switch = self.network.schemes.iter().map(SwitchScheme::state_bytes).max();
        let per_host = self.hosts.iter().map(|host| host.scheme().state_bytes()).max();
        [
            ("state_bytes_per_switch", per_switch.unwrap_or_default()),
            ("state_bytes_per_host", per_host.unwrap_or_default()),
        ]
    }

    fn memory(&self) -> MemoryUse {
        let ends = size_of::<Option<Sender<SenderOf<T>>>>() + size_of::<Option<Receiver<ReceiverOf<T>>>>();
        MemoryUse {
            fabric: self.network.memory_bytes(),
            per_active_flow: ends,
            peak_active_flows: self.hosts.iter().map(crate::engine::host::Host::peak_flows).sum(),
            per_flow: size_of::<Flow>() + size_of::<FlowRecord>() + 4 * size_of::<u32>(),
        }
    }
}

/// What was counted, by name, in the order in which names came up.
#[derive(Default)]
struct Counters(Vec<SchemeCounter>);

impl Counters {
    fn count(&mut self, name: &'static str, value: u64) {
        match self.0.iter_mut().find(|entry| entry.name == name) {
            Some(counter) => counter.value += value,
            None => self.0.push(SchemeCounter { name: name.to_owned(), value }),
        }
    }
}

/// Credits sent, dropped on the way, and come in vain: their sender had nothing to send, or its flow had ended.
fn count_credits<T: Transports>(
    counters: &mut Counters,
    plan: &Plan<'_, T>,
    flows: &[FlowRecord],
    packets: &PacketCounts,
    strays: u64,
) {
    let wasted: u64 = flows.iter().map(|record| record.sender.wasted_credits).sum();
    counters.count("credits_sent", flows.iter().map(|record| record.receiver.credits_sent).sum());
    counters.count("credits_dropped", packets.credits_dropped);
    counters.count("credits_wasted", wasted + strays);
    if plan.transports.all().any(|transport| transport.five_tuples().apart() > 1) {
        let reselections = flows.iter().map(|record| u64::from(record.receiver.reselections)).sum();
        counters.count("path_reselections", reselections);
    }
}

fn links(network: &Network<'_>) -> Vec<LinkTotals> {
    let links = network.links.iter().zip(network.drops());
    links
        .map(|(link, drops)| LinkTotals {
            packets: link.packets,
            bytes: link.bytes,
            dropped: drops.dropped,
            marked: drops.marked,
            credits_dropped: drops.credits,
            never_sent_bytes: drops.never_sent_bytes,
        })
        .collect()
}

/// What each path carried, as the hosts at its ends counted it; empty unless asked for.
fn paths(logs: &mut [HostLog], network: &Network<'_>) -> Vec<PathTotal> {
    let meters = logs.iter_mut().filter_map(|log| log.paths.take());
    let together = meters.reduce(|mut sum: PathMeter, meter| {
        sum.absorb(meter);
        sum
    });
    together.map(|paths| paths.into_totals(network)).unwrap_or_default()
}
