//! Keys of transports in a spec, and errors for wrong values.

use weft_transport::TransportSpec;
use weft_transport::tcp::{Congestion, DctcpConfig, EcnMode, Profile, TcpConfig};
use weft_units::{Bytes, Span};

fn spec(text: &str) -> TransportSpec {
    toml::from_str(text).unwrap()
}

#[test]
fn a_spec_names_a_transport_and_changes_what_it_names() {
    let expected =
        DctcpConfig { g: 0.5, min_rto: Span::from_ms(1), mss: Bytes::new(1_400), ..DctcpConfig::default() };
    assert_eq!(
        spec("name = \"dctcp\"\ng = 0.5\nmin_rto = \"1ms\"\nmss = \"1400B\""),
        TransportSpec::Dctcp(expected)
    );
    let TransportSpec::Tcp(tcp) = spec("name = \"tcp\"\necn = \"classic\"") else { panic!("not tcp") };
    assert_eq!(tcp.ecn, EcnMode::Classic);
}

#[test]
fn unknown_names_and_keys_are_refused_with_what_is_allowed() {
    let message = |text| toml::from_str::<TransportSpec>(text).unwrap_err().to_string();
    let unknown = message("name = \"tpc\"");
    assert!(unknown.contains("tpc") && unknown.contains("`tcp`, `dctcp`"), "{unknown}");
    let unknown = message("name = \"tcp\"\ng = 0.5");
    assert!(unknown.contains("unknown field `g`") && unknown.contains("`min_rto`"), "{unknown}");
    let unknown = message("name = \"dctcp\"\necn = \"off\"");
    assert!(unknown.contains("unknown field `ecn`"), "{unknown}");
}

#[test]
fn a_profile_sets_the_keys_that_are_not_given() {
    let TransportSpec::Tcp(tcp) =
        spec("profile = \"linux\"\nname = \"tcp\"\nmin_rto = \"5ms\"\nack_every = 1")
    else {
        panic!("not tcp")
    };
    let expected = TcpConfig { min_rto: Span::from_ms(5), ack_every: 1, ..TcpConfig::of(Profile::Linux) };
    assert_eq!(tcp, expected);
    assert_eq!(
        (tcp.mss, tcp.header, tcp.syn_size),
        (Bytes::new(1_448), Bytes::new(52), Some(Bytes::new(60)))
    );
    assert_eq!(tcp.congestion, Congestion::Cubic);
    let TransportSpec::Dctcp(dctcp) = spec("name = \"dctcp\"\nprofile = \"linux\"") else {
        panic!("not dctcp")
    };
    assert_eq!((dctcp.min_rto, dctcp.handshake, dctcp.g), (Span::from_ms(200), true, 1.0 / 16.0));
    let TransportSpec::Dctcp(dctcp) = spec("name = \"dctcp\"\nprofile = \"hermes-ns3\"") else {
        panic!("not dctcp")
    };
    assert_eq!((dctcp.mss, dctcp.header, dctcp.initial_window), (Bytes::new(1_400), Bytes::new(54), 2));
}

#[test]
fn what_a_profile_resolves_to_reads_as_itself() {
    for text in [
        "name = \"tcp\"\nprofile = \"linux\"",
        "name = \"dctcp\"\nprofile = \"linux\"\nmss = \"1KB\"",
        "name = \"tcp\"\nprofile = \"hermes-ns3\"",
        "name = \"dctcp\"\nprofile = \"hermes-ns3\"\nhandshake = false",
    ] {
        let resolved = spec(text);
        assert_eq!(spec(&toml::to_string(&resolved).unwrap()), resolved);
        assert_eq!(resolved.validate(), Ok(()));
    }
}

#[test]
fn the_keys_of_cubic_are_checked() {
    let cases = [
        ("cubic_c = 0.0", "cubic_c is 0; allowed: above 0, at most 1e6"),
        ("cubic_beta = 1.0", "cubic_beta is 1; allowed: above 0, below 1"),
        ("cubic_first_growth = -0.1", "cubic_first_growth is -0.1; allowed: 0 to 1"),
    ];
    for (line, expected) in cases {
        let error = spec(&format!("name = \"tcp\"\ncongestion = \"cubic\"\n{line}")).validate().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn parameters_that_make_no_sense_are_named_with_what_is_allowed() {
    let cases = [
        ("mss = \"0B\"", "mss is 0B; allowed: 1B to 65535B"),
        ("mss = \"65535B\"", "mss is 65535B; allowed: 1B to 65495B: 65535B less the header"),
        ("ack_size = \"70KB\"", "ack_size is 70KB; allowed: 1B to 65535B"),
        ("initial_window = 0", "initial_window is 0; allowed: 1 or more"),
        ("initial_ssthresh = 1", "initial_ssthresh is 1; allowed: 2 or more segments"),
        ("dup_ack_threshold = 0", "dup_ack_threshold is 0; allowed: 1 or more"),
        ("ack_every = 0", "ack_every is 0; allowed: 1 or more"),
        ("max_window = \"1KB\"", "max_window is 1KB; allowed: the mss, 1460B, or more"),
        ("min_rto = \"61s\"", "min_rto is 61s; allowed: at most max_rto, 60s"),
        ("min_rto = \"0s\"", "min_rto is 0ps; allowed: more than 0s"),
        ("initial_rto = \"1us\"", "initial_rto is 1us; allowed: min_rto to max_rto, 5ms to 60s"),
        ("syn_timeout = \"61s\"", "syn_timeout is 61s; allowed: at most max_rto, 60s"),
        ("ack_timeout = \"0us\"", "ack_timeout is 0ps; allowed: more than 0s"),
        ("rack = true", "rack is true; allowed: false, unless sack is true"),
        ("rack_window = 0.0", "rack_window is 0; allowed: above 0, at most 100"),
        ("reorder_segments = 0", "reorder_segments is 0; allowed: 1 to 65536"),
        ("abc_limit = 0", "abc_limit is 0; allowed: 1 or more"),
        ("g = 0.0", "g is 0; allowed: above 0, at most 1"),
        ("g = nan", "g is NaN; allowed: above 0, at most 1"),
        ("initial_alpha = 1.5", "initial_alpha is 1.5; allowed: 0 to 1"),
    ];
    for (line, expected) in cases {
        let error = spec(&format!("name = \"dctcp\"\n{line}")).validate().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn every_transport_is_listed_with_valid_defaults() {
    let names: Vec<_> = TransportSpec::list().iter().map(|info| info.name).collect();
    assert_eq!(
        names,
        ["tcp", "dctcp", "expresspass", "mptcp", "maxpass", "roce", "irn", "uec", "swift", "mprdma"]
    );
    for info in TransportSpec::list() {
        let spec = spec(&format!("name = {:?}", info.name));
        assert_eq!((spec.validate(), spec.name()), (Ok(()), info.name));
    }
}

#[test]
fn a_spec_written_out_reads_back_the_same() {
    for lines in [
        "name = 'tcp'\nmax_window = '64KiB'\nsack = true",
        "name = 'dctcp'\nmax_window = '64KiB'\nsack = true",
        "name = 'expresspass'\ncredit_spread = '8B'\ninitial_rate = 0.0625",
    ] {
        let spec = spec(lines);
        assert_eq!(toml::from_str::<TransportSpec>(&toml::to_string(&spec).unwrap()), Ok(spec));
    }
}
