//! RDMA transports on a fabric: the card that asks queue pairs in turn, DCQCN's shares, go-back-N
//! and IRN under loss.

use weft_fabric::Results;
use weft_packet::Class;
use weft_traffic::Flow;
use weft_units::{Span, Time};

use crate::common::{Run, done_as, fabric, flow};

const ECMP: &str = "name = 'ecmp'";

/// One leaf, 40 Gbit/s, 1 us a cable; the marks of DCQCN §5.
fn leaf(hosts: u32) -> String {
    format!(
        "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = {hosts}\nhost_rate = '40Gbps'\n\
         fabric_rate = '40Gbps'\nhost_delay = '1us'\n[switch_queue]\nbuffer = '4MB'\nred = {{ min = '5KB', max = '200KB', probability = 0.01 }}\n"
    )
}

fn took(results: &Results, flows: &[Flow], number: usize) -> Span {
    results.flows[number].delivered.expect("it ended").since(flows[number].start)
}

/// Alone, a flow takes what its packets take on the first cable, and the last one on the way: all
/// at the rate of the cable.
#[test]
fn a_flow_alone_takes_its_ideal_time() {
    let fabric = fabric(&leaf(2));
    for transport in [
        "name = 'roce'",
        "name = 'irn'",
        "name = 'uec'",
        // What it sends once more at the end does not hold up anything, but is sent.
        "name = 'mprdma'\nearly_retransmission = false",
        "name = 'roce'\nmtu = '4KiB'\nwindow = '1MB'\nack_every = 8",
    ] {
        for bytes in [1, 1_024, 1_025, 4_096, 1_000_000] {
            let flows = [flow(3, 0, 1, bytes)];
            let results = Run::new(&fabric, transport, ECMP).flows(&flows);
            assert_eq!(took(&results, &flows, 0), results.flows[0].ideal, "{transport}, {bytes} bytes");
            assert_eq!(results.flows[0].sender.retransmissions, 0);
        }
    }
}

/// Queue pairs of one host take turns packet by packet: equal flows that begin together end one
/// packet after the other, and no more than one packet waits at the cable.
#[test]
fn queue_pairs_of_a_host_take_turns_packet_by_packet() {
    let fabric = fabric(&leaf(4));
    let flows: Vec<Flow> = (1..4).map(|host| flow(0, 0, host, 1_024_000)).collect();
    let run = Run { sample_every: Some(Span::from_us(10)), ..Run::new(&fabric, "name = 'roce'", ECMP) };
    let results = run.flows(&flows);
    let packet = Span::from_ps((1_024 + 62) * 200);
    let ends: Vec<Span> = (0..3).map(|number| took(&results, &flows, number)).collect();
    // The first one found the cable free before the others began: it is one turn ahead.
    let apart = [ends[1].saturating_sub(ends[0]), ends[2].saturating_sub(ends[1])];
    assert_eq!(apart, [packet.saturating_mul(3), packet]);
    // Three thousand packets of the cable, its delay, and the last packet on the second cable.
    assert_eq!(ends[2], packet.saturating_mul(3_001) + Span::from_us(2));
}

/// An answer does not wait behind data that its host has yet to send: for the packet on the cable
/// at most.
#[test]
fn answers_go_before_data_that_waits_at_the_card() {
    let fabric = fabric(&leaf(3));
    // Host 1 sends 10 MB all the while that it answers a packet of host 0.
    let flows = [flow(0, 1, 2, 10_000_000), flow(100, 0, 1, 1_000)];
    let results = Run::new(&fabric, "name = 'roce'", ECMP).flows(&flows);
    let record = &results.flows[1];
    let back = record.acknowledged.unwrap().since(record.delivered.unwrap());
    let most = Span::from_us(2) + Span::from_ps(2 * 66 * 200 + 2 * (1_024 + 62) * 200);
    assert!(back <= most, "{} us", back.as_us());
}

pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

/// Results of flows on one cable between two times.
pub struct Shared {
    /// Payload that each of them got, in bytes.
    pub got: Vec<f64>,
    /// The queue at that cable, in bytes, each 20 us; the shortest first.
    pub queues: Vec<f64>,
    /// The share of packets that came marked.
    pub marked: f64,
}

impl Shared {
    /// The mean queue, in bytes.
    pub fn queue(&self) -> f64 {
        self.queues.iter().sum::<f64>() / self.queues.len() as f64
    }

    /// Queue length in bytes that was not exceeded for this share of the time.
    pub fn queue_at(&self, share: f64) -> f64 {
        self.queues[((self.queues.len() - 1) as f64 * share).round() as usize]
    }
}

/// How many bytes each flow got between two times, and the mean queue at the last cable then.
fn shares(senders: u16, transport: &str, from: u64, until: u64) -> (Vec<f64>, f64) {
    let shared = share(&leaf(u32::from(senders) + 1), senders, transport, from, until);
    let queue = shared.queue();
    (shared.got, queue)
}

/// So many hosts of a leaf send to the one after them, for ever: what they do from one microsecond
/// to another.
pub fn share(leaf: &str, senders: u16, transport: &str, from: u64, until: u64) -> Shared {
    let fabric = fabric(leaf);
    let flows: Vec<Flow> = (0..senders)
        .map(|host| Flow { background: true, ..flow(u64::from(host), host, senders, 1) })
        .collect();
    let got = |us: u64| {
        let run = Run {
            time_limit: Span::from_us(us),
            sample_every: Some(Span::from_us(20)),
            ..Run::new(&fabric, transport, ECMP)
        };
        run.flows(&flows)
    };
    let (before, after) = (got(from), got(until));
    let bytes = |results: &Results, flow: usize| results.flows[flow].delivered_bytes as f64;
    let got = (0..flows.len()).map(|flow| bytes(&after, flow) - bytes(&before, flow)).collect();
    let receivers = |results: &Results, count: fn(&weft_transport::ReceiverStats) -> u64| -> f64 {
        results.flows.iter().map(|record| count(&record.receiver) as f64).sum()
    };
    let between = |count| receivers(&after, count) - receivers(&before, count);
    let marked = between(|stats| u64::from(stats.marked)) / between(|stats| stats.segments_received);
    let last = fabric.topology.link_to_host[usize::from(senders)];
    let begin = Time::ZERO + Span::from_us(from);
    let mut queues: Vec<f64> = after
        .samples
        .links
        .iter()
        .filter(|sample| sample.link == last && sample.at >= begin)
        .map(|sample| sample.backlog_bytes as f64)
        .collect();
    queues.sort_by(f64::total_cmp);
    Shared { got, queues, marked }
}

/// Flows share a cable fairly at the parameters of DCQCN §5, and the queue stands between the two
/// thresholds of its marks.
#[test]
fn dcqcn_shares_a_cable_fairly_with_a_queue_between_the_thresholds() {
    for senders in [2, 4, 8, 16] {
        let (shares, queue) = shares(senders, "name = 'roce'", 30_000, 130_000);
        let index = jain(&shares);
        let used = shares.iter().sum::<f64>() * 8.0 / 0.1 / 40e9;
        println!("{senders}: Jain {index:.4}, {used:.3} of the cable, {queue:.0} B");
        assert!(index > 0.9, "{senders} senders: Jain's index is {index}");
        assert!(used > 0.8, "{senders} senders: {used} of the cable");
        assert!((5e3..200e3).contains(&queue), "{senders} senders: {queue} B wait");
    }
}

/// With a buffer of twenty packets and no PFC everything arrives all the same, each byte once.
#[test]
fn what_a_short_queue_drops_is_sent_again() {
    let text = leaf(9).replace("buffer = '4MB'", "buffer = '20KB'");
    let fabric = fabric(&text);
    let flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 8, 300_000)).collect();
    for transport in [
        "name = 'roce'\ntimeout = '1ms'",
        "name = 'roce'\nprofile = 'conweave-ns3'",
        "name = 'irn'",
        "name = 'irn'\ndcqcn = true",
    ] {
        let results = Run::new(&fabric, transport, ECMP).flows(&flows);
        assert!(results.packets.dropped > 0, "{transport}: nothing was dropped");
        for record in &results.flows {
            assert!(record.acknowledged.is_some(), "{transport}: not done");
            assert_eq!(record.delivered_bytes, 300_000, "{transport}");
        }
        let sent: u32 = results.flows.iter().map(|record| record.receiver.nacks_sent).sum();
        assert!(sent > 0, "{transport}: nobody complained");
        let came: u32 = results.flows.iter().map(|record| record.sender.nacks).sum();
        assert!(came > 0 && came <= sent, "{transport}: {came} complaints of {sent} came");
    }
}

/// A run gives the same results in any number of partitions.
#[test]
fn groups_change_nothing() {
    let text = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\n[switch_queue]\nbuffer = '60KB'\nred = { min = '5KB', max = '40KB', probability = 0.2 }\n";
    let fabric = fabric(text);
    let flows: Vec<Flow> = (0..40)
        .map(|i| flow(i * 3, (i % 9) as u16, ((i * 5 + 1) % 9) as u16, 40_000 + i * 999))
        .filter(|flow| flow.src != flow.dst)
        .collect();
    for transport in
        ["name = 'roce'\ntimeout = '300us'", "name = 'irn'\ndcqcn = true", "name = 'uec'", "name = 'mprdma'"]
    {
        let one = Run::new(&fabric, transport, ECMP).flows(&flows);
        for (partitions, threads) in [(3, 1), (3, 2)] {
            let cut = Run { partitions, threads, ..Run::new(&fabric, transport, ECMP) }.flows(&flows);
            assert_eq!(done_as(cut, &one), one, "{transport}");
        }
    }
}

/// The window of Ultra Ethernet and that of Swift share a cable, and keep it busy.
#[test]
fn windows_share_a_cable_and_keep_it_busy() {
    for (transport, least) in [("name = 'uec'", 0.9), ("name = 'swift'", 0.9)] {
        for senders in [2, 8] {
            let (shares, queue) = shares(senders, transport, 5_000, 25_000);
            let index = jain(&shares);
            let used = shares.iter().sum::<f64>() * 8.0 / 0.02 / 40e9;
            println!("{transport}, {senders}: Jain {index:.4}, {used:.3} of the cable, {queue:.0} B");
            assert!(index > least, "{transport}, {senders} senders: Jain's index is {index}");
            // Headers take 6 % of a packet of 1 KB.
            assert!(used > 0.88, "{transport}, {senders} senders: {used} of the cable");
        }
    }
}

/// TCP's packets in a host's queue and queue pairs of its card share the cable, whether the port
/// has one queue or classes; and with strict priority for RDMA, TCP gets what is left.
#[test]
fn tcp_and_rdma_share_a_host() {
    let transports =
        "[[transport]]\nname = 'roce'\ndcqcn = false\n[[transport]]\nname = 'tcp'\nmax_window = '100KB'\n";
    let fabric = fabric(&leaf(3));
    let flows = [flow(0, 0, 1, 2_000_000), Flow { transport: 1, ..flow(0, 0, 2, 2_000_000) }];
    let results = Run::new(&fabric, transports, ECMP).flows(&flows);
    for (number, record) in results.flows.iter().enumerate() {
        assert!(record.acknowledged.is_some() && record.sender.retransmissions == 0, "flow {number}");
    }
    // Together they take what 4 MB with headers take, not more.
    let last = (0..2).map(|number| took(&results, &flows, number).as_us()).fold(0.0, f64::max);
    assert!(last < 4e6 * 1.07 * 8.0 / 40e9 * 1e6 + 20.0, "{last} us");
}

/// On a port with strict priority, queue pairs of the first class are hardly held up by a window of
/// TCP in the second one: their class has a packet ready whenever the cable is free. What is left
/// is TCP's.
#[test]
fn classes_of_the_host_port_say_who_goes_first() {
    let transports =
        "[[transport]]\nname = 'roce'\ndcqcn = false\n[[transport]]\nname = 'tcp'\nmax_window = '100KB'\n";
    let text = format!(
        "{}[host_queue]\nscheduler = 'strict'\n[[host_queue.class]]\nholds = ['short']\n\
         [[host_queue.class]]\nholds = ['long', 'unknown', 'best-effort']\n",
        leaf(3)
    );
    let fabric = fabric(&text);
    let rdma = Flow { class: Class::Short, ..flow(50, 0, 1, 2_000_000) };
    let tcp = Flow { transport: 1, class: Class::Long, ..flow(0, 0, 2, 4_000_000) };
    let both = [tcp, rdma];
    let alone = Run::new(&fabric, transports, ECMP).flows(&[rdma]);
    let alone = took(&alone, &[rdma], 0);
    let results = Run::new(&fabric, transports, ECMP).flows(&both);
    let packet = Span::from_ps(1_500 * 200);
    let beside = took(&results, &both, 1);
    assert!(beside <= alone + packet + packet, "{} us alone, {} us", alone.as_us(), beside.as_us());
    assert!(took(&results, &both, 0) > beside, "TCP has what is left");
    assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
}

/// Where the host's port has several classes, a queue pair may be asked at the very instant at
/// which the packet before it goes into service: it is asked again, and no flow is forgotten. Flows
/// go both ways, so that answers come between data, below a cap, so that each waits for answers.
#[test]
fn no_queue_pair_is_forgotten_at_a_port_with_classes() {
    let classes = |port: &str| {
        format!(
            "[{port}]\nscheduler = 'strict'\nbuffer = '4MB'\n[[{port}.class]]\nholds = ['acks']\n\
             [[{port}.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\n"
        )
    };
    let leaf = "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 8\nhost_rate = '100Gbps'\nhost_delay = '1us'\n";
    let fabric = fabric(&format!("{leaf}{}{}", classes("switch_queue"), classes("host_queue")));
    let flows: Vec<Flow> = (0..56u16)
        .map(|number| (number % 8, (number % 8 + 1 + number / 8) % 8, number))
        .map(|(from, to, number)| flow(u64::from(number), from, to, 400_000 + u64::from(number) * 997))
        .collect();
    let irn = "name = 'irn'\nprofile = 'conweave-ns3'\ndcqcn = false\nbdp_cap = '20KB'\nrto_low = '100ms'\nrto_high = '100ms'";
    let results = Run::new(&fabric, irn, ECMP).flows(&flows);
    let unfinished = results.flows.iter().filter(|record| record.acknowledged.is_none()).count();
    assert_eq!(unfinished, 0);
    assert!(results.flows.iter().all(|record| record.sender.timeouts == 0));
}

/// Two senders at the rate of the one cable that they share, for as long as it takes to queue a
/// hundred packets. A packet that is marked by what it finds behind itself when it leaves is one of
/// those at the front: half a queue before the one that came then.
#[test]
fn marks_at_departure_tell_of_a_queue_when_it_grows() {
    let first_mark = |at: &str| {
        let text = format!(
            "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 3\nhost_rate = '40Gbps'\nhost_delay = '1us'\n\
             [switch_queue]\nscheduler = 'strict'\nbuffer = '4MB'\nmark = '54300B'\nmark_at = '{at}'\n\
             [[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\n"
        );
        let fabric = fabric(&text);
        let flows = [flow(0, 0, 2, 102_400), flow(0, 1, 2, 102_400)];
        let results = Run::new(&fabric, "name = 'roce'\ndcqcn = false", ECMP).flows(&flows);
        results.flows.iter().map(|record| u64::from(record.sender.marked_acks)).sum::<u64>()
    };
    // 200 packets of 1,086 B come in pairs, and one of each leaves meanwhile: the queue grows to
    // 100 packets and falls again. At arrival those are marked that find more than 50 before
    // themselves: the second half. At departure those that leave more than 50 behind: from the 51st
    // that leaves to the 150th, all but a few at the edges.
    let [arrival, departure] = ["arrival", "departure"].map(first_mark);
    assert!((96..=102).contains(&arrival), "{arrival}");
    assert!((92..=102).contains(&departure), "{departure}");
}

/// A port that marks what leaves works that out late where nobody looks: also of what has left when
/// the time is over.
#[test]
fn marks_at_departure_are_the_same_watched_or_not_wherever_the_time_is_over() {
    let text = "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 3\nhost_rate = '40Gbps'\nhost_delay = '1us'\n\
                [switch_queue]\nscheduler = 'strict'\nbuffer = '4MB'\nred = { min = '2KB', max = '20KB', probability = 0.5 }\n\
                mark_at = 'departure'\n[[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\n";
    let fabric = fabric(text);
    let flows = [flow(0, 0, 2, 1_000_000), flow(0, 1, 2, 1_000_000)];
    let mut marked = 0;
    for us in 20..60 {
        let [watched, plain] = [Some(Span::from_us(1)), None].map(|sample_every| {
            let time_limit = Span::from_us(us);
            Run { time_limit, sample_every, ..Run::new(&fabric, "name = 'roce'", ECMP) }.flows(&flows)
        });
        assert_eq!(plain.links, watched.links, "at {us} us");
        assert_eq!(plain.classes, watched.classes, "at {us} us");
        marked = plain.links.iter().map(|link| link.marked).sum();
    }
    assert!(marked > 20, "{marked}");
}
