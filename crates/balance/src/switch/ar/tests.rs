//! Rules of adaptive routing, checked by hand and for random queues.

use proptest::prelude::*;

use super::*;
use crate::testing::{CHI_SQUARE_3, FakeSwitch, Group, chi_square, packet};

/// Buffers of 375 KB: thresholds at 18,750, 37,500 and 75,000 bytes.
const THRESHOLDS: [u64; 3] = [18_750, 37_500, 75_000];

fn ar(params: &Params) -> (Ar, FakeSwitch) {
    assert_eq!(params.validate(), Ok(()));
    let switch = FakeSwitch::new(4, 1);
    (Ar::new(params, &switch.info(0, 0, 1)), switch)
}

fn by_flowlet() -> Params {
    Params { mode: Mode::Flowlet, entries: 16, ..Params::default() }
}

#[test]
fn grades_change_at_five_ten_and_twenty_per_cent_of_the_buffer() {
    let (ar, _) = ar(&Params::default());
    let grade = |bytes| ar.grades.grade(PortId(0), bytes);
    for (number, &threshold) in THRESHOLDS.iter().enumerate() {
        assert_eq!([grade(threshold - 1), grade(threshold)], [number as u64, number as u64 + 1]);
    }
    assert_eq!([grade(0), grade(375_000), grade(u64::MAX)], [0, 3, 3]);
}

#[test]
fn queues_of_one_grade_are_equal_and_each_port_gets_its_share() {
    let (mut ar, mut switch) = ar(&Params::default());
    let group = Group::of(0..4);
    switch.backlogs = vec![0, 18_000, 9_000, 18_749];
    let mut counts = [0; 4];
    for flow in 0..40_000 {
        counts[ar.choose(&mut switch, &mut packet(flow), &group.hops())] += 1;
    }
    let chi = chi_square(&counts, &[1; 4]);
    assert!(chi < CHI_SQUARE_3, "chi-square {chi}: {counts:?}");
}

#[test]
fn without_grades_the_shortest_queue_is_taken() {
    let (mut ar, mut switch) = ar(&Params { grades: 0, ..Params::default() });
    switch.backlogs = vec![3, 2, 1, 2];
    assert_eq!(ar.choose(&mut switch, &mut packet(1), &Group::of(0..4).hops()), 2);
}

#[test]
fn a_flowlet_stays_for_its_time_whatever_the_queues() {
    let (mut ar, mut switch) = ar(&by_flowlet());
    let group = Group::of(0..4);
    let first = ar.choose(&mut switch, &mut packet(1), &group.hops());
    switch.backlogs[first] = 300_000;
    for _ in 0..50 {
        switch.now += Span::from_us(16);
        assert_eq!(ar.choose(&mut switch, &mut packet(1), &group.hops()), first);
    }
    switch.now += Span::from_us(17);
    assert_ne!(ar.choose(&mut switch, &mut packet(1), &group.hops()), first);
}

#[test]
fn a_new_flowlet_leaves_its_port_only_for_one_that_is_better_by_so_many_grades() {
    // The flow's port is of grade 1, the others of grade 0.
    let leaves = |sticky: u8| {
        let (mut ar, mut switch) = ar(&Params { sticky, ..by_flowlet() });
        let group = Group::of(0..4);
        let first = ar.choose(&mut switch, &mut packet(1), &group.hops());
        switch.backlogs[first] = THRESHOLDS[0];
        switch.now += Span::from_us(100);
        ar.choose(&mut switch, &mut packet(1), &group.hops()) != first
    };
    assert_eq!([leaves(0), leaves(1), leaves(2)], [true, true, false]);
}

#[test]
fn without_stickiness_a_new_flowlet_takes_any_of_the_least_grade() {
    let (mut ar, mut switch) = ar(&Params { sticky: 0, ..by_flowlet() });
    let group = Group::of(0..4);
    let mut counts = [0; 4];
    for _ in 0..20_000 {
        switch.now += Span::from_us(100);
        counts[ar.choose(&mut switch, &mut packet(1), &group.hops())] += 1;
    }
    assert!(chi_square(&counts, &[1; 4]) < CHI_SQUARE_3, "{counts:?}");
}

#[test]
fn a_flowlet_is_moved_in_its_middle_only_if_asked_and_for_a_port_that_is_far_better() {
    let moves = |rebalance: u8, bytes: u64| {
        let (mut ar, mut switch) = ar(&Params { rebalance, ..by_flowlet() });
        let group = Group::of(0..4);
        let first = ar.choose(&mut switch, &mut packet(1), &group.hops());
        switch.backlogs[first] = bytes;
        ar.choose(&mut switch, &mut packet(1), &group.hops()) != first
    };
    assert_eq!([moves(0, 300_000), moves(2, THRESHOLDS[0]), moves(2, THRESHOLDS[1])], [false, false, true]);
}

#[test]
fn a_port_that_failed_ends_the_flowlet() {
    let (mut ar, mut switch) = ar(&by_flowlet());
    let first = ar.choose(&mut switch, &mut packet(1), &Group::of(0..4).hops());
    let others = Group::of((0..4).filter(|&port| usize::from(port) != first));
    let index = ar.choose(&mut switch, &mut packet(1), &others.hops());
    assert_ne!(others.ports[index].index(), first);
}

#[test]
fn a_given_size_stands_for_the_buffer_and_a_queue_without_limit_counts_as_one_megabyte() {
    let first = |params: Params, unlimited: bool| {
        let mut switch = FakeSwitch::new(2, 1);
        if unlimited {
            switch.buffers = vec![None; 2];
        }
        Ar::new(&params, &switch.info(0, 0, 1)).grades.first[0]
    };
    assert_eq!(first(Params::default(), false), 18_750);
    assert_eq!(first(Params::default(), true), 50_000);
    assert_eq!(first(Params { full: Some(Bytes::from_kb(10)), ..Params::default() }, true), 500);
}

#[test]
fn parameters_that_cannot_be_meant_are_refused() {
    let key = |params: Params| params.validate().map_err(|error| error.key);
    assert_eq!(key(Params { grades: 17, ..Params::default() }), Err("grades"));
    assert_eq!(key(Params { sticky: 17, ..Params::default() }), Err("sticky"));
    assert_eq!(key(Params { rebalance: 17, ..Params::default() }), Err("rebalance"));
    assert_eq!(key(Params { first: 0.0, ..Params::default() }), Err("first"));
    assert_eq!(key(Params { full: Some(Bytes::ZERO), ..Params::default() }), Err("full"));
    assert_eq!(key(Params { gap: Span::ZERO, ..Params::default() }), Err("gap"));
    assert_eq!(key(Params { entries: 3, ..Params::default() }), Err("entries"));
}

proptest! {
    /// By packet, the port that is taken is of the least grade of all.
    #[test]
    fn a_packet_takes_a_port_of_the_least_grade(
        backlogs in proptest::collection::vec(0u64..200_000, 4..5),
        grades in 0u8..17,
        flow: u32,
    ) {
        let (mut ar, mut switch) = ar(&Params { grades, ..Params::default() });
        switch.backlogs = backlogs;
        let index = ar.choose(&mut switch, &mut packet(flow), &Group::of(0..4).hops());
        let grade = |port: usize| ar.grades.grade(PortId(port as u16), switch.backlogs[port]);
        prop_assert!((0..4).all(|port| grade(index) <= grade(port)), "{index} of {:?}", switch.backlogs);
    }
}
