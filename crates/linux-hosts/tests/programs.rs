//! Programs of this machine are traffic: they see simulated time and their host's network, and
//! change nothing outside.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weft_linux_hosts::{Error, Program, Report, Status, Stream};
use weft_units::{Rate, Span, Time};
use world::{Fabric, World, flow, kernel};

/// Outcome of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Outcome {
    output: String,
    errors: String,
    /// When each part of its output was written.
    written: Vec<Time>,
    ended: Option<(Time, Status, u64)>,
}

impl Outcome {
    fn status(&self) -> &Status {
        &self.ended.as_ref().unwrap().1
    }
}

fn fabric() -> Fabric {
    Fabric::new(2, Rate::from_gbps(1), Span::from_us(10))
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

fn python(id: u64, host: usize, script: &str) -> Program {
    let words = ["/usr/bin/python3", "-I", "-S", "-c", script].map(str::to_owned).to_vec();
    Program { words, ..Program::new(id, host, "python3").unwrap() }
}

fn shell(id: u64, script: &str) -> Program {
    let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    Program { words, ..Program::new(id, 0, "sh").unwrap() }
}

/// Runs programs, each from its instant, until all have ended; also what the hosts sent.
fn run_with(
    world: &mut World<weft_linux_hosts::Machine>,
    programs: &[(Program, Time)],
) -> Result<BTreeMap<u64, Outcome>, Error> {
    for (program, at) in programs {
        world.guest.start_program(program, *at)?;
    }
    let mut outcomes: BTreeMap<u64, Outcome> =
        programs.iter().map(|(program, _)| (program.id, Outcome::default())).collect();
    let mut rounds = 0;
    while outcomes.values().any(|outcome| outcome.ended.is_none()) {
        rounds += 1;
        assert!(rounds < 100_000, "no end within 10 s of simulated time: {outcomes:?}");
        world.run_for(Span::from_us(100))?;
        for (at, report) in world.guest.reports() {
            match report {
                Report::Output { program, stream, bytes } => {
                    let outcome = outcomes.get_mut(&program).unwrap();
                    let text =
                        if stream == Stream::Output { &mut outcome.output } else { &mut outcome.errors };
                    text.push_str(&String::from_utf8_lossy(&bytes));
                    outcome.written.push(at);
                }
                Report::Ended { program, status, left_out_bytes } => {
                    outcomes.get_mut(&program).unwrap().ended = Some((at, status, left_out_bytes));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    Ok(outcomes)
}

type Trace = Vec<(u64, usize, Vec<u8>)>;

fn run(image: &Path, programs: &[(Program, Time)]) -> (BTreeMap<u64, Outcome>, Trace) {
    let mut world = World::start(fabric(), &fabric().setup(image.to_owned(), "cubic", 1)).unwrap();
    let outcomes = run_with(&mut world, programs).unwrap();
    (outcomes, world.trace)
}

/// Runs one program.
fn run_one(image: &Path, program: Program) -> Outcome {
    run(image, &[(program, at_us(5))]).0.into_values().next().unwrap()
}

const SERVER: &str = "
import socket, time
s = socket.create_server(('', 7000))
c, peer = s.accept()
n = 0
while part := c.recv(65536):
    n += len(part)
print(peer[0], n, time.monotonic_ns())
";

const CLIENT: &str = "
import os, socket, time
t = time.monotonic_ns()
c = socket.create_connection(('10.0.0.2', 7000))
print(time.monotonic_ns() - t, os.urandom(4).hex(), {1, 2, 'x', 'y'}, flush=True)
c.sendall(bytes(1_000_000))
c.close()
time.sleep(0.25)
print(time.monotonic_ns() - t)
";

#[test]
fn two_programs_talk_over_the_fabric_and_each_run_of_them_is_the_same() {
    let Some(image) = kernel() else { return };
    let programs = [(python(0, 1, SERVER), at_us(0)), (python(1, 0, CLIENT), at_us(1_000))];
    let (outcomes, trace) = run(&image, &programs);
    let (server, client) = (&outcomes[&0], &outcomes[&1]);
    assert!(server.status().is_success() && client.status().is_success(), "{outcomes:?}");
    assert!(server.output.starts_with("10.0.0.1 1000000 "), "{}", server.output);

    let lines: Vec<_> = client.output.lines().collect();
    let connected: u64 = lines[0].split(' ').next().unwrap().parse().unwrap();
    let card = fabric().card();
    let round_trip = (card.service(60) + fabric().delay) * 4;
    // A look at the clock takes a nanosecond, and a system call that fails a microsecond.
    let late = connected.checked_sub(round_trip.as_ps() / 1_000).unwrap();
    assert!(late < 100_000, "a handshake of {connected} ns, by hand {} us", round_trip.as_us());
    let slept: u64 = lines[1].parse().unwrap();
    assert!((250_000_000..260_000_000).contains(&slept), "{slept} ns of simulated time");
    assert!(
        client.written[0] < client.written[1]
            && client.written[1].since(client.written[0]) > Span::from_ms(249)
    );
    assert!(trace.len() > 600, "{} packets for a megabyte", trace.len());

    let (again, trace_again) = run(&image, &programs);
    assert_eq!(again, outcomes);
    assert!(trace_again == trace, "the packets of programs differ from run to run");
}

#[test]
fn how_a_program_ends_is_told() {
    let Some(image) = kernel() else { return };
    let command = |id, command: &str| (Program::new(id, 0, command).unwrap(), at_us(5));
    let nowhere = Program { directory: "/no/such".into(), ..Program::new(5, 0, "true").unwrap() };
    let (outcomes, _) = run(
        &image,
        &[
            command(0, "/bin/true"),
            (shell(1, "echo out; echo err >&2; exit 3"), at_us(5)),
            (shell(2, "kill -ABRT $$"), at_us(5)),
            command(3, "no-such-program -x"),
            command(4, "/etc/passwd"),
            (nowhere, at_us(5)),
        ],
    );
    let status = |id: u64| outcomes[&id].status().clone();
    assert_eq!(status(0), Status::Exited(0));
    assert_eq!(status(1), Status::Exited(3));
    assert_eq!((outcomes[&1].output.as_str(), outcomes[&1].errors.as_str()), ("out\n", "err\n"));
    assert_eq!(status(2), Status::Killed(6));
    assert_eq!(status(3), Status::NotStarted("no-such-program: No such file or directory".into()));
    assert_eq!(status(4), Status::NotStarted("/etc/passwd: Permission denied".into()));
    assert_eq!(status(5), Status::NotStarted("/no/such: No such file or directory".into()));
}

#[test]
fn a_signal_ends_a_program_with_all_that_it_started() {
    let Some(image) = kernel() else { return };
    let mut world = World::start(fabric(), &fabric().setup(image, "cubic", 1)).unwrap();
    world.guest.signal_program(0, 15, at_us(70_000)).unwrap();
    let sleeper = shell(0, "sleep 100 & echo started; wait");
    let outcomes = run_with(&mut world, &[(sleeper, at_us(5))]).unwrap();
    let (at, status, _) = outcomes[&0].ended.clone().unwrap();
    assert_eq!((status, outcomes[&0].output.as_str()), (Status::Killed(15), "started\n"));
    assert!(at >= at_us(70_000) && at < at_us(70_010), "it ends when the signal comes: {} us", at.as_us());
    let left = run_with(&mut world, &[(shell(1, "grep -l sleep /proc/[0-9]*/comm"), at_us(80_000))]).unwrap();
    assert_eq!(left[&1].status(), &Status::Exited(1), "nothing of it is left: {}", left[&1].output);
}

#[test]
fn nothing_outside_can_be_written_and_what_is_inside_is_the_hosts_own() {
    let Some(image) = kernel() else { return };
    // A host has directories of its own for temporary files, and the checkout may be in one: then
    // it would see nothing of this one.
    let target = env!("CARGO_TARGET_TMPDIR");
    let is_own = target.starts_with("/tmp/") || target.starts_with("/var/tmp/");
    let place = if is_own { std::env::home_dir().unwrap() } else { target.into() };
    let folder = tempfile::tempdir_in(place).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "before").unwrap();
    let script = format!(
        "cat {file}; echo; echo x > {file}; rm {file}; mv {file} {file}2; ln {file} {file}3; chmod 777 {file}; touch {folder}/new;
         mount -o remount,rw /; mount -t hostfs x /tmp; echo private > /tmp/mine; ls /tmp; ls /sys; hostname",
        file = file.display(),
        folder = folder.path().display()
    );
    let outcome = run_one(&image, shell(0, &script));
    assert_eq!(outcome.output, "before\nmine\nhost0\n", "{}", outcome.errors);
    assert!(outcome.errors.matches("Read-only file system").count() >= 5, "{}", outcome.errors);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(!Path::new("/tmp/mine").exists());
}

#[test]
fn a_host_has_its_own_addresses_and_no_others() {
    let Some(image) = kernel() else { return };
    let script = "
import socket
print(sorted(name for _, name in socket.if_nameindex()))
s = socket.create_server(('127.0.0.1', 7000))
socket.create_connection(('127.0.0.1', 7000)).sendall(b'by loopback')
print(s.accept()[0].recv(100).decode())
";
    let outcome = run_one(&image, python(0, 1, script));
    assert_eq!(outcome.output, "['lo', 'weft1']\nby loopback\n", "{}", outcome.errors);
}

#[test]
fn output_beyond_the_limit_is_counted_and_not_kept() {
    let Some(image) = kernel() else { return };
    let program = Program { output_limit_bytes: 5_000, ..shell(0, "head -c 300000 /dev/zero | tr '\\0' x") };
    let outcome = run_one(&image, program);
    assert_eq!((outcome.output.len(), outcome.ended.unwrap().2), (5_000, 295_000));
}

#[test]
fn programs_and_flows_share_a_host() {
    let Some(image) = kernel() else { return };
    let mut world = World::start(fabric(), &fabric().setup(image, "cubic", 1)).unwrap();
    let watcher =
        shell(0, "sleep 0.001; ss -Htn state established | wc -l; cat /proc/net/dev | grep -c weft0");
    world.guest.start_program(&watcher, at_us(0)).unwrap();
    world.run_flows(&[(flow(0, 0, 1, 1_000_000, "cubic"), Time::ZERO)]).unwrap();
    let output = world.others.iter().find_map(|(_, report)| match report {
        Report::Output { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    assert_eq!(output.as_deref(), Some("1\n"), "{:?}", world.others);
}

#[test]
fn two_programs_have_no_number_in_common() {
    let Some(image) = kernel() else { return };
    let mut world = World::start(fabric(), &fabric().setup(image, "cubic", 1)).unwrap();
    world.guest.start_program(&shell(3, "true"), at_us(1)).unwrap();
    assert!(matches!(
        world.guest.start_program(&shell(3, "true"), at_us(2)),
        Err(Error::ProgramTwice { id: 3 })
    ));
    let nobody = Program { host: 2, ..shell(4, "true") };
    assert!(world.guest.start_program(&nobody, at_us(2)).is_err());
}

#[test]
fn iperf3_runs_where_it_is_installed() {
    let Some(image) = kernel() else { return };
    if !["/usr/bin/iperf3", "/usr/local/bin/iperf3"].iter().any(|path| Path::new(path).exists()) {
        return eprintln!("skipped: there is no iperf3");
    }
    let server = Program::new(0, 1, "iperf3 -s -1").unwrap();
    let client = Program::new(1, 0, "iperf3 -c 10.0.0.2 -n 2M -f m").unwrap();
    let (outcomes, _) = run(&image, &[(server, at_us(0)), (client, at_us(1_000))]);
    assert!(outcomes.values().all(|outcome| outcome.status().is_success()), "{outcomes:?}");
    assert!(outcomes[&1].output.contains("Mbits/sec"), "{}", outcomes[&1].output);
}
