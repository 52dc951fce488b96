//! Ports with classes, as schemes see them.

use std::sync::{Arc, Mutex};

use crate::common::{Run, fabric, fct, flow, link_named};
use weft_balance::switch::drill::{Drill, Params};
use weft_balance::{AnySwitchScheme, ExternalScheme, NextHops, SwitchContext, SwitchInfo, SwitchScheme};
use weft_packet::{Class, Packet};
use weft_traffic::Flow;
use weft_units::Bytes;

/// One decision for a packet of the first class: the port that was taken, and of both what would be
/// sent before the packet and all that is queued, in bytes.
struct Decision {
    taken: usize,
    ahead: [u64; 2],
    queued: [u64; 2],
}

/// DRILL, and a ledger of its decisions for short flows.
struct Watched {
    scheme: Drill,
    ledger: Arc<Mutex<Vec<Decision>>>,
}

impl ExternalScheme for Watched {
    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        let taken = self.scheme.choose(cx, packet, hops);
        if packet.flags.class() == Class::Short {
            let [ahead, queued] = [true, false].map(|own| {
                [0, 1].map(|index: usize| match hops.ports[index] {
                    port if own => cx.backlog_bytes_for(port, packet),
                    port => cx.backlog_bytes(port),
                })
            });
            self.ledger.lock().expect("one thread").push(Decision { taken, ahead, queued });
        }
        taken
    }
}

/// Two queues, both looked at: a packet goes to the one that holds less before it. By all that is
/// queued it would be another one, time and again: then it would be sent around packets that it
/// does not wait for.
#[test]
fn drill_sends_no_packet_of_high_priority_around_a_queue_of_low_priority() {
    let fabric = fabric(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n\
         [switch_queue]\nscheduler = 'strict'\n[[switch_queue.class]]\nholds = ['short']\n\
         [[switch_queue.class]]\nholds = ['long', 'unknown', 'best-effort']",
    );
    let of_class = |class, start_us, host, size| Flow { class, ..flow(start_us, host, 8 + host, size) };
    let long = (0..4).map(|host| of_class(Class::Long, 0, host, 2_000_000));
    let short = (0..80).map(|number| of_class(Class::Short, number * 20, 4 + (number % 4) as u16, 20_000));
    let mut flows: Vec<Flow> = long.chain(short).collect();
    flows.sort_by_key(|flow| flow.start);
    let ledger = Arc::default();
    let mut make = |info: &SwitchInfo<'_>| {
        let scheme = Drill::new(&Params { m: 0, ..Params::default() }, info);
        AnySwitchScheme::External(Box::new(Watched { scheme, ledger: Arc::clone(&ledger) }))
    };
    let run = Run::new(&fabric, "name = 'dctcp'", "name = 'ecmp'");
    let (results, _) = run.with_external(&flows, Some(&mut make));
    assert!(results.flows.iter().all(|flow| flow.delivered.is_some()));
    let ledger = ledger.lock().expect("one thread");
    let mut around = 0;
    for &Decision { taken, ahead, queued } in ledger.iter() {
        assert!(ahead[taken] <= ahead[1 - taken], "{ahead:?}, took {taken}");
        around += u32::from(ahead[taken] < ahead[1 - taken] && queued[taken] > queued[1 - taken]);
    }
    assert!(around > 0, "in none of {} decisions do the two differ", ledger.len());
}

/// A port with a class for flows of each name, the last name first. Each class has these keys, by
/// the number of the name.
fn eight_classes(port: &str, scheduler: &str, keys: impl Fn(usize) -> String) -> String {
    let classes = Class::ALL.into_iter().enumerate().rev();
    let table = |(number, class): (usize, Class)| {
        format!("[[{port}.class]]\nholds = ['{}']\n{}\n", class.name(), keys(number))
    };
    format!("[{port}]\nscheduler = '{scheduler}'\n{}", classes.map(table).collect::<String>())
}

/// Eight tenants, each with as many segments to send as its weight says, at once, by one port: they
/// all end in the last round.
#[test]
fn eight_tenants_share_a_port_by_their_weights() {
    const ROUNDS: u64 = 50;
    let weight = |number: usize| number as u64 + 1;
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 9\nhost_rate = '10Gbps'\n{}",
        eight_classes("switch_queue", "weighted", |number| format!(
            "weight = {}\nbuffer = 'unlimited'\nmark = 'never'",
            weight(number)
        ))
    ));
    let flows: Vec<Flow> = (0..8)
        .map(|number| Flow {
            class: Class::ALL[number],
            ..flow(0, number as u16, 8, weight(number) * ROUNDS * 1_460)
        })
        .collect();
    let run = Run::new(&fabric, "name = 'tcp'\necn = 'off'\ninitial_window = 400", "name = 'ecmp'");
    let results = run.flows(&flows);
    let port = link_named(&fabric, "leaf0>host8");
    let (of_port, condition) = (&results.links[port], fabric.topology.links[port].condition);
    let packets: u64 = (0..8).map(weight).sum();
    assert_eq!(of_port.packets, packets * ROUNDS);
    let round = condition.rate.service(Bytes::new(packets * 1_500));
    let all = round.as_us() * ROUNDS as f64;
    for number in 0..flows.len() {
        assert_eq!(results.flows[number].sender.retransmissions, 0);
        let took = fct(&results, &flows, number).as_us();
        assert!(took > all - round.as_us() && took < all + 10.0, "{number}: {took} of {all} us");
        let own =
            results.classes.iter().find(|class| (class.link, class.class) == (port as u32, 7 - number as u8));
        assert_eq!(own.map(|class| class.totals.packets), Some(weight(number) * ROUNDS));
    }
}

/// Each of eight lossless classes pauses when it is too full, and its pauses name it; all other
/// classes of the same hosts go on.
#[test]
fn each_of_eight_lossless_classes_pauses_by_itself() {
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 6\nhost_rate = '10Gbps'\n\
         [shared_buffer]\nsize = '16MB'\n[pause]\nxoff = '20KB'\nresponse = '500ns'\n{}",
        eight_classes("switch_queue", "weighted", |_| "lossless = true\nmark = 'never'".to_owned())
    ));
    let greedy = "name = 'tcp'\necn = 'off'\ninitial_window = 64";
    for paused in 0..8 {
        // Four hosts to one in one class, and one of them to an idle one in each other class, one
        // after the other.
        let into = |host| Flow { class: Class::ALL[paused], ..flow(0, host, 4, 400_000) };
        let beside = (0..8).filter(|&other| other != paused);
        let beside = beside
            .map(|other| Flow { class: Class::ALL[other], ..flow(100 + 120 * other as u64, 0, 5, 20_000) });
        let flows: Vec<Flow> = (0..4).map(into).chain(beside).collect();
        let results = Run::new(&fabric, greedy, "name = 'ecmp'").flows(&flows);
        assert_eq!(results.packets.dropped, 0);
        let sender = link_named(&fabric, "host0>leaf0") as u32;
        assert!(results.pauses.iter().any(|pause| pause.link == sender), "class {paused}");
        assert!(results.pauses.iter().all(|pause| usize::from(pause.class) == 7 - paused), "class {paused}");
        for (number, flow) in flows.iter().enumerate().skip(4) {
            let ideal = results.flows[number].ideal;
            let took = results.flows[number].delivered.expect("it ends").since(flow.start);
            assert!(took.as_us() < 2.5 * ideal.as_us(), "{:?}: {took} of {ideal}", flow.class);
        }
    }
}

/// Packets of all eight classes that are sent at one time keep their class at every port, and each
/// waits for its own pauses.
#[test]
fn eight_lossless_classes_that_are_all_too_full_lose_nothing_and_are_counted_apart() {
    let fabric = fabric(&format!(
        "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\nhost_rate = '10Gbps'\nfabric_rate = '10Gbps'\n\
         [shared_buffer]\nsize = '16MB'\n[pause]\nxoff = '10KB'\nresponse = '500ns'\n{}",
        eight_classes("switch_queue", "weighted", |_| "lossless = true\nmark = 'never'".to_owned())
    ));
    // Of each class, from three hosts to one; the flows of class n have n segments more.
    let flows: Vec<Flow> = (0..24u16)
        .map(|number| {
            let (class, src) = (usize::from(number % 8), number % 15);
            Flow { class: Class::ALL[class], ..flow(0, src, 15, (100 + class as u64) * 1_460) }
        })
        .collect();
    let results = Run::new(&fabric, "name = 'roce'", "name = 'ecmp'").flows(&flows);
    assert_eq!(results.packets.dropped, 0);
    let last = link_named(&fabric, "leaf1>host15") as u32;
    for (number, class) in Class::ALL.into_iter().enumerate() {
        let place = 7 - number as u8;
        let of_class: Vec<usize> = (0..24).filter(|&flow| flows[flow].class == class).collect();
        let sent: u64 = of_class.iter().map(|&flow| results.flows[flow].sender.segments_sent).sum();
        let at = |link: u32| {
            let found = results.classes.iter().find(|own| (own.link, own.class) == (link, place));
            found.map_or(0, |own| own.totals.packets)
        };
        assert_eq!(at(last), sent, "{class:?}: all of it comes by the last cable, and nothing else does");
        let sources = of_class.iter().map(|&flow| u32::from(flows[flow].src.0));
        assert_eq!(sources.map(at).sum::<u64>(), sent, "{class:?}");
        assert!(results.pauses.iter().any(|pause| pause.class == place), "{class:?}");
    }
}
