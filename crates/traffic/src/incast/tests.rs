use super::*;
use crate::fixtures::{generate, message};

fn flows(keys: &str) -> Vec<Flow> {
    generate(&format!("[[incast]]\nsize = '10KB'\n{keys}")).unwrap().flows
}

#[test]
fn every_request_has_different_senders_and_one_receiver_that_is_none_of_them() {
    let flows = flows("senders = 15\nperiod = '100us'\nrepeats = 50\nstart = '7us'");
    assert_eq!(flows.len(), 750);
    for (request, answers) in flows.chunks(15).enumerate() {
        let mut hosts: Vec<u16> = answers.iter().map(|flow| flow.src.0).collect();
        hosts.push(answers[0].dst.0);
        hosts.sort_unstable();
        assert_eq!(hosts, (0..16).collect::<Vec<_>>());
        let start = Time::from_ps(7_000_000 + request as u64 * 100_000_000);
        assert!(answers.iter().all(|flow| flow.dst == answers[0].dst && flow.start == start));
    }
}

#[test]
fn receivers_and_senders_are_drawn_evenly() {
    let flows = flows("senders = 3\nperiod = '1us'\nrepeats = 16_000");
    for host in 0..16 {
        let receives = flows.iter().filter(|flow| flow.dst.0 == host).count() as f64 / 3.0;
        let sends = flows.iter().filter(|flow| flow.src.0 == host).count() as f64;
        assert!((receives - 1_000.0).abs() < 160.0, "host {host} receives {receives} requests");
        assert!((sends - 3_000.0).abs() < 270.0, "host {host} answers {sends} times");
    }
}

#[test]
fn a_named_receiver_and_named_sources_are_kept_to() {
    let flows = flows("senders = 2\nreceiver = 3\nsources = ['3-5']\nclass = 'short'");
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert!(flow.dst == HostId(3) && [4, 5].contains(&flow.src.0) && flow.class == Class::Short);
    }
}

#[test]
fn load_sets_the_period_from_the_receiving_links() {
    // 10 x 10 KB to one link of 1.25 GB/s at a tenth: 100 KB / 125 MB/s = 800 us.
    let fixed = flows("senders = 10\nreceiver = 3\nload = 0.1\nrepeats = 2");
    assert_eq!(fixed[10].start.since(fixed[0].start), Span::from_us(800));
    // To any of 16 links: 50 us.
    let drawn = flows("senders = 10\nload = 0.1\nrepeats = 2");
    assert_eq!(drawn[10].start.since(drawn[0].start), Span::from_us(50));
}

#[test]
fn requests_end_with_the_duration_or_with_the_other_flows() {
    let count = |text: &str| {
        let incast = "[[incast]]\nsenders = 1\nsize = '1B'\nperiod = '10us'\nstart = '5us'";
        let traffic = generate(&format!("{text}\n{incast}")).unwrap();
        traffic.flows.iter().filter(|flow| flow.size_bytes == 1).count()
    };
    // 5, 15, ... 85 us; the request at 95 us is not before the end.
    assert_eq!(count("duration = '95us'"), 9);
    assert_eq!(count("duration = '96us'"), 10);
    let random = "size = '1KB'\nload = 0.01\nflows = 1_000";
    let last = generate(random).unwrap().flows.last().unwrap().start;
    assert_eq!(count(random) as u64, (last.as_ps() - 5_000_000) / 10_000_000 + 1);
}

#[test]
fn jitter_spreads_the_senders_evenly_and_no_further() {
    let flows = flows("senders = 10\nperiod = '1ms'\nrepeats = 400\njitter = '100us'");
    let late: Vec<f64> = flows.iter().map(|flow| flow.start.as_us() % 1_000.0).collect();
    assert!(late.iter().all(|us| (0.0..100.0).contains(us)));
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!((mean - 50.0).abs() < 2.0, "mean {mean} us");
}

#[test]
fn mistakes_are_named_by_key() {
    let cases = [
        ("size = '1KB'\nsenders = 16", "traffic.incast[0].senders = 16: allowed is 1 to 15"),
        ("size = '1KB'\nsenders = 0", "traffic.incast[0].senders = 0: allowed is 1 to 15"),
        ("size = '1KB'\nsenders = 3\nsources = ['0-2']\nreceiver = 1", "senders = 3: allowed is 1 to 2"),
        ("size = '1KB'\nsenders = 1\nsources = [1]\nreceiver = 1", "senders = 1: allowed is 1 to 0"),
        (
            "size = '1KB'\nsenders = 1\nreceiver = 16",
            "traffic.incast[0].receiver = 16: allowed is a host, 0 to 15",
        ),
        ("size = '0B'\nsenders = 1", "traffic.incast[0].size = 0B: allowed is 1 B to 1 TB"),
        ("size = '2000GB'\nsenders = 1", "traffic.incast[0].size = 2000GB"),
        ("size = '1KB'\nsenders = 1\nrepeats = 0\nperiod = '1us'", "traffic.incast[0].repeats = 0"),
        ("size = '1KB'\nsenders = 1\nrepeats = 2", "traffic.incast[0].period is missing"),
        ("size = '1KB'\nsenders = 1\nperiod = '1us'", "traffic.incast[0].repeats is missing"),
        (
            "size = '1KB'\nsenders = 1\nperiod = '0s'",
            "traffic.incast[0].period = 0ps: allowed is more than 0",
        ),
        (
            "size = '1KB'\nsenders = 1\nperiod = '1us'\nload = 0.5",
            "period and traffic.incast[0].load exclude",
        ),
        ("size = '1KB'\nsenders = 1\nload = 0.0", "traffic.incast[0].load = 0: allowed is a share above 0"),
        ("size = '1KB'\nsenders = 1\nload = 1.5", "the largest load is 1"),
        (
            "size = '1KB'\nsenders = 9\nperiod = '1us'\nrepeats = 4000000000",
            "repeats = about 900000009 flows",
        ),
    ];
    for (keys, expected) in cases {
        let found = message(&format!("[[incast]]\n{keys}"));
        assert!(found.contains(expected), "{keys}: {found}");
    }
    let late = message("duration = '1ms'\n[[incast]]\nsize = '1KB'\nsenders = 1\nstart = '1ms'");
    assert!(late.contains("traffic.incast[0].start = 1ms: allowed is less than traffic.duration"), "{late}");
}
