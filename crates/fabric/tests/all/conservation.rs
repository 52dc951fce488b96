//! Whatever the fabric, the faults, the transport and the scheme: no packet is lost sight of, no flow beats its ideal,
//! and a second run is the same run.

use crate::common::{Run, fabric, flow};
use proptest::prelude::*;
use weft_traffic::Flow;
use weft_units::Span;

fn any_fabric() -> impl Strategy<Value = String> {
    let leaf_spine = (1u32..4, 1u32..4, 1u32..4, 1u32..3, prop::sample::select(vec![1u32, 10, 25]))
        .prop_filter("two hosts at least", |(leaves, _, hosts, ..)| leaves * hosts >= 2)
        .prop_map(|(leaves, spines, hosts, parallel, rate)| {
            format!(
                "kind = 'leaf-spine'\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
                 links_per_pair = {parallel}\nfabric_rate = '{rate}Gbps'\n"
            )
        });
    let fat_tree = (1u32..3, 1u32..3)
        .prop_map(|(half, hosts)| format!("kind = 'fat-tree'\nk = {}\nhosts_per_edge = {hosts}\n", 2 * half));
    let buffer = prop::sample::select(vec!["'8KB'", "'12packets'", "'375KB'", "'unlimited'"]);
    (prop_oneof![leaf_spine, fat_tree], buffer)
        .prop_map(|(fabric, buffer)| format!("{fabric}[switch_queue]\nbuffer = {buffer}\nmark = '5KB'\n"))
}

fn any_fault() -> impl Strategy<Value = String> {
    let effect = prop::sample::select(vec![
        "",
        "[[fault]]\nshare = 0.5\nloss = 0.1\n",
        "[[fault]]\nshare = 0.4\nat = '30us'\nuntil = '400us'\ndown = true\n",
        "[[fault]]\nshare = 0.5\nat = '20us'\nuntil = '90us'\nrate = '100Mbps'\ndelay = '7us'\n",
        "[[fault]]\nshare = 1.0\nat = '20us'\nuntil = '60us'\ndelay = '30us'\n",
        "[[fault]]\nshare = 0.3\nblackhole = 0.5\n",
    ]);
    prop::collection::vec(effect, 0..3).prop_map(|faults| faults.concat())
}

fn any_flows() -> impl Strategy<Value = Vec<(u64, u16, u16, u64)>> {
    prop::collection::vec((0u64..100, any::<u16>(), any::<u16>(), 1u64..200_000), 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn every_packet_is_accounted_for_and_every_run_repeats(
        fabric_text in any_fabric(),
        faults in any_fault(),
        raw in any_flows(),
        transport in prop::sample::select(vec![
            "name = 'maxpass'", "name = 'maxpass'\nkeep = 4\nreselect_after = 1\nsingle_below = 9\ncut = 'as-printed'\ngrowth = 'as-printed'",
            "name = 'expresspass'", "name = 'expresspass'\ncredit_spread = '8B'\nretransmit_timeout = '1ms'",
            "name = 'tcp'", "name = 'tcp'\nsack = true\nack_every = 2", "name = 'dctcp'", "name = 'dctcp'\nhandshake = true",
            "name = 'tcp'\nsack = true\nrack = true", "name = 'dctcp'\nreorder_hold = '20us'\nreorder_segments = 8\nack_every = 2",
            "name = 'mptcp'", "name = 'mptcp'\nsubflows = 4\ncoupling = 'olia'\nscheduler = 'lowest-rtt'",
            "name = 'mptcp'\nsubflows = 3\nsack = true\necn = 'dctcp'\nhandshake = true\nack_every = 2",
        ]),
        balancer in prop::sample::select(vec![
            "name = 'ecmp'", "name = 'ecmp'\nhash = 'symmetric'", "name = 'wcmp'", "name = 'rps'", "name = 'drb'", "name = 'letflow'\ngap = '5us'",
            "name = 'drill'", "name = 'presto'\nflowcell = '3KB'", "name = 'presto'\nflowcell = '3KB'\nreorder = false",
            "name = 'tr'\nlong_after = '20KB'\nrtt = '20us'\nentries = 8",
            "name = 'qall'\nupdate = '2us'\nrecirculation = '1us'\ntime_constant = '50us'\ntick = '10ns'",
            "name = 'qall-poly'\nform = 'poly3'\ngranularity = 'flowlet'\ngap = '5us'\nupdate = '1ns'",
            "name = 'lbt'\nlong_after = '8KB'\nrefresh = '20us'\nentries = 16",
            "name = 'conga'\ngap = '5us'",
            "name = 'hedera'\ninterval = '100us'\ncontrol_delay = '30us'\nlarge = 0.01",
            "name = 'hedera'\ninterval = '60us'\ncontrol_delay = '30us'\nlarge = 0.01\nplacement = 'annealing'\nsteps = 20",
            "name = 'meet'\ngap = '5us'\nupdate = '20us'\nprobe = '10us'\nwindow = '30us'\nproxy_timeout = '40us'",
            "name = 'meet'\ngap = '5us'\nupdate = '20us'\nprobe = '10us'\nwindow = '30us'\nprober = 'proxy'",
            "name = 'flowbender'", "name = 'plb'\nidle_rounds = 1\nforced_rounds = 2\ncongested_share = 0.1",
            "name = 'clove'\ngap = '5us'\nrediscover = '100us'\ntrace_timeout = '60us'\ncandidates = 24",
            "name = 'clove'\nmode = 'edge-flowlet'\ngap = '5us'\nscope = 'host'",
            "name = 'hula'\ngap = '5us'\ninterval = '10us'\ntau = '20us'\nt_fail = '30us'",
            "name = 'hermes'\nreroute_after = '3KB'\nreroute_probability = 1.0\nwindow = '50us'\nfailed_for = '2ms'\nblackhole_timeouts = 1",
            "name = 'hermes'\necn = false\nprobe_interval = '100us'\nsamples = 1\nreroute_after = '3KB'\none_hop_delay = '2us'",
        ]),
    ) {
        let fabric = fabric(&format!("{fabric_text}{faults}"));
        let hosts = fabric.topology.hosts as u16;
        let mut flows: Vec<Flow> = raw
            .into_iter()
            .map(|(start, src, offset, size)| {
                let src = src % hosts;
                flow(start, src, (src + 1 + offset % (hosts - 1)) % hosts, size)
            })
            .collect();
        flows.sort_by_key(|flow| flow.start);
        let run = Run { time_limit: Span::from_ms(300), ..Run::new(&fabric, transport, balancer) };
        let results = run.flows(&flows);
        for (record, flow) in results.flows.iter().zip(&flows) {
            if let Some(delivered) = record.delivered {
                let took = delivered.since(flow.start);
                prop_assert!(took >= record.ideal, "{} is less than the ideal {}", took, record.ideal);
            }
            prop_assert!(record.acknowledged.is_none() || record.acknowledged >= record.delivered);
        }
        prop_assert_eq!(run.flows(&flows), results);
    }
}
