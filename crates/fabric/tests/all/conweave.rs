//! ConWeave over a fabric: connections move, and hosts see nothing of it.

use crate::common::{Run, counter, fabric, flow};
use weft_fabric::Results;
use weft_traffic::Flow;

const DCTCP: &str = "name = 'dctcp'";

/// Two leaves, four spines, one of them farther and one slower than the others: who moves
/// overtakes. Nothing is dropped.
const UNEVEN: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\n\
    switch_queue = { buffer = 'unlimited', mark = '30KB' }\nhost_queue = { buffer = 'unlimited', mark = 'never' }\n\
    [[fault]]\nlink = 'leaf0-spine1'\ndelay = '40us'\n[[fault]]\nlink = 'leaf0-spine2'\nrate = '2Gbps'\n";

/// Moves often, and waits long for a TAIL; no pause of a window that is all on a slow path counts.
const HASTY: &str = "name = 'conweave'\nreply_extra = '2us'\nsamples = 8\nresume_extra = '5ms'\n\
resume_default = '30ms'\ninactive = '30ms'";

fn flows() -> Vec<Flow> {
    (0..32).map(|index| flow(index * 20, (index % 8) as u16, 8 + (index * 3 % 8) as u16, 400_000)).collect()
}

fn out_of_order(results: &Results) -> u32 {
    results.flows.iter().map(|record| record.receiver.out_of_order).sum()
}

#[test]
fn connections_move_and_every_packet_still_comes_in_order() {
    let fabric = fabric(UNEVEN);
    let results = Run::new(&fabric, DCTCP, HASTY).flows(&flows());
    assert!(counter(&results, "reroutes") > 50 && counter(&results, "held_packets") > 50);
    let unmasked = counter(&results, "resumed_by_timer") + counter(&results, "passed_out_of_order");
    assert_eq!((unmasked, results.packets.dropped), (0, 0));
    assert_eq!(out_of_order(&results), 0, "{:?}", results.scheme);
    assert!(results.flows.iter().map(|record| record.path_changes).sum::<u32>() > 50);
    assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
    // The same moves without a place to wait in: one queue a port is not enough for all.
    let few = Run::new(&fabric, DCTCP, &format!("{HASTY}\nqueues = 1")).flows(&flows());
    assert!(counter(&few, "passed_out_of_order") > 0 && out_of_order(&few) > 0);
}

#[test]
fn what_is_held_is_waited_for_in_the_flows_own_account() {
    let fabric = fabric(UNEVEN);
    let results = Run::new(&fabric, DCTCP, HASTY).flows(&flows());
    // Every completion time is made up of its parts, and what was held waited at the last link.
    assert!(counter(&results, "most_held_bytes") > 1_500);
    let waits: u64 = results.flows.iter().map(|record| record.wait_ps[3]).sum();
    assert!(waits > 0);
}

#[test]
fn a_slow_path_is_left_to_others_and_answers_cost_bytes() {
    let fabric = fabric(UNEVEN);
    let [ecmp, conweave] =
        ["name = 'ecmp'", "name = 'conweave'"].map(|scheme| Run::new(&fabric, DCTCP, scheme).flows(&flows()));
    let slowest = |results: &Results| results.flows.iter().filter_map(|record| record.delivered).max();
    assert!(slowest(&conweave) < slowest(&ecmp));
    let told = counter(&conweave, "replies") + counter(&conweave, "clears") + counter(&conweave, "notifies");
    // Each is 64 bytes over two links.
    assert_eq!(conweave.packets.control_bytes, told * 128);
    assert_eq!(counter(&conweave, "epochs"), counter(&conweave, "replies"), "no request is lost here");
}

#[test]
fn a_lost_tail_holds_nobody_for_ever() {
    let fabric = fabric(&format!("{UNEVEN}[[fault]]\nlink = 'spine3>leaf1'\nloss = 0.05\n"));
    let scheme = "name = 'conweave'\nreply_extra = '2us'\nsamples = 8";
    let results = Run::new(&fabric, DCTCP, scheme).flows(&flows());
    assert!(results.packets.dropped > 0);
    assert!(counter(&results, "resumed_by_timer") > 0);
    assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
}

#[test]
fn in_three_tiers_paths_may_say_the_way_above() {
    let fabric = fabric(
        "kind = 'fat-tree'\nk = 4\nswitch_queue = { buffer = 'unlimited', mark = '30KB' }\n\
         host_queue = { buffer = 'unlimited', mark = 'never' }\n[[fault]]\nlink = 'agg0-core1'\ndelay = '50us'\n",
    );
    let flows: Vec<Flow> = (0..64)
        .map(|index| flow(index * 10, (index % 16) as u16, ((index + 5) % 16) as u16, 200_000))
        .collect();
    for above in [1, 2] {
        let results = Run::new(&fabric, DCTCP, &format!("{HASTY}\nabove = {above}")).flows(&flows);
        assert!(counter(&results, "reroutes") > 0, "above = {above}");
        let unmasked = counter(&results, "resumed_by_timer") + counter(&results, "passed_out_of_order");
        assert_eq!((unmasked, out_of_order(&results)), (0, 0), "above = {above}");
    }
}
