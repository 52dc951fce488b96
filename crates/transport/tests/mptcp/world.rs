//! A world of connections over paths that lose and delay data packets; acknowledgements come back
//! as they are.

use std::collections::BTreeMap;

use weft_packet::{Kind, Packet};
use weft_transport::{ArrivedPacket, Delivery, FlowSize, Multipath, Outbox, Outgoing, Ports, SenderState};
use weft_units::{PicosPerByte, Purpose, Rate, Span, Stream, Time};

/// One way.
pub const LATENCY: Span = Span::from_us(50);

/// Fate of a data packet or a SYN on its subflow's path: lost, or late by so much.
pub type Path<'a> = Box<dyn FnMut(Time, u8, &mut Stream) -> Option<Span> + 'a>;

/// A packet as it was sent: when, over which subflow, and which segment of the flow it carries.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Time,
    pub subflow: u8,
    pub segment: u32,
    pub packet: Packet,
}

/// A call of an end, by one of its ports.
struct Call<'a> {
    now: Time,
    ports: u8,
    port: u8,
    sent: &'a mut Vec<(u8, u32, Outgoing)>,
    timer: &'a mut Time,
    random: &'a mut Stream,
}

impl Outbox for Call<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn send(&mut self, packet: Outgoing) {
        self.sent.push((self.port, packet.seq, packet));
    }
    fn wake_at(&mut self, at: Time) {
        *self.timer = at;
    }
    fn link_pace(&self) -> PicosPerByte {
        Rate::from_gbps(10).ps_per_byte()
    }
    fn free_at(&self) -> Time {
        self.now()
    }
    fn random(&mut self) -> &mut Stream {
        self.random
    }
}

impl Ports for Call<'_> {
    fn ports(&self) -> u8 {
        self.ports
    }
    fn by(&mut self, port: u8) -> impl Outbox {
        Call { port, sent: self.sent, timer: self.timer, random: self.random, ..*self }
    }
    fn send_mapped(&mut self, port: u8, segment: u32, packet: Outgoing) {
        self.sent.push((port, segment, packet));
    }
}

pub struct World<'a, P: Multipath> {
    protocol: &'a P,
    path: Path<'a>,
    weather: Stream,
    random: Stream,
    now: Time,
    flying: BTreeMap<(Time, u64), Sent>,
    timers: [Time; 2],
    pub sender: P::Sender,
    pub receiver: P::Receiver,
    pub log: Vec<Sent>,
    /// How often the receiver said that it has everything, and whether the sender is done.
    pub completed: u32,
    pub done: bool,
}

impl<'a, P: Multipath> World<'a, P> {
    pub fn new(protocol: &'a P, size: FlowSize, seed: u64, path: Path<'a>) -> Self {
        Self {
            protocol,
            path,
            weather: Stream::new(seed, Purpose::Loss, 0),
            random: Stream::new(seed, Purpose::Transport, 0),
            now: Time::ZERO,
            flying: BTreeMap::new(),
            timers: [Time::NEVER; 2],
            sender: protocol.sender(size),
            receiver: protocol.receiver(size),
            log: Vec::new(),
            completed: 0,
            done: false,
        }
    }

    /// Runs until the sender is done, nothing is left to happen, or `end`.
    pub fn run_until(mut self, end: Time) -> Self {
        self.start();
        while !self.done && self.next_at() < end {
            self.step();
        }
        self
    }

    /// Starts the flow.
    pub fn start(&mut self) {
        self.call(true, |world, out| {
            world.protocol.start(&mut world.sender, out);
        });
    }

    /// When something happens next.
    pub fn next_at(&self) -> Time {
        self.next_packet_at().min(self.timers[0]).min(self.timers[1])
    }

    fn next_packet_at(&self) -> Time {
        self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }

    /// Lets it happen.
    pub fn step(&mut self) {
        self.now = self.next_at();
        if self.next_packet_at() == self.now {
            if let Some((_, sent)) = self.flying.pop_first() {
                self.deliver(sent);
            }
            return;
        }
        let to_sender = self.timers[0] == self.now;
        self.timers[usize::from(!to_sender)] = Time::NEVER;
        self.call(to_sender, |world, out| {
            if to_sender {
                world.protocol.sender_wakes(&mut world.sender, out);
            } else {
                let delivery = world.protocol.receiver_wakes(&mut world.receiver, out);
                world.completed += u32::from(delivery == Delivery::Complete);
            }
        });
    }

    fn deliver(&mut self, sent: Sent) {
        let to_sender = matches!(sent.packet.kind, Kind::Ack | Kind::SynAck);
        let arrived = ArrivedPacket { packet: &sent.packet, port: sent.subflow, segment: sent.segment };
        self.call(to_sender, |world, out| {
            if to_sender {
                let state = world.protocol.sender_receives(&mut world.sender, arrived, out);
                world.done |= state == SenderState::Done;
            } else {
                let delivery = world.protocol.receiver_receives(&mut world.receiver, arrived, out);
                world.completed += u32::from(delivery == Delivery::Complete);
            }
        });
    }

    fn call(&mut self, sender: bool, act: impl FnOnce(&mut Self, &mut Call)) {
        let mut timer = self.timers[usize::from(!sender)];
        let mut random = self.random.clone();
        let mut sent = Vec::new();
        let (ports, timer_of, stream) = (self.protocol.five_tuples().subflows(), &mut timer, &mut random);
        let mut call =
            Call { now: self.now, ports, port: 0, sent: &mut sent, timer: timer_of, random: stream };
        act(self, &mut call);
        self.timers[usize::from(!sender)] = timer;
        self.random = random;
        for (subflow, segment, outgoing) in sent {
            let Outgoing { kind, flags, seq, wire_bytes, sent, sack } = outgoing;
            let mut packet = Packet::default();
            (packet.kind, packet.flags, packet.seq) = (kind, flags, seq);
            (packet.wire_bytes, packet.sent) = (wire_bytes, sent);
            if kind == Kind::Ack {
                packet.set_sack_blocks(sack);
            }
            let record = Sent { at: self.now, subflow, segment, packet };
            self.log.push(record);
            let late = match kind {
                Kind::Data | Kind::Syn => (self.path)(self.now, subflow, &mut self.weather),
                _ => Some(Span::ZERO),
            };
            if let Some(late) = late {
                let order = self.log.len() as u64;
                self.flying.insert((self.now + LATENCY + late, order), record);
            }
        }
    }

    /// Data packets, as they were sent.
    pub fn data(&self) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(|sent| sent.packet.kind == Kind::Data)
    }
}
