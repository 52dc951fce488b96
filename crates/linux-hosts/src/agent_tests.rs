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

#[test]
fn no_word_of_a_command_can_be_two_or_another_command() {
    let listener =
        |control: &str| Listener { host: 0, port: 1, protocol: Protocol::Tcp, control: control.into() };
    assert_eq!(listen_line(&listener("cubic")).unwrap(), "listen 0 1 tcp cubic");
    for bad in ["", "a b", "a\nready", "é", &"x".repeat(129)] {
        assert!(listen_line(&listener(bad)).is_err(), "{bad}");
        assert!(set_line(0, bad, "1").is_err(), "{bad}");
    }
    for path in ["/etc/x", "net/../../x", "net//x"] {
        assert!(set_line(0, path, "1").is_err(), "{path}");
    }
    assert_eq!(
        set_line(3, "net/ipv4/tcp_rmem", "4096 8192 9000").unwrap(),
        "set 3 net/ipv4/tcp_rmem 4096 8192 9000"
    );
    assert!(set_line(0, "net/ipv4/tcp_sack", "1\nready").is_err());
}

proptest! {
    #[test]
    fn no_line_of_an_agent_crashes_the_reader(
        word in "(ready|error|failed|started|closed|received)",
        rest in prop::collection::vec("[ -~]{0,12}", 0..10),
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let _ = parse_report(format!("{word} {}", rest.join(" ")).as_bytes());
        let _ = parse_report(&bytes);
    }
}
