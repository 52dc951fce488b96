//! The beginning of a simulation: groups, hosts, and what is due first.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

use weft_balance::{EdgeHooks, EdgeScheme, SwitchHooks, SwitchInfo};
use weft_packet::HostId;
use weft_topology::{Parts, Routes};
use weft_transport::{FiveTuples, Multipath, Protocol, Transports};
use weft_units::{Purpose, Stream, Time};

use super::days::Days;
use super::{Engine, inner, last_start};
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::group::{Group, Starts};
use crate::engine::host::{
    Common, Deeds, Directory, Edge, Host, HostLog, PacketSizes, Plan, edge_schemes, route_counts,
};
use crate::engine::mail::Mailbox;
use crate::engine::network::Network;
use crate::engine::paths::PathMeter;
use crate::engine::ports::SwitchConfigs;
use crate::engine::post::Addresses;
use crate::engine::sampler::Sampler;
use crate::engine::simulation::SimulationInput;
use crate::engine::site::Site;
use crate::engine::special::Peaks;
use crate::engine::switch::switch_schemes;
use crate::engine::tables::Knowledge;
use crate::engine::tracer::Tracer;

impl<'a, T: Transports> Engine<'a, T> {
    /// A run that has not begun.
    pub fn new(transports: T, input: SimulationInput<'a>) -> Self {
        let SimulationInput { topology, balancer, seed, faults, flows, .. } = input;
        let is_external = input.external.is_some();
        let hooks = if is_external {
            (SwitchHooks::default(), EdgeHooks::default())
        } else {
            (balancer.switch_hooks(), balancer.edge_hooks())
        };
        let edge_hooks = hooks.1;
        let mut own = |info: &SwitchInfo<'_>| balancer.switch_scheme(info);
        let sizes = PacketSizes::of_all(&transports);
        let most = |of: fn(FiveTuples) -> u8| {
            transports.all().map(|transport| of(transport.five_tuples())).max().unwrap_or(1)
        };
        let (subflows, apart) = (most(FiveTuples::subflows), most(FiveTuples::apart));
        // What a scheme from outside does is not known beforehand.
        let switches = if apart > 1 && !is_external {
            let all: Vec<u32> = (0..topology.switches as u32).collect();
            SwitchConfigs::new(switch_schemes(topology, &all, seed, sizes.full_bytes, &mut own))
        } else {
            SwitchConfigs::default()
        };
        let parts = input.parts();
        let scheme = input.external.unwrap_or(&mut own);
        let peaks = input.sample_every.map_or(Peaks::NotKept, |_| Peaks::Kept);
        let knowledge = Knowledge::at_start(topology);
        let pinned = edge_hooks.pinned.then(|| Arc::new(Routes::at_start(&topology.at_its_best(faults))));
        let tables = knowledge.tables(topology, pinned.clone());
        let routes: Arc<[u16]> = if edge_hooks.sending {
            route_counts(topology, tables.explicit()).into()
        } else {
            Arc::default()
        };
        let common = || Common {
            topology,
            sizes,
            hooks: edge_hooks,
            reads_more: edge_hooks.receiving || subflows > 1 || apart > 1,
            counts_paths: input.paths_of.is_some(),
            routes: Arc::clone(&routes),
            deeds: Deeds::default(),
            delivered: 0,
        };
        let credits = transports.all().find_map(Protocol::credit_ports);
        let plan = Plan {
            transports,
            flows,
            directory: Directory::new(topology.hosts, flows, usize::from(subflows)),
            hash_key: Stream::new(seed, Purpose::FlowHash, 0).next_u64(),
            switches,
        };
        let paths = input.paths_of.map(PathMeter::new);
        let schemes = edge_schemes(topology, faults, balancer, edge_hooks, (sizes, &routes), seed);
        let mut schemes = schemes.into_iter();
        let host = |number: u32, scheme: EdgeScheme| {
            let stream = |purpose| Stream::new(seed, purpose, u64::from(number));
            let edge = Edge { scheme, stream: stream(Purpose::EdgeBalancer) };
            let log = HostLog { paths: paths.clone(), ..HostLog::default() };
            Host::new(HostId(number as u16), &plan.directory, edge, stream(Purpose::Transport), log)
        };
        let finite = flows.iter().filter(|flow| !flow.background).count();
        let sites: Vec<Site<'a>> = match &parts {
            None => vec![Site::whole(topology)],
            Some(parts) => {
                parts.parts.iter().map(|part| Site::part(topology, part, parts.split.clone())).collect()
            }
        };
        let addresses = parts.as_ref().map(|parts| Arc::new(Addresses::new(topology, parts)));
        let mut places = vec![(0, 0); topology.links.len()];
        let mut groups = Vec::with_capacity(sites.len());
        for (number, site) in sites.into_iter().enumerate() {
            for link in 0..site.link_count() as u32 {
                places[site.number(link) as usize] = (number as u32, link);
            }
            let hosts: Vec<Host<T>> = site
                .hosts()
                .zip(schemes.by_ref().take(site.hosts().len()))
                .map(|(number, scheme)| host(number, scheme))
                .collect();
            let starts = match &parts {
                None => Starts::All,
                Some(_) => Starts::of_hosts(flows, &site.hosts()),
            };
            let mut network = Network::new(
                site,
                Arc::clone(&tables),
                faults,
                seed,
                peaks,
                sizes.full_bytes,
                hooks,
                &mut *scheme,
            );
            if let Some(rules) = &credits {
                network.open_credit_ports(rules);
            }
            if let Some(addresses) = &addresses {
                network.join(number as u32, Arc::clone(addresses));
            }
            if let Some(window) = input.observe_every {
                network.observe(window, sizes.full_bytes);
            }
            if let Some((count, every)) = input.trace_flows {
                network.trace(Tracer::new(count, flows, every));
            }
            let last = if parts.is_none() && finite > 0 { finite } else { usize::MAX };
            let mailbox = parts.as_ref().map(|parts: &Parts| Mailbox::new(parts.lookahead));
            groups.push(Mutex::new(Group::new(network, hosts, common(), starts, last, mailbox)));
        }
        let threads = input.threads.clamp(1, groups.len());
        let days = parts.map(|parts| Days::new(parts.lookahead, groups.len(), threads));
        let mut engine = Self {
            topology,
            groups,
            days,
            plan,
            agenda: std::collections::BinaryHeap::new(),
            knowledge,
            pinned,
            faults,
            reroute_after: input.reroute_after,
            finite,
            last_instant: last_start(flows).saturating_add(input.time_limit),
            ending: None,
            timers: 0,
            sampler: input.sample_every.map(|every| Sampler::new(every, topology, flows)),
            places,
        };
        engine.prepare();
        engine
    }

    /// Lets schemes begin, and arms the first events.
    fn prepare(&mut self) {
        for group in self.groups.iter_mut().map(inner) {
            let mut outbox = self.days.as_mut().map(|days| &mut days.outboxes[0]);
            outbox.iter_mut().for_each(|outbox| group.lend(outbox));
            group.prepare(&self.plan);
            outbox.iter_mut().for_each(|outbox| group.lend(outbox));
        }
        self.carry();
        for (index, fault) in self.faults.iter().enumerate() {
            self.agenda.push(Reverse((fault.at, EventKey::new(EventKind::Fault, index as u32))));
        }
        self.sample(Time::ZERO);
    }
}
