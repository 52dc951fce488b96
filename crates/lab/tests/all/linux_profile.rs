//! Weft's TCP with `profile = "linux"` beside the kernel's: the same flows, the same fabric,
//! completion times by size.
//!
//! `cargo test -p weft-lab --test all linux_profile -- --ignored --nocapture` prints the tables of
//! `docs/linux-tcp.md`. Each seed takes some minutes, nearly all of it the kernel's; `WEFT_KEEP`
//! names a folder in which runs are kept and found again, so that one may go on later with more
//! seeds, or with other simulated hosts. For runs of the kernel a folder is good as long as the
//! fabric is the same.
//!
//! `log-uniform.csv` beside this file has sizes that are spread evenly over their logarithm
//! (`WEFT_BASE=traffic.workload=...`).
//!
//! `WEFT_SEEDS`, `WEFT_CONTROLS`, `WEFT_BUFFERS`, `WEFT_BALANCERS` and `WEFT_LOADS` say which runs,
//! each a list with commas (seeds: `1-20`, too); `WEFT_BASE` changes the spec of all
//! (`traffic.flows=80`), `WEFT_SET` that of simulated hosts alone (`transport.hystart=false;...`),
//! `WEFT_AGAINST` that of what they are compared with (`hosts=linux`; or another simulated one).
//! `WEFT_TWINS`: simulated hosts run so many times, each with cables of hosts that are 1 ns longer,
//! and the mean of these is taken, which leaves less of it to chance; with 0 the kernel's runs are
//! kept, and no more. `WEFT_KERNELS`: the same for the kernel's runs, of which there is one
//! otherwise. With `WEFT_POOLED` there is one row a control and queue, of all load balancers and
//! loads together. `WEFT_MOST_MS` leaves out flows that any run took longer for, and says how many:
//! those whose SYN was lost, which are a second late.

mod runs;
mod statistics;

use std::fmt::Write as _;

use weft_lab::{RESULTS_VERSION, SpecSource};

use runs::{COUNTED, Kept, Measured, measure, together};
use statistics::{Estimate, Sums, Verdict};

/// Sixteen hosts at 1 Gbit/s in four racks.
const SPEC: &str = "
[run]
seed = 1
time_limit = '20s'

[fabric]
kind = 'leaf-spine'
leaves = 4
spines = 4
hosts_per_leaf = 4
host_rate = '1Gbps'
fabric_rate = '1Gbps'
host_delay = '5us'
fabric_delay = '5us'

[traffic]
workload = 'web-search'
load = 0.5
flows = 80
";

/// The bins: from how many bytes on, and below how many.
const BINS: [(&str, f64, f64); 4] = [
    ("all", 0.0, f64::INFINITY),
    ("below 100 KB", 0.0, 1e5),
    ("to 1 MB", 1e5, 1e6),
    ("above", 1e6, f64::INFINITY),
];

/// Parts of a run, of as many flows each, in the order of their starts: what is taken for
/// independent of each other.
const BLOCKS: usize = 4;

fn env(name: &str, or: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| or.to_owned())
}

fn list(name: &str, or: &str) -> Vec<String> {
    env(name, or).split(',').map(str::to_owned).collect()
}

/// `1,2,7-9`.
fn seeds() -> Vec<u64> {
    let range = |text: &String| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        first.parse::<u64>().unwrap()..=last.parse().unwrap()
    };
    list("WEFT_SEEDS", "1,2,3").iter().flat_map(range).collect()
}

fn changed(changes: &str, source: SpecSource) -> SpecSource {
    changes.split(';').filter(|change| !change.is_empty()).fold(source, |source, change| {
        let (key, value) = change.split_once('=').unwrap();
        source.with(key, value)
    })
}

/// One row of the tables.
struct Case {
    control: String,
    buffer: String,
    scheme: String,
    load: String,
    /// By bin, seed and block.
    sums: [Vec<Sums>; BINS.len()],
    /// How many flows there are, and how many of them were left out, since one run or another took
    /// too long for them.
    flows: usize,
    left_out: usize,
    /// Counters of simulated hosts, and of the hosts with which they are compared.
    counted: [[f64; COUNTED.len()]; 2],
}

impl Case {
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for control in list("WEFT_CONTROLS", "cubic,dctcp") {
            for buffer in list("WEFT_BUFFERS", "375KB,30KB") {
                for scheme in list("WEFT_BALANCERS", "ecmp,letflow") {
                    for load in list("WEFT_LOADS", "0.3,0.7") {
                        let (control, buffer, scheme) = (control.clone(), buffer.clone(), scheme.clone());
                        let (sums, counted) = (<[Vec<Sums>; BINS.len()]>::default(), Default::default());
                        let (flows, left_out) = (0, 0);
                        cases.push(Self { control, buffer, scheme, load, sums, flows, left_out, counted });
                    }
                }
            }
        }
        cases
    }

    fn name(&self, separator: &str) -> String {
        [&self.control[..], &self.buffer, &self.scheme, &self.load].join(separator)
    }

    fn changes(&self, seed: u64) -> String {
        let Self { control, buffer, scheme, load, .. } = self;
        let transport = if control == "dctcp" { "dctcp" } else { "tcp" };
        format!(
            "run.seed={seed};transport.name={transport};fabric.switch_queue.buffer={buffer};scheme.name={scheme};traffic.load={load}"
        )
    }

    /// Takes in another case with the same seeds.
    fn take_in(&mut self, other: &Self) {
        self.flows += other.flows;
        self.left_out += other.left_out;
        for (ours, theirs) in self.sums.iter_mut().zip(&other.sums) {
            for (sums, &more) in ours.iter_mut().zip(theirs) {
                *sums = sums.and(more);
            }
        }
        for (ours, theirs) in self.counted.iter_mut().flatten().zip(other.counted.iter().flatten()) {
            *ours += theirs;
        }
    }

    /// Takes in the runs of a seed, but for flows that one of them took longer for than `most_ms`.
    fn add(&mut self, simulated: &[Measured], against: &[Measured], most_ms: f64) {
        let is_out = |flow: usize| simulated.iter().chain(against).any(|run| run.fcts_ms[flow] > most_ms);
        let (ours, our_logarithms) = together(simulated);
        let (theirs, their_logarithms) = together(against);
        assert_eq!(ours.sizes, theirs.sizes, "the same flows");
        for (sums, (_, least, below)) in self.sums.iter_mut().zip(BINS) {
            let mut of_seed = [Sums::default(); BLOCKS];
            for (flow, &size) in ours.sizes.iter().enumerate() {
                if size >= least && size < below && !is_out(flow) {
                    let logarithm = our_logarithms[flow] - their_logarithms[flow];
                    let block = &mut of_seed[flow * BLOCKS / ours.sizes.len()];
                    block.add(ours.fcts_ms[flow], theirs.fcts_ms[flow], logarithm);
                }
            }
            sums.extend(of_seed);
        }
        self.flows += ours.sizes.len();
        self.left_out += (0..ours.sizes.len()).filter(|&flow| is_out(flow)).count();
        for (counted, of) in self.counted.iter_mut().zip([ours, theirs]) {
            for (sum, value) in counted.iter_mut().zip(of.sums) {
                *sum += value;
            }
        }
    }
}

/// Cases of one control and queue together, in their order.
fn pooled(cases: Vec<Case>) -> Vec<Case> {
    let mut found: Vec<Case> = Vec::new();
    for case in cases {
        match found.iter_mut().find(|known| (&known.control, &known.buffer) == (&case.control, &case.buffer))
        {
            Some(known) => known.take_in(&case),
            None => found.push(Case { scheme: "all".to_owned(), load: "all".to_owned(), ..case }),
        }
    }
    found
}

/// A table with a column a bin; `cell` makes one of the sums of its seeds.
fn print_table(title: &str, cases: &[Case], estimate: impl Fn(Sums) -> f64, show_means: bool) {
    let names: Vec<&str> = BINS.iter().map(|bin| bin.0).collect();
    println!("\n{title}\n\n| control | queue | scheme | load | {} |", names.join(" | "));
    println!("|{}", "---|".repeat(4 + BINS.len()));
    let mut verdicts = [[0; 3]; BINS.len()];
    for case in cases {
        let mut row = format!("| {} |", case.name(" | "));
        for (seeds, verdicts) in case.sums.iter().zip(&mut verdicts) {
            let (found, sum) = (Estimate::of(seeds, &estimate), Sums::of(seeds));
            if show_means {
                write!(row, " {:.2} / {:.2},", sum.ours / sum.flows, sum.theirs / sum.flows).unwrap();
            }
            let (percent, half) = found.percent();
            write!(row, " {percent:+.1} ± {half:.1} %, {} |", found.verdict().mark()).unwrap();
            verdicts[found.verdict() as usize] += 1;
        }
        println!("{row}");
    }
    for (name, verdicts) in names.iter().zip(verdicts) {
        let told = [Verdict::Within, Verdict::Beyond, Verdict::Open]
            .map(|verdict| format!("{} {}", verdicts[verdict as usize], verdict.mark()));
        println!("5 %, {name}: {}", told.join(", "));
    }
}

fn print_counts(cases: &[Case]) {
    println!("\nSums, simulated / other\n\n| control | queue | scheme | load | {} |", COUNTED.join(" | "));
    println!("|{}", "---|".repeat(4 + COUNTED.len()));
    for case in cases {
        let mut row = format!("| {} |", case.name(" | "));
        for (ours, theirs) in case.counted[0].iter().zip(case.counted[1]) {
            write!(row, " {ours:.0} / {theirs:.0} |").unwrap();
        }
        println!("{row}");
    }
}

#[test]
#[ignore = "a measurement, not a test"]
fn measures() {
    let base = env("WEFT_BASE", "");
    let set = env("WEFT_SET", "transport.profile=linux;fabric.host_queue.mark=never");
    let against = env("WEFT_AGAINST", "hosts=linux");
    let twins: u64 = env("WEFT_TWINS", "4").parse().unwrap();
    let kernels: u64 = env("WEFT_KERNELS", "1").parse().unwrap();
    let most_ms: f64 = env("WEFT_MOST_MS", "inf").parse().unwrap();
    let kernel = weft_linux_hosts::find().ok().map(|image| weft_linux_hosts::fingerprint(&image).unwrap());
    let kept = Kept(std::env::var_os("WEFT_KEEP").map(Into::into));
    let is_linux = ["hosts=linux", "hosts.kind=linux"].iter().any(|hosts| against.contains(hosts));
    let (seeds, mut cases) = (seeds(), Case::all());
    // A seed after the other: however far it comes, all cases have the same ones.
    for &seed in &seeds {
        for case in &mut cases {
            let changes = format!("{base};{}", case.changes(seed));
            let name = format!("{}-{seed}", case.name("-"));
            let run = |own: &str, twin: u64| {
                let cable = format!("fabric.host_delay={}ns", 5_000 + twin);
                measure(&changed(&format!("{changes};{cable};{own}"), SpecSource::from_text(SPEC)))
            };
            let simulated = |own: &str| -> Vec<Measured> {
                let of = |twin| (SPEC, &changes, own, twin, RESULTS_VERSION);
                (0..twins).map(|twin| kept.measured(&name, of(twin), || run(own, twin))).collect()
            };
            let theirs = if is_linux {
                let of = (SPEC, &changes, &against, &kernel);
                let kernel = |twin| match twin {
                    // Known by the name that it had when there was no other.
                    0 => kept.measured(&name, of, || run(&against, 0)),
                    _ => kept.measured(&name, (of, twin), || run(&against, twin)),
                };
                (0..kernels).map(kernel).collect()
            } else {
                simulated(&against)
            };
            let ours = simulated(&set);
            if twins > 0 {
                case.add(&ours, &theirs, most_ms);
            }
            eprintln!("seed {seed}: {}", case.name(" "));
        }
    }
    if std::env::var_os("WEFT_POOLED").is_some() {
        cases = pooled(cases);
    }
    if twins > 0 {
        let runs = if is_linux { kernels } else { twins };
        println!("seeds: {seeds:?}; runs of simulated hosts a seed: {twins}, of the others: {runs}");
        print_table(
            "Mean FCT in ms, simulated / other, and by how much they differ",
            &cases,
            Sums::of_means,
            true,
        );
        print_table("Ratio of single flows, geometric mean", &cases, Sums::of_flows, false);
        print_counts(&cases);
        if most_ms.is_finite() {
            let [left_out, flows] = [|case: &Case| case.left_out, |case: &Case| case.flows]
                .map(|count| cases.iter().map(count).sum::<usize>());
            println!("\nleft out, since a run took more than {most_ms} ms: {left_out} of {flows} flows");
        }
    }
}
