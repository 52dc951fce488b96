//! The switch of the test world.

use std::collections::BTreeMap;

use weft_packet::{Class, HostId, Packet};
use weft_units::{Bytes, Purpose, Rate, Span, Stream, Time};

use super::{HOSTS_PER_RACK, RACKS, take_earliest};
use crate::{Arrival, NextHops, Peer, PortId, Queued, SwitchContext, SwitchInfo};

/// A switch whose ports do what the test says. Nothing moves by itself: not the clock, no queue, no
/// timer.
#[derive(Debug, Clone)]
pub struct FakeSwitch {
    /// The time that the scheme sees.
    pub now: Time,
    /// Bytes queued on each port, what is left of the packet in service included.
    pub backlogs: Vec<u64>,
    /// Bytes left of the packet in service on each port; no more than `backlogs` has.
    pub in_service: Vec<u64>,
    /// Bytes that each port would send before a packet of a class, if its ports have several
    /// classes; a class that is not here finds `backlogs`.
    pub ahead: BTreeMap<Class, Vec<u64>>,
    /// The rate of each port; not zero.
    pub rates: Vec<Rate>,
    /// Bytes that each port was given to send so far.
    pub sent: Vec<u64>,
    /// Whether each port's cable works.
    pub up: Vec<bool>,
    /// The propagation delay of each port's cable.
    pub delays: Vec<Span>,
    /// Limit of each port's queue, or `None` if it has no limit.
    pub buffers: Vec<Option<Bytes>>,
    /// Node at the far end of each port's cable.
    pub peers: Vec<Peer>,
    /// The time to each rack and back, for a scheme whose parameters ask: 40 us, and 20 us within
    /// the own rack.
    pub base_rtts: Vec<Span>,
    /// The rack that hangs at the switch, or `None` if it is no edge switch.
    pub rack: Option<u16>,
    /// Packets that the scheme sent, and their ports.
    pub outbox: Vec<(PortId, Packet)>,
    /// The timers that the scheme asked for: when they are due, and their tokens.
    /// [`FakeSwitch::next_timer`] takes one.
    pub timers: Vec<(Time, u32)>,
    /// The packets that are held back, by queue: [`FakeSwitch::settle`] puts them there.
    pub held: BTreeMap<u32, Vec<Packet>>,
    /// The packets that went on, in this order: [`FakeSwitch::settle`] puts them there.
    pub gone: Vec<Packet>,
    /// The queues that the scheme released: [`FakeSwitch::settle`] empties them.
    pub releases: Vec<u32>,
    stream: Stream,
}

impl FakeSwitch {
    /// The edge switch of rack 0 with this many idle ports of 10 Gbit/s, 1 us and 375 KB to as many
    /// switches of tier 1.
    pub fn new(ports: usize, seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            backlogs: vec![0; ports],
            in_service: vec![0; ports],
            ahead: BTreeMap::new(),
            rates: vec![Rate::from_gbps(10); ports],
            sent: vec![0; ports],
            up: vec![true; ports],
            delays: vec![Span::from_us(1); ports],
            buffers: vec![Some(Bytes::from_kb(375)); ports],
            peers: (0..ports as u32).map(|port| Peer::Switch { switch: 100 + port, tier: 1 }).collect(),
            base_rtts: (0..RACKS).map(|rack| Span::from_us(if rack == 0 { 20 } else { 40 })).collect(),
            rack: Some(0),
            outbox: Vec::new(),
            timers: Vec::new(),
            held: BTreeMap::new(),
            gone: Vec::new(),
            releases: Vec::new(),
            stream: Stream::new(seed, Purpose::SwitchScheme, 0),
        }
    }

    /// Configuration of a scheme at this switch, as number `switch` in `tier`.
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
            base_rtts: if self.rack.is_some() { &self.base_rtts } else { &[] },
        }
    }

    /// Moves the clock to the earliest timer, which is over then, and returns its token: what
    /// [`SwitchScheme::on_timer`](crate::SwitchScheme::on_timer) is to be called with. `None` if
    /// there is none. Of timers that are due at once, the one that was asked for first.
    pub fn next_timer(&mut self) -> Option<u32> {
        take_earliest(&mut self.now, &mut self.timers)
    }

    /// Does what a switch does after a call: the packet at hand, if there is one, goes on, ends or
    /// is held, as the scheme said of it; then the queues that it released go on.
    pub fn settle(&mut self, at_hand: Option<(Arrival, Packet)>) {
        match at_hand {
            Some((Arrival::Forward | Arrival::Pass, packet)) => self.gone.push(packet),
            Some((Arrival::Hold(queue), packet)) => self.held.entry(queue).or_default().push(packet),
            Some((Arrival::Consume, _)) | None => {}
        }
        for queue in std::mem::take(&mut self.releases) {
            self.gone.extend(self.held.remove(&queue).unwrap_or_default());
        }
    }

    /// The queue of a port takes a packet behind its backlog, which stays as it is. Returns what
    /// [`SwitchScheme::on_enqueued`](crate::SwitchScheme::on_enqueued) is to be told of it.
    pub fn take(&mut self, port: PortId, packet: &Packet) -> Queued {
        let sent_before = self.sent[port.index()];
        self.sent[port.index()] += u64::from(packet.wire_bytes);
        let leaves = self.now + self.drain_time(port);
        Queued { port, leaves, found_bytes: self.backlogs[port.index()], sent_before }
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

    fn drain_time_for(&self, port: PortId, packet: &Packet) -> Span {
        self.rates[port.index()].service(Bytes::new(self.backlog_bytes_for(port, packet)))
    }

    fn backlog_bytes_for(&self, port: PortId, packet: &Packet) -> u64 {
        self.ahead.get(&packet.flags.class()).unwrap_or(&self.backlogs)[port.index()]
    }

    fn waiting_bytes_for(&self, port: PortId, packet: &Packet) -> u64 {
        self.backlog_bytes_for(port, packet).saturating_sub(self.in_service[port.index()])
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

    fn release(&mut self, queue: u32) {
        self.releases.push(queue);
    }

    fn held_bytes(&self) -> u64 {
        self.held.values().flatten().map(|packet| u64::from(packet.wire_bytes)).sum()
    }
}

/// A group of next hops that owns its arrays.
#[derive(Debug, Clone)]
pub struct Group {
    /// The ports, in ascending order; at least two.
    pub ports: Vec<PortId>,
    /// The capacity behind each, in Mbit/s; at least 1.
    pub weights: Vec<u32>,
    /// The rack that they lead to.
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
