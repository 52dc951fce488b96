//! Several transports in one run: each carries its own flows as it does alone, and they share what
//! links there are.

use proptest::prelude::*;
use weft_traffic::Flow;
use weft_units::Span;

use crate::common::{Run, SMALL, fabric, flow, link_named};

const ECMP: &str = "name = \"ecmp\"";

/// Tables of these transports.
fn tables(transports: &[&str]) -> String {
    transports.iter().map(|keys| format!("[[transport]]\n{keys}\n")).collect::<Vec<_>>().concat()
}

/// Flows of many sizes between all hosts of the smallest fabric, over this transport.
fn mixed(transport: impl Fn(usize) -> u8) -> Vec<Flow> {
    let size = |index: usize| [3_000, 70_000, 400_000][index % 3];
    (0..40)
        .map(|index| {
            let (src, dst) = ((index % 4) as u16, ((index + 1 + index / 4 % 3) % 4) as u16);
            Flow { transport: transport(index), ..flow(index as u64 * 15, src, dst, size(index)) }
        })
        .collect()
}

#[test]
fn a_transport_that_carries_all_flows_does_what_it_does_alone() {
    let fabric = fabric(SMALL);
    let transports = [
        "name = \"tcp\"\nsack = true",
        "name = \"dctcp\"\nreorder_hold = \"50us\"",
        "name = \"mptcp\"\nsubflows = 3",
        "name = \"mptcp\"\nsubflows = 1",
    ];
    for (number, transport) in transports.into_iter().enumerate() {
        for scheme in [ECMP, "name = \"presto\"", "name = \"clove\""] {
            let alone = Run::new(&fabric, transport, scheme).flows(&mixed(|_| 0));
            let others = (0..transports.len())
                .filter(|&other| other != number)
                .map(|other| format!("[[transport]]\nlabel = \"{other}\"\n{}\n", transports[other]));
            let several =
                format!("[[transport]]\n{transport}\nlabel = \"own\"\n{}", others.collect::<String>());
            let beside = Run::new(&fabric, &several, scheme).flows(&mixed(|_| 0));
            assert_eq!(beside.flows, alone.flows, "{transport} with {scheme}");
            assert_eq!(beside.links, alone.links, "{transport} with {scheme}");
        }
    }
}

#[test]
fn credits_of_one_transport_leave_the_others_their_links() {
    let fabric = fabric(SMALL);
    let several = tables(&["name = \"dctcp\"", "name = \"maxpass\""]);
    let flows = mixed(|index| (index % 2) as u8);
    let results = Run::new(&fabric, &several, "name = \"ecmp\"\nhash = \"symmetric\"").flows(&flows);
    for (flow, record) in flows.iter().zip(&results.flows) {
        assert!(record.delivered.is_some());
        assert_eq!(record.delivered_bytes, flow.size_bytes);
        // Credits are of the flows of the transport that has them.
        assert_eq!(record.receiver.credits_sent > 0, flow.transport == 1);
    }
}

#[test]
fn two_subflows_take_of_a_shared_bottleneck_what_a_tcp_beside_them_takes() {
    // Two senders of 10 Gbit/s behind a link of 1 Gbit/s, which drops a packet with a probability
    // that grows with what waits: 1 of 250 at 32 packets (48 KB). So windows are some 20 segments
    // each, and a round trip some 400 us: 42,000 segments/s and 170 losses/s for each flow. A rate
    // goes with 1 / sqrt(loss), and n losses tell a loss rate to 1 / sqrt(n): after 20 s a rate is
    // known to 1 / (2 sqrt(3,400)) = 0.86 %, the ratio of two to 1.2 %: one standard deviation.
    // With x of the window on one subflow, 1 - x on the other, a share q = x^2 + (1-x)^2 of TCP's
    // decrease meets OLIA's growth of q and LIA's of max(x, 1-x), in parts of TCP's (RFC 6356 §3).
    // So OLIA takes what TCP takes, and LIA sqrt(max(x, 1-x) / q) of it: as much where x is 1/2 or
    // 1, up to 9.9 % more in between. Uncoupled, each subflow is a TCP. Bounds are these, and three
    // standard deviations on either side. A dozen segments fill the link for a round trip without a
    // queue, a quarter of what the windows hold: it idles only while they grow, for some
    // milliseconds of 20 s.
    let noise = 3.0 * 0.012;
    let bottleneck = "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\nhost_rate = \"10Gbps\"\n\
                      fabric_rate = \"1Gbps\"\nhost_delay = \"12us\"\nfabric_delay = \"12us\"\n[switch_queue]\nbuffer = \"unlimited\"\n\
                      [switch_queue.red]\nmin = \"0B\"\nmax = \"480KB\"\nprobability = 0.04\n";
    let fabric = fabric(bottleneck);
    let ratio = |coupling: &str| {
        let mptcp = format!("name = \"mptcp\"\nsack = true\nsubflows = 2\ncoupling = \"{coupling}\"");
        let several = tables(&["name = \"tcp\"\nsack = true", &mptcp]);
        let endless = |host, transport| Flow { background: true, transport, ..flow(0, host, host + 2, 1) };
        let run = Run { time_limit: Span::from_s(20), ..Run::new(&fabric, &several, ECMP) };
        let results = run.flows(&[endless(0, 0), endless(1, 1)]);
        let shared = results.links[link_named(&fabric, "leaf0>spine0")].bytes as f64 * 8.0 / 20e9;
        assert!(shared > 0.99, "{coupling}: the link is busy for {shared} of the time");
        let [tcp, mptcp] = [0, 1].map(|flow: usize| results.flows[flow].receiver.segments_received as f64);
        mptcp / tcp
    };
    for (coupling, most) in [("lia", 1.099), ("olia", 1.0)] {
        let ratio = ratio(coupling);
        assert!((1.0 - noise..most + noise).contains(&ratio), "{coupling}: {ratio} of the TCP beside it");
    }
    let uncoupled = ratio("none");
    assert!((2.0 - 2.0 * noise..2.0 + 2.0 * noise).contains(&uncoupled), "{uncoupled} of the TCP beside it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_flow_arrives_whole_whatever_carries_its_neighbours(
        numbers in prop::collection::vec(0u8..4, 40), seed in 0u64..1_000,
    ) {
        let fabric = fabric(SMALL);
        let several = tables(&[
            "name = \"tcp\"\nsack = true\nhandshake = true",
            "name = \"dctcp\"",
            "name = \"mptcp\"\nsubflows = 5",
            "name = \"expresspass\"",
        ]);
        let flows = mixed(|index| numbers[index]);
        let results = Run { seed, ..Run::new(&fabric, &several, ECMP) }.flows(&flows);
        for (flow, record) in flows.iter().zip(&results.flows) {
            prop_assert!(record.delivered.is_some());
            prop_assert_eq!(record.delivered_bytes, flow.size_bytes);
        }
    }
}
