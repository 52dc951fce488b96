//! Flowcut switching over a fabric: flows move, and nothing comes out of order.

use crate::common::{Run, counter, fabric, flow, mean_fct_us};
use weft_traffic::Flow;

const DCTCP: &str = "name = 'dctcp'";

/// Two leaves, four spines, one of them farther and one slower than the others. Nothing is dropped.
const UNEVEN: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\n\
    switch_queue = { buffer = 'unlimited', mark = '30KB' }\nhost_queue = { buffer = 'unlimited', mark = 'never' }\n\
    [[fault]]\nlink = 'leaf0-spine1'\ndelay = '40us'\n[[fault]]\nlink = 'leaf0-spine2'\nrate = '2Gbps'\n";

fn flows() -> Vec<Flow> {
    (0..32).map(|index| flow(index * 20, (index % 8) as u16, 8 + (index * 3 % 8) as u16, 400_000)).collect()
}

#[test]
fn flows_are_drained_and_moved_and_never_reordered() {
    let fabric = fabric(UNEVEN);
    let results = Run::new(&fabric, DCTCP, "name = 'flowcut'\nratio = 1.5\nalpha = 0.5").flows(&flows());
    assert!(counter(&results, "drains") > 0 && counter(&results, "held_packets") > 0);
    assert_eq!((counter(&results, "drains_given_up"), results.packets.dropped), (0, 0));
    assert!(results.flows.iter().map(|record| record.path_changes).sum::<u32>() > 0);
    assert_eq!(results.flows.iter().map(|record| record.receiver.out_of_order).sum::<u32>(), 0);
    assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
}

#[test]
fn a_flow_that_begins_takes_an_idle_uplink() {
    // Eight flows that begin one after the other over eight uplinks: none shares one, as each sees
    // the queues of those before.
    let fabric = fabric("kind = 'leaf-spine'\nleaves = 2\nspines = 8\nhosts_per_leaf = 8\n");
    let flows: Vec<Flow> = (0..8).map(|host| flow(0, host, 8 + host, 4_000_000)).collect();
    let [ecmp, flowcut] =
        ["name = 'ecmp'", "name = 'flowcut'"].map(|scheme| Run::new(&fabric, DCTCP, scheme).flows(&flows));
    assert!(mean_fct_us(&flowcut, &flows) < mean_fct_us(&ecmp, &flows));
}

#[test]
fn losses_hold_no_drain_up() {
    let fabric = fabric(&format!("{UNEVEN}[[fault]]\nlink = 'spine3>leaf1'\nloss = 0.05\n"));
    let results = Run::new(&fabric, DCTCP, "name = 'flowcut'\nratio = 1.5\nalpha = 0.5").flows(&flows());
    assert!(results.packets.dropped > 0 && counter(&results, "drains") > 0);
    assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
}
