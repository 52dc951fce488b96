use proptest::prelude::*;

use super::*;
use crate::clock::EPOCH_NS;

fn at(ns: u64) -> Time {
    Time::from_ps(ns * 1_000)
}

#[test]
fn the_lines_of_the_agent_are_read() {
    let read = |line: &str| parse_report(line.as_bytes()).unwrap();
    assert_eq!(read("ready"), Report::Ready);
    assert_eq!(read("error netlink: No buffer"), Report::Error("netlink: No buffer".into()));
    assert_eq!(
        read("failed 7 connect: timed out"),
        Report::Failed { id: 7, what: "connect: timed out".into() }
    );
    let ns = EPOCH_NS + 5;
    assert_eq!(read(&format!("started 7 40000 {ns}")), Report::Started { id: 7, port: 40_000, at: at(5) });
    let received = Received {
        host: 3,
        port: 5_000,
        from: Ipv4Addr::new(10, 0, 0, 1),
        from_port: 40_000,
        bytes: 99,
        first: at(5),
        last: at(6),
    };
    let line = format!("received 3 5000 10.0.0.1 40000 99 {ns} {}", ns + 1);
    assert_eq!(read(&line), Report::Received(received));
    let without = Report::Closed { id: 7, connected: at(5), closed: at(5), info: None };
    assert_eq!(read(&format!("closed 7 {ns} {ns}")), without);
    let Report::Closed { info, .. } = read(&format!("closed 7 {ns} {ns} retransmits=2 delivered_ce=9"))
    else {
        panic!()
    };
    assert_eq!(info.as_deref(), Some(&TcpInfo { retransmits: 2, delivered_ce: 9, ..TcpInfo::default() }));
}

#[test]
fn what_programs_say_is_bytes_and_how_they_end_is_told() {
    let read = |line: &[u8]| parse_report(line).unwrap();
    let output = |stream, bytes: &[u8]| Report::Output { program: 7, stream, bytes: bytes.to_vec() };
    assert_eq!(read(b"output 7 1 a b\n"), output(Stream::Output, b"a b\n"));
    assert_eq!(read(b"output 7 2 \xff\x00 "), output(Stream::Errors, b"\xff\x00 "));
    let ended = |status, left_out_bytes| Report::Ended { program: 7, status, left_out_bytes };
    assert_eq!(read(b"exited 7 3 99"), ended(Status::Exited(3), 99));
    assert_eq!(read(b"killed 7 9 0"), ended(Status::Killed(9), 0));
    let why = "nonsense: No such file or directory";
    assert_eq!(read(format!("unstarted 7 {why}").as_bytes()), ended(Status::NotStarted(why.into()), 0));
    for bad in ["output 7 3 x", "output 7 1", "output x 1 y", "exited 7 256 0", "exited 7 1", "killed 7"] {
        assert!(parse_report(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(Status::Exited(0).is_success() && !Status::Exited(1).is_success());
    assert_eq!(Status::Killed(9).to_string(), "was ended by signal 9");
}

#[test]
fn connections_of_a_flow_have_ports_and_counts() {
    let info = Box::new(TcpInfo { cwnd: 10, ..TcpInfo::default() });
    let connection = Connection { id: 7, port: 40_000, to_port: 5_000, info };
    let read = |line: &str| parse_report(line.as_bytes());
    assert_eq!(read("sample 7 40000 5000 cwnd=10"), Ok(Report::Sample(connection.clone())));
    assert_eq!(read("subflow 7 40000 5000 cwnd=10"), Ok(Report::Subflow(connection)));
    assert_eq!(read("mptcp 7 4 1"), Ok(Report::Multipath { id: 7, subflows: 4, fell_back: true }));
    for bad in
        ["sample 7 40000 5000", "subflow 7 40000 cwnd=1", "sample 7 1 2 x=1", "mptcp 7 4", "mptcp 7 4 1 1"]
    {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_line_without_meaning_is_told_as_it_is() {
    for line in [
        "",
        "ready now",
        "hello",
        "started 7",
        "started 7 70000 1",
        "closed 7 1 2 nonsense=1",
        "closed 7 2000000000 2000000000 x",
    ] {
        assert_eq!(parse_report(line.as_bytes()), Err(Fault::Line(line.into())), "{line}");
    }
    assert!(parse_report(&[0xff; 10]).is_err());
}

proptest! {
    #[test]
    fn no_line_of_an_agent_crashes_the_reader(
        word in "(ready|error|failed|started|closed|received|output|exited|killed|unstarted|sample|subflow|mptcp)",
        rest in prop::collection::vec("[ -~]{0,12}", 0..10),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let _ = parse_report(format!("{word} {}", rest.join(" ")).as_bytes());
        let _ = parse_report(&bytes);
    }
}
