//! Packets that a scheme holds back, in switches whose ports share memory.

use crate::common::{Run, counter, done_as, fabric, flow, link_named};
use crate::holder::Holder;
use weft_balance::{Arrival, SwitchInfo};
use weft_fabric::{DropCause, Results};
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Span, Time};

/// Sends 40 segments at once, and waits 10 ms before it sends one again.
const BURST: &str = "name = 'tcp'\necn = 'off'\ninitial_window = 64\nmin_rto = '10ms'";
const SEGMENTS: u64 = 40;
/// A full segment on a link.
const FULL: u64 = 1_500;

fn small(memory: &str) -> Fabric {
    fabric(&format!("{}\nhost_queue = {{ buffer = 'unlimited' }}\n{memory}", crate::common::SMALL))
}

/// A burst from host 0 to host 2, of which all is held back for 100 us.
fn burst(fabric: &Fabric) -> Results {
    let lets_go = Some([Span::from_us(100), Span::from_us(20)]);
    let holder = Holder { does: |_, _| Arrival::Hold(0), lets_go };
    let mut make = |info: &SwitchInfo<'_>| holder.scheme(info);
    let run = Run { sample_every: Some(Span::from_us(1)), ..Run::new(fabric, BURST, "name = 'ecmp'") };
    run.with_external(&[flow(0, 0, 2, SEGMENTS * 1_460)], Some(&mut make)).0
}

fn after(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Bytes in the memory of the last leaf at the end of each interval in which anything waited.
fn at_last_leaf(results: &Results) -> Vec<(Time, u64)> {
    let samples = &results.samples;
    let of_leaf = samples.shared_buffers.iter().filter(|sample| sample.switch == 1);
    of_leaf.map(|sample| (sample.at, sample.held_bytes)).collect()
}

#[test]
fn what_is_held_back_is_in_memory_until_it_has_left_the_switch() {
    let results = burst(&small("[shared_buffer]\nsize = '2MB'\n[switch_queue]\nmark = 'never'"));
    assert_eq!((results.packets.dropped, results.flows[0].sender.retransmissions), (0, 0));
    let waited = at_last_leaf(&results);
    let at = |us| waited.iter().find(|(at, _)| *at == after(us)).expect("something waited").1;
    assert_eq!(at(99), SEGMENTS * FULL, "all of them, and no port has a queue");
    // Let go at 100 us, one goes at once, and the others wait at the port: 1.2 us each.
    assert_eq!(at(101), (SEGMENTS - 1) * FULL);
    assert_eq!(at(112), (SEGMENTS - 10) * FULL);
    assert_eq!(waited.last().expect("some").1, 0, "and none is forgotten there");
    assert_eq!(results.shared_buffers[1].largest_bytes, SEGMENTS * FULL);
}

#[test]
fn there_may_be_no_room_for_a_packet_that_is_to_be_held_back() {
    let fabric = small("[shared_buffer]\nsize = '40KB'\n[switch_queue]\nmark = 'never'");
    let results = burst(&fabric);
    // A queue may hold as much as is free: 13 packets leave 20.5 KB, and with one more it would
    // hold 21.
    let last = link_named(&fabric, "leaf1>host2") as u32;
    let lost = results.losses.iter().map(|loss| (loss.place, loss.cause, loss.packets)).collect::<Vec<_>>();
    assert_eq!(lost, [(weft_fabric::DropSite::Link(last), DropCause::SharedBuffer, SEGMENTS - 13)]);
    let class = results.classes.iter().find(|class| class.link == last).expect("its port has a class");
    assert_eq!(class.totals.dropped, SEGMENTS - 13);
    assert_eq!(results.shared_buffers[1].largest_bytes, 13 * FULL);
    assert!(results.flows[0].delivered.is_some());
    // Nothing of this without shared buffer.
    let own = burst(&small("[switch_queue]\nbuffer = '20KB'\nmark = 'never'"));
    assert!(own.losses.iter().all(|loss| loss.cause == DropCause::Queue));
}

#[test]
fn what_is_held_back_pauses_the_port_before_and_loses_nothing() {
    let fabric = small(
        "[shared_buffer]\nsize = '2MB'\n[pause]\nxoff = '10KB'\nresponse = '500ns'\n\
         [switch_queue]\nlossless = true\nmark = 'never'",
    );
    let results = burst(&fabric);
    assert_eq!((results.packets.dropped, results.flows[0].sender.retransmissions), (0, 0));
    let (before, last) =
        (link_named(&fabric, "spine0>leaf1") as u32, link_named(&fabric, "leaf1>host2") as u32);
    let paused = results.pauses.iter().find(|pause| pause.link == before).expect("it was paused");
    assert_eq!(paused.blamed, last, "what is held back waits to go there");
    // Six packets are below XOFF; the next one pauses, some 16 us after the start, until the queue
    // is let go.
    assert!(paused.totals.longest > Span::from_us(75) && paused.totals.longest < Span::from_us(100));
    let waited = at_last_leaf(&results);
    let most = waited.iter().filter(|(at, _)| *at < after(100)).map(|(_, bytes)| *bytes).max().expect("some");
    assert!((7 * FULL..SEGMENTS * FULL / 2).contains(&most), "{most}: the pause holds off the rest");
    assert_eq!(waited.last().expect("some").1, 0);
}

/// Two leaves, four spines, one of them farther and one slower than the others, with memory that is
/// shared.
fn uneven(memory: &str) -> Fabric {
    fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\n\
         host_queue = {{ buffer = 'unlimited', mark = 'never' }}\n{memory}\n\
         [[fault]]\nlink = 'leaf0-spine1'\ndelay = '40us'\n[[fault]]\nlink = 'leaf0-spine2'\nrate = '2Gbps'\n"
    ))
}

fn flows() -> Vec<Flow> {
    (0..32).map(|index| flow(index * 20, (index % 8) as u16, 8 + (index * 3 % 8) as u16, 400_000)).collect()
}

const CONWEAVE: &str = "name = 'conweave'\nreply_extra = '2us'\nsamples = 8\nresume_extra = '5ms'\n\
    resume_default = '30ms'\ninactive = '30ms'";
const FLOWCUT: &str = "name = 'flowcut'\nratio = 1.5\nalpha = 0.5";

#[test]
fn schemes_that_hold_back_leave_memory_empty_and_nothing_out_of_order() {
    for memory in [
        "[shared_buffer]\nsize = '9MB'\n[switch_queue]\nmark = '30KB'",
        "[shared_buffer]\nsize = '9MB'\n[pause]\nxoff = '60KB'\nresponse = '500ns'\n\
         [switch_queue]\nlossless = true\nmark = '30KB'",
    ] {
        let fabric = uneven(memory);
        for scheme in [CONWEAVE, FLOWCUT] {
            let mut run =
                Run { sample_every: Some(Span::from_us(5)), ..Run::new(&fabric, "name = 'dctcp'", scheme) };
            let results = run.flows(&flows());
            assert!(counter(&results, "held_packets") > 0, "{scheme}");
            assert_eq!(results.packets.dropped, 0, "{scheme}");
            assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
            assert_eq!(results.flows.iter().map(|record| record.receiver.out_of_order).sum::<u32>(), 0);
            let largest: u64 =
                results.shared_buffers.iter().take(2).map(|memory| memory.largest_bytes).max().unwrap();
            assert!(largest >= counter(&results, "most_held_bytes") / 2, "{scheme}: of two leaves");
            let samples = &results.samples;
            for switch in 0..6 {
                let last = samples.shared_buffers.iter().rfind(|sample| sample.switch == switch);
                assert!(last.is_none_or(|last| last.held_bytes == 0 || last.at < results.end), "{scheme}");
            }
            (run.partitions, run.threads) = (2, 2);
            let parts = run.flows(&flows());
            assert_eq!(done_as(parts, &results), results, "{scheme}");
        }
    }
}

/// With a memory that is far too small, packets that are held back are among those that it loses,
/// and every flow ends all the same.
#[test]
fn a_memory_that_is_too_small_to_hold_back_loses_and_holds_nobody_up() {
    let fabric = uneven("[shared_buffer]\nsize = '20KB'\n[switch_queue]\nmark = 'never'");
    for scheme in ["name = 'conweave'\nreply_extra = '2us'\nsamples = 8", FLOWCUT] {
        let results = Run::new(&fabric, "name = 'dctcp'", scheme).flows(&flows());
        assert!(counter(&results, "held_packets") > 0, "{scheme}");
        assert!(results.losses.iter().any(|loss| loss.cause == DropCause::SharedBuffer), "{scheme}");
        assert!(results.flows.iter().all(|record| record.acknowledged.is_some()), "{scheme}");
    }
}
