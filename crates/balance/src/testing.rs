//! A small world for tests: one switch or one host, whose clock, queues and timers the test sets.

use weft_packet::{HostId, Kind, Packet};
use weft_units::{Bytes, Purpose, Rate, Span, Stream, Time};

use crate::{EdgeContext, HostInfo, Message, NextHops, Peer, PortId, SwitchContext, SwitchInfo};

/// Hosts in a rack of the test world: hosts 0 to 15 are rack 0, and so on.
pub const HOSTS_PER_RACK: u16 = 16;
/// Racks in the test world.
pub const RACKS: u16 = 8;
/// Bytes of headers in each packet of the test world.
pub const HEADER_BYTES: u16 = 40;

/// A switch whose ports do what the test says.
#[derive(Debug, Clone)]
pub struct FakeSwitch {
    pub now: Time,
    pub backlogs: Vec<u64>,
    pub rates: Vec<Rate>,
    pub sent: Vec<u64>,
    pub up: Vec<bool>,
    pub delays: Vec<Span>,
    pub buffers: Vec<Option<Bytes>>,
    pub peers: Vec<Peer>,
    /// The rack that hangs at the switch.
    pub rack: Option<u16>,
    /// What the scheme sent, and by which port.
    pub outbox: Vec<(PortId, Packet)>,
    /// The timers that the scheme asked for: when they are due, and their tokens.
    pub timers: Vec<(Time, u32)>,
    stream: Stream,
}

impl FakeSwitch {
    /// The edge switch of rack 0 with this many idle ports of 10 Gbit/s, 1 us and 375 KB to as many switches of tier 1.
    pub fn new(ports: usize, seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            backlogs: vec![0; ports],
            rates: vec![Rate::from_gbps(10); ports],
            sent: vec![0; ports],
            up: vec![true; ports],
            delays: vec![Span::from_us(1); ports],
            buffers: vec![Some(Bytes::from_kb(375)); ports],
            peers: (0..ports as u32).map(|port| Peer::Switch { switch: 100 + port, tier: 1 }).collect(),
            rack: Some(0),
            outbox: Vec::new(),
            timers: Vec::new(),
            stream: Stream::new(seed, Purpose::SwitchBalancer, 0),
        }
    }

    /// What a scheme is told of this switch, as number `switch` in `tier`.
    pub fn info(&self, switch: u32, tier: u8, seed: u64) -> SwitchInfo<'_> {
        SwitchInfo {
            switch,
            tier,
            seed,
            port_rates: &self.rates,
            port_delays: &self.delays,
            port_buffers: &self.buffers,
            port_peers: &self.peers,
            rack: self.rack,
            racks: RACKS,
        }
    }
}

impl SwitchContext for FakeSwitch {
    fn now(&self) -> Time {
        self.now
    }

    fn drain_time(&self, port: PortId) -> Span {
        self.rates[port.index()].service(Bytes::new(self.backlogs[port.index()]))
    }

    fn backlog_bytes(&self, port: PortId) -> u64 {
        self.backlogs[port.index()]
    }

    fn rate(&self, port: PortId) -> Rate {
        self.rates[port.index()]
    }

    fn bytes_sent(&self, port: PortId) -> u64 {
        self.sent[port.index()]
    }

    fn is_up(&self, port: PortId) -> bool {
        self.up[port.index()]
    }

    fn rack_of(&self, host: HostId) -> u16 {
        host.0 / HOSTS_PER_RACK
    }

    fn random(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn send(&mut self, port: PortId, packet: Packet) {
        self.outbox.push((port, packet));
    }

    fn set_timer(&mut self, delay: Span, token: u32) {
        self.timers.push((self.now + delay, token));
    }
}

/// A group of next hops that owns its arrays.
#[derive(Debug, Clone)]
pub struct Group {
    pub ports: Vec<PortId>,
    pub weights: Vec<u32>,
    pub rack: u16,
}

impl Group {
    /// These ports, with 10 Gbit/s behind each, towards rack 1.
    pub fn of(ports: impl IntoIterator<Item = u16>) -> Self {
        let ports: Vec<_> = ports.into_iter().map(PortId).collect();
        Self { weights: vec![10_000; ports.len()], ports, rack: 1 }
    }

    /// Ports 0 and up, one for each weight.
    pub fn weighted(weights: &[u32]) -> Self {
        let ports = (0..weights.len() as u16).map(PortId).collect();
        Self { ports, weights: weights.to_vec(), rack: 1 }
    }

    /// The group as a scheme sees it.
    pub fn hops(&self) -> NextHops<'_> {
        NextHops { ports: &self.ports, weights: &self.weights, rack: self.rack }
    }
}

/// A host that records what it is given.
#[derive(Debug, Clone)]
pub struct FakeHost {
    pub now: Time,
    /// Routes to every host of another rack.
    pub routes: u16,
    pub delivered: Vec<Packet>,
    pub timer: Option<Time>,
    /// What the scheme sent to other hosts.
    pub messages: Vec<Message>,
    /// The host's timers that the scheme asked for: when they are due, and their tokens.
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
            delivered: Vec::new(),
            timer: None,
            messages: Vec::new(),
            host_timers: Vec::new(),
            rack: 0,
            stream: Stream::new(seed, Purpose::EdgeBalancer, 0),
        }
    }

    /// What a scheme is told of this host: 10 Gbit/s, 16 routes and 40 us to every other rack.
    pub fn info(seed: u64) -> HostInfo<'static> {
        Self::info_of(HostId(0), seed)
    }

    /// What a scheme is told of a host of rack 0.
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
}

impl EdgeContext for FakeHost {
    fn now(&self) -> Time {
        self.now
    }

    fn rack_of(&self, host: HostId) -> u16 {
        host.0 / HOSTS_PER_RACK
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

/// A data packet from host 0 to host 16 (rack 1), full size.
pub fn packet(entropy: u32) -> Packet {
    with(Packet::default(), |packet| {
        packet.entropy = entropy;
        packet.dst = HostId(HOSTS_PER_RACK);
        packet.wire_bytes = 1_500;
        packet.kind = Kind::Data;
    })
}

/// A packet after a change.
pub fn with(mut packet: Packet, change: impl FnOnce(&mut Packet)) -> Packet {
    change(&mut packet);
    packet
}

/// Pearson's chi-square of counts against shares that are proportional to `weights`.
pub fn chi_square(counts: &[u64], weights: &[u32]) -> f64 {
    let (total, weight) = (counts.iter().sum::<u64>() as f64, weights.iter().sum::<u32>());
    let cell = |(&count, &share): (&u64, &u32)| {
        let expected = total * f64::from(share) / f64::from(weight);
        (count as f64 - expected).powi(2) / expected
    };
    counts.iter().zip(weights).map(cell).sum()
}

/// The 0.1 % point of chi-square with 7 degrees of freedom: eight equally likely ports.
pub const CHI_SQUARE_7: f64 = 24.32;
/// The 0.1 % point of chi-square with 3 degrees of freedom.
pub const CHI_SQUARE_3: f64 = 16.27;
