//! A world of two endpoints whose sender is asked for packets: a cable with a rate, a fixed
//! latency, and a fate for every packet.

use std::collections::BTreeMap;

use weft_packet::{Kind, Packet, PacketFlags};
use weft_transport::{Delivery, FlowSize, Outbox, Outgoing, Protocol, Pull, SenderState, SinglePath};
use weft_units::{PicosPerByte, Purpose, Rate, Span, Stream, Time};

/// One way.
pub const LATENCY: Span = Span::from_us(5);

/// Fate of a packet on the path.
#[derive(Clone, Copy)]
pub enum Fate {
    Pass,
    Drop,
    Mark,
    Trim,
    LateBy(Span),
}

/// A packet as it was sent.
#[derive(Clone, Copy)]
pub struct Sent {
    pub at: Time,
    pub packet: Packet,
}

/// Actions of an endpoint during one call.
struct Call<'a> {
    now: Time,
    /// With whether each is an answer, and its path.
    sent: Vec<(Outgoing, bool, u16)>,
    timer: &'a mut Time,
    is_ready: bool,
    random: &'a mut Stream,
    pace: PicosPerByte,
}

impl Outbox for Call<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn send(&mut self, packet: Outgoing) {
        self.sent.push((packet, false, 0));
    }
    fn send_ack(&mut self, packet: Outgoing) {
        self.sent.push((packet, true, 0));
    }
    fn send_by_path(&mut self, path: u16, packet: Outgoing) {
        self.sent.push((packet, false, path));
    }
    fn send_ack_by_path(&mut self, path: u16, packet: Outgoing) {
        self.sent.push((packet, true, path));
    }
    fn path_of(&self, packet: &Packet) -> u16 {
        packet.entropy as u16
    }
    fn request_turn(&mut self) {
        self.is_ready = true;
    }
    fn wake_at(&mut self, at: Time) {
        assert!(at > self.now, "a timer in the past");
        *self.timer = at;
    }
    fn link_pace(&self) -> PicosPerByte {
        self.pace
    }
    fn free_at(&self) -> Time {
        self.now
    }
    fn random(&mut self) -> &mut Stream {
        self.random
    }
}

/// Decides the fate of each packet; is told how many of the same kind and number were sent before.
pub type Path<'a> = Box<dyn FnMut(&Packet, u32) -> Fate + 'a>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Sender,
    Receiver,
}

pub struct World<'a, P: SinglePath> {
    protocol: &'a P,
    path: Path<'a>,
    random: Stream,
    pace: PicosPerByte,
    pub now: Time,
    order: u64,
    flying: BTreeMap<(Time, u64), (End, Packet)>,
    times_sent: BTreeMap<(u8, u32), u32>,
    timers: [Time; 2],
    /// When the sender is asked next.
    asked_at: Time,
    /// When the cable is free.
    free_at: Time,
    pub sender: P::Sender,
    pub receiver: P::Receiver,
    pub log: Vec<Sent>,
    /// When the receiver had everything, and when the sender was done.
    pub completed: Vec<Time>,
    pub done: Option<Time>,
}

impl<'a, P: SinglePath + Protocol> World<'a, P> {
    pub fn new(protocol: &'a P, size: FlowSize, path: impl FnMut(&Packet, u32) -> Fate + 'a) -> Self {
        Self {
            protocol,
            path: Box::new(path),
            random: Stream::new(1, Purpose::Transport, 0),
            // A byte takes 80 ps.
            pace: Rate::from_gbps(100).ps_per_byte(),
            now: Time::ZERO,
            order: 0,
            flying: BTreeMap::new(),
            times_sent: BTreeMap::new(),
            timers: [Time::NEVER; 2],
            asked_at: Time::NEVER,
            free_at: Time::ZERO,
            sender: protocol.sender(size),
            receiver: protocol.receiver(size),
            log: Vec::new(),
            completed: Vec::new(),
            done: None,
        }
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

    /// Starts the flow and runs for so long.
    pub fn run_until(mut self, time: Span) -> Self {
        self.begin();
        while self.next_at() <= Time::ZERO + time && self.step() {}
        self
    }

    fn begin(&mut self) {
        self.of_sender(|protocol, sender, out| {
            protocol.start(sender, out);
            SenderState::Open
        });
    }

    fn next_packet_at(&self) -> Time {
        self.flying.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }

    fn next_at(&self) -> Time {
        self.next_packet_at().min(self.timers[0]).min(self.timers[1]).min(self.asked_at)
    }

    /// The next event: packets before timers before the cable at the same instant. False if there
    /// is none.
    fn step(&mut self) -> bool {
        let next = self.next_at();
        if next == Time::NEVER || self.done.is_some() && self.next_packet_at() == Time::NEVER {
            return false;
        }
        self.now = next;
        if self.next_packet_at() == next {
            if let Some((_, (end, packet))) = self.flying.pop_first() {
                self.deliver(end, packet);
            }
        } else if self.timers[0] == next {
            self.timers[0] = Time::NEVER;
            self.of_sender(|protocol, sender, out| protocol.sender_wakes(sender, out));
        } else if self.timers[1] == next {
            self.timers[1] = Time::NEVER;
            self.of_receiver(|protocol, receiver, out| protocol.receiver_wakes(receiver, out));
        } else {
            self.ask();
        }
        true
    }

    fn deliver(&mut self, end: End, packet: Packet) {
        match end {
            End::Sender if self.done.is_some() => {}
            End::Sender => {
                self.of_sender(|protocol, sender, out| protocol.sender_receives(sender, &packet, out));
            }
            End::Receiver => {
                self.of_receiver(|protocol, receiver, out| {
                    protocol.receiver_receives(receiver, &packet, out)
                });
            }
        }
    }

    /// The cable is free and it is the sender's time.
    fn ask(&mut self) {
        self.asked_at = Time::NEVER;
        let Self { now, random, timers: [timer, _], pace, .. } = self;
        let mut call = Call { now: *now, sent: Vec::new(), timer, is_ready: false, random, pace: *pace };
        // Who only looks sees what holds it back, before it is asked.
        let held_until = self.protocol.sender_held_until(&self.sender, *now);
        let pull = self.protocol.sender_pull(&mut self.sender, &mut call);
        let sent = call.sent;
        let again = match pull {
            Pull::Sent(again) => {
                assert_eq!((sent.len(), held_until), (1, self.now), "one packet, when it says so");
                again
            }
            Pull::NotBefore(again) => {
                assert!(sent.is_empty() && again > self.now, "nothing was sent, and the time is to come");
                assert!(again == Time::NEVER || again == held_until, "its window or its rate");
                again
            }
        };
        self.dispatch(End::Receiver, sent);
        self.asked_at = if again == Time::NEVER { again } else { again.max(self.free_at) };
    }

    fn of_sender(&mut self, act: impl FnOnce(&P, &mut P::Sender, &mut Call<'_>) -> SenderState) {
        let Self { now, random, timers: [timer, _], pace, .. } = self;
        let mut call = Call { now: *now, sent: Vec::new(), timer, is_ready: false, random, pace: *pace };
        let state = act(self.protocol, &mut self.sender, &mut call);
        let (sent, is_ready) = (call.sent, call.is_ready);
        assert!(sent.is_empty(), "data is sent when it is asked for");
        if is_ready && self.asked_at == Time::NEVER {
            self.asked_at = self.free_at.max(self.now);
        }
        if state == SenderState::Done {
            self.done.get_or_insert(self.now);
            self.asked_at = Time::NEVER;
        }
    }

    fn of_receiver(&mut self, act: impl FnOnce(&P, &mut P::Receiver, &mut Call<'_>) -> Delivery) {
        let Self { now, random, timers: [_, timer], pace, .. } = self;
        let mut call = Call { now: *now, sent: Vec::new(), timer, is_ready: false, random, pace: *pace };
        if act(self.protocol, &mut self.receiver, &mut call) == Delivery::Complete {
            self.completed.push(self.now);
        }
        let sent = call.sent;
        self.dispatch(End::Sender, sent);
    }

    fn dispatch(&mut self, to: End, packets: Vec<(Outgoing, bool, u16)>) {
        for (outgoing, is_answer, path) in packets {
            let Outgoing { kind, flags, seq, wire_bytes, sent, sack } = outgoing;
            let mut packet = Packet::default();
            (packet.kind, packet.flags, packet.seq) = (kind, flags, seq);
            (packet.wire_bytes, packet.sent, packet.entropy) = (wire_bytes, sent, path.into());
            if is_answer {
                packet.set_sack_blocks(sack);
            }
            let leaves = if to == End::Receiver {
                self.free_at = self.free_at.max(self.now) + self.pace.service(wire_bytes);
                self.free_at
            } else {
                self.now
            };
            let times = self.times_sent.entry((kind as u8, seq)).or_default();
            let fate = (self.path)(&packet, *times);
            *times += 1;
            self.log.push(Sent { at: self.now, packet });
            self.order += 1;
            let arrive = leaves + LATENCY;
            let at = match fate {
                Fate::Pass => arrive,
                Fate::Drop => continue,
                Fate::Mark => {
                    assert!(packet.flags.has(PacketFlags::ECT));
                    packet.flags.set(PacketFlags::CE);
                    arrive
                }
                Fate::Trim => {
                    (packet.kind, packet.wire_bytes) = (Kind::Trimmed, 64);
                    arrive
                }
                Fate::LateBy(late) => arrive + late,
            };
            self.flying.insert((at, self.order), (to, packet));
        }
    }

    /// Packets of this kind, as they were sent.
    pub fn sent(&self, kind: Kind) -> impl Iterator<Item = &Sent> {
        self.log.iter().filter(move |sent| sent.packet.kind == kind)
    }

    /// The numbers of data packets in the order in which they were sent.
    pub fn segments(&self) -> Vec<u32> {
        self.sent(Kind::Data).map(|sent| sent.packet.seq).collect()
    }
}

/// Drops the first transmission of each of these segments.
pub fn losing(lost: &[u32]) -> impl FnMut(&Packet, u32) -> Fate {
    move |packet, before| {
        let is_lost = packet.kind == Kind::Data && before == 0 && lost.contains(&packet.seq);
        if is_lost { Fate::Drop } else { Fate::Pass }
    }
}

/// Marks all data.
pub fn marking(packet: &Packet, _: u32) -> Fate {
    if packet.kind == Kind::Data { Fate::Mark } else { Fate::Pass }
}

/// Lets everything pass.
pub const fn passing(_: &Packet, _: u32) -> Fate {
    Fate::Pass
}

/// So many full packets of 1,024 bytes.
pub const fn full(count: u32) -> FlowSize {
    FlowSize { segments: count, last_payload: 1_024 }
}
