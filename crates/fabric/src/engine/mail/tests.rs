use weft_units::Time;

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

#[test]
fn an_outbox_has_a_bag_for_each_part_and_knows_what_comes_first() {
    let mut outbox = Outbox::new(3);
    assert_eq!(outbox.take_earliest_ps(), u64::MAX);
    for (part, at) in [(2, 50), (0, 40), (2, 60)] {
        if let Some(beside) = beside(at as u32) {
            outbox.put_beside(part, beside);
        }
        outbox.post(part, &packet(at, 9));
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
    one.push(&packet(1, 0));
    one.push_beside(beside(6).expect("an option"));
    one.push(&packet(2, 0));
    other.push_beside(beside(9).expect("an option"));
    other.push(&packet(3, 0));
    other.push(&packet(4, 0));
    one.append(&mut other);
    assert!(other.is_empty());
    assert_eq!(contents(&mut one), [(1, None), (2, Some(6)), (3, Some(9)), (4, None)]);
    assert!(one.is_empty());
}
