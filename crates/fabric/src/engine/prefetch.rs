//! Prefetch of the memory that the next events will need.
//!
//! In a fabric that is far larger than the caches nearly everything that an event needs is
//! elsewhere, and what one needs says where the next thing is: the link, its first packet, the flow
//! of that, the host, the end of the flow there. So as soon as a slot of the timing wheel with many
//! events is loaded, each of these is asked for for all of its events, before the next. What is
//! asked for changes nothing.

use weft_packet::{HostId, Packet};
use weft_transport::Transports;

use super::event_set::Event;
use super::fetch::fetch;
use super::host::{Host, RunPlan};
use super::link::{FarEnd, Link};
use super::network::{Network, NextHop};
use super::partition::Partition;
use super::pool::PacketIndex;
use super::scheduled_port::ScheduledPort;

/// The events of a crowded slot by what they are, kept from slot to slot to spare the allocations.
#[derive(Default)]
pub(super) struct Sorted {
    /// Links whose first packet arrives.
    links: Vec<u32>,
    /// Places of hosts whose cards are to ask.
    cards: Vec<u32>,
    /// Packets that come to a host.
    arriving: Vec<ForHost>,
}

/// A packet that comes to the host at this place.
struct ForHost {
    host: u32,
    packet: PacketIndex,
    /// Number of its flow at the host.
    number: u32,
}

impl<'a, T: Transports> Partition<'a, T> {
    /// Asks for what the events of a crowded slot need, as far as it can be known.
    #[inline(never)]
    pub(super) fn prefetch(&mut self, plan: &RunPlan<'a, T>) {
        let Some(crowd) = self.network.events.crowd() else { return };
        let mut sorted = std::mem::take(&mut self.sorted);
        self.sort_crowd(crowd, &mut sorted);
        self.fetch_for(plan, &mut sorted);
        self.sorted = sorted;
    }

    /// Says what the events are.
    #[inline]
    fn sort_crowd(&self, crowd: &[Event], sorted: &mut Sorted) {
        let network = &self.network;
        sorted.links.clear();
        sorted.cards.clear();
        for event in crowd {
            let number = event.number();
            if (number as usize) < network.state.links.len() {
                sorted.links.push(number);
            } else if let Some(host) = network.events.card(number) {
                sorted.cards.push(network.map.cable(HostId(host as u16)));
            }
        }
    }

    #[inline]
    fn fetch_for(&self, plan: &RunPlan<'a, T>, sorted: &mut Sorted) {
        let Sorted { links, cards, arriving } = sorted;
        let network = &self.network;
        arriving.clear();
        for &link in links.iter() {
            let link = &network.state.links[link as usize];
            let packet = &network.pool[link.head];
            network.pool.warm(packet.next);
            if !link.leads_to_host() {
                network.only_way(link.far_end(), packet).into_iter().for_each(fetch);
                continue;
            }
            let place = network.map.cable(packet.dst);
            if let Some(host) = self.hosts.get(place as usize) {
                host.fetch(packet);
                plan.directory.fetch_number(packet);
                arriving.push(ForHost { host: place, packet: link.head, number: 0 });
            }
        }
        let cards = || cards.iter().filter_map(|&place| self.hosts.get(place as usize));
        cards().for_each(Host::fetch_senders);
        arriving.retain_mut(|one| {
            let packet = &network.pool[one.packet];
            let Some(number) = plan.directory.number_of(packet) else { return false };
            one.number = number;
            self.hosts[one.host as usize].fetch_place(packet, number);
            true
        });
        let arriving = || {
            let known =
                |one: &ForHost| (&self.hosts[one.host as usize], &network.pool[one.packet], one.number);
            arriving.iter().map(known)
        };
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

    /// Asks for all ports with classes, of which a busy window needs nearly all, one after the
    /// other: a packet that comes to one would wait for four places in memory, each of which says
    /// where the next is.
    #[inline(never)]
    pub(super) fn look_at_ports(&self) {
        let state = &self.network.state;
        let ports = || state.scheduled.iter().flatten();
        if state.scheduled.is_empty() {
            return;
        }
        state.links.iter().take(self.network.map.link_count()).for_each(fetch);
        ports().for_each(ScheduledPort::fetch);
        ports().for_each(|port| port.fetch_waiting(&self.network.pool));
        ports().for_each(|port| port.fetch_second(&self.network.pool));
    }
}

impl Network<'_> {
    /// The link by which a packet leaves a switch, where nothing is to be chosen.
    #[inline]
    fn only_way(&self, at: FarEnd, packet: &Packet) -> Option<&Link> {
        let rack = self.topology.rack_of_host[packet.dst.index()];
        let NextHop::Only(link) = self.way(at, rack, packet) else { return None };
        self.state.links.get(link as usize)
    }
}
