//! CONGA on small fabrics: congestion that only the far end of a path sees.

use crate::common::{Run, counter, fabric, flow, link_named, mean_fct_us};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Span, Time};

const DCTCP: &str = r#"name = "dctcp""#;
const ECMP: &str = r#"name = "ecmp""#;
const CONGA: &str = r#"name = "conga""#;

const TWO_SPINES: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 32\nhost_rate = '1Gbps'\nreroute_after = '1ms'\n";

/// 128 hosts a leaf send at 1 Gbit/s, so that one flow is little, over a whole path of 100 Gbit/s
/// and one that has half of it behind the spine: both uplinks look alike from leaf 0.
const HALF_A_PATH: &str =
    "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 128\nhost_rate = '1Gbps'
fabric_rate = '100Gbps'\n[[fault]]\nlink = 'spine1>leaf1'\nrate = '50Gbps'";

/// Flows of this size from rack 0 to rack 1 for so long, one each `every_ns`, from each host in
/// turn.
fn flows_of(hosts: u64, size_bytes: u64, duration_us: u64, every_ns: u64) -> Vec<Flow> {
    let count = duration_us * 1_000 / every_ns;
    let one = |index: u64| Flow {
        start: Time::ZERO + Span::from_ns(index * every_ns),
        ..flow(0, (index % hosts) as u16, (hosts + index * 5 % hosts) as u16, size_bytes)
    };
    (0..count).map(one).collect()
}

/// Flows of 60 KB (0.5 ms at a host's rate) for so long, one each `every_ns`.
fn load(duration_us: u64, every_ns: u64) -> Vec<Flow> {
    flows_of(32, 60_000, duration_us, every_ns)
}

/// The links from leaf 0 to each spine.
fn uplinks(fabric: &Fabric) -> [usize; 2] {
    ["leaf0>spine0", "leaf0>spine1"].map(|name| link_named(fabric, name))
}

/// Bytes that left leaf 0 towards each spine.
fn uplink_bytes(fabric: &Fabric, results: &Results) -> [f64; 2] {
    uplinks(fabric).map(|link| results.links[link].bytes as f64)
}

/// Load on [`HALF_A_PATH`], in Gbit/s with headers: 2/3 of 150.
const OFFERED: f64 = 100.0;

/// Flows of `size_bytes` that make [`OFFERED`], in packets of 1,460 B and 40 B of headers, but for
/// the last one.
fn two_thirds(size_bytes: u64, duration_us: u64) -> Vec<Flow> {
    let wire_bits = size_bytes as f64 * 1_500.0 / 1_460.0 * 8.0;
    flows_of(128, size_bytes, duration_us, (wire_bits / OFFERED) as u64)
}

/// How the bytes split, as many to one, if the whole path is used by so much more of its capacity
/// than the half one. Nothing makes it 2.
fn split(difference: f64) -> f64 {
    let whole = OFFERED * 2.0 / 3.0 + difference * 100.0 / 3.0;
    whole / (OFFERED - whole)
}

/// How late a choice shows: the estimator's time constant and a round trip over two switches with
/// packets of a host at 1 Gbit/s.
const FEEDBACK_US: f64 = 160.0 + 60.0;

/// Equal metrics are equal use, and that is two to one by bytes: in the limit of small and long
/// flowlets. What may be missing follows from two things.
///
/// - Use that differs by less than a level, 2^-Q, is no difference. Equals are drawn one to one,
///   which is too much for the half path, so this error has one sign.
/// - A choice shows late. Flows that last T, all given to one path for the time d, move so much use
///   from one path to the other: of [`OFFERED`], d / T, which is d / T of the whole path, and 2 d /
///   T of the half one.
#[test]
fn with_long_flowlets_the_split_is_two_to_one_but_for_a_level_and_the_delay() {
    const LAST_US: f64 = 20_000.0;
    let fabric = fabric(HALF_A_PATH);
    let flows = two_thirds((LAST_US / 8.0 * 1_000.0) as u64, 100_000);
    let moved = FEEDBACK_US / LAST_US;
    for bits in [3, 6] {
        let scheme = format!("{CONGA}\nmetric_bits = {bits}");
        let run = Run { sample_every: Some(Span::from_ms(1)), ..Run::new(&fabric, DCTCP, &scheme) };
        let results = run.flows(&flows);
        // From when as many flows end as begin, until none begins any more.
        let steady = |link: usize| {
            let samples = results.samples.links.iter().filter(|sample| sample.link as usize == link);
            let whole_ms = samples.filter(|sample| (41..=100).contains(&(sample.at.as_ps() / 1_000_000_000)));
            whole_ms.map(|sample| sample.sent_bytes as f64).sum::<f64>()
        };
        let [whole, half] = uplinks(&fabric).map(steady);
        let level = 0.5f64.powi(bits);
        let (least, most) = (split(-level - 2.0 * moved), split(moved));
        let found = whole / half;
        assert!((least..most).contains(&found), "{found:.3} to 1, not from {least:.3} to {most:.3}");
    }
}

/// Flows that last 0.5 ms come and go almost as fast as their use is reported: the choice swings to
/// and fro, and each swing goes twice as far on the half path. From equal use, the time d with all
/// flows on the whole path makes the difference of use d / T; with all on the half path, -2 d / T,
/// or less where that path is full: it has a third to spare, and the whole path loses 2/3 d / T.
/// The mean of a swing is half of both together. Six bits, as this is not of the levels' making.
#[test]
fn short_flows_swing_and_leave_too_much_on_the_half_path_yet_finish_sooner_than_with_ecmp() {
    let fabric = fabric(HALF_A_PATH);
    let flows = two_thirds(62_500, 20_000);
    let ratio = |scheme| {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&flows);
        let [whole, half] = uplink_bytes(&fabric, &results);
        (whole / half, mean_fct_us(&results, &flows))
    };
    let ((ecmp, ecmp_fct), (conga, conga_fct)) = (ratio(ECMP), ratio("name = 'conga'\nmetric_bits = 6"));
    let (moved, level) = (FEEDBACK_US / 500.0, 1.0 / 64.0);
    let least = split((moved - 2.0 * moved) / 2.0 - level);
    let most = split((moved - 1.0 / 3.0 - 2.0 / 3.0 * moved) / 2.0 + level);
    assert!((least..most).contains(&conga), "{conga:.3} to 1, not from {least:.3} to {most:.3}");
    // Half of some 3,900 flows, to four standard deviations (6 %), and what the half path sends
    // again.
    assert!((0.85..1.14).contains(&ecmp), "ECMP: {ecmp:.2} to 1");
    assert!(conga_fct < ecmp_fct, "mean FCT {conga_fct:.0} us, with ECMP {ecmp_fct:.0} us");
}

/// A path that looked busy when its last packet passed goes on looking so, for nothing passes that
/// could say otherwise. Bursts of 30 KB at 10 Gbit/s are 2.4 levels of a path of 5 Gbit/s, and 6
/// Gbit/s are level 4 of the whole path alone: once it is left at 5 or more, the half path is idle
/// until its metric ages. Then a few bursts bring it back to the top: the sooner it ages, the more
/// it carries.
#[test]
fn a_path_that_is_left_in_a_burst_stays_idle_until_its_metric_ages() {
    let bursts = fabric(&format!(
        "{}[[fault]]\nlink = 'spine1>leaf1'\nrate = '5Gbps'",
        TWO_SPINES.replace("1Gbps", "10Gbps")
    ));
    let flows = flows_of(32, 30_000, 60_000, 41_100);
    let half = uplinks(&bursts)[1];
    // The longest time without a packet on the half path in ms, and its share of the bytes.
    let idle = |aging_ms: u64| {
        let scheme = format!("{CONGA}\naging = '{aging_ms}ms'");
        let run = Run { sample_every: Some(Span::from_ms(1)), ..Run::new(&bursts, DCTCP, &scheme) };
        let results = run.flows(&flows);
        let samples = results.samples.links.iter().filter(|sample| sample.link as usize == half);
        let used: Vec<u64> = samples.map(|sample| sample.at.as_ps().div_ceil(1_000_000_000)).collect();
        let longest = used.windows(2).map(|pair| pair[1] - pair[0] - 1).max();
        let bytes = uplink_bytes(&bursts, &results);
        (longest.unwrap_or(0), bytes[1] / (bytes[0] + bytes[1]))
    };
    let ((long, little), (short, more)) = (idle(10), idle(1));
    // Whole milliseconds within the time until aging begins, and until it must have ended.
    assert!((9..=20).contains(&long), "idle for {long} ms");
    assert!(short <= 2, "idle for {short} ms");
    // A metric climbs in some three time constants of 160 us, and ages for 10 ms: the path is used
    // a twentieth of the time.
    assert!(little < 0.05, "{little:.3} of the bytes");
    assert!(more > little, "{more:.3} and {little:.3} of the bytes");
}

/// Two milliseconds after the far link fell to a tenth, little takes it. (Feedback needs a round
/// trip and tau, well below that.)
#[test]
fn flowlets_leave_a_path_whose_far_link_becomes_slow() {
    let fault = "[[fault]]\nlink = 'spine1>leaf1'\nat = '10ms'\nrate = '1Gbps'";
    let slowing = fabric(&format!("{TWO_SPINES}{fault}"));
    let bytes_by = |duration_us| {
        let results = Run::new(&slowing, DCTCP, CONGA).flows(&load(duration_us, 80_000));
        uplink_bytes(&slowing, &results)
    };
    let (before, after) = (bytes_by(12_000), bytes_by(40_000));
    let [whole, slow] = [after[0] - before[0], after[1] - before[1]];
    let share = slow / (whole + slow);
    // Equal use of 10 and 1 Gbit/s is one of eleven; without feedback it would be half. It is
    // nearer to the first.
    assert!(share < f64::midpoint(1.0 / 11.0, 0.5), "{share:.3} over the slow path");
}

/// A failure beyond the next switch is for routing to find out: until then (1 ms) packets are lost,
/// and from then on no flow is given to it.
#[test]
fn a_far_link_that_fails_is_left_when_routing_knows() {
    let fault = "[[fault]]\nlink = 'spine1-leaf1'\nat = '10ms'\ndown = true";
    let failing = fabric(&format!("{TWO_SPINES}{fault}"));
    let flows = load(30_000, 80_000);
    let results = Run::new(&failing, DCTCP, CONGA).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    let [_, dead] = uplink_bytes(&failing, &results);
    // 137 flows begin within the 11 ms, of 61,680 B with headers. A coin would give half of them to
    // that path, to four standard deviations of sqrt(137) / 2.
    let began = 11_000.0 / 80.0f64;
    let most = (began / 2.0 + 2.0 * began.sqrt()) * 61_680.0;
    assert!(dead < most, "{dead} bytes towards the dead link, at most {most:.0}");
}

#[test]
fn on_a_symmetric_fabric_it_is_no_worse_than_ecmp_and_splits_evenly() {
    let fabric = fabric(TWO_SPINES);
    let flows = load(40_000, 50_000);
    let [ecmp, conga] = [ECMP, CONGA].map(|scheme| Run::new(&fabric, DCTCP, scheme).flows(&flows));
    let [first, second] = uplink_bytes(&fabric, &conga);
    // No worse than a coin for each of 800 flows, whose standard deviation is 1.8 %: four of them.
    let share = first / (first + second);
    assert!((share - 0.5).abs() < 2.0 / 800.0f64.sqrt(), "{first} and {second} bytes");
    let [ecmp_fct, conga_fct] = [&ecmp, &conga].map(|results| mean_fct_us(results, &flows));
    assert!(conga_fct <= ecmp_fct, "mean FCT {conga_fct:.0} us, with ECMP {ecmp_fct:.0} us");
    assert!(counter(&conga, "reports") > 0);
}

#[test]
fn conga_flow_moves_no_flow_that_keeps_sending() {
    let fabric = fabric(TWO_SPINES);
    let flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 32 + host, 2_000_000)).collect();
    let results = Run::new(&fabric, DCTCP, "name = 'conga'\ngap = '13ms'").flows(&flows);
    assert_eq!(results.flows.iter().map(|flow| flow.path_changes).sum::<u32>(), 0);
    let [first, second] = uplink_bytes(&fabric, &results);
    assert!(first > 0.0 && second > 0.0);
}

/// On three tiers edge switches choose by what comes back, aggregation switches hash.
#[test]
fn on_a_fat_tree_every_flow_completes_and_leaves_report() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4");
    let flows: Vec<Flow> = (0..200)
        .map(|index| flow(index * 10, (index % 16) as u16, ((index + 5) % 16) as u16, 30_000))
        .collect();
    let results = Run::new(&fabric, DCTCP, CONGA).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    // Every flow goes to another rack (five hosts on, two a rack), and its first acknowledgement
    // reports.
    assert!(counter(&results, "reports") >= 200);
}

/// One path leaves nothing to choose.
#[test]
fn with_one_spine_it_is_ecmp() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 32");
    let flows = load(2_000, 80_000);
    let [ecmp, conga] = [ECMP, CONGA].map(|scheme| Run::new(&fabric, DCTCP, scheme).flows(&flows));
    assert_eq!(ecmp.flows, conga.flows);
    assert_eq!(ecmp.links, conga.links);
}
