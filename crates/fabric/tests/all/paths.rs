//! Traffic of each path.
use crate::common::{Run, SMALL, fabric, flow};
use weft_traffic::Flow;

fn bytes(scheme: &str, flows: &[Flow], paths_of: u64) -> Vec<(u16, u16, u64)> {
    let fabric = fabric(SMALL);
    let mut run = Run::new(&fabric, "name = \"dctcp\"", scheme);
    run.paths_of = Some(paths_of);
    run.flows(flows).paths.iter().map(|path| (path.src_rack, path.dst_rack, path.bytes)).collect()
}

#[test]
fn a_flow_that_keeps_its_path_leaves_the_other_one_empty() {
    let mut found = bytes("name = \"ecmp\"", &[flow(0, 0, 2, 300_000)], 0);
    found.sort_unstable();
    assert_eq!(found, [(0, 1, 0), (0, 1, 300_000)]);
}

#[test]
fn drb_deals_a_flow_out_evenly_over_the_paths() {
    // 200 packets of 1,460 bytes in turn over two paths: 100 each.
    let found = bytes("name = \"drb\"", &[flow(0, 0, 2, 292_000)], 0);
    assert_eq!(found, [(0, 1, 146_000), (0, 1, 146_000)]);
}

#[test]
fn small_flows_flows_within_a_rack_and_acknowledgements_do_not_count() {
    let flows = [flow(0, 0, 2, 99_999), flow(0, 0, 1, 300_000), flow(0, 3, 1, 100_000)];
    let found = bytes("name = \"rps\"", &flows, 100_000);
    assert!(found.iter().all(|&(src, dst, _)| (src, dst) == (1, 0)), "{found:?}");
    assert_eq!(found.iter().map(|path| path.2).sum::<u64>(), 100_000);
}

#[test]
fn nothing_is_counted_unasked() {
    let fabric = fabric(SMALL);
    let results = Run::new(&fabric, "name = \"dctcp\"", "name = \"rps\"").flows(&[flow(0, 0, 2, 300_000)]);
    assert!(results.paths.is_empty());
}
