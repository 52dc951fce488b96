use weft_linux_hosts::codec::{Flags, Mapping, MpCapable};

use super::*;

/// Keys, and what `sha256sum` says of their eight bytes: its first four, and its last eight.
const SENDER: (u64, u32, u64) = (0x0102_0304_0506_0708, 0x6684_0dda, 0xf5a1_01d3_d29d_6f72);
const RECEIVER: (u64, u32, u64) = (1, 0xcd26_6215, 0x19ec_5090_83d0_0a50);

const FROM: HostId = HostId(3);
const TO: HostId = HostId(5);
const SIZE: u64 = 10_000;

fn segment(option: Mptcp) -> Tcp {
    Tcp {
        source_port: 1,
        destination_port: 2,
        sequence: 0,
        acknowledgement: 0,
        flags: Flags::ACK,
        window: 0,
        urgent: 0,
        options: vec![TcpOption::NoOperation, TcpOption::Mptcp(option)],
    }
}

fn capable(sender_key: u64, data: Option<u16>) -> Tcp {
    let (sender_key, data) = (Some(sender_key), data.map(|bytes| (bytes, None)));
    segment(Mptcp::Capable(MpCapable { version: 1, flags: 1, sender_key, receiver_key: None, data }))
}

fn join(token: u32) -> Tcp {
    segment(Mptcp::Join(MpJoin::Syn { backup: false, address: 0, token, nonce: 7 }))
}

/// Data from `byte` of the flow on, mapped from the subflow's byte `subflow` on.
fn data(byte: u64, subflow: u32, bytes: u16) -> Tcp {
    let sequence = Sequence::Long(SENDER.2.wrapping_add(1).wrapping_add(byte));
    let mapping = Mapping { sequence, subflow: subflow + 1, bytes, checksum: None };
    segment(Mptcp::Data { acknowledgement: None, mapping: Some(mapping), fin: false })
}

/// Flow 2 of 10, after its handshake.
fn established() -> Multipath {
    let mut multipath = Multipath::new(10, 3);
    multipath.begin(FlowId(2), FROM, SIZE);
    multipath.acknowledged(FlowId(2), TO, &capable(RECEIVER.0, None), 0);
    assert_eq!(multipath.carried(FlowId(2), &capable(SENDER.0, None), &(0..0)), Data::default());
    multipath
}

fn carried(multipath: &mut Multipath, subflow: u32, tcp: &Tcp, bytes: Range<u64>) -> Range<u64> {
    multipath.carried(FlowId(subflow), tcp, &bytes).payload
}

#[test]
fn token_and_first_number_are_those_of_the_standard() {
    for (key, token, first) in [SENDER, RECEIVER] {
        assert_eq!(derived(key), (token, first));
    }
}

#[test]
fn a_subflow_joins_the_flow_whose_token_it_names_from_the_same_host_and_no_other() {
    let mut multipath = established();
    assert_eq!(multipath.joins(&join(SENDER.1), FROM, TO), None, "the sender's token");
    assert_eq!(multipath.joins(&join(RECEIVER.1), FROM, HostId(6)), None, "another receiver");
    assert_eq!(multipath.joins(&join(RECEIVER.1), HostId(4), TO), None, "another sender");
    assert_eq!(multipath.joins(&capable(SENDER.0, None), FROM, TO), None, "a connection of its own");
    let joined: Vec<_> = (0..3).map(|_| multipath.joins(&join(RECEIVER.1), FROM, TO)).collect();
    assert_eq!(
        joined,
        [Some(FlowId(12)), Some(FlowId(22)), None],
        "by number, and no more than there may be"
    );
}

#[test]
fn what_a_segment_carries_is_where_its_mapping_says() {
    let mut multipath = established();
    assert_eq!(carried(&mut multipath, 2, &capable(SENDER.0, Some(3_000)), 1_000..2_000), 1_000..2_000);
    assert_eq!(carried(&mut multipath, 12, &data(4_000, 0, 3_000), 0..1_000), 4_000..5_000);
    let of_one_mapping = carried(&mut multipath, 12, &data(4_000, 0, 3_000), 1_000..2_500);
    assert_eq!(of_one_mapping, 5_000..6_500, "several segments have one mapping");
    assert_eq!(carried(&mut multipath, 22, &data(4_500, 100, 500), 100..600), 4_500..5_000, "once more");
    assert_eq!(carried(&mut multipath, 2, &data(9_000, 3_000, 1_001), 3_000..4_000), 9_000..SIZE);
    assert!(multipath.is_end(FlowId(2), &(9_000..SIZE)));
    assert!(!multipath.is_end(FlowId(2), &(8_000..9_000)));
}

#[test]
fn what_is_beyond_a_mapping_or_before_the_flow_is_nothing_of_it() {
    let mut multipath = established();
    assert_eq!(carried(&mut multipath, 2, &data(4_000, 0, 999), 0..1_000), 0..0);
    assert_eq!(carried(&mut multipath, 2, &data(u64::MAX, 0, 1), 0..1), 0..0, "a probe of a closed window");
    let bare = segment(Mptcp::Data { acknowledgement: None, mapping: None, fin: false });
    assert_eq!(carried(&mut multipath, 12, &bare, 0..1_000), 0..0, "a subflow that joined never falls back");
    let told = multipath.acknowledged(FlowId(2), TO, &bare, 500);
    assert_eq!(told.acknowledged, None);
}

#[test]
fn acknowledgements_count_bytes_of_the_flow_in_either_length() {
    let mut multipath = established();
    let mut told = |number| {
        let acknowledgement = Some(number);
        let tcp = segment(Mptcp::Data { acknowledgement, mapping: None, fin: false });
        multipath.acknowledged(FlowId(12), TO, &tcp, 7).acknowledged
    };
    let first = SENDER.2.wrapping_add(1);
    assert_eq!(told(Sequence::Long(first + 5_000)), Some(5_000));
    assert_eq!(told(Sequence::Short((first + 6_000) as u32)), Some(6_000));
    assert_eq!(told(Sequence::Long(first + SIZE + 1)), Some(SIZE), "the end takes a number");
}

#[test]
fn without_options_the_flow_is_its_first_subflow() {
    let mut multipath = established();
    let mut bare = data(0, 0, 0);
    bare.options.clear();
    assert_eq!(carried(&mut multipath, 2, &bare, 4_000..5_000), 4_000..5_000);
    assert_eq!(multipath.acknowledged(FlowId(2), TO, &bare, 5_000).acknowledged, Some(5_000));
}
