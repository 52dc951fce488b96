//! Classes and choices against tables worked by hand. Thresholds: 60 and 160 us, 40 %, deltas 80 us
//! and 5 %.

use weft_units::Purpose;

use super::*;

const LIMITS: Thresholds = Thresholds { low: Span::from_us(60), high: Span::from_us(160) };

fn rules(ecn: bool) -> Rules {
    Rules::new(&Params { ecn, ..Params::default() })
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A path that was measured to be so at time 0.
fn measured(rtt_us: f64, ecn: f64) -> Path {
    let measured = State { rtt_ps: rtt_us * 1e6, ecn };
    Path { measured, renewed: Some(Time::ZERO), ..Path::new() }
}

/// The path, with this much sent by it at time 0.
fn used(mut path: Path, packets: u32) -> Path {
    (0..packets).for_each(|_| path.meter.add(&decay(), 0, 1_000));
    path
}

fn decay() -> Decay {
    Decay::new(Span::from_us(30), 0.2)
}

fn stream(seed: u64) -> Stream {
    Stream::new(seed, Purpose::HostScheme, 0)
}

#[test]
fn round_trip_and_marks_class_a_path() {
    use Class::{Bad, Good, Grey};
    // Share of marks below, at, and above 40 %; for each the round trip below 60, between, and
    // above 160 us.
    let table = [
        (0.39, [Good, Grey, Grey, Grey, Grey]),
        (0.40, [Grey, Grey, Grey, Grey, Grey]),
        (0.41, [Grey, Grey, Grey, Grey, Bad]),
    ];
    for (ecn, classes) in table {
        let found = [59.0, 60.0, 100.0, 160.0, 161.0]
            .map(|rtt| measured(rtt, ecn).class(&rules(true), LIMITS, Time::ZERO));
        assert_eq!(found, classes, "{ecn}");
        let alone = [59.0, 60.0, 100.0, 160.0, 161.0]
            .map(|rtt| measured(rtt, ecn).class(&rules(false), LIMITS, Time::ZERO));
        assert_eq!(alone, [Good, Grey, Grey, Grey, Bad], "round trips alone");
    }
    assert_eq!(Path::new().class(&rules(true), LIMITS, us(5)), Grey, "nothing is known");
}

#[test]
fn measures_are_smoothed_and_the_first_is_taken_as_it_is() {
    let mut path = Path::new();
    let mut learn = |rtt_us, marked| {
        path.learn(&rules(true), Time::ZERO, Span::from_us(rtt_us), marked);
        (path.measured.rtt_ps / 1e6, path.measured.ecn)
    };
    assert_eq!(learn(100, true), (100.0, 1.0));
    assert_eq!(learn(60, false), (80.0, 15.0 / 16.0));
    assert_eq!(learn(60, false), (70.0, 225.0 / 256.0));
}

#[test]
fn what_nothing_renews_turns_grey_and_weighs_less() {
    // Good at 40 us, with 110 us in the middle: grey from 60 us on, when 0.99^k is at most 5/7: k =
    // 34.
    let good = measured(40.0, 0.0);
    let class = |path: &Path, periods: u64| path.class(&rules(true), LIMITS, us(periods * 60));
    assert_eq!((class(&good, 33), class(&good, 34)), (Class::Good, Class::Grey));
    // Bad at 310 us and 0.8: by its marks until 0.99^k is at most 0.5 (k = 69), by its round trip
    // longer.
    let bad = measured(310.0, 0.8);
    assert_eq!((class(&bad, 68), class(&bad, 69)), (Class::Bad, Class::Grey));
    assert!(bad.is_bad(&rules(true), LIMITS, us(68 * 60)) && !bad.is_bad(&rules(true), LIMITS, us(69 * 60)));
    assert_eq!(class(&bad, 1_000_000), Class::Grey);
    // After 69 periods (0.4998) an old round trip weighs a quarter, not a half.
    let mut path = measured(310.0, 0.8);
    path.learn(&rules(true), us(69 * 60), Span::from_us(50), false);
    assert!((path.measured.rtt_ps / 1e6 - 115.0).abs() < 0.1, "{}", path.measured.rtt_ps);
}

#[test]
fn an_old_round_trip_may_tend_to_another_one() {
    // From 310 us to 60 us: not bad any more when 0.99^k is at most 100/250, k = 92; that to 110 us
    // needs k = 138.
    let [to_60, to_110] = [Some(Span::from_us(60)), None]
        .map(|aged_rtt| Rules::new(&Params { aged_rtt, ecn: false, ..Params::default() }));
    let bad = measured(310.0, 0.0);
    let class = |rules: &Rules, periods: u64| bad.class(rules, LIMITS, us(periods * 60));
    assert_eq!([91, 92].map(|periods| class(&to_60, periods)), [Class::Bad, Class::Grey]);
    assert_eq!([137, 138].map(|periods| class(&to_110, periods)), [Class::Bad, Class::Grey]);
    assert_eq!(Path::new().class(&to_60, LIMITS, Time::ZERO), Class::Grey, "60 us is not below 60");
}

/// The labels that many seeds choose, by numbers of flows.
fn with_flows(paths: &[Path], flows: &[u32]) -> Vec<u16> {
    let rules = Rules::new(&Params { prefers: Prefers::FewestFlows, ..Params::default() });
    let decay = decay();
    let chooser = Chooser { rules: &rules, limits: LIMITS, decay: &decay, now: Time::ZERO, paths, flows };
    let place = |seed| chooser.place(|_| false, &mut stream(seed)).map(|(label, _)| label);
    let mut labels: Vec<u16> = (0..100).filter_map(place).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// Classes of round trips end at 70, 80, 90 and 100 us.
#[test]
fn the_fewest_flows_count_among_round_trips_of_a_class() {
    let paths = |rtts: &[f64]| rtts.iter().map(|&rtt| measured(rtt, 0.0)).collect::<Vec<_>>();
    let table: [(&[f64], &[u32], &[u16]); 6] = [
        (&[40.0, 59.0, 50.0, 61.0], &[2, 1, 1, 0], &[1, 2]),
        (&[61.0, 70.0, 70.1], &[3, 2, 0], &[1]),
        (&[71.0, 80.0, 90.0], &[2, 2, 0], &[0, 1]),
        (&[101.0, 99.0, 160.0], &[0, 5, 0], &[1]),
        (&[101.0, 159.0, 130.0], &[1, 0, 0], &[1, 2]),
        (&[300.0, 61.0], &[0, 9], &[1]),
    ];
    for (row, (rtts, flows, expected)) in table.into_iter().enumerate() {
        assert_eq!(with_flows(&paths(rtts), flows), expected, "row {row}");
    }
}

#[test]
fn a_flow_may_leave_a_bad_path_for_a_bad_one() {
    let (here, there, good) = (measured(900.0, 0.9), measured(300.0, 0.5), measured(40.0, 0.0));
    for (leaves_for_bad, expected) in [(false, &[][..]), (true, &[1])] {
        let rules = Rules::new(&Params { leaves_for_bad, ..Params::default() });
        let decay = decay();
        let leave = |paths: &[Path]| {
            let chooser =
                Chooser { rules: &rules, limits: LIMITS, decay: &decay, now: Time::ZERO, paths, flows: &[] };
            chooser.leave(0, |_| false, &mut stream(1))
        };
        assert_eq!(Vec::from_iter(leave(&[here, there, there])), expected, "the first one");
        assert_eq!(leave(&[here, there, good]), Some(2), "but a good one comes before");
        assert_eq!(leave(&[here, measured(850.0, 0.5)]), None, "not better by 80 us");
    }
}

/// The labels that many seeds choose.
fn chosen(paths: &[Path], choose: impl Fn(&Chooser<'_>, &mut Stream) -> Option<u16>) -> Vec<u16> {
    let (rules, decay) = (rules(true), decay());
    let chooser =
        Chooser { rules: &rules, limits: LIMITS, decay: &decay, now: Time::ZERO, paths, flows: &[] };
    let mut labels: Vec<u16> = (0..100).filter_map(|seed| choose(&chooser, &mut stream(seed))).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

fn placed(paths: &[Path], swallowed: &[u16]) -> Vec<u16> {
    let place = |chooser: &Chooser<'_>, random: &mut Stream| {
        Some(chooser.place(|label| swallowed.contains(&label), random)?.0)
    };
    chosen(paths, place)
}

fn failed(path: Path) -> Path {
    Path { failed_until: us(1), ..path }
}

#[test]
fn a_flow_is_placed_on_the_least_used_good_path_then_grey_then_any_that_has_not_failed() {
    let (good, grey, bad) = (measured(40.0, 0.0), measured(100.0, 0.0), measured(300.0, 0.9));
    let table: [(&[Path], &[u16], &[u16]); 8] = [
        (&[used(good, 5), used(good, 3), grey, bad], &[], &[1]),
        (&[used(good, 5), used(good, 5), grey, bad], &[], &[0, 1]),
        (&[failed(good), used(good, 9), grey, bad], &[], &[1]),
        (&[good, used(grey, 2), used(grey, 1), bad], &[0], &[2]),
        (&[bad, used(grey, 2), bad, Path::new()], &[], &[3]),
        (&[used(bad, 9), bad, failed(grey), used(bad, 2)], &[], &[0, 1, 3]),
        (&[used(bad, 9), bad, failed(good), bad], &[3], &[0, 1]),
        (&[failed(good), failed(bad)], &[], &[]),
    ];
    for (row, (paths, swallowed, expected)) in table.into_iter().enumerate() {
        assert_eq!(placed(paths, swallowed), expected, "row {row}");
    }
}

#[test]
fn a_flow_leaves_only_for_a_good_or_grey_path_that_is_better_by_both_deltas() {
    // From 300 us and 50 %.
    let here = measured(300.0, 0.5);
    let table: [(Path, bool); 9] = [
        (measured(40.0, 0.0), true),
        (measured(110.0, 0.0), true),
        (measured(159.0, 0.44), true),
        (measured(159.0, 0.45), false),
        (measured(40.0, 0.45), false),
        (measured(219.0, 0.3), true),
        (measured(220.0, 0.3), false),
        (measured(200.0, 0.41), false),
        (failed(measured(40.0, 0.0)), false),
    ];
    for (row, (there, leaves)) in table.into_iter().enumerate() {
        let found = chosen(&[here, there], |chooser, random| chooser.leave(0, |_| false, random));
        assert_eq!(found, if leaves { vec![1] } else { vec![] }, "row {row}");
        let swallowed =
            chosen(&[here, there], |chooser, random| chooser.leave(0, |label| label == 1, random));
        assert!(swallowed.is_empty(), "row {row}");
    }
}

#[test]
fn among_better_paths_good_comes_before_grey_and_then_the_least_used() {
    let (here, good, grey) = (measured(300.0, 0.9), measured(40.0, 0.0), measured(100.0, 0.0));
    let leave = |paths: &[Path]| chosen(paths, |chooser, random| chooser.leave(0, |_| false, random));
    assert_eq!(leave(&[here, grey, used(good, 4), used(good, 3)]), [3]);
    assert_eq!(leave(&[here, grey, used(grey, 4), grey]), [1, 3]);
}

#[test]
fn a_path_with_losses_has_failed_unless_it_is_bad() {
    for (path, fails) in [
        (measured(40.0, 0.0), true),
        (measured(100.0, 0.0), true),
        (measured(300.0, 0.1), true),
        (measured(3_000.0, 0.9), false),
    ] {
        let (mut path, rules) = (path, rules(true));
        for packet in 0..200 {
            assert!(!path.send(&rules, LIMITS, us(packet), packet % 50 == 0), "the window is not over");
        }
        // Measured again meanwhile, to the same.
        let end = us(10_000);
        path.renewed = Some(end);
        assert_eq!(path.send(&rules, LIMITS, end, false), fails, "2 % of 200 packets, {path:?}");
        assert_eq!(path.drops(end), fails);
        assert!(!path.drops(end + Span::from_s(100)));
    }
}

#[test]
fn what_is_lost_while_a_path_is_bad_is_lost_to_congestion() {
    let rules = rules(true);
    for (meanwhile, fails) in [(measured(3_000.0, 0.9), false), (measured(100.0, 0.9), true)] {
        let mut path = meanwhile;
        for packet in 0..200 {
            path.send(&rules, LIMITS, us(packet), packet % 50 == 0);
        }
        // Good by the end of the window.
        let end = us(10_000);
        path = Path { measured: measured(40.0, 0.0).measured, renewed: Some(end), ..path };
        assert_eq!(path.send(&rules, LIMITS, end, false), fails);
    }
}
