//! Runs the benchmark with 128 hosts for a given number of flows, with any key of its spec changed, and prints the
//! packet-hops: small and deterministic, for counting instructions. With `--schemes` it prints the names of all schemes.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::process::ExitCode;

use weft_lab::bench::bench_spec;
use weft_lab::{Cores, Prepared};

const HOSTS: u32 = 128;
const USAGE: &str = "usage: weft-hops FLOWS SCHEME [KEY=VALUE ...], as in: weft-hops 200 ecmp transport.name=tcp; or weft-hops --schemes";

fn main() -> ExitCode {
    if std::env::args().skip(1).eq(["--schemes"]) {
        for scheme in weft_balance::balancers() {
            println!("{}", scheme.name);
        }
        return ExitCode::SUCCESS;
    }
    match packet_hops() {
        Ok(hops) => {
            println!("{hops}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn packet_hops() -> Result<u64, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flows, scheme, changes @ ..] = arguments.as_slice() else { return Err(USAGE.to_owned()) };
    let flows: u32 = flows.parse().map_err(|_| format!("{flows:?} is not a number of flows\n{USAGE}"))?;
    let mut source = bench_spec(HOSTS, scheme, Some(flows), 1).map_err(|error| error.to_string())?;
    for change in changes {
        let (key, value) =
            change.split_once('=').ok_or_else(|| format!("{change:?} is no KEY=VALUE\n{USAGE}"))?;
        source = source.with(key, value);
    }
    let prepared = Prepared::new(&source).map_err(|error| error.to_string())?;
    let outcome = prepared
        .run(&mut |_| ControlFlow::Continue(()), None, Cores::UpTo(NonZeroUsize::MIN))
        .map_err(|error| error.to_string())?;
    Ok(outcome.summary.totals.packet_hops)
}
