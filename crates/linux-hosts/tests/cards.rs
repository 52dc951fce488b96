//! Tests of a card and its host's CPU against times worked out by hand: a host answers each ping in
//! the instant in which it sees it.

#![allow(clippy::unwrap_used)]

mod world;

use weft_linux_hosts::codec::{Body, Ipv4, Packet};
use weft_linux_hosts::{Card, Guest, Machine, Sent};
use weft_units::{Rate, Span, Time};
use world::{Fabric, World, address, flow, kernel};

/// Bytes of a ping with its IP header.
const PING: usize = 128;

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn fabric() -> Fabric {
    Fabric::new(2, Rate::from_gbps(10), Span::from_us(5))
}

fn plain() -> Card {
    fabric().card()
}

/// The internet check sum of an echo request, which has nothing but zeros after these words.
fn ping(number: u16) -> Vec<u8> {
    let mut echo = vec![0_u8; PING - 20];
    echo[0] = 8;
    echo[6..8].copy_from_slice(&number.to_be_bytes());
    let sum = 0x0800_u32 + u32::from(number);
    echo[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let ip = Ipv4::new(address(1), address(0));
    Packet { ip, body: Body::Other { protocol: 1, bytes: &echo } }.encode().unwrap()
}

/// When the answers to pings begin, which reach host 0 at these instants, and which ping each
/// answers.
fn answers(card: Card, at: &[Time]) -> Option<Vec<(u16, Time)>> {
    let image = kernel()?;
    let mut setup = fabric().setup(image, "cubic", 1);
    setup.hosts[0].card = card;
    let mut machine = Machine::start(&setup).unwrap();
    for (number, at) in at.iter().enumerate() {
        machine.deliver(0, &ping(number as u16), *at).unwrap();
    }
    let (mut sent, end) = (Vec::new(), us(100_000));
    while machine.advance(end, &mut sent).unwrap() < end {}
    let answer = |sent: Sent| {
        assert_eq!(
            (sent.host, sent.packet[9], sent.packet[20], sent.packet.len()),
            (0, 1, 0, PING),
            "{sent:?}"
        );
        (u16::from_be_bytes([sent.packet[26], sent.packet[27]]), sent.begins)
    };
    Some(sent.into_iter().map(answer).collect())
}

fn in_order(at: &[Time]) -> Vec<(u16, Time)> {
    at.iter().enumerate().map(|(number, at)| (number as u16, *at)).collect()
}

/// How long the second packet waits for the first one: its place in the ring is free at a whole
/// nanosecond, and byte queue limits let no second one into the ring before they have once seen it
/// run empty.
fn nanoseconds(service: Span) -> Span {
    Span::from_ns(service.as_ps().div_ceil(1_000))
}

#[test]
fn without_a_cost_a_packet_is_seen_when_its_last_bit_arrives() {
    let at = [us(10), us(11), us(30)];
    let Some(answers) = answers(plain(), &at) else { return };
    assert_eq!(answers, in_order(&at));
}

#[test]
fn an_interrupt_comes_so_long_after_the_first_packet_that_waits() {
    let card = Card { interrupt_delay: Span::from_us(20), ..plain() };
    let Some(answers) = answers(card, &[us(10), us(15), us(29), us(31)]) else { return };
    let service = nanoseconds(card.service(PING));
    let together = us(30);
    assert_eq!(
        answers,
        in_order(&[together, together + service, together + service + card.service(PING), us(51)])
    );
}

#[test]
fn an_interrupt_comes_when_so_many_packets_wait() {
    let card = Card { interrupt_delay: Span::from_us(20), interrupt_packets: 2, ..plain() };
    let Some(answers) = answers(card, &[us(10), us(15), us(16)]) else { return };
    assert_eq!(answers, in_order(&[us(15), us(15) + nanoseconds(card.service(PING)), us(36)]));
}

/// CPU time of a ping.
const COST: Span = Span::from_ns(2_128);

fn busy() -> Card {
    Card { cpu_per_packet: Span::from_ns(2_000), cpu_per_byte: Span::from_ns(1), ..plain() }
}

#[test]
fn the_cpu_works_on_a_packet_that_arrives_and_on_its_answer() {
    let Some(answers) = answers(busy(), &[us(10), us(20)]) else { return };
    assert_eq!(answers, in_order(&[us(10) + COST * 2, us(20) + COST * 2]));
}

#[test]
fn packets_wait_for_the_cpu_and_without_joining_it_takes_one_after_the_other() {
    let card = Card { receive_offload: false, ..busy() };
    let Some(answers) = answers(card, &[us(10); 3]) else { return };
    // One that arrives, its answer, the next one, its answer.
    assert_eq!(answers, in_order(&[us(10) + COST * 2, us(10) + COST * 4, us(10) + COST * 6]));
}

#[test]
fn a_cpu_that_joins_takes_all_that_waits_together() {
    let Some(answers) = answers(busy(), &[us(10), us(11), us(12)]) else { return };
    // The first one is alone; the other two have come when its answer is done, and are seen when
    // both are worked on.
    let first = us(10) + COST * 2;
    assert_eq!(answers, in_order(&[first, first + COST * 3, first + COST * 4]));
}

#[test]
fn a_receive_ring_that_is_full_drops_what_arrives() {
    let card = Card { receive_ring: 4, receive_offload: false, ..busy() };
    let Some(answers) = answers(card, &[us(10); 10]) else { return };
    let first_four: Vec<_> = (1..=4).map(|n| us(10) + COST * 2 * n).collect();
    assert_eq!(answers, in_order(&first_four), "a place is free when the CPU has worked on its packet");
}

/// How long a flow of a megabyte takes between hosts with such cards, and how many packets the
/// receiver sends meanwhile.
fn megabyte(card: Card) -> Option<(f64, usize)> {
    let image = kernel()?;
    let mut setup = fabric().setup(image, "cubic", 1);
    for host in &mut setup.hosts {
        host.card = card;
    }
    let mut world = World::start(fabric(), &setup).unwrap();
    world.run_flows(&[(flow(0, 0, 1, 1_000_000, "cubic"), us(10))]).unwrap();
    let acknowledgements = world.trace.iter().filter(|(_, host, _)| *host == 1).count();
    println!("{} us, {acknowledgements} packets back", world.flows[0].fct().as_us());
    Some((world.flows[0].fct().as_us(), acknowledgements))
}

#[test]
fn a_sender_is_no_faster_than_its_cpu() {
    let card = Card { cpu_per_packet: Span::from_us(4), receive_offload: false, ..plain() };
    let (Some((fast, _)), Some((slow, acknowledgements))) = (megabyte(plain()), megabyte(card)) else {
        return;
    };
    // 691 segments; the handshake's three packets; each acknowledgement is one more for the
    // sender's CPU.
    let work = 4.0 * (691.0 + 3.0 + acknowledgements as f64);
    assert!(
        slow > 4.0 * 691.0 && slow < work * 1.1,
        "{slow} us, work for {work} us; without a cost {fast} us"
    );
    assert!(fast < slow / 2.0);
}

#[test]
fn packets_that_are_joined_are_acknowledged_together() {
    let late = Card { interrupt_delay: Span::from_us(30), ..plain() };
    let apart = Card { receive_offload: false, ..late };
    let (Some((_, joined)), Some((_, single))) = (megabyte(late), megabyte(apart)) else { return };
    assert!(joined * 3 < single, "{joined} packets back with joining, {single} without");
}
