//! Cost of hosts. Not a test of a bound: `cargo test --profile quick -p weft-linux-hosts --test
//! speed -- --ignored --nocapture` prints it.

#![allow(clippy::unwrap_used)]

mod world;

use std::fs;
use std::time::Instant;

use weft_units::{Rate, Span, Time};
use world::{Fabric, World, flow, kernel};

/// CPU time in ns that a task took so far, by the system's scheduler.
fn taken(path: &str) -> u64 {
    fs::read_to_string(path).unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

/// A kernel and the processes of its guests, which are its children.
fn processes(kernel: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{kernel}/task/{kernel}/children")).unwrap();
    children.split_whitespace().map(str::to_owned).chain([kernel.to_string()]).collect()
}

/// Their CPU time in ns.
fn taken_by_kernel(kernel: u32) -> u64 {
    processes(kernel).iter().map(|pid| taken(&format!("/proc/{pid}/schedstat"))).sum()
}

/// Their ticks of CPU time in code of their own, and in this machine's kernel.
fn ticks_of_kernel(kernel: u32) -> [u64; 2] {
    let ticks = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // The name of the process is in brackets and may have any signs.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        [11, 12].map(|field: usize| fields[field].parse::<u64>().unwrap())
    };
    processes(kernel).iter().map(ticks).fold([0; 2], |sum, more| [sum[0] + more[0], sum[1] + more[1]])
}

fn resident_kib(kernel: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{kernel}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim().to_owned()
}

fn measure(name: &str, fabric: Fabric, control: &str, pairs: &[(usize, usize)], bytes: u64) {
    let Some(image) = kernel() else { return };
    let began = Instant::now();
    let mut world = World::start(fabric, &fabric.setup(image, control, 1)).unwrap();
    let kernel = world.guest.process().unwrap();
    let (boot, boot_cpu) = (began.elapsed(), taken_by_kernel(kernel));
    let (memory, boot_ticks) = (resident_kib(kernel), ticks_of_kernel(kernel));

    let own = taken("/proc/thread-self/schedstat");
    let flows: Vec<_> = pairs
        .iter()
        .zip(0..)
        .map(|((from, to), id)| (flow(id, *from, *to, bytes, control), Time::ZERO))
        .collect();
    world.run_flows(&flows).unwrap();
    let own = taken("/proc/thread-self/schedstat") - own;
    let theirs = taken_by_kernel(kernel) - boot_cpu;
    let [own_code, machine] = [0, 1].map(|part| (ticks_of_kernel(kernel)[part] - boot_ticks[part]) as f64);
    let (packets, steps) = (world.packets as f64, world.guest.steps() as f64);
    println!(
        "{name}: boot {:.0} ms ({:.0} ms CPU), {memory}, then {}; {packets} packets, {:.0} a CPU-second; \
         a packet takes {:.1} us of the kernel, {:.0} % of them in this machine's, {:.1} us of the world, {:.2} steps",
        boot.as_secs_f64() * 1e3,
        boot_cpu as f64 / 1e6,
        resident_kib(kernel),
        packets / ((own + theirs) as f64 / 1e9),
        theirs as f64 / 1e3 / packets,
        100.0 * machine / (own_code + machine),
        own as f64 / 1e3 / packets,
        steps / packets,
    );
}

#[test]
#[ignore = "measures"]
fn what_hosts_cost() {
    let slow = Fabric::new(2, Rate::from_bps(100_000_000), Span::from_us(50));
    measure("2 hosts, 100 Mbit/s, 50 us, cubic, 10 MB", slow, "cubic", &[(0, 1)], 10_000_000);
    let fast = Fabric { mark_from_bytes: 30_000, ..Fabric::new(8, Rate::from_gbps(1), Span::from_us(5)) };
    let all: Vec<_> = (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    measure("8 hosts, 1 Gbit/s, 5 us, DCTCP, 56 x 500 KB", fast, "dctcp", &all, 500_000);
    let many = Fabric { hosts: 128, rate: Rate::from_gbps(10), delay: Span::from_us(1), ..fast };
    let ring: Vec<_> = (0..128).map(|h| (h, (h + 1) % 128)).collect();
    measure("128 hosts, 10 Gbit/s, 1 us, DCTCP, 128 x 200 KB", many, "dctcp", &ring, 200_000);
}
