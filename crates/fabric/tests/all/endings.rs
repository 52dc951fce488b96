//! How flows and runs end: each end of a flow by itself, and a run for good.

use weft_balance::SchemeSpec;
use weft_fabric::{Ending, Simulation, SimulationInput, Status};
use weft_units::{Span, Time};

use crate::common::{Run, SMALL, fabric, flow, scheme_spec, transports};

const ECMP: &str = "name = 'ecmp'";

#[test]
fn a_run_that_is_over_stays_over_and_its_clock_stands() {
    let fabric = fabric(SMALL);
    let flows = [flow(0, 0, 2, 100_000_000)];
    let (transport, scheme): (_, SchemeSpec) = (transports("name = 'dctcp'"), scheme_spec(ECMP));
    let mut simulation = Simulation::new(SimulationInput {
        topology: &fabric.topology,
        faults: &fabric.faults,
        ideal_of: None,
        reroute_after: fabric.reroute_after,
        flows: &flows,
        application: None,
        dependencies: None,
        transport: &transport,
        scheme: &scheme,
        external_scheme: None,
        has_external_hosts: false,
        machine: None,
        capture: None,
        windows_of: None,
        external_hosts: None,
        seed: 1,
        time_limit: Span::from_ms(1),
        partitions: 1,
        threads: 1,
        share_from: weft_fabric::SHARE_FROM,
        balance_of: None,
        prefetch_from: weft_fabric::PREFETCH_FROM,
        around: None,
        memory: None,
        sample_every: None,
        observe_every: None,
        paths_of: None,
        phases: None,
        spans: &[],
        trace_flows: None,
    })
    .unwrap();
    while simulation.advance(1_000) == Status::Running {}
    for _ in 0..3 {
        assert_eq!(simulation.advance(1_000), Status::Finished(Ending::TimeLimit));
        assert_eq!(simulation.progress().now, Time::ZERO + Span::from_ms(1));
    }
    assert_eq!(simulation.into_results().end, Time::ZERO + Span::from_ms(1));
}

/// The last acknowledgement of a flow is lost, and its receiver has forgotten the flow when the
/// segment comes again.
#[test]
fn a_receiver_answers_a_flow_that_it_has_forgotten() {
    let cut = "[[fault]]\nlink = 'leaf1-spine0'\nat = '7500ns'\nuntil = '8ms'\ndown = true\n\
               [[fault]]\nlink = 'leaf1-spine1'\nat = '7500ns'\nuntil = '8ms'\ndown = true\n";
    let fabric = fabric(&format!("{SMALL}reroute_after = '100us'\n{cut}"));
    // The second flow ends in the same rack 3 ms later: then its receiver forgets the first one.
    let flows = [flow(0, 0, 2, 1_000), flow(3_000, 3, 2, 1_000)];
    let dctcp = "name = 'dctcp'\nmin_rto = '10ms'\ninitial_rto = '10ms'";
    let (results, ending) = Run::new(&fabric, dctcp, ECMP).ending(&flows);
    let first = &results.flows[0];
    assert_eq!(ending, Ending::AllDone);
    assert!(first.delivered.unwrap() < Time::ZERO + Span::from_us(8), "{:?}", first.delivered);
    assert!(first.acknowledged.unwrap() > Time::ZERO + Span::from_ms(10), "{:?}", first.acknowledged);
    assert_eq!((first.receiver.segments_received, first.receiver.duplicates), (2, 1));
    assert_eq!((first.delivered_bytes, first.sender.timeouts), (1_000, 1));
}

/// Two flows whose last acknowledgements arrive at one instant: the run does not end between the
/// two.
#[test]
fn everything_of_the_last_instant_happens() {
    let fabric = fabric(SMALL);
    // Within two racks: nothing is shared, and everything takes equally long.
    let flows = [flow(0, 0, 1, 1_000), flow(0, 2, 3, 1_000)];
    let results = Run::new(&fabric, "name = 'dctcp'", ECMP).flows(&flows);
    assert_eq!(results.flows[0].acknowledged, Some(results.end));
    assert_eq!(results.flows[1].acknowledged, Some(results.end));
    assert_eq!((results.packets.delivered, results.in_flight), (4, 0));
}
