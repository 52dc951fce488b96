//! Tables that memory does not hold are refused before they are made.
use weft_fabric::{InputError, Simulation, SimulationInput};

use crate::common::{Run, SMALL, fabric, flow, scheme_spec, transports};

/// Sets a run up with so much memory.
fn set_up(scheme: &str, memory: Option<u64>) -> Result<(), InputError> {
    let fabric = fabric(SMALL);
    let run = Run::new(&fabric, "name = 'dctcp'", scheme);
    let (flows, transport, scheme) = ([flow(0, 0, 2, 1_000)], transports(run.transport), scheme_spec(scheme));
    Simulation::new(SimulationInput { memory, ..run.input(&flows, &transport, &scheme) }).map(drop)
}

#[test]
fn a_load_balancer_whose_tables_need_more_memory_than_there_is_is_refused_with_what_it_needs() {
    for scheme in ["name = 'hermes'", "name = 'meet'"] {
        let Err(InputError::Memory { needed, hosts: 4, memory: 10 }) = set_up(scheme, Some(10)) else {
            panic!("{scheme} was not refused");
        };
        assert_eq!(set_up(scheme, Some(needed)), Ok(()), "{scheme} has just enough");
        assert!(set_up(scheme, Some(needed - 1)).is_err());
        assert_eq!(set_up(scheme, None), Ok(()), "nobody knows how much there is");
    }
    assert_eq!(set_up("name = 'ecmp'", Some(10)), Ok(()), "it keeps no tables at hosts");
}

#[test]
fn the_message_says_what_is_needed_and_what_there_is() {
    let error = InputError::Memory { needed: 151_300_000_000, hosts: 65_536, memory: 25_200_000_000 };
    assert_eq!(
        error.to_string(),
        "the load balancer keeps 151.3 GB of tables at 65536 hosts, and this machine has 25.2 GB of memory: fewer hosts or \
         racks need less"
    );
}
