use std::path::Path;

use weft_balance::{HostHooks, SchemeSpec, SwitchHooks};
use weft_packet::Route;
use weft_topology::{Fabric, FabricSpec, FaultEvent};
use weft_units::Time;

use super::*;
use crate::engine::event_set::Next;
use crate::engine::network::ArrivalOutcome;
use crate::engine::special::Peaks;
use crate::engine::tables::Knowledge;

const SMALL: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
const FAT_TREE: &str = "kind = 'fat-tree'\nk = 4\n";
const PINNED: HostHooks = HostHooks { on_send: true, on_receive: true, pinned: true, traces: true };

fn fabric(text: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(text).expect("a fabric");
    spec.build(1, Path::new(".")).expect("a fabric")
}

fn network<'a>(fabric: &'a Fabric, faults: &[FaultEvent], hooks: HostHooks) -> Network<'a> {
    let ecmp: SchemeSpec = toml::from_str("name = 'ecmp'").expect("a scheme");
    let mut scheme = |info: &weft_balance::SwitchInfo<'_>| ecmp.switch_scheme(info);
    Network::of_all(
        &fabric.topology,
        faults,
        1,
        Peaks::NotKept,
        1_500,
        (SwitchHooks::default(), hooks),
        &mut scheme,
    )
}

fn to(peer: u16) -> Message {
    Message { peer: HostId(peer), wire_bytes: 64, ..Message::default() }
}

/// Lets everything arrive; what reached hosts, with the host and the time.
fn arrivals(network: &mut Network<'_>) -> Vec<(HostId, Time, u16, Message)> {
    let mut arrived = Vec::new();
    while let Some((time, Next::Arrival(link))) =
        network.events.pop::<false>(&mut network.state.links, &network.pool)
    {
        network.now = time;
        if let ArrivalOutcome::AtHost(index) = network.arrive(link) {
            let packet = network.consume(index);
            let message = network.message_of(&packet);
            arrived.push((packet.dst, time, packet.trail, message));
        }
    }
    arrived
}

#[test]
fn a_message_arrives_with_all_that_it_carries_and_nothing_is_kept() {
    let fabric = fabric(SMALL);
    let mut network = network(&fabric, &[], PINNED);
    let sent =
        Message { tag: 7, number: 8, stamp: Time::from_ps(9), contents: Some(Arc::from([1, 2, 3])), ..to(3) };
    network.send_message(HostId(0), sent.clone());
    let arrived = arrivals(&mut network);
    let [(host, _, _, message)] = arrived.as_slice() else { panic!("{arrived:?}") };
    assert_eq!((*host, message), (HostId(3), &Message { peer: HostId(0), ..sent }));
    assert_eq!(network.pool.contents().len(), 0);
    // Four links, 64 bytes on each.
    assert_eq!((network.counts.hops, network.counts.control_bytes), (4, 4 * 64));
}

#[test]
fn a_dropped_message_takes_its_contents_with_it() {
    let fabric = fabric(&format!("{SMALL}host_queue = {{ buffer = '1500B' }}\n"));
    let mut network = network(&fabric, &[], PINNED);
    for _ in 0..5 {
        network
            .send_message(HostId(0), Message { wire_bytes: 1_000, contents: Some(Arc::from([1])), ..to(3) });
    }
    assert!(network.counts.dropped > 0, "the queue holds one");
    let arrived = arrivals(&mut network).len() as u64;
    assert_eq!((arrived + network.counts.dropped, network.pool.contents().len()), (5, 0));
}

#[test]
fn every_label_is_a_path_of_its_own_on_leaf_spine_and_fat_tree() {
    for (text, peer, paths) in [(SMALL, 2, 2), (FAT_TREE, 15, 4)] {
        let fabric = fabric(text);
        let mut network = network(&fabric, &[], PINNED);
        let racks = [0, usize::from(fabric.topology.rack_of_host[usize::from(peer)])];
        assert_eq!(network.explicit_routes().routes_to(&fabric.topology, racks[0], racks[1]), paths);
        for label in 0..paths as u16 {
            network.send_message(HostId(0), Message { route: Route::label(label), ..to(peer) });
        }
        let mut trails: Vec<u16> = arrivals(&mut network).into_iter().map(|(_, _, trail, _)| trail).collect();
        trails.sort_unstable();
        trails.dedup();
        assert_eq!(trails.len(), paths as usize, "{text}");
    }
}

#[test]
fn a_hop_limit_is_answered_by_the_switch_where_it_expires() {
    let fabric = fabric(FAT_TREE);
    let mut network = network(&fabric, &[], PINNED);
    // Hosts 0 and 15 are in different pods: five switches lie between them.
    for hop_limit in 1..=6 {
        network.send_message(HostId(0), Message { hop_limit, number: u32::from(hop_limit), ..to(15) });
    }
    let arrived = arrivals(&mut network);
    let mut hops = Vec::new();
    for (host, _, _, message) in &arrived {
        if let Some(expired) = message.expired {
            assert_eq!(
                (*host, message.peer, message.wire_bytes),
                (HostId(0), HostId(15), Message::EXPIRED_BYTES)
            );
            hops.push((message.number, expired));
        } else {
            assert_eq!((*host, message.number), (HostId(15), 6));
        }
    }
    hops.sort_by_key(|(number, _)| *number);
    assert_eq!(hops.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    // All took one path, so each answer came from the far end of the cable that the one before sent
    // it over.
    let topology = &fabric.topology;
    for pair in hops.windows(2) {
        let [(_, near), (_, far)] = pair else { unreachable!("windows of two") };
        let node = topology.hosts as u32 + far.switch;
        let port = topology.first_link[node as usize] + u32::from(far.port);
        assert_eq!(topology.links[port as usize].to.0, topology.hosts as u32 + near.switch);
    }
}

#[test]
fn a_pinned_route_over_a_dead_link_drops_and_keeps_its_meaning_for_the_others() {
    let text = format!("{SMALL}[[fault]]\nlink = 'leaf0-spine0'\nat = '1us'\ndown = true\n");
    let fabric = fabric(&text);
    for (pinned, arriving) in [(true, 1), (false, 2)] {
        let mut network = network(&fabric, &fabric.faults, HostHooks { pinned, ..PINNED });
        network.now = Time::from_ps(1_000_000);
        let mut knowledge = Knowledge::at_start(&fabric.topology);
        for fault in &fabric.faults {
            network.change(fault.link, fault.condition, Vec::new());
            knowledge.see(fault);
            knowledge.learn(fault);
        }
        network.set_tables(knowledge.tables(&fabric.topology, network.tables.pinned.clone()));
        for label in 0..2 {
            network.send_message(HostId(0), Message { route: Route::label(label), ..to(2) });
        }
        let arrived = arrivals(&mut network);
        assert_eq!(
            (arrived.len(), network.counts.dropped),
            (arriving, 2 - arriving as u64),
            "pinned: {pinned}"
        );
        if pinned {
            assert_eq!(arrived[0].3.route, Route::label(0), "the digit of spine 1 is used up");
        }
    }
}
