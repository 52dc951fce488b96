//! Whatever graph a fabric is, nothing of a run depends on the partitions and threads that work on
//! it: events are counted, too.

use proptest::prelude::*;
use weft_traffic::Flow;
use weft_units::Span;

use crate::any_graph::{any_graph, with_graph};
use crate::common::{Run, cases, done_as, flow};

/// All hosts send to several others, at times that the numbers say.
fn shuffle(hosts: u16, starts: &[u64]) -> Vec<Flow> {
    let pairs = (0..hosts).flat_map(|src| (1..hosts.min(4)).map(move |turn| (src, (src + turn) % hosts)));
    let mut flows: Vec<Flow> = pairs
        .zip(starts.iter().cycle())
        .map(|((src, dst), &start)| flow(start, src, dst, 3_000 + 700 * start))
        .collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

fn assert_alike(run: &Run<'_>, flows: &[Flow], of_groups: &[(usize, usize)]) -> Result<(), TestCaseError> {
    let whole = run.flows(flows);
    for &(partitions, threads) in of_groups {
        let shared = Run { partitions, threads, ..*run }.flows(flows);
        prop_assert!(done_as(shared, &whole) == whole, "{} partitions on {} threads", partitions, threads);
    }
    Ok(())
}

const QUEUE: &str = "[switch_queue]\nbuffer = '60KB'\nmark = '15KB'\n";

/// Eight hosts at one switch, which is the highest.
#[test]
fn hosts_at_one_switch_are_one_group() {
    let graph = "hosts = [{ prefix = 'h', count = 8 }]\nswitches = ['s']\nrate = '10Gbps'\ndelay = '1us'\n[[link]]\n\
        from = ['h0', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7']\nto = 's'\n";
    let fabric = with_graph(QUEUE, graph).unwrap();
    let run = Run { partitions: 8, threads: 2, ..Run::new(&fabric, "name = 'dctcp'", "name = 'ecmp'") };
    let flows = shuffle(8, &[1, 8, 3]);
    let results = run.flows(&flows);
    assert!(results.flows.iter().all(|record| record.acknowledged.is_some()));
    assert_eq!((results.cooperation.partitions, results.packets.unroutable), (1, 0));
}

/// Each switch of a ring has hosts, so all are the highest: each is a partition.
#[test]
fn switches_of_a_ring_are_groups() {
    let links = (0..4).map(|switch| {
        let hosts = [2 * switch, 2 * switch + 1];
        let next = (switch + 1) % 4;
        format!("[[link]]\nfrom = ['h{}', 'h{}', 's{next}']\nto = 's{switch}'\n", hosts[0], hosts[1])
    });
    let nodes = "hosts = [{ prefix = 'h', count = 8 }]\nswitches = [{ prefix = 's', count = 4 }]\n";
    let graph = format!("{nodes}rate = '10Gbps'\ndelay = '1us'\n{}", links.collect::<String>());
    let fabric = with_graph(QUEUE, &graph).unwrap();
    let run = Run::new(&fabric, "name = 'tcp'\nsack = true", "name = 'conga'\ngap = '20us'");
    let flows = shuffle(8, &[1, 8, 3]);
    assert_eq!(Run { partitions: 9, ..run }.flows(&flows).cooperation.partitions, 4);
    assert_alike(&run, &flows, &[(2, 2), (3, 2), (4, 4)]).unwrap();
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn threads_leave_no_trace_on_any_graph(
        graph in any_graph(),
        starts in prop::collection::vec(0u64..60, 1..8),
        (transport, scheme) in prop::sample::select(vec![
            ("dctcp", "drill"), ("tcp", "ecmp"), ("roce", "rps"), ("mptcp", "wcmp"), ("dctcp", "conga"),
            ("uec", "oblivious"), ("tcp", "letflow"), ("maxpass", "ecmp"), ("dctcp", "clove"), ("irn", "hermes"),
        ]),
        fault in prop::sample::select(vec![
            "",
            "[[fault]]\nshare = 0.4\nat = '30us'\nuntil = '400us'\ndown = true\n",
            "[[fault]]\nshare = 0.5\nat = '20us'\nuntil = '90us'\nrate = '100Mbps'\ndelay = '7us'\n",
            "[[fault]]\nshare = 0.5\nat = '20us'\ndelay = '200ns'\n",
        ]),
    ) {
        let fabric = with_graph(&format!("{QUEUE}{fault}"), &graph).unwrap();
        let flows = shuffle(fabric.topology.hosts as u16, &starts);
        let (transport, scheme) = (format!("name = '{transport}'"), format!("name = '{scheme}'"));
        let run = Run { time_limit: Span::from_ms(20), ..Run::new(&fabric, &transport, &scheme) };
        assert_alike(&run, &flows, &[(2, 2), (3, 3), (5, 5), (8, 8)])?;
    }
}
