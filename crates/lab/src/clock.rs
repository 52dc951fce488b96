//! The two clocks of the machine that a run is measured by. No result depends on them.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// A stopwatch for CPU time of this thread and for wall-clock time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    cpu_s: f64,
    wall: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self { cpu_s: thread_cpu_s(), wall: Instant::now() }
    }

    /// Seconds of CPU time that this thread has taken since. Only of use on the thread that started it.
    pub fn cpu_s(&self) -> f64 {
        (thread_cpu_s() - self.cpu_s).max(0.0)
    }

    /// Seconds since on the wall clock.
    pub fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
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
}
