//! Each rule of a sender and a receiver, worked out by hand.

#![allow(clippy::float_cmp, reason = "what is compared was worked out in the same steps")]

use weft_packet::{Kind, Packet, PacketFlags};
use weft_units::{PicosPerByte, Purpose, Rate, Stream, Time};

use super::ack_detail::AckDetail;
use super::*;
use crate::Outgoing;

/// A host that does what the test says.
struct Host {
    now: Time,
    sent: Vec<(u16, Outgoing)>,
    is_ready: bool,
    timer: Time,
    random: Stream,
}

impl Host {
    fn new() -> Self {
        let random = Stream::new(7, Purpose::Transport, 0);
        Self { now: Time::ZERO, sent: Vec::new(), is_ready: false, timer: Time::NEVER, random }
    }
}

impl Outbox for Host {
    fn now(&self) -> Time {
        self.now
    }
    fn link_pace(&self) -> PicosPerByte {
        Rate::from_gbps(100).ps_per_byte()
    }
    fn free_at(&self) -> Time {
        self.now
    }
    fn random(&mut self) -> &mut Stream {
        &mut self.random
    }
    fn send(&mut self, packet: Outgoing) {
        self.sent.push((0, packet));
    }
    fn send_by_path(&mut self, path: u16, packet: Outgoing) {
        self.sent.push((path, packet));
    }
    fn send_ack_by_path(&mut self, path: u16, packet: Outgoing) {
        self.sent.push((path, packet));
    }
    fn path_of(&self, packet: &Packet) -> u16 {
        packet.entropy as u16
    }
    fn request_turn(&mut self) {
        self.is_ready = true;
    }
    fn wake_at(&mut self, at: Time) {
        self.timer = at;
    }
}

/// A sender that was started, and its host.
struct Pair {
    mprdma: MpRdma,
    sender: Sender,
    host: Host,
}

const MARKED: PacketFlags = PacketFlags::ECE;
const PLAIN: PacketFlags = PacketFlags::ECT;

impl Pair {
    /// A flow of so many packets with the given first window and without probes.
    fn new(packets: u32, window: u32, change: impl FnOnce(&mut MpRdmaConfig)) -> Self {
        let mut config = MpRdmaConfig { initial_window: Some(window), probe: 0.0, ..MpRdmaConfig::default() };
        change(&mut config);
        let mprdma = config.build().expect("good");
        let mut pair = Self {
            sender: mprdma.sender(FlowSize { segments: packets, last_payload: 1_024 }),
            mprdma,
            host: Host::new(),
        };
        SinglePath::start(&pair.mprdma, &mut pair.sender, &mut pair.host);
        pair
    }

    /// All that the card would take at once: path and number of each packet.
    fn take(&mut self) -> Vec<(u16, u32)> {
        self.host.sent.clear();
        if std::mem::take(&mut self.host.is_ready) {
            while self.mprdma.sender_pull(&mut self.sender, &mut self.host) == Pull::Sent(self.host.now) {}
        }
        self.host.sent.iter().map(|(path, packet)| (*path, packet.seq)).collect()
    }

    /// An answer 10 us after the last one, by a path; then what the card takes.
    fn answer(
        &mut self,
        kind: Kind,
        (expected, detail): (u32, AckDetail),
        path: u16,
        flags: PacketFlags,
    ) -> Vec<(u16, u32)> {
        let mut packet = Packet::default();
        (packet.kind, packet.seq, packet.flags, packet.entropy) = (kind, expected, flags, path.into());
        packet.sent = self.host.now;
        packet.set_sack_blocks(detail.blocks());
        self.host.now = self.host.now.saturating_add(Span::from_us(10));
        self.mprdma.sender_receives(&mut self.sender, &packet, &mut self.host);
        self.take()
    }

    /// The acknowledgement of a packet that was sent once, the next one in order being `expected`.
    fn ack(&mut self, expected: u32, packet: u32, path: u16) -> Vec<(u16, u32)> {
        self.answer(Kind::Ack, (expected, AckDetail { packet, ..AckDetail::default() }), path, PLAIN)
    }

    fn cwnd(&self) -> f64 {
        self.mprdma.window(&self.sender).expect("it has one").cwnd
    }

    /// Packets that were sent for the first time.
    fn next(&self) -> u32 {
        let stats = self.sender.stats();
        stats.segments_sent as u32 - stats.retransmissions
    }

    /// The timer is due.
    fn wake(&mut self) -> Vec<(u16, u32)> {
        self.host.now = self.host.timer;
        self.mprdma.sender_wakes(&mut self.sender, &mut self.host);
        self.take()
    }
}

fn numbers(sent: &[(u16, u32)]) -> Vec<u32> {
    sent.iter().map(|(_, number)| *number).collect()
}

#[test]
fn the_first_window_goes_by_paths_that_are_drawn() {
    let mut pair = Pair::new(1_000, 64, |_| ());
    let sent = pair.take();
    assert_eq!(numbers(&sent), (0..64).collect::<Vec<_>>());
    let paths: std::collections::BTreeSet<u16> = sent.iter().map(|(path, _)| *path).collect();
    assert!(paths.len() >= 63, "of 65,536 paths 64 draws hardly meet: {paths:?}");
    let few = Pair::new(1_000, 64, |config| config.paths = 4).take();
    assert!(few.iter().all(|(path, _)| *path < 4));
}

#[test]
fn an_acknowledgement_calls_for_the_next_packet_on_its_own_path_and_adds_a_share_of_a_packet() {
    let mut pair = Pair::new(1_000, 4, |_| ());
    assert_eq!(numbers(&pair.take()), [0, 1, 2, 3]);
    assert_eq!(pair.ack(1, 0, 700), [(700, 4)]);
    assert_eq!(pair.cwnd(), 4.25);
    // Out of order: packet 2 before packet 1. One packet has left the network all the same.
    assert_eq!(pair.ack(1, 2, 9), [(9, 5)]);
    assert_eq!(pair.cwnd(), 4.25 + 1.0 / 4.25);
    // Packet 1 closes the hole: of what comes in order now, packet 2 was counted before.
    assert_eq!(pair.ack(3, 1, 700), [(700, 6)]);
    // The window reaches 5 with one of the next two: two packets by its path.
    let sent = [pair.ack(4, 3, 1), pair.ack(5, 4, 2)];
    assert!(pair.cwnd() > 5.0 && sent.iter().map(Vec::len).sum::<usize>() == 3, "{sent:?}");
}

#[test]
fn a_mark_takes_half_a_packet_and_the_window_never_falls_below_the_least() {
    let mut pair = Pair::new(1_000, 4, |_| ());
    pair.take();
    let detail = |packet| (packet + 1, AckDetail { packet, ..AckDetail::default() });
    // 3.5 has room for three: the first mark calls for no packet. So does not the second, which
    // leaves three; the third one has two.
    assert_eq!(pair.answer(Kind::Ack, detail(0), 5, MARKED), []);
    assert_eq!(pair.cwnd(), 3.5);
    assert_eq!(pair.answer(Kind::Ack, detail(1), 5, MARKED), [(5, 4)]);
    for packet in 2..5 {
        pair.answer(Kind::Ack, detail(packet), 5, MARKED);
    }
    assert_eq!(pair.cwnd(), 1.5);
    let next = pair.next();
    for packet in 5..next {
        pair.answer(Kind::Ack, detail(packet), 5, MARKED);
    }
    pair.answer(Kind::Ack, detail(pair.next() - 1), 5, MARKED);
    assert_eq!(pair.cwnd(), 1.0);
}

#[test]
fn an_acknowledgement_further_behind_than_delta_calls_for_nothing_and_takes_a_packet_from_the_window() {
    let behind = |furthest: u32| {
        let mut pair = Pair::new(1_000, 40, |config| config.delta = 8);
        pair.take();
        for packet in 1..=furthest {
            assert!(!pair.ack(0, packet, 1).is_empty(), "packet {packet}");
        }
        let before = pair.cwnd();
        let sent = pair.ack(furthest + 1, 0, 2);
        (sent.iter().any(|(path, _)| *path == 2), pair.cwnd() - (before + 1.0 / before))
    };
    assert_eq!(behind(8), (true, 0.0), "packet 0 is 8 behind");
    assert_eq!(behind(9), (false, -1.0), "packet 0 is 9 behind");
}

#[test]
fn what_was_sent_again_may_be_as_far_behind_as_it_likes() {
    let mut pair = Pair::new(1_000, 40, |config| config.delta = 8);
    pair.take();
    for packet in 1..=20 {
        pair.ack(0, packet, 1);
    }
    let before = pair.cwnd();
    let detail = AckDetail { packet: 0, is_again: true, had_come: false };
    assert!(!pair.answer(Kind::Ack, (21, detail), 2, PLAIN).is_empty());
    assert!(pair.cwnd() > before);
}

#[test]
fn a_refused_packet_begins_a_recovery_in_which_each_answer_sends_one_packet_again() {
    let mut pair = Pair::new(1_000, 6, |config| (config.bitmap, config.delta) = (4, 4));
    assert_eq!(numbers(&pair.take()), [0, 1, 2, 3, 4, 5]);
    // Packet 0 is lost. 1 to 3 fit into the bitmap, 4 and 5 do not.
    for packet in 1..4 {
        assert_eq!(pair.ack(0, packet, 3), [(3, 5 + packet)]);
    }
    let detail = |packet| (0, AckDetail { packet, ..AckDetail::default() });
    assert_eq!(pair.answer(Kind::Nack, detail(4), 4, PLAIN), [(4, 0)]);
    assert_eq!(pair.answer(Kind::Nack, detail(5), 5, PLAIN), [(5, 1)]);
    let cwnd = pair.cwnd();
    // Packet 0 comes, sent again: 0 to 3 are in order. What follows is sent again from packet 4 on,
    // up to 8, which was the last.
    let again = |packet| AckDetail { packet, is_again: true, had_come: false };
    assert_eq!(pair.answer(Kind::Ack, (4, again(0)), 4, PLAIN), [(4, 4)]);
    assert_eq!(pair.answer(Kind::Ack, (4, AckDetail { had_come: true, ..again(1) }), 5, PLAIN), [(5, 5)]);
    assert!(pair.cwnd() > cwnd, "no loss takes anything from the window");
    // 6, 7 and 8 were refused, too.
    for (packet, sent) in [(6, 6), (7, 7), (8, 8)] {
        let refused = AckDetail { packet, ..AckDetail::default() };
        assert_eq!(numbers(&pair.answer(Kind::Nack, (4, refused), 6, PLAIN)), [sent]);
    }
    assert_eq!(pair.answer(Kind::Ack, (5, again(4)), 4, PLAIN), [], "everything was sent again");
    for packet in 5..8 {
        pair.answer(Kind::Ack, (packet + 1, again(packet)), 4, PLAIN);
    }
    // With packet 8 the recovery is over: two new packets at once.
    assert_eq!(pair.answer(Kind::Ack, (9, again(8)), 4, PLAIN), [(4, 9), (4, 10)]);
    let stats = pair.mprdma.sender_stats(&pair.sender);
    assert_eq!((stats.fast_recoveries, stats.retransmissions, stats.nacks), (1, 7, 5));
}

#[test]
fn one_acknowledgement_calls_for_two_packets_at_most_and_the_rest_waits_for_the_burst_timer() {
    for (paths, stays) in [(UncalledPaths::Last, true), (UncalledPaths::Drawn, false)] {
        let mut pair = Pair::new(1_000, 10, |config| config.burst_paths = paths);
        pair.take();
        // One acknowledgement of all ten, as after a recovery.
        assert_eq!(pair.ack(10, 9, 77), [(77, 10), (77, 11)]);
        assert_eq!(pair.host.timer, pair.host.now + Span::from_us(5), "half of a round trip of 10 us");
        let sent = pair.wake();
        assert_eq!(numbers(&sent), (12..20).collect::<Vec<_>>());
        assert_eq!(sent.iter().all(|(path, _)| *path == 77), stays);
    }
}

#[test]
fn a_sender_without_new_data_loses_the_window_that_it_does_not_use_and_sends_once_more_what_is_open() {
    let mut pair = Pair::new(6, 6, |_| ());
    pair.take();
    assert_eq!(pair.ack(1, 0, 3), [(3, 1)], "packet 1, for it may be lost");
    assert_eq!(pair.cwnd(), 6.0 + 1.0 / 6.0 - 1.0);
    let mut waits = Pair::new(6, 6, |config| config.early_retransmission = false);
    waits.take();
    assert_eq!(waits.ack(1, 0, 3), []);
    assert_eq!(waits.cwnd(), 6.0 + 1.0 / 6.0 - 1.0);
    assert_eq!(waits.host.timer, waits.host.now + Span::from_us(320));
}

#[test]
fn after_a_timeout_half_the_window_is_sent_again_on_the_last_path_that_worked_if_any_did() {
    for (paths, stays) in [(UncalledPaths::Last, true), (UncalledPaths::Drawn, false)] {
        let mut pair = Pair::new(20, 8, |config| config.timeout_paths = paths);
        pair.take();
        assert_eq!(pair.ack(1, 0, 77), [(77, 8)]);
        let sent = pair.wake();
        assert_eq!(numbers(&sent), [1, 2, 3, 4]);
        assert_eq!(sent.iter().all(|(path, _)| *path == 77), stays);
    }
    let mut pair = Pair::new(20, 8, |_| ());
    pair.take();
    assert_eq!(pair.host.timer, Time::ZERO + Span::from_us(320));
    assert_eq!(numbers(&pair.wake()), [0, 1, 2, 3]);
    assert_eq!(pair.cwnd(), 4.0);
    assert_eq!(numbers(&pair.wake()), [0, 1]);
    let stats = pair.mprdma.sender_stats(&pair.sender);
    assert_eq!((stats.timeouts, stats.retransmissions, stats.timed_out), (2, 6, Span::from_us(640)));
}

#[test]
fn a_lost_acknowledgement_makes_the_window_no_smaller_for_good() {
    let mut pair = Pair::new(1_000, 4, |_| ());
    pair.take();
    // Those of packets 1 and 2 are lost; that of 3 comes, out of order, then that of 0.
    assert_eq!(pair.ack(0, 3, 1).len(), 1);
    pair.ack(4, 0, 2);
    // In flight: what is beyond packet 3, as much as the window has room for.
    let sent = pair.ack(5, 4, 1);
    let stats = pair.sender.window();
    assert!(stats.outstanding >= 3, "{} outstanding of {}: {sent:?}", stats.outstanding, stats.cwnd);
}

#[test]
fn acknowledgements_that_overtake_each_other_are_counted_once_each() {
    let mut pair = Pair::new(1_000, 8, |_| ());
    pair.take();
    // Packets come as 1, 2, 0, 4; the answer to 0 overtakes those to 1 and 2, the one to 4 all of
    // them.
    pair.ack(3, 4, 1);
    pair.ack(3, 0, 1);
    pair.ack(0, 1, 1);
    pair.ack(0, 2, 1);
    // 0 to 2 and 4 have come: 3 and 5 to 7 are in flight, and so many beside them as the window has
    // room for.
    let (next, cwnd) = (pair.next(), pair.cwnd());
    assert_eq!(next - 4, cwnd as u32, "sent {next}, of which four came");
}

#[test]
fn a_probe_takes_a_path_that_is_drawn_once_a_round_trip() {
    let mut pair = Pair::new(100_000, 32, |config| config.probe = 1.0);
    pair.take();
    pair.host.now = Time::ZERO + Span::from_us(32);
    let mut probes = 0;
    for packet in 0..3_200 {
        // 32 acknowledgements a round trip.
        let detail = AckDetail { packet, ..AckDetail::default() };
        let mut ack = Packet::default();
        (ack.kind, ack.seq, ack.entropy) = (Kind::Ack, packet + 1, 5);
        ack.set_sack_blocks(detail.blocks());
        pair.host.now = pair.host.now.saturating_add(Span::from_ns(1_000));
        ack.sent = Time::from_ps(pair.host.now.as_ps().saturating_sub(32_000_000));
        pair.mprdma.sender_receives(&mut pair.sender, &ack, &mut pair.host);
        probes += pair.take().iter().filter(|(path, _)| *path != 5).count();
    }
    assert!((98..=102).contains(&probes), "{probes} in 100 round trips");
}

#[test]
fn a_receiver_answers_each_packet_on_its_path_and_refuses_what_its_bitmap_has_no_slot_for() {
    let mprdma = MpRdmaConfig { bitmap: 4, delta: 4, ..MpRdmaConfig::default() }.build().expect("good");
    let mut receiver = mprdma.receiver(FlowSize { segments: 8, last_payload: 9 });
    let mut came = |number, path: u16, flags| {
        let mut host = Host::new();
        let mut packet = Packet::default();
        (packet.kind, packet.seq, packet.entropy, packet.flags) = (Kind::Data, number, path.into(), flags);
        let delivery = mprdma.receiver_receives(&mut receiver, &packet, &mut host);
        let (by, answer) = host.sent[0];
        let mut read = Packet::default();
        read.set_sack_blocks(answer.sack);
        let is_marked = answer.flags.has(MARKED);
        (answer.kind, answer.seq, AckDetail::read(&read), is_marked, by, delivery == Delivery::Complete)
    };
    let detail = |packet| AckDetail { packet, ..AckDetail::default() };
    assert_eq!(came(3, 11, PLAIN), (Kind::Ack, 0, detail(3), false, 11, false));
    assert_eq!(came(4, 12, PLAIN), (Kind::Nack, 0, detail(4), false, 12, false));
    assert_eq!(came(0, 13, PLAIN.with(PacketFlags::CE)), (Kind::Ack, 1, detail(0), true, 13, false));
    assert_eq!(came(4, 12, PLAIN).0, Kind::Ack, "there is a slot now");
    let again = PLAIN.with(PacketFlags::RETRANSMISSION);
    let both = AckDetail { packet: 3, is_again: true, had_come: true };
    assert_eq!(came(3, 14, again), (Kind::Ack, 1, both, false, 14, false));
    for number in [2, 1, 7, 5] {
        came(number, 1, PLAIN);
    }
    assert_eq!(came(6, 1, PLAIN), (Kind::Ack, 8, detail(6), false, 1, true));
    let stats = mprdma.receiver_stats(&receiver);
    assert_eq!((stats.refused, stats.nacks_sent, stats.duplicates, stats.segments_received), (1, 1, 1, 10));
}

#[test]
fn the_state_of_a_flow_is_small() {
    // As docs/rdma.md says.
    assert!(size_of::<Sender>() <= 168 && size_of::<Receiver>() <= 40);
}
