//! Looking at links and receivers over time.

use crate::common::{Run, fabric, fct, flow, link_named};
use weft_fabric::{LinkSample, MOST_ROWS, Results};
use weft_packet::{Class, HostId};
use weft_topology::Fabric;
use weft_traffic::Flow;
use weft_units::{Rate, Span, Time};

const DCTCP: &str = r#"name = "dctcp""#;
const ECMP: &str = r#"name = "ecmp""#;

fn sampled(fabric: &Fabric, every: Span) -> Run<'_> {
    Run { sample_every: Some(every), ..Run::new(fabric, DCTCP, ECMP) }
}

fn of_link(results: &Results, link: usize) -> impl Iterator<Item = &LinkSample> {
    results.samples.links.iter().filter(move |sample| sample.link as usize == link)
}

fn twenty_flows() -> Vec<Flow> {
    (0..20).map(|index| flow(index * 30, (index % 2) as u16, 2, 100_000)).collect()
}

/// Sums over samples are the totals; what is on the links at the end, or was when they went down,
/// has not been sent.
fn assert_sums_are_totals(results: &Results) {
    for (link, totals) in results.links.iter().enumerate() {
        let sum = |field: fn(&LinkSample) -> u64| of_link(results, link).map(field).sum::<u64>();
        let last = of_link(results, link).last().filter(|sample| sample.at == results.end);
        let left = last.map_or(0, |sample| sample.backlog_bytes);
        let unsent = left + totals.never_sent_bytes;
        assert_eq!(sum(|sample| sample.sent_bytes) + unsent, totals.bytes, "link {link}");
        assert_eq!(sum(|sample| u64::from(sample.dropped)), totals.dropped, "link {link}");
        assert_eq!(sum(|sample| u64::from(sample.marked)), totals.marked, "link {link}");
    }
}

#[test]
fn samples_add_up_to_what_each_link_did_and_change_no_result() {
    // Drops, marks, RED, random loss, a failure, a rate that falls: every rule that a link can
    // have.
    let faults = r#"
        fault = [{ link = "leaf0-spine0", at = "300us", loss = 0.01 },
            { link = "leaf0-spine1", at = "200us", rate = "2Gbps" },
            { link = "leaf0-spine0", at = "500us", down = true }]
    "#;
    for queue in ["", "switch_queue = { buffer = '20packets' }", "switch_queue = { buffer = '15KB' }"] {
        for faults in ["", faults] {
            let fabric = fabric(&format!("{}\n{queue}\n{faults}", crate::common::SMALL));
            let flows = twenty_flows();
            let plain = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
            let results = sampled(&fabric, Span::from_us(50)).flows(&flows);
            assert_eq!(results.flows, plain.flows, "{queue}{faults}");
            assert_eq!((results.packets, results.end), (plain.packets, plain.end), "{queue}{faults}");
            assert!(plain.samples.links.is_empty() && plain.samples.deliveries.is_empty(), "nobody asked");
            assert_sums_are_totals(&results);
        }
    }
}

#[test]
fn looks_are_at_multiples_of_the_interval_and_at_the_end() {
    let fabric = fabric(crate::common::SMALL);
    let results = sampled(&fabric, Span::from_us(50)).flows(&twenty_flows());
    assert_eq!(results.samples.every, Some(Span::from_us(50)));
    let is_regular = |sample: &LinkSample| sample.at.as_ps().is_multiple_of(Span::from_us(50).as_ps());
    assert!(results.samples.links.iter().all(|sample| is_regular(sample) || sample.at == results.end));
    let order = |sample: &LinkSample| (sample.at, sample.link);
    assert!(results.samples.links.is_sorted_by_key(order));
    // 10 Gbit/s for 50 us: 62,500 bytes; of a packet in service the part that left counts to the
    // nearest byte.
    assert!(results.samples.links.iter().all(|sample| sample.sent_bytes <= 62_501));
}

#[test]
fn a_queue_has_no_backlog_above_its_largest_and_none_above_its_buffer() {
    let fabric = fabric(&format!("{}\nswitch_queue = {{ buffer = '15KB' }}", crate::common::SMALL));
    let results = sampled(&fabric, Span::from_us(20)).flows(&twenty_flows());
    let last_hop = link_named(&fabric, "leaf1>host2");
    assert!(results.links[last_hop].dropped > 0, "the buffer was full once");
    let largest = of_link(&results, last_hop).map(|sample| sample.largest_backlog_bytes).max();
    // A full-sized packet was refused, so there was less than one of room; to the nearest byte.
    assert!(largest.is_some_and(|bytes| (13_500..=15_000).contains(&bytes)), "{largest:?}");
    assert!(results.samples.links.iter().all(|one| one.backlog_bytes <= one.largest_backlog_bytes));
}

#[test]
fn a_lone_flow_keeps_its_bottleneck_busy_from_its_first_packet_to_its_last() {
    // One way, at a tenth of the hosts' rate; 100 packets of window are more than the path holds
    // (an RTT is less than 100 us, so some 8 packets). So the queue before it is never empty: 1,000
    // packets of 1,500 bytes at 12 us each.
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1
         fabric_rate = '1Gbps'\nswitch_queue = { buffer = 'unlimited' }",
    );
    let flows = [flow(0, 0, 1, 1_460_000)];
    let tcp = "name = 'tcp'\ninitial_window = 100";
    let run = Run { sample_every: Some(Span::from_us(100)), ..Run::new(&fabric, tcp, ECMP) };
    let results = run.flows(&flows);
    let uplink: Vec<u64> =
        of_link(&results, link_named(&fabric, "leaf0>spine0")).map(|sample| sample.sent_bytes).collect();
    assert_eq!(uplink.iter().sum::<u64>(), 1_500_000);
    // 120 intervals are full, apart from those in which the first packet came and the last one
    // left.
    assert!((120..=121).contains(&uplink.len()), "{}", uplink.len());
    let full = &uplink[1..uplink.len() - 1];
    assert!(full.iter().all(|&bytes| bytes.abs_diff(12_500) <= 1), "{full:?}");
}

#[test]
fn a_link_between_two_looks_is_as_fast_as_faults_made_it() {
    let fault = r#"fault = [{ link = "leaf1-host2", at = "100us", rate = "1Gbps" }]"#;
    let fabric = fabric(&format!("{}\n{fault}", crate::common::SMALL));
    let results = sampled(&fabric, Span::from_us(50)).flows(&twenty_flows());
    let link = link_named(&fabric, "leaf1>host2");
    let at = |us| Time::ZERO + Span::from_us(us);
    let rate = |from, to| results.mean_rate(link as u32, Rate::from_gbps(10), at(from), at(to));
    let change = results.rate_changes.iter().find(|change| change.link == link as u32).expect("a change").at;
    // The packet in service is sent to its end at 10 Gbit/s.
    assert!(change >= at(100) && change <= at(100) + Span::from_ns(1_200), "{change:?}");
    assert_eq!((rate(0, 50), rate(102, 150)), (Rate::from_gbps(10), Rate::from_gbps(1)));
    let across = rate(99, 103).as_bps();
    assert!((3_250_000_000..=5_950_000_000).contains(&across), "{across}");
}

#[test]
fn deliveries_are_the_payload_of_each_kind_of_flow_at_its_receiver() {
    let fabric = fabric(crate::common::SMALL);
    let mut flows =
        vec![flow(0, 0, 2, 100_000), flow(0, 1, 2, 31), flow(0, 1, 3, 50_001), flow(400, 0, 3, 7)];
    flows[1].class = Class::Short;
    flows[2].class = Class::BestEffort;
    let results = sampled(&fabric, Span::from_us(30)).flows(&flows);
    let sum = |host: u16, class: Class| -> u64 {
        let mine =
            |row: &&weft_fabric::Delivery| row.host == HostId(host) && row.class == class && !row.background;
        results.samples.deliveries.iter().filter(mine).map(|row| row.payload_bytes).sum()
    };
    assert_eq!(sum(2, Class::Unknown), 100_000);
    assert_eq!(sum(2, Class::Short), 31);
    assert_eq!(sum(3, Class::BestEffort), 50_001);
    assert_eq!(sum(3, Class::Unknown), 7);
    assert_eq!(results.samples.deliveries.iter().map(|row| row.payload_bytes).sum::<u64>(), 150_039);
    // Nothing arrives after the receiver has it all.
    let done = flows[0].start.saturating_add(fct(&results, &flows, 0)).saturating_add(Span::from_us(30));
    let late = |row: &&weft_fabric::Delivery| row.host == HostId(2) && row.at > done;
    assert_eq!(results.samples.deliveries.iter().filter(late).count(), 0);
}

#[test]
fn a_background_flow_delivers_at_the_rate_of_its_path() {
    let fabric = fabric(crate::common::SMALL);
    let flows = [Flow { background: true, ..flow(0, 0, 2, 0) }, flow(0, 1, 3, 5_000_000)];
    let results = sampled(&fabric, Span::from_us(100)).flows(&flows);
    let rows = results.samples.deliveries.iter().filter(|row| row.background);
    let full: Vec<u64> = rows.filter(|row| row.at.as_us() > 500.0).map(|row| row.payload_bytes).collect();
    // Segments of 1,460 bytes in packets of 1,500, 10 Gbit/s: 125,000 bytes on the wire in 100 us.
    let most = 125_000.0 * 1_460.0 / 1_500.0 + 1_460.0;
    assert!(full.len() > 10 && full.iter().all(|&bytes| bytes as f64 <= most), "{full:?}");
}

#[test]
fn a_long_run_with_short_intervals_keeps_its_memory_and_loses_no_byte() {
    let fabric = fabric(crate::common::SMALL);
    let flows: Vec<Flow> = (0..4).map(|index| flow(0, index % 4, (index + 2) % 4, 600_000)).collect();
    let every = Span::from_ns(1);
    let results = sampled(&fabric, every).flows(&flows);
    let longer = results.samples.every.unwrap_or_default().as_ps() / every.as_ps();
    assert!(longer >= 2 && longer.is_power_of_two(), "{longer}");
    assert!(results.samples.links.len() <= MOST_ROWS + 2 * fabric.topology.links.len());
    assert!(results.samples.links.is_sorted_by_key(|sample| (sample.at, sample.link)));
    assert_sums_are_totals(&results);
    assert_eq!(results.flows, Run::new(&fabric, DCTCP, ECMP).flows(&flows).flows);
}

#[test]
fn no_link_sends_more_than_it_can_and_no_backlog_is_above_the_largest_with_credits_and_overhead() {
    for (overhead, transport) in [
        ("", "name = 'expresspass'"),
        ("overhead = '20B'", "name = 'expresspass'"),
        ("overhead = '20B'", DCTCP),
        ("overhead = '20B'\nswitch_queue = { buffer = '20packets' }", DCTCP),
    ] {
        let fabric = fabric(&format!("{}\n{overhead}", crate::common::SMALL));
        let every = Span::from_us(2);
        let run = Run { sample_every: Some(every), ..Run::new(&fabric, transport, ECMP) };
        let results = run.flows(&twenty_flows());
        assert_sums_are_totals(&results);
        for sample in &results.samples.links {
            // 10 Gbit/s for 2 us: 2,500 bytes, to the nearest byte at both ends.
            assert!(sample.sent_bytes <= 2_501, "{overhead} {transport} {sample:?}");
            assert!(
                sample.backlog_bytes <= sample.largest_backlog_bytes,
                "{overhead} {transport} {sample:?}"
            );
        }
    }
}

#[test]
fn what_waits_when_a_link_goes_down_was_not_sent() {
    let fault = "fault = [{ link = 'spine0-leaf1', at = '105us', down = true }]";
    for transport in [DCTCP, "name = 'expresspass'"] {
        let fabric = fabric(&format!("{}\n{fault}", crate::common::SMALL));
        let every = Span::from_us(2);
        let run = Run { sample_every: Some(every), ..Run::new(&fabric, transport, ECMP) };
        // Both hosts of the first rack send at once, most of it over one spine or the other.
        let flows: Vec<Flow> = (0..20).map(|index| flow(0, (index % 2) as u16, 2, 100_000 + index)).collect();
        let results = run.flows(&flows);
        assert_sums_are_totals(&results);
        let lost: u64 = results.links.iter().map(|link| link.never_sent_bytes).sum();
        assert!(lost > 0 || transport != DCTCP, "packets waited when the link went down");
        // 10 Gbit/s for 2 us: 2,500 bytes, to the nearest byte at both ends.
        assert!(results.samples.links.iter().all(|sample| sample.sent_bytes <= 2_501), "{transport}");
    }
}

#[test]
fn a_packet_in_service_on_a_link_that_speeds_up_is_a_backlog_of_no_more_than_itself() {
    let fault = "fault = [{ link = 'leaf1-host2', until = '100us', rate = '10Mbps' }]";
    let fabric = fabric(&format!("{}\n{fault}", crate::common::SMALL));
    // One packet of 1,500 bytes goes over the slow link until 1.2 ms.
    let results = sampled(&fabric, Span::from_us(50)).flows(&[flow(0, 0, 2, 1_460)]);
    let last_hop = link_named(&fabric, "leaf1>host2");
    assert!(of_link(&results, last_hop).count() > 20);
    assert!(of_link(&results, last_hop).all(|sample| sample.largest_backlog_bytes <= 1_500));
    assert_sums_are_totals(&results);
}

#[test]
fn no_backlog_is_above_the_largest_where_a_rate_changes_in_mid_packet() {
    // A packet of 12 us at 1 Gbit/s is in service when its cable becomes ten times as fast, or the
    // other way round.
    for (first, then) in [("1Gbps", "10Gbps"), ("10Gbps", "1Gbps")] {
        let fault = format!(
            "fault = [{{ link = 'host0-leaf0', until = '101us', rate = '{first}' }}, \
             {{ link = 'host0-leaf0', at = '101us', rate = '{then}' }}]"
        );
        for transport in [DCTCP, "name = 'roce'"] {
            let fabric = fabric(&format!("{}\n{fault}", crate::common::SMALL));
            let run = Run { sample_every: Some(Span::from_us(1)), ..Run::new(&fabric, transport, ECMP) };
            let results = run.flows(&[flow(0, 0, 2, 400_000)]);
            let cable = link_named(&fabric, "host0>leaf0");
            let mut samples = of_link(&results, cable).peekable();
            assert!(samples.peek().is_some());
            assert!(samples.all(|sample| sample.backlog_bytes <= sample.largest_backlog_bytes), "{first}");
            assert_sums_are_totals(&results);
        }
    }
}

#[test]
fn a_link_has_sent_no_more_than_it_can_however_much_waits_at_the_end() {
    // Two windows without a limit into one port, whose rate changes, too, or not.
    for fault in ["", "fault = [{ link = 'leaf1-host2', until = '300us', rate = '1Gbps' }]"] {
        let queue = "switch_queue = { buffer = 'unlimited', mark = 'never' }";
        let fabric = fabric(&format!("{}\n{queue}\n{fault}", crate::common::SMALL));
        let tcp = "name = 'tcp'\ninitial_window = 200";
        let run = Run { time_limit: Span::from_us(500), ..Run::new(&fabric, tcp, ECMP) };
        let results = run.flows(&[flow(0, 0, 2, 10_000_000), flow(0, 1, 2, 10_000_000)]);
        let link = link_named(&fabric, "leaf1>host2");
        let totals = results.links[link];
        let rate = fabric.topology.links[link].condition.rate;
        let mean = results.mean_rate(link as u32, rate, Time::ZERO, results.end);
        let most = mean.as_bps() as f64 / 8e12 * results.end.as_ps() as f64;
        assert!(totals.bytes as f64 > 1.2 * most, "{} given, {most} can leave", totals.bytes);
        let used = totals.sent_bytes() as f64 / most;
        assert!((0.9..=1.0).contains(&used), "{used}");
    }
}

#[test]
fn idle_time_takes_one_look_however_short_the_interval() {
    let fabric = fabric(crate::common::SMALL);
    // A second apart, at 1 us: a million looks, if each interval took one.
    let far = [flow(0, 0, 2, 10_000), flow(1_000_000, 1, 3, 10_000)];
    let every = Span::from_us(1);
    let run = Run { sample_every: Some(every), ..Run::new(&fabric, DCTCP, ECMP) };
    let results = run.flows(&far);
    assert!(results.events < 20_000, "{} events", results.events);
    assert_sums_are_totals(&results);
    // 10 Gbit/s for 1 us, to the nearest byte: no interval in which something was sent was a long
    // one.
    assert!(results.samples.links.iter().all(|sample| sample.sent_bytes <= 1_251));
    let is_regular = |sample: &LinkSample| sample.at.as_ps().is_multiple_of(every.as_ps());
    assert!(results.samples.links.iter().all(|sample| is_regular(sample) || sample.at == results.end));
    assert_eq!(results.samples.every, Some(every), "no intervals were merged");
}
