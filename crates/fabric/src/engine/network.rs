//! Links, switches and the packets on them: everything but the endpoints.

use weft_balance::{EdgeHooks, SwitchHooks, SwitchInfo, SwitchScheme};
use weft_packet::{Kind, Packet, PacketFlags, Route};
use weft_topology::{FaultEvent, LinkKnowledge, RouteEntry, Routes, Topology};
use weft_units::{Purpose, Rate, Stream, Time};

use super::admission::Verdict;
use super::copies::Dropped;
use super::event_set::EventSet;
use super::link::{FarEnd, Link, Profiles};
use super::observer::Observer;
use super::pool::{NO_PACKET, PacketIndex, Pool};
use super::scheduled_port::ScheduledPort;
use super::special::{Peaks, Queued, Special};
use super::switch::{Deeds, racks_of_switches, switch_schemes};
use super::tracer::Tracer;

/// What happened to packets on a link, apart from being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkDrops {
    /// Packets dropped: the queue was full, the link down, or the wire lost them.
    pub dropped: u64,
    /// Packets that got a congestion mark.
    pub marked: u64,
    /// Credits dropped, for whatever reason: not counted in `dropped`.
    pub credits: u64,
    /// Bytes that it was given to send and never sent: they waited when the link went down.
    pub never_sent_bytes: u64,
}

/// Packets in the whole fabric, from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounts {
    /// Put into a host's queue, or into a switch's by its scheme.
    pub sent: u64,
    /// Taken out at a host, or at a switch whose scheme it was for.
    pub delivered: u64,
    /// Dropped or lost anywhere.
    pub dropped: u64,
    /// Of these, dropped at a switch that had no way to their destination: on no link's account. Without credits.
    pub unroutable: u64,
    /// Of these, credits: their loss is how a receiver learns of congestion.
    pub credits_dropped: u64,
    /// Arrivals at the far end of a link.
    pub hops: u64,
    /// Bytes of packets of schemes, on every link that they took.
    pub control_bytes: u64,
}

/// Everything but the endpoints.
pub struct Network<'a> {
    /// The time now.
    pub now: Time,
    /// What happens next.
    pub events: EventSet,
    /// All links, as the topology numbers them.
    pub links: Vec<Link>,
    pub(super) profiles: Profiles,
    pub(super) specials: Vec<Special>,
    /// The ports with several classes, by link; empty if there is none.
    pub(super) scheduled: Vec<Option<Box<ScheduledPort>>>,
    /// Whether credits have queues of their own.
    pub(super) has_credits: bool,
    pub(super) drops: Vec<LinkDrops>,
    pub(super) pool: Pool,
    pub(super) topology: &'a Topology,
    /// The tables in force.
    pub routes: Routes,
    /// The scheme at each switch.
    pub schemes: Vec<SwitchScheme>,
    pub(super) hooks: SwitchHooks,
    /// Whether switches answer when a hop limit expires.
    pub(super) traces: bool,
    /// The tables that explicit routes go by, if they mean the same paths throughout the run.
    pinned: Option<Routes>,
    /// Somebody wants to see what switches queue: the scheme, the observer or the tracer.
    pub(super) departures_are_seen: bool,
    /// Watches the queues of switches' ports, if asked for.
    pub(super) observer: Option<Observer>,
    /// Watches the packets of some flows, if asked for.
    pub(super) tracer: Option<Tracer>,
    pub(super) streams: Vec<Stream>,
    /// Where schemes leave what they want done.
    pub(super) deeds: Deeds,
    /// Whether each link works, as its own switch sees it at once.
    pub(super) local_up: Vec<bool>,
    /// What all switches know.
    pub(super) known: LinkKnowledge,
    /// Whether faults change each link's condition during the run.
    pub(super) changes: Vec<bool>,
    pub(super) peaks: Peaks,
    pub(super) seed: u64,
    /// The largest packet.
    pub(super) max_wire_bytes: u16,
    /// The data packets that were dropped, by time.
    pub dropped: Vec<Dropped>,
    /// See [`Packet::note_choice`].
    pub(super) trail_base: u32,
    /// Packets in the whole fabric.
    pub counts: PacketCounts,
}

impl<'a> Network<'a> {
    /// An idle network. `max_wire_bytes` is the largest packet; `scheme` makes the scheme of each switch.
    pub fn new(
        topology: &'a Topology,
        faults: &[FaultEvent],
        seed: u64,
        peaks: Peaks,
        max_wire_bytes: u16,
        (hooks, edge_hooks): (SwitchHooks, EdgeHooks),
        scheme: &mut dyn FnMut(&SwitchInfo<'_>) -> SwitchScheme,
    ) -> Self {
        let known = LinkKnowledge::at_start(topology);
        let mut changes = vec![false; topology.links.len()];
        for fault in faults {
            changes[fault.link as usize] = true;
        }
        let rack_of_switch = racks_of_switches(topology);
        let schemes = switch_schemes(topology, seed, max_wire_bytes, scheme);
        let hooks = schemes.iter().fold(hooks, |hooks, scheme| hooks.or(scheme.external_hooks()));
        let mut network = Self {
            now: Time::ZERO,
            events: EventSet::new(0),
            links: Vec::with_capacity(topology.links.len()),
            profiles: Profiles::default(),
            specials: Vec::new(),
            scheduled: Vec::new(),
            has_credits: false,
            drops: vec![LinkDrops::default(); topology.links.len()],
            pool: Pool::default(),
            topology,
            routes: Routes::compute(topology, &known, &known.up),
            schemes,
            hooks: SwitchHooks { arriving: hooks.arriving || edge_hooks.traces, ..hooks },
            traces: edge_hooks.traces,
            pinned: edge_hooks.pinned.then(|| Routes::at_start(&topology.at_its_best(faults))),
            departures_are_seen: hooks.queued,
            observer: None,
            tracer: None,
            deeds: Deeds::default(),
            streams: (0..topology.switches)
                .map(|switch| Stream::new(seed, Purpose::SwitchBalancer, switch as u64))
                .collect(),
            local_up: known.up.clone(),
            known,
            changes,
            peaks,
            seed,
            max_wire_bytes,
            dropped: Vec::new(),
            trail_base: topology.trail_base(),
            counts: PacketCounts::default(),
        };
        for (index, spec) in topology.links.iter().enumerate() {
            let far_end = match (spec.to.0 as usize).checked_sub(topology.hosts) {
                None => FarEnd::AT_HOST,
                Some(switch) => FarEnd {
                    switch: switch as u32,
                    first_link: topology.first_link[spec.to.0 as usize],
                    rack: rack_of_switch[switch],
                },
            };
            network.links.push(Link::idle(far_end, 0, spec.tier as u8));
            network.install(index as u32);
            network.apply_condition(index as u32, spec.condition);
        }
        network.open_ports(None);
        let horizon = network.profiles.iter().map(|profile| profile.transit(max_wire_bytes)).max();
        network.events = EventSet::new(horizon.unwrap_or_default().as_ps());
        network
    }

    /// Puts a packet into its host's output queue.
    #[inline]
    pub fn send(&mut self, packet: Packet) {
        self.counts.sent += 1;
        // A host has one cable, and hosts are the first nodes: the link's number is the host's.
        let link = u32::from(packet.src.0);
        let index = self.pool.insert(packet);
        self.enqueue::<false>(link, index);
    }

    /// The same with an option word that travels with the packet.
    pub fn send_with_option(&mut self, packet: Packet, option: u32) {
        self.counts.sent += 1;
        let link = u32::from(packet.src.0);
        let index = self.pool.insert(packet);
        self.pool.set_option(index, option);
        self.enqueue::<false>(link, index);
    }

    /// The packet at the head of `link` reached the far end. A packet that reached its host is returned, to be consumed.
    /// Inlined by force: as a call it takes 8 % more instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn arrive(&mut self, link: u32) -> Option<PacketIndex> {
        let (index, at) = self.take_head(link);
        self.counts.hops += 1;
        if at.switch == FarEnd::HOST {
            return Some(index);
        }
        if !self.hooks.arriving || self.passes(at.switch as usize, link, index) {
            self.forward(at, index);
        } else {
            self.consume(index);
        }
        None
    }

    /// A packet ends at the node that it was for.
    #[inline]
    pub fn consume(&mut self, index: PacketIndex) -> Packet {
        self.counts.delivered += 1;
        self.pool.remove(index)
    }

    /// Takes the packet that arrives first off a link, and says where it is now. Inlined by force, as [`Self::arrive`] is.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn take_head(&mut self, link: u32) -> (PacketIndex, FarEnd) {
        let state = &mut self.links[link as usize];
        let (head, at) = (state.head, state.far_end());
        if state.tail == head {
            state.head = NO_PACKET;
            state.tail = NO_PACKET;
        } else {
            let next = self.pool[head].next;
            state.head = next;
            state.head_arrive = self.pool[next].arrive.as_ps();
            self.pool.warm(self.pool[next].next);
            self.events.push_link(state, link);
        }
        (head, at)
    }

    /// A packet is at a switch: to the next link, or nowhere. Inlined by force, as [`Self::arrive`] is.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn forward(&mut self, at: FarEnd, index: PacketIndex) {
        let packet = &mut self.pool[index];
        let rack = self.topology.rack_of_host[packet.dst.index()];
        let (switch, first) = (at.switch as usize, at.first_link);
        let link = if rack == at.rack {
            self.topology.link_to_host[packet.dst.index()]
        } else if self.pinned.is_some() && packet.route != Route::ANY {
            match self.pinned_link(switch, rack, index) {
                Some(link) => link,
                None => return self.drop_unroutable(index),
            }
        } else {
            match self.routes.entry(switch, rack as usize) {
                RouteEntry::Port(port) => first + u32::from(port.0),
                RouteEntry::Group(group) => first + u32::from(self.next_hop(at, group, rack, index).0),
                RouteEntry::None => return self.drop_unroutable(index),
            }
        };
        self.enqueue::<true>(link, index);
    }

    /// The link that a packet's explicit route takes out of a switch by the pinned tables, or `None` if they know none.
    #[cold]
    fn pinned_link(&mut self, switch: usize, rack: u16, index: PacketIndex) -> Option<u32> {
        let tables = self.pinned.as_ref()?;
        let port = match tables.entry(switch, rack as usize) {
            RouteEntry::Port(port) => port,
            RouteEntry::Group(group) => {
                let ports = tables.group(group).0;
                let packet = &mut self.pool[index];
                let port = ports[packet.route.next_hop(ports.len())?];
                packet.note_choice(port, self.trail_base);
                port
            }
            RouteEntry::None => return None,
        };
        Some(self.topology.first_link[self.topology.hosts + switch] + u32::from(port.0))
    }

    /// The tables that explicit routes go by.
    pub fn explicit_routes(&self) -> &Routes {
        self.pinned.as_ref().unwrap_or(&self.routes)
    }

    /// Queues a packet of a scheme on a link.
    #[cold]
    pub(super) fn send_control(&mut self, link: u32, packet: Packet) {
        self.counts.sent += 1;
        let index = self.pool.insert(packet);
        self.enqueue::<false>(link, index);
    }

    /// Queues a packet on a link, or drops it. `SHOWN` says whether it is one that switches show around: see
    /// [`Self::tell_of_queued`]. Inlined by force: as a call it takes 5 % more instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn enqueue<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let state = &mut self.links[link as usize];
        if state.is_special {
            return self.enqueue_special::<SHOWN>(link, index);
        }
        let packet = &mut self.pool[index];
        let profile = &self.profiles[state.profile];
        let service = profile.service_ps(packet.wire_bytes);
        let backlog = state.backlog_ps(now);
        match profile.thresholds.judge(backlog, service) {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[link as usize]),
            Verdict::Take => {}
        }
        book(state, packet, &mut self.counts, backlog);
        state.busy_until = now + backlog + service;
        let arrive = state.busy_until + profile.delay_ps;
        packet.arrive = Time::from_ps(arrive);
        let tail = std::mem::replace(&mut state.tail, index);
        if tail == NO_PACKET {
            state.head = index;
            state.head_arrive = arrive;
            self.events.push_link(state, link);
        } else {
            let ahead = &mut self.pool[tail];
            ahead.next = index;
            // A link whose delay changes is special: here FIFO holds by itself.
            debug_assert!(
                ahead.arrive.as_ps() <= arrive,
                "packets arrive in the order in which they were queued"
            );
        }
        if SHOWN && self.departures_are_seen {
            self.tell_of_queued(link, index, backlog);
        }
    }

    /// The same for a port that is not one queue that its profile describes.
    #[inline(never)]
    fn enqueue_special<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        if self.is_scheduled(link) {
            return self.offer(link, index);
        }
        let now = self.now.as_ps();
        let state = &mut self.links[link as usize];
        let (profile, special) = (&self.profiles[state.profile], &mut self.specials[state.special as usize]);
        let packet = &mut self.pool[index];
        let service = profile.service_ps(packet.wire_bytes);
        let backlog = state.backlog_ps(now);
        let verdict = match profile.thresholds.judge(backlog, service) {
            Verdict::Drop => Verdict::Drop,
            by_bytes => by_bytes.max(special.judge(packet, now, || profile.bytes_in(backlog))),
        };
        match verdict {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[link as usize]),
            Verdict::Take => {}
        }
        let arrives = !special.vanishes(packet);
        let depart_ps = now + backlog + service;
        special.push(Queued { since_ps: now, depart_ps, wire_bytes: packet.wire_bytes, arrives }, profile);
        book(state, packet, &mut self.counts, backlog);
        state.busy_until = depart_ps;
        let arrive = depart_ps + profile.delay_ps;
        if SHOWN && self.departures_are_seen {
            self.tell_of_queued(link, index, backlog);
        }
        if arrives {
            self.put_on_wire(link, index, arrive);
        } else {
            self.drop_at(link, index);
        }
    }

    #[cold]
    fn drop_unroutable(&mut self, index: PacketIndex) {
        // Credits are counted by themselves wherever they are lost.
        self.counts.unroutable += u64::from(self.pool[index].kind != Kind::Credit);
        self.discard(index);
    }

    /// A port's queue does not take a packet.
    #[cold]
    pub(super) fn refuse(&mut self, link: u32, index: PacketIndex) {
        self.trace_offered(link, index);
        self.drop_at(link, index);
    }

    #[cold]
    pub(super) fn drop_at(&mut self, link: u32, index: PacketIndex) {
        let drops = &mut self.drops[link as usize];
        let count =
            if self.pool[index].kind == Kind::Credit { &mut drops.credits } else { &mut drops.dropped };
        *count += 1;
        self.discard(index);
    }

    #[cold]
    fn discard(&mut self, index: PacketIndex) {
        self.counts.dropped += 1;
        let packet = self.pool.remove(index);
        match packet.kind {
            Kind::Data => self.dropped.push(Dropped::new(&packet, self.now)),
            Kind::Message | Kind::CreditRequest => drop(self.contents_of(&packet)),
            Kind::Credit => self.counts.credits_dropped += 1,
            _ => {}
        }
    }

    /// The rate of a link now.
    pub fn rate(&self, link: usize) -> Rate {
        self.profiles[self.links[link].profile].rate
    }

    /// What samples want to know of a link: bytes that are queued now, with what is left of the packet in service, and the
    /// most that were queued since this was last asked.
    pub fn take_backlogs(&mut self, link: usize) -> (u64, u64) {
        let bytes = self.backlog_bytes(link);
        if let Some(port) = self.scheduled.get_mut(link).and_then(Option::as_deref_mut) {
            return (bytes, port.take_peak(bytes));
        }
        (bytes, self.specials[self.links[link].special as usize].take_peak(bytes))
    }

    /// Bytes that are queued now, with what is left of the packet in service, on a link that has rules of its own: as those do
    /// that are sampled, or will change.
    pub(super) fn backlog_bytes(&mut self, link: usize) -> u64 {
        let (now, state) = (self.now.as_ps(), &self.links[link]);
        let profile = &self.profiles[state.profile];
        match self.scheduled.get(link).and_then(Option::as_deref) {
            Some(port) => port.backlog_bytes(now, profile),
            None => self.specials[state.special as usize].backlog_bytes(now, state.backlog_ps(now), profile),
        }
    }

    /// Whether no packet is on a link, and none is being sent that the wire will lose.
    pub fn is_empty(&self) -> bool {
        let now = self.now.as_ps();
        let is_idle = |link: &Link| link.backlog_ps(now) == 0;
        self.pool.len() == 0 && self.links.iter().all(is_idle)
    }

    /// What happened to packets on each link.
    pub fn drops(&self) -> &[LinkDrops] {
        &self.drops
    }

    /// Packets that are on links now.
    pub fn in_flight(&self) -> u64 {
        self.pool.len() as u64
    }

    /// Bytes of memory that links, ports, packets, events and tables take.
    pub fn memory_bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
            + self.drops.capacity() * size_of::<LinkDrops>()
            + self.scheduled.iter().flatten().count() * size_of::<ScheduledPort>()
            + self.pool.memory_bytes()
            + self.events.memory_bytes()
            + self.routes.memory_bytes()
            + self.schemes.capacity() * size_of::<SwitchScheme>()
            + self.schemes.iter().map(SwitchScheme::state_bytes).sum::<u64>() as usize
    }
}

/// Counts a packet that a port with one queue took, behind a backlog of `backlog_ps`.
#[inline(always)]
#[allow(clippy::inline_always)]
fn book(state: &mut Link, packet: &mut Packet, counts: &mut PacketCounts, backlog_ps: u64) {
    if packet.kind == Kind::Data {
        packet.add_wait_ps(state.tier as usize, backlog_ps);
    } else if packet.kind.is_of_scheme() {
        counts.control_bytes += u64::from(packet.wire_bytes);
    }
    state.bytes += u64::from(packet.wire_bytes);
    state.packets += 1;
}

#[cold]
pub(super) fn mark(packet: &mut Packet, drops: &mut LinkDrops) {
    if packet.flags.has(PacketFlags::ECT) && !packet.flags.has(PacketFlags::CE) {
        packet.flags.set(PacketFlags::CE);
        drops.marked += 1;
    }
}
