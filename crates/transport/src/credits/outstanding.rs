//! The credits of one path that no data has answered yet.

use std::collections::VecDeque;

use weft_units::Time;

/// When credits were sent, in order. Data echoes the time stamp of its credit, so the stamp says
/// which one it answers, and which ones before it were lost.
///
/// Stamps are exact to a picosecond: a number in some of their bits would make the measured
/// round-trip time coarser by a fixed time, whatever the rates of the fabric.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    sent: VecDeque<Time>,
}

impl Outstanding {
    /// As many are remembered: 2 ms of credits at 400 Gbit/s. A path that answers none, since it is
    /// dead, takes no more memory than this.
    const MOST: usize = 1 << 16;

    /// No credit yet.
    pub const fn new() -> Self {
        Self { sent: VecDeque::new() }
    }

    /// A credit goes, later than the one before.
    pub fn sent(&mut self, now: Time) {
        if self.sent.len() == Self::MOST {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }

    /// Data answers the credit with this stamp: how many credits before it nobody answered, which
    /// are lost. `None` for a credit that was given up before, or forgotten.
    pub fn answered(&mut self, stamp: Time) -> Option<u32> {
        let mut lost = 0;
        while let Some(&first) = self.sent.front().filter(|&&first| first <= stamp) {
            self.sent.pop_front();
            if first == stamp {
                return Some(lost);
            }
            lost += 1;
        }
        // Not reached: a stamp is that of a credit, so it is found or all that is remembered is
        // younger.
        debug_assert!(lost == 0, "{stamp:?} is the time of no credit");
        None
    }

    /// Forgets all of them: what comes for them is late.
    pub fn forget(&mut self) {
        self.sent = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    fn after(sent: &[u64]) -> Outstanding {
        let mut outstanding = Outstanding::new();
        for &ps in sent {
            outstanding.sent(at(ps));
        }
        outstanding
    }

    #[test]
    fn an_answer_tells_of_the_credits_before_it_once() {
        let mut outstanding = after(&[10, 20, 30, 40, 50]);
        assert_eq!(outstanding.answered(at(10)), Some(0));
        assert_eq!(outstanding.answered(at(40)), Some(2));
        assert_eq!(outstanding.answered(at(20)), None, "late");
        assert_eq!(outstanding.answered(at(50)), Some(0));
        assert_eq!(outstanding.answered(at(50)), None, "nothing is left");
    }

    #[test]
    fn what_was_forgotten_is_late_when_it_comes() {
        let mut outstanding = after(&[10, 20]);
        outstanding.forget();
        outstanding.sent(at(30));
        assert_eq!(outstanding.answered(at(20)), None);
        assert_eq!(outstanding.answered(at(30)), Some(0));
    }

    #[test]
    fn a_dead_path_takes_no_more_than_so_much_memory() {
        let many = Outstanding::MOST as u64 + 5;
        let mut outstanding = after(&(0..many).collect::<Vec<_>>());
        assert_eq!(outstanding.sent.len(), Outstanding::MOST);
        assert_eq!(outstanding.answered(at(4)), None, "forgotten");
        assert_eq!(outstanding.answered(at(many - 1)), Some(Outstanding::MOST as u32 - 1));
    }
}
