//! What QALL does to real traffic on small fabrics.

mod common;

use common::{Run, fabric, flow, link_named};
use weft_fabric::{Fabric, Results};
use weft_traffic::Flow;

const TCP: &str = "name = 'tcp'";

/// Sixteen hosts, and a way over spine 1 that has a tenth of the rate. Queues fill to the brim: nobody marks.
fn unequal() -> Fabric {
    fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
         [switch_queue]\nbuffer = '100packets'\nmark = 'never'\n\
         [[fault]]\nlink = 'leaf0-spine1'\nrate = '1Gbps'",
    )
}

fn flows_between_racks(count: u64, every_us: u64, size_bytes: u64) -> Vec<Flow> {
    (0..count)
        .map(|index| flow(index * every_us, (index % 8) as u16, 8 + (index % 8) as u16, size_bytes))
        .collect()
}

fn counter(results: &Results, name: &str) -> u64 {
    results
        .scheme
        .iter()
        .find(|counter| counter.name == name)
        .map(|counter| counter.value)
        .expect("a counter of QALL")
}

/// The share of leaf 0's bytes on the slow uplink.
fn slow_share(fabric: &Fabric, results: &Results) -> f64 {
    let [fast, slow] =
        ["leaf0>spine0", "leaf0>spine1"].map(|name| results.links[link_named(fabric, name)].bytes as f64);
    slow / (fast + slow)
}

fn mean_fct_us(results: &Results, flows: &[Flow]) -> f64 {
    (0..flows.len()).map(|index| common::fct(results, flows, index).as_us()).sum::<f64>() / flows.len() as f64
}

/// Clones 10 ms apart carry what a queue of 1.2 ms was long ago. Ports that were full then are left idle, and the others
/// are full by now.
#[test]
fn stale_queue_behaviour_decides_worse_than_fresh_on_an_asymmetric_fabric() {
    let (fabric, flows) = (unequal(), flows_between_racks(400, 60, 100_000));
    let run = |update: &str| {
        let balancer =
            format!("name = 'qall'\nupdate = '{update}'\nrecirculation = '1us'\ntime_constant = '1ms'");
        let results = Run::new(&fabric, TCP, &balancer).flows(&flows);
        let age = counter(&results, "state_age_ns") / counter(&results, "decisions");
        (slow_share(&fabric, &results), mean_fct_us(&results, &flows), age)
    };
    let (fresh, stale, never) = (run("50us"), run("10ms"), run("1000s"));
    let found = format!("share of the slow path, mean FCT in us, age in ns: {fresh:?}, {stale:?}, {never:?}");
    assert!(fresh.1 * 1.5 < stale.1 && stale.1 * 1.5 < never.1, "{found}");
    assert!(fresh.0 < stale.0 && stale.0 < never.0, "{found}");
    assert!(fresh.2 * 10 < stale.2 && never.2 == 0, "{found}");
}

/// Eq. 12 and 13 are no part of this: with short intervals, they rate a full queue as less congested than one that is a
/// third full.
#[test]
fn the_product_and_the_linear_fit_move_load_off_the_slow_path() {
    let (fabric, flows) = (unequal(), flows_between_racks(400, 60, 100_000));
    let share = |balancer: &str| slow_share(&fabric, &Run::new(&fabric, TCP, balancer).flows(&flows));
    let random = share("name = 'rps'");
    for form in ["product", "linear"] {
        let found = share(&format!(
            "name = 'qall'\nform = '{form}'\nupdate = '50us'\nrecirculation = '1us'\ntime_constant = '1ms'"
        ));
        assert!(
            found * 2.0 < random,
            "{form}: {found:.3} of the bytes on the slow path, {random:.3} at random"
        );
    }
}

#[test]
fn a_burst_stays_together_by_the_flowlet_and_not_by_the_packet() {
    let fabric = fabric(common::SMALL);
    let flows = [flow(0, 0, 2, 300_000), flow(0, 1, 3, 300_000)];
    let run = |granularity: &str| {
        let balancer = format!("name = 'qall'\ngranularity = '{granularity}'");
        let results = Run::new(&fabric, TCP, &balancer).flows(&flows);
        let changes: u32 = results.flows.iter().map(|flow| flow.path_changes).sum();
        (changes, counter(&results, "decisions"))
    };
    let (changes, decisions) = run("flowlet");
    // A decision for each flow at its leaf, and one for its acknowledgements at the other. A spine has no choice.
    assert_eq!((changes, decisions), (0, 4));
    let (changes, _) = run("packet");
    assert!(
        changes > 100,
        "{changes} changes of path: of 410 packets half follow one that went the other way"
    );
}

#[test]
fn clones_come_back_after_the_recirculation_and_take_no_bytes_of_links() {
    let fabric = fabric(common::SMALL);
    let flows = [flow(0, 0, 2, 3_000_000)];
    let results =
        Run::new(&fabric, TCP, "name = 'qall'\nupdate = '20us'\nrecirculation = '7us'").flows(&flows);
    let [clones, bytes, delay] =
        ["clones", "clone_bytes", "decision_delay_ns"].map(|name| counter(&results, name));
    assert!(clones > 100, "{clones} clones in 2.4 ms and more");
    assert_eq!((bytes, delay % 7_000, results.packets.control_bytes), (clones * 10, 0, 0));
    assert!(delay <= clones * 7_000 && delay * 10 > clones * 7_000 * 9, "{delay} ns for {clones} clones");
}

#[test]
fn one_path_leaves_nothing_to_decide() {
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 2");
    let flows = [flow(0, 0, 2, 300_000), flow(0, 3, 1, 300_000)];
    let qall = Run::new(&fabric, TCP, "name = 'qall'").flows(&flows);
    assert_eq!(counter(&qall, "decisions"), 0);
    assert_eq!(qall.flows, Run::new(&fabric, TCP, "name = 'ecmp'").flows(&flows).flows);
}
