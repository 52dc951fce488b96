use proptest::prelude::*;

use super::*;

fn packet(at_ps: u64, link: u32) -> Packet {
    let mut packet = Packet::default();
    (packet.arrive, packet.next) = (Time::from_ps(at_ps), link);
    packet
}

fn beside(option: u32) -> Option<Beside> {
    option.is_multiple_of(3).then_some(Beside { option, contents: None, kept: Kept::default() })
}

/// What is in a bag: arrivals and option words.
fn contents(bag: &mut Bag) -> Vec<(u64, Option<u32>)> {
    let mut found = Vec::new();
    bag.empty(|packet, beside, _| found.push((packet.arrive.as_ps(), beside.map(|beside| beside.option))));
    found
}

/// Hands out days up to the first with mail, and its mail.
fn next_mail(mailbox: &mut Mailbox) -> Option<(u64, Vec<Posted>)> {
    loop {
        let day = mailbox.next_day()?;
        let mut mail = Vec::new();
        mailbox.hand_out(day, &mut mail);
        if !mail.is_empty() {
            return Some((day, mail));
        }
    }
}

proptest! {
    /// Each piece is handed out on its day, once, however far ahead it was posted, and in order if it came by one link.
    #[test]
    fn mail_is_handed_out_on_its_day(
        delays in prop::collection::vec(prop_oneof![0u64..2_000, 0u64..2_000_000], 1..200),
        day in 1u64..200,
    ) {
        let mut mailbox = Mailbox::new(Span::from_ps(day));
        let mut expected: Vec<Posted> = Vec::new();
        for (number, delay) in delays.iter().enumerate() {
            let posted = (mailbox.today * day + delay, 0, number as PacketIndex);
            mailbox.put(posted);
            expected.push(posted);
            if number % 3 == 0 {
                let first = expected.iter().map(|(at, ..)| at / day).min().unwrap();
                prop_assert!(mailbox.next_day().unwrap() <= first);
                let (today, mut mail) = next_mail(&mut mailbox).unwrap();
                prop_assert_eq!(today, first);
                let due: Vec<_> = expected.extract_if(.., |(at, ..)| *at / day == today).collect();
                mail.sort_unstable_by_key(|&(.., number)| number);
                prop_assert_eq!(mail, due);
            }
        }
        while let Some((today, mail)) = next_mail(&mut mailbox) {
            let due = expected.extract_if(.., |(at, ..)| *at / day == today).count();
            prop_assert_eq!(mail.len(), due);
        }
        prop_assert!(expected.is_empty() && mailbox.next_day().is_none());
    }

    #[test]
    fn mail_for_one_instant_stays_in_the_order_in_which_it_was_put_in(
        days in prop::collection::vec(0u64..9_000, 1..60),
        between in 0u64..70,
    ) {
        let mut mailbox = Mailbox::new(Span::from_ps(1));
        let mut number = 0;
        for &day in &days {
            for _ in 0..3 {
                mailbox.put((mailbox.today + day, 0, number));
                number += 1;
            }
            let today = mailbox.today;
            if mailbox.next_day().is_some_and(|next| next >= today + between) {
                mailbox.hand_out(today + between, &mut Vec::new());
            }
        }
        while let Some((_, mail)) = next_mail(&mut mailbox) {
            prop_assert!(mail.is_sorted_by_key(|&(.., number)| number));
        }
    }

    #[test]
    fn what_comes_by_a_link_is_taken_back(arrivals in prop::collection::vec(0u64..100_000, 0..100)) {
        let mut mailbox = Mailbox::new(Span::from_ps(7));
        for (number, &at) in (0u32..).zip(&arrivals) {
            mailbox.put((at, number % 3, number));
        }
        let mut own: Vec<Posted> =
            (0u32..).zip(&arrivals).map(|(number, &at)| (at, number % 3, number)).collect();
        own.retain(|posted| posted.1 == 1);
        own.sort_unstable();
        let count = own.len();
        let mut taken = mailbox.take_back(1);
        taken.sort_unstable();
        prop_assert_eq!(taken, own);
        let mut left = 0;
        while let Some((_, mail)) = next_mail(&mut mailbox) {
            left += mail.len();
        }
        prop_assert_eq!(left, arrivals.len() - count);
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
    assert_eq!(contents(&mut one), [(1, None), (2, Some(6)), (3, Some(9)), (4, None)]);
    assert!(one.is_empty());
}
