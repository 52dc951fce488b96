//! Pauses and shared buffer in the summary of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use weft_fabric::{PauseOfLink, Results, SharedBufferUse};
use weft_topology::Topology;
use weft_units::Span;

/// Pauses of ports, and occupancy of the shared buffers of switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lossless {
    /// How often a class of a link was paused.
    pub pauses: u64,
    /// How long, all links and classes together.
    pub paused_us: f64,
    /// Links that were paused in any class.
    pub paused_links: u64,
    /// Queues that were paused: each class of a link is one.
    pub paused_queues: u64,
    /// The link whose pauses were caused by most others, directly or through the pauses of links
    /// between: where the congestion began; null if nobody paused.
    pub root: Option<String>,
    /// Share of all time for which links were paused that goes back to that link; null if nobody
    /// paused.
    pub root_share: Option<f64>,
    /// Flows whose data was kept from leaving a port by a pause, though it then went another way
    /// than the one because of which the pause was: head-of-line blocking.
    pub innocent_flows: u64,
    /// How long, all packets together; of packets that waited at one time each counts.
    pub innocent_us: f64,
    /// Data packets cut to their headers.
    pub trimmed_packets: u64,
    /// The most bytes that ever waited in the memory of a switch.
    pub largest_shared_buffer_bytes: u64,
    /// The links on which nothing would ever have moved again, each because of the next one, and
    /// the last one because of the first; left out unless the run ended by that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlock: Vec<String>,
}

impl Lossless {
    /// Pauses and buffers of a run whose switches have shared buffers; none if they have none.
    pub fn of(topology: &Topology, names: &[String], results: &Results) -> Option<Self> {
        topology.shared_buffer?;
        // They are in order of link and class.
        let mut queues: Vec<Place> = results.pauses.iter().map(|pause| (pause.link, pause.class)).collect();
        queues.dedup();
        let mut links: Vec<u32> = queues.iter().map(|(link, _)| *link).collect();
        links.dedup();
        let root = root(&results.pauses);
        let innocent = || {
            results.blocked.iter().map(|(_, blocked)| blocked).filter(|blocked| !blocked.innocently.is_zero())
        };
        let largest =
            results.shared_buffers.iter().map(|memory: &SharedBufferUse| memory.largest_bytes).max();
        Some(Self {
            pauses: results.pauses.iter().map(|pause| pause.totals.pauses).sum(),
            paused_us: paused(results).as_us(),
            paused_links: links.len() as u64,
            paused_queues: queues.len() as u64,
            root: root.map(|(link, _)| names[link as usize].clone()),
            root_share: root.map(|(_, share)| share),
            innocent_flows: innocent().count() as u64,
            innocent_us: innocent().map(|blocked| blocked.innocently.as_us()).sum(),
            trimmed_packets: results.classes.iter().map(|class| class.totals.trimmed).sum(),
            largest_shared_buffer_bytes: largest.unwrap_or_default(),
            deadlock: results.deadlock.iter().map(|(link, _)| names[*link as usize].clone()).collect(),
        })
    }

    /// Warning on a run that ended by a deadlock.
    pub fn warning(&self) -> Option<String> {
        let first = self.deadlock.first()?;
        let circle = self.deadlock.join(", which waits for ");
        Some(format!(
            "deadlock: {circle}, which waits for {first}; nothing on these links would ever have moved again"
        ))
    }
}

fn paused(results: &Results) -> Span {
    results.pauses.iter().map(|pause| pause.totals.paused).fold(Span::ZERO, |sum, one| sum + one)
}

/// A link and a class.
type Place = (u32, u8);

/// The link to which most of the paused time goes back, and its share of all. The time of a pause
/// belongs to the link to blame, or, if that was paused in the same class itself, to those to blame
/// for that, in proportion to their times. Pauses spread class by class; a link is to blame for
/// those of all its classes.
fn root(pauses: &[PauseOfLink]) -> Option<(u32, f64)> {
    /// No chain of pauses through a fabric is longer; in a circle this is where it ends.
    const LONGEST: u32 = 16;
    let mut causes: BTreeMap<Place, Vec<(u32, f64)>> = BTreeMap::new();
    let mut spread: BTreeMap<Place, f64> = BTreeMap::new();
    for pause in pauses {
        let time = pause.totals.paused.as_us();
        causes.entry((pause.link, pause.class)).or_default().push((pause.blamed, time));
        *spread.entry((pause.blamed, pause.class)).or_default() += time;
    }
    for _ in 0..LONGEST {
        spread = one_back(&causes, spread);
    }
    let mut by_link: BTreeMap<u32, f64> = BTreeMap::new();
    for ((link, _), time) in spread {
        *by_link.entry(link).or_default() += time;
    }
    let all: f64 = by_link.values().sum();
    if cfg!(debug_assertions) {
        let whole: f64 = pauses.iter().map(|pause| pause.totals.paused.as_us()).sum();
        assert!((all - whole).abs() <= 1e-9 * whole, "pauses by root: {all} of {whole} us");
    }
    let most = by_link.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (all > 0.0).then(|| (most.0, most.1 / all))
}

/// Moves the time of links that were paused themselves to the account of those to blame for that.
fn one_back(causes: &BTreeMap<Place, Vec<(u32, f64)>>, spread: BTreeMap<Place, f64>) -> BTreeMap<Place, f64> {
    let mut back: BTreeMap<Place, f64> = BTreeMap::new();
    for (place, time) in spread {
        let known = causes.get(&place).map_or(&[][..], Vec::as_slice);
        let all: f64 = known.iter().map(|(_, paused)| paused).sum();
        if all <= 0.0 {
            *back.entry(place).or_default() += time;
            continue;
        }
        for &(blamed, paused) in known {
            *back.entry((blamed, place.1)).or_default() += time * paused / all;
        }
    }
    back
}

#[cfg(test)]
mod tests {
    use weft_fabric::PauseTotals;

    use super::*;

    /// `link` was paused in `class` for so many microseconds because of `blamed`.
    fn pause((link, class, blamed, us): (u32, u8, u32, u64)) -> PauseOfLink {
        let totals = PauseTotals { paused: Span::from_us(us), ..PauseTotals::default() };
        PauseOfLink { link, class, blamed, totals }
    }

    fn root_of(pauses: &[(u32, u8, u32, u64)]) -> Option<(u32, f64)> {
        root(&pauses.iter().copied().map(pause).collect::<Vec<_>>())
    }

    #[test]
    fn a_link_is_to_blame_for_the_pauses_of_all_its_classes() {
        assert_eq!(root_of(&[]), None);
        // 30 us in each of two classes because of link 8, 40 us in one because of link 9.
        assert_eq!(root_of(&[(0, 0, 8, 30), (1, 1, 8, 30), (2, 2, 9, 40)]), Some((8, 0.6)));
    }

    #[test]
    fn a_pause_goes_back_to_what_paused_the_link_to_blame_in_its_own_class() {
        // Link 5 was paused because of 8 in class 0, and because of 9 in class 1.
        let pauses = [(0, 0, 5, 50), (5, 0, 8, 10), (5, 1, 9, 30)];
        assert_eq!(root_of(&pauses), Some((8, 60.0 / 90.0)));
    }
}
