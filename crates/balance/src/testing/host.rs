//! The host of the test world.

use weft_packet::{HostId, Packet};
use weft_units::{Purpose, Rate, Span, Stream, Time};

use super::{HEADER_BYTES, HOSTS_PER_RACK, RACKS, take_earliest};
use crate::{HostContext, HostInfo, Message};

/// A host that records what it is given.
///
/// ```
/// use weft_balance::testing::{FakeHost, packet};
/// use weft_balance::{HostScheme, HostContext, HostHooks, HostInfo};
/// use weft_packet::{Packet, Route};
///
/// /// The packets of a flow take all routes in turn.
/// struct InTurn;
///
/// impl HostScheme for InTurn {
///     type Params = ();
///     type Flow = u16;
///
///     fn new(_: &(), _: &HostInfo<'_>) -> Self {
///         Self
///     }
///
///     fn hooks(_: &()) -> HostHooks {
///         HostHooks { on_send: true, ..HostHooks::default() }
///     }
///
///     fn on_send<C>(&mut self, cx: &mut C, next: &mut u16, packet: &mut Packet)
///     where
///         C: HostContext + ?Sized,
///     {
///         packet.route = Route::label(*next);
///         *next = (*next + 1) % cx.routes_to(packet.dst);
///     }
///
///     fn state_bytes(&self) -> u64 {
///         0
///     }
/// }
///
/// let (mut host, mut flow) = (FakeHost::new(3, 1), 0);
/// let mut scheme = InTurn::new(&(), &FakeHost::info(1));
/// let routes = [(); 4].map(|()| {
///     let mut sent = packet(1);
///     scheme.on_send(&mut host, &mut flow, &mut sent);
///     sent.route
/// });
/// assert_eq!(routes, [0, 1, 2, 0].map(Route::label));
/// ```
#[derive(Debug, Clone)]
pub struct FakeHost {
    /// The time that the scheme sees.
    pub now: Time,
    /// Routes to every host of another rack; at least 1.
    pub routes: u16,
    /// How long a packet that is sent now waits in the host's own queue.
    pub own_wait: Span,
    /// Packets that the scheme handed to the transport, in this order.
    pub delivered: Vec<Packet>,
    /// When the flow's timer is due, if it is set: [`FakeHost::advance_to_timer`] takes it.
    pub timer: Option<Time>,
    /// Messages that the scheme sent to other hosts.
    pub messages: Vec<Message>,
    /// The host's timers that the scheme asked for: when they are due, and their tokens.
    /// [`FakeHost::next_host_timer`] takes one.
    pub host_timers: Vec<(Time, u32)>,
    rack: u16,
    stream: Stream,
}

impl FakeHost {
    /// Host 0, with this many routes to other racks.
    pub fn new(routes: u16, seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            routes,
            own_wait: Span::ZERO,
            delivered: Vec::new(),
            timer: None,
            messages: Vec::new(),
            host_timers: Vec::new(),
            rack: 0,
            stream: Stream::new(seed, Purpose::HostScheme, 0),
        }
    }

    /// Configuration of a scheme at this host: 10 Gbit/s, 16 routes and 40 us to every other rack.
    pub fn info(seed: u64) -> HostInfo<'static> {
        Self::info_of(HostId(0), seed)
    }

    /// Configuration of a scheme at a host of rack 0.
    pub fn info_of(host: HostId, seed: u64) -> HostInfo<'static> {
        const RACK: [HostId; HOSTS_PER_RACK as usize] = hosts(1);
        const FIRST: [HostId; RACKS as usize] = hosts(HOSTS_PER_RACK);
        const ROUTES: [u16; RACKS as usize] = [1, 16, 16, 16, 16, 16, 16, 16];
        const RTTS: [Span; RACKS as usize] = {
            let mut rtts = [Span::from_us(40); RACKS as usize];
            rtts[0] = Span::from_us(20);
            rtts
        };
        HostInfo {
            host,
            rack: 0,
            racks: RACKS,
            rack_hosts: &RACK,
            first_hosts: &FIRST,
            rate: Rate::from_gbps(10),
            routes: &ROUTES,
            base_rtts: &RTTS,
            seed,
        }
    }

    /// The segment numbers delivered so far, in order of delivery.
    pub fn delivered_seqs(&self) -> Vec<u32> {
        self.delivered.iter().map(|packet| packet.seq).collect()
    }

    /// Moves the clock to the armed timer, which goes off; false if none is armed.
    pub fn advance_to_timer(&mut self) -> bool {
        self.timer.take().inspect(|&at| self.now = self.now.max(at)).is_some()
    }

    /// Moves the clock to the earliest timer of the host, which is over then, and returns its
    /// token: what [`HostScheme::host_timer`](crate::HostScheme::host_timer) is to be called with.
    /// `None` if there is none.
    pub fn next_host_timer(&mut self) -> Option<u32> {
        take_earliest(&mut self.now, &mut self.host_timers)
    }
}

impl HostContext for FakeHost {
    fn now(&self) -> Time {
        self.now
    }

    fn rack_of(&self, host: HostId) -> u16 {
        host.0 / HOSTS_PER_RACK
    }

    fn own_wait(&self) -> Span {
        self.own_wait
    }

    fn routes_to_rack(&self, rack: u16) -> u16 {
        if rack == self.rack { 1 } else { self.routes }
    }

    fn hosts(&self) -> u32 {
        u32::from(RACKS * HOSTS_PER_RACK)
    }

    fn routes_between(&self, from: u16, to: u16) -> u16 {
        if from == to { 1 } else { self.routes }
    }

    /// As in a leaf-spine: one link up and one down, by spine, all of 10 Gbit/s.
    fn path(&self, from: u16, to: u16, label: u16) -> Vec<(u32, Rate)> {
        let (from, to, spine) = (u32::from(from), u32::from(to), u32::from(label));
        if from == to {
            return Vec::new();
        }
        [from * 100 + spine, 10_000 + to * 100 + spine].map(|link| (link, Rate::from_gbps(10))).to_vec()
    }

    fn header_bytes(&self) -> u16 {
        HEADER_BYTES
    }

    fn random(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn deliver(&mut self, packet: Packet) {
        self.delivered.push(packet);
    }

    fn set_flow_timer(&mut self, delay: Span) {
        self.timer = Some(self.now + delay);
    }

    fn send(&mut self, message: Message) {
        self.messages.push(message);
    }

    fn set_host_timer(&mut self, delay: Span, token: u32) {
        self.host_timers.push((self.now + delay, token));
    }
}

/// Every `step`-th host from 0 on.
const fn hosts<const N: usize>(step: u16) -> [HostId; N] {
    let mut hosts = [HostId(0); N];
    let mut index = 0;
    while index < N {
        hosts[index] = HostId(index as u16 * step);
        index += 1;
    }
    hosts
}
