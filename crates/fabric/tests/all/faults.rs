//! Links that fail, return, slow down, lose packets or swallow flows.

use crate::common::{Run, done_as, fabric, fct, flow, link_named, scheme_spec, transports};
use weft_fabric::{Results, Simulation, SimulationInput, Status};
use weft_traffic::Flow;
use weft_units::{Span, Time};

const DCTCP: &str = r#"name = "dctcp""#;
const ECMP: &str = r#"name = "ecmp""#;

const TWO_SPINES: &str =
    "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nreroute_after = '1ms'\n";

fn between_racks(count: u64, size_bytes: u64) -> Vec<Flow> {
    (0..count).map(|index| flow(index * 10, (index % 4) as u16, 4 + (index % 4) as u16, size_bytes)).collect()
}

#[test]
fn a_link_that_fails_loses_what_is_on_it_and_flows_go_on_over_the_rest() {
    let fabric = fabric(&format!("{TWO_SPINES}[[fault]]\nlink = 'leaf0-spine1'\nat = '300us'\ndown = true"));
    let flows = between_racks(8, 2_000_000);
    let results = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
    assert!(results.packets.dropped > 0, "something was on the link");
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()), "every flow ends");
    let dead = link_named(&fabric, "leaf0>spine1");
    // 10 Gbit/s for 300 us at most, and what its own switch had queued by then.
    assert!(results.links[dead].bytes <= 375_000 + 400_000, "the switch stopped using it at once");
}

#[test]
fn a_link_that_returns_is_used_again() {
    let fault = "[[fault]]\nlink = 'leaf0-spine1'\nat = '0s'\nuntil = '1ms'\ndown = true";
    let fabric = fabric(&format!("{TWO_SPINES}{fault}"));
    let flows: Vec<Flow> =
        (0..400).map(|index| flow(index * 10, (index % 4) as u16, 4 + (index % 4) as u16, 1_000)).collect();
    let results = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
    let packets = results.links[link_named(&fabric, "leaf0>spine1")].packets;
    // All know of it 1 ms after it returned: the last 200 flows, half of them.
    assert!((60..=160).contains(&packets), "{packets} packets after it came back");
    assert_eq!(results.packets.dropped, 0, "routing kept everything off the dead link");
}

/// A flow in the middle of its way when its links slow down to a tenth, and later speed up again,
/// arrives whole, in order, and neither too early nor too late.
#[test]
fn packets_stay_in_order_when_rate_and_delay_change_under_way() {
    let slow =
        "[[fault]]\nlink = 'leaf0-spine0'\nat = '500us'\nuntil = '5ms'\nrate = '1Gbps'\ndelay = '20us'";
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n{slow}\n[switch_queue]\nbuffer = 'unlimited'"
    ));
    let flows = [flow(0, 0, 1, 2_000_000)];
    let results = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
    let record = &results.flows[0];
    assert_eq!(record.receiver.out_of_order, 0);
    assert_eq!(record.sender.retransmissions, 0);
    // 0.5 ms at 10 Gbit/s and 4.5 ms at 1 Gbit/s carry 1.18 MB; the rest goes at full rate again.
    let took = fct(&results, &flows, 0);
    assert!(took > Span::from_ms(5) && took < Span::from_ms(7), "{took}");
}

#[test]
fn random_loss_hits_the_stated_share_of_packets() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n[[fault]]\nlink = 'leaf0>spine0'\nloss = 0.02\n\
         [switch_queue]\nbuffer = 'unlimited'",
    );
    let flows = between_racks(40, 1_000_000);
    let results = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
    let totals = results.links[link_named(&fabric, "leaf0>spine0")];
    let share = totals.dropped as f64 / totals.packets as f64;
    assert!((share - 0.02).abs() < 0.004, "{share:.4} of the packets were lost");
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()), "every flow recovers");
}

#[test]
fn a_blackhole_swallows_the_same_flows_for_good_and_no_others() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n[[fault]]\nlink = 'leaf0>spine0'\nblackhole = 0.25",
    );
    let flows = between_racks(200, 10_000);
    let run = Run { time_limit: Span::from_ms(500), ..Run::new(&fabric, DCTCP, ECMP) };
    let results = run.flows(&flows);
    let swallowed = results.flows.iter().filter(|flow| flow.delivered.is_none()).count();
    assert!((25..=75).contains(&swallowed), "{swallowed} of 200 flows");
    for record in &results.flows {
        let arrived = record.receiver.segments_received;
        assert!(record.delivered.is_some() == (arrived > 0), "a flow is swallowed whole or not at all");
    }
}

#[test]
fn limits_and_thresholds_in_packets_count_packets_of_any_size() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 8\n[switch_queue]\nbuffer = '10packets'\nmark = '4packets'",
    );
    // Eight hosts send one small packet each at the same instant to one host: eight fit; then
    // sixteen: ten fit, give or take the one that has just left.
    let burst = |each: u64| -> Vec<Flow> {
        (0..8).flat_map(|host| (0..each).map(move |_| flow(0, host, 15, 100))).collect()
    };
    let few = Run::new(&fabric, DCTCP, ECMP).flows(&burst(1));
    assert_eq!(few.packets.dropped, 0);
    let marked: u64 = few.links.iter().map(|link| link.marked).sum();
    assert!(marked > 0, "more than four packets stood in line");
    let many = Run::new(&fabric, DCTCP, ECMP).flows(&burst(8));
    assert!(many.packets.dropped > 0, "more than ten packets stood in line");
}

#[test]
fn red_drops_what_cannot_be_marked_and_marks_what_can() {
    let red = "[switch_queue]\nbuffer = '1MB'\nred = { min = '15KB', max = '150KB', probability = 0.1 }";
    let fabric = fabric(&format!("kind = 'leaf-spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\n{red}"));
    let flows: Vec<Flow> = (0..4).map(|host| flow(0, host, 7, 2_000_000)).collect();
    let dctcp = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
    assert!(dctcp.links.iter().map(|link| link.marked).sum::<u64>() > 100);
    assert_eq!(dctcp.packets.dropped, 0);
    let tcp = Run::new(&fabric, r#"name = "tcp""#, ECMP).flows(&flows);
    assert_eq!(tcp.links.iter().map(|link| link.marked).sum::<u64>(), 0);
    assert!(tcp.packets.dropped > 10);
}

/// Two changes in quick succession, the second while packets of the first are still pushed back
/// behind slower ones: the queue is scheduled anew from what really departed. Order holds, nothing
/// is early, and the link is never idle.
#[test]
fn changes_in_quick_succession_keep_the_queue_whole() {
    let faults = "[[fault]]\nlink = 'leaf0>spine0'\nat = '0s'\nuntil = '400us'\ndelay = '200us'\n\
                  [[fault]]\nlink = 'leaf0>spine0'\nat = '420us'\nuntil = '440us'\nrate = '5Gbps'\nloss = 0.05";
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n{faults}\n[switch_queue]\nbuffer = 'unlimited'"
    ));
    let flows = between_racks(4, 1_000_000);
    let results = Run::new(&fabric, DCTCP, ECMP).flows(&flows);
    let first = crate::common::fct(&results, &flows, 0);
    assert!(first > Span::from_us(400) && first < Span::from_ms(5), "{first}");
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    assert!(results.flows.iter().zip(&flows).all(|(record, _)| record.receiver.segments_received >= 685));
}

#[test]
fn wcmp_follows_a_rate_that_all_have_learned() {
    let fault = "[[fault]]\nlink = 'leaf0-spine1'\nat = '1ms'\nrate = '1Gbps'";
    let fabric = fabric(&format!("{TWO_SPINES}{fault}"));
    let flows: Vec<Flow> =
        (0..1_000).map(|index| flow(index * 10, (index % 4) as u16, 4 + (index % 4) as u16, 1_000)).collect();
    let results = Run::new(&fabric, DCTCP, r#"name = "wcmp""#).flows(&flows);
    let packets = results.links[link_named(&fabric, "leaf0>spine1")].packets;
    // Half of the 200 flows before it is known, an eleventh of the 800 after.
    assert!((130..=215).contains(&packets), "{packets} packets, 173 expected");
}

/// An uplink at a twentieth of its rate for two milliseconds, and flows between racks all the time.
fn with_a_slow_uplink(scheme: &str, partitions: usize, is_watched: bool) -> Results {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 3\nspines = 3\nhosts_per_leaf = 4\n\
         [[fault]]\nlink = 'leaf0>spine1'\nat = '1ms'\nuntil = '3ms'\nrate = '500Mbps'",
    );
    let flows: Vec<Flow> = (0..120)
        .map(|number| flow(number * 40, (number % 4) as u16, 4 + (number % 8) as u16, 60_000))
        .collect();
    let run = Run { partitions, ..Run::new(&fabric, DCTCP, scheme) };
    let (transport, scheme) = (transports(DCTCP), scheme_spec(scheme));
    let input = run.input(&flows, &transport, &scheme);
    let spans = if is_watched { input.spans } else { &[] };
    let mut simulation = Simulation::new(SimulationInput { spans, ..input }).unwrap();
    while simulation.advance(1 << 20) == Status::Running {}
    simulation.into_results()
}

#[test]
fn it_is_known_until_when_a_slow_link_had_the_longest_queue_and_what_share_it_got() {
    let seen = |scheme| {
        let results = with_a_slow_uplink(scheme, 1, true);
        let [seen] = results.slowed[..] else { panic!("one fault: {:?}", results.slowed) };
        let share =
            |given: weft_fabric::OfferedBytes| given.slowed.as_u64() as f64 / given.all.as_u64() as f64;
        (seen.crowded_until.unwrap_or(Time::ZERO), share(seen.before), share(seen.during))
    };
    let at = |us| Time::ZERO + Span::from_us(us);
    let (crowded, before, during) = seen(ECMP);
    assert!(crowded > at(2_900) && crowded <= at(3_000), "a hash stays: {crowded:?}");
    assert!((0.15..0.5).contains(&before) && during > 0.02, "{before} {during}");
    let (left, before, during) = seen("name = 'oracle'");
    assert!(left < at(1_200), "who knows every queue leaves at once: {left:?}");
    // A twentieth of the rate of each of the two others is 2.4 % of all.
    assert!(before > 0.1 && during < 0.04, "{before} {during}");
}

#[test]
fn looking_at_slow_links_moves_no_result() {
    for scheme in [ECMP, "name = 'conga'", "name = 'hermes'"] {
        let plain = with_a_slow_uplink(scheme, 1, false);
        assert!(plain.slowed.is_empty());
        for partitions in [1, 3] {
            let seen = with_a_slow_uplink(scheme, partitions, true);
            assert_eq!(seen.slowed.len(), 1);
            let without = Results { slowed: Vec::new(), ..seen };
            assert!(done_as(without, &plain) == plain, "{scheme} in {partitions} partitions");
        }
    }
}
