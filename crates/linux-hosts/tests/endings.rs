//! However a kernel ends, there is one error, and nothing is left behind.

#![allow(clippy::unwrap_used)]

mod world;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weft_linux_hosts::{Error, Guest, Machine, Setup};
use weft_units::{Rate, Span, Time};
use world::{Fabric, World, flow, kernel};

fn fabric() -> Fabric {
    Fabric::new(2, Rate::from_gbps(1), Span::from_us(5))
}

fn setup(image: PathBuf) -> Setup {
    fabric().setup(image, "cubic", 1)
}

/// Processes of a group that still are something.
fn alive(group: u32) -> Vec<u32> {
    let of_group = |entry: fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // After the name, which may contain anything: state, parent, group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, found) = (fields.next()?, fields.nth(1)?);
        (found == group.to_string() && state != "Z")
            .then(|| entry.file_name().to_string_lossy().parse().ok())?
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(of_group).collect()
}

fn assert_gone(group: u32) {
    let began = Instant::now();
    while !alive(group).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "still there: {:?}", alive(group));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A machine in the midst of a flow that will not end soon.
fn busy_world(setup: &Setup) -> World<Machine> {
    let mut world = World::start(fabric(), setup).unwrap();
    world.guest.start_flow(&flow(0, 0, 1, 1 << 40, "cubic"), Time::ZERO).unwrap();
    for _ in 0..200 {
        world.step(Time::ZERO + Span::from_s(1)).unwrap();
    }
    assert!(world.packets > 100);
    world
}

fn first_error(world: &mut World<Machine>) -> Error {
    (0..100_000).find_map(|_| world.step(Time::ZERO + Span::from_s(1_000)).err()).unwrap()
}

#[test]
fn a_machine_that_is_dropped_takes_its_processes_with_it() {
    let Some(image) = kernel() else { return };
    let world = busy_world(&setup(image));
    let group = world.guest.process().unwrap();
    assert!(alive(group).len() >= 2, "the kernel and its agent");
    drop(world);
    assert_gone(group);
}

#[test]
fn a_kernel_that_is_killed_gives_one_error_that_says_so() {
    let Some(image) = kernel() else { return };
    let logs = tempfile::tempdir().unwrap();
    let log = logs.path().join("kernel.log");
    let mut world = busy_world(&Setup { log: Some(log.clone()), ..setup(image) });
    let group = world.guest.process().unwrap();
    kill_process(Pid::from_raw(group.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let error = first_error(&mut world);
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("signal: 9") && message.contains(&log.display().to_string()), "{message}");
    assert!(fs::read_to_string(log).unwrap().contains("Run /init"), "the log was kept");
    assert!(matches!(world.step(Time::NEVER), Err(Error::Gone)), "and then it is gone");
    assert_gone(group);
}

#[test]
fn a_kernel_that_panics_says_why() {
    let Some(image) = kernel() else { return };
    // Too little memory: it panics while it boots, or the agent does not start.
    let error = Machine::start(&Setup { memory_mib: 9, ..setup(image) }).unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    println!("{error}");
    assert!(error.to_string().contains("the log ends with"), "{error}");
}

#[test]
fn a_kernel_that_does_not_answer_is_ended_after_a_while() {
    let Some(image) = kernel() else { return };
    let mut world = busy_world(&Setup { patience: Duration::from_secs(5), ..setup(image) });
    let group = world.guest.process().unwrap();
    kill_process(Pid::from_raw(group.cast_signed()).unwrap(), Signal::STOP).unwrap();
    let error = first_error(&mut world);
    assert!(matches!(error, Error::Hangs { seconds: 5, .. }), "{error}");
    assert_gone(group);
}

/// Not a test of its own: the program that the next one kills.
#[test]
#[ignore = "started by the next test"]
fn program_to_be_killed() {
    let Some(image) = kernel() else { return };
    let mut world = busy_world(&setup(image));
    println!("group {}", world.guest.process().unwrap());
    loop {
        world.step(Time::NEVER).unwrap();
    }
}

#[test]
fn a_program_that_is_killed_takes_its_kernels_with_it() {
    use std::io::BufRead;
    if kernel().is_none() {
        return;
    }
    let mut program = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program_to_be_killed", "--ignored", "--nocapture"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(program.stdout.take().unwrap()).lines();
    let group =
        lines.map_while(Result::ok).find_map(|line| line.split_once("group ")?.1.parse().ok()).unwrap();
    assert!(!alive(group).is_empty());
    program.kill().unwrap();
    program.wait().unwrap();
    assert_gone(group);
}

#[test]
fn what_is_no_kernel_is_told_as_such() {
    let error = Machine::start(&setup("/nowhere/linux".into())).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/linux does not start"), "{error}");
    let error =
        Machine::start(&Setup { patience: Duration::from_secs(5), ..setup("/bin/true".into()) }).unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    let none = Machine::start(&Setup { hosts: vec![], ..setup("/bin/true".into()) }).unwrap_err();
    assert!(matches!(none, Error::Hosts { found: 0 }), "{none}");
}

#[test]
fn what_a_host_cannot_do_is_told_in_the_kernels_words() {
    let Some(image) = kernel() else { return };
    let mut wrong = setup(image);
    wrong.hosts[1].settings.push(("net/ipv4/tcp_nonsense".into(), "1".into()));
    let error = Machine::start(&wrong).unwrap_err().to_string();
    assert!(error.contains("/proc/sys/net/ipv4/tcp_nonsense: No such file or directory"), "{error}");
}

#[test]
fn what_cannot_be_delivered_is_refused_and_nothing_else_happens() {
    let Some(image) = kernel() else { return };
    let mut machine = Machine::start(&setup(image)).unwrap();
    machine.advance(Time::ZERO + Span::from_us(10), &mut Vec::new()).unwrap();
    let later = Time::ZERO + Span::from_us(20);
    assert!(matches!(machine.deliver(2, &[0; 40], later), Err(Error::Undeliverable { .. })), "no such host");
    assert!(matches!(machine.deliver(0, &[0; 1_501], later), Err(Error::Undeliverable { .. })), "too long");
    assert!(matches!(machine.deliver(0, &[], later), Err(Error::Undeliverable { .. })), "empty");
    assert!(matches!(machine.deliver(0, &[0; 40], Time::ZERO), Err(Error::Undeliverable { .. })), "too late");
    machine.deliver(0, &[0; 40], later).unwrap();
    machine.advance(later + later.since(Time::ZERO), &mut Vec::new()).unwrap();
}
