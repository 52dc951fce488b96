//! Random specs, good and bad: each gets a clear answer, or a run that loses sight of no packet.

use crate::common::{run, small};
use proptest::prelude::*;
use weft_lab::Prepared;

/// Keys, and values for them: sensible ones, ones at the edge, and ones that cannot be meant.
const CHANGES: [(&str, &[&str]); 37] = [
    ("run.seed", &["0", "7", "9223372036854775807", "-1", "x"]),
    ("run.time_limit", &["0s", "1us", "1ms", "1s", "99999999999s"]),
    ("fabric.kind", &["leaf-spine", "fat-tree", "rail", "graph", "ring"]),
    (
        "fabric",
        &[
            "{ kind = 'rail', servers = 4, servers_per_group = 2, gpus = 2, spines = 2 }",
            "{ kind = 'rail', servers = 2, gpus = 2, planes = 2, spines = 1 }",
            "{ kind = 'rail', servers = 3, gpus = 1, spines = 2, rail_optimized = 1 }",
            "{ kind = 'rail', servers = 5, servers_per_group = 2 }",
        ],
    ),
    ("fabric.leaves", &["0", "1", "2", "5", "100000", "4294967295", "-3"]),
    ("fabric.spines", &["0", "1", "3", "65535", "4294967295"]),
    ("fabric.hosts_per_leaf", &["0", "1", "3", "65536", "1e3"]),
    ("fabric.links_per_pair", &["0", "1", "3", "1000000"]),
    ("fabric.host_rate", &["0bps", "1bps", "1Gbps", "100Tbps", "fast"]),
    ("fabric.fabric_rate", &["1Mbps", "40Gbps", "333Mbps"]),
    ("fabric.fabric_delay", &["0us", "1ps", "1ms", "100s"]),
    ("fabric.stack_delay", &["10us", "1000000s"]),
    ("fabric.overhead", &["20B", "1GB"]),
    ("fabric.switch_queue.buffer", &["0B", "1B", "3KB", "2packets", "0packets", "unlimited"]),
    ("fabric.switch_queue.mark", &["0B", "1packets", "1GB", "never"]),
    (
        "fabric.switch_queue.red",
        &["{ min = '3KB', max = '9KB', probability = 0.1 }", "{ min = '9KB', max = '3KB' }"],
    ),
    ("fabric.host_queue.buffer", &["0B", "3KB"]),
    ("fabric.fault.0.link", &["leaf0-spine0", "leaf0-spine9", "host0-leaf0", "nowhere"]),
    ("fabric.fault.0.down", &["true", "1"]),
    ("fabric.fault.0.loss", &["0.1", "1.0", "-0.1"]),
    ("fabric.fault.0.at", &["0s", "100us", "1000s"]),
    ("traffic.workload", &["web-search", "hadoop", "nothing", "none.csv"]),
    ("traffic.size", &["1B", "20KB", "0B", "2TB"]),
    ("traffic.load", &["0", "0.01", "0.9", "1", "nan", "inf", "-1"]),
    ("traffic.flows", &["0", "1", "20"]),
    ("traffic.duration", &["0s", "100us"]),
    ("traffic.pairs", &["between-racks", "permutation", "uniform", "group-to-group"]),
    (
        "traffic.incast",
        &["[{ senders = 3, size = '20KB', start = '1us' }]", "[{ senders = 3000, size = '20KB' }]"],
    ),
    ("traffic.long_lived", &["[{ src = 0, dst = 5, class = 'tc5' }]", "[{ src = 0, dst = 0 }]"]),
    ("transport.name", &["tcp", "dctcp", "udp"]),
    ("transport.mss", &["1B", "536B", "9000B", "1MB"]),
    ("transport.initial_window", &["0", "1", "1000000"]),
    ("transport.sack", &["true", "false"]),
    ("transport.handshake", &["true"]),
    ("transport.min_rto", &["0s", "200ms"]),
    ("scheme.name", &["ecmp", "letflow", "drill", "rps", "presto", "wcmp", "drb", "magic"]),
    ("scheme.gap", &["0us", "50us"]),
];

fn changes() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let change = (0..CHANGES.len()).prop_flat_map(|key| {
        let (name, values) = CHANGES[key];
        proptest::sample::select(values).prop_map(move |value| (name, value))
    });
    proptest::collection::vec(change, 0..4)
}

proptest! {
    #[test]
    fn every_spec_gets_one_clear_message_or_a_run_that_conserves_packets(changes in changes()) {
        let mut all = vec![("traffic.flows", "15"), ("run.time_limit", "20ms")];
        all.extend(changes);
        let source = small(&all);
        if let Err(error) = Prepared::new(&source) {
            let message = error.to_string();
            prop_assert!(!message.contains('\n') && message.len() > 20, "{}", message);
            prop_assert!(!message.contains("did not match any variant"), "{}", message);
            return Ok(());
        }
        let outcome = run(&source);
        let packets = outcome.packets;
        prop_assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight);
        let all = outcome.summary.all;
        prop_assert!(all.unfinished <= all.flows);
        prop_assert!(all.slowdown.p50.is_none_or(|slowdown| slowdown >= 0.999_999), "{:?}", all.slowdown);
    }
}
