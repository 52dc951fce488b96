//! Frames that no sound host sends: neither the reader nor a kernel nor who stands between them is
//! harmed by any number of them. The long runs: `cargo test --release -p weft-linux-hosts --test
//! hostile -- --ignored`.

#![allow(clippy::unwrap_used)]

mod world;

use std::net::Ipv4Addr;

use weft_linux_hosts::codec::{Body, Flags, Ipv4, Packet, Tcp, TcpOption, mark_congestion};
use weft_linux_hosts::{Guest, Program, Report, Status};
use weft_units::{Rate, Span, Time};
use world::{Fabric, PORT, World, address, flow, kernel};

const MANY: usize = 1_000_000;

/// Numbers that are the same in each run (Knuth's MMIX generator).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn bytes(&mut self, least: u64, most: u64) -> Vec<u8> {
        let count = least + self.next() % (most - least + 1);
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The kinds of frames, of which each comes in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    RandomBytes,
    WrongLength,
    WrongChecksum,
    CutOff,
    ForeignAddress,
    RandomOptions,
    RandomSegment,
}

const KINDS: [Kind; 7] = [
    Kind::RandomBytes,
    Kind::WrongLength,
    Kind::WrongChecksum,
    Kind::CutOff,
    Kind::ForeignAddress,
    Kind::RandomOptions,
    Kind::RandomSegment,
];

/// A segment for host 1 that its kernel could believe.
fn sound(draw: &mut Draw) -> Vec<u8> {
    let tcp = Tcp {
        source_port: draw.next() as u16,
        destination_port: PORT,
        sequence: draw.next() as u32,
        acknowledgement: draw.next() as u32,
        flags: Flags::from_bits(draw.next() as u16 & 0xfff).unwrap(),
        window: draw.next() as u16,
        options: vec![
            TcpOption::Timestamps { value: draw.next() as u32, echo: draw.next() as u32 },
            TcpOption::NoOperation,
            TcpOption::NoOperation,
        ],
        ..Tcp::default()
    };
    let payload = draw.bytes(0, 60);
    Packet { ip: Ipv4::new(address(0), address(1)), body: Body::Tcp(tcp, &payload) }.encode().unwrap()
}

fn frame(kind: Kind, draw: &mut Draw) -> Vec<u8> {
    let mut frame = sound(draw);
    match kind {
        Kind::RandomBytes => return draw.bytes(1, 200),
        Kind::WrongLength => {
            let said = (draw.next() as u16).max(1) ^ frame.len() as u16;
            frame[2..4].copy_from_slice(&said.to_be_bytes());
        }
        Kind::WrongChecksum => {
            let at = [10, 36][draw.next() as usize % 2];
            frame[at] ^= 1 << (draw.next() % 8);
        }
        Kind::CutOff => frame.truncate(1 + draw.next() as usize % (frame.len() - 1)),
        Kind::ForeignAddress => {
            let mut packet = Packet::decode(&frame).unwrap();
            packet.ip.destination = Ipv4Addr::from_bits(0x0b00_0000 | draw.next() as u32 & 0xff_ffff);
            return packet.encode().unwrap();
        }
        Kind::RandomOptions => {
            let options = draw.bytes(12, 12);
            frame[40..52].copy_from_slice(&options);
        }
        Kind::RandomSegment => {
            let header = frame[..20].to_vec();
            frame = header;
            frame.extend(draw.bytes(0, 100));
        }
    }
    frame
}

/// Reads so many frames of each kind; what is taken is written again as it was, and marking never
/// harms.
fn read_all(count: usize) {
    let mut draw = Draw(1);
    let (mut taken, mut refused) = ([0; KINDS.len()], [0; KINDS.len()]);
    for number in 0..count {
        let kind = number % KINDS.len();
        let mut frame = frame(KINDS[kind], &mut draw);
        match Packet::decode(&frame) {
            Ok(packet) => {
                assert_eq!(packet.encode().as_ref(), Ok(&frame));
                taken[kind] += 1;
            }
            Err(_) => refused[kind] += 1,
        }
        let before = frame.clone();
        if mark_congestion(&mut frame) {
            assert_eq!((frame.len(), frame[1] & 3), (before.len(), 3));
        } else {
            assert_eq!(frame, before);
        }
    }
    println!("taken {taken:?}, refused {refused:?} of {KINDS:?}");
    for (kind, taken) in KINDS.iter().zip(taken) {
        match kind {
            Kind::ForeignAddress => assert!(taken > 0, "it is a packet, for somebody else"),
            Kind::WrongLength | Kind::WrongChecksum | Kind::CutOff => assert_eq!(taken, 0, "{kind:?}"),
            _ => {}
        }
    }
}

#[test]
fn hostile_frames_are_read_or_refused() {
    read_all(100_000);
}

#[test]
#[ignore = "takes long"]
fn a_million_hostile_frames_are_read_or_refused() {
    read_all(MANY);
}

/// Host 1 gets so many frames, and works as before.
fn deliver_all(count: usize) {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(2, Rate::from_gbps(1), Span::from_us(5));
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    let mut draw = Draw(2);
    let instant = |number: usize| Time::ZERO + Span::from_ns(number as u64 * 100);
    for number in 0..count {
        let frame = frame(KINDS[number % KINDS.len()], &mut draw);
        world.guest.deliver(1, &frame, instant(number)).unwrap();
        if number % 1_000 == 999 {
            world.guest.advance(instant(number), &mut Vec::new()).unwrap();
        }
    }
    let later = instant(count) + Span::from_ms(10);
    world.run_flows(&[(flow(0, 0, 1, 100_000, "cubic"), later)]).unwrap();
    assert_eq!(world.flows[0].bytes, 100_000);
}

#[test]
fn hostile_frames_do_not_harm_a_kernel() {
    deliver_all(50_000);
}

#[test]
#[ignore = "takes long"]
fn a_million_hostile_frames_do_not_harm_a_kernel() {
    deliver_all(MANY);
}

/// Sends frames of any bytes by the card, without a word of the kernel's TCP.
const RUBBISH: &str = "
import random, socket, sys, time
random.seed(int(sys.argv[1]))
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
s.bind((socket.if_nameindex()[1][1], 0x0800))
for n in range(int(sys.argv[2])):
    frame = bytearray(random.randbytes(random.randint(1, 120)))
    if n % 4 and len(frame) >= 20:
        frame[0] = 0x45
        frame[16:20] = bytes((10, 0, 0, random.randint(0, 3)))
    if n % 8 > 3:
        frame[2:4] = len(frame).to_bytes(2, 'big')
    s.send(frame)
    if n % 500 == 499:
        time.sleep(0.001) # the queue of the card takes no more
";

/// A program of a host sends so many frames of any bytes; the world gets each, and can read it or
/// not.
fn send_all(count: usize) {
    let Some(image) = kernel() else { return };
    let fabric = Fabric::new(2, Rate::from_gbps(1), Span::from_us(5));
    let mut world = World::start(fabric, &fabric.setup(image, "cubic", 1)).unwrap();
    let words = ["/usr/bin/python3", "-I", "-S", "-c", RUBBISH, "7", &count.to_string()].map(str::to_owned);
    let program = Program { words: words.to_vec(), ..Program::new(0, 0, "python3").unwrap() };
    world.guest.start_program(&program, Time::ZERO).unwrap();
    let (mut sent, mut frames, mut shortest, mut refused) = (Vec::new(), 0, usize::MAX, 0);
    let mut at = Time::ZERO;
    let status = loop {
        at = world.guest.advance(at + Span::from_ms(1), &mut sent).unwrap();
        for frame in sent.drain(..) {
            frames += 1;
            shortest = shortest.min(frame.packet.len());
            refused += usize::from(Packet::decode(&frame.packet).is_err());
            // What a fabric hands on, a host must bear.
            world
                .guest
                .deliver(1, &frame.packet, frame.begins + fabric.card().lookahead + Span::from_us(9))
                .unwrap();
        }
        let ended = world.guest.reports().find_map(|(_, report)| match report {
            Report::Ended { status, .. } => Some(status),
            Report::Output { bytes, .. } => panic!("{}", String::from_utf8_lossy(&bytes)),
            _ => None,
        });
        if let Some(status) = ended {
            break status;
        }
    };
    assert_eq!(status, Status::Exited(0));
    println!("{frames} frames, {refused} of them are no packets, the shortest has {shortest} bytes");
    assert!(frames >= count && shortest == 1 && refused > frames / 2);
    let later = at + Span::from_ms(10);
    world.guest.advance(later, &mut Vec::new()).unwrap();
    assert!(world.guest.process().is_some());
}

#[test]
fn a_program_may_send_any_bytes_by_its_card() {
    send_all(1_000);
}

#[test]
#[ignore = "takes long"]
fn a_million_frames_of_any_bytes_come_from_a_program() {
    send_all(MANY);
}
