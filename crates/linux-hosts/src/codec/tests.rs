use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn any_sequence() -> impl Strategy<Value = Sequence> {
    prop_oneof![any::<u32>().prop_map(Sequence::Short), any::<u64>().prop_map(Sequence::Long)]
}

fn any_capable() -> impl Strategy<Value = Mptcp> {
    let flags = (0_u8..16, any::<u8>());
    (flags, any::<(u64, u64)>(), any::<(u16, Option<u16>)>(), 0..4).prop_map(
        |((version, flags), keys, data, parts)| {
            Mptcp::Capable(MpCapable {
                version,
                flags,
                sender_key: (parts >= 1).then_some(keys.0),
                receiver_key: (parts >= 2).then_some(keys.1),
                data: (parts >= 3).then_some(data),
            })
        },
    )
}

fn any_join() -> impl Strategy<Value = Mptcp> {
    prop_oneof![
        any::<(bool, u8, u32, u32)>().prop_map(|(backup, address, token, nonce)| MpJoin::Syn {
            backup,
            address,
            token,
            nonce
        }),
        any::<(bool, u8, u64, u32)>().prop_map(|(backup, address, hmac, nonce)| MpJoin::SynAck {
            backup,
            address,
            hmac,
            nonce
        }),
        any::<[u8; 20]>().prop_map(|hmac| MpJoin::Ack { hmac }),
    ]
    .prop_map(Mptcp::Join)
}

fn any_data() -> impl Strategy<Value = Mptcp> {
    let mapping = (any_sequence(), any::<(u32, u16, Option<u16>)>())
        .prop_map(|(sequence, (subflow, bytes, checksum))| Mapping { sequence, subflow, bytes, checksum });
    (prop::option::of(any_sequence()), prop::option::of(mapping), any::<bool>())
        .prop_map(|(acknowledgement, mapping, fin)| Mptcp::Data { acknowledgement, mapping, fin })
}

fn any_option() -> impl Strategy<Value = TcpOption> {
    prop_oneof![
        Just(TcpOption::NoOperation),
        any::<u16>().prop_map(TcpOption::MaximumSegment),
        any::<u8>().prop_map(TcpOption::WindowScale),
        Just(TcpOption::SackPermitted),
        prop::collection::vec(any::<(u32, u32)>(), 1..5).prop_map(TcpOption::Sack),
        any::<(u32, u32)>().prop_map(|(value, echo)| TcpOption::Timestamps { value, echo }),
        any_capable().prop_map(TcpOption::Mptcp),
        any_join().prop_map(TcpOption::Mptcp),
        any_data().prop_map(TcpOption::Mptcp),
        prop::collection::vec(any::<u8>(), 1..9).prop_map(|mut bytes| {
            bytes[0] = 0x30 | bytes[0] & 15; // ADD_ADDR
            TcpOption::Mptcp(Mptcp::Other(bytes))
        }),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| TcpOption::Other { kind: 253, bytes }),
    ]
}

/// As many of them as fit, and what pads the header.
fn fitting(options: Vec<TcpOption>) -> Vec<TcpOption> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for option in options {
        let one = vec![option.clone()];
        let length = (0..4)
            .find_map(|pad| {
                let padded = [one.clone(), vec![TcpOption::NoOperation; pad]].concat();
                super::options::encode_options(&padded).ok().map(|encoded| encoded.len() - pad)
            })
            .unwrap_or(99);
        if bytes + length <= 36 {
            bytes += length;
            kept.push(option);
        }
    }
    kept.extend(vec![TcpOption::NoOperation; (4 - bytes % 4) % 4]);
    kept
}

fn any_ip() -> impl Strategy<Value = Ipv4> {
    let ecn = prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable1, Ecn::Capable0, Ecn::Congestion]);
    (0_u8..64, ecn, any::<(u16, u8, u32, u32)>(), 0_usize..11, any::<u8>()).prop_map(
        |(dscp, ecn, (identification, ttl, source, destination), words, fill)| Ipv4 {
            dscp,
            ecn,
            identification,
            ttl,
            options: vec![fill; words * 4],
            ..Ipv4::new(Ipv4Addr::from_bits(source), Ipv4Addr::from_bits(destination))
        },
    )
}

fn any_tcp() -> impl Strategy<Value = Tcp> {
    let fields = any::<(u16, u16, u32, u32, u16, u16)>();
    (fields, 0_u16..0x1000, prop::collection::vec(any_option(), 0..6)).prop_map(
        |((source_port, destination_port, sequence, acknowledgement, window, urgent), flags, options)| Tcp {
            source_port,
            destination_port,
            sequence,
            acknowledgement,
            flags: Flags::from_bits(flags).unwrap(),
            window,
            urgent,
            options: fitting(options),
        },
    )
}

/// A packet that a Linux 6.1 sends: the first segment of a connection.
fn syn() -> Tcp {
    Tcp {
        source_port: 40_000,
        destination_port: 5_000,
        sequence: 7,
        flags: Flags::SYN | Flags::ECE | Flags::CWR,
        window: 64_240,
        options: vec![
            TcpOption::MaximumSegment(1_460),
            TcpOption::SackPermitted,
            TcpOption::Timestamps { value: 9, echo: 0 },
            TcpOption::NoOperation,
            TcpOption::WindowScale(7),
        ],
        ..Tcp::default()
    }
}

fn ip() -> Ipv4 {
    Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
}

#[test]
fn a_syn_has_the_bytes_that_the_rfcs_draw() {
    let bytes = Packet { ip: ip(), body: Body::Tcp(syn(), &[]) }.encode().unwrap();
    let by_hand = [
        0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0x26, 0xba, 10, 0, 0, 1, 10, 0, 0, 2, // IP
        0x9c, 0x40, 0x13, 0x88, 0, 0, 0, 7, 0, 0, 0, 0, 0xa0, 0xc2, 0xfa, 0xf0, 0x88, 0x74, 0, 0, // TCP
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    assert_eq!(bytes, by_hand);
    assert_eq!(Packet::decode(&bytes).unwrap().body, Body::Tcp(syn(), &[]));
}

#[test]
fn each_wrong_bit_of_a_packet_is_noticed_by_a_check_sum_or_a_length() {
    let bytes = Packet { ip: ip(), body: Body::Tcp(syn(), b"data") }.encode().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(Packet::decode(&wrong).is_err(), "bit {bit}");
    }
    assert_eq!(Packet::decode(&bytes[..59]), Err(CodecError::TotalLength { said: 64, found: 59 }));
    assert_eq!(Packet::decode(&bytes[..19]), Err(CodecError::TooShort(19)));
}

#[test]
fn options_that_their_kind_does_not_allow_are_refused() {
    let decode = |bytes: &[u8]| super::options::decode_options(bytes);
    assert_eq!(decode(&[2, 3, 0, 0]), Err(CodecError::Option { kind: 2, bytes: 3 }));
    assert_eq!(decode(&[5, 2, 1, 1]), Err(CodecError::Option { kind: 5, bytes: 2 }), "SACK without a block");
    assert_eq!(decode(&[8, 10, 0, 0]), Err(CodecError::Option { kind: 8, bytes: 10 }), "beyond the header");
    assert_eq!(decode(&[99, 0, 0, 0]), Err(CodecError::Option { kind: 99, bytes: 0 }), "no progress");
    assert_eq!(decode(&[1, 1, 1, 99]), Err(CodecError::Option { kind: 99, bytes: 1 }));
    assert_eq!(
        decode(&[30, 2, 1, 1]),
        Err(CodecError::Option { kind: 30, bytes: 2 }),
        "MPTCP without a subtype"
    );
    assert_eq!(decode(&[1, 0, 7, 7]), Ok(vec![TcpOption::NoOperation, TcpOption::End(vec![7, 7])]));
}

#[test]
fn what_does_not_fit_is_not_written() {
    let encode = |options: Vec<TcpOption>| {
        let tcp = Tcp { options, ..syn() };
        Packet { ip: ip(), body: Body::Tcp(tcp, &[]) }.encode()
    };
    assert_eq!(encode(vec![TcpOption::NoOperation]), Err(CodecError::OptionsLength(1)));
    assert_eq!(encode(vec![TcpOption::NoOperation; 44]), Err(CodecError::OptionsLength(44)));
    assert!(encode(vec![TcpOption::End(vec![0; 3]), TcpOption::NoOperation]).is_err());
    assert!(encode(vec![TcpOption::Sack(vec![(0, 1); 5])]).is_err());
    assert!(
        encode(vec![TcpOption::Other { kind: 2, bytes: vec![0; 2] }]).is_err(),
        "an option that has a name"
    );
    let long = vec![0; 65_535];
    assert!(Packet { ip: ip(), body: Body::Tcp(syn(), &long) }.encode().is_err());
    let fragment = Ipv4 { fragment_offset: 8, ..ip() };
    assert_eq!(Packet { ip: fragment, body: Body::Tcp(syn(), &[]) }.encode(), Err(CodecError::Fragment));
    let wide = Ipv4 { dscp: 64, ..ip() };
    assert!(Packet { ip: wide, body: Body::Tcp(syn(), &[]) }.encode().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn every_packet_of_fields_comes_back_from_its_bytes(
        ip in any_ip(), tcp in any_tcp(), payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let packet = Packet { ip, body: Body::Tcp(tcp, &payload) };
        let bytes = packet.encode().unwrap();
        prop_assert_eq!(Packet::decode(&bytes).unwrap(), packet);
    }

    #[test]
    fn a_mark_is_what_writing_the_packet_with_it_gives(ip in any_ip(), tcp in any_tcp()) {
        let mut packet = Packet { ip, body: Body::Tcp(tcp, &[]) };
        let mut bytes = packet.encode().unwrap();
        let capable = packet.ip.ecn != Ecn::NotCapable;
        prop_assert_eq!(mark_congestion(&mut bytes), capable);
        if capable {
            packet.ip.ecn = Ecn::Congestion;
        }
        prop_assert_eq!(Packet::decode(&bytes).unwrap(), packet);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn no_bytes_crash_the_reader_and_what_it_takes_is_written_again(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        (header, words) in (5_u8..9, 5_u8..12),
    ) {
        let _ = Packet::decode(&bytes);
        // Random bytes have no right check sums: make one that has them, whatever its options say.
        let mut almost = bytes;
        let ip = usize::from(header) * 4;
        if almost.len() >= ip + 20 {
            almost[0] = 0x40 | header;
            almost[6..8].fill(0);
            almost[ip + 12] = words << 4 | almost[ip + 12] & 15;
            almost[ip + 16..ip + 18].fill(0);
            almost[10..12].fill(0);
            let sum = super::checksum::sum(&almost[ip..]) + super::checksum::sum(&almost[12..20]) + 6 + (almost.len() - ip) as u32;
            let checksum = match super::checksum::fold(sum) { 0 => u16::MAX, checksum => checksum };
            almost[ip + 16..ip + 18].copy_from_slice(&checksum.to_be_bytes());
            super::ipv4::finish(&mut almost, ip, 6).unwrap();
        }
        if let Ok(packet) = Packet::decode(&almost) {
            prop_assert_eq!(packet.encode().unwrap(), almost);
        }
    }
}
