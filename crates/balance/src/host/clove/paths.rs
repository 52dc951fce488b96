//! The sending host: the paths to one destination, their weights, and whose turn it is.

use weft_units::{Span, Stream, Time};

use super::discovery::DiscoveredPath;
use super::header::PathId;
use crate::Expired;

/// The weight of a path before anything is known. Weights are whole parts of it, so that cuts keep
/// the sum to the last unit.
pub const ONE: u32 = 1 << 20;

/// A path, and the entropy that leads over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Identifier of the path in headers.
    pub id: PathId,
    /// Entropy that switches are to hash.
    pub entropy: u32,
    links: Box<[Expired]>,
    weight: u32,
    /// Credit that the path has saved up for its turn.
    credit: i64,
    /// When a mark on it was last reported.
    reported: Option<Time>,
    /// When its weight was last cut.
    cut: Option<Time>,
}

/// How a reported mark changes the weights.
#[derive(Debug, Clone, Copy)]
pub struct CutRule {
    /// The share of the weight that is cut, in units of 2^-16.
    pub share: u32,
    /// Whether only paths without recent reports receive it.
    pub uncongested_only: bool,
    /// A path's weight is cut at most once in this time. Two of them after its last report, a path
    /// counts as uncongested again: one in which no other report could come, and one in which it
    /// did not.
    pub interval: Span,
}

impl CutRule {
    /// The rule for a share from 0 to 1.
    pub fn new(share: f64, uncongested_only: bool, interval: Span) -> Self {
        Self { share: (share * 65_536.0).round() as u32, uncongested_only, interval }
    }

    fn is_congested(&self, path: &Path, now: Time) -> bool {
        path.reported.is_some_and(|at| now.since(at) < self.interval.saturating_mul(2))
    }
}

/// The known paths to a destination, by slot.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    list: Vec<Path>,
    /// By slot: how many paths have been there.
    generations: Vec<u8>,
}

impl Paths {
    /// The known paths.
    pub fn list(&self) -> &[Path] {
        &self.list
    }

    /// Where in the list a path is, if it is still there; `guess` is the first place to look.
    #[inline]
    pub fn place_of(&self, id: PathId, guess: usize) -> Option<usize> {
        if self.list.get(guess).is_some_and(|path| path.id == id) {
            return Some(guess);
        }
        self.list.iter().position(|path| path.id == id)
    }

    /// Takes over what a discovery found, at most [`PathId::SLOTS`]. A path that was known keeps
    /// its name, its weight and its turn, even if another entropy leads there now; all others begin
    /// with the mean weight.
    pub fn adopt(&mut self, found: Vec<DiscoveredPath>) {
        let old = std::mem::take(&mut self.list);
        let mut fresh = Vec::new();
        for found in found {
            match old.iter().find(|path| path.links == found.links) {
                Some(known) => self.list.push(Path { entropy: found.entropy, ..known.clone() }),
                None => fresh.push(found),
            }
        }
        let mean = self.sum().checked_div(self.list.len() as u64).unwrap_or(u64::from(ONE)) as u32;
        for found in fresh {
            let path = Path {
                id: self.free_id(),
                entropy: found.entropy,
                links: found.links,
                weight: mean,
                credit: 0,
                reported: None,
                cut: None,
            };
            self.list.push(path);
        }
        self.list.sort_unstable_by_key(|path| path.id.slot());
        self.rescale();
    }

    /// A name for a new path: in the first slot that is free.
    fn free_id(&mut self) -> PathId {
        let taken = self.list.iter().fold(0u64, |taken, path| taken | 1 << path.id.slot());
        let slot = (!taken).trailing_zeros() as usize % PathId::SLOTS;
        if slot >= self.generations.len() {
            self.generations.resize(slot + 1, 0);
        }
        self.generations[slot] = self.generations[slot].wrapping_add(1);
        PathId::new(slot, self.generations[slot])
    }

    /// Gives every path its part of as many whole weights as there are paths. What rounding leaves
    /// is the first one's.
    fn rescale(&mut self) {
        let (sum, target) = (self.sum(), self.list.len() as u64 * u64::from(ONE));
        for path in &mut self.list {
            let scaled = (u64::from(path.weight) * target).checked_div(sum);
            path.weight = scaled.map_or(ONE, |weight| weight as u32);
        }
        let missing = target.saturating_sub(self.sum());
        if let Some(first) = self.list.first_mut() {
            first.weight += missing as u32;
        }
    }

    /// The sum of all weights.
    fn sum(&self) -> u64 {
        self.list.iter().map(|path| u64::from(path.weight)).sum()
    }

    /// Whose turn it is, by weighted round robin: everyone saves up its weight, and who has saved
    /// most (the first of equals) goes and pays for all. So turns come in proportion to weights, as
    /// evenly spread as can be.
    pub fn next_turn(&mut self) -> Option<usize> {
        let sum = self.sum().cast_signed();
        let mut best = 0;
        for place in 0..self.list.len() {
            self.list[place].credit += i64::from(self.list[place].weight);
            if self.list[place].credit > self.list[best].credit {
                best = place;
            }
        }
        self.list.get_mut(best)?.credit -= sum;
        Some(best)
    }

    /// Any of them, each in proportion to its weight.
    pub fn draw(&self, random: &mut Stream) -> Option<usize> {
        let sum = self.sum();
        if sum == 0 {
            return None;
        }
        // At most 64 weights of 2^20 on average.
        let mut rest = random.below(sum as u32);
        self.list.iter().position(|path| match rest.checked_sub(path.weight) {
            Some(left) => {
                rest = left;
                false
            }
            None => true,
        })
    }

    /// A mark on a path was reported: cuts its weight and spreads what was cut evenly over the
    /// others. False if nothing was cut: the path is not known any more, it was cut a moment ago,
    /// or nobody is there to receive.
    pub fn reported(&mut self, id: PathId, now: Time, rule: &CutRule) -> bool {
        let Some(place) = self.place_of(id, id.slot()) else { return false };
        self.list[place].reported = Some(now);
        if self.list[place].cut.is_some_and(|at| now.since(at) < rule.interval) {
            return false;
        }
        let receives = |(other, path): (usize, &Path)| {
            other != place && !(rule.uncongested_only && rule.is_congested(path, now))
        };
        let receivers =
            self.list.iter().enumerate().filter(|&(other, path)| receives((other, path))).count() as u32;
        if receivers == 0 {
            return false;
        }
        let path = &mut self.list[place];
        path.cut = Some(now);
        let share = ((u64::from(path.weight) * u64::from(rule.share)) >> 16) as u32;
        path.weight -= share;
        let (each, mut rest) = (share / receivers, share % receivers);
        for (other, path) in self.list.iter_mut().enumerate() {
            if receives((other, path)) {
                path.weight += each + u32::from(rest > 0);
                rest = rest.saturating_sub(1);
            }
        }
        true
    }

    /// Whether every known path was reported marked a moment ago.
    pub fn all_congested(&self, now: Time, rule: &CutRule) -> bool {
        self.list.iter().all(|path| rule.is_congested(path, now))
    }

    /// Bytes that a virtual switch would keep for them: id, entropy, weight, credit and two times a
    /// path, and its links to know it again.
    pub fn state_bytes(&self) -> u64 {
        let of_path = |path: &Path| 30 + path.links.len() as u64 * 6;
        self.list.iter().map(of_path).sum::<u64>() + self.generations.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Purpose;

    use super::*;
    use crate::testing::{CHI_SQUARE_3, chi_square};

    const THIRD: f64 = 1.0 / 3.0;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn found(path: u32) -> DiscoveredPath {
        DiscoveredPath { entropy: 100 + path, links: Box::from([Expired { switch: path, port: 0 }]) }
    }

    fn paths(count: u32) -> Paths {
        let mut paths = Paths::default();
        paths.adopt((0..count).map(found).collect());
        paths
    }

    fn weights(paths: &Paths) -> Vec<u32> {
        paths.list.iter().map(|path| path.weight).collect()
    }

    /// Weights in units of [`ONE`].
    fn shares(paths: &Paths) -> Vec<f64> {
        weights(paths).into_iter().map(|weight| f64::from(weight) / f64::from(ONE)).collect()
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        // The share of a cut is a multiple of 2^-16; a few cuts multiply that error.
        let near =
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(near, "{found:?} instead of {expected:?}");
    }

    fn everyone(interval_us: u64) -> CutRule {
        CutRule::new(THIRD, false, Span::from_us(interval_us))
    }

    #[test]
    fn cuts_follow_the_table_worked_by_hand() {
        let (mut paths, rule) = (paths(4), everyone(10));
        assert_near(&shares(&paths), &[1.0, 1.0, 1.0, 1.0]);
        // A third of 1 goes to three others: a ninth each.
        assert!(paths.reported(paths.list[0].id, us(0), &rule));
        assert_near(&shares(&paths), &[2.0 / 3.0, 10.0 / 9.0, 10.0 / 9.0, 10.0 / 9.0]);
        // A third of 2/3 is 2/9: 2/27 each.
        assert!(paths.reported(paths.list[0].id, us(10), &rule));
        assert_near(&shares(&paths), &[4.0 / 9.0, 32.0 / 27.0, 32.0 / 27.0, 32.0 / 27.0]);
        // A third of 32/27 is 32/81: 32/243 each.
        assert!(paths.reported(paths.list[2].id, us(10), &rule));
        let other = 32.0 / 27.0 + 32.0 / 243.0;
        assert_near(&shares(&paths), &[4.0 / 9.0 + 32.0 / 243.0, other, 64.0 / 81.0, other]);
    }

    #[test]
    fn the_sum_of_weights_is_kept_to_the_last_unit() {
        for count in [2, 3, 7, 64] {
            let (mut paths, rule) = (paths(count), CutRule::new(0.33, false, Span::from_us(1)));
            for step in 0..5_000u64 {
                let id = paths.list[(step * step % u64::from(count)) as usize].id;
                paths.reported(id, us(step), &rule);
                assert_eq!(paths.sum(), u64::from(count) * u64::from(ONE), "{count} paths, step {step}");
            }
        }
    }

    #[test]
    fn a_path_is_cut_once_an_interval_and_each_for_itself() {
        let (mut paths, rule) = (paths(3), everyone(10));
        let ids: Vec<PathId> = paths.list.iter().map(|path| path.id).collect();
        let mut cut = |path: usize, at| paths.reported(ids[path], us(at), &rule);
        assert_eq!(
            [cut(0, 0), cut(0, 9), cut(1, 9), cut(0, 10), cut(1, 18), cut(1, 19)],
            [true, false, true, true, false, true]
        );
    }

    #[test]
    fn only_paths_without_recent_reports_receive_if_the_rule_says_so() {
        let (mut paths, rule) = (paths(3), CutRule::new(THIRD, true, Span::from_us(10)));
        let ids: Vec<PathId> = paths.list.iter().map(|path| path.id).collect();
        assert!(paths.reported(ids[0], us(0), &rule));
        assert_near(&shares(&paths), &[2.0 / 3.0, 7.0 / 6.0, 7.0 / 6.0]);
        // Path 0 counts as congested for 20 us: all of path 1's third goes to path 2.
        assert!(paths.reported(ids[1], us(19), &rule));
        assert_near(&shares(&paths), &[2.0 / 3.0, 7.0 / 9.0, 7.0 / 6.0 + 7.0 / 18.0]);
        assert!(!paths.all_congested(us(19), &rule));
        // Path 0 again, path 1 still, and then path 2: nobody receives, and nothing is cut.
        assert!(paths.reported(ids[0], us(21), &rule));
        let before = weights(&paths);
        assert!(!paths.reported(ids[2], us(22), &rule));
        assert_eq!(weights(&paths), before);
        assert!(paths.all_congested(us(22), &rule));
        assert!(!paths.all_congested(us(39), &rule), "path 1 was reported 20 us ago");
    }

    #[test]
    fn a_lone_path_is_never_cut_and_a_stranger_neither() {
        let (mut one, rule) = (paths(1), everyone(10));
        assert!(!one.reported(one.list[0].id, us(0), &rule));
        assert_eq!(weights(&one), [ONE]);
        let mut two = paths(2);
        assert!(!two.reported(PathId::new(0, 9), us(0), &rule), "another generation");
        assert!(!two.reported(PathId::new(5, 1), us(0), &rule));
        assert_eq!(weights(&two), [ONE, ONE]);
        assert_eq!(Paths::default().next_turn(), None);
    }

    #[test]
    fn turns_follow_the_table_worked_by_hand() {
        let mut paths = paths(3);
        let turns = |paths: &mut Paths, count: usize| -> Vec<usize> {
            (0..count).filter_map(|_| paths.next_turn()).collect()
        };
        assert_eq!(turns(&mut paths, 6), [0, 1, 2, 0, 1, 2]);
        // Weights 5, 1, 1: credits before each turn are (5,1,1) (3,2,2) (1,3,3) (6,-3,4) (4,-2,5)
        // (9,-1,-1) (7,0,0).
        for (path, weight) in paths.list.iter_mut().zip([5, 1, 1]) {
            path.weight = weight;
        }
        assert_eq!(turns(&mut paths, 14), [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn turns_come_in_proportion_to_weights_and_none_to_a_weight_of_nothing() {
        let mut paths = paths(4);
        for (path, weight) in paths.list.iter_mut().zip([600, 0, 300, 100]) {
            path.weight = weight;
        }
        let mut counts = [0; 4];
        (0..1_000).filter_map(|_| paths.next_turn()).for_each(|place| counts[place] += 1);
        assert_eq!(counts, [600, 0, 300, 100]);
    }

    #[test]
    fn chance_goes_by_weights_and_never_to_a_weight_of_nothing() {
        let mut paths = paths(4);
        for (path, weight) in paths.list.iter_mut().zip([600, 0, 300, 100]) {
            path.weight = weight;
        }
        let (mut counts, mut random) = ([0u64; 4], Stream::new(3, Purpose::HostScheme, 0));
        (0..10_000).filter_map(|_| paths.draw(&mut random)).for_each(|place| counts[place] += 1);
        let chi = chi_square(&[counts[0], counts[2], counts[3]], &[600, 300, 100]);
        assert!(counts[1] == 0 && chi < CHI_SQUARE_3, "chi-square {chi}: {counts:?}");
        assert_eq!(Paths::default().draw(&mut random), None);
    }

    #[test]
    fn a_path_that_is_found_again_keeps_name_and_weight_by_whatever_entropy() {
        let (mut paths, rule) = (paths(3), everyone(10));
        let ids: Vec<PathId> = paths.list.iter().map(|path| path.id).collect();
        paths.reported(ids[1], us(0), &rule);
        assert_near(&shares(&paths), &[7.0 / 6.0, 2.0 / 3.0, 7.0 / 6.0]);
        // Path 0 is gone, 1 and 2 are found again by other entropies, 3 and 4 are new.
        let again = |path| DiscoveredPath { entropy: 900 + path, ..found(path) };
        paths.adopt(vec![again(2), found(3), again(1), found(4)]);
        let entropies: Vec<u32> = paths.list.iter().map(|path| path.entropy).collect();
        assert_eq!(entropies, [103, 901, 902, 104]);
        assert_eq!([paths.list[1].id, paths.list[2].id], [ids[1], ids[2]]);
        assert_eq!(paths.place_of(ids[0], 0), None, "its slot has another path now");
        assert_eq!(paths.place_of(ids[2], 0), Some(2));
        // The mean of 2/3 and 7/6 is 11/12; scaled to a sum of 4, from 11/3.
        let scale = 4.0 / (11.0 / 3.0);
        assert_near(&shares(&paths), &[1.0, 2.0 / 3.0 * scale, 7.0 / 6.0 * scale, 1.0]);
        assert_eq!(paths.sum(), 4 * u64::from(ONE));
    }

    #[test]
    fn weights_of_nothing_that_are_left_alone_become_equal_again() {
        let mut paths = paths(3);
        for (path, weight) in paths.list.iter_mut().zip([3 * ONE, 0, 0]) {
            path.weight = weight;
        }
        paths.adopt(vec![found(1), found(2)]);
        assert_eq!(weights(&paths), [ONE, ONE]);
        paths.adopt(Vec::new());
        assert_eq!(paths.next_turn(), None);
        paths.adopt(vec![found(1)]);
        assert_eq!(weights(&paths), [ONE]);
    }
}
