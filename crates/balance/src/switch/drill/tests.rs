//! DRILL's choice against loads that the test sets.

use std::collections::BTreeSet;

use weft_packet::{Class, PacketFlags};

use crate::testing::{CHI_SQUARE_7, FakeSwitch, Group, RACKS, chi_square, packet, with};

use super::*;

fn drill(d: u8, m: u8, memory: Memory) -> Drill {
    Drill::new(&Params { d, m, memory, ..Params::default() }, &FakeSwitch::new(8, 1).info(0, 0, 1))
}

fn choose(scheme: &mut Drill, switch: &mut FakeSwitch, group: &Group) -> u16 {
    group.ports[scheme.choose(switch, &mut packet(1), &group.hops())].0
}

#[test]
fn the_least_loaded_come_first_and_ties_keep_their_order() {
    let mut best = Best::new(3);
    for (index, load) in [(4, 50), (1, 20), (2, 20), (4, 0), (3, 70), (5, 20), (6, 19)] {
        best.offer(index, load);
    }
    // 4 entered with 50 and is not taken twice; 3 never fits; 5 ties with 1 and 2 and comes after
    // both.
    assert_eq!((&best.index[..3], &best.load[..3]), (&[6, 1, 2][..], &[19, 20, 20][..]));
}

#[test]
fn draws_are_different_and_every_ordered_pair_is_equally_likely() {
    let mut random = Stream::new(3, weft_units::Purpose::SwitchScheme, 0);
    let mut pairs = [0u64; 16];
    for _ in 0..120_000 {
        let mut draws = Draws::new();
        let [a, b] = [0; 2].map(|_| usize::from(draws.next(&mut random, 4)));
        pairs[a * 4 + b] += 1;
    }
    assert!((0..4).all(|i| pairs[i * 4 + i] == 0), "a port was drawn twice");
    let pairs: Vec<u64> = pairs.into_iter().filter(|&count| count > 0).collect();
    // Twelve ordered pairs: 31.26 is the 0.1 % point with 11 degrees of freedom.
    let chi = chi_square(&pairs, &[1; 12]);
    assert!(chi < 31.26, "chi-square {chi}: {pairs:?}");
}

#[test]
fn sampling_every_port_finds_the_shortest_queue() {
    let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
    let mut scheme = drill(16, 0, Memory::Switch);
    for shortest in 0..8u16 {
        switch.backlogs = (0..8).map(|port| if port == shortest { 10 } else { 11 }).collect();
        assert_eq!(choose(&mut scheme, &mut switch, &group), shortest);
    }
}

#[test]
fn a_packet_takes_the_queue_that_is_shortest_for_its_class() {
    let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
    // Low priority waits on all ports but 7; high priority, on all but 2.
    switch.backlogs = vec![9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 1_500];
    switch.ahead.insert(Class::Short, vec![1_500, 1_500, 0, 1_500, 1_500, 1_500, 1_500, 1_500]);
    for mut scheme in [drill(16, 0, Memory::Switch), drill(16, 2, Memory::Rack)] {
        for (class, shortest) in [(Class::Short, 2), (Class::Long, 7)] {
            let mut packet = with(packet(1), |packet| packet.flags = PacketFlags::of_class(class));
            assert_eq!(scheme.choose(&mut switch, &mut packet, &group.hops()), shortest);
        }
    }
}

/// An idle port and one that sends its last packet are alike to a switch that counts what waits,
/// and the first drawn is taken.
#[test]
fn the_packet_in_service_counts_unless_only_what_waits_does() {
    for (length, taken) in [(Length::All, 2..=2), (Length::Waiting, 2..=3)] {
        let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
        switch.backlogs = vec![4_000, 3_000, 900, 1_000];
        switch.in_service = vec![1_000, 0, 900, 1_000];
        let params = Params { d: 16, m: 0, length, ..Params::default() };
        let mut scheme = Drill::new(&params, &switch.info(0, 0, 1));
        assert_eq!(scheme.needs_waiting_bytes(), length == Length::Waiting);
        let chosen: BTreeSet<u16> = (0..100).map(|_| choose(&mut scheme, &mut switch, &group)).collect();
        assert_eq!(chosen, taken.collect(), "{length:?}");
    }
}

#[test]
fn memory_finds_the_shortest_queue_and_keeps_to_it() {
    let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
    switch.backlogs = vec![9_000, 9_000, 9_000, 1_500, 9_000, 9_000, 9_000, 9_000];
    let mut scheme = drill(2, 1, Memory::Switch);
    let choices: Vec<u16> = (0..100).map(|_| choose(&mut scheme, &mut switch, &group)).collect();
    let found = choices.iter().position(|&port| port == 3).expect("100 pairs of 8 contain each port");
    assert!(choices[found..].iter().all(|&port| port == 3));
    // Equal queues: the remembered port wins the tie, so packets do not wander for nothing.
    switch.backlogs = vec![0; 8];
    assert!((0..100).all(|_| choose(&mut scheme, &mut switch, &group) == 3));
}

#[test]
fn without_memory_equal_queues_are_chosen_evenly() {
    let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
    let (mut scheme, mut counts) = (drill(2, 0, Memory::Switch), [0; 8]);
    for _ in 0..80_000 {
        counts[usize::from(choose(&mut scheme, &mut switch, &group))] += 1;
    }
    let chi = chi_square(&counts, &[1; 8]);
    assert!(chi < CHI_SQUARE_7, "chi-square {chi}: {counts:?}");
}

#[test]
fn two_choices_take_the_longest_queue_least() {
    // d = 2 of 4 ports, loads 0 < 1 < 2 < 3: the port of rank r wins the pairs with longer ones, (3
    // - r) of 6.
    let (mut switch, group) = (FakeSwitch::new(4, 1), Group::of(0..4));
    switch.backlogs = vec![0, 1, 2, 3];
    let (mut scheme, mut counts) = (drill(2, 0, Memory::Switch), [0; 4]);
    for _ in 0..60_000 {
        counts[usize::from(choose(&mut scheme, &mut switch, &group))] += 1;
    }
    // 13.82 is the 0.1 % point with 2 degrees of freedom.
    let chi = chi_square(&counts[..3], &[3, 2, 1]);
    assert!(chi < 13.82 && counts[3] == 0, "chi-square {chi}: {counts:?}");
}

#[test]
fn a_remembered_port_that_is_no_next_hop_is_not_chosen() {
    let (mut switch, all) = (FakeSwitch::new(8, 1), Group::of(0..8));
    let mut scheme = drill(2, 1, Memory::Switch);
    let gone = choose(&mut scheme, &mut switch, &all);
    switch.backlogs = vec![1_500; 8];
    switch.backlogs[usize::from(gone)] = 0;
    let rest = Group::of((0..8).filter(|&port| port != gone));
    for _ in 0..200 {
        assert_ne!(choose(&mut scheme, &mut switch, &rest), gone);
    }
}

#[test]
fn one_remembered_port_is_the_general_case_with_one() {
    let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
    let mut memory = [Drill::NOTHING];
    for step in 0..3_000u64 {
        switch.backlogs[(step % 8) as usize] = step * step % 7 * 1_500;
        let samples = (step % 3 + 1) as usize;
        let remembered = (memory[0] != Drill::NOTHING).then_some(PortId(memory[0]));
        let load = |cx: &FakeSwitch, port| cx.backlog_bytes_for(port, &packet(0));
        let one = shortest(&mut switch.clone(), &group.hops(), samples, remembered, load);
        let many = shortest_of_many(&mut switch, &group.hops(), samples, &mut memory, load);
        assert_eq!((one, memory[0]), (many, group.ports[many].0));
    }
}

#[test]
fn ports_that_are_no_next_hops_drop_out_of_the_memory() {
    let (mut switch, mut scheme) = (FakeSwitch::new(8, 1), drill(1, 2, Memory::Switch));
    for _ in 0..50 {
        choose(&mut scheme, &mut switch, &Group::of([0, 1]));
    }
    assert!(scheme.memory.iter().all(|&port| port < 2), "{:?}", scheme.memory);
    let sampled = choose(&mut scheme, &mut switch, &Group::of([5, 6]));
    assert_eq!(*scheme.memory, [sampled, Drill::NOTHING]);
}

#[test]
fn a_memory_by_rack_is_not_read_for_another_rack() {
    let (mut switch, mut group) = (FakeSwitch::new(8, 1), Group::of(0..8));
    let mut scheme = drill(2, 1, Memory::Rack);
    assert_eq!(scheme.state_bytes(), u64::from(RACKS) * 2);
    let first = choose(&mut scheme, &mut switch, &group);
    group.rack = 2;
    let others: Vec<u16> = (0..50)
        .map(|_| {
            scheme.memory[2] = Drill::NOTHING;
            choose(&mut scheme, &mut switch, &group)
        })
        .collect();
    assert!(others.iter().any(|&port| port != first), "rack 2 chooses for itself");
    group.rack = 1;
    assert_eq!(choose(&mut scheme, &mut switch, &group), first, "rack 1 remembers");
}

#[test]
fn more_samples_than_can_be_kept_are_refused() {
    let refused = |d, m| Params { d, m, ..Params::default() }.validate().unwrap_err().to_string();
    assert_eq!(refused(0, 1), "d is 0: 1 to 16");
    assert_eq!(refused(17, 1), "d is 17: 1 to 16");
    assert_eq!(refused(2, 9), "m is 9: 0 to 8");
}

/// QALL Table II: DRILL's decisions are 0.621 ms behind the queues.
#[test]
fn a_decision_goes_by_queues_as_old_as_its_age() {
    for (age_us, expected) in [(0, 3), (100, 5)] {
        let (mut switch, group) = (FakeSwitch::new(8, 1), Group::of(0..8));
        let params = Params { d: 16, m: 0, age: Span::from_us(age_us), ..Params::default() };
        let mut scheme = Drill::new(&params, &switch.info(0, 0, 1));
        let mut set = |switch: &mut FakeSwitch, at_us: u64, shortest: usize| {
            switch.now = weft_units::Time::ZERO + Span::from_us(at_us);
            // A megabyte at 10 Gbit/s takes 800 us: it is long for the whole test.
            switch.backlogs = vec![1_000_000; 8];
            switch.backlogs[shortest] = 1_000;
            for port in 0..8 {
                let queued = switch.take(PortId(port), &packet(1));
                scheme.on_enqueued(switch, &mut packet(1), queued);
            }
        };
        set(&mut switch, 0, 5);
        set(&mut switch, 50, 3);
        switch.now += Span::from_us(99);
        assert_eq!(choose(&mut scheme, &mut switch, &group), expected, "at 149 us, age {age_us} us");
        switch.now += Span::from_us(1);
        assert_eq!(choose(&mut scheme, &mut switch, &group), 3, "at 150 us it is known in both");
    }
}

#[test]
fn a_queue_that_was_lost_with_its_port_is_known_to_be_gone_as_late() {
    let (mut switch, group) = (FakeSwitch::new(2, 1), Group::of(0..2));
    let params = Params { d: 2, m: 0, age: Span::from_us(10), ..Params::default() };
    let mut scheme = Drill::new(&params, &switch.info(0, 0, 1));
    switch.backlogs = vec![500_000, 400_000];
    (0..2).for_each(|port| scheme.on_port_change(&mut switch, PortId(port)));
    switch.now += Span::from_us(10);
    switch.backlogs[0] = 0;
    scheme.on_port_change(&mut switch, PortId(0));
    assert_eq!(choose(&mut scheme, &mut switch, &group), 1);
    switch.now += Span::from_us(10);
    assert_eq!(choose(&mut scheme, &mut switch, &group), 0);
}

#[test]
fn only_a_late_switch_asks_to_be_told_of_queues() {
    let hooks = |age| Drill::hooks(&Params { age, ..Params::default() });
    assert_eq!(hooks(Span::ZERO), SwitchHooks::NONE);
    assert_eq!(hooks(Span::from_ps(1)).on_enqueued, Ports::ToSwitches);
    let late = Params { age: Span::from_ms(101), ..Params::default() };
    assert_eq!(late.validate().unwrap_err().to_string(), "age is 101ms: at most 100ms");
}
