use proptest::prelude::*;

use super::*;

fn packet(at_ps: u64, link: u32) -> Packet {
    let mut packet = Packet::default();
    (packet.arrive, packet.next) = (Time::from_ps(at_ps), link);
    packet
}

fn beside(option: u32) -> Option<Beside> {
    option.is_multiple_of(3).then_some(Beside { option, contents: None })
}

/// What is in a bag: arrivals and option words.
fn contents(bag: &mut Bag) -> Vec<(u64, Option<u32>)> {
    let mut found = Vec::new();
    bag.empty(|packet, beside| found.push((packet.arrive.as_ps(), beside.map(|beside| beside.option))));
    found
}

/// Hands out days up to the first with mail, and its mail.
fn next_mail(mailbox: &mut Mailbox) -> Option<(u64, Bag)> {
    loop {
        let day = mailbox.next_day()?;
        let mut bag = Bag::default();
        mailbox.hand_out(day, &mut bag);
        if !bag.is_empty() {
            return Some((day, bag));
        }
    }
}

proptest! {
    /// Each packet is handed out on its day, once, with what travels beside it, however far ahead it was posted.
    #[test]
    fn mail_is_handed_out_on_its_day(
        delays in prop::collection::vec(prop_oneof![0u64..2_000, 0u64..2_000_000], 1..200),
        day in 1u64..200,
        return_every in 2usize..9,
    ) {
        let mut mailbox = Mailbox::new(Span::from_ps(day));
        let mut expected: Vec<(u64, Option<u32>)> = Vec::new();
        for (number, delay) in delays.iter().enumerate() {
            let at = mailbox.today * day + delay;
            mailbox.put(packet(at, number as u32), beside(number as u32));
            expected.push((at, beside(number as u32).map(|beside| beside.option)));
            prop_assert_eq!(mailbox.len(), expected.len());
            if number % 3 == 0 {
                let first = expected.iter().map(|(at, _)| at / day).min().unwrap();
                prop_assert!(mailbox.next_day().unwrap() <= first);
                let (today, mut bag) = next_mail(&mut mailbox).unwrap();
                prop_assert_eq!(today, first);
                if number.is_multiple_of(return_every) {
                    mailbox.take_in_again(today, &mut bag);
                    prop_assert_eq!(mailbox.len(), expected.len());
                    let again = next_mail(&mut mailbox).unwrap();
                    prop_assert_eq!(again.0, today);
                    bag = again.1;
                }
                let mut due: Vec<_> = expected.extract_if(.., |(at, _)| *at / day == today).collect();
                due.sort_unstable();
                let mut found = contents(&mut bag);
                found.sort_unstable();
                prop_assert_eq!(found, due);
            }
        }
        while let Some((today, mut bag)) = next_mail(&mut mailbox) {
            let due = expected.extract_if(.., |(at, _)| *at / day == today).count();
            prop_assert_eq!(contents(&mut bag).len(), due);
        }
        prop_assert!(expected.is_empty() && mailbox.next_day().is_none());
    }

    #[test]
    fn what_comes_by_a_link_is_taken_back_in_order(arrivals in prop::collection::vec(0u64..100_000, 0..100)) {
        let mut mailbox = Mailbox::new(Span::from_ps(7));
        for (number, &at) in arrivals.iter().enumerate() {
            mailbox.put(packet(at, number as u32 % 3), beside(number as u32));
        }
        let mut own: Vec<_> = (0..).zip(&arrivals).filter(|(number, _)| number % 3 == 1).collect();
        own.sort_by_key(|&(_, at)| at);
        let taken = mailbox.take_back(1);
        prop_assert_eq!(taken.len(), own.len());
        prop_assert!(taken.iter().zip(own).all(|((packet, _), (_, &at))| packet.arrive.as_ps() == at));
        prop_assert_eq!(mailbox.len(), arrivals.len() - taken.len());
    }
}

#[test]
fn an_outbox_has_a_bag_for_each_part_and_knows_what_comes_first() {
    let mut outbox = Outbox::new(3);
    assert_eq!(outbox.take_earliest_ps(), u64::MAX);
    for (part, at) in [(2, 50), (0, 40), (2, 60)] {
        outbox.post(part, packet(at, 9), beside(at as u32));
    }
    assert_eq!(outbox.take_earliest_ps(), 40);
    let mut sent = Vec::new();
    outbox.send(|part, bag| sent.push((part, contents(bag))));
    assert_eq!(sent, [(2, vec![(50, None), (60, Some(60))]), (0, vec![(40, None)])]);
    outbox.send(|_, _| panic!("all was sent"));
}

#[test]
fn a_bag_keeps_what_travels_beside_its_packets() {
    let (mut one, mut other) = (Bag::default(), Bag::default());
    one.push(packet(1, 0), None);
    one.push(packet(2, 0), beside(6));
    other.push(packet(3, 0), beside(9));
    other.push(packet(4, 0), None);
    one.append(&mut other);
    assert!(other.is_empty());
    assert_eq!(one.open(2).1.map(|beside| beside.option), Some(9));
    assert!(one.open(3).1.is_none());
    assert_eq!(contents(&mut one).iter().map(|of| of.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
}
