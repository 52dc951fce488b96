//! The two clocks of the machine that a run is measured by. No result depends on them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// CPU time of other threads.
#[derive(Debug, Default)]
pub struct OtherThreads {
    cpu_ns: AtomicU64,
}

/// A stopwatch for CPU time of this thread and for wall-clock time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    cpu_s: f64,
    wall: Instant,
}

impl OtherThreads {
    /// Works on this thread, and adds the CPU time that it takes.
    pub fn measure(&self, work: &mut dyn FnMut()) {
        let watch = Stopwatch::start();
        work();
        self.cpu_ns.fetch_add((watch.cpu_s() * 1e9) as u64, Ordering::Relaxed);
    }

    /// Seconds of CPU time so far.
    pub fn cpu_s(&self) -> f64 {
        self.cpu_ns.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self { cpu_s: thread_cpu_s(), wall: Instant::now() }
    }

    /// Seconds of CPU time that this thread has taken since. Only of use on the thread that started
    /// it.
    pub fn cpu_s(&self) -> f64 {
        (thread_cpu_s() - self.cpu_s).max(0.0)
    }

    /// Seconds since on the wall clock.
    pub fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

#[cfg(unix)]
fn thread_cpu_s() -> f64 {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Nobody knows.
#[cfg(not(unix))]
const fn thread_cpu_s() -> f64 {
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_takes_wall_time_and_no_cpu_time() {
        let watch = Stopwatch::start();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(watch.wall_s() >= 0.05 && watch.cpu_s() < 0.04, "{} {}", watch.wall_s(), watch.cpu_s());
    }

    #[test]
    fn what_another_thread_takes_is_counted() {
        let others = OtherThreads::default();
        let busy = || {
            let watch = Stopwatch::start();
            while watch.cpu_s() < 0.05 {}
        };
        std::thread::scope(|scope| {
            scope.spawn(|| others.measure(&mut { busy }));
        });
        assert!(others.cpu_s() >= 0.05, "{}", others.cpu_s());
    }
}
