//! Hosts that live in a time of their own, with a toy in place of a kernel: a window of packets a
//! flow, one acknowledgement a packet, and a timer that sends the first missing one again.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use weft_fabric::{
    Ending, ExternalHostError, ExternalHosts, ExternalPacket, Frame, Results, Simulation, SimulationInput,
    Status,
};
use weft_packet::{FlowId, HostId, Kind, Packet, PacketFlags};
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Bytes, Span, Time};

use crate::common::{Run, SMALL, fabric, flow, scheme_spec, transports};

const PAYLOAD: u64 = 1_000;
const HEADERS: u16 = 40;
const WINDOW: u64 = 20;
const TIMEOUT: Span = Span::from_ms(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Start(u32),
    Data(u32, u64),
    Ack(u32, u64),
    Timer(u32, u64),
    /// A packet of a program: its connection, and how many more are sent to and fro.
    Talk(u32, u64),
    Late(u32),
}

/// One flow: its sender and its receiver.
#[derive(Default, Clone)]
struct Ends {
    next: u64,
    acknowledged: u64,
    arrived: BTreeSet<u64>,
    progress: u64,
}

struct Toy<'a> {
    fabric: &'a Fabric,
    flows: &'a [Flow],
    felt_after: Span,
    lookahead: Span,
    reached: Time,
    /// At one instant, by what happens: not by when it came to be known.
    events: BinaryHeap<Reverse<(Time, What)>>,
    busy: Vec<Time>,
    ends: Vec<Ends>,
    ended: Vec<FlowId>,
    /// Instant at which the external hosts fail.
    breaks_at: Option<Time>,
    /// Connections of programs that go on.
    talking: usize,
    /// So long after a flow has ended inside, a copy of its first packet that waited in its host
    /// leaves.
    lags: Option<Span>,
}

impl<'a> Toy<'a> {
    fn new(fabric: &'a Fabric, flows: &'a [Flow], felt_after: Span, lookahead: Span) -> Self {
        let busy = vec![Time::ZERO; fabric.topology.hosts];
        let ends = vec![Ends::default(); flows.len()];
        let (events, ended) = (BinaryHeap::new(), Vec::new());
        Self {
            fabric,
            flows,
            felt_after,
            lookahead,
            reached: Time::ZERO,
            events,
            busy,
            ends,
            ended,
            breaks_at: None,
            talking: 0,
            lags: None,
        }
    }

    /// Programs of hosts 0 and 2 send each other so many packets, by turns, from this instant on.
    fn talk(&mut self, connection: u32, packets: u64, at: Time) {
        self.talking += 1;
        self.push(at, What::Talk(connection, packets));
    }

    fn send_talk(&mut self, now: Time, connection: u32, left: u64, sent: &mut Vec<ExternalPacket>) {
        let ends = if left.is_multiple_of(2) { [0, 2] } else { [2, 0] }.map(HostId);
        let mut packet = Packet::default();
        packet.flow = FlowId::of_connection(connection);
        (packet.src, packet.dst, packet.wire_bytes, packet.seq) =
            (ends[0], ends[1], PAYLOAD as u16, left as u32);
        let begins = self.busy[packet.src.index()].max(now);
        self.busy[packet.src.index()] = begins + Span::from_us(1);
        let frame = Frame { bytes: vec![1], entropy: Some(connection), ends: left < 2, ..Frame::default() };
        sent.push(ExternalPacket { begins, packet, frame });
    }

    fn push(&mut self, at: Time, what: What) {
        assert!(at >= self.reached, "nothing comes to a guest for a time that it has passed");
        self.events.push(Reverse((at, what)));
    }

    fn segments(&self, flow: u32) -> u64 {
        self.flows[flow as usize].size_bytes.div_ceil(PAYLOAD)
    }

    fn send(&mut self, now: Time, flow: u32, is_data: bool, number: u64, sent: &mut Vec<ExternalPacket>) {
        let traffic = &self.flows[flow as usize];
        let (src, dst) = if is_data { (traffic.src, traffic.dst) } else { (traffic.dst, traffic.src) };
        let bytes = if is_data { PAYLOAD as u16 + HEADERS } else { HEADERS };
        let mut packet = Packet::default();
        (packet.flow, packet.src, packet.dst, packet.wire_bytes) = (FlowId(flow), src, dst, bytes);
        packet.kind = if is_data { Kind::Data } else { Kind::Ack };
        packet.seq = number as u32;
        let (payload, acknowledged) =
            if is_data { (number * PAYLOAD..(number + 1) * PAYLOAD, 0) } else { (0..0, number * PAYLOAD) };
        let begins = self.busy[src.index()].max(now);
        let wire = Bytes::new(u64::from(bytes + self.fabric.topology.overhead_bytes));
        self.busy[src.index()] =
            begins + self.fabric.topology.links[src.index()].condition.rate.service(wire);
        let frame = Frame { bytes: vec![u8::from(is_data)], payload, acknowledged, ..Frame::default() };
        sent.push(ExternalPacket { begins, packet, frame });
    }

    fn work(&mut self, now: Time, what: What, sent: &mut Vec<ExternalPacket>) {
        match what {
            What::Start(flow) => {
                let first = WINDOW.min(self.segments(flow));
                (0..first).for_each(|number| self.send(now, flow, true, number, sent));
                self.ends[flow as usize].next = first;
                self.push(now + TIMEOUT, What::Timer(flow, 0));
            }
            What::Talk(_, 0) => self.talking -= 1,
            What::Talk(connection, left) => self.send_talk(now, connection, left - 1, sent),
            What::Data(flow, number) => {
                let arrived = &mut self.ends[flow as usize].arrived;
                arrived.insert(number);
                let in_order = (0..=arrived.len() as u64).find(|number| !arrived.contains(number)).unwrap();
                self.send(now, flow, false, in_order, sent);
            }
            What::Ack(flow, number) => {
                let all = self.segments(flow);
                let ends = &mut self.ends[flow as usize];
                let is_last = number > ends.acknowledged && number == all;
                ends.acknowledged = ends.acknowledged.max(number);
                ends.progress += 1;
                let next = ends.next;
                if next < all {
                    ends.next += 1;
                    self.send(now, flow, true, next, sent);
                }
                if is_last {
                    self.ended.push(FlowId(flow));
                    if let Some(lag) = self.lags {
                        self.push(now + lag, What::Late(flow));
                    }
                }
            }
            What::Late(flow) => self.send(now, flow, true, 0, sent),
            What::Timer(flow, progress) => {
                let ends = &self.ends[flow as usize];
                let (missing, now_progress) = (ends.acknowledged, ends.progress);
                if missing < self.segments(flow) {
                    if progress == now_progress {
                        self.send(now, flow, true, missing, sent);
                    }
                    self.push(now + TIMEOUT, What::Timer(flow, now_progress));
                }
            }
        }
    }
}

impl ExternalHosts for Toy<'_> {
    fn has(&self, _: HostId) -> bool {
        true
    }

    fn felt_after(&self) -> Span {
        self.felt_after
    }

    fn start_flow(&mut self, flow: FlowId, at: Time) -> Result<(), ExternalHostError> {
        self.push(at, What::Start(flow.0));
        Ok(())
    }

    fn deliver(&mut self, packet: &Packet, bytes: Vec<u8>, at: Time) -> Result<(), ExternalHostError> {
        let is_data = packet.kind == Kind::Data;
        assert_eq!(bytes, [u8::from(is_data)], "a packet keeps its bytes");
        assert!(!packet.flags.has(PacketFlags::CE), "nothing was marked that cannot be");
        let (flow, number) = (packet.flow.0, u64::from(packet.seq));
        if let Some(connection) = packet.flow.connection() {
            self.push(at, What::Talk(connection, number));
            return Ok(());
        }
        self.push(at, if is_data { What::Data(flow, number) } else { What::Ack(flow, number) });
        Ok(())
    }

    fn frame(&mut self, packet: &Packet, _: Time) -> Result<Frame, ExternalHostError> {
        Err(format!("{packet:?} is of a simulated host").into())
    }

    fn reaches_simulated(&mut self, packet: &Packet, _: &Frame, _: Time) {
        unreachable!("{packet:?} left the guests");
    }

    fn next_event(&self) -> Option<Time> {
        self.events.peek().map(|Reverse((at, _))| *at)
    }

    fn advance(&mut self, until: Time, sent: &mut Vec<ExternalPacket>) -> Result<Time, ExternalHostError> {
        assert!(until >= self.reached, "time goes on");
        let mut stop = until;
        while let Some(&Reverse((at, what))) = self.events.peek().filter(|event| event.0.0 < stop) {
            if self.breaks_at.is_some_and(|breaks| breaks <= at) {
                return Err("the toy is broken".into());
            }
            self.events.pop();
            self.reached = at;
            let first = sent.len();
            self.work(at, what, sent);
            let began = sent[first..].iter().map(|sent| sent.begins).min();
            stop = began.map_or(stop, |began| stop.min(began + self.lookahead));
        }
        self.reached = stop;
        Ok(stop)
    }

    fn take_ended(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.ended)
    }

    fn least_timeout(&self) -> Span {
        TIMEOUT
    }

    fn is_busy(&self) -> bool {
        self.talking > 0
    }
}

/// A run with external hosts alone.
fn run(toy: &mut Toy<'_>, run: &Run<'_>) -> (Results, Ending, Option<ExternalHostError>) {
    let (flows, transport, scheme) = (toy.flows, transports(run.transport), scheme_spec(run.scheme));
    let input = SimulationInput { external_hosts: Some(toy), ..run.input(flows, &transport, &scheme) };
    let mut simulation = Simulation::new(input).unwrap();
    let ending = loop {
        if let Status::Finished(ending) = simulation.advance(1_000) {
            break ending;
        }
    };
    let failure = simulation.take_external_failure();
    (simulation.into_results(), ending, failure)
}

const TCP: &str = "name = 'tcp'\nmss = '1000B'";
/// Time from the begin of a transmission until a switch has it, after a cable of 1 us and 40 bytes
/// at 10 Gbit/s; a host has it after twice that.
const UP: Span = Span::from_ns(1_032);

fn many() -> Vec<Flow> {
    (0..40u16)
        .map(|n| flow(u64::from(n) * 7, n % 4, (n % 4 + 1 + n % 3) % 4, 3_000 + u64::from(n) * 900))
        .collect()
}

#[test]
fn how_far_the_fabric_is_ahead_and_how_far_external_hosts_go_on_moves_no_flow() {
    let fabric = fabric(&format!("{SMALL}[switch_queue]\nbuffer = '6KB'\nmark = 'never'\n"));
    let flows = many();
    for scheme in ["name = 'ecmp'", "name = 'drill'", "name = 'conga'", "name = 'letflow'"] {
        let outcome = |felt_after, lookahead| {
            let mut toy = Toy::new(&fabric, &flows, felt_after, lookahead);
            let (results, ending, _) = run(&mut toy, &Run::new(&fabric, TCP, scheme));
            assert_eq!(ending, Ending::AllDone, "{scheme}");
            results.flows
        };
        let usual = outcome(UP, UP + UP);
        assert!(usual.iter().any(|flow| flow.dropped > 0), "{scheme}: a queue overflows");
        assert!(usual.iter().all(|flow| flow.delivered.is_some() && flow.acknowledged >= flow.delivered));
        for (felt_after, lookahead) in
            [(Span::from_ps(1), UP + UP), (UP, Span::from_ns(1)), (Span::from_ns(300), UP)]
        {
            for (flow, (found, usual)) in outcome(felt_after, lookahead).iter().zip(&usual).enumerate() {
                assert_eq!(found, usual, "{scheme}: flow {flow}, {felt_after}, {lookahead}");
            }
        }
    }
}

#[test]
fn edge_schemes_serve_external_hosts_as_they_serve_other_hosts() {
    let fabric = fabric(SMALL);
    let flows = many();
    for scheme in ["name = 'presto'", "name = 'clove'", "name = 'hermes'", "name = 'rps'"] {
        let mut toy = Toy::new(&fabric, &flows, UP, UP + UP);
        let (results, ending, _) = run(&mut toy, &Run::new(&fabric, TCP, scheme));
        assert_eq!(ending, Ending::AllDone, "{scheme}");
        let sums = results.flows.iter().map(|flow| (flow.sender.segments_sent, flow.delivered_bytes));
        let expected = flows.iter().map(|flow| (flow.size_bytes.div_ceil(PAYLOAD), flow.size_bytes));
        assert!(sums.eq(expected), "{scheme}: every segment once");
    }
}

#[test]
fn what_belongs_to_no_flow_passes_every_kind_of_scheme_and_the_run_lasts_as_long_as_it_goes_on() {
    let fabric = fabric(SMALL);
    let (flows, none) = (many(), Vec::new());
    let schemes = ["ecmp", "letflow", "conga", "presto", "clove", "hermes", "hedera", "meet"];
    for scheme in schemes.map(|name| format!("name = '{name}'")) {
        for flows in [&flows, &none] {
            let mut toy = Toy::new(&fabric, flows, UP, UP + UP);
            (0..8).for_each(|connection| toy.talk(connection, 100, Time::ZERO + Span::from_us(3)));
            let (results, ending, _) = run(&mut toy, &Run::new(&fabric, TCP, &scheme));
            assert_eq!((ending, toy.talking), (Ending::AllDone, 0), "{scheme}");
            // A packet is on its way for four cables of 1 us and more.
            assert!(results.end >= Time::ZERO + Span::from_us(400), "{scheme}: {:?}", results.end);
            let found: u64 = results.flows.iter().map(|flow| flow.delivered_bytes).sum();
            let expected: u64 = flows.iter().map(|flow| flow.size_bytes).sum();
            assert_eq!(found, expected, "{scheme}: flows get their own bytes alone");
        }
    }
}

#[test]
fn what_is_dropped_is_sent_again_after_a_silence_and_counts_as_a_timeout() {
    // The cable is dead while the last acknowledgements of the flow are waited for.
    let cut = "[[fault]]\nlink = 'leaf1-host2'\nat = '5us'\nuntil = '8us'\ndown = true\n";
    let fabric = fabric(&format!("{SMALL}{cut}"));
    let flows = [flow(0, 0, 2, 5_000)];
    let mut toy = Toy::new(&fabric, &flows, UP, UP + UP);
    let (results, ending, _) = run(&mut toy, &Run::new(&fabric, TCP, "name = 'ecmp'"));
    let record = &results.flows[0];
    assert_eq!(ending, Ending::AllDone);
    assert!(record.dropped > 0, "{record:?}");
    assert_eq!(record.sender.retransmissions, record.sender.timeouts, "each after a silence of its own");
    assert_eq!(record.retransmissions.after_loss, record.dropped);
    assert!(record.sender.timed_out >= TIMEOUT);
    let breakdown = record.fct_breakdown;
    let sum = breakdown.transmission
        + breakdown.waits.iter().copied().sum::<Span>()
        + breakdown.reordering
        + breakdown.timeouts
        + breakdown.acknowledgement
        + breakdown.window;
    assert_eq!(sum, record.delivered.unwrap().since(Time::ZERO), "the parts of its time add up");
}

#[test]
fn what_leaves_a_host_after_its_flow_has_ended_counts_as_what_left_before() {
    let fabric = fabric(SMALL);
    let flows = [flow(0, 0, 2, 5_000), flow(500, 1, 3, 5_000)];
    let mut toy = Toy::new(&fabric, &flows, UP, UP + UP);
    toy.lags = Some(Span::from_us(20));
    let (results, ending, _) = run(&mut toy, &Run::new(&fabric, TCP, "name = 'ecmp'"));
    assert_eq!(ending, Ending::AllDone);
    let first = &results.flows[0];
    assert_eq!((first.sender.segments_sent, first.sender.retransmissions), (6, 1));
    assert_eq!((first.receiver.segments_received, first.receiver.duplicates), (6, 1));
}

#[test]
fn external_hosts_that_are_gone_end_the_run_with_their_reason_and_nothing_counts_as_finished() {
    let fabric = fabric(SMALL);
    let flows = many();
    let mut toy = Toy::new(&fabric, &flows, UP, UP + UP);
    toy.breaks_at = Some(Time::ZERO + Span::from_us(50));
    let (results, ending, failure) = run(&mut toy, &Run::new(&fabric, TCP, "name = 'ecmp'"));
    assert_eq!(ending, Ending::Broken);
    assert_eq!(failure.unwrap().to_string(), "the toy is broken");
    assert!(results.flows.iter().any(|flow| flow.delivered.is_none()));
}

#[test]
fn a_time_limit_leaves_flows_of_external_hosts_unfinished_with_what_is_known_of_them() {
    let fabric = fabric(SMALL);
    let flows = [flow(0, 0, 2, 100_000_000)];
    let mut toy = Toy::new(&fabric, &flows, UP, UP + UP);
    let limited = Run { time_limit: Span::from_us(500), ..Run::new(&fabric, TCP, "name = 'ecmp'") };
    let (results, ending, _) = run(&mut toy, &limited);
    assert_eq!((ending, results.end), (Ending::TimeLimit, Time::ZERO + Span::from_us(500)));
    let record = &results.flows[0];
    assert!(
        record.delivered.is_none() && record.delivered_bytes > 100_000 && record.sender.segments_sent > 100
    );
}
