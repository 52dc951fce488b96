//! Tests of all collectives: bytes by the book, dependencies that hosts know, and messages that
//! name what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weft_units::{Span, Time};

use super::{CollectiveKind, GraphNode, Point};
use crate::fixtures::{generate, leaf_spine, message, spec};
use crate::{Flow, Schedule, Traffic};

/// The traffic of one table of collectives on four racks of four hosts.
fn collective(keys: &str) -> Traffic {
    generate(&format!("[[collective]]\n{keys}")).unwrap()
}

fn schedule(traffic: &Traffic) -> &Schedule {
    traffic.schedule.as_ref().unwrap()
}

/// Bytes that each host sends.
fn sent(flows: &[Flow]) -> BTreeMap<u16, u64> {
    let mut sent = BTreeMap::new();
    for flow in flows {
        *sent.entry(flow.src.0).or_insert(0) += flow.size_bytes;
    }
    sent
}

/// When each flow and computation begins if every flow takes `fct`, and its acknowledgement as long
/// again: what hosts do, in the simplest way. None for what never does.
fn played(traffic: &Traffic, fct: impl Fn(u32) -> Span) -> Vec<Option<Time>> {
    let dependencies = &schedule(traffic).dependencies;
    let nodes = dependencies.nodes();
    let mut left: Vec<u32> = (0..nodes).map(|node| dependencies.needs(node)).collect();
    let mut begins: Vec<Option<Time>> = vec![None; nodes as usize];
    let mut pending: BTreeSet<(Time, u32, u8)> = BTreeSet::new();
    for node in 0..nodes {
        if left[node as usize] == 0 {
            let at = traffic.flows.get(node as usize).map_or(Time::ZERO, |flow| flow.start);
            pending.insert((at, node, Point::Started as u8));
        }
    }
    while let Some((now, node, point)) = pending.pop_first() {
        let is_flow = dependencies.is_flow(node);
        if point == Point::Started as u8 {
            begins[node as usize] = Some(now);
            if is_flow {
                pending.insert((now.saturating_add(fct(node)), node, Point::Received as u8));
                pending.insert((now.saturating_add(fct(node) + fct(node)), node, Point::Acknowledged as u8));
            }
        }
        let reached = match (is_flow, point) {
            (false, _) => Point::Done,
            (true, 0) => Point::Started,
            (true, 1) => Point::Acknowledged,
            (true, _) => Point::Received,
        };
        for next in dependencies.dependents(node, reached) {
            if left[next as usize] == 1 {
                pending.insert((dependencies.due(next, now), next, Point::Started as u8));
            }
            left[next as usize] = left[next as usize].saturating_sub(1);
        }
    }
    begins
}

fn end(traffic: &Traffic, fct: Span) -> Time {
    let begins = played(traffic, |_| fct);
    begins[..traffic.flows.len()].iter().map(|at| at.unwrap().saturating_add(fct)).max().unwrap()
}

const US: Span = Span::from_us(1);

fn us(time: Time) -> f64 {
    time.as_us()
}

#[test]
fn a_ring_sends_by_the_book_and_takes_two_steps_for_each_other_rank() {
    let traffic = collective("kind = 'all-reduce'\nsize = '16KB'\ncount = 8");
    assert_eq!(traffic.flows.len(), 8 * 14);
    assert!(sent(&traffic.flows).values().all(|&bytes| bytes == 16_000 * 14 / 8));
    assert!((us(end(&traffic, US)) - 14.0).abs() < 1e-9);
    assert!(traffic.flows.iter().all(|flow| flow.dst.0 == (flow.src.0 + 1) % 8));
}

#[test]
fn halving_and_doubling_sends_as_much_in_two_logarithms_of_steps() {
    let traffic = collective("kind = 'all-reduce'\nalgorithm = 'halving-doubling'\nsize = '16KB'");
    assert_eq!(traffic.flows.len(), 16 * 8);
    assert!(sent(&traffic.flows).values().all(|&bytes| bytes == 2 * 15_000));
    assert!((us(end(&traffic, US)) - 8.0).abs() < 1e-9);
}

#[test]
fn trees_send_everything_up_once_and_down_once() {
    for (algorithm, depth) in [("tree", 4), ("double-tree", 4)] {
        let traffic = collective(&format!("kind = 'all-reduce'\nalgorithm = '{algorithm}'\nsize = '16KB'"));
        assert_eq!(
            traffic.flows.iter().map(|flow| flow.size_bytes).sum::<u64>(),
            2 * 15 * 16_000,
            "{algorithm}"
        );
        assert!((us(end(&traffic, US)) - 2.0 * f64::from(depth)).abs() < 1e-9, "{algorithm}");
    }
    // What is a leaf in one tree is inside the other.
    let traffic = collective("kind = 'all-reduce'\nalgorithm = 'double-tree'\nsize = '16KB'");
    assert!(sent(&traffic.flows).values().all(|&bytes| bytes <= 32_000), "{:?}", sent(&traffic.flows));
}

#[test]
fn gathering_and_scattering_are_halves_of_an_all_reduce() {
    for kind in ["all-gather", "reduce-scatter"] {
        for (algorithm, steps) in [("ring", 15.0), ("halving-doubling", 4.0)] {
            let traffic = collective(&format!("kind = '{kind}'\nalgorithm = '{algorithm}'\nsize = '16KB'"));
            assert!(sent(&traffic.flows).values().all(|&bytes| bytes == 15_000), "{kind} {algorithm}");
            assert!((us(end(&traffic, US)) - steps).abs() < 1e-9, "{kind} {algorithm}");
        }
    }
}

#[test]
fn adding_up_takes_its_time_in_the_first_half_alone() {
    // 2 KB in 8 parts of 250 bytes, 2 us each at 1 Gbit/s.
    let text = "kind = 'all-reduce'\nsize = '2KB'\ncount = 8\nreduction_rate = '1Gbps'";
    assert!((us(end(&collective(text), US)) - (14.0 + 7.0 * 2.0)).abs() < 1e-9);
}

#[test]
fn all_to_all_sends_as_many_at_a_time_as_it_is_told() {
    let traffic = collective("kind = 'all-to-all'\nsize = '16KB'");
    assert_eq!(traffic.flows.len(), 16 * 15);
    assert!((us(end(&traffic, US)) - 1.0).abs() < 1e-9);
    for (parallel, rounds) in [(1, 15.0), (4, 4.0), (15, 1.0)] {
        let traffic = collective(&format!("kind = 'all-to-all'\nsize = '16KB'\nparallel = {parallel}"));
        // A round is over when it is acknowledged, as long again after it has come; of the last
        // that is not waited for.
        assert!((us(end(&traffic, US)) - (2.0 * rounds - 1.0)).abs() < 1e-9, "{parallel}");
    }
}

#[test]
fn tokens_come_back_as_they_went_and_skew_makes_some_ranks_busier() {
    let of = |skew: f64| {
        let text = format!("kind = 'moe'\nsize = '800KB'\ntoken = '1KB'\ntop_k = 2\nskew = {skew}");
        collective(&text)
    };
    let by_pair = |traffic: &Traffic, step: u32| {
        let mut pairs = BTreeMap::new();
        for (flow, role) in traffic.flows.iter().zip(&schedule(traffic).roles) {
            if role.step == step {
                let ends = if step == 0 { (flow.src.0, flow.dst.0) } else { (flow.dst.0, flow.src.0) };
                pairs.insert(ends, flow.size_bytes);
            }
        }
        pairs
    };
    let busiest = |traffic: &Traffic| {
        let mut got = BTreeMap::new();
        for ((_, to), bytes) in by_pair(traffic, 0) {
            *got.entry(to).or_insert(0u64) += bytes;
        }
        *got.values().max().unwrap() as f64 / (got.values().sum::<u64>() as f64 / got.len() as f64)
    };
    for skew in [0.0, 1.5] {
        let traffic = of(skew);
        assert_eq!(by_pair(&traffic, 0), by_pair(&traffic, 1), "what goes out comes back");
    }
    assert!(busiest(&of(0.0)) < 1.2, "{}", busiest(&of(0.0)));
    assert!(busiest(&of(1.5)) > 3.0, "{}", busiest(&of(1.5)));
}

#[test]
fn a_pipeline_has_its_bubble() {
    for schedule in ["gpipe", "1f1b"] {
        for (stages, microbatches) in [(2, 1), (4, 4), (8, 16)] {
            let text = format!(
                "kind = 'pipeline'\nsize = '1KB'\ncount = 8\nstages = {stages}\nmicrobatches = {microbatches}\n\
                 forward = '10us'\nbackward = '20us'\nschedule = '{schedule}'"
            );
            let traffic = collective(&text);
            let begins = played(&traffic, |_| Span::ZERO);
            let exits = &self::schedule(&traffic).collectives[0].exits;
            let done = exits.iter().map(|place| match place {
                GraphNode::Computation(node) => begins[*node as usize].unwrap(),
                other => panic!("{other:?}"),
            });
            let expected = f64::from((microbatches + stages - 1) * 30);
            assert!((us(done.max().unwrap()) - expected).abs() < 1e-9, "{schedule} {stages} {microbatches}");
        }
    }
}

#[test]
fn a_rank_begins_again_when_it_has_everything_and_has_computed() {
    let text =
        "kind = 'all-reduce'\nsize = '16KB'\ncount = 4\niterations = 3\ncompute = '5us'\nstart = '100us'";
    let traffic = collective(text);
    assert_eq!(traffic.flows.len(), 3 * 24);
    assert_eq!(traffic.flows[0].start, Time::ZERO + Span::from_us(105));
    // Each is 6 steps, and the last of them has to be acknowledged, after the time to compute.
    let expected = 100.0 + 3.0 * (5.0 + 6.0) + 2.0;
    assert!((us(end(&traffic, US)) - expected).abs() < 1e-9, "{}", us(end(&traffic, US)));
}

#[test]
fn placement_is_drawn_from_a_stream_of_its_own_and_a_part_of_all() {
    let text = "[[collective]]\nkind = 'all-reduce'\nsize = '16KB'\ncount = 6\nplacement = 'random'";
    let hosts = |text: &str, seed| {
        let traffic = spec(text).generate(&leaf_spine(), seed, std::path::Path::new(".")).unwrap();
        schedule(&traffic).collectives[0].hosts.to_vec()
    };
    assert_eq!(hosts(text, 1), hosts(text, 1));
    assert_ne!(hosts(text, 1), hosts(text, 2));
    let with_others = format!("size = '1KB'\nload = 0.1\nflows = 100\n{text}");
    assert_eq!(hosts(&with_others, 1), hosts(text, 1), "other traffic does not move it");
}

#[test]
fn jobs_share_no_host_and_their_steps_hold_their_collectives() {
    let traffic = generate(
        "[[job]]\ncount = 8\ntensor = 2\npipeline = 2\nmicrobatches = 2\nforward = '10us'\nbackward = '20us'\n\
         activation = '4KB'\ntensor_size = '8KB'\ngradient = '64KB'\nbuckets = 2\nsteps = 2\nplacement = 'random'\n\
         [[job]]\ngradient = '1KB'\nlabel = 'small'",
    )
    .unwrap();
    let schedule = schedule(&traffic);
    let steps: Vec<_> =
        schedule.collectives.iter().filter(|collective| collective.kind == CollectiveKind::Step).collect();
    assert_eq!(steps.len(), 3);
    let (first, other) = (&steps[0].hosts, &steps[2].hosts);
    assert_eq!((first.len(), other.len()), (8, 8));
    assert!(first.iter().all(|host| !other.contains(host)));
    // Two stages of two microbatches, forward and backward, in two data-parallel groups; two
    // buckets in four groups.
    let count =
        |label: &str| schedule.collectives.iter().filter(|collective| collective.label == label).count();
    assert_eq!(count("job[0].tensor"), 2 * 2 * 2 * 2 * 2);
    assert_eq!(count("job[0].gradient"), 2 * 2 * 4);
    assert_eq!(count("small.gradient"), 1);
    assert!(played(&traffic, |_| US).iter().all(Option::is_some));
}

/// Eight data-parallel ranks with experts, two microbatches.
fn with_experts(keys: &str) -> Traffic {
    let job = "[[job]]\ncount = 8\nmicrobatches = 2\nexpert_size = '80003B'\ngradient = '8KB'\n";
    generate(&format!("{job}{keys}")).unwrap()
}

/// By dispatch, or combine, what goes from each rank to each other one.
fn by_pair(traffic: &Traffic, what: &str) -> Vec<BTreeMap<(u16, u16), u64>> {
    let collectives = &schedule(traffic).collectives;
    let is_it = |&(_, collective): &(usize, &crate::Collective)| collective.label == format!("job[0].{what}");
    let of = |(number, _)| {
        let flows = traffic.flows.iter().zip(&schedule(traffic).roles);
        let own = flows.filter(|(_, role)| role.collective == Some(number as u32));
        own.map(|(flow, _)| ((flow.src.0, flow.dst.0), flow.size_bytes)).collect()
    };
    collectives.iter().enumerate().filter(is_it).map(of).collect()
}

#[test]
fn experts_of_a_job_without_skew_get_the_same_bytes_as_ever() {
    let traffic = with_experts("");
    assert_eq!(traffic.flows, with_experts("skew = 0.0\nexperts = 8").flows);
    assert_eq!(traffic.flows, with_experts("skew = 0.0\nexperts = 64").flows);
    for what in ["dispatch", "combine"] {
        for pairs in by_pair(&traffic, what) {
            assert_eq!(pairs.len(), 8 * 7);
            // 80,003 = 8 x 10,000 + 3.
            assert!(pairs.iter().all(|(&(_, to), &bytes)| bytes == 10_000 + u64::from(to < 3)));
        }
    }
}

#[test]
fn with_skew_the_hot_expert_of_a_job_gets_zipfs_share_and_nothing_is_lost() {
    for skew in [0.2, 1.0, 2.5] {
        let traffic = with_experts(&format!("skew = {skew}"));
        let sum: f64 = (1..=8).map(|place| f64::from(place).powf(-skew)).sum();
        let (out, back) = (by_pair(&traffic, "dispatch"), by_pair(&traffic, "combine"));
        // Two microbatches, forward and backward.
        assert_eq!((out.len(), back.len()), (4, 4));
        for (out, back) in out.iter().zip(&back) {
            let returned: BTreeMap<_, _> =
                back.iter().map(|(&(from, to), &bytes)| ((to, from), bytes)).collect();
            assert_eq!(*out, returned, "what goes out comes back");
            // Of any two ranks one sends to each: what a rank keeps is what others send there.
            let part = |rank: u16| out.get(&((rank + 1) % 8, rank)).copied().unwrap_or(0);
            assert!(out.iter().all(|(&(_, to), &bytes)| bytes == part(to)));
            assert_eq!((0..8).map(part).sum::<u64>(), 80_003, "nothing is lost");
            let mut parts: Vec<u64> = (0..8).map(part).collect();
            parts.sort_unstable_by(|one, other| other.cmp(one));
            for (place, &part) in (1..).zip(&parts) {
                let expected = 80_003.0 * f64::from(place).powf(-skew) / sum;
                assert!((part as f64 - expected).abs() < 1.01, "{place}: {part} and {expected}");
            }
        }
        assert!(out[0] != out[1] || out[0] != out[2], "which expert is hot is drawn for each microbatch");
        assert!(played(&traffic, |_| US).iter().all(Option::is_some));
    }
}

#[test]
fn a_microbatch_goes_to_the_same_experts_forward_and_backward_and_in_all_of_a_tensor_group() {
    let traffic = generate(
        "[[job]]\ntensor = 2\nmicrobatches = 2\nschedule = 'gpipe'\nskew = 1.0\nexpert_size = '80KB'\ntensor_size = '1KB'\n\
         gradient = '8KB'",
    )
    .unwrap();
    // Two tensor groups' places in turn; both microbatches forward, then both backward. The host of
    // a data-parallel rank is twice that.
    let part = |pairs: &BTreeMap<(u16, u16), u64>| -> Vec<u64> {
        let place = pairs.keys().next().unwrap().0 % 2;
        (0..8).map(|rank| pairs[&((2 * rank + 2) % 16 + place, 2 * rank + place)]).collect()
    };
    let parts: Vec<Vec<u64>> = by_pair(&traffic, "dispatch").iter().map(part).collect();
    assert_eq!(parts.len(), 8);
    assert_eq!(parts[0], parts[1], "a tensor group");
    assert_eq!((&parts[0], &parts[2]), (&parts[4], &parts[6]), "backward");
    assert_ne!(parts[0], parts[2], "another microbatch");
}

#[test]
fn mistakes_name_their_key_and_what_is_allowed() {
    let cases = [
        (
            "kind = 'all-reduce'\nsize = '15B'",
            "traffic.collective[0].size = 15B: allowed is 16 B, a byte for every message",
        ),
        (
            "kind = 'all-reduce'\nsize = '1KB'\ncount = 1",
            "traffic.collective[0].count = 1: allowed is 2 to 16",
        ),
        (
            "kind = 'all-reduce'\nsize = '1KB'\ncount = 17",
            "traffic.collective[0].count = 17: allowed is 2 to 16",
        ),
        (
            "kind = 'all-reduce'\nsize = '1KB'\ncount = 6\nalgorithm = 'halving-doubling'",
            "traffic.collective[0].count = 6: allowed is a number of ranks that is a power of two",
        ),
        (
            "kind = 'all-reduce'\nsize = '1KB'\nchunks = 0",
            "traffic.collective[0].chunks = 0: allowed is 1 to 1024",
        ),
        ("kind = 'all-reduce'\nsize = '1KB'\niterations = 0", "traffic.collective[0].iterations = 0"),
        (
            "kind = 'all-reduce'\nsize = '1KB'\nhosts = [3]",
            "traffic.collective[0].hosts = 1 host: allowed is at least 2",
        ),
        ("kind = 'all-reduce'\nsize = '1KB'\ntransport = 'x'", "traffic.collective[0].transport = \"x\""),
        (
            "kind = 'all-to-all'\nsize = '1KB'\nparallel = 0",
            "traffic.collective[0].parallel = 0: allowed is at least 1",
        ),
        ("kind = 'moe'\nsize = '1KB'", "traffic.collective[0].token = 8KiB: allowed is at most size"),
        ("kind = 'moe'\nsize = '1MB'\ntop_k = 17", "traffic.collective[0].top_k = 17: allowed is 1 to 16"),
        ("kind = 'moe'\nsize = '1MB'\nskew = nan", "traffic.collective[0].skew = NaN: allowed is 0 to 10"),
        ("kind = 'pipeline'\nsize = '1KB'\nmicrobatches = 0", "traffic.collective[0].microbatches = 0"),
        (
            "kind = 'pipeline'\nsize = '1KB'\nmicrobatches = 1\nstages = 3",
            "traffic.collective[0].stages = 3: allowed is a number from 2 on that divides 16",
        ),
    ];
    for (keys, expected) in cases {
        let found = message(&format!("[[collective]]\n{keys}"));
        assert!(found.contains(expected), "{keys:?}: {found}");
    }
    let jobs = [
        ("", "traffic.job[0].gradient is missing: it is needed with ranks that are parallel by data"),
        (
            "gradient = '1KB'\ntensor = 3",
            "traffic.job[0].tensor = 3, and tensor times pipeline is 3: allowed is what divides 16",
        ),
        (
            "tensor = 16\ntensor_size = '1KB'\ngradient = '1KB'",
            "traffic.job[0].gradient = 1KB: allowed is nothing",
        ),
        ("pipeline = 16", "traffic.job[0].activation is missing"),
        (
            "gradient = '1KB'\nexpert_size = '1KB'\nskew = -0.1",
            "traffic.job[0].skew = -0.1: allowed is 0 to 10",
        ),
        (
            "gradient = '1KB'\nexpert_size = '1KB'\nskew = nan",
            "traffic.job[0].skew = NaN: allowed is 0 to 10",
        ),
        (
            "gradient = '1KB'\nexpert_size = '1KB'\nexperts = 0",
            "traffic.job[0].experts = 0: allowed is 1 to 65536",
        ),
        (
            "gradient = '1KB'\nskew = 0.5",
            "traffic.job[0].skew = 0.5: allowed is nothing: there are no experts",
        ),
        (
            "gradient = '1KB'\nexperts = 8",
            "traffic.job[0].experts = 8: allowed is nothing: there are no experts",
        ),
        ("gradient = '1KB'\n[[job]]\ngradient = '1KB'", "traffic.job[1].count = 0: allowed is fewer hosts"),
    ];
    for (keys, expected) in jobs {
        let found = message(&format!("[[job]]\n{keys}"));
        assert!(found.contains(expected), "{keys:?}: {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// However long each flow takes: everything begins, and what a flow waits for was there, at its
    /// own source.
    #[test]
    fn everything_begins_after_what_it_waits_for(
        kind in 0usize..9,
        count in 2u16..17,
        chunks in 1u32..4,
        iterations in 1u32..3,
        times in prop::collection::vec(1u64..50, 7),
    ) {
        let count = if kind == 2 { count.next_power_of_two().min(16) } else { count };
        let common = format!("count = {count}\niterations = {iterations}\ncompute = '3us'");
        let table = match kind {
            0 => format!("kind = 'all-reduce'\nsize = '100KB'\nchunks = {chunks}"),
            1 => format!("kind = 'all-reduce'\nsize = '100KB'\nalgorithm = 'double-tree'\nchunks = {chunks}"),
            2 => format!("kind = 'all-reduce'\nsize = '100KB'\nalgorithm = 'halving-doubling'\nchunks = {chunks}"),
            3 => format!("kind = 'all-reduce'\nsize = '100KB'\nalgorithm = 'tree'\nchunks = {chunks}"),
            4 => format!("kind = 'all-gather'\nsize = '100KB'\nchunks = {chunks}"),
            5 => format!("kind = 'reduce-scatter'\nsize = '100KB'\nchunks = {chunks}"),
            6 => format!("kind = 'all-to-all'\nsize = '100KB'\nparallel = {chunks}"),
            7 => "kind = 'moe'\nsize = '80KB'\ntoken = '1KB'\nexpert_compute = '1us'\ntop_k = 1".to_owned(),
            _ => format!("kind = 'pipeline'\nsize = '1KB'\nmicrobatches = {chunks}\nforward = '2us'"),
        };
        let traffic = collective(&format!("{table}\n{common}"));
        let fct = |flow: u32| Span::from_us(times[flow as usize % times.len()]);
        let begins = played(&traffic, fct);
        let dependencies = &schedule(&traffic).dependencies;
        for node in 0..dependencies.nodes() {
            prop_assert!(begins[node as usize].is_some(), "node {node} never begins");
            let begin = begins[node as usize].unwrap();
            let own = |node: u32| dependencies.host(node).unwrap_or_else(|| traffic.flows[node as usize].src);
            for (point, next) in dependencies.all_dependents(node) {
                let there = match point {
                    Point::Received => begin + fct(node),
                    Point::Acknowledged => begin + fct(node) + fct(node),
                    Point::Started | Point::Done => begin,
                };
                prop_assert!(begins[next as usize].unwrap() >= there, "{next} waits for {node}");
                let knows = if point == Point::Received { traffic.flows[node as usize].dst } else { own(node) };
                prop_assert_eq!(knows, own(next), "its host knows");
            }
        }
        for (flow, begin) in traffic.flows.iter().zip(&begins) {
            prop_assert!(begin.unwrap() >= flow.start, "earliest starts are bounds");
        }
    }
}
