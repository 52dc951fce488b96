//! Knowledge of a host on each path: its own findings since its last report, the rack's view, and
//! whether probes were lost.

use std::cmp::Ordering;
use std::ops::Range;

use weft_units::{Span, Stream, Time};

use super::NoData;
use super::congestion::Tally;
use super::wire::Entry;

/// Where the paths to each rack lie in dense arrays. A rack with fewer than two paths has none
/// here: there is no choice.
#[derive(Debug, Clone)]
pub struct Paths {
    /// By rack, the first one; and behind the last rack, the number of all.
    first: Box<[u32]>,
}

impl Paths {
    /// For this many explicit routes by rack.
    pub fn new(routes: &[u16]) -> Self {
        let mut first = vec![0];
        first.extend(routes.iter().scan(0, |sum, &routes| {
            *sum += if routes < 2 { 0 } else { u32::from(routes) };
            Some(*sum)
        }));
        Self { first: first.into() }
    }

    /// Those to a rack.
    #[inline]
    pub fn to(&self, rack: u16) -> Range<usize> {
        let rack = usize::from(rack);
        match (self.first.get(rack), self.first.get(rack + 1)) {
            (Some(&first), Some(&end)) => first as usize..end as usize,
            _ => 0..0,
        }
    }

    /// The one to a rack with this label.
    #[inline]
    pub fn index(&self, rack: u16, label: u16) -> Option<usize> {
        let paths = self.to(rack);
        let index = paths.start + usize::from(label);
        (index < paths.end).then_some(index)
    }

    /// The rack that a path leads to.
    pub fn rack_of(&self, path: usize) -> u16 {
        (self.first.partition_point(|&first| first as usize <= path) as u16).saturating_sub(1)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.first[self.first.len() - 1] as usize
    }
}

/// Why a path is taken to have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Failure {
    #[default]
    None,
    /// The view says so. Until a view says otherwise, or a packet came back by it.
    Told,
    /// A probe of the host's own was lost. Until a packet came back by it: other hosts' data may be
    /// older than the failure.
    Seen,
}

/// A view's silence on a path: worth a little more than no congestion at all. So a path that is
/// known to be idle is preferred, and a path without data is preferred to a congested one.
const UNKNOWN: f32 = f32::MIN_POSITIVE;

/// Knowledge of a host on all paths.
#[derive(Debug, Clone)]
pub struct Knowledge {
    /// Since the last report.
    tallies: Box<[Tally]>,
    /// The paths whose tally is not empty.
    news: Vec<u32>,
    /// Congestion by the rack's view, in us^3.
    view: Box<[f32]>,
    failures: Box<[Failure]>,
    /// The paths on which probes of the host's own were lost; some of them may have come back.
    seen_failed: Vec<u32>,
}

impl Knowledge {
    /// Knowledge of this many paths, empty.
    pub fn new(paths: usize) -> Self {
        Self {
            tallies: vec![Tally::default(); paths].into(),
            news: Vec::new(),
            view: vec![UNKNOWN; paths].into(),
            failures: vec![Failure::None; paths].into(),
            seen_failed: Vec::new(),
        }
    }

    /// A packet came back by a path with this congestion value: one vote more (MEET Alg. 2 lines 2
    /// to 4).
    #[inline]
    pub fn learn(&mut self, path: usize, congestion: f64) {
        let tally = &mut self.tallies[path];
        if tally.packets == 0 {
            self.news.push(path as u32);
        }
        tally.add(congestion);
        self.failures[path] = Failure::None;
    }

    /// A probe did not come back (MEET §3.3 and §4.2). True if that is new.
    pub fn lose(&mut self, path: usize) -> bool {
        if std::mem::replace(&mut self.failures[path], Failure::Seen) == Failure::Seen {
            return false;
        }
        if !self.seen_failed.contains(&(path as u32)) {
            self.seen_failed.push(path as u32);
        }
        true
    }

    /// How congested a path is, in us^3; infinite if it failed, and `unknown` if nothing is known
    /// of it: see [`Self::worth_without_data`].
    #[inline]
    pub fn worth(&self, path: usize, unknown: f32) -> f32 {
        match self.view[path] {
            _ if self.has_failed(path) => f32::INFINITY,
            UNKNOWN => unknown,
            known => known,
        }
    }

    /// Value of a path without data, in us^3, if these are all that lead to its rack.
    pub fn worth_without_data(&self, paths: Range<usize>, no_data: NoData) -> f32 {
        match no_data {
            NoData::AfterIdle => UNKNOWN,
            NoData::Best => 0.0,
            NoData::Worst => f32::MAX,
            NoData::Mean => {
                let known =
                    paths.filter(|&path| self.is_covered(path)).map(|path| f64::from(self.view[path]));
                let (count, total) =
                    known.fold((0u32, 0.0), |(count, total), value| (count + 1, total + value));
                if count == 0 { UNKNOWN } else { (total / f64::from(count)) as f32 }
            }
        }
    }

    /// Whether it is taken to have failed.
    #[inline]
    pub fn has_failed(&self, path: usize) -> bool {
        self.failures[path] != Failure::None
    }

    /// Whether there is data of a path, so that a random probe is better spent on another (MEET
    /// §3.3).
    pub fn is_covered(&self, path: usize) -> bool {
        !self.has_failed(path) && self.view[path].to_bits() != UNKNOWN.to_bits()
    }

    /// News since the last call, in ascending order of paths. Failed paths stay news: a report
    /// replaces the one before.
    pub fn take_news(&mut self) -> Vec<Entry> {
        let failures = &self.failures;
        self.seen_failed.retain(|&path| failures[path as usize] == Failure::Seen);
        let mut entries = Vec::with_capacity(self.news.len() + self.seen_failed.len());
        for path in self.news.drain(..) {
            let tally = std::mem::take(&mut self.tallies[path as usize]);
            if self.failures[path as usize] != Failure::Seen {
                entries.push(Entry { path, value: tally.total as f32, packets: tally.packets });
            }
        }
        entries.extend(self.seen_failed.iter().map(|&path| Entry::failed(path)));
        entries.sort_unstable_by_key(|entry| entry.path);
        entries
    }

    /// A new view begins: what the last one said is out of date.
    pub fn forget_view(&mut self) {
        self.view.fill(UNKNOWN);
    }

    /// From now on the view is right about failures that the host saw itself.
    pub fn trust_view(&mut self) {
        for path in self.seen_failed.drain(..) {
            let failure = &mut self.failures[path as usize];
            if *failure == Failure::Seen {
                *failure = Failure::Told;
            }
        }
    }

    /// The view says this of a path.
    pub fn see(&mut self, entry: &Entry) {
        let path = entry.path as usize;
        let Some(failure) = self.failures.get_mut(path) else { return };
        *failure = match (*failure, entry.has_failed()) {
            (Failure::Seen, _) => Failure::Seen,
            (_, true) => Failure::Told,
            (_, false) => Failure::None,
        };
        self.view[path] = if entry.has_failed() { UNKNOWN } else { entry.value };
    }

    /// Bytes that it keeps: a tally, a view's value and a failure for each path.
    pub fn state_bytes(&self) -> u64 {
        (self.tallies.len() * (size_of::<Tally>() + size_of::<f32>() + size_of::<Failure>())) as u64
    }
}

/// The label with the least value; among equals a random one.
pub fn least(random: &mut Stream, values: impl Iterator<Item = (u16, f32)>) -> Option<u16> {
    let mut best: Option<(u16, f32)> = None;
    let mut equals = 0;
    for (label, value) in values {
        match best.map_or(Ordering::Less, |(_, least)| value.total_cmp(&least)) {
            Ordering::Less => equals = 1,
            Ordering::Equal => equals += 1,
            Ordering::Greater => continue,
        }
        if equals == 1 || random.below(equals) == 0 {
            best = Some((label, value));
        }
    }
    best.map(|(label, _)| label)
}

/// Whether what was learnt at `at` is at most `life` old.
pub fn is_fresh(at: Time, now: Time, life: Span) -> bool {
    now.since(at) <= life
}

#[cfg(test)]
mod tests {
    use weft_units::Purpose;

    use super::*;

    fn knowledge() -> Knowledge {
        Knowledge::new(6)
    }

    fn worths(knowledge: &Knowledge) -> Vec<f32> {
        (0..6).map(|path| knowledge.worth(path, UNKNOWN)).collect()
    }

    fn measured(path: u32, value: f32) -> Entry {
        Entry { path, value, packets: 1 }
    }

    #[test]
    fn paths_lie_side_by_side_and_single_ones_are_left_out() {
        let paths = Paths::new(&[1, 4, 1, 3]);
        assert_eq!(paths.len(), 7);
        assert_eq!([0, 1, 2, 3].map(|rack| paths.to(rack)), [0..0, 0..4, 4..4, 4..7]);
        assert_eq!((paths.index(1, 3), paths.index(1, 4), paths.index(3, 0)), (Some(3), None, Some(4)));
        assert_eq!((paths.index(0, 0), paths.index(9, 0)), (None, None));
        assert_eq!((0..7).map(|path| paths.rack_of(path)).collect::<Vec<_>>(), [1, 1, 1, 1, 3, 3, 3]);
        assert_eq!(Paths::new(&[1, 1]).len(), 0);
    }

    #[test]
    fn no_congestion_comes_before_no_data_and_that_before_congestion_and_failure_is_last() {
        let mut knowledge = knowledge();
        knowledge.see(&measured(1, 0.0));
        // A picosecond above K once in four thousand million packets is still more than nothing
        // known.
        knowledge.see(&measured(2, 1e-18 / 4e9));
        knowledge.see(&Entry::failed(3));
        knowledge.lose(4);
        let found = worths(&knowledge);
        assert!(found[1] < found[0] && found[0] < found[2] && found[2] < found[3], "{found:?}");
        assert_eq!((found[3], found[4], found[5]), (f32::INFINITY, f32::INFINITY, found[0]));
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|path| knowledge.is_covered(path)),
            [false, true, true, false, false, false]
        );
    }

    #[test]
    fn a_path_without_data_is_worth_what_the_reading_says() {
        let mut knowledge = knowledge();
        // Path 0: no congestion; 1: 10 us above K; 2 failed; 3 has no data. 4 and 5 lead to another
        // rack.
        knowledge.see(&measured(0, 0.0));
        knowledge.see(&measured(1, 1_000.0));
        knowledge.see(&Entry::failed(2));
        let unknown = |no_data| knowledge.worth_without_data(0..4, no_data);
        let worth = |no_data| knowledge.worth(3, unknown(no_data));
        let [idle, congested, failed] = [0, 1, 2].map(|path| knowledge.worth(path, UNKNOWN));
        assert!(idle < worth(NoData::AfterIdle) && worth(NoData::AfterIdle) < congested);
        assert_eq!(worth(NoData::Best).to_bits(), idle.to_bits(), "drawn with it");
        assert_eq!(worth(NoData::Mean).to_bits(), 500f32.to_bits());
        assert!(congested < worth(NoData::Worst) && worth(NoData::Worst) < failed);
        for no_data in [NoData::AfterIdle, NoData::Best, NoData::Mean, NoData::Worst] {
            assert_eq!(knowledge.worth(1, unknown(no_data)).to_bits(), congested.to_bits(), "data is data");
            assert_eq!(knowledge.worth(2, unknown(no_data)).to_bits(), failed.to_bits());
        }
        let elsewhere = knowledge.worth_without_data(4..6, NoData::Mean);
        assert_eq!(elsewhere.to_bits(), UNKNOWN.to_bits(), "no path there has data");
    }

    #[test]
    fn news_are_told_once_and_in_order() {
        let mut knowledge = knowledge();
        for (path, congestion) in [(5, 8.0), (1, 1.0), (5, 0.0)] {
            knowledge.learn(path, congestion);
        }
        let told = [Entry { path: 1, value: 1.0, packets: 1 }, Entry { path: 5, value: 8.0, packets: 2 }];
        assert_eq!(knowledge.take_news(), told);
        assert_eq!(knowledge.take_news(), []);
    }

    #[test]
    fn a_failure_is_told_as_long_as_it_lasts() {
        let mut knowledge = knowledge();
        knowledge.learn(2, 7.0);
        assert!(knowledge.lose(2), "new");
        assert!(!knowledge.lose(2), "known");
        assert_eq!(knowledge.take_news(), [Entry::failed(2)], "it replaces what was measured before");
        assert_eq!(knowledge.take_news(), [Entry::failed(2)]);
        knowledge.learn(2, 0.0);
        assert_eq!(knowledge.take_news(), [measured(2, 0.0)]);
        assert_eq!(knowledge.take_news(), []);
    }

    #[test]
    fn a_view_ends_a_failure_that_it_told_but_not_one_that_was_seen() {
        let mut knowledge = knowledge();
        knowledge.see(&Entry::failed(0));
        knowledge.lose(1);
        knowledge.forget_view();
        assert_eq!(
            [0, 1].map(|path| knowledge.has_failed(path)),
            [true, true],
            "a view without the path says nothing"
        );
        knowledge.see(&measured(0, 3.0));
        knowledge.see(&measured(1, 3.0));
        assert_eq!([0, 1].map(|path| knowledge.has_failed(path)), [false, true]);
        knowledge.learn(1, 0.0);
        assert!(!knowledge.has_failed(1), "a packet came back by it");
    }

    #[test]
    fn with_trust_a_view_ends_what_was_seen_too() {
        let mut knowledge = knowledge();
        knowledge.lose(1);
        knowledge.lose(2);
        knowledge.trust_view();
        knowledge.see(&measured(1, 3.0));
        assert_eq!([1, 2].map(|path| knowledge.has_failed(path)), [false, true]);
        assert_eq!(knowledge.take_news(), [], "and it is not news of this host any more");
    }

    #[test]
    fn a_view_replaces_the_one_before() {
        let mut knowledge = knowledge();
        knowledge.see(&measured(0, 3.0));
        knowledge.forget_view();
        knowledge.see(&measured(1, 4.0));
        assert_eq!(worths(&knowledge)[..3], [UNKNOWN, 4.0, UNKNOWN]);
        knowledge.see(&measured(99, 4.0));
    }

    #[test]
    fn the_least_is_taken_and_equals_are_drawn_evenly() {
        let mut random = Stream::new(1, Purpose::HostScheme, 0);
        let values = [(0, 2.0), (1, 1.0), (2, f32::INFINITY), (3, 1.0), (4, 1.0)];
        let mut drawn = [0u32; 5];
        for _ in 0..3_000 {
            let label = least(&mut random, values.into_iter()).unwrap_or_default();
            drawn[usize::from(label)] += 1;
        }
        assert_eq!((drawn[0], drawn[2]), (0, 0));
        // Each of three is drawn 1,000 times, give or take 26: five times that would be chance once
        // in two million.
        assert!([1, 3, 4].iter().all(|&label: &usize| drawn[label].abs_diff(1_000) < 130), "{drawn:?}");
        assert_eq!(least(&mut random, std::iter::empty()), None);
        assert_eq!(
            least(&mut random, [(7, f32::INFINITY)].into_iter()),
            Some(7),
            "all failed: any is as good"
        );
    }
}
