use std::borrow::Cow;
use std::process::Command;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use proptest::prelude::*;

use super::*;

/// A packet as it is in a file: interface, ns, bytes on the wire, what was kept, flags.
type Read = (u32, u128, u32, Vec<u8>, u32);

/// Names of interfaces and packets of a file, by a reader that is not ours.
fn read(file: &[u8]) -> (Vec<String>, Vec<Read>) {
    let mut reader = PcapNgReader::new(file).unwrap();
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::RAW);
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                names.extend(interface.options.iter().filter_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.clone().into_owned()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                let [EnhancedPacketOption::Flags(flags)] = packet.options[..] else { panic!("{packet:?}") };
                let data = match packet.data {
                    Cow::Borrowed(bytes) => bytes.to_vec(),
                    Cow::Owned(bytes) => bytes,
                };
                let ns = packet.timestamp.as_nanos();
                packets.push((packet.interface_id, ns, packet.original_len, data, flags));
            }
            other => panic!("{other:?}"),
        }
    }
    (names, packets)
}

fn example() -> Vec<u8> {
    let mut trace = Trace::new(Vec::new()).unwrap();
    let host = trace.interface("host 3", None).unwrap();
    let link = trace.interface("leaf 1 to spine 2", Some(20)).unwrap();
    let packet: Vec<u8> = (0..33).collect();
    trace.packet(host, Time::from_ps(1_999), Direction::Out, &packet).unwrap();
    trace.packet(link, Time::from_ps(7_000_000_000_000), Direction::In, &packet).unwrap();
    trace.finish().unwrap()
}

#[test]
fn another_reader_finds_interfaces_times_ways_and_bytes() {
    let (names, packets) = read(&example());
    assert_eq!(names, ["host 3", "leaf 1 to spine 2"]);
    let bytes: Vec<u8> = (0..33).collect();
    let expected = [(0, 1, 33, bytes.clone(), 2), (1, 7_000_000_000, 33, bytes[..20].to_vec(), 1)];
    assert_eq!(packets, expected);
}

#[test]
fn a_name_that_no_reader_expects_is_refused() {
    let mut trace = Trace::new(Vec::new()).unwrap();
    assert!(trace.interface(&"x".repeat(1_001), None).is_err());
    assert!(trace.interface(&"x".repeat(1_000), None).is_ok());
    assert_eq!(read(&trace.finish().unwrap()).0.len(), 1, "nothing of the refused one is in the file");
}

#[test]
fn wireshark_opens_it_where_it_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pcapng");
    std::fs::write(&file, example()).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields", "-e", "frame.time_epoch"]);
    let Ok(said) = tshark.output() else { return eprintln!("skipped: there is no tshark") };
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout), "0.000000001\n7.000000000\n");
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        packets in prop::collection::vec((0_usize..3, any::<u64>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..100)), 0..20),
        snap in prop::option::of(1_u32..100),
    ) {
        let mut trace = Trace::new(Vec::new()).unwrap();
        let interfaces: Vec<_> = (0..3).map(|n| trace.interface(&format!("link {n}"), snap).unwrap()).collect();
        let mut expected = Vec::new();
        for (interface, ps, out, bytes) in &packets {
            let direction = if *out { Direction::Out } else { Direction::In };
            trace.packet(interfaces[*interface], Time::from_ps(*ps), direction, bytes).unwrap();
            let kept = bytes[..bytes.len().min(snap.map_or(usize::MAX, |s| s as usize))].to_vec();
            let (ns, flags) = (u128::from(ps / 1_000), if *out { 2 } else { 1 });
            expected.push((*interface as u32, ns, bytes.len() as u32, kept, flags));
        }
        prop_assert_eq!(read(&trace.finish().unwrap()).1, expected);
    }
}
