//! Several threads that share every window, however little there is to do in it: nothing of a run
//! depends on them.

use weft_traffic::Flow;
use weft_units::Span;

use crate::common::{Run, done_as, fabric, flow};

const LEAVES: u16 = 6;
const HOSTS: u16 = 4;

/// All hosts send to all other racks at the same time, so that the partitions have much to say to
/// each other.
fn shuffle() -> Vec<Flow> {
    let hosts = LEAVES * HOSTS;
    let to = |src: u16, turn: u16| (src + turn * HOSTS) % hosts;
    let turns = (1..LEAVES).flat_map(|turn| (0..hosts).map(move |src| (turn, src)));
    turns.map(|(turn, src)| flow(u64::from(turn) * 7, src, to(src, turn), 40_000)).collect()
}

/// `keys` are added to the fabric.
fn assert_alike(keys: &str, transport: &str, scheme: &str) {
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = {LEAVES}\nspines = 3\nhosts_per_leaf = {HOSTS}\n\
         [switch_queue]\nbuffer = '60KB'\nmark = '15KB'\n{keys}"
    ));
    let flows = shuffle();
    let run = Run { sample_every: Some(Span::from_us(9)), ..Run::new(&fabric, transport, scheme) };
    let whole = run.flows(&flows);
    for (partitions, threads) in [(2, 2), (6, 3), (4, 4)] {
        for _ in 0..3 {
            let shared = Run { partitions, threads, ..run }.flows(&flows);
            assert!(
                done_as(shared, &whole) == whole,
                "{partitions} partitions on {threads} threads: {scheme}, {transport}"
            );
        }
    }
}

#[test]
fn threads_leave_no_trace_where_spines_are_split() {
    assert_alike("", "name = 'dctcp'", "name = 'letflow'\ngap = '20us'");
}

#[test]
fn threads_leave_no_trace_where_spines_look_at_packets() {
    assert_alike("", "name = 'tcp'\nsack = true", "name = 'conga'\ngap = '20us'");
    assert_alike("", "name = 'dctcp'", "name = 'clove'\nat = 'leaf'\ngap = '20us'\ntrace_timeout = '200us'");
}

#[test]
fn threads_leave_no_trace_where_packets_carry_something_beside_them() {
    assert_alike("", "name = 'mptcp'\nsubflows = 3", "name = 'ecmp'");
    assert_alike("", "name = 'maxpass'", "name = 'ecmp'");
}

#[test]
fn threads_leave_no_trace_where_links_fail_and_change() {
    let faults = "[[fault]]\nlink = 'leaf0-spine1'\nat = '25us'\nuntil = '90us'\ndown = true\n\
                  [[fault]]\nlink = 'leaf2-spine0'\nat = '31us'\nuntil = '140us'\nrate = '2Gbps'\ndelay = '9us'\n";
    assert_alike(faults, "name = 'dctcp'", "name = 'drill'");
}
