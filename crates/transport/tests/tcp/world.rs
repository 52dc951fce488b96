//! A world of two endpoints and a path: its own clock, a fixed latency, and a fate for every
//! packet.

use std::collections::BTreeMap;

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::tcp::{DctcpConfig, Receiver, Sender, TcpConfig};
use weft_transport::{Delivery, FlowSize, Outbox, Outgoing, Protocol, SenderState, SinglePath, Tcp};
use weft_units::{PicosPerByte, Purpose, Rate, Span, Stream, Time};

/// One way.
pub const LATENCY: Span = Span::from_us(20);
pub const RTT: Span = Span::from_us(40);

/// Fate of a packet on the path.
#[derive(Clone, Copy, Default)]
pub struct Fate {
    pub dropped: bool,
    pub marked: bool,
    pub late_by: Span,
    pub copies: u32,
}

pub const PASS: Fate = Fate { dropped: false, marked: false, late_by: Span::ZERO, copies: 0 };
pub const DROP: Fate = Fate { dropped: true, ..PASS };

/// A packet as it was sent.
#[derive(Clone, Copy)]
pub struct Sent {
    pub at: Time,
    pub packet: Packet,
}

/// The sender after a call.
#[derive(Clone, Copy)]
pub struct Step {
    pub at: Time,
    /// Congestion window, in segments.
    pub cwnd: f64,
    /// Sent and not acknowledged, in segments.
    pub outstanding: u32,
    /// DCTCP's alpha.
    pub alpha: f64,
    /// Whether this call sent segments that were never sent before.
    pub sent_new: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Sender,
    Receiver,
}

/// Actions of an endpoint during one call.
struct Call<'a> {
    now: Time,
    /// Sent packets, and the time when each has left.
    sent: Vec<(Outgoing, Time)>,
    timer: &'a mut Time,
    random: &'a mut Stream,
    /// The pace of its cable, and when that is free.
    cable: &'a mut (Option<PicosPerByte>, Time),
}

impl Outbox for Call<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn send(&mut self, packet: Outgoing) {
        let service = self.cable.0.map_or(Span::ZERO, |pace| pace.service(packet.wire_bytes));
        self.cable.1 = self.free_at() + service;
        self.sent.push((packet, self.cable.1));
    }
    fn wake_at(&mut self, at: Time) {
        assert!(at > self.now, "a timer in the past");
        *self.timer = at;
    }
    fn link_pace(&self) -> PicosPerByte {
        Rate::from_gbps(10).ps_per_byte()
    }
    fn free_at(&self) -> Time {
        self.cable.1.max(self.now)
    }
    fn random(&mut self) -> &mut Stream {
        self.random
    }
}

/// Decides the fate of each packet; is told how many of the same kind and segment were sent before.
pub type Path<'a> = Box<dyn FnMut(&Packet, u32) -> Fate + 'a>;

pub struct World<'a> {
    tcp: &'a Tcp,
    path: Path<'a>,
    random: Stream,
    /// Cables of the sender and of the receiver.
    cables: [(Option<PicosPerByte>, Time); 2],
    now: Time,
    order: u64,
    flying: BTreeMap<(Time, u64), (End, Packet)>,
    times_sent: BTreeMap<(u8, u32), u32>,
    sender_timer: Time,
    receiver_timer: Time,
    pub sender: Sender,
    pub receiver: Receiver,
    pub log: Vec<Sent>,
    /// The sender after each call.
    pub trace: Vec<Step>,
    /// When the receiver had everything.
    pub completed: Vec<Time>,
    /// When the sender was done.
    pub done: Option<Time>,
}

impl<'a> World<'a> {
    pub fn new(tcp: &'a Tcp, size: FlowSize, path: impl FnMut(&Packet, u32) -> Fate + 'a) -> Self {
        Self {
            tcp,
            path: Box::new(path),
            random: Stream::new(1, Purpose::Transport, 0),
            cables: [(None, Time::ZERO); 2],
            now: Time::ZERO,
            order: 0,
            flying: BTreeMap::new(),
            times_sent: BTreeMap::new(),
            sender_timer: Time::NEVER,
            receiver_timer: Time::NEVER,
            sender: tcp.sender(size),
            receiver: tcp.receiver(size),
            log: Vec::new(),
            trace: Vec::new(),
            completed: Vec::new(),
            done: None,
        }
    }

    /// Packets leave the sender at this rate. Without it they leave at once.
    pub fn with_cable(mut self, rate: Rate) -> Self {
        self.cables[0].0 = Some(rate.ps_per_byte());
        self
    }

    /// Starts the flow and runs until nothing is left to happen, at most `steps` events.
    pub fn run(mut self, steps: u32) -> Self {
        self.begin();
        for _ in 0..steps {
            if !self.step() {
                return self;
            }
        }
        panic!("not over after {steps} events, at {} us", self.now.as_us());
    }

    /// Starts the flow and runs what happens before `end`, for flows that never end.
    pub fn run_until(mut self, end: Time) -> Self {
        self.begin();
        while self.next_at() < end && self.step() {}
        self
    }

    fn begin(&mut self) {
        self.of_sender(|tcp, sender, out| {
            tcp.start(sender, out);
            SenderState::Open
        });
    }

    fn next_packet_at(&self) -> Time {
        self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }

    fn next_at(&self) -> Time {
        self.next_packet_at().min(self.sender_timer).min(self.receiver_timer)
    }

    /// The next event: packets before timers at the same instant. False if there is none.
    fn step(&mut self) -> bool {
        let next = self.next_at();
        if next == Time::NEVER {
            return false;
        }
        self.now = next;
        if self.next_packet_at() == next {
            if let Some((_, (end, packet))) = self.flying.pop_first() {
                self.deliver(end, packet);
            }
        } else if self.sender_timer == next {
            self.sender_timer = Time::NEVER;
            self.of_sender(|tcp, sender, out| tcp.sender_wakes(sender, out));
        } else {
            self.receiver_timer = Time::NEVER;
            self.of_receiver(|tcp, receiver, out| tcp.receiver_wakes(receiver, out));
        }
        true
    }

    fn deliver(&mut self, end: End, packet: Packet) {
        match end {
            End::Sender => self.of_sender(|tcp, sender, out| tcp.sender_receives(sender, &packet, out)),
            End::Receiver => {
                self.of_receiver(|tcp, receiver, out| tcp.receiver_receives(receiver, &packet, out));
            }
        }
    }

    fn of_sender(&mut self, act: impl FnOnce(&Tcp, &mut Sender, &mut Call) -> SenderState) {
        let Self { now, random, sender_timer: timer, cables: [cable, _], .. } = self;
        let mut call = Call { now: *now, sent: Vec::new(), timer, random, cable };
        let state = act(self.tcp, &mut self.sender, &mut call);
        let sent = call.sent;
        let sender = &self.sender;
        let is_new =
            |packet: &Outgoing| packet.kind == Kind::Data && !packet.flags.has(PacketFlags::RETRANSMISSION);
        self.trace.push(Step {
            at: self.now,
            cwnd: sender.congestion_window(),
            outstanding: sender.outstanding(),
            alpha: sender.marked_share(),
            sent_new: sent.iter().any(|(packet, _)| is_new(packet)),
        });
        match (state, self.done) {
            (SenderState::Done, None) => self.done = Some(self.now),
            (SenderState::Open, Some(_)) => panic!("a sender that was done is open again"),
            _ => {}
        }
        self.dispatch(End::Receiver, sent);
    }

    fn of_receiver(&mut self, act: impl FnOnce(&Tcp, &mut Receiver, &mut Call) -> Delivery) {
        let Self { now, random, receiver_timer: timer, cables: [_, cable], .. } = self;
        let mut call = Call { now: *now, sent: Vec::new(), timer, random, cable };
        if act(self.tcp, &mut self.receiver, &mut call) == Delivery::Complete {
            self.completed.push(self.now);
        }
        let sent = call.sent;
        self.dispatch(End::Sender, sent);
    }

    fn dispatch(&mut self, to: End, packets: Vec<(Outgoing, Time)>) {
        for (outgoing, leaves) in packets {
            let Outgoing { kind, flags, seq, wire_bytes, sent, sack } = outgoing;
            let mut packet = Packet::default();
            (packet.kind, packet.flags, packet.seq) = (kind, flags, seq);
            (packet.wire_bytes, packet.sent) = (wire_bytes, sent);
            if kind == Kind::Ack {
                packet.set_sack_blocks(sack);
            }
            let times = self.times_sent.entry((kind as u8, seq)).or_default();
            let fate = (self.path)(&packet, *times);
            *times += 1;
            self.log.push(Sent { at: self.now, packet });
            if fate.marked && packet.flags.has(PacketFlags::ECT) {
                packet.flags.set(PacketFlags::CE);
            }
            for copy in 0..=u64::from(fate.copies) {
                let arrive = leaves + LATENCY + fate.late_by + Span::from_ns(copy);
                self.order += 1;
                if !fate.dropped {
                    self.flying.insert((arrive, self.order), (to, packet));
                }
            }
        }
    }

    /// Packets of this kind, as they were sent.
    pub fn sent(&self, kind: Kind) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(move |sent| sent.packet.kind == kind)
    }

    /// The kinds of what was sent at an instant, in order.
    pub fn kinds_at(&self, at: Time) -> Vec<Kind> {
        self.log.iter().filter(|sent| sent.at == at).map(|sent| sent.packet.kind).collect()
    }

    /// New data segments: when each was handed over, and which.
    pub fn new_data(&self) -> Vec<(Time, u32)> {
        let data = self.sent(Kind::Data);
        let new = data.filter(|sent| !sent.packet.flags.has(PacketFlags::RETRANSMISSION));
        new.map(|sent| (sent.at, sent.packet.seq)).collect()
    }

    /// Segments that were sent again: when, and which.
    pub fn retransmitted(&self) -> Vec<(Time, u32)> {
        let data = self.sent(Kind::Data);
        let again = data.filter(|sent| sent.packet.flags.has(PacketFlags::RETRANSMISSION));
        again.map(|sent| (sent.at, sent.packet.seq)).collect()
    }
}

/// A time of so many microseconds.
pub const fn at_us(us: u64) -> Time {
    Time::from_ps(us * 1_000_000)
}

/// So many full segments.
pub const fn segments(count: u32) -> FlowSize {
    FlowSize { segments: count, last_payload: 1_460 }
}

/// TCP with some parameters changed.
pub fn reno(change: impl FnOnce(&mut TcpConfig)) -> Tcp {
    let mut config = TcpConfig::default();
    change(&mut config);
    config.build().unwrap()
}

/// Losses by time, a window of so many segments, and more.
pub fn by_time(window: u32, change: impl FnOnce(&mut TcpConfig)) -> Tcp {
    reno(|config| {
        (config.sack, config.rack, config.initial_window) = (true, true, window);
        change(config);
    })
}

/// DCTCP with some parameters changed.
pub fn dctcp(change: impl FnOnce(&mut DctcpConfig)) -> Tcp {
    let mut config = DctcpConfig::default();
    change(&mut config);
    config.build().unwrap()
}

/// A path that does nothing to any packet.
pub const fn passes(_: &Packet, _: u32) -> Fate {
    PASS
}

/// Marks these segments.
pub fn marking(marked: &[u32]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, _| Fate { marked: packet.kind == Kind::Data && marked.contains(&packet.seq), ..PASS }
}

/// Drops the first transmission of each of these segments.
pub fn losing(lost: &[u32]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        if packet.kind == Kind::Data && before == 0 && lost.contains(&packet.seq) { DROP } else { PASS }
    }
}
