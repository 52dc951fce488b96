//! No table depends on how many partitions there are, or on how many threads work on them.

use std::num::NonZeroUsize;

use weft_lab::Cores;

use crate::pins::{Pin, Pins};

/// So many partitions or, if a fabric has no more components, as many as it has.
const ALL: usize = usize::MAX;

fn assert_the_same(partitions: usize, threads: usize) {
    let threads = NonZeroUsize::new(threads).expect("a thread");
    let cores = Cores::Exactly { partitions, threads };
    let moved: Vec<String> = Pins::read().pins.iter().flat_map(|pin| pin.moved(cores)).collect();
    assert!(moved.is_empty(), "{partitions} partitions, {threads} threads:\n{}", moved.join("\n"));
}

/// For each scheme, transport, kind of fabric and fault there is a pin (see `coverage`): so there
/// is one in partitions, unless its spec asks for what runs on the whole fabric.
#[test]
fn hardly_any_pin_needs_the_whole_fabric() {
    let pins = Pins::read().pins;
    let whole: Vec<&str> =
        pins.iter().filter(|pin| !pin.works_in_groups()).map(|pin: &Pin| pin.name.as_str()).collect();
    assert!(whole.len() * 20 <= pins.len(), "{whole:?}");
}

#[test]
#[ignore = "nightly"]
fn nightly_two_groups_on_one_thread() {
    assert_the_same(2, 1);
}

#[test]
#[ignore = "nightly"]
fn nightly_each_piece_on_one_thread() {
    assert_the_same(ALL, 1);
}

#[test]
fn each_piece_on_two_threads() {
    assert_the_same(ALL, 2);
}

#[test]
#[ignore = "nightly"]
fn nightly_three_groups_on_three_threads() {
    assert_the_same(3, 3);
}

#[test]
#[ignore = "nightly"]
fn nightly_five_groups_on_four_threads() {
    assert_the_same(5, 4);
}

#[test]
#[ignore = "nightly"]
fn nightly_each_piece_on_eight_threads() {
    assert_the_same(ALL, 8);
}
