use proptest::prelude::*;
use weft_units::{Rate, Span};

use super::*;

/// A record as a kernel writes it.
fn record(kind: u16, card: u16, time: u64, body: &[u8]) -> Vec<u8> {
    let mut message = Message::new();
    message.record(kind, card.into(), time, body);
    message.bytes.split_off(HEAD)
}

#[test]
fn what_a_kernel_writes_is_read_record_by_record() {
    let bytes = [record(PACKET, 3, 77, b"packet"), record(TEXT, 0, 78, b"ready"), record(PACKET, 4, 79, b"")]
        .concat();
    let read: Vec<_> = parse_records(&bytes).collect();
    let expected = [
        Ok(Record::Packet { card: 3, begins_ps: 77, bytes: b"packet" }),
        Ok(Record::Text { at_ns: 78, line: b"ready" }),
        Ok(Record::Packet { card: 4, begins_ps: 79, bytes: b"" }),
    ];
    assert_eq!(read, expected);
}

#[test]
fn a_record_that_is_wrong_is_told_and_ends_the_message() {
    let good = record(TEXT, 0, 1, b"ready");
    let cases = [
        (good[..15].to_vec(), Fault::RecordCutOff),
        (good[..20].to_vec(), Fault::RecordCutOff),
        (record(9, 0, 1, b""), Fault::RecordKind(9)),
        (record(CARD, 0, 1, b""), Fault::RecordKind(CARD)),
        (record(TEXT, 0, 1, &[b'x'; MAX_TEXT + 1]), Fault::RecordLength(MAX_TEXT + 1)),
        (record(PACKET, 0, 1, &vec![0; MAX_PACKET + 1]), Fault::RecordLength(MAX_PACKET + 1)),
    ];
    for (bad, fault) in cases {
        let bytes = [good.clone(), bad, good.clone()].concat();
        let read: Vec<_> = parse_records(&bytes).collect();
        if fault == Fault::RecordCutOff {
            // What follows is taken for its rest: whatever that makes of it, nothing is read beyond
            // the end.
            assert!(read.len() <= 3);
        } else {
            assert_eq!(read[1..], [Err(fault)]);
        }
    }
    assert_eq!(parse_records(&good[..20]).last(), Some(Err(Fault::RecordCutOff)));
    let mut longest = good;
    longest[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        parse_records(&longest).last(),
        Some(Err(Fault::RecordCutOff)),
        "a length near 2^32 does not wrap"
    );
}

#[test]
fn a_head_says_its_kind_and_a_length_that_is_possible() {
    let head = |kind: u32, bytes: u32| {
        let mut head = [0; HEAD];
        head[0..4].copy_from_slice(&kind.to_le_bytes());
        head[4..8].copy_from_slice(&bytes.to_le_bytes());
        head[8..16].copy_from_slice(&5_u64.to_le_bytes());
        parse_head(&head)
    };
    assert_eq!(head(HELLO, 0), Ok(Head { kind: Kind::Hello { version: 5 }, bytes: 0 }));
    assert_eq!(head(WAIT, 8), Ok(Head { kind: Kind::Wait { next_ns: 5 }, bytes: 8 }));
    assert_eq!(head(MORE, BATCH as u32), Ok(Head { kind: Kind::More, bytes: BATCH }));
    assert_eq!(head(MORE, BATCH as u32 + 1), Err(Fault::MessageLength(BATCH + 1)));
    assert_eq!(head(RUN, 0), Err(Fault::MessageKind(RUN)));
}

#[test]
fn a_card_is_told_in_the_72_bytes_that_the_kernel_reads() {
    let card = Card {
        interrupt_delay: Span::from_us(20),
        interrupt_packets: 8,
        receive_ring: 512,
        cpu_per_packet: Span::from_ns(700),
        cpu_per_byte: Span::from_ps(50),
        ..Card::ethernet(Rate::from_gbps(10), Span::from_us(3))
    };
    let mut message = Message::new();
    message.card(2, &card);
    let bytes = message.setup(3);
    assert_eq!((u32_at(bytes, 0), u32_at(bytes, 4), u64_at(bytes, 8)), (SETUP, 88, 3));
    assert_eq!((u16_at(bytes, 16), u16_at(bytes, 18), u32_at(bytes, 20)), (CARD, 2, 72));
    let long: Vec<_> = (32..72).step_by(8).map(|at| u64_at(bytes, at)).collect();
    assert_eq!(long, [800 << 16, 3_000, 20_000, 700_000, 50]);
    let rest: Vec<_> = (72..104).step_by(4).map(|at| u32_at(bytes, at)).collect();
    assert_eq!(rest, [38, 84, 1_500, 256, 1, 512, 1, 8]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50_000))]

    #[test]
    fn no_bytes_of_a_kernel_crash_the_reader_or_make_it_read_for_ever(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        (kind, length) in (0_u16..5, 0_u32..64),
    ) {
        // Random bytes hardly ever are a record: half of the cases have a head that could be one.
        let mut almost = bytes.clone();
        if almost.len() >= 8 {
            almost[0..2].copy_from_slice(&kind.to_le_bytes());
            almost[4..8].copy_from_slice(&length.to_le_bytes());
        }
        for bytes in [&bytes, &almost] {
            let read: Vec<_> = parse_records(bytes).collect();
            prop_assert!(read.len() <= bytes.len() / HEAD + 1);
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
            if let Some((head, _)) = bytes.split_first_chunk() {
                let _ = parse_head(head);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_again(
        packets in prop::collection::vec((any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..100)), 0..20),
    ) {
        let mut message = Message::new();
        for (card, at, bytes) in &packets {
            message.packet((*card).into(), *at, bytes);
        }
        let read: Result<Vec<_>, _> = parse_records(&message.bytes[HEAD..]).collect();
        let expected: Vec<_> = packets
            .iter()
            .map(|(card, at, bytes)| Record::Packet { card: (*card).into(), begins_ps: *at, bytes })
            .collect();
        prop_assert_eq!(read, Ok(expected));
    }
}
