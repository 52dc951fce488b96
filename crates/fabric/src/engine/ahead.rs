//! What the events that come next will need of memory, asked for in time.
//!
//! In a fabric that is far larger than the caches nearly everything that an event needs is elsewhere, and what one needs says where
//! the next thing is: the link, its first packet, the flow of that, the host, the end of the flow there. So as soon as a slot
//! of the timing wheel with many events is loaded, each of these is asked for for all of its events, before the next. What is
//! asked for changes nothing.

use weft_packet::{HostId, Packet};
use weft_transport::Transports;

use super::fetch::fetch;
use super::group::Group;
use super::host::{Host, Plan};
use super::link::{FarEnd, Link};
use super::network::{Network, Way};
use super::scheduled_port::ScheduledPort;

impl<'a, T: Transports> Group<'a, T> {
    /// Asks for what the events of a crowded slot need, as far as it can be known.
    #[inline(never)]
    pub(super) fn look_ahead(&self, plan: &Plan<'a, T>) {
        let network = &self.network;
        let Some(crowd) = network.events.crowd() else { return };
        let mail = || {
            let crowd = if network.office.is_some() { crowd } else { &[] };
            crowd.iter().filter_map(|event| network.events.mail(event.number()))
        };
        mail().for_each(|(index, _)| network.pool.warm(index));
        let links = || crowd.iter().filter_map(|event| network.state.links.get(event.number() as usize));
        for link in links() {
            let packet = &network.pool[link.head];
            network.pool.warm(packet.next);
            if !link.leads_to_host() {
                network.only_way(link.far_end(), packet).into_iter().for_each(fetch);
            } else if let Some(host) = self.host_of(packet) {
                host.fetch(packet);
                plan.directory.fetch_number(packet);
            }
        }
        let cards = || {
            let crowd = if self.has_cards { crowd } else { &[] };
            let hosts = crowd.iter().filter_map(|event| network.events.card(event.number()));
            hosts.filter_map(|host| self.hosts.get(network.site.cable(HostId(host as u16)) as usize))
        };
        cards().for_each(Host::fetch_senders);
        for (index, number) in mail() {
            let at = network.behind(number);
            at.and_then(|at| network.only_way(at, &network.pool[index])).into_iter().for_each(fetch);
        }
        let arriving = || {
            let packets = links().filter(|link| link.leads_to_host()).map(|link| &network.pool[link.head]);
            packets
                .filter_map(|packet| Some((self.host_of(packet)?, packet, plan.directory.number_of(packet)?)))
        };
        arriving().for_each(|(host, packet, number)| host.fetch_place(packet, number));
        if self.has_cards {
            arriving().for_each(|(host, ..)| host.fetch_card());
            cards().for_each(Host::fetch_card);
        }
        arriving().for_each(|(host, packet, number)| host.fetch_end(packet, number));
        if self.has_cards {
            cards().for_each(Host::fetch_lanes);
            cards().for_each(Host::fetch_pairs);
            cards().for_each(Host::fetch_asked);
            arriving().for_each(|(host, packet, number)| host.fetch_kept_for(plan, packet, number));
            cards().for_each(|host| host.fetch_kept_by_asked(plan));
        }
    }

    /// Asks for all ports with classes, of which a busy window needs nearly all, one after the other: a packet that comes to one would
    /// wait for four places in memory, each of which says where the next is.
    #[inline(never)]
    pub(super) fn look_at_ports(&self) {
        let state = &self.network.state;
        let ports = || state.scheduled.iter().flatten();
        if state.scheduled.is_empty() {
            return;
        }
        state.links.iter().for_each(fetch);
        ports().for_each(ScheduledPort::fetch);
        ports().for_each(|port| port.fetch_waiting(&self.network.pool));
    }

    #[inline]
    fn host_of(&self, packet: &Packet) -> Option<&Host<T>> {
        self.hosts.get(self.network.site.cable(packet.dst) as usize)
    }
}

impl Network<'_> {
    /// The link by which a packet leaves a switch, where nothing is to be chosen.
    #[inline]
    fn only_way(&self, at: FarEnd, packet: &Packet) -> Option<&Link> {
        let rack = self.topology.rack_of_host[packet.dst.index()];
        let Way::Only(link) = self.way(at, rack, packet) else { return None };
        self.state.links.get(link as usize)
    }
}
