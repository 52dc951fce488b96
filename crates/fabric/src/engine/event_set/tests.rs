use proptest::prelude::*;

use super::*;
use crate::engine::link::FarEnd;

fn links(count: usize) -> Vec<Link> {
    (0..count).map(|_| Link::idle(FarEnd::AT_HOST, 0, 0)).collect()
}

/// The next event, as whoever looks ahead or does not takes it out.
fn pop(events: &mut EventSet, links: &mut [Link]) -> Option<(Time, Next)> {
    if !events.looks_ahead() {
        return events.pop::<false>(links, &Pool::default());
    }
    loop {
        let popped = events.pop::<true>(links, &Pool::default());
        if popped.is_some() || !events.take_crowd() {
            return popped;
        }
        assert!(!events.crowd().is_empty());
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
    let mut events = EventSet::new(1_000, Vec::new());
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
fn timers_of_one_instant_come_by_kind_and_number_whatever_else_their_slot_holds() {
    let mut links = links(1);
    // A slot is 64 ps wide.
    let mut events = EventSet::new(64 * 4_000, Vec::new());
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

fn key_of(events: &mut EventSet, next: Next) -> EventKey {
    match next {
        Next::Arrival(number) if number >= near::FIRST => events.take_timer(number),
        Next::Arrival(link) => EventKey::new(EventKind::Arrival, link),
        Next::Mail(place, _) => EventKey::new(EventKind::Arrival, 1_000 + place),
        Next::Timer(key) => key,
    }
}

proptest! {
    /// Whatever is pushed, taken out and pushed again while time goes on, events come out in the one order.
    #[test]
    fn events_come_out_in_order(
        horizon in 1u64..100_000,
        wide in prop::option::of(1u64..50_000),
        steps in prop::collection::vec((0u32..40, prop_oneof![0u64..300_000, 0u64..30], any::<bool>(), 0u32..10), 1..400),
    ) {
        let mut links = links(40);
        let mut events = EventSet::new(horizon, Vec::new());
        if let Some(width) = wide {
            events.look_ahead(width);
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

    /// In windows, with mail from elsewhere, events come out in the one order, and none of a later window.
    #[test]
    fn windows_hold_their_events_in_order(
        width in 50u64..5_000,
        horizon in 1u64..20_000,
        wide in prop::option::of(1u64..50_000),
        windows in prop::collection::vec(
            prop::collection::vec((0u32..20, 0u64..15_000, 0u8..3), 0..12), 1..60),
    ) {
        // Links have every other number of the fabric, so that mail comes between them.
        let mut links = links(20);
        let mut events = EventSet::new(horizon, (0..20).map(|link| 2 * link).collect());
        if let Some(width) = wide {
            events.look_ahead(width);
        }
        let mut expected = std::collections::BTreeSet::new();
        let mut under_way = Vec::new();
        for (window, steps) in windows.iter().enumerate() {
            let (begin, end) = (window as u64 * width, (window as u64 + 1) * width);
            events.set_limit(Time::from_ps(begin), EventKey::FIRST);
            prop_assert_eq!(pop(&mut events, &mut links), None, "the window before is done");
            for &(number, delay, kind) in steps {
                let at = begin + delay;
                let arrival = EventKey::new(EventKind::Arrival, 2 * number);
                match kind {
                    0 if !expected.iter().any(|entry: &(u64, EventKey)| entry.1 == arrival) => {
                        links[number as usize].head_arrive = at;
                        events.push_link(&mut links[number as usize], number);
                        expected.insert((at, arrival));
                    }
                    1 => {
                        let key = EventKey::new(EventKind::Sender, number);
                        if expected.insert((at, key)) {
                            events.push_timer(Time::from_ps(at), key);
                        }
                    }
                    _ => under_way.push((at, 2 * number + 1, number)),
                }
            }
            under_way.sort_unstable();
            under_way.dedup_by_key(|mail: &mut Posted| (mail.0, mail.1));
            let due = under_way.partition_point(|mail| mail.0 < end);
            let mut mail: Vec<Posted> = under_way.drain(..due).collect();
            expected.extend(mail.iter().map(|mail| (mail.0, EventKey::new(EventKind::Arrival, mail.1))));
            events.post(&mut mail);
            events.set_limit(Time::from_ps(end), EventKey::FIRST);
            while let Some((time, next)) = pop(&mut events, &mut links) {
                let key = match next {
                    Next::Arrival(number) if number >= near::FIRST => events.take_timer(number),
                    Next::Arrival(link) => EventKey::new(EventKind::Arrival, 2 * link),
                    Next::Mail(_, link) => EventKey::new(EventKind::Arrival, link),
                    Next::Timer(key) => key,
                };
                prop_assert!(time.as_ps() < end);
                prop_assert_eq!(Some((time.as_ps(), key)), expected.pop_first());
            }
            prop_assert!(expected.first().is_none_or(|event| event.0 >= end));
            prop_assert!(events.next_time().is_none_or(|time| time.as_ps() <= expected.first().map_or(0, |event| event.0)));
        }
    }
}
