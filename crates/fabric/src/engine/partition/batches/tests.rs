use weft_units::Time;

use super::*;

fn packet(at_ps: u64, link: u32) -> Packet {
    let mut packet = Packet::default();
    (packet.arrive, packet.next) = (Time::from_ps(at_ps), link);
    packet
}

fn extras(option: u32) -> Option<PacketExtras> {
    option.is_multiple_of(3).then_some(PacketExtras { option, contents: None, kept: Kept::default() })
}

/// Contents of a batch: arrivals and option words.
fn contents(batch: &mut Batch) -> Vec<(u64, Option<u32>)> {
    let mut found = Vec::new();
    batch.empty(|packet, extras, _| found.push((packet.arrive.as_ps(), extras.map(|extras| extras.option))));
    found
}

#[test]
fn an_outbox_has_a_bag_for_each_part_and_knows_what_comes_first() {
    let mut outgoing = OutgoingBatches::new(3);
    assert_eq!(outgoing.take_earliest_ps(), u64::MAX);
    for (partition, at) in [(2, 50), (0, 40), (2, 60)] {
        if let Some(extras) = extras(at as u32) {
            outgoing.put_extras(partition, extras);
        }
        outgoing.push(partition, &packet(at, 9));
    }
    assert_eq!(outgoing.take_earliest_ps(), 40);
    let mut sent = Vec::new();
    outgoing.send(|partition, batch| sent.push((partition, contents(batch))));
    assert_eq!(sent, [(2, vec![(50, None), (60, Some(60))]), (0, vec![(40, None)])]);
    outgoing.send(|_, _| panic!("all was sent"));
}

#[test]
fn a_bag_keeps_what_travels_beside_its_packets() {
    let (mut one, mut other) = (Batch::default(), Batch::default());
    one.push(&packet(1, 0));
    one.push_extras(extras(6).expect("an option"));
    one.push(&packet(2, 0));
    other.push_extras(extras(9).expect("an option"));
    other.push(&packet(3, 0));
    other.push(&packet(4, 0));
    one.append(&mut other);
    assert!(other.is_empty());
    assert_eq!(contents(&mut one), [(1, None), (2, Some(6)), (3, Some(9)), (4, None)]);
    assert!(one.is_empty());
}
