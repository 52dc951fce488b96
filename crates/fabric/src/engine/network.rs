//! Links, switches and the packets on them: everything but the endpoints.

use weft_balance::{NextHops, PortId, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme};
use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{Purpose, Rate, Span, Stream, Time};

use super::event_set::EventSet;
use super::link::{Link, Profile};
use super::pool::{NO_PACKET, PacketIndex, Pool};
use super::special::{Admission, Special};
use crate::topology::{Condition, FaultEvent, RouteEntry, Routes, Topology};

/// What happened to packets on a link, apart from being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkDrops {
    /// Packets dropped: the queue was full, the link down, or the wire lost them.
    pub dropped: u64,
    /// Packets that got a congestion mark.
    pub marked: u64,
}

/// Packets in the whole fabric, from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Put into a host's queue.
    pub sent: u64,
    /// Taken out at a host.
    pub delivered: u64,
    /// Dropped or lost anywhere.
    pub dropped: u64,
    /// Arrivals at the far end of a link.
    pub hops: u64,
}

/// Everything but the endpoints.
pub struct Network<'a> {
    /// The time now.
    pub now: Time,
    /// What happens next.
    pub events: EventSet,
    /// All links, as the topology numbers them.
    pub links: Vec<Link>,
    profiles: Vec<Profile>,
    specials: Vec<Special>,
    drops: Vec<LinkDrops>,
    pool: Pool,
    topology: &'a Topology,
    /// The tables in force.
    pub routes: Routes,
    /// The scheme at each switch.
    pub schemes: Vec<SwitchScheme>,
    hooks: SwitchHooks,
    streams: Vec<Stream>,
    /// Whether each link works, and whether all switches know that it does.
    local_up: Vec<bool>,
    known_up: Vec<bool>,
    /// Rack of each switch, or `u16::MAX` for one without hosts.
    rack_of_switch: Vec<u16>,
    seed: u64,
    /// Packets in the whole fabric.
    pub counts: PacketCounts,
}

/// A switch as its scheme sees it.
struct SwitchView<'a> {
    now: Time,
    ports: &'a [Link],
    profiles: &'a [Profile],
    stream: &'a mut Stream,
}

impl SwitchView<'_> {
    #[inline]
    fn profile(&self, port: PortId) -> &Profile {
        &self.profiles[self.ports[port.index()].profile as usize]
    }
}

impl SwitchContext for SwitchView<'_> {
    #[inline]
    fn now(&self) -> Time {
        self.now
    }

    #[inline]
    fn drain_time(&self, port: PortId) -> Span {
        Span::from_ps(self.ports[port.index()].backlog_ps(self.now.as_ps()))
    }

    #[inline]
    fn backlog_bytes(&self, port: PortId) -> u64 {
        self.profile(port).bytes_in(self.drain_time(port).as_ps())
    }

    #[inline]
    fn rate(&self, port: PortId) -> Rate {
        self.profile(port).rate
    }

    #[inline]
    fn bytes_sent(&self, port: PortId) -> u64 {
        self.ports[port.index()].bytes
    }

    #[inline]
    fn random(&mut self) -> &mut Stream {
        self.stream
    }
}

impl<'a> Network<'a> {
    /// An idle network. `max_wire_bytes` is the largest packet; `scheme` makes the scheme of each switch.
    pub fn new(
        topology: &'a Topology,
        seed: u64,
        max_wire_bytes: u16,
        hooks: SwitchHooks,
        scheme: &mut dyn FnMut(&SwitchInfo<'_>) -> SwitchScheme,
    ) -> Self {
        let up: Vec<bool> = topology.links.iter().map(|link| link.condition.up).collect();
        let mut rack_of_switch = vec![u16::MAX; topology.switches];
        for (rack, &switch) in topology.switch_of_rack.iter().enumerate() {
            rack_of_switch[switch as usize] = rack as u16;
        }
        let mut network = Self {
            now: Time::ZERO,
            events: EventSet::new(0),
            links: Vec::with_capacity(topology.links.len()),
            profiles: Vec::new(),
            specials: Vec::new(),
            drops: vec![LinkDrops::default(); topology.links.len()],
            pool: Pool::default(),
            topology,
            routes: Routes::compute(topology, &up, &up),
            schemes: Vec::with_capacity(topology.switches),
            hooks,
            streams: (0..topology.switches)
                .map(|switch| Stream::new(seed, Purpose::SwitchBalancer, switch as u64))
                .collect(),
            local_up: up.clone(),
            known_up: up,
            rack_of_switch,
            seed,
            counts: PacketCounts::default(),
        };
        for (index, spec) in topology.links.iter().enumerate() {
            network.links.push(Link::idle(spec.to.0, 0, spec.tier as u8));
            network.apply_condition(index as u32, spec.condition);
        }
        let horizon = network.profiles.iter().map(|profile| profile.transit(max_wire_bytes)).max();
        network.events = EventSet::new(horizon.unwrap_or_default().as_ps());
        for switch in 0..topology.switches {
            let rates: Vec<Rate> =
                topology.links[network.ports(switch)].iter().map(|link| link.condition.rate).collect();
            let info = SwitchInfo {
                switch: switch as u32,
                tier: topology.tier_of_switch[switch],
                seed,
                port_rates: &rates,
                racks: topology.racks() as u16,
            };
            network.schemes.push(scheme(&info));
        }
        network
    }

    /// The links of a switch's ports.
    fn ports(&self, switch: usize) -> std::ops::Range<usize> {
        let node = self.topology.hosts + switch;
        self.topology.first_link[node] as usize..self.topology.first_link[node + 1] as usize
    }

    /// Puts a packet into its host's output queue.
    #[inline]
    pub fn send(&mut self, packet: Packet) {
        self.counts.sent += 1;
        // A host has one cable, and hosts are the first nodes: the link's number is the host's.
        let link = u32::from(packet.src.0);
        let index = self.pool.insert(packet);
        self.enqueue(link, index);
    }

    /// The packet at the head of `link` reached the far end. A packet that reached its host is returned.
    #[inline]
    pub fn arrive(&mut self, link: u32) -> Option<Packet> {
        let index = self.take_head(link);
        self.counts.hops += 1;
        let node = self.links[link as usize].to as usize;
        let hosts = self.topology.hosts;
        if node >= hosts {
            self.forward(node - hosts, index);
            return None;
        }
        self.counts.delivered += 1;
        Some(self.pool.remove(index))
    }

    /// Takes the packet that arrives first off a link.
    #[inline]
    fn take_head(&mut self, link: u32) -> PacketIndex {
        let state = &mut self.links[link as usize];
        let head = state.head;
        if state.tail == head {
            state.head = NO_PACKET;
            state.tail = NO_PACKET;
        } else {
            let next = self.pool[head].next;
            state.head = next;
            state.head_arrive = self.pool[next].arrive.as_ps();
            self.events.push_link(&mut self.links, link);
        }
        head
    }

    /// A packet is at a switch: to the next link, or nowhere.
    #[inline]
    fn forward(&mut self, switch: usize, index: PacketIndex) {
        let packet = &mut self.pool[index];
        let rack = self.topology.rack_of_host[packet.dst.index()];
        let first = self.topology.first_link[self.topology.hosts + switch];
        let link = if rack == self.rack_of_switch[switch] {
            self.topology.link_to_host[packet.dst.index()]
        } else {
            match self.routes.entry(switch, rack as usize) {
                RouteEntry::Port(port) => first + u32::from(port.0),
                RouteEntry::Group(group) => {
                    let (ports, weights) = self.routes.group(group);
                    let choice = if let Some(choice) = packet.route.next_hop(ports.len()) {
                        choice
                    } else {
                        let last = self.topology.first_link[self.topology.hosts + switch + 1];
                        let mut view = SwitchView {
                            now: self.now,
                            ports: &self.links[first as usize..last as usize],
                            profiles: &self.profiles,
                            stream: &mut self.streams[switch],
                        };
                        self.schemes[switch].choose(&mut view, packet, &NextHops { ports, weights, rack })
                    };
                    let port = ports[choice];
                    packet.trail = packet.trail.wrapping_mul(61).wrapping_add(port.0 + 1);
                    first + u32::from(port.0)
                }
                RouteEntry::None => return self.discard(index),
            }
        };
        if self.hooks.departing {
            self.departing(switch, link - first, index);
        }
        self.enqueue(link, index);
    }

    /// Shows a packet that leaves to the switch's scheme.
    fn departing(&mut self, switch: usize, port: u32, index: PacketIndex) {
        let ports = self.ports(switch);
        let mut view = SwitchView {
            now: self.now,
            ports: &self.links[ports],
            profiles: &self.profiles,
            stream: &mut self.streams[switch],
        };
        self.schemes[switch].departing(&mut view, &mut self.pool[index], PortId(port as u16));
    }

    /// Queues a packet on a link, or drops it. Inlined by force: as a call it takes 5 % more instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn enqueue(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let state = &mut self.links[link as usize];
        let packet = &mut self.pool[index];
        let profile = &self.profiles[state.profile as usize];
        let service = profile.service_ps(packet.wire_bytes);
        let backlog = state.backlog_ps(now);
        if backlog + service > profile.limit_ps {
            return self.drop_at(link, index);
        }
        let mut lost_on_wire = false;
        if state.is_special {
            let special = &mut self.specials[state.special as usize];
            match special.admit(packet, now, profile.bytes_in(backlog)) {
                Admission::Queue => {}
                Admission::QueueMarked => mark(packet, &mut self.drops[link as usize]),
                Admission::LoseOnWire => lost_on_wire = true,
                Admission::Drop => return self.drop_at(link, index),
            }
            special.queued(now + backlog + service);
        }
        if backlog > profile.mark_ps {
            mark(packet, &mut self.drops[link as usize]);
        }
        if packet.kind == Kind::Data {
            packet.add_wait_ps(state.tier as usize, backlog);
        }
        state.busy_until = now + backlog + service;
        state.bytes += u64::from(packet.wire_bytes);
        state.packets += 1;
        if lost_on_wire {
            return self.drop_at(link, index);
        }
        let mut arrive = state.busy_until + profile.delay_ps;
        let tail = state.tail;
        if tail == NO_PACKET {
            packet.arrive = Time::from_ps(arrive);
            state.head = index;
            state.tail = index;
            state.head_arrive = arrive;
            self.events.push_link(&mut self.links, link);
        } else {
            // After a shorter delay came into force, the packet ahead may still be further away: FIFO holds.
            state.tail = index;
            let ahead = &mut self.pool[tail];
            ahead.next = index;
            arrive = arrive.max(ahead.arrive.as_ps());
            self.pool[index].arrive = Time::from_ps(arrive);
        }
    }

    #[cold]
    fn drop_at(&mut self, link: u32, index: PacketIndex) {
        self.drops[link as usize].dropped += 1;
        self.discard(index);
    }

    #[cold]
    fn discard(&mut self, index: PacketIndex) {
        self.counts.dropped += 1;
        self.pool.remove(index);
    }

    /// A link changes its state. What is on it when it goes down is lost; what is queued when its rate or delay changes
    /// is sent at the new rate, the packet in service from its beginning.
    pub fn apply_fault(&mut self, fault: &FaultEvent) {
        self.apply_condition(fault.link, fault.condition);
        self.local_up[fault.link as usize] = fault.condition.up;
        self.recompute_routes();
    }

    /// All switches know by now whether this link works.
    pub fn learn_fault(&mut self, fault: &FaultEvent) {
        self.known_up[fault.link as usize] = self.local_up[fault.link as usize];
        self.recompute_routes();
    }

    fn recompute_routes(&mut self) {
        self.routes = Routes::compute(self.topology, &self.known_up, &self.local_up);
    }

    fn apply_condition(&mut self, link: u32, condition: Condition) {
        let spec = &self.topology.links[link as usize];
        let profile = Profile::new(spec, &condition, self.topology.overhead_bytes);
        let profile = self.profile_index(profile);
        let special = Special::of(link, spec, &condition, self.seed);
        let state = &mut self.links[link as usize];
        let old_delay_ps = self.profiles[state.profile as usize].delay_ps;
        state.profile = profile;
        state.is_special = special.is_some();
        if let Some(mut special) = special {
            if state.special == u32::MAX {
                state.special = self.specials.len() as u32;
                self.specials.push(special);
            } else {
                let slot = &mut self.specials[state.special as usize];
                std::mem::swap(slot, &mut special);
                slot.continue_from(special);
            }
        }
        if self.links[link as usize].head != NO_PACKET {
            self.reschedule(link, condition.up, old_delay_ps);
        }
    }

    fn profile_index(&mut self, profile: Profile) -> u16 {
        let known = self.profiles.iter().position(|candidate| *candidate == profile);
        known.unwrap_or_else(|| {
            self.profiles.push(profile);
            self.profiles.len() - 1
        }) as u16
    }

    /// Works out again when the packets on a link arrive, or loses them if it is down. The packet in service keeps its
    /// departure.
    fn reschedule(&mut self, link: u32, up: bool, old_delay_ps: u64) {
        self.events.remove_link(&mut self.links, link);
        let members = self.members(link);
        let now = self.now.as_ps();
        let state = &mut self.links[link as usize];
        if !up {
            (state.head, state.tail, state.busy_until) = (NO_PACKET, NO_PACKET, now);
            for index in members {
                self.drop_at(link, index);
            }
            return;
        }
        let profile = &self.profiles[state.profile as usize];
        let mut departures = Vec::new();
        let mut earliest = now;
        for index in members {
            let packet = &mut self.pool[index];
            let old_depart = packet.arrive.as_ps() - old_delay_ps;
            if old_depart > now {
                let depart = match departures.last() {
                    None => old_depart,
                    Some(previous) => previous + profile.service_ps(packet.wire_bytes),
                };
                departures.push(depart);
                packet.arrive = Time::from_ps(earliest.max(depart + profile.delay_ps));
            }
            earliest = earliest.max(packet.arrive.as_ps());
        }
        state.busy_until = departures.last().copied().unwrap_or(now);
        state.head_arrive = self.pool[state.head].arrive.as_ps();
        if state.is_special {
            self.specials[state.special as usize].set_departures(departures.into_iter());
        }
        self.events.push_link(&mut self.links, link);
    }

    /// The packets on a link, from the one that arrives first.
    fn members(&self, link: u32) -> Vec<PacketIndex> {
        let state = &self.links[link as usize];
        let mut members = vec![state.head];
        while members.last() != Some(&state.tail) {
            members.push(self.pool[members[members.len() - 1]].next);
        }
        members
    }

    /// What happened to packets on each link.
    pub fn drops(&self) -> &[LinkDrops] {
        &self.drops
    }

    /// Packets that are on links now.
    pub fn in_flight(&self) -> u64 {
        self.pool.len() as u64
    }

    /// Bytes of memory that links, packets, events and tables take.
    pub fn memory_bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
            + self.drops.capacity() * size_of::<LinkDrops>()
            + self.pool.memory_bytes()
            + self.events.memory_bytes()
            + self.routes.memory_bytes()
            + self.schemes.capacity() * size_of::<SwitchScheme>()
    }
}

#[cold]
fn mark(packet: &mut Packet, drops: &mut LinkDrops) {
    if packet.flags.has(PacketFlags::ECT) && !packet.flags.has(PacketFlags::CE) {
        packet.flags.set(PacketFlags::CE);
        drops.marked += 1;
    }
}
