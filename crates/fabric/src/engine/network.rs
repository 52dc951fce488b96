//! Links, switches and the packets on them: everything but the endpoints.

mod begin;
mod counts;
mod look;
mod lost;

use std::sync::Arc;

use weft_balance::{AnySwitchScheme, Ports, SwitchHooks};
use weft_packet::{Kind, Packet, PacketFlags, Route};
use weft_topology::{RouteEntry, Routes, Tier, Topology};
use weft_units::{Stream, Time};

use super::admission::Verdict;
use super::capture::Capture;
use super::drops::Losses;
use super::event_set::{self, EventSet};
use super::external_hosts::Frame;
use super::follow::Follow;
use super::hold::HoldQueues;
use super::host_cpu::HostCpus;
use super::link::{FarEnd, Link, PortKind, Profile, Profiles};
use super::observer::Observer;
use super::oracle::Oracle;
use super::partition::Exchange;
use super::partition::PartitionMap;
use super::pause::{Origin, SharedBuffers};
use super::pool::{NO_PACKET, PacketIndex, Pool};
use super::results::RateChange;
use super::retransmission_causes::Dropped;
use super::scheduled_port::ScheduledPort;
use super::software_switch::SoftwareSwitches;
use super::special::{Peaks, Queued, Special};
use super::switch::SwitchActions;
use super::tables::Tables;
use super::tracer::Tracer;
pub use begin::NetworkFacts;
pub use counts::PacketCounts;
pub use look::LinkLook;

/// Drops and marks of packets on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkDrops {
    /// Packets dropped: the queue was full, the link down, or the wire lost them.
    pub dropped: u64,
    /// Packets that got a congestion mark; a port with several classes counts them by class.
    pub marked: u64,
    /// Credits dropped, for whatever reason: not counted in `dropped`.
    pub credits: u64,
    /// Bytes that it was given to send and never sent: they waited when the link went down.
    pub never_sent_bytes: u64,
}

/// Outcome of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalOutcome {
    /// A packet reached its host, to be consumed.
    AtHost(PacketIndex),
    /// It went on, or is no more.
    Gone,
    /// Nothing has arrived yet: others are behind the link in its slot. See
    /// [`super::event_set::Next::Arrival`].
    NotAlone,
    /// There is no such link, but a timer: see there.
    NoLink,
}

/// Where the tables of a switch lead a packet.
pub(super) enum NextHop {
    /// By this link.
    Only(u32),
    /// By one of the ports of a group.
    Several(u32),
    /// As the packet's explicit route says.
    Pinned,
    /// Nowhere.
    None,
}

/// The state of all ports: a scheme may look at what is its own switch's.
pub struct PortStates {
    /// All links, as the part numbers them.
    pub links: Vec<Link>,
    pub(super) profiles: Profiles,
    /// The ports with several classes, by link; empty if there is none.
    pub(super) scheduled: Vec<Option<ScheduledPort>>,
    /// Extras of the few links that have any, by [`Link::special`].
    pub(super) specials: Vec<Special>,
    /// Whether each link works, as its own switch sees it at once.
    pub(super) local_up: Vec<bool>,
    /// Whether the scheme of any switch looks at queues, or the oracle does.
    pub(super) are_looked_at: bool,
    /// Whether one tells the packet in service from those that wait.
    pub(super) needs_waiting_bytes: bool,
    /// Whether a choice is more than a call of a scheme that finds one queue at each port: it may
    /// find several classes, or the oracle chooses.
    pub(super) chooses_apart: bool,
}

/// Everything but the endpoints.
pub struct Network<'a> {
    /// The time now.
    pub now: Time,
    /// Pending events.
    pub events: EventSet,
    /// The state of all ports.
    pub state: PortStates,
    /// Whether credits have queues of their own.
    pub(super) has_credits: bool,
    pub(super) drops: Vec<LinkDrops>,
    pub(super) pool: Pool,
    pub(super) topology: &'a Topology,
    /// Which part of it this is.
    pub(super) map: PartitionMap<'a>,
    /// The tables in force of the switches that are here.
    pub(super) routes: Routes,
    /// Tables of all switches.
    pub(super) tables: Arc<Tables>,
    /// The scheme at each switch.
    pub schemes: Vec<AnySwitchScheme>,
    pub(super) hooks: SwitchHooks,
    /// Hooks of schemes where packets stop for another reason, too: then `hooks` asks for all that
    /// arrive.
    pub(super) scheme_hooks: SwitchHooks,
    /// Where packets wait for switches that are programs.
    pub(super) inputs: Option<Box<SoftwareSwitches>>,
    /// The shared buffers of switches whose ports share one.
    pub(super) shared_buffers: Option<Box<SharedBuffers>>,
    /// The cards and CPUs of hosts, if they take time.
    pub host_cpus: Option<Box<HostCpus>>,
    /// Whether switches answer when a hop limit expires.
    pub(super) traces: bool,
    /// The tables of the switches that are here that explicit routes go by, if they mean the same
    /// paths throughout the run.
    pinned: Option<Routes>,
    /// Ports of switches whose queued packets the scheme, the observer or the tracer wants to see.
    pub(super) watched_ports: Ports,
    /// Watches the queues of switches' ports, if asked for.
    pub(super) observer: Option<Observer>,
    /// Notes what some links send, if asked for.
    pub(super) capture: Option<Capture>,
    /// Watches the packets of some flows, if asked for.
    pub(super) tracer: Option<Tracer>,
    /// Notes why packets of a flow go where they go, if asked for: then `state.chooses_apart`.
    pub(super) follow: Option<Box<Follow>>,
    pub(super) streams: Vec<Stream>,
    /// Chooses in place of schemes, if it is there.
    pub(super) oracle: Option<Box<Oracle>>,
    /// Where schemes leave what they want done.
    pub(super) actions: SwitchActions,
    /// Packets that schemes hold back.
    pub(super) hold_queues: HoldQueues,
    /// Whether faults change each link's condition during the run.
    pub(super) changes: Vec<bool>,
    /// From when on links send at other rates.
    pub(super) rate_changes: Vec<RateChange>,
    pub(super) peaks: Peaks,
    pub(super) seed: u64,
    /// The largest packet.
    pub(super) max_wire_bytes: u16,
    /// How packets go to other parts; none if this is all of the fabric.
    pub(super) exchange: Option<Exchange>,
    /// Where packets were lost, why and when, if asked for.
    pub(super) losses: Option<Box<Losses>>,
    /// The data packets that were dropped, by time.
    pub dropped: Vec<Dropped>,
    /// See [`Packet::note_choice`].
    pub(super) trail_base: u32,
    /// Packets in the whole fabric.
    pub counts: PacketCounts,
}

impl Network<'_> {
    /// Memory of one link: its state, its drops, whether it works and whether that changes.
    pub const BYTES_PER_LINK: usize = size_of::<Link>() + size_of::<LinkDrops>() + 2 * size_of::<bool>();

    /// Puts a packet into its host's output queue. Inlined by force, so that the packet is built
    /// where it is kept and not copied there.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn send(&mut self, packet: Packet) {
        self.counts.sent += 1;
        let link = self.map.cable(packet.src);
        let index = self.pool.insert(packet);
        self.enqueue::<false>(link, index);
    }

    /// Sends a packet when the host's CPU has worked on it, if that takes time.
    pub fn send_apart(&mut self, packet: Packet) {
        self.counts.sent += 1;
        let link = self.map.cable(packet.src);
        let index = self.pool.insert(packet);
        self.leave_host(link, index);
    }

    /// Sends a packet with an option word that travels with it.
    pub fn send_with_option(&mut self, packet: Packet, option: u32) {
        self.counts.sent += 1;
        let link = self.map.cable(packet.src);
        let index = self.pool.insert(packet);
        self.pool.set_option(index, option);
        self.leave_host(link, index);
    }

    /// Sends a packet with the bytes that it stands for.
    pub fn send_frame(&mut self, packet: Packet, frame: Frame) {
        self.counts.sent += 1;
        let link = self.map.cable(packet.src);
        let index = self.pool.insert(packet);
        self.pool.set_frame(index, frame);
        self.enqueue::<false>(link, index);
    }

    /// The packet at the head of `link` reaches the far end, if it is the link's turn. Inlined by
    /// force: as a call it takes 8 % more instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn arrive(&mut self, link: u32) -> ArrivalOutcome {
        let Some(state) = self.state.links.get_mut(link as usize) else { return ArrivalOutcome::NoLink };
        if state.wheel_next != event_set::NONE {
            return ArrivalOutcome::NotAlone;
        }
        debug_assert!(state.head_arrive >= self.now.as_ps(), "time goes on");
        self.now = Time::from_ps(state.head_arrive);
        self.counts.hops += 1;
        // The packet that arrives first is taken off.
        let (index, at) = (state.head, state.far_end());
        if state.tail == index {
            state.head = NO_PACKET;
            state.tail = NO_PACKET;
            if state.port == PortKind::Waiting {
                self.send_late(link);
            }
        } else {
            let next = self.pool[index].next;
            let behind = &self.pool[next];
            state.head = next;
            state.head_arrive = behind.arrive.as_ps();
            self.pool.warm(behind.next);
            self.events.push_link(state, link);
        }
        if at.switch == FarEnd::HOST {
            return ArrivalOutcome::AtHost(index);
        }
        if !self.wants_arrival(index) || !self.wants_arrival_by(link) || self.enters_by(link, index) {
            self.forward(at, index);
        }
        ArrivalOutcome::Gone
    }

    /// Whether packets that arrive at a switch by this link may be shown around there.
    #[inline]
    fn wants_arrival_by(&self, link: u32) -> bool {
        self.hooks.on_arrival_by == Ports::All || self.state.links[link as usize].tier != Tier::Host as u8
    }

    /// Whether a packet that arrives at a switch, from another one at least, is shown around there.
    #[inline]
    pub(super) fn wants_arrival(&self, index: PacketIndex) -> bool {
        !self.hooks.on_arrival.is_empty() && self.hooks.on_arrival.has(self.pool[index].kind)
    }

    /// A packet ends at the node that it was for.
    #[inline]
    pub fn consume(&mut self, index: PacketIndex) -> Packet {
        self.counts.delivered += 1;
        self.pool.remove(index)
    }

    /// A packet is at a switch: to the next link, or nowhere. Inlined by force, as [`Self::arrive`]
    /// is.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn forward(&mut self, at: FarEnd, index: PacketIndex) {
        let packet = &self.pool[index];
        let rack = self.topology.rack_of_host[packet.dst.index()];
        let link = match self.way(at, rack, packet) {
            NextHop::Only(link) => link,
            NextHop::Several(group) => at.first_link + u32::from(self.next_hop(at, group, rack, index).0),
            NextHop::Pinned => match self.pinned_link(at, rack, index) {
                Some(link) => link,
                None => return self.drop_unroutable(at, index),
            },
            NextHop::None => return self.drop_unroutable(at, index),
        };
        self.enqueue::<true>(link, index);
    }

    /// Where the tables of a switch lead a packet that is for this rack.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn way(&self, at: FarEnd, rack: u16, packet: &Packet) -> NextHop {
        if rack == at.rack {
            return NextHop::Only(self.map.last_hop(packet.dst));
        }
        if packet.route != Route::ANY && self.pinned.is_some() {
            return NextHop::Pinned;
        }
        match self.routes.entry(at.switch as usize, rack as usize) {
            RouteEntry::Port(port) => NextHop::Only(at.first_link + u32::from(port.0)),
            RouteEntry::Group(group) => NextHop::Several(group),
            RouteEntry::None => NextHop::None,
        }
    }

    /// The link that a packet's explicit route takes out of a switch by the pinned tables, or
    /// `None` if they know none.
    #[cold]
    fn pinned_link(&mut self, at: FarEnd, rack: u16, index: PacketIndex) -> Option<u32> {
        let tables = self.pinned.as_ref()?;
        let port = match tables.entry(at.switch as usize, rack as usize) {
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
        Some(at.first_link + u32::from(port.0))
    }

    /// The tables that explicit routes go by.
    pub fn explicit_routes(&self) -> &Routes {
        self.tables.explicit()
    }

    /// Puts a packet into its host's output queue.
    pub(super) fn put_into_queue(&mut self, link: u32, index: PacketIndex) {
        self.enqueue::<false>(link, index);
    }

    /// Queues a packet of a scheme on a link.
    #[cold]
    pub(super) fn send_control(&mut self, link: u32, packet: Packet) {
        self.counts.sent += 1;
        let index = self.pool.insert(packet);
        let before = self.comes_from(Origin::HERE);
        self.enqueue::<false>(link, index);
        self.comes_from(before);
    }

    /// Queues a packet on a link, or drops it. `SHOWN` says whether it is one that switches show
    /// around: see [`Self::notify_enqueued`]. Inlined by force: as a call it takes 5 % more
    /// instructions a hop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn enqueue<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let state = &mut self.state.links[link as usize];
        if state.port != PortKind::Plain {
            return if SHOWN && state.port == PortKind::Leaving {
                self.enqueue_leaving::<SHOWN>(link, index);
            } else {
                self.enqueue_elsewhere::<SHOWN>(link, index);
            };
        }
        let (packet, profile) = (&mut self.pool[index], &self.state.profiles[state.profile]);
        let taken = take(now, link, state, packet, profile, &mut self.drops, &mut self.counts);
        let Some((backlog, arrive)) = taken else { return self.refuse(link, index) };
        let tier = state.tier;
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
        if SHOWN && self.watches(tier) {
            self.notify_enqueued(link, index, backlog);
        }
    }

    /// Queues a packet at a port that is more than one queue that its profile describes.
    #[inline(never)]
    fn enqueue_elsewhere<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        let kind = self.state.links[link as usize].port;
        if kind >= PortKind::Scheduled {
            self.offer(link, index);
        } else if kind == PortKind::Leaving {
            self.enqueue_leaving::<SHOWN>(link, index);
        } else {
            self.enqueue_special::<SHOWN>(link, index);
        }
    }

    /// Queues a packet at a port with one queue that has rules of its own, or is captured.
    #[inline(never)]
    fn enqueue_special<const SHOWN: bool>(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let state = &mut self.state.links[link as usize];
        let profile = &self.state.profiles[state.profile];
        // A link that is captured may have no rules of its own.
        let mut special = self.state.specials.get_mut(state.special as usize);
        let packet = &mut self.pool[index];
        let service = profile.service_ps(packet.wire_bytes);
        let backlog = state.backlog_ps(now);
        let verdict = match profile.thresholds.judge(backlog, service) {
            Verdict::Drop => Verdict::Drop,
            by_bytes => special.as_mut().map_or(by_bytes, |special| {
                by_bytes.max(special.judge(packet, now, || profile.bytes_in(backlog)))
            }),
        };
        match verdict {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => {
                self.drops[link as usize].marked += u64::from(mark(packet));
            }
            Verdict::Take => {}
        }
        let arrives = special.as_mut().is_none_or(|special| !special.vanishes(packet));
        let depart_ps = now + backlog + service;
        if let Some(special) = special {
            special
                .push(Queued { since_ps: now, depart_ps, wire_bytes: packet.wire_bytes, arrives }, profile);
        }
        book(state, packet, &mut self.counts, backlog);
        if let Some(capture) = &mut self.capture {
            capture.note(link, Time::from_ps(now + backlog), index, &self.pool);
        }
        let tier = state.tier;
        state.busy_until = depart_ps;
        let arrive = depart_ps + profile.delay_ps;
        if SHOWN && self.watches(tier) {
            self.notify_enqueued(link, index, backlog);
        }
        self.note_passing(link, index);
        if arrives {
            self.put_on_wire(link, index, arrive);
        } else {
            self.lose_on_wire(link, index);
        }
    }
}

/// Puts a packet into the queue of a link that its profile describes. Returns how much it finds
/// there, and when it arrives, both in ps; none if it is dropped.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn take(
    now: u64,
    link: u32,
    state: &mut Link,
    packet: &mut Packet,
    profile: &Profile,
    drops: &mut [LinkDrops],
    counts: &mut PacketCounts,
) -> Option<(u64, u64)> {
    debug_assert!(!profile.has_least_service(), "such a port is special");
    let service = profile.wire_ps(packet.wire_bytes);
    let backlog = state.backlog_ps(now);
    match profile.thresholds.judge(backlog, service) {
        Verdict::Drop => return None,
        Verdict::Mark => {
            drops[link as usize].marked += u64::from(mark(packet));
        }
        Verdict::Take => {}
    }
    book(state, packet, counts, backlog);
    state.busy_until = now + backlog + service;
    Some((backlog, state.busy_until + profile.delay_ps))
}

/// Counts a packet that a port with one queue took, behind a backlog of `backlog_ps`.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn book(state: &mut Link, packet: &mut Packet, counts: &mut PacketCounts, backlog_ps: u64) {
    if packet.kind == Kind::Data {
        packet.add_wait_ps(state.tier as usize, backlog_ps);
    } else if packet.kind.is_of_scheme() {
        counts.control_bytes += u64::from(packet.wire_bytes);
    }
    state.bytes += u64::from(packet.wire_bytes);
    state.packets += 1;
}

/// Gives a packet a congestion mark, if it can carry one and has none. Returns whether it did.
#[cold]
pub(super) fn mark(packet: &mut Packet) -> bool {
    let is_new = packet.flags.has(PacketFlags::ECT) && !packet.flags.has(PacketFlags::CE);
    if is_new {
        packet.flags.set(PacketFlags::CE);
    }
    is_new
}
