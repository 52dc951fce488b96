//! Hermes on small fabrics: paths that slow down and recover, blackholes, random drops, and what
//! probes cost.

use crate::common::{Run, fabric, fct, flow, link_named};
use weft_fabric::Results;
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::Span;

const DCTCP: &str = r#"name = "dctcp""#;
const ECMP: &str = r#"name = "ecmp""#;
const HERMES: &str = r#"name = "hermes""#;

/// An idle round trip takes 14 us, so that a path is good below 34 us. Routing never learns of
/// faults within these runs.
const TWO_SPINES: &str =
    "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 16\nreroute_after = '10s'\n";

/// Flows of 30 KB from rack 0 to rack 1 between two times, one each 50 us: 4.9 Gbit/s. Two windows
/// of ten packets stand for at most 12 us in the sender's own queue, so an empty path looks good.
fn load(from_us: u64, to_us: u64) -> Vec<Flow> {
    let one =
        |index: u64| flow(from_us + index * 50, (index % 16) as u16, 16 + (index * 5 % 16) as u16, 30_000);
    (0..(to_us - from_us) / 50).map(one).collect()
}

/// Bytes on a link in each millisecond, counted at its end; the run's last one may be shorter.
fn bytes_by_ms(fabric: &Fabric, results: &Results, link: &str) -> Vec<u64> {
    let link = link_named(fabric, link);
    let mut bytes = Vec::new();
    for sample in results.samples.links.iter().filter(|sample| sample.link as usize == link) {
        let ms = sample.at.as_ps().div_ceil(1_000_000_000) as usize;
        bytes.resize(bytes.len().max(ms + 1), 0);
        bytes[ms] += sample.sent_bytes;
    }
    bytes
}

/// Shares of the bytes that leave rack 0 by spine 1, in each millisecond (sampled at its end).
fn shares_by_ms(fabric: &Fabric, results: &Results) -> Vec<f64> {
    let [zero, one] = ["leaf0>spine0", "leaf0>spine1"].map(|link| bytes_by_ms(fabric, results, link));
    zero.iter().zip(&one).map(|(&zero, &one)| one as f64 / (zero + one).max(1) as f64).collect()
}

fn sampled<'a>(fabric: &'a Fabric, scheme: &'a str) -> Run<'a> {
    Run { sample_every: Some(Span::from_ms(1)), ..Run::new(fabric, DCTCP, scheme) }
}

fn counter(results: &Results, name: &str) -> u64 {
    results.scheme.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A flow leaves a bad path; new flows avoid one that is not good. The first probe after the cut
/// finds it (500 us), and its report follows within 134 us: two intervals. Empty, a slow path looks
/// as good as any to 64 bytes, so it is tried again and again, but it is given less than what it
/// can carry: 1 of 4.9 Gbit/s. ECMP knows nothing of paths: without the cut it gives this one half
/// of some 570 flows, to four standard deviations (8 %), and with it the same flows, more than it
/// can carry.
#[test]
fn two_probe_intervals_after_a_path_fell_to_a_tenth_it_gets_less_than_it_can_carry() {
    let fault = "[[fault]]\nlink = 'spine1>leaf1'\nat = '10ms'\nrate = '1Gbps'";
    let (whole, falling) = (fabric(TWO_SPINES), fabric(&format!("{TWO_SPINES}{fault}")));
    let share = |fabric: &Fabric, scheme| {
        let results = sampled(fabric, scheme).flows(&load(0, 40_000));
        mean(&shares_by_ms(fabric, &results)[12..=40])
    };
    let [blind, ecmp, hermes] =
        [(&whole, ECMP), (&falling, ECMP), (&falling, HERMES)].map(|(fabric, scheme)| share(fabric, scheme));
    assert!((0.42..0.58).contains(&blind), "ECMP, before the cut: {blind:.3}");
    assert!(hermes < 0.2, "Hermes: {hermes:.3}");
    assert!(ecmp > 0.2, "ECMP: {ecmp:.3}");
}

/// 375 KB at 1 Gbit/s are a round trip of 3 ms at most. An estimate keeps 46 % beside a new one
/// (half, 8 periods of 60 us old), so seven probes of 14 us bring 3 ms below the 34 us of a good
/// path. All paths of a pair are probed each interval: 4 ms with the report. From then on both look
/// alike, and the 220 flows of 11 ms split evenly, to four standard deviations.
#[test]
fn eight_probe_intervals_after_it_recovered_a_path_has_its_share_again() {
    let fault = "[[fault]]\nlink = 'spine1>leaf1'\nat = '2ms'\nuntil = '10ms'\nrate = '1Gbps'";
    let fabric = fabric(&format!("{TWO_SPINES}{fault}"));
    let results = sampled(&fabric, HERMES).flows(&load(0, 26_000));
    let shares = shares_by_ms(&fabric, &results);
    let (slow, whole) = (mean(&shares[5..=10]), mean(&shares[15..=25]));
    assert!(slow < 0.2, "{slow:.3} while it was slow");
    assert!((0.365..=0.635).contains(&whole), "{whole:.3} afterwards");
}

/// Four long flows and a path each, more or less. On the path that falls to a tenth, 10 MB take 80
/// ms; half of another path takes 16 ms.
#[test]
fn a_long_flow_leaves_a_path_that_becomes_bad() {
    let four = TWO_SPINES.replace("spines = 2", "spines = 4");
    let fault = "[[fault]]\nlink = 'spine1>leaf1'\nat = '3ms'\nrate = '1Gbps'";
    let fabric = fabric(&format!("{four}{fault}"));
    let flows: Vec<Flow> = (0..8).map(|index| flow(0, index, 16 + index, 15_000_000)).collect();
    let slowest = |scheme| {
        let results = Run::new(&fabric, DCTCP, scheme).flows(&flows);
        let took = (0..flows.len()).map(|index| fct(&results, &flows, index)).max().unwrap_or_default();
        (took, counter(&results, "reroutes"))
    };
    let (never, nobody) = slowest("name = 'hermes'\nreroute_after = '1GB'");
    let (took, reroutes) = slowest(HERMES);
    assert_eq!(nobody, 0, "S is more than any flow");
    assert!(reroutes > 0);
    // 120 MB over three paths are 32 ms at best.
    assert!(took < Span::from_ms(60) && took + took < never, "{took}, and {never} without rerouting");
}

/// All sixteen flows of a pair start before a probe is back, so about half of them take the path
/// that swallows everything. They time out once, and leave. Three timeouts without an
/// acknowledgement are a blackhole; flows that begin later never meet it.
#[test]
fn a_blackhole_is_found_by_three_timeouts_and_met_no_more() {
    let fabric = fabric(&format!("{TWO_SPINES}[[fault]]\nlink = 'leaf0>spine1'\nblackhole = 1.0"));
    let later = (0..200).map(|index| flow(12_000 + index * 50, 0, 16, 30_000));
    let flows: Vec<Flow> = (0..16).map(|_| flow(0, 0, 16, 30_000)).chain(later).collect();
    let results = Run::new(&fabric, DCTCP, HERMES).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    let timeouts: Vec<u64> = results.flows.iter().map(|flow| u64::from(flow.sender.timeouts)).collect();
    assert!(timeouts[..16].iter().all(|&count| count <= 1) && timeouts[16..].iter().all(|&count| count == 0));
    let met: u64 = timeouts.iter().sum();
    assert!(met >= 3, "{met} of 16 took it");
    assert_eq!((counter(&results, "blackholes"), counter(&results, "escapes")), (1, met));
}

/// 3 % loss limits DCTCP to windows of some seven packets, or thousands of packets in 10 ms: enough
/// to judge. A window of time, and timeouts of some 5 ms meanwhile: after 40 ms nobody sends there.
#[test]
fn a_path_that_drops_at_random_is_found_by_its_retransmissions_and_left() {
    let fabric = fabric(&format!("{TWO_SPINES}[[fault]]\nlink = 'leaf0>spine1'\nloss = 0.03"));
    let flows: Vec<Flow> = (0..4).map(|host| flow(0, host, 16 + host, 20_000_000)).collect();
    let results = sampled(&fabric, HERMES).flows(&flows);
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    assert!((1..=4).contains(&counter(&results, "random_drops")), "once a host at most");
    let bytes = bytes_by_ms(&fabric, &results, "leaf0>spine1");
    let (early, late) = bytes.split_at(41);
    assert!(early.iter().sum::<u64>() > 1_000_000 && late.len() > 10);
    // Probes: two frames of 64 bytes an interval, and the answers of the other direction.
    assert!(late.iter().all(|&bytes| bytes <= 256), "{late:?}");
}

/// A probe and its answer take four links each, a report two. What was on its way at the end is
/// missing: of each of two agents at most two probes or answers, and fifteen reports.
#[test]
fn probes_and_reports_take_bytes_on_every_link() {
    let fabric = fabric(TWO_SPINES);
    let results = Run::new(&fabric, DCTCP, HERMES).flows(&load(0, 20_000));
    let [probes, answers, reports] =
        ["probes", "probe_answers", "reports"].map(|name| counter(&results, name));
    // 40 intervals, in which each agent probes both paths; the agents begin somewhere within the
    // first.
    assert!((2 * 2 * 39..=2 * 2 * 41).contains(&probes), "{probes}");
    assert!(probes - answers <= 4 && (2 * 15 * 38..=2 * 15 * 41).contains(&reports), "{answers}, {reports}");
    assert_eq!(counter(&results, "probe_bytes"), (probes + answers) * 64);
    let whole = 4 * counter(&results, "probe_bytes") + 2 * counter(&results, "report_bytes");
    let missing = whole - results.packets.control_bytes;
    assert!(missing <= 2 * (2 * 4 * 64 + 15 * 2 * 64), "{missing} of {whole} bytes");
}

#[test]
fn with_one_spine_it_is_ecmp() {
    let fabric = fabric(&TWO_SPINES.replace("spines = 2", "spines = 1"));
    let flows = load(0, 2_000);
    let [ecmp, hermes] = [ECMP, HERMES].map(|scheme| Run::new(&fabric, DCTCP, scheme).flows(&flows));
    assert_eq!(ecmp.flows, hermes.flows);
    assert_eq!(ecmp.links, hermes.links);
}

/// On three tiers and with connection requests, plain TCP and delayed acknowledgements everything
/// still arrives.
#[test]
fn on_a_fat_tree_every_flow_completes() {
    let fabric = fabric("kind = 'fat-tree'\nk = 4");
    let flows: Vec<Flow> = (0..200)
        .map(|index| flow(index * 10, (index % 16) as u16, ((index + 5) % 16) as u16, 30_000))
        .collect();
    for transport in ["name = 'dctcp'\nhandshake = true", "name = 'tcp'\nsack = true\nack_every = 2"] {
        let results = Run::new(&fabric, transport, HERMES).flows(&flows);
        assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
        assert!(counter(&results, "placed_good") > 0);
    }
}

/// Flows that move overtake themselves, and send again what was never lost: that must not fail the
/// path they move to. One path of four has a fifth of its rate, so that a queue at the marking
/// threshold (97.5 KB) makes it bad: 390 us.
#[test]
fn moves_where_nothing_is_lost_fail_no_path() {
    let four = TWO_SPINES.replace("spines = 2", "spines = 4");
    let slow = "[[fault]]\nlink = 'spine1>leaf1'\nrate = '2Gbps'\n[switch_queue]\nbuffer = 'unlimited'";
    let fabric = fabric(&format!("{four}{slow}"));
    let flows: Vec<Flow> = (0..160)
        .map(|index| flow(index * 500, (index % 16) as u16, 16 + (index * 5 % 16) as u16, 1_500_000))
        .collect();
    let results = Run::new(&fabric, DCTCP, HERMES).flows(&flows);
    let again: u64 = results.flows.iter().map(|flow| u64::from(flow.sender.retransmissions)).sum();
    let [moves, verdicts] = ["reroutes", "random_drops"].map(|name| counter(&results, name));
    assert_eq!(results.packets.dropped, 0);
    assert!(moves > 0 && again > 0, "{moves} moves, {again} segments again");
    assert_eq!(verdicts, 0);
}
