//! The records of flows, taken in while the run goes on.
use std::io::{self, Read, Seek, SeekFrom, Write};

use weft_fabric::{Results, Simulation, Status};
use weft_traffic::Flow;
use weft_units::{Span, Time};

use crate::common::{Run, SMALL, fabric, flow, scheme_spec, transports};

/// More flows than two pages of records have, of one to seven segments, from everywhere to
/// everywhere.
fn many() -> Vec<Flow> {
    let pair = |index: u64| [(0, 2), (2, 1), (3, 0), (1, 3), (0, 1), (3, 2)][index as usize % 6];
    (0..2_500)
        .map(|index| {
            let (src, dst) = pair(index);
            Flow { background: index == 7, ..flow(3 * index, src, dst, 1 + index % 7 * 1_460) }
        })
        .collect()
}

fn assert_same(run: &Run<'_>, flows: &[Flow], what: &str) -> Results {
    let at_the_end = run.flows(flows);
    for events in [97, 2_000] {
        let meanwhile = Run { take_in_after: Some(events), ..*run }.flows(flows);
        assert_eq!(meanwhile.flows, at_the_end.flows, "{what}, every {events} events");
        assert_eq!(meanwhile.scheme, at_the_end.scheme, "{what}, every {events} events");
    }
    at_the_end
}

#[test]
fn records_are_the_same_whenever_they_are_taken_in_for_every_transport_and_with_losses() {
    let fabric = fabric(&format!("{SMALL}\n[switch_queue]\nbuffer = \"8KB\"\nmark = \"never\"\n"));
    let several =
        "[[transport]]\nname = 'tcp'\n[[transport]]\nname = 'expresspass'\n[[transport]]\nname = 'mptcp'";
    let alone = ["tcp", "dctcp", "mptcp", "expresspass", "maxpass"].map(|name| format!("name = '{name}'"));
    for transport in alone.iter().map(String::as_str).chain([several]) {
        let count = if transport == several { 3 } else { 1 };
        let mut flows = many();
        flows.iter_mut().enumerate().for_each(|(number, flow)| flow.transport = (number % count) as u8);
        let run = Run { time_limit: Span::from_ms(20), ..Run::new(&fabric, transport, "name = 'rps'") };
        let results = assert_same(&run, &flows, transport);
        assert!(
            results.flows.iter().any(|flow| flow.retransmissions.after_loss > 0)
                || transport.contains("pass")
        );
        assert_same(&Run { partitions: 2, ..run }, &flows, &format!("{transport} in partitions"));
    }
}

/// The first packets of some flows go a way that takes 50 ms, are sent again over another, and
/// reach a receiver that has forgotten their flows, when all flows of the first page are long over.
#[test]
fn what_reaches_a_receiver_after_its_page_was_written_counts() {
    let slow = "[[fault]]\nlink = 'leaf0>spine0'\nat = '90us'\nuntil = '200us'\ndelay = '50ms'\n";
    let fabric = fabric(&format!("{SMALL}{slow}"));
    // All others stay within the receiver's rack: each that ends lets it forget those that ended 1
    // ms before.
    let src = |index: u64| if (5..9).contains(&index) { 0 } else { 3 };
    let flows: Vec<Flow> = (0..3_000).map(|index| flow(20 * index, src(index), 2, 1_000)).collect();
    let dctcp = "name = 'dctcp'\nmin_rto = '1ms'\ninitial_rto = '1ms'";
    let results = assert_same(&Run::new(&fabric, dctcp, "name = 'rps'"), &flows, "late copies");
    let page = &results.flows[..1_024];
    let last = page.iter().map(|flow| flow.acknowledged.unwrap()).max().unwrap();
    assert!(last < Time::ZERO + Span::from_ms(45), "all are over before the first copy comes late: {last:?}");
    let late: u32 = page.iter().map(|flow| flow.receiver.duplicates).sum();
    assert!(late > 0, "copies came late");
}

/// A disk that is full from the first byte on.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Full {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

impl Seek for Full {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn a_full_spool_is_known_while_the_run_goes_on_and_the_error_comes_in_place_of_records() {
    let fabric = fabric(SMALL);
    let flows = many();
    let run = Run::new(&fabric, "name = 'dctcp'", "name = 'ecmp'");
    let (transport, scheme) = (transports(run.transport), scheme_spec(run.scheme));
    let mut simulation = Simulation::new(run.input(&flows, &transport, &scheme)).unwrap();
    simulation.spool_to(Box::new(Full));
    simulation.take_in_every(1);
    while !simulation.has_failed() {
        assert_eq!(simulation.advance(1_000), Status::Running, "it is known before the run is over");
    }
    let (results, mut records) = simulation.finish();
    assert!(results.flows.is_empty());
    assert_eq!(records.next().unwrap().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(records.next().is_none(), "nothing that looks like records follows");
}
