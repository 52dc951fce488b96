//! Pauses by hand: when a port is told and obeys, what a frame takes, and for how long flows at an
//! RDMA card are stopped.

use weft_fabric::{Blocked, Results};
use weft_packet::Class;
use weft_topology::{Fabric, Tier};
use weft_traffic::Flow;
use weft_units::{Span, Time};

use crate::common::{Run, done_as, fabric, flow, link_named};

/// A queue pair that sends as fast as the cable takes it, and is answered at its end alone.
const RDMA: &str = "name = 'roce'\nack_every = 60000\ntimeout = '100ms'";
/// A full packet of it, and what it takes at 10 Gbit/s.
const PACKET_BYTES: u64 = 1_024 + 62;
const PACKET: Span = Span::from_ps(PACKET_BYTES * 800);
/// A pause, or its end, at 10 Gbit/s.
const FRAME: Span = Span::from_ps(64 * 800);
/// Propagation of a cable.
const DELAY: Span = Span::from_us(1);
/// How long a port of 10 Gbit/s may take to obey: 60 quanta of 512 bits.
const RESPONSE: Span = Span::from_ps(60 * 512 * 100);

/// One leaf of 10 Gbit/s, which pauses a port behind which more than `xoff` bytes wait.
fn leaf(hosts: u32, xoff: &str, more: &str) -> Fabric {
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = {hosts}\nhost_rate = '10Gbps'\n\
         fabric_rate = '10Gbps'\nhost_delay = '1us'\n[shared_buffer]\nsize = '16MB'\n\
         [switch_queue]\nlossless = true\nmark = 'never'\n[pause]\nxoff = '{xoff}'\n{more}"
    ))
}

fn times(span: Span, count: u64) -> Span {
    span.saturating_mul(count)
}

/// Packets of hosts 0 and 1 come to the leaf together, one each a packet time, and leave by turns:
/// of those of host 1, four wait when its sixth has come, of those of host 0 when its seventh has.
/// That is more than XOFF.
#[test]
fn a_port_obeys_a_frame_of_64_bytes_after_its_delay_and_the_longest_that_the_standard_allows() {
    let fabric = leaf(3, "3.8KB", "");
    let flows = [0, 1].map(|host| flow(0, host, 2, 100 * 1_024));
    let results = Run::new(&fabric, RDMA, "name = 'ecmp'").flows(&flows);
    let first = |host: u32| {
        let of_cable = results.pauses.iter().filter(|pause| pause.link == host);
        of_cable.map(|pause| pause.totals.first).min().expect("it was paused")
    };
    for (host, packets) in [(1, 6), (0, 7)] {
        let found = Time::ZERO + times(PACKET, packets) + DELAY;
        assert_eq!(first(host), found + FRAME + DELAY + RESPONSE, "host {host}");
    }
}

/// Host 1 is sent to as fast as its cable takes it, while it is told of pauses: each frame comes
/// ahead of what waits, and delays it.
#[test]
fn a_frame_of_64_bytes_delays_what_is_behind_it_by_what_it_takes() {
    let fabric = leaf(4, "3.8KB", "");
    let packets = 1_000;
    let flows = [flow(0, 0, 2, 100 * 1_024), flow(0, 1, 2, 100 * 1_024), flow(0, 3, 1, packets * 1_024)];
    let results = Run::new(&fabric, RDMA, "name = 'ecmp'").flows(&flows);
    let pauses: u64 =
        results.pauses.iter().filter(|pause| pause.link == 1).map(|one| one.totals.pauses).sum();
    assert!(pauses > 5 && results.pauses.iter().all(|pause| pause.link != 3), "{pauses}");
    // The last answer to host 1 goes to it, too.
    let answers = results.links[link_named(&fabric, "leaf0>host1")].packets - packets - 2 * pauses;
    assert_eq!(answers, 1);
    let alone = times(PACKET, packets + 1) + times(DELAY, 2);
    let answer = Span::from_ps(results.links[2].bytes / results.links[2].packets * 800);
    let took = results.flows[2].delivered.expect("it ended").since(Time::ZERO);
    assert_eq!(took, alone + times(FRAME, 2 * pauses) + answer);
}

/// How long pauses stopped each flow.
fn blocked(results: &Results, flow: usize) -> Blocked {
    let of_flow = results.blocked.iter().find(|(id, _)| id.index() == flow);
    of_flow.map(|(_, blocked)| *blocked).unwrap_or_default()
}

/// Packets bring it in units of 256 ps.
fn is_nearly(found: Span, exact: Span, packets: u64) -> bool {
    found <= exact && exact <= found + Span::from_ps(256 * packets)
}

/// The pauses of host 0's cable: how many, how long, when the first began and the last ended.
fn of_cable(results: &Results) -> (u64, Span, Time, Time) {
    let of_cable = || results.pauses.iter().filter(|pause| pause.link == 0).map(|pause| pause.totals);
    let sum = of_cable().fold(Span::ZERO, |sum, totals| sum + totals.paused);
    let first = of_cable().map(|totals| totals.first).min().expect("it was paused");
    let last = of_cable().map(|totals| totals.last).max().expect("it was paused");
    (of_cable().map(|totals| totals.pauses).sum(), sum, first, last)
}

/// Eight hosts send to host 9. Host 0 sends to host 8, too, by four queue pairs that always have
/// something to send: one of its packets waits at the port when its class is paused, the others at
/// the card. Each is stopped as long as the class.
#[test]
fn every_queue_pair_that_is_ready_is_stopped_as_long_as_its_class_is_paused() {
    let fabric = leaf(10, "60KB", "");
    let mut flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 9, 500_000)).collect();
    flows.extend((0..4).map(|_| flow(0, 0, 8, 4_000_000)));
    let mut run = Run::new(&fabric, RDMA, "name = 'ecmp'");
    let results = run.flows(&flows);
    let (pauses, paused, _, last) = of_cable(&results);
    assert!(paused > Span::from_us(100), "{paused}");
    for innocent in 8..12 {
        assert!(results.flows[innocent].delivered.is_some_and(|at| at > last + Span::from_us(100)));
        let Blocked { blocked, innocently } = blocked(&results, innocent);
        assert_eq!(blocked, innocently, "flow {innocent}");
        assert!(is_nearly(blocked, paused, pauses), "flow {innocent}: {blocked} of {paused}");
    }
    // The one to host 9 waits for nobody else's sake.
    let incast = blocked(&results, 0);
    assert!(incast.innocently.is_zero() && !incast.blocked.is_zero() && incast.blocked <= paused);
    for (partitions, threads) in [(2, 1), (2, 2)] {
        (run.partitions, run.threads) = (partitions, threads);
        assert_eq!(done_as(run.flows(&flows), &results), results);
    }
}

/// TCP has its window in the host's queue, in the class of a queue pair that always has something
/// to send, and whose packet may have left before those of TCP that a pause holds: it waits for
/// them, and so for the pause.
#[test]
fn a_queue_pair_behind_packets_of_tcp_in_its_class_is_stopped_as_long_as_that_is_paused() {
    let fabric = leaf(10, "60KB", "");
    let transports =
        format!("[[transport]]\n{RDMA}\n[[transport]]\nname = 'tcp'\necn = 'off'\ninitial_window = 64");
    let mut flows: Vec<Flow> = (1..8).map(|host| flow(0, host, 9, 500_000)).collect();
    flows.push(flow(0, 0, 8, 8_000_000));
    flows.push(Flow { transport: 1, ..flow(1, 0, 9, 500_000) });
    let results = Run::new(&fabric, &transports, "name = 'ecmp'").flows(&flows);
    let (pauses, paused, _, last) = of_cable(&results);
    assert!(paused > Span::from_us(100), "{paused}");
    assert!(results.flows[7].delivered.is_some_and(|at| at > last + Span::from_us(100)));
    let Blocked { blocked, innocently } = blocked(&results, 7);
    assert_eq!(blocked, innocently);
    assert!(is_nearly(blocked, paused, 2 * pauses), "{blocked} of {paused}");
}

/// Host 0's card has queue pairs in two classes. While the second one is paused those in the first
/// go on at the rate of the cable, and when it is no longer paused those in it do: the card forgets
/// nobody.
#[test]
fn a_card_whose_class_is_paused_goes_on_with_another_class_and_then_with_that_one() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 10\nhost_rate = '10Gbps'\nhost_delay = '1us'\n\
         [shared_buffer]\nsize = '16MB'\n[pause]\nxoff = '60KB'\n\
         [switch_queue]\nscheduler = 'strict'\nlossless = true\nmark = 'never'\n\
         [[switch_queue.class]]\nholds = ['tc5', 'schemes']\n\
         [[switch_queue.class]]\nholds = ['unknown', 'short', 'long', 'best-effort']\n",
    );
    let mut flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 9, 512_000)).collect();
    flows.extend((0..2).map(|_| Flow { class: Class::Tc5, ..flow(200, 0, 8, 512_000) }));
    let results = Run::new(&fabric, RDMA, "name = 'ecmp'").flows(&flows);
    assert_eq!(results.packets.dropped, 0);
    assert!(results.pauses.iter().all(|pause| pause.class == 1));
    let (_, paused, first, last) = of_cable(&results);
    let begins = flows[8].start;
    assert!(first < begins && last > begins + Span::from_us(900) && paused > Span::from_us(500), "{paused}");
    // Both have the cable for themselves, but for the packet of the other class that is being sent
    // when they begin.
    let both = times(PACKET, 1_000) + times(DELAY, 2) + PACKET;
    let took = flows[8..].iter().zip(&results.flows[8..]);
    let longest =
        took.map(|(flow, record)| record.delivered.expect("it ends").since(flow.start)).max().unwrap();
    assert!(longest >= both && longest <= both + times(PACKET, 2), "{longest} of {both}");
    let ended: Vec<Time> =
        results.flows[..8].iter().map(|record| record.delivered.expect("it ends")).collect();
    // 8 x 500 packets come to host 9 one after the other.
    let all = Time::ZERO + times(PACKET, 8 * 500 + 1) + times(DELAY, 2);
    let end = ended.into_iter().max().unwrap();
    assert!(end >= all && end <= all + Span::from_us(100), "{end:?} of {all:?}");
}

/// One pause of host 0's cable. A queue pair that begins while it lasts is stopped from then on.
/// One whose window holds a packet waits for its answer first, and is stopped from when that came.
#[test]
fn a_queue_pair_that_could_not_send_anyway_is_not_stopped() {
    let fabric = leaf(10, "60KB", "hysteresis = '50KB'");
    let incast: Vec<Flow> = (0..8).map(|host| flow(0, host, 9, 100_000)).collect();
    let transports =
        format!("[[transport]]\n{RDMA}\n[[transport]]\nlabel = 'windowed'\n{RDMA}\nwindow = '1KB'");
    let run = Run::new(&fabric, &transports, "name = 'ecmp'");
    let (pauses, paused, first, last) = of_cable(&run.flows(&incast));
    assert!(pauses == 1 && paused > Span::from_us(50), "{pauses}, {paused}");
    // It begins when a third of the pause is over.
    let begins = Time::from_ps((first.as_ps() * 2 + last.as_ps()) / 3);
    let late = Flow { start: begins, ..flow(0, 0, 8, 100_000) };
    let results = run.flows(&[incast.as_slice(), &[late]].concat());
    assert_eq!(of_cable(&results), (pauses, paused, first, last), "it changes no pause");
    let stopped = blocked(&results, 8);
    assert_eq!(stopped.blocked, stopped.innocently);
    assert!(is_nearly(stopped.blocked, last.since(begins), 2), "{}", stopped.blocked);
    let breakdown = results.flows[8].fct_breakdown;
    assert!(is_nearly(breakdown.pause, last.since(begins), 1), "{breakdown:?}");
    // What is left of it is between its packets, for which it takes turns with another.
    assert!(times(breakdown.window, 10) < breakdown.pause, "{breakdown:?}");
    assert_eq!(breakdown.paused_tier, Tier::Host as u8);
    // It sends its first packet just before the pause, and its second when the first is answered.
    let begins = Time::from_ps(first.as_ps() - 4 * PACKET.as_ps());
    let windowed = Flow { start: begins, transport: 1, ..flow(0, 0, 8, 2_048) };
    let results = run.flows(&[incast.as_slice(), &[windowed]].concat());
    let (stopped, (_, _, first, last)) = (blocked(&results, 8).blocked, of_cable(&results));
    assert!(first >= begins + times(PACKET, 4) && first < begins + times(PACKET, 6), "just before the pause");
    // Three packets may go before its first one. Then there are two cables there, and two back for
    // an answer of 66 bytes at most.
    let least = times(PACKET, 2) + times(DELAY, 4);
    let most = least + times(PACKET, 3) + Span::from_ps(2 * 66 * 800);
    let held = last.since(begins).saturating_sub(stopped);
    assert!(held >= least && held <= most, "{held}: {stopped} of {}", last.since(begins));
}

/// A packet of TCP comes to a port that is paused, behind one of RDMA: the pause is a part of its
/// own, and what it waits then for that packet is its wait.
#[test]
fn what_a_packet_waits_for_a_pause_is_no_wait_for_others() {
    let fabric = leaf(10, "60KB", "hysteresis = '50KB'");
    let incast: Vec<Flow> = (0..8).map(|host| flow(0, host, 9, 100_000)).collect();
    let transports = format!("[[transport]]\n{RDMA}\n[[transport]]\nname = 'tcp'\necn = 'off'");
    let run = Run::new(&fabric, &transports, "name = 'ecmp'");
    let (_, _, first, last) = of_cable(&run.flows(&incast));
    let begins = Time::from_ps((first.as_ps() * 2 + last.as_ps()) / 3);
    let one = Flow { start: begins, transport: 1, ..flow(0, 0, 8, 1_000) };
    let results = run.flows(&[incast.as_slice(), &[one]].concat());
    assert_eq!(of_cable(&results).3, last, "it changes no pause");
    let breakdown = results.flows[8].fct_breakdown;
    assert!(is_nearly(breakdown.pause, last.since(begins), 1), "{breakdown:?}");
    let waited = breakdown.pause + breakdown.waits[Tier::Host as usize];
    assert!(is_nearly(waited, last.since(begins) + PACKET, 1), "{breakdown:?}");
    let fct = results.flows[8].delivered.expect("it ended").since(begins);
    assert_eq!((breakdown.transmission, breakdown.window), (fct.saturating_sub(waited), Span::ZERO));
    assert!(is_nearly(results.flows[8].ideal, breakdown.transmission, 1));
}

/// Whatever waits for pauses, in queues or at cards: the parts of each flow's time are its time.
#[test]
fn the_parts_of_a_time_are_the_whole_where_ports_pause() {
    let fabric = leaf(10, "20KB", "");
    let mut flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 9, 300_000)).collect();
    flows.extend((0..4).map(|number| flow(10 * number, number as u16, 8, 200_000)));
    for transport in
        [RDMA, "name = 'tcp'\necn = 'off'\ninitial_window = 64", "name = 'irn'\nbdp_cap = '60KB'"]
    {
        let results = Run::new(&fabric, transport, "name = 'ecmp'").flows(&flows);
        for (record, flow) in results.flows.iter().zip(&flows) {
            let breakdown = record.fct_breakdown;
            let waits = breakdown.waits.into_iter().sum::<Span>();
            let sum = breakdown.transmission
                + waits
                + breakdown.reordering
                + breakdown.timeouts
                + breakdown.acknowledgement;
            let sum = sum + breakdown.window + breakdown.pause;
            assert_eq!(sum, record.delivered.expect("it ended").since(flow.start), "{transport}");
            assert!(breakdown.transmission >= record.ideal);
        }
        assert!(
            results.flows.iter().any(|record| record.fct_breakdown.pause > Span::from_us(50)),
            "{transport}"
        );
    }
}
