use std::path::Path;

use weft_balance::{HostHooks, SchemeSpec, SwitchHooks};
use weft_packet::{Class, HostId, Kind, Packet, PacketFlags};
use weft_topology::{Fabric, FabricSpec, FaultEvent};
use weft_units::{Purpose, Stream, Time};

use super::*;
use crate::engine::event_set::{EventKey, Next};
use crate::engine::network::{ArrivalOutcome, LinkDrops};
use crate::engine::pool::NO_PACKET;
use crate::engine::special::Peaks;

/// One rack at 10 Gbit/s, so every packet takes two links of 800 ps a byte.
const RACK: &str = "kind = 'leaf-spine'\nleaves = 1\nspines = 1\nhosts_per_leaf = 3\nhost_delay = '1us'\n";
const RULES: CreditPorts = CreditPorts { credit_bytes: 84, frame_bytes: 1_538, queue: 8, burst_bytes: 168 };
const BYTE: u64 = 800;
const CREDIT: u64 = 84 * BYTE;
const FRAME: u64 = 1_538 * BYTE;
/// Time that a credit and its frame take of the link together: credits leave no more often.
const PERIOD: u64 = CREDIT + FRAME;
const DELAY: u64 = 1_000_000;

fn fabric(text: &str) -> Fabric {
    let spec: FabricSpec = toml::from_str(text).expect("a fabric");
    spec.build(1, Path::new(".")).expect("a fabric")
}

fn network<'a>(fabric: &'a Fabric, faults: &[FaultEvent]) -> Network<'a> {
    network_with(fabric, faults, Peaks::Kept)
}

fn network_with<'a>(fabric: &'a Fabric, faults: &[FaultEvent], peaks: Peaks) -> Network<'a> {
    let ecmp: SchemeSpec = toml::from_str("name = 'ecmp'").expect("a scheme");
    let mut scheme = |info: &weft_balance::SwitchInfo<'_>| ecmp.switch_scheme(info);
    let hooks = (SwitchHooks::default(), HostHooks::default());
    Network::of_all(&fabric.topology, faults, 1, peaks, 1_538, hooks, &mut scheme)
}

fn with_credits<'a>(fabric: &'a Fabric, faults: &[FaultEvent]) -> Network<'a> {
    let mut network = network(fabric, faults);
    network.open_credit_ports(&RULES);
    network
}

fn packet(kind: Kind, wire_bytes: u16, seq: u32) -> Packet {
    let mut packet = Packet::default();
    (packet.kind, packet.wire_bytes, packet.seq) = (kind, wire_bytes, seq);
    (packet.src, packet.dst) = (HostId(0), HostId(1));
    packet
}

/// Runs up to `until`: when each packet left host 0 (its first bit), what it was, and its number.
fn departures(network: &mut Network<'_>, until: u64) -> Vec<(u64, Kind, u32)> {
    let mut seen = Vec::new();
    while let Some((time, next)) = network.events.pop::<false>(&mut network.state.links, &network.pool) {
        if time.as_ps() > until {
            break;
        }
        network.now = time;
        match next {
            Next::Arrival(0) => {
                let head = &network.pool[network.state.links[0].head];
                let left = time.as_ps() - DELAY - u64::from(head.wire_bytes) * BYTE;
                seen.push((left, head.kind, head.seq));
                arrive(network, 0);
            }
            Next::Arrival(link) => arrive(network, link),
            Next::Timer(_, key) => network.wake_port(key.entity()),
            Next::Slot(_) => panic!("slots are sorted"),
        }
    }
    seen
}

/// The packet at the head of a link arrives, and is consumed if that is at a host.
fn arrive(network: &mut Network<'_>, link: u32) {
    match network.arrive(link) {
        ArrivalOutcome::AtHost(index) => drop(network.consume(index)),
        ArrivalOutcome::Gone => {}
        ArrivalOutcome::NoLink => {
            let Some((_, key)) = network.events.take_due(link) else { panic!("there are no other parts") };
            network.wake_port(key.entity());
        }
        ArrivalOutcome::NotAlone => panic!("slots are sorted"),
    }
}

fn assert_conserved(network: &Network<'_>) {
    let counts = network.counts;
    assert_eq!(counts.sent, counts.delivered + counts.dropped + network.in_flight());
}

#[test]
fn credits_leave_a_burst_of_two_and_then_one_a_period_to_the_picosecond() {
    let fabric = fabric(RACK);
    let mut network = with_credits(&fabric, &[]);
    (0..8).for_each(|number| network.send(packet(Kind::Credit, 84, number)));
    let left: Vec<u64> = departures(&mut network, u64::MAX).iter().map(|&(left, ..)| left).collect();
    // Two credits' worth in the bucket; the third waits for one more, which fills in one period
    // from time zero.
    let expected: Vec<u64> = [0, CREDIT].into_iter().chain((1..=6).map(|period| period * PERIOD)).collect();
    assert_eq!(left, expected);
    assert_eq!(PERIOD, 1_297_600);
    assert_conserved(&network);
}

#[test]
fn a_credit_that_finds_eight_queued_is_dropped_and_counted_apart() {
    let fabric = fabric(RACK);
    let mut network = with_credits(&fabric, &[]);
    // The first is in service, eight wait.
    (0..12).for_each(|number| network.send(packet(Kind::Credit, 84, number)));
    let numbers: Vec<u32> = departures(&mut network, u64::MAX).iter().map(|&(.., number)| number).collect();
    assert_eq!(numbers, (0..9).collect::<Vec<_>>());
    assert_eq!((network.drops[0].credits, network.drops[0].dropped), (3, 0));
    assert_eq!((network.counts.dropped, network.counts.credits_dropped), (3, 3));
    assert_conserved(&network);
}

#[test]
fn a_full_link_carries_a_credit_and_a_frame_by_turns_and_is_never_idle() {
    let fabric = fabric(RACK);
    let mut network = with_credits(&fabric, &[]);
    (0..20).for_each(|number| network.send(packet(Kind::Data, 1_538, number)));
    (0..8).for_each(|number| network.send(packet(Kind::Credit, 84, number)));
    let seen = departures(&mut network, u64::MAX);
    let credits = seen.iter().filter(|(_, kind, _)| *kind == Kind::Credit).count();
    assert_eq!((seen.len(), credits), (28, 8));
    for pair in seen.windows(2) {
        let service = if pair[0].1 == Kind::Credit { CREDIT } else { FRAME };
        assert_eq!(pair[1].0, pair[0].0 + service, "no gap, no overlap");
    }
    // The frame in service is not interrupted; then the burst of two, then one credit behind each
    // frame.
    let kinds: String =
        seen.iter().take(16).map(|(_, kind, _)| if *kind == Kind::Credit { 'c' } else { 'd' }).collect();
    assert_eq!(kinds, "dccdcdcdcdcdcdcd");
    assert_conserved(&network);
}

#[test]
fn data_alone_has_the_whole_link_and_a_queue_of_its_own() {
    let fabric = fabric(&format!("{RACK}host_queue = {{ buffer = '3076B', mark = 'never' }}\n"));
    let mut network = with_credits(&fabric, &[]);
    // One in service and one behind it fill two frames; the third is dropped, and credits still
    // enter.
    (0..3).for_each(|number| network.send(packet(Kind::Data, 1_538, number)));
    network.send(packet(Kind::Credit, 84, 9));
    assert_eq!((network.drops[0].dropped, network.drops[0].credits), (1, 0));
    assert_eq!(network.take_backlogs(0), (2 * 1_538 + 84, 2 * 1_538 + 84), "credits count, too");
    let seen = departures(&mut network, u64::MAX);
    assert_eq!(seen, [(0, Kind::Data, 0), (FRAME, Kind::Credit, 9), (FRAME + CREDIT, Kind::Data, 1)]);
    assert_conserved(&network);
}

#[test]
fn a_smaller_credit_takes_fewer_tokens() {
    let fabric = fabric(RACK);
    let mut network = with_credits(&fabric, &[]);
    (0..6).for_each(|number| network.send(packet(Kind::Credit, 42, number)));
    let left: Vec<u64> = departures(&mut network, u64::MAX).iter().map(|&(left, ..)| left).collect();
    // Four of 42 bytes are the burst of 168; then one each half period.
    let half = CREDIT / 2;
    assert_eq!(left, [0, half, 2 * half, 3 * half, PERIOD / 2, PERIOD]);
}

#[test]
fn what_waits_when_the_link_goes_down_is_lost_and_what_comes_later_enters_when_it_is_back() {
    let text = format!("{RACK}[[fault]]\nlink = \"host0>leaf0\"\nat = '2us'\nuntil = '9us'\ndown = true\n");
    let fabric = fabric(&text);
    let mut network = with_credits(&fabric, &fabric.faults);
    (0..4).for_each(|number| network.send(packet(Kind::Data, 1_538, number)));
    (0..8).for_each(|number| network.send(packet(Kind::Credit, 84, number)));
    departures(&mut network, 1_900_000);
    network.now = fabric.faults[0].at;
    network.change(fabric.faults[0].link, fabric.faults[0].condition, Vec::new());
    network.send(packet(Kind::Credit, 84, 8));
    assert_eq!(network.state.links[0].head, NO_PACKET);
    assert_conserved(&network);
    departures(&mut network, 8_900_000);
    network.now = fabric.faults[1].at;
    network.change(fabric.faults[1].link, fabric.faults[1].condition, Vec::new());
    network.send(packet(Kind::Credit, 84, 9));
    let seen = departures(&mut network, u64::MAX);
    assert_eq!(seen, [(9_000_000, Kind::Credit, 9)]);
    assert_conserved(&network);
}

#[test]
fn a_change_of_rate_reaches_what_waits() {
    let text = format!("{RACK}[[fault]]\nlink = \"host0>leaf0\"\nat = '1us'\nrate = '5Gbps'\n");
    let fabric = fabric(&text);
    let mut network = with_credits(&fabric, &fabric.faults);
    (0..3).for_each(|number| network.send(packet(Kind::Data, 1_538, number)));
    network.now = fabric.faults[0].at;
    network.change(fabric.faults[0].link, fabric.faults[0].condition, Vec::new());
    // The frame in service keeps its end; the other two take twice as long.
    assert_eq!(network.state.links[0].busy_until, FRAME + 4 * FRAME);
}

/// The rack, with these classes at its hosts.
fn rack_with_classes(scheduler: &str, classes: &[&str]) -> Fabric {
    let classes: Vec<String> =
        classes.iter().map(|class| format!("[[host_queue.class]]\n{class}\n")).collect();
    fabric(&format!("{RACK}[host_queue]\nscheduler = '{scheduler}'\nmark = 'never'\n{}", classes.concat()))
}

/// A packet of a flow of this class.
fn of_class(class: Class, wire_bytes: u16, seq: u32) -> Packet {
    let mut packet = packet(Kind::Data, wire_bytes, seq);
    packet.flags = PacketFlags::of_class(class);
    packet
}

#[test]
fn with_strict_priority_a_packet_waits_for_its_own_class_and_those_before_it_by_hand() {
    let holds = ["holds = ['short']", "holds = ['unknown', 'best-effort']", "holds = ['long']"];
    let fabric = rack_with_classes("strict", &holds);
    let mut network = network(&fabric, &[]);
    let classes = [Class::Long, Class::Long, Class::Unknown, Class::Short, Class::BestEffort, Class::Short];
    for (number, class) in (0..).zip(classes) {
        network.send(of_class(class, 1_538, number));
    }
    let seen = departures(&mut network, u64::MAX);
    // The first is in service when the others come; then the short ones, the two of the second
    // class, the other long one.
    let expected = [0, 3, 5, 2, 4, 1].into_iter().zip(0..);
    let expected: Vec<_> = expected.map(|(number, place)| (place * FRAME, Kind::Data, number)).collect();
    assert_eq!(seen, expected);
    assert_conserved(&network);
}

#[test]
fn each_class_has_its_own_buffer_and_marks_by_its_own_backlog() {
    let short = "holds = ['short']\nbuffer = '2packets'";
    let long = "holds = ['long', 'unknown', 'best-effort']\nmark = '3076B'";
    let fabric = rack_with_classes("strict", &[short, long]);
    let mut network = network(&fabric, &[]);
    let ect = |class, number| {
        let mut packet = of_class(class, 1_538, number);
        packet.flags.set(PacketFlags::ECT);
        packet
    };
    // With the one in service each class takes two short ones; the fourth long one finds three
    // frames, more than two.
    (0..4).for_each(|number| network.send(ect(Class::Long, number)));
    (4..7).for_each(|number| network.send(ect(Class::Short, number)));
    assert_eq!((network.drops[0].dropped, network.drops(0).marked), (2, 1));
    let numbers: Vec<u32> = departures(&mut network, u64::MAX).iter().map(|&(.., number)| number).collect();
    assert_eq!(numbers, [0, 4, 1, 2, 3]);
    assert_conserved(&network);
}

#[test]
fn weighted_classes_share_the_link_by_their_weights_to_within_a_packet() {
    let weights = [1, 2, 5];
    let holds = ["['short']", "['long']", "['unknown', 'best-effort']"];
    let tables = [0, 1, 2].map(|class| format!("holds = {}\nweight = {}", holds[class], weights[class]));
    let fabric = rack_with_classes("weighted", &tables.each_ref().map(String::as_str));
    let mut network = network(&fabric, &[]);
    let classes = [Class::Short, Class::Long, Class::Unknown];
    // Sizes that differ, all classes backlogged: the number tells the class, and its packets'
    // sizes.
    let size = |number: u32| 200 + (number.wrapping_mul(2_654_435_761) >> 16) % 1_339;
    for number in 0..3_000 {
        network.send(of_class(classes[number as usize % 3], size(number) as u16, number));
    }
    // A round is over when the first class follows on the last. Since the end of any round each
    // class has sent a quantum a round, to within the packet that did not fit any more.
    let (mut sent, mut rounds, mut last) = ([0u64; 3], None, 2);
    for (_, _, number) in departures(&mut network, u64::MAX) {
        let class = number as usize % 3;
        if (last, class) == (2, 0) && number > 0 {
            let whole = rounds.map_or(0, |rounds| rounds + 1);
            for (sent, weight) in sent.iter_mut().zip(weights) {
                *sent = if rounds.is_none() { 0 } else { *sent };
                assert!(
                    sent.abs_diff(whole * weight * 1_538) < 1_538,
                    "{sent} with {weight} in {whole} rounds"
                );
            }
            rounds = Some(whole);
        }
        last = class;
        sent[class] += u64::from(size(number));
    }
    // The third class has some 870 KB, of which 7,690 bytes go in a round.
    assert!(rounds.is_some_and(|rounds| rounds > 100), "{rounds:?}");
    assert_conserved(&network);
}

#[test]
fn credits_go_before_all_classes_and_the_classes_share_the_rest() {
    let holds = ["holds = ['short']", "holds = ['long', 'unknown', 'best-effort']"];
    let fabric = rack_with_classes("strict", &holds);
    let mut network = with_credits(&fabric, &[]);
    for number in 0..2 {
        network.send(of_class(Class::Long, 1_538, number));
    }
    network.send(of_class(Class::Short, 1_538, 2));
    (3..6).for_each(|number| network.send(packet(Kind::Credit, 84, number)));
    let numbers: Vec<u32> = departures(&mut network, u64::MAX).iter().map(|&(.., number)| number).collect();
    // A burst of two credits behind the frame in service, and the third one when its tokens are
    // there.
    assert_eq!(numbers, [0, 3, 4, 2, 5, 1]);
    assert_conserved(&network);
}

/// How long host 0's port says that a packet would wait, and what it would send before it in bytes.
fn foretold(network: &Network<'_>, packet: &Packet) -> (u64, u64) {
    let (now, profile) = (network.now.as_ps(), &network.state.profiles[network.state.links[0].profile]);
    let port = network.state.scheduled[0].as_ref().expect("classes");
    (port.wait_of_ps(packet, now, profile), profile.bytes_in(port.ahead_of_ps(packet, now)))
}

/// When a packet that comes now leaves host 0, if nothing else comes: since now.
fn waits(network: &mut Network<'_>, packet: Packet) -> u64 {
    let now = network.now.as_ps();
    network.send(packet);
    let seen = departures(network, u64::MAX);
    let left = seen.iter().find(|&&(.., number)| number == packet.seq);
    left.expect("it leaves").0 - now
}

#[test]
fn a_packet_waits_as_long_as_schemes_are_told_if_nothing_else_comes() {
    let holds = ["holds = ['short']", "holds = ['long', 'unknown', 'best-effort']"];
    let fabric = rack_with_classes("strict", &holds);
    for (class, waits_for) in [(Class::Short, 2), (Class::Long, 4)] {
        let mut network = network(&fabric, &[]);
        (0..3).for_each(|number| network.send(of_class(Class::Long, 1_538, number)));
        network.send(of_class(Class::Short, 1_538, 3));
        assert_eq!(network.state.links[0].busy_until, 4 * FRAME, "all classes together");
        let own = of_class(class, 1_538, 9);
        assert_eq!(foretold(&network, &own), (waits_for * FRAME, waits_for * 1_538));
        assert_eq!(waits(&mut network, own), waits_for * FRAME);
    }
}

#[test]
fn a_credit_waits_behind_credits_for_its_tokens_as_schemes_are_told() {
    let fabric = fabric(RACK);
    for sizes in [&[84; 8][..], &[80, 92, 76, 84, 91], &[]] {
        // Three times 90 bytes fill in 3.2 periods: the bucket is not yet full again, or just so,
        // or was full for long.
        for later in [3 * PERIOD, 7 * PERIOD / 2, 20 * PERIOD] {
            let mut network = with_credits(&fabric, &[]);
            (0..3).for_each(|number| network.send(packet(Kind::Credit, 90, number)));
            departures(&mut network, u64::MAX);
            network.now = Time::from_ps(later);
            for (&size, number) in sizes.iter().zip(3..) {
                network.send(packet(Kind::Credit, size, number));
            }
            let own = packet(Kind::Credit, 88, 99);
            let (wait, _) = foretold(&network, &own);
            assert_eq!(wait, waits(&mut network, own), "{sizes:?} at {later}");
        }
    }
}

/// Departures from host 0, of 5,000 packets and credits that come to it at random times, now and
/// then several at once, and the backlog behind each: now and then its port is idle.
fn departures_at_random(fabric: &Fabric, peaks: Peaks, credits: [u16; 2]) -> AtRandom {
    let mut network = network_with(fabric, &[], peaks);
    network.open_credit_ports(&RULES);
    network.find_late_ports(false);
    let are_late = network.state.scheduled.iter().flatten().all(|port| port.is_late);
    assert_eq!(are_late, peaks == Peaks::NotKept);
    let (mut random, mut time) = (Stream::new(1, Purpose::Arrivals, 0), 0);
    let (mut seen, mut free_at, mut are_credits) = (Vec::new(), Vec::new(), false);
    for number in 0..5_000 {
        // Whole byte times, and so often the very instant at which something else happens.
        time += BYTE * u64::from(random.below(60) * random.below(60));
        network.events.set_limit(Time::from_ps(time), EventKey::FIRST);
        seen.extend(departures(&mut network, u64::MAX));
        network.now = Time::from_ps(time);
        // Several of a kind come one after the other.
        are_credits ^= random.below(3) == 0;
        let credit = credits[random.below(2) as usize];
        let (kind, wire_bytes) = if are_credits { (Kind::Credit, credit) } else { (Kind::Data, 1_538) };
        let mut packet = packet(kind, wire_bytes, number);
        packet.flags.set(PacketFlags::ECT);
        network.send(packet);
        free_at.push(network.free_at(0));
    }
    network.events.set_limit(Time::NEVER, EventKey::FIRST);
    seen.extend(departures(&mut network, u64::MAX));
    assert_conserved(&network);
    AtRandom { seen, free_at, drops: network.drops(0) }
}

/// See [`departures_at_random`].
#[derive(Debug, PartialEq, Eq)]
struct AtRandom {
    seen: Vec<(u64, Kind, u32)>,
    free_at: Vec<Time>,
    drops: LinkDrops,
}

#[test]
fn a_port_that_is_idle_now_and_then_sends_the_same_watched_or_not() {
    let classes = [
        "holds = ['short']\nbuffer = '2packets'",
        "holds = ['long', 'unknown', 'best-effort']\nbuffer = '7690B'\nmark = '3076B'",
    ];
    // What it leaves behind marks a packet: here with a number that is drawn, there with none.
    let leaving =
        ["{ min = '1KB', max = '6KB', probability = 0.5 }", "{ min = '0B', max = '6KB', probability = 0.5 }"]
            .map(|red| {
                format!(
                    "holds = ['short', 'long', 'unknown', 'best-effort']\nred = {red}\nmark_at = 'departure'"
                )
            });
    let leaving = leaving.each_ref().map(|class| rack_with_classes("strict", &[class.as_str()]));
    let [drawn, from_zero] = leaving;
    for fabric in [fabric(RACK), rack_with_classes("strict", &classes), drawn, from_zero] {
        for credits in [[84, 84], [76, 92]] {
            let run = |peaks| departures_at_random(&fabric, peaks, credits);
            let (watched, plain) = (run(Peaks::Kept), run(Peaks::NotKept));
            assert_eq!(watched, plain);
            assert!(watched.drops.credits > 0, "and some credits find eight queued");
            let marks = fabric.topology.links[0].classes.is_some();
            assert_eq!(watched.drops.marked > 0, marks, "and some packets leave others behind");
        }
    }
}

#[test]
fn data_that_is_on_the_link_ahead_of_its_time_is_taken_back_when_a_credit_comes_first() {
    let fabric = fabric(RACK);
    let mut network = network_with(&fabric, &[], Peaks::NotKept);
    network.open_credit_ports(&RULES);
    network.find_late_ports(false);
    (0..3).for_each(|number| network.send(packet(Kind::Data, 1_538, number)));
    let last = network.state.links[0].tail;
    assert_eq!(network.pool[last].arrive.as_ps(), 3 * FRAME + DELAY, "it is on the link");
    assert_eq!(network.pool[last].wait_ps(0), 2 * FRAME / 256 * 256);
    // The second one is in service, and stays; the third waits for the credit, too.
    network.now = Time::from_ps(FRAME + 1);
    network.send(packet(Kind::Credit, 84, 3));
    let seen = departures(&mut network, u64::MAX);
    let data = |number, left| (left, Kind::Data, number);
    let credit = (2 * FRAME, Kind::Credit, 3);
    assert_eq!(seen, [data(0, 0), data(1, FRAME), credit, data(2, 2 * FRAME + CREDIT)]);
    assert_conserved(&network);
}

#[test]
fn a_credit_that_is_on_the_link_ahead_of_its_time_is_taken_back_when_data_comes_first() {
    let fabric = fabric(RACK);
    for (data_at, credit_at) in [(1_200_000, 1_200_000 + FRAME), (PERIOD, PERIOD)] {
        let mut network = network_with(&fabric, &[], Peaks::NotKept);
        network.open_credit_ports(&RULES);
        network.find_late_ports(false);
        (0..3).for_each(|number| network.send(packet(Kind::Credit, 84, number)));
        // When the second has arrived, nothing is on the link, and the third has its tokens after a
        // period.
        network.events.set_limit(Time::from_ps(data_at), EventKey::FIRST);
        let left: Vec<u64> = departures(&mut network, u64::MAX).iter().map(|&(left, ..)| left).collect();
        assert_eq!(left, [0, CREDIT]);
        let head = network.state.links[0].head;
        assert_ne!(head, NO_PACKET, "it is on the link");
        network.now = Time::from_ps(data_at);
        network.send(packet(Kind::Data, 1_538, 3));
        network.events.set_limit(Time::NEVER, EventKey::FIRST);
        let mut seen = departures(&mut network, u64::MAX);
        seen.sort_unstable_by_key(|&(.., number)| number);
        // Of what comes at the very instant the credit is first.
        let behind = if data_at == PERIOD { PERIOD + CREDIT } else { data_at };
        assert_eq!(seen, [(credit_at, Kind::Credit, 2), (behind, Kind::Data, 3)]);
        assert_conserved(&network);
    }
}

#[test]
fn what_nearly_every_packet_needs_of_a_port_is_one_cache_line_and_one_for_each_class() {
    use std::mem::offset_of;
    let near = (offset_of!(ScheduledPort, classes), offset_of!(ScheduledPort, ahead));
    assert_eq!((near, size_of::<ClassQueue>()), ((64, 208), 64));
    assert_eq!((size_of::<ScheduledPort>(), size_of::<Option<ScheduledPort>>()), (256, 256));
    assert_eq!(size_of::<Rare>(), 64);
}
