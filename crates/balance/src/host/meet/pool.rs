//! The proxy's side: the latest report of each host of the rack, and the view that they make
//! together (MEET §3.2).

use std::sync::Arc;

use weft_units::{Span, Time};

use super::congestion::Tally;
use super::wire::{Entry, decode};

/// The latest reports of a rack.
#[derive(Debug, Clone)]
pub struct Pool {
    /// By place in the rack.
    reports: Box<[Report]>,
    /// How many paths there are.
    paths: usize,
    window: Span,
}

/// The latest report of one host.
#[derive(Debug, Clone, Default)]
struct Report {
    number: u32,
    at: Time,
    /// Contents of the report's packets; empty if there is none that counts.
    parts: Vec<Arc<[u32]>>,
}

/// Content of the reports on one path.
#[derive(Debug, Clone, Copy, Default)]
struct Pooled {
    tally: Tally,
    failed: bool,
}

impl Pool {
    /// For a rack of `members` hosts and this many paths, of which reports count for `window`.
    pub fn new(members: usize, paths: usize, window: Span) -> Self {
        Self { reports: vec![Report::default(); members].into(), paths, window }
    }

    /// A packet of a report with this number came from a host. It replaces what is of another
    /// number: only the latest report of a host counts, and packets of one host keep their order
    /// within the rack.
    pub fn receive(&mut self, member: usize, number: u32, now: Time, part: Arc<[u32]>) {
        let Some(report) = self.reports.get_mut(member) else { return };
        if report.number != number {
            report.parts.clear();
        }
        (report.number, report.at) = (number, now);
        report.parts.push(part);
    }

    /// The view: of each path with data, the congestion of all packets that were reported divided
    /// by their number (MEET Alg. 2). Reports older than the window are cleared. A path has failed
    /// if a host says so and none measured anything.
    pub fn view(&mut self, now: Time) -> Vec<Entry> {
        let mut pooled = vec![Pooled::default(); self.paths];
        for report in &mut self.reports {
            if now.since(report.at) > self.window {
                report.parts.clear();
            }
            for entry in report.parts.iter().flat_map(|part| decode(part)) {
                let Some(path) = pooled.get_mut(entry.path as usize) else { continue };
                if entry.has_failed() {
                    path.failed = true;
                } else {
                    path.tally.merge(Tally { total: f64::from(entry.value), packets: entry.packets });
                }
            }
        }
        (0..).zip(pooled).filter_map(|(path, pooled)| pooled.entry(path)).collect()
    }

    /// Bytes that it keeps when every host reports every path.
    pub fn state_bytes(&self) -> u64 {
        (self.reports.len() * (size_of::<Report>() + self.paths * super::wire::PATH_BYTES)) as u64
    }
}

impl Pooled {
    fn entry(self, path: u32) -> Option<Entry> {
        match self.tally.mean() {
            Some(value) => Some(Entry { path, value, packets: self.tally.packets }),
            None => self.failed.then(|| Entry::failed(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::host::meet::wire::encode;

    use super::*;

    const WINDOW: Span = Span::from_us(1_000);

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn pool() -> Pool {
        Pool::new(3, 8, WINDOW)
    }

    /// A host reports `(path, C_total, P_total)` in one packet.
    fn report(pool: &mut Pool, member: usize, number: u32, us: u64, paths: &[(u32, f32, u32)]) {
        let entries: Vec<_> =
            paths.iter().map(|&(path, value, packets)| Entry { path, value, packets }).collect();
        for part in encode(&entries) {
            pool.receive(member, number, at(us), part);
        }
    }

    fn view(pool: &mut Pool, us: u64) -> Vec<(u32, f32, u32)> {
        pool.view(at(us)).iter().map(|entry| (entry.path, entry.value, entry.packets)).collect()
    }

    #[test]
    fn two_hosts_and_three_paths_are_pooled_as_in_fig_3() {
        // Totals and packets of paths A, B and C at Host1 and Host2. A: (100 + 20) / (10 + 5) = 8.
        // B: only Host1 used it: 30 / 3. C: (0 + 500) / (4 + 1) = 100: the mean of all packets, not
        // of the hosts' means 0 and 500.
        let mut pool = pool();
        report(&mut pool, 0, 1, 0, &[(0, 100.0, 10), (1, 30.0, 3), (2, 0.0, 4)]);
        report(&mut pool, 1, 1, 0, &[(0, 20.0, 5), (2, 500.0, 1)]);
        assert_eq!(view(&mut pool, 10), [(0, 8.0, 15), (1, 10.0, 3), (2, 100.0, 5)]);
    }

    #[test]
    fn only_the_latest_report_of_a_host_counts() {
        let mut pool = pool();
        report(&mut pool, 0, 1, 0, &[(0, 100.0, 10), (1, 30.0, 3)]);
        report(&mut pool, 1, 1, 0, &[(0, 50.0, 5)]);
        report(&mut pool, 0, 2, 500, &[(0, 4.0, 1)]);
        // Host 0 has nothing new on path 1: what it said before is gone.
        assert_eq!(view(&mut pool, 600), [(0, 9.0, 6)]);
    }

    #[test]
    fn packets_of_one_report_belong_together() {
        let mut pool = pool();
        report(&mut pool, 0, 1, 0, &[(0, 2.0, 1)]);
        report(&mut pool, 0, 1, 0, &[(5, 3.0, 1)]);
        assert_eq!(view(&mut pool, 0), [(0, 2.0, 1), (5, 3.0, 1)]);
    }

    #[test]
    fn a_report_counts_to_the_end_of_the_window_and_then_it_is_cleared() {
        let mut pool = pool();
        report(&mut pool, 0, 1, 0, &[(0, 2.0, 1)]);
        report(&mut pool, 1, 1, 300, &[(1, 3.0, 1)]);
        assert_eq!(view(&mut pool, 1_000).len(), 2);
        assert_eq!(view(&mut pool, 1_001), [(1, 3.0, 1)]);
        assert_eq!(view(&mut pool, 1_301), []);
    }

    #[test]
    fn a_path_has_failed_if_a_host_says_so_and_none_measured_anything() {
        let mut pool = pool();
        report(&mut pool, 0, 1, 0, &[(0, f32::INFINITY, 0), (1, f32::INFINITY, 0)]);
        report(&mut pool, 1, 1, 0, &[(1, 6.0, 2)]);
        assert_eq!(view(&mut pool, 0), [(0, f32::INFINITY, 0), (1, 3.0, 2)]);
    }
}
