//! A kernel that says anything at all gives one error. The kernels here are small scripts, so that
//! these tests run everywhere.

#![allow(clippy::unwrap_used)]

mod world;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weft_linux_hosts::{Error, Fault, Guest, Machine, Setup};
use weft_units::{Rate, Span, Time};
use world::Fabric;

const HELLO: &str = r"\001\0\0\0\0\0\0\0\002\0\0\0\0\0\0\0";
const FOREVER: &str = r"\002\0\0\0\0\0\0\0\377\377\377\377\377\377\377\177";

/// Held while a script is written and started: a process that is started meanwhile would have it
/// open for writing, and what is written cannot be started.
static STARTING: Mutex<()> = Mutex::new(());

/// Error of a start if the kernel is the shell script `body`; standard input is its link, as for
/// any kernel.
fn start(body: &str) -> Error {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("linux");
    let alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    fs::write(&image, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&image, fs::Permissions::from_mode(0o755)).unwrap();
    let fabric = Fabric::new(2, Rate::from_gbps(1), Span::from_us(5));
    let setup = Setup { patience: Duration::from_secs(5), ..fabric.setup(image, "cubic", 1) };
    let mut machine = match Machine::start(&setup) {
        Err(error) => return error,
        Ok(machine) => machine,
    };
    drop(alone);
    machine.advance(Time::NEVER, &mut Vec::new()).unwrap_err()
}

fn fault(body: &str) -> Fault {
    match start(body) {
        Error::Broken { fault, .. } => fault,
        other => panic!("{other}"),
    }
}

#[test]
fn noise_is_no_kernel() {
    assert!(matches!(start("head -c 100000 /dev/urandom >&0"), Error::Broken { .. } | Error::Ended { .. }));
    assert!(matches!(
        start("head -c 100000 /dev/zero >&0"),
        Error::Broken { fault: Fault::MessageKind(0), .. }
    ));
    let noise_later = format!("printf '{HELLO}{FOREVER}' >&0; head -c 100000 /dev/urandom >&0");
    assert!(matches!(start(&noise_later), Error::Broken { .. } | Error::Ended { .. }));
}

#[test]
fn a_kernel_of_another_version_is_told_as_such() {
    assert_eq!(fault(r"printf '\001\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0' >&0; sleep 9"), Fault::Version(1));
    assert_eq!(fault(&format!("printf '{FOREVER}' >&0; sleep 9")), Fault::MessageOrder);
}

#[test]
fn a_message_longer_than_any_is_not_read() {
    assert_eq!(
        fault(r"printf '\001\0\0\0\0\0\0\177\001\0\0\0\0\0\0\0' >&0; sleep 9"),
        Fault::MessageLength(0x7f00_0000)
    );
}

#[test]
fn a_kernel_that_waits_without_being_ready_is_told_as_such() {
    let ready_for_nothing = format!(
        "printf '{HELLO}{FOREVER}' >&0; head -c 100 <&0 > /dev/null; sleep 0.2; printf '{FOREVER}' >&0; sleep 9"
    );
    assert_eq!(fault(&ready_for_nothing), Fault::NotReady);
}

#[test]
fn a_kernel_that_talks_for_ever_is_stopped() {
    // Messages without records, one after the other, and never a wait.
    let talk =
        format!(r"printf '{HELLO}' >&0; while :; do printf '\003\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'; done >&0");
    assert!(matches!(start(&talk), Error::Hangs { .. }));
}

#[test]
fn a_kernel_that_is_silent_is_stopped_and_its_log_is_shown() {
    let error = start("echo out of ideas; sleep 100").to_string();
    assert!(error.contains("did not answer within 5 s") && error.contains("out of ideas"), "{error}");
}
