//! The order of events as `docs/determinism.md` has it.

use super::EventKind;

const PAGE: &str = include_str!("../../../../../docs/determinism.md");

/// Text of the page on a kind: what happens, and what orders events of the kind at one instant.
const fn documented(kind: EventKind) -> (&'static str, &'static str) {
    match kind {
        EventKind::Arrival => ("a packet reaches the far end of a link", "link"),
        EventKind::Fault => ("a link changes its state", "fault"),
        EventKind::Reroute => ("all switches have learned of it", "fault"),
        EventKind::FlowStart => ("a flow starts", "flow"),
        EventKind::Sender => ("a sender's timer", "flow"),
        EventKind::Receiver => ("a receiver's timer", "flow"),
        EventKind::SenderSchemeTimer => ("a host scheme's timer for a flow, sending end", "flow"),
        EventKind::ReceiverSchemeTimer => ("a host scheme's timer for a flow, receiving end", "flow"),
        EventKind::Switch => {
            ("a timer of a switch's scheme; behind all of them, of a switch's process", "switch, then timer")
        }
        EventKind::Sample => ("a look at all links", "there is one"),
        EventKind::Host => {
            ("a timer of a host's scheme; behind all of them, of a host's card or CPU", "host, then timer")
        }
        EventKind::Port => ("a port with two queues may send its next packet", "link"),
        EventKind::Guest => ("a Linux host begins to send a packet", "packet"),
        EventKind::Pause => ("a port obeys a pause", "link"),
        EventKind::Deadlock => ("a look for pauses that wait for each other", "there is one"),
        EventKind::Card => ("a host's RDMA card may send its next packet", "host"),
        EventKind::Ready => (
            "a flow starts that waited for others, or a computation is done or ready for its turn",
            "flow, then computation",
        ),
    }
}

#[test]
fn the_page_on_determinism_lists_every_kind_of_event_in_its_order() {
    let mut expected = Vec::new();
    for (rank, kind) in EventKind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, rank, "{kind:?} is not at its place in ALL");
        let (what, number) = documented(kind);
        expected.push(format!("| {rank} | {what} | {number} |"));
    }
    let table = PAGE.lines().map(str::trim).skip_while(|line| !line.starts_with("| rank at one instant"));
    let rows: Vec<&str> = table.skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows, expected, "docs/determinism.md is to have these rows");
}
