//! Tests that equal setups give equal packets at equal instants, whatever the machine does
//! meanwhile.

#![allow(clippy::unwrap_used)]

mod world;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use weft_linux_hosts::{Flow, Setup};
use weft_units::{Rate, Span, Time};
use world::{Fabric, World, flow, kernel};

type Trace = Vec<(u64, usize, Vec<u8>)>;

fn fabric() -> Fabric {
    Fabric {
        limit_bytes: 60_000,
        mark_from_bytes: 30_000,
        ..Fabric::new(6, Rate::from_gbps(1), Span::from_us(10))
    }
}

/// Flows of all hosts to all, some at the same instant, with losses and marks.
fn flows() -> Vec<(Flow, Time)> {
    let pairs = (0..6).flat_map(|from| (0..6).map(move |to| (from, to))).filter(|(from, to)| from != to);
    pairs
        .enumerate()
        .map(|(id, (from, to))| {
            let control = if id % 3 == 0 { "cubic" } else { "dctcp" };
            let at = Time::ZERO + Span::from_us(100) * (id as u64 / 4);
            (flow(id as u64, from, to, 10_000 + 7_000 * id as u64, control), at)
        })
        .collect()
}

fn run(setup: &Setup) -> Trace {
    let mut world = World::start(fabric(), setup).unwrap();
    world.run_flows(&flows()).unwrap();
    assert!(world.drops > 0 && world.marks > 0, "the scenario has losses and marks");
    world.trace
}

fn setup(image: &Path, seed: u64) -> Setup {
    fabric().setup(image.to_owned(), "dctcp", seed)
}

#[test]
fn repetitions_are_equal_byte_by_byte_even_on_a_busy_machine_and_beside_another_kernel() {
    let Some(image) = kernel() else { return };
    let alone = run(&setup(&image, 7));
    assert_eq!(run(&setup(&image, 7)), alone);

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, std::num::NonZero::get) {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let beside = scope.spawn(|| run(&setup(&image, 8)));
        let busy = run(&setup(&image, 7));
        let beside = beside.join().unwrap();
        done.store(true, Ordering::Relaxed);
        assert!(busy == alone, "a busy machine changes packets");
        assert!(run(&setup(&image, 8)) == beside, "another kernel changes packets");
    });
}

#[test]
fn a_seed_changes_ports_and_sequence_numbers() {
    let Some(image) = kernel() else { return };
    let first = |seed| {
        let mut trace = run(&setup(&image, seed));
        trace.truncate(1);
        trace.remove(0)
    };
    let ((at, host, one), (at_again, host_again, other)) = (first(7), first(8));
    assert_eq!(
        (at, host, one.len()),
        (at_again, host_again, other.len()),
        "the first SYN leaves when it did"
    );
    assert_ne!(one[20..22], other[20..22], "the sender's port");
    assert_ne!(one[24..28], other[24..28], "the sequence number");
    assert_eq!(
        (&one[12..20], &one[22..24]),
        (&other[12..20], &other[22..24]),
        "addresses, the receiver's port"
    );
}

#[test]
fn how_long_the_steps_are_changes_nothing() {
    let Some(image) = kernel() else { return };
    let long = run(&setup(&image, 7));
    let mut setup = setup(&image, 7);
    for host in &mut setup.hosts {
        host.card.lookahead = Span::from_us(3);
    }
    assert!(run(&setup) == long, "a world that promises less gets other packets");
}
