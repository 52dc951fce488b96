//! MaxPass.

use weft_packet::{Kind, PacketFlags};
use weft_transport::maxpass::Receiver;
use weft_transport::{FlowSize, MaxPass, Multipath, Protocol, SenderState, TransportSpec};
use weft_units::{Span, Time};

use crate::world::{World, by, packet};

fn protocol(keys: &str) -> MaxPass {
    let spec: TransportSpec = toml::from_str(&format!("name = 'maxpass'\n{keys}")).unwrap();
    let TransportSpec::MaxPass(config) = spec else { unreachable!() };
    config.build().unwrap()
}

/// A receiver, and the data that answers its credits.
struct Session {
    protocol: MaxPass,
    receiver: Receiver,
    world: World,
    /// When data comes that answers which credit: by port and stamp.
    under_way: Vec<(Time, u8, Time)>,
    segment: u32,
    /// Ports whose data says SUBCSTOP.
    stopped: Vec<u8>,
}

impl Session {
    fn new(keys: &str) -> Self {
        let protocol = protocol(keys);
        let mut receiver = protocol.receiver(FlowSize::endless(1_460));
        let mut world = World::new();
        let request = packet(Kind::CreditRequest, 0, Time::ZERO);
        protocol.receiver_receives(&mut receiver, by(0, &request), &mut world);
        Self { protocol, receiver, world, under_way: Vec::new(), segment: 0, stopped: Vec::new() }
    }

    /// Lets time pass. `answer` says how long a credit by this port, sent at this time, takes to
    /// come back as data, if it does. Returns the ports of the credits that were sent.
    fn run(&mut self, until_us: u64, mut answer: impl FnMut(u8, Time) -> Option<Span>) -> Vec<u8> {
        let until = Time::ZERO + Span::from_us(until_us);
        let mut ports = Vec::new();
        loop {
            for (port, credit) in self.world.sent.drain(..) {
                ports.push(port);
                let comes =
                    answer(port, self.world.now).map(|span| (self.world.now + span, port, credit.sent));
                self.under_way.extend(comes);
            }
            let first = self.under_way.iter().copied().min();
            let next = first.map_or(Time::NEVER, |(at, ..)| at).min(self.world.timer);
            if next > until {
                break;
            }
            self.world.now = next;
            match first {
                Some(first) if first.0 == next => {
                    self.under_way.retain(|&other| other != first);
                    self.data(first.1, first.2);
                }
                _ => {
                    self.protocol.receiver_wakes(&mut self.receiver, &mut self.world);
                }
            }
        }
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    fn data(&mut self, port: u8, stamp: Time) {
        let mut data = packet(Kind::Data, self.segment, stamp);
        data.flags = PacketFlags::default().with_if(PacketFlags::CWR, self.stopped.contains(&port));
        self.protocol.receiver_receives(&mut self.receiver, by(port, &data), &mut self.world);
        self.segment += 1;
    }

    fn reselections(&self) -> u32 {
        self.protocol.receiver_stats(&self.receiver).reselections
    }
}

fn always(us: u64) -> impl Fn(u8, Time) -> Option<Span> {
    move |_, _| Some(Span::from_us(us))
}

#[test]
fn the_paths_with_the_smallest_round_trips_are_kept() {
    let mut session = Session::new("keep = 2");
    // The first path to be asked is not the first to answer.
    let answer = |port: u8, _| Some(Span::from_us([30, 12, 25, 14][usize::from(port)]));
    assert_eq!(session.run(40, answer), [0, 1, 2, 3]);
    assert_eq!(session.run(200, answer), [1, 3]);
}

#[test]
fn a_path_that_does_not_answer_within_two_round_trips_is_not_kept() {
    let mut session = Session::new("keep = 3");
    let answer = |port: u8, _| (port < 2).then(|| Span::from_us(20));
    session.run(30, answer);
    assert_eq!(session.run(39, answer), [0, 1, 2, 3], "the round trip may be longer there");
    session.run(50, answer);
    assert_eq!(session.run(200, answer), [0, 1]);
}

/// Which ports got credits in each millisecond, which is a round trip, and how often paths were
/// chosen anew, if half of the credits of those milliseconds are lost that have a `-`, counted from
/// the second one.
fn in_rounds(rounds: &str) -> (Vec<Vec<u8>>, u32) {
    // As printed and without halving, losses leave hundreds of credits a round.
    let mut session = Session::new(
        "keep = 1\nreselect_after = 3\nfeedback = 'expresspass'\ndecrease = 'as-printed'\njitter = 0.0",
    );
    // The last of four paths is asked 7.8 us after the first one, and its answer ends the probing.
    let offset = 8;
    let mut count = [0; 4];
    let ports = (0..rounds.len() + 4).map(|round| {
        let good = round.checked_sub(1).and_then(|at| rounds.as_bytes().get(at)) != Some(&b'-');
        session.run(1_000 * (round as u64 + 1) + offset, |port, _| {
            let count = &mut count[usize::from(port)];
            *count += 1;
            (good || *count % 2 == 0).then(|| Span::from_ms(1))
        })
    });
    (ports.collect(), session.reselections())
}

#[test]
fn paths_are_chosen_anew_when_and_only_when_t_decreases_follow_each_other() {
    for (rounds, expected) in [
        ("++++++", 0),
        ("--", 0),
        ("--+--+--+", 0),
        ("--+-+--+-", 0),
        ("---", 1),
        ("+--+---", 1),
        // What the next round tells is of the old paths; then the count begins anew.
        ("----", 1),
        ("---+--+", 1),
        ("---+---", 2),
        ("-------", 2),
    ] {
        assert_eq!(in_rounds(rounds).1, expected, "{rounds}");
    }
    // What a round tells is known after the one behind it: then all paths are tried.
    let ports = in_rounds("---").0;
    let paths: Vec<usize> = ports.iter().map(Vec::len).collect();
    assert_eq!(paths[..6], [4, 1, 1, 1, 1, 4], "{ports:?}");
}

#[test]
fn a_path_that_falls_silent_is_given_up_after_t_round_trips() {
    let mut session = Session::new("keep = 1\nreselect_after = 3");
    session.run(60, always(20));
    let kept = session.run(200, always(20))[0];
    let others = |port: u8, _| (port != kept).then(|| Span::from_us(20));
    session.run(250, others);
    assert_eq!(session.reselections(), 0, "what was under way told of the last round trip");
    session.run(350, others);
    assert_eq!(session.reselections(), 1);
    assert_ne!(session.run(500, others), [kept]);
}

#[test]
fn nothing_is_chosen_anew_where_all_paths_are_kept() {
    let mut session = Session::new("keep = 4\nreselect_after = 1");
    let mut count = 0;
    session.run(1_000, |_, _| {
        count += 1;
        (count % 2 == 0).then(|| Span::from_us(20))
    });
    assert_eq!(session.reselections(), 0);
}

#[test]
fn a_stopped_subflow_gets_no_credits_and_the_last_one_goes_on() {
    let mut session = Session::new("keep = 4");
    for (stopped, left) in [(vec![2], vec![0, 1, 3]), (vec![0, 1], vec![3]), (vec![3], vec![3])] {
        session.stopped = stopped;
        let now = (session.world.now.since(Time::ZERO).as_us()) as u64;
        session.run(now + 100, always(20));
        assert_eq!(session.run(now + 200, always(20)), left);
    }
}

#[test]
fn a_request_names_its_ports_and_repetitions_take_the_next_path() {
    let protocol = protocol("");
    let mut world = World::new();
    let mut sender = protocol.sender(FlowSize::of(1_460, 1_460));
    protocol.start(&mut sender, &mut world);
    for _ in 0..4 {
        world.now = world.timer;
        protocol.sender_wakes(&mut sender, &mut world);
    }
    assert!(world.sent.iter().all(|(_, request)| request.wire_bytes == 84 + 3 * 2));
    let ports: Vec<u8> = world.sent.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [0, 1, 2, 3, 0]);
}

#[test]
fn a_sender_answers_by_the_port_of_the_credit_and_stops_subflows_near_the_end() {
    let protocol = protocol("single_below = 2");
    let mut world = World::new();
    let mut sender = protocol.sender(FlowSize::of(4 * 1_460, 1_460));
    protocol.start(&mut sender, &mut world);
    world.sent.clear();
    let mut flags = Vec::new();
    for (number, port) in [3, 1, 2, 1].into_iter().enumerate() {
        let credit = packet(Kind::Credit, 0, Time::from_ps(number as u64));
        protocol.sender_receives(&mut sender, by(port, &credit), &mut world);
        let (back_by, data) = world.sent[0];
        assert_eq!((back_by, data.kind, data.seq, data.sent), (port, Kind::Data, number as u32, credit.sent));
        flags.push(data.flags.has(PacketFlags::CWR));
        world.sent.drain(..1);
    }
    // One is left to send after the third, which came first; the fourth came by another port.
    assert_eq!(flags, [false, false, false, true]);
    assert_eq!(world.told(), [(0, Kind::CreditStop, 0)]);
    let answer = packet(Kind::Ack, 4, Time::ZERO);
    assert_eq!(protocol.sender_receives(&mut sender, by(0, &answer), &mut world), SenderState::Done);
}

/// A receiver of three segments that has the first two, of which one came by port 0 after 20 us.
fn two_of_three() -> (MaxPass, Receiver, World) {
    let protocol = protocol("keep = 4");
    let mut receiver = protocol.receiver(FlowSize::of(3 * 1_460, 1_460));
    let mut world = World::new();
    let request = packet(Kind::CreditRequest, 0, Time::ZERO);
    protocol.receiver_receives(&mut receiver, by(0, &request), &mut world);
    let credit = world.sent[0].1.sent;
    world.now = Time::ZERO + Span::from_us(20);
    for segment in 0..2 {
        let data = packet(Kind::Data, segment, credit);
        protocol.receiver_receives(&mut receiver, by(0, &data), &mut world);
    }
    world.sent.clear();
    (protocol, receiver, world)
}

#[test]
fn a_stop_that_overtook_data_is_answered_with_the_data_or_a_round_trip_later() {
    let stop = packet(Kind::CreditStop, 0, Time::ZERO);
    let (protocol, mut receiver, mut world) = two_of_three();
    protocol.receiver_receives(&mut receiver, by(2, &stop), &mut world);
    assert!(world.sent.is_empty());
    world.now += Span::from_us(3);
    protocol.receiver_receives(&mut receiver, by(1, &packet(Kind::Data, 2, Time::ZERO)), &mut world);
    assert_eq!(world.told(), [(2, Kind::Ack, 3)]);

    let (protocol, mut receiver, mut world) = two_of_three();
    protocol.receiver_receives(&mut receiver, by(2, &stop), &mut world);
    assert_eq!(world.timer.since(world.now), Span::from_us(20));
    world.now = world.timer;
    protocol.receiver_wakes(&mut receiver, &mut world);
    assert_eq!(world.told(), [(2, Kind::Ack, 2)]);
    assert_eq!(world.timer, Time::NEVER, "no credit follows");
}

#[test]
fn parameters_that_make_no_sense_are_named_with_what_is_allowed() {
    let cases = [
        ("paths = 4\nkeep = 5", "keep is 5; allowed: 1 to paths, 4"),
        ("keep = 0", "keep is 0; allowed: 1 to 255"),
        ("paths = 0", "paths is 0; allowed: 1 to 255"),
        ("reselect_after = 0", "reselect_after is 0; allowed: 1 decrease or more"),
        ("credit_queue = 0", "credit_queue is 0; allowed: 1 credit or more"),
        ("w_init = 0.6", "w_init is 0.6; allowed: w_min to w_max, 0.01 to 0.5"),
    ];
    for (line, expected) in cases {
        let spec: TransportSpec = toml::from_str(&format!("name = 'maxpass'\n{line}")).unwrap();
        assert_eq!(spec.validate().unwrap_err().to_string(), expected);
    }
}
