//! The congestion windows of flows over time, with both kinds of hosts.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use weft_lab::{Prepared, SpecSource};
use weft_units::Span;

use super::{alone, column, flows, has_kernel};
use crate::common::{run, small};

fn windows(source: &SpecSource, flows: &[u32], every: Span) -> RecordBatch {
    let prepared = Prepared::new(source).unwrap();
    prepared.congestion_windows(&mut |_| ControlFlow::Continue(()), flows, every).unwrap()
}

/// Looks at a flow of 1 MB alone every 100 us. Both kinds begin with ten segments, and nothing sets
/// a threshold before there is a loss or a queue.
fn assert_follows(source: &SpecSource) {
    let table = windows(source, &[0], Span::from_us(100));
    let (times, cwnd) = (column(&table, "time_us"), column(&table, "cwnd"));
    let (out, ssthresh) = (column(&table, "outstanding"), column(&table, "ssthresh"));
    assert!(
        times.iter().zip(1..).all(|(time, nth)| (time - 100.0 * f64::from(nth)).abs() < 0.01),
        "a kernel starts a flow in the next nanosecond: {:?}",
        &times[..3]
    );
    let table = flows(&run(source));
    let closed = if source.overrides.iter().any(|(_, value)| value == "simulated") {
        column(&table, "sender_fct_us")[0]
    } else {
        column(&table, "kernel_closed_us")[0]
    };
    assert!((0.0..=100.0).contains(&(closed - times.last().unwrap())), "{closed} {:?}", times.last());
    // A round trip takes 400 us at least: the handshake, then the first window.
    assert!(cwnd[..7].iter().all(|cwnd| (cwnd - 10.0).abs() < 1e-9), "{cwnd:?}");
    assert!(ssthresh[..7].iter().all(|ssthresh| ssthresh.is_nan()));
    assert!(cwnd.windows(2).all(|pair| pair[0] <= pair[1]), "nothing is lost: {cwnd:?}");
    assert!(*cwnd.last().unwrap() > 20.0, "{cwnd:?}");
    assert!(out.iter().zip(&cwnd).all(|(out, cwnd)| *out <= cwnd.ceil()), "{out:?}");
    assert!(out.iter().any(|out| *out >= 10.0));
}

#[test]
fn windows_of_simulated_hosts_are_looked_at_as_long_as_their_flows_last() {
    assert_follows(&alone("1000000").with("hosts", "simulated").with("transport.profile", "linux"));
}

#[test]
fn windows_of_linux_hosts_are_the_kernels() {
    if has_kernel() {
        assert_follows(&alone("1000000"));
    }
}

#[test]
fn only_the_flows_that_are_asked_for_are_looked_at_and_unknown_ones_are_refused() {
    let source = small(&[]);
    let table = windows(&source, &[3, 1], Span::from_us(20));
    let mut seen = column(&table, "flow");
    seen.sort_by(f64::total_cmp);
    seen.dedup();
    assert_eq!(seen, [1.0, 3.0]);
    let times = column(&table, "time_us");
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    let count = flows(&run(&source)).num_rows() as u32;
    let error = Prepared::new(&source).unwrap().congestion_windows(
        &mut |_| ControlFlow::Continue(()),
        &[count],
        Span::from_us(20),
    );
    let message = error.unwrap_err().to_string();
    assert_eq!(message, format!("there is no flow {count}: allowed is 0 to {}", count - 1));
}
