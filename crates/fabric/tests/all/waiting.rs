//! Packets behind the one in service, as DRILL sees them of ports with one queue.

use std::sync::{Arc, Mutex};

use crate::common::{Run, fabric, fct, flow};
use weft_balance::switch::drill::{Drill, Length, Params};
use weft_balance::{AnySwitchScheme, ExternalScheme, NextHops, SwitchContext, SwitchInfo, SwitchScheme};
use weft_packet::{Class, Kind, Packet};
use weft_traffic::Flow;

/// A full packet on the wire, in bytes.
const WIRE_BYTES: u64 = 1500;

/// Leaves with slow uplinks, one of them slower.
const NARROW: &str = "kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 6\nfabric_rate = '7Gbps'\n\
                      [[fault]]\nlink = 'leaf0-spine1'\nrate = '2Gbps'\n";

/// Cables that are as fast as those of hosts, but for one: packets often come at the instant when
/// another one leaves.
const EVEN: &str = "kind = 'leaf-spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 6\n\
                    [[fault]]\nlink = 'leaf0-spine1'\nrate = '2Gbps'\n";

/// Flows of whole packets from the first leaf to the second.
fn flows() -> Vec<Flow> {
    (0..60).map(|number| flow(number * 15, (number % 6) as u16, 6 + (number % 6) as u16, 146_000)).collect()
}

/// Queued bytes, and waiting bytes, of each port that a decision looked at.
type Ledger = Arc<Mutex<Vec<[u64; 2]>>>;

/// DRILL that goes by what waits, and a ledger of what it saw when it sent data.
struct Watched {
    scheme: Drill,
    ledger: Ledger,
}

impl ExternalScheme for Watched {
    fn needs_waiting_bytes(&self) -> bool {
        self.scheme.needs_waiting_bytes()
    }

    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        if packet.kind == Kind::Data && hops.ports.len() > 1 {
            let seen = |&port| [cx.backlog_bytes_for(port, packet), cx.waiting_bytes_for(port, packet)];
            self.ledger.lock().expect("one thread").extend(hops.ports.iter().map(seen));
        }
        self.scheme.choose(cx, packet, hops)
    }
}

/// Where all packets have the same length, what is queued says what waits: all whole packets, but
/// for one that has just begun. Of what is left of a packet less than a byte is none.
#[test]
fn what_waits_is_what_is_queued_but_for_the_packet_in_service() {
    let fabric = fabric(NARROW);
    let ledger = Ledger::default();
    let mut make = |info: &SwitchInfo<'_>| {
        let scheme = Drill::new(&Params { length: Length::Waiting, ..Params::default() }, info);
        AnySwitchScheme::External(Box::new(Watched { scheme, ledger: Arc::clone(&ledger) }))
    };
    let run = Run::new(&fabric, "name = 'dctcp'\nmss = '1460B'", "name = 'ecmp'");
    run.with_external(&flows(), Some(&mut make));
    let ledger = ledger.lock().expect("one thread");
    for &[queued, waiting] in ledger.iter() {
        let whole = [queued, queued.saturating_sub(1)].map(|bytes| bytes / WIRE_BYTES * WIRE_BYTES);
        assert!(whole.contains(&waiting), "{waiting} of {queued} bytes");
    }
    let several = ledger.iter().filter(|[_, waiting]| *waiting >= 2 * WIRE_BYTES).count();
    assert!(several > 100, "only {several} of {} queues were longer than two packets", ledger.len());
}

/// A port with one queue and one with one class do the same by different code, also at the instant
/// when a packet leaves.
#[test]
fn what_waits_is_the_same_on_a_port_with_one_queue_and_on_one_with_one_class() {
    let every = Class::ALL.map(|class| format!("'{}'", class.name())).join(", ");
    let one_class = format!(
        "scheduler = 'strict'\n[[switch_queue.class]]\nholds = [{every}, 'schemes', 'acks', 'notifications']"
    );
    let flows = flows();
    let run = |spines: usize, queue: &str| {
        let even = EVEN.replace("spines = 4", &format!("spines = {spines}"));
        let fabric = fabric(&format!("{even}[switch_queue]\nbuffer = '9MB'\nmark = 'never'\n{queue}\n"));
        let scheme = "name = 'drill'\nmemory = 'host'\nlength = 'waiting'";
        let results = Run::new(&fabric, "name = 'dctcp'", scheme).flows(&flows);
        (0..flows.len()).map(|index| fct(&results, &flows, index)).collect::<Vec<_>>()
    };
    // Of few uplinks more wait, so that several packets come while one leaves and others wait.
    for spines in [4, 3, 2] {
        assert_eq!(run(spines, ""), run(spines, &one_class), "with {spines} spines");
    }
}

#[test]
fn drill_by_what_waits_decides_the_same_in_groups_of_nodes_and_not_as_by_all() {
    let (fabric, flows) = (fabric(NARROW), flows());
    let run = |length: &str, partitions: usize| {
        let scheme = format!("name = 'drill'\nmemory = 'host'\nlength = '{length}'");
        let results = Run { partitions, ..Run::new(&fabric, "name = 'dctcp'", &scheme) }.flows(&flows);
        (0..flows.len()).map(|index| fct(&results, &flows, index)).collect::<Vec<_>>()
    };
    let waiting = run("waiting", 1);
    assert_eq!(waiting, run("waiting", 3));
    assert_ne!(waiting, run("all", 1));
}
