//! A host with four ports and nothing behind them: what an end sends is kept, and the test answers.

use weft_packet::{Kind, Packet};
use weft_transport::{ArrivedPacket, Outbox, Outgoing, Ports};
use weft_units::{PicosPerByte, Purpose, Rate, Stream, Time};

pub struct World {
    pub now: Time,
    /// Sent packets and their ports.
    pub sent: Vec<(u8, Outgoing)>,
    pub timer: Time,
    random: Stream,
}

impl World {
    pub fn new() -> Self {
        let random = Stream::new(1, Purpose::Transport, 0);
        Self { now: Time::ZERO, sent: Vec::new(), timer: Time::NEVER, random }
    }

    /// Packets sent since the last call, as ports, kinds and numbers.
    pub fn told(&mut self) -> Vec<(u8, Kind, u32)> {
        self.sent.drain(..).map(|(port, packet)| (port, packet.kind, packet.seq)).collect()
    }

    /// Packets sent since the last call, as kinds and numbers: by the flow's own port.
    pub fn kinds(&mut self) -> Vec<(Kind, u32)> {
        let own = |(port, kind, seq)| {
            assert_eq!(port, 0);
            (kind, seq)
        };
        self.told().into_iter().map(own).collect()
    }
}

impl Outbox for World {
    fn now(&self) -> Time {
        self.now
    }
    fn link_pace(&self) -> PicosPerByte {
        Rate::from_gbps(10).ps_per_byte()
    }
    fn free_at(&self) -> Time {
        self.now()
    }
    fn random(&mut self) -> &mut Stream {
        &mut self.random
    }
    fn send(&mut self, packet: Outgoing) {
        self.sent.push((0, packet));
    }
    fn wake_at(&mut self, at: Time) {
        self.timer = at;
    }
}

impl Ports for World {
    fn ports(&self) -> u8 {
        4
    }
    fn by(&mut self, port: u8) -> impl Outbox {
        By { world: self, port }
    }
    fn send_mapped(&mut self, _: u8, _: u32, _: Outgoing) {
        panic!("segments of transports with credits have one number");
    }
}

/// One port of the host.
struct By<'w> {
    world: &'w mut World,
    port: u8,
}

impl Outbox for By<'_> {
    fn now(&self) -> Time {
        self.world.now()
    }
    fn link_pace(&self) -> PicosPerByte {
        self.world.link_pace()
    }
    fn free_at(&self) -> Time {
        self.world.free_at()
    }
    fn random(&mut self) -> &mut Stream {
        self.world.random()
    }
    fn send(&mut self, packet: Outgoing) {
        self.world.sent.push((self.port, packet));
    }
    fn wake_at(&mut self, at: Time) {
        self.world.wake_at(at);
    }
}

pub fn packet(kind: Kind, seq: u32, sent: Time) -> Packet {
    let mut packet = Packet::default();
    (packet.kind, packet.seq, packet.sent) = (kind, seq, sent);
    packet
}

/// A packet that came by this port.
pub const fn by(port: u8, packet: &Packet) -> ArrivedPacket<'_> {
    ArrivedPacket { port, ..ArrivedPacket::alone(packet) }
}
