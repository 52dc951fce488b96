use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::fixtures::{generate, leaf_spine, message, racks, spec};
use crate::write_trace;

/// 8 x 8 x 16 hosts at 10 Gbit/s, not oversubscribed.
fn large() -> FabricShape {
    racks(8, 16, 160)
}

fn traffic(text: &str, shape: &FabricShape, seed: u64) -> Traffic {
    spec(text).generate(shape, seed, Path::new(".")).unwrap()
}

/// A directory of this test alone, under the system's own for temporary files.
fn directory(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weft-traffic-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_generated_load_is_the_load_asked_for() {
    let shape = large();
    let rules = [
        ("web-server", 0.6, "", 1.28e12),
        ("web-search", 0.3, "pairs = 'anywhere'", 1.28e12),
        ("solar", 0.5, "load_of = 'host-links'\npairs = 'anywhere'", 1.28e12),
        ("solar", 0.9, "load_of = 'bisection'", 0.64e12),
        ("cache-follower", 0.4, "pairs = 'permutation'", 1.28e12),
        ("solar", 0.8, "pairs = 'group-to-group'\nsources = ['0-31']\ndestinations = ['64-127']", 0.32e12),
    ];
    for (workload, load, rest, capacity_bps) in rules {
        let traffic =
            traffic(&format!("workload = '{workload}'\nload = {load}\nflows = 100_000\n{rest}"), &shape, 3);
        let end = traffic.flows.last().unwrap().start.since(Time::ZERO).as_s();
        let counts = |flow: &&Flow| rest.contains("load_of") || flow.src.0 / 16 != flow.dst.0 / 16;
        let bits: u64 = traffic.flows.iter().filter(counts).map(|flow| 8 * flow.size_bytes).sum();
        let generated = bits as f64 / end / capacity_bps;
        assert!((generated / load - 1.0).abs() < 0.02, "{workload} {rest}: {generated} for {load}");
    }
}

#[test]
fn scaled_sizes_have_the_scaled_mean_and_leave_the_load_alone() {
    let shape = large();
    let made = |rest: &str| {
        traffic(&format!("workload = 'web-search'\nload = 0.6\nflows = 100_000\n{rest}"), &shape, 3)
    };
    let plain = made("");
    for (scale, text) in [(1.0 / 32.0, "size_scale = 0.03125"), (3.0, "size_scale = 3.0")] {
        let scaled = made(text);
        // The flows are the same ones: their sizes are scaled, and so are the gaps between them.
        for (one, other) in scaled.flows.iter().zip(&plain.flows) {
            let exact = (other.size_bytes as f64 * scale).max(1.0);
            assert!((one.size_bytes as f64 - exact).abs() <= 0.5 + scale, "{one:?} of {other:?}");
            assert_eq!((one.src, one.dst), (other.src, other.dst));
            assert!((one.start.as_us() - other.start.as_us() * scale).abs() < 1e-3);
        }
        let mean = |traffic: &Traffic| {
            traffic.flows.iter().map(|flow| flow.size_bytes as f64).sum::<f64>() / traffic.flows.len() as f64
        };
        assert!((mean(&scaled) / mean(&plain) / scale - 1.0).abs() < 1e-3);
        let bits: u64 = scaled.flows.iter().map(|flow| 8 * flow.size_bytes).sum();
        let generated = bits as f64 / scaled.flows.last().unwrap().start.since(Time::ZERO).as_s() / 1.28e12;
        assert!((generated / 0.6 - 1.0).abs() < 0.02, "{generated} for 0.6 at {scale}");
        let (load, before) = (scaled.offered_load.unwrap(), plain.offered_load.unwrap());
        assert!((load.bytes_per_s - before.bytes_per_s).abs() < 1.0);
        assert!((load.flows_per_s * scale / before.flows_per_s - 1.0).abs() < 1e-9);
    }
    assert_eq!(made("size_scale = 1.0").flows, plain.flows);
}

#[test]
fn gaps_are_exponential() {
    let flows = traffic("workload = 'web-search'\nload = 0.5\nflows = 100_000", &large(), 1).flows;
    let gaps: Vec<f64> = flows.windows(2).map(|pair| pair[1].start.since(pair[0].start).as_us()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // 1,711,250 B x 8 / (0.5 x 1.28 Tbit/s) = 21.39 us
    assert!((mean / 21.390_6 - 1.0).abs() < 0.013, "mean gap {mean} us");
    assert!(
        (variance.sqrt() / mean - 1.0).abs() < 0.02,
        "coefficient of variation {}",
        variance.sqrt() / mean
    );
    let late = gaps.iter().filter(|&&gap| gap > 2.0 * mean).count() as f64 / gaps.len() as f64;
    assert!((late - (-2.0f64).exp()).abs() < 0.005, "{late} of the gaps are above twice the mean");
}

#[test]
fn the_seed_is_all_that_chance_depends_on() {
    let text = "workload = 'hadoop'\nload = 0.5\nflows = 500\n[[incast]]\nsenders = 5\nsize = '2KB'\nload = 0.01\n\
                [[long_lived]]\ncount = 3";
    assert_eq!(traffic(text, &large(), 7), traffic(text, &large(), 7));
    let (one, other) = (traffic(text, &large(), 7), traffic(text, &large(), 8));
    let same = one.flows.iter().zip(&other.flows).filter(|(a, b)| a == b).count();
    assert_eq!(same, 0, "no flow is the same under another seed");
}

#[test]
fn another_choice_of_pairs_or_classes_leaves_times_and_sizes_alone() {
    let times_and_sizes = |rest: &str| -> Vec<(Time, u64)> {
        let text =
            format!("workload = 'web-search'\nload = 0.4\nload_of = 'host-links'\nflows = 2000\n{rest}");
        traffic(&text, &large(), 1).flows.iter().map(|flow| (flow.start, flow.size_bytes)).collect()
    };
    let base = times_and_sizes("pairs = 'between-racks'");
    assert_eq!(base, times_and_sizes("pairs = 'anywhere'"));
    assert_eq!(base, times_and_sizes("pairs = 'permutation'"));
    assert_eq!(base, times_and_sizes("[classes]\nbest_effort = 0.5"));
}

#[test]
fn another_load_leaves_sizes_and_pairs_alone_and_another_workload_leaves_pairs_alone() {
    let flows = |workload: &str, load: f64| {
        traffic(&format!("workload = '{workload}'\nload = {load}\nflows = 2000"), &large(), 1).flows
    };
    let (low, high, other) = (flows("web-search", 0.2), flows("web-search", 0.8), flows("solar", 0.2));
    for ((low, high), other) in low.iter().zip(&high).zip(&other) {
        assert_eq!((low.size_bytes, low.src, low.dst), (high.size_bytes, high.src, high.dst));
        assert_eq!((low.src, low.dst), (other.src, other.dst));
        // The same unit gaps, four times as dense, to the rounding of a picosecond.
        assert!(low.start.as_ps().abs_diff(4 * high.start.as_ps()) <= 3);
    }
}

#[test]
fn an_incast_beside_them_leaves_random_flows_alone() {
    let random = "workload = 'web-search'\nload = 0.5\nflows = 300\n";
    let beside =
        traffic(&format!("{random}[[incast]]\nsenders = 9\nsize = '1KB'\nload = 0.01"), &large(), 1).flows;
    let incasts = beside.iter().filter(|flow| flow.size_bytes == 1_000).count();
    assert!(incasts > 9, "{incasts}");
    let kept: Vec<Flow> = beside.into_iter().filter(|flow| flow.size_bytes != 1_000).collect();
    assert_eq!(kept, traffic(random, &large(), 1).flows);
}

#[test]
fn flows_end_with_their_number_or_with_the_duration_whichever_is_first() {
    let base = "size = '100KB'\nload = 0.5\n";
    let of = |rest: &str| generate(&format!("{base}{rest}")).unwrap().flows;
    assert_eq!(of("flows = 100").len(), 100);
    // 5 GB/s of 100 KB: a flow every 20 us.
    let within = of("duration = '20ms'");
    assert!((within.len() as f64 - 1_000.0).abs() < 130.0, "{}", within.len());
    assert!(within.last().unwrap().start < Time::from_ps(20_000_000_000));
    assert_eq!(of("duration = '20ms'\nflows = 100"), of("flows = 100"));
    assert_eq!(of("duration = '20ms'\nflows = 100_000"), within);
}

#[test]
fn flows_of_one_instant_stand_in_the_order_that_is_promised() {
    let directory = directory("order");
    std::fs::write(directory.join("t.csv"), "start_us,src,dst,size_bytes\n0,9,1,5\n0,2,1,6\n0,3,1,7\n")
        .unwrap();
    let text = "trace = 't.csv'\n[[incast]]\nsenders = 2\nsize = '4B'\n[[long_lived]]\nsrc = 8\ndst = 0";
    let flows = spec(text).generate(&leaf_spine(), 1, &directory).unwrap().flows;
    assert_eq!(flows.iter().map(|flow| flow.size_bytes).collect::<Vec<_>>(), [0, 4, 4, 5, 6, 7]);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn generated_flows_replay_from_their_trace_exactly() {
    let directory = directory("replay");
    let text = "workload = 'web-search'\nload = 0.5\nflows = 500\n[classes]\nbest_effort = 0.2\nshort_below = '100KB'";
    let flows = generate(text).unwrap().flows;
    std::fs::write(directory.join("t.csv"), write_trace(&flows)).unwrap();
    let replay = |text: &str| spec(text).generate(&leaf_spine(), 9, &directory).unwrap();
    assert_eq!(replay("trace = 't.csv'").flows, flows);
    assert_eq!(replay("trace = 't.csv'").workload, None);
    assert_eq!(replay("trace = 't.csv'\nflows = 20").flows, flows[..20]);
    let cut = replay("trace = 't.csv'\nduration = '1ms'").flows;
    assert_eq!(cut, flows.iter().copied().filter(|flow| flow.start.as_us() < 1_000.0).collect::<Vec<_>>());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_workload_may_come_from_a_file_beside_the_spec() {
    let directory = directory("workload");
    let csv = "size_bytes,cumulative_probability\n1000,0\n1000,0.5\n3000,0.5\n3000,1\n";
    std::fs::write(directory.join("two.csv"), csv).unwrap();
    let text = "workload = 'two.csv'\nload = 0.5\nflows = 400";
    let traffic = spec(text).generate(&leaf_spine(), 1, &directory).unwrap();
    assert!(traffic.flows.iter().all(|flow| [1_000, 3_000].contains(&flow.size_bytes)));
    assert_eq!(traffic.workload, Some(WorkloadUsed { name: "two.csv".to_owned(), mean_bytes: 2_000.0 }));
    std::fs::write(directory.join("bad.csv"), "size_bytes,cumulative_probability\n9,0\n8,1\n").unwrap();
    let bad = spec("workload = 'bad.csv'\nload = 0.5\nflows = 4").generate(&leaf_spine(), 1, &directory);
    assert!(bad.unwrap_err().to_string().starts_with("bad.csv:3: found \"8,1\""));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn too_few_too_many_and_too_late_are_refused() {
    let cases = [
        (
            "workload = 'web-search'\nload = 0.1\nduration = '1ps'",
            "no random flow starts within traffic.duration = 1ps",
        ),
        (
            "size = '1B'\nload = 0.5\nflows = 4_000_000_000",
            "traffic.flows = about 4000000000 flows: allowed is at most",
        ),
        ("size = '1B'\nload = 0.5\nduration = '1s'", "traffic.duration = about 5000000000 flows"),
        (
            "size = '1KB'\nload = 1e-300\nflows = 2",
            "a flow that starts after 213 days: allowed is a start within 100 days",
        ),
        ("[[long_lived]]\nstart = '9000000s'", "a flow that starts after 104 days"),
    ];
    for (text, expected) in cases {
        assert!(message(text).contains(expected), "{text:?}: {}", message(text));
    }
}

#[test]
fn a_shape_that_contradicts_itself_is_refused() {
    let broken = |change: fn(&mut FabricShape)| {
        let mut shape = leaf_spine();
        change(&mut shape);
        spec("size = '1KB'\nload = 0.1\nflows = 1")
            .generate(&shape, 1, Path::new("."))
            .unwrap_err()
            .to_string()
    };
    assert!(broken(|shape| shape.host_rate.truncate(3)).contains("16 hosts have a rack and 3 have a rate"));
    assert!(broken(|shape| shape.rack_of_host[5] = 4).contains("host 5 is in rack 4, and there are 4 racks"));
    assert!(
        broken(|shape| shape.host_rate[2] = weft_units::Rate::default())
            .contains("host 2 has a link of rate 0")
    );
    assert!(broken(|shape| *shape = racks(1, 1, 0)).contains("it has 1 hosts"));
}

proptest! {
    #[test]
    fn no_spec_makes_generation_panic_and_every_flow_is_possible(
        size in prop_oneof![1u64..1_000_000, 0u64..2_000_000_000_000],
        load in prop_oneof![prop::num::f64::ANY, 0.01..0.6],
        flows in prop::option::of(0u32..50),
        duration_ps in prop::option::of(any::<u64>()),
        pairs in prop::sample::select(vec!["between-racks", "anywhere", "permutation"]),
        load_of in prop::sample::select(vec!["leaf-uplinks", "host-links", "bisection"]),
        senders in 0u32..17,
        period_ps in prop::option::of(0u64..1_000),
        repeats in prop::option::of(0u32..50),
        start_ps in prop_oneof![any::<u64>(), 0u64..1_000_000],
        jitter_ps in any::<u64>(),
        seed in any::<u64>(),
    ) {
        let mut spec = spec(&format!("pairs = '{pairs}'\nload_of = '{load_of}'\n[[incast]]\nsenders = {senders}\nsize = '9B'"));
        spec.size = Some(weft_units::Bytes::new(size));
        spec.load = Some(load);
        // A tiny load over a long time is allowed, and slow to test: the number of flows bounds it.
        spec.flows = flows.or(Some(20));
        spec.duration = duration_ps.map(Span::from_ps);
        spec.incast[0].period = period_ps.map(Span::from_ps);
        spec.incast[0].repeats = repeats.or(Some(3));
        spec.incast[0].start = Span::from_ps(start_ps);
        spec.incast[0].jitter = Span::from_ps(jitter_ps);
        if let Ok(traffic) = spec.generate(&leaf_spine(), seed, Path::new(".")) {
            prop_assert!(traffic.flows.is_sorted_by_key(|flow| flow.start));
            for flow in &traffic.flows {
                prop_assert!(flow.src != flow.dst && flow.src.0 < 16 && flow.dst.0 < 16 && flow.size_bytes > 0);
            }
        }
    }
}
