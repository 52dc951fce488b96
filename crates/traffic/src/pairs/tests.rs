use super::*;
use crate::fixtures::{leaf_spine, message, racks, spec};

const DRAWS: usize = 40_000;

fn picker(text: &str, shape: &FabricShape) -> PairPicker {
    PairPicker::new(&spec(text), shape, 5).unwrap()
}

fn draws(picker: &PairPicker) -> Vec<(u16, u16)> {
    let mut random = Stream::new(5, Purpose::Pairs, stream::FLOWS);
    (0..DRAWS).map(|_| picker.pick(&mut random)).map(|(src, dst)| (src.0, dst.0)).collect()
}

/// Racks of 1, 5 and 2 hosts, interleaved.
fn uneven() -> FabricShape {
    let mut shape = racks(4, 2, 20);
    shape.rack_of_host = vec![2, 1, 1, 0, 1, 2, 1, 1];
    shape
}

#[test]
fn between_racks_stays_in_no_rack_and_reaches_every_other_host_evenly() {
    let shape = uneven();
    let picker = picker("pairs = 'between-racks'", &shape);
    let drawn = draws(&picker);
    assert!(drawn.iter().all(|&(src, dst)| shape.rack(src) != shape.rack(dst)));
    for src in shape.all_hosts() {
        let from: Vec<u16> = drawn.iter().filter(|pair| pair.0 == src).map(|pair| pair.1).collect();
        assert!((from.len() as f64 - 5_000.0).abs() < 350.0, "host {src} sends {}", from.len());
        let reachable: Vec<u16> =
            shape.all_hosts().into_iter().filter(|&dst| shape.rack(dst) != shape.rack(src)).collect();
        let expected = from.len() as f64 / reachable.len() as f64;
        for dst in reachable {
            let count = from.iter().filter(|&&to| to == dst).count() as f64;
            assert!(
                (count - expected).abs() < 5.0 * expected.sqrt(),
                "{src} to {dst}: {count} of {expected}"
            );
        }
    }
}

#[test]
fn anywhere_reaches_every_host_but_the_sender_evenly() {
    let shape = racks(1, 4, 0);
    let drawn = draws(&picker("pairs = 'anywhere'", &shape));
    for src in 0..4 {
        for dst in 0..4 {
            let count = drawn.iter().filter(|&&pair| pair == (src, dst)).count() as f64;
            let expected = if src == dst { 0.0 } else { DRAWS as f64 / 12.0 };
            assert!((count - expected).abs() <= 5.0 * expected.sqrt(), "{src} to {dst}: {count}");
        }
    }
}

#[test]
fn groups_keep_to_their_hosts_and_nobody_sends_to_itself() {
    let text = "pairs = 'group-to-group'\nsources = ['0-3']\ndestinations = [2, '8-9']";
    let drawn = draws(&picker(text, &leaf_spine()));
    assert!(drawn.iter().all(|&(src, dst)| src < 4 && [2, 8, 9].contains(&dst) && src != dst));
    for dst in [2, 8, 9] {
        assert!(drawn.iter().any(|pair| pair.1 == dst));
    }
}

#[test]
fn random_sources_send_to_all_the_others() {
    let PairPicker::Groups { sources, destinations, .. } =
        picker("pairs = 'group-to-group'\nrandom_sources = 6", &leaf_spine())
    else {
        panic!("groups were asked for")
    };
    assert_eq!(sources.len(), 6);
    let mut all = [sources, destinations].concat();
    all.sort_unstable();
    assert_eq!(all, leaf_spine().all_hosts());
}

#[test]
fn a_permutation_is_a_derangement_whatever_the_seed() {
    for seed in 0..200 {
        let picker = PairPicker::new(&spec("pairs = 'permutation'"), &leaf_spine(), seed).unwrap();
        let PairPicker::Permutation { mut destination } = picker else {
            panic!("a permutation was asked for")
        };
        assert!(destination.iter().enumerate().all(|(src, &dst)| src != usize::from(dst)));
        destination.sort_unstable();
        assert_eq!(destination, leaf_spine().all_hosts(), "each host receives from exactly one");
    }
}

#[test]
fn the_cross_rack_share_is_what_is_drawn() {
    let rules = [
        "pairs = 'between-racks'",
        "pairs = 'anywhere'",
        "pairs = 'permutation'",
        "pairs = 'group-to-group'\nsources = ['0-5']\ndestinations = ['2-7']",
    ];
    for (text, shape) in rules.iter().flat_map(|text| [(text, leaf_spine()), (text, uneven())]) {
        let picker = picker(text, &shape);
        let crossing = draws(&picker).iter().filter(|pair| shape.rack(pair.0) != shape.rack(pair.1)).count();
        let share = crossing as f64 / DRAWS as f64;
        let expected = picker.cross_rack_share(&shape);
        assert!((share - expected).abs() < 0.012, "{text}: {share} drawn, {expected} expected");
    }
    // 16 hosts in racks of 4: 12 of the 15 others are elsewhere.
    let anywhere = picker("pairs = 'anywhere'", &leaf_spine()).cross_rack_share(&leaf_spine());
    assert!((anywhere - 0.8).abs() < 1e-12);
}

#[test]
fn groups_that_cannot_be_are_refused_by_key() {
    let cases = [
        ("pairs = 'group-to-group'", "traffic.sources is missing"),
        ("pairs = 'group-to-group'\nsources = [0]", "traffic.destinations is missing"),
        (
            "pairs = 'group-to-group'\nsources = []\ndestinations = [1]",
            "traffic.sources = []: allowed is at least one",
        ),
        ("pairs = 'group-to-group'\nsources = [0]\ndestinations = ['9-16']", "traffic.destinations = 9-16"),
        ("pairs = 'group-to-group'\nsources = ['0-3']\ndestinations = [2]", "cannot send to itself"),
        ("pairs = 'group-to-group'\nrandom_sources = 16", "traffic.random_sources = 16: allowed is 1 to 15"),
        ("pairs = 'group-to-group'\nrandom_sources = 0", "traffic.random_sources = 0"),
        (
            "pairs = 'group-to-group'\nrandom_sources = 2\nsources = [0]",
            "traffic.sources and traffic.random_sources",
        ),
        ("sources = [0]", "traffic.pairs is missing: traffic.sources needs"),
    ];
    for (pairs, expected) in cases {
        let found = message(&format!("size = '1KB'\nload = 0.1\nflows = 9\n{pairs}"));
        assert!(found.contains(expected), "{pairs}: {found}");
    }
}

#[test]
fn between_racks_needs_two_racks() {
    let error =
        PairPicker::new(&spec("pairs = 'between-racks'"), &racks(1, 4, 0), 1).unwrap_err().to_string();
    assert!(error.contains("traffic.pairs = \"between-racks\"") && error.contains("one rack"), "{error}");
}
