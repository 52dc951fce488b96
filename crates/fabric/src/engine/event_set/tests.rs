use proptest::prelude::*;

use super::*;
use crate::engine::link::FarEnd;
use weft_packet::Packet;

fn links(count: usize) -> Vec<Link> {
    (0..count).map(|_| Link::idle(FarEnd::AT_HOST, 0, 0)).collect()
}

fn one_packet() -> Pool {
    let mut pool = Pool::default();
    pool.insert(Packet::default());
    pool
}

impl EventSet {
    /// The next event, and when it is. Slots are sorted on the way.
    pub fn pop<const LOOK_AHEAD: bool>(&mut self, links: &mut [Link], pool: &Pool) -> Option<(Time, Next)> {
        loop {
            let next = self.take::<LOOK_AHEAD>(links)?;
            let first = match next {
                Next::Arrival(number) => {
                    let (time, behind) = self.entry(links, number);
                    if behind == NONE {
                        return Some((Time::from_ps(time), next));
                    }
                    number
                }
                Next::Slot(first) => first,
                Next::Timer(time, _) => return Some((time, next)),
            };
            self.sort(links, first, pool);
            if LOOK_AHEAD {
                self.begin_walk(links);
                assert!(self.crowd().is_none_or(|crowd| crowd.len() >= CROWD));
            }
        }
    }
}

/// The next event, as whoever looks ahead or does not takes it out.
fn pop(events: &mut EventSet, links: &mut [Link]) -> Option<(Time, Next)> {
    if events.looks_ahead() {
        events.pop::<true>(links, &one_packet())
    } else {
        events.pop::<false>(links, &one_packet())
    }
}

#[test]
fn a_key_says_whose_it_is() {
    let timer = EventKey::switch_timer(1_279, u32::MAX);
    assert_eq!((timer.kind(), timer.node(), timer.entity()), (EventKind::Switch, 1_279, u32::MAX));
    let start = EventKey::new(EventKind::FlowStart, u32::MAX);
    assert_eq!((start.kind(), start.node(), start.entity()), (EventKind::FlowStart, 0, u32::MAX));
}

#[test]
fn links_come_before_timers_at_one_instant() {
    let mut links = links(2);
    let mut events = EventSet::new(1_000, Numbers::default());
    events.push_timer(Time::from_ps(500), EventKey::new(EventKind::FlowStart, 0));
    for link in [1, 0] {
        links[link as usize].head_arrive = 500;
        events.push_link(&mut links[link as usize], link);
    }
    let popped: Vec<_> = std::iter::from_fn(|| pop(&mut events, &mut links)).map(|(_, next)| next).collect();
    let order: Vec<_> = popped.into_iter().map(|next| key_of(&mut events, next)).collect();
    let [first, second] = [0, 1].map(|link| EventKey::new(EventKind::Arrival, link));
    assert_eq!(order, [first, second, EventKey::new(EventKind::FlowStart, 0)]);
}

#[test]
fn timers_that_rank_alike_come_by_their_keys_all_the_same() {
    let mut events = EventSet::new(4_095, Numbers::default());
    let key = |host| EventKey::host_timer(host, 7);
    for host in [3, 1, 2] {
        assert_eq!(key(host).rank(), key(1).rank());
        events.push_timer(Time::from_ps(9), key(host));
    }
    let mut hosts = Vec::new();
    while let Some((_, next)) = pop(&mut events, &mut []) {
        hosts.push(key_of(&mut events, next).node());
    }
    assert_eq!(hosts, [1, 2, 3]);
}

#[test]
fn timers_of_one_instant_come_by_kind_and_number_whatever_else_their_slot_holds() {
    let mut links = links(1);
    // A slot is 64 ps wide.
    let mut events = EventSet::new(64 * 4_000, Numbers::default());
    let at = Time::from_ps(6_400);
    let keys =
        [(EventKind::Port, 3), (EventKind::Receiver, 9), (EventKind::Receiver, 2), (EventKind::Port, 1)];
    for (kind, number) in keys {
        events.push_timer(at, EventKey::new(kind, number));
    }
    // The last of the slot is a link's.
    links[0].head_arrive = 6_410;
    events.push_link(&mut links[0], 0);
    let mut order = Vec::new();
    while let Some((_, next)) = pop(&mut events, &mut links) {
        let key = key_of(&mut events, next);
        order.push((key.kind(), key.entity()));
    }
    let [late, middle, early, port] = keys;
    assert_eq!(order, [early, middle, port, late, (EventKind::Arrival, 0)]);
}

/// The key of what came out, where the fabric has other numbers for links.
fn key_by(events: &mut EventSet, next: Next, number_of: impl Fn(u32) -> u32) -> EventKey {
    match next {
        Next::Arrival(number) if number >= near::FIRST => {
            events.take_due(number).expect("it is alone in its slot").1
        }
        Next::Arrival(link) => EventKey::new(EventKind::Arrival, number_of(link)),
        Next::Timer(_, key) => key,
        Next::Slot(_) => panic!("slots are sorted"),
    }
}

fn key_of(events: &mut EventSet, next: Next) -> EventKey {
    key_by(events, next, |link| link)
}

proptest! {
    #[test]
    fn ranks_are_in_the_order_of_keys(
        keys in prop::collection::vec((0usize..17, prop_oneof![0u32..8, any::<u32>()], 0u32..3), 2..40),
    ) {
        let key = |(kind, entity, node): (usize, u32, u32)| match EventKind::ALL[kind] {
            EventKind::Arrival => EventKey::new(EventKind::Arrival, entity / 2),
            EventKind::Switch => EventKey::switch_timer(node, entity),
            kind => EventKey::new(kind, entity),
        };
        let mut keys: Vec<EventKey> = keys.into_iter().map(key).collect();
        keys.sort_unstable();
        prop_assert!(keys.is_sorted_by_key(|key| key.rank()));
        let arrivals = keys.iter().filter(|key| key.kind() == EventKind::Arrival);
        prop_assert!(arrivals.clone().all(|key| key.rank() == key.entity()));
    }

    /// Whatever is pushed, taken out and pushed again while time goes on, events come out in the
    /// one order.
    #[test]
    fn events_come_out_in_order(
        horizon in 1u64..100_000,
        wide in prop::option::of(prop_oneof![1u64..50_000, 1u64 << 32..1 << 36]),
        steps in prop::collection::vec((0u32..40, prop_oneof![0u64..300_000, 0u64..30], any::<bool>(), 0u32..10), 1..400),
    ) {
        let mut links = links(40);
        let mut events = EventSet::new(horizon, Numbers::default());
        if let Some(width) = wide {
            events.prefetch(width);
        }
        let mut expected = std::collections::BTreeSet::new();
        let mut now = 0;
        for (index, (link, delay, timer, pops)) in steps.into_iter().enumerate() {
            let at = now + delay;
            let arrival = EventKey::new(EventKind::Arrival, link);
            let queued = expected.iter().find(|entry: &&(u64, EventKey)| entry.1 == arrival).copied();
            if timer {
                // Numbers in no order.
                let key = EventKey::new(EventKind::Sender, index as u32 * 7_919 % 1_009);
                events.push_timer(Time::from_ps(at), key);
                expected.insert((at, key));
            } else if let Some(entry) = queued {
                events.remove_link(&mut links, link);
                expected.remove(&entry);
            } else {
                links[link as usize].head_arrive = at;
                events.push_link(&mut links[link as usize], link);
                expected.insert((at, arrival));
            }
            for _ in 0..pops {
                let popped = pop(&mut events, &mut links);
                let popped = popped.map(|(time, next)| (time.as_ps(), key_of(&mut events, next)));
                prop_assert_eq!(popped, expected.pop_first());
                now = popped.map_or(now, |event| event.0);
            }
        }
        while let Some(event) = expected.pop_first() {
            let popped = pop(&mut events, &mut links);
            prop_assert_eq!(popped.map(|(time, next)| (time.as_ps(), key_of(&mut events, next))), Some(event));
        }
        prop_assert_eq!(pop(&mut events, &mut links), None);
    }

    /// In windows, events come out in the one order, which is that of the fabric's numbers of
    /// links, and none of a later window: also those of links by which packets come from elsewhere,
    /// which are numbered behind the others here.
    #[test]
    fn windows_hold_their_events_in_order(
        width in 50u64..5_000,
        horizon in 1u64..20_000,
        wide in prop::option::of(1u64..50_000),
        windows in prop::collection::vec(
            prop::collection::vec((0u32..40, 0u64..15_000, any::<bool>()), 0..12), 1..60),
    ) {
        // Links have every other number of the fabric, and those from elsewhere the numbers between
        // them.
        let number_of = |link: u32| if link < 20 { 2 * link } else { 2 * (link - 20) + 1 };
        let mut links = links(40);
        let own: Vec<u32> = (0..20).map(number_of).collect();
        let mut events = EventSet::new(horizon, Numbers::of_partition(&own, 40));
        (20..40).for_each(|link| events.add_link(number_of(link)));
        events.cover(Span::from_ps(width));
        if let Some(width) = wide {
            events.prefetch(width);
        }
        let mut expected = std::collections::BTreeSet::new();
        for (window, steps) in windows.iter().enumerate() {
            let (begin, end) = (window as u64 * width, (window as u64 + 1) * width);
            events.set_limit(Time::from_ps(begin), EventKey::FIRST);
            prop_assert_eq!(pop(&mut events, &mut links), None, "the window before is done");
            if expected.first().is_none_or(|event: &(u64, EventKey)| event.0 >= begin) {
                events.turn_to(Time::from_ps(begin));
            }
            for &(link, delay, is_link) in steps {
                let at = begin + delay;
                let arrival = EventKey::new(EventKind::Arrival, number_of(link));
                if !is_link {
                    let key = EventKey::new(EventKind::Sender, link);
                    if expected.insert((at, key)) {
                        events.push_timer(Time::from_ps(at), key);
                    }
                } else if !expected.iter().any(|entry| entry.1 == arrival) {
                    links[link as usize].head_arrive = at;
                    events.push_link(&mut links[link as usize], link);
                    expected.insert((at, arrival));
                }
            }
            events.set_limit(Time::from_ps(end), EventKey::FIRST);
            while let Some((time, next)) = pop(&mut events, &mut links) {
                let key = key_by(&mut events, next, number_of);
                prop_assert!(time.as_ps() < end);
                prop_assert_eq!(Some((time.as_ps(), key)), expected.pop_first());
            }
            let first = expected.first().map(|event| event.0);
            prop_assert!(first.is_none_or(|first| first >= end));
            prop_assert_eq!(events.next_time().is_none(), first.is_none());
            prop_assert!(events.next_time().is_none_or(|time| time.as_ps() <= first.unwrap_or(0)));
        }
    }
}

proptest! {
    #[test]
    fn a_crowd_is_sorted_by_words_as_by_all_of_its_events(
        slot in 0u64..1 << 20,
        shift in 0u32..40,
        events in prop::collection::btree_map((any::<u64>(), any::<u32>()), 0u32..1 << 20, 1..300),
    ) {
        let mut set = EventSet::new(1, Numbers::default());
        set.shift = shift;
        let in_slot = |time: u64| slot << shift | time & ((1 << shift) - 1);
        let unsorted = events.iter().map(|(&(time, rank), &number)| Event::new(in_slot(time), rank, number));
        // Of two with one time and rank any may be first.
        let mut expected: Vec<Event> = unsorted.collect();
        expected.sort_unstable();
        expected.dedup_by(|one, other| one.is_like(*other));
        set.batch.clone_from(&expected);
        set.batch.reverse();
        set.batch.rotate_left(expected.len() / 3);
        set.sort_by_word();
        prop_assert_eq!(&set.batch, &expected);
    }
}
