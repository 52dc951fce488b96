use proptest::prelude::*;
use weft_units::{Rate, Span};

use super::*;

const FAST: Card = Card::ethernet(Rate::from_gbps(1), Span::from_us(5));

fn cards() -> Vec<CardState> {
    vec![CardState { card: FAST, sends_until_ps: EPOCH_NS * 1_000 }; 2]
}

/// Takes in one packet that a kernel hands over, and returns the packets that are sent.
fn take(cards: &mut [CardState], card: usize, begins_ps: u64, bytes: usize) -> Result<Vec<Sent>, Fault> {
    let (mut reports, mut rooms, mut sent) = (VecDeque::new(), BTreeMap::new(), Vec::new());
    let (reports, rooms) = (&mut reports, &mut rooms);
    let mut intake = Intake { cards, reports, rooms, sent: &mut sent, began_ns: EPOCH_NS };
    intake.take_packet(card, begins_ps, &vec![7; bytes])?;
    Ok(sent)
}

#[test]
fn a_card_sends_one_packet_at_a_time_and_none_before_its_step() {
    let mut cards = cards();
    let epoch_ps = EPOCH_NS * 1_000;
    let service = FAST.service(1_500).as_ps();
    assert!(take(&mut cards, 0, epoch_ps - 1, 1_500).is_err(), "before the step");
    let sent = take(&mut cards, 0, epoch_ps + 5, 1_500).unwrap();
    assert_eq!((sent[0].host, sent[0].begins, sent[0].packet.len()), (0, Time::from_ps(5), 1_500));
    let early = epoch_ps + 4 + service;
    assert_eq!(take(&mut cards, 0, early, 40), Err(Fault::PacketTime { card: 0, begins_ps: early }));
    assert!(take(&mut cards, 1, early, 40).is_ok(), "the other card is free");
    assert!(take(&mut cards, 0, early + 1, 40).is_ok());
}

#[test]
fn a_packet_that_no_card_sends_is_a_fault() {
    assert_eq!(take(&mut cards(), 2, u64::MAX, 40), Err(Fault::NoSuchCard(2)));
    let now = EPOCH_NS * 1_000;
    assert_eq!(take(&mut cards(), 0, now, 1_501), Err(Fault::PacketLength { card: 0, bytes: 1_501 }));
    assert_eq!(take(&mut cards(), 0, now, 0), Err(Fault::PacketLength { card: 0, bytes: 0 }));
    assert!(
        matches!(take(&mut cards(), 0, u64::MAX, 40), Err(Fault::PacketTime { .. })),
        "beyond the end of time"
    );
}

#[test]
fn a_program_has_no_more_output_than_is_to_be_kept() {
    let (mut cards, mut reports, mut rooms) = (cards(), VecDeque::new(), BTreeMap::from([(7, 10)]));
    let (cards, reports, rooms, mut sent) = (&mut cards, &mut reports, &mut rooms, Vec::new());
    let mut intake = Intake { cards, reports, rooms, sent: &mut sent, began_ns: EPOCH_NS };
    assert_eq!(intake.take_output(7, 6), Ok(()));
    assert_eq!(intake.take_output(7, 5), Err(Fault::Output(7)));
    assert_eq!(intake.take_output(7, 4), Ok(()));
    assert_eq!(intake.take_output(8, 0), Err(Fault::Output(8)), "nobody started it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn whatever_a_kernel_hands_over_cards_never_send_two_packets_at_a_time(
        packets in prop::collection::vec((0_usize..3, any::<u64>(), 0_u64..100_000_000, 0_usize..1_600), 0..20),
    ) {
        let mut cards = cards();
        let mut free_ps = [0; 2];
        for (card, anywhere, near, bytes) in packets {
            let begins_ps = if anywhere % 4 == 0 { anywhere } else { EPOCH_NS * 1_000 + near };
            for sent in take(&mut cards, card, begins_ps, bytes).unwrap_or_default() {
                prop_assert!(sent.begins.as_ps() >= free_ps[sent.host]);
                free_ps[sent.host] = (sent.begins + FAST.service(sent.packet.len())).as_ps();
            }
        }
    }
}
