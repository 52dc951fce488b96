//! Ports with classes, as schemes see them.

use std::sync::{Arc, Mutex};

use crate::common::{Run, fabric, flow};
use weft_balance::switch::drill::{Drill, Params};
use weft_balance::{ExternalSwitch, NextHops, SwitchBalancer, SwitchContext, SwitchInfo, SwitchScheme};
use weft_packet::{Class, Packet};
use weft_traffic::Flow;

/// One decision for a packet of the first class: the port that was taken, and of both what would be sent before the packet
/// and all that is queued, in bytes.
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

impl ExternalSwitch for Watched {
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

/// Two queues, both looked at: a packet goes to the one that holds less before it. By all that is queued it would be another one, time
/// and again: then it would be sent around packets that it does not wait for.
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
        SwitchScheme::External(Box::new(Watched { scheme, ledger: Arc::clone(&ledger) }))
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
