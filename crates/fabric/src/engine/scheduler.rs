//! Which class of a port sends next: strict priority or weighted rounds, and the token bucket that holds credits back.

use weft_transport::CreditPorts;

use super::link::Profile;

/// How a port chooses among the classes that have a packet ready: the first of them, or, of those from `ahead` on, each in
/// its turn, as much as its weight allows.
#[derive(Debug)]
pub struct Scheduler {
    /// Classes that always go first, in order.
    ahead: usize,
    /// The turns of the others; none for strict priority.
    rounds: Option<Rounds>,
}

/// Deficit round robin (Shreedhar and Varghese, IEEE/ACM Transactions on Networking, 1996): in its turn a class may send its quantum and what it
/// left over before. After any number of whole rounds a class that always had packets has sent so many quanta, less at
/// most one packet.
#[derive(Debug)]
pub struct Rounds {
    /// Bytes in each turn.
    quanta: Box<[u64]>,
    /// What is left over.
    deficits: Box<[u64]>,
    /// Whose turn it is.
    turn: usize,
    /// Whether it got its quantum.
    has_quantum: bool,
}

impl Rounds {
    /// Turns of these sizes in bytes, none of them smaller than the largest packet.
    pub fn new(quanta: Box<[u64]>) -> Self {
        Self { deficits: vec![0; quanta.len()].into(), quanta, turn: 0, has_quantum: false }
    }

    fn end_turn(&mut self) {
        self.turn = (self.turn + 1) % self.quanta.len();
        self.has_quantum = false;
    }
}

impl Scheduler {
    /// Strict priority.
    pub const STRICT: Self = Self { ahead: 0, rounds: None };

    /// Turns, behind as many classes as always go first.
    pub const fn weighted(ahead: usize, rounds: Rounds) -> Self {
        Self { ahead, rounds: Some(rounds) }
    }

    /// The class that sends next. `ready` gives the bytes on the wire of a class's first packet, if it may leave now.
    pub fn next(&mut self, classes: usize, ready: impl Fn(usize) -> Option<u64>) -> Option<usize> {
        let first = (0..classes).find(|&class| ready(class).is_some())?;
        let Some(rounds) = self.rounds.as_mut().filter(|_| first >= self.ahead) else { return Some(first) };
        loop {
            let turn = rounds.turn;
            if let Some(bytes) = ready(self.ahead + turn) {
                if !rounds.has_quantum {
                    rounds.deficits[turn] += rounds.quanta[turn];
                    rounds.has_quantum = true;
                }
                if bytes <= rounds.deficits[turn] {
                    rounds.deficits[turn] -= bytes;
                    return Some(self.ahead + turn);
                }
            }
            rounds.end_turn();
        }
    }

    /// A class has nothing left to send: it keeps nothing for later.
    pub fn emptied(&mut self, class: usize) {
        let (Some(rounds), Some(place)) = (&mut self.rounds, class.checked_sub(self.ahead)) else { return };
        rounds.deficits[place] = 0;
        if rounds.turn == place {
            rounds.end_turn();
        }
    }

    /// How long what waits in the classes (in ps, each) takes until a packet that comes to `class` now is sent, if nothing
    /// else comes.
    pub fn ahead_of(&self, class: usize, waiting_ps: impl Fn(usize) -> u64) -> u64 {
        let (Some(rounds), Some(place)) = (&self.rounds, class.checked_sub(self.ahead)) else {
            return (0..=class).map(waiting_ps).sum();
        };
        // While the class sends what waits in it, each other class sends its share, or all that it has.
        let (own, quantum) = (u128::from(waiting_ps(class)), u128::from(rounds.quanta[place]));
        let share = |(other, &its): (usize, &u64)| {
            let most = u64::try_from(own * u128::from(its) / quantum).unwrap_or(u64::MAX);
            waiting_ps(self.ahead + other).min(most)
        };
        let first: u64 = (0..self.ahead).map(&waiting_ps).sum();
        rounds.quanta.iter().enumerate().map(share).fold(first, u64::saturating_add)
    }
}

/// What lets credits go at no more than their share of the link.
///
/// It is exact in time: it is kept as the moment when it will be full again ("virtual scheduling", ITU-T I.371), in whole
/// picoseconds. A credit takes so much of it as fills in the time that a credit and the frame that it calls for take on
/// the link, each rounded up to a picosecond.
#[derive(Debug)]
pub struct TokenBucket {
    rules: CreditPorts,
    /// When it is full again, in ps.
    full_at: u64,
}

impl TokenBucket {
    /// A full one.
    pub const fn new(rules: CreditPorts) -> Self {
        Self { rules, full_at: 0 }
    }

    /// When it has enough for a packet of `wire_bytes`, in ps.
    pub fn ready_at(&self, profile: &Profile, wire_bytes: u16) -> u64 {
        // Tokens are what the bucket holds less what fills until `full_at`.
        let spare = u64::from(self.rules.burst_bytes.saturating_sub(wire_bytes));
        self.full_at.saturating_sub(self.fill_ps(profile, spare))
    }

    /// A packet of `wire_bytes` leaves at `now`.
    pub fn take(&mut self, profile: &Profile, now: u64, wire_bytes: u16) {
        self.full_at = self.full_at.max(now) + self.fill_ps(profile, u64::from(wire_bytes));
    }

    /// How long the tokens for `credit_bytes` of credits take to fill, in ps: credits and the frames that they call for
    /// share the link (MaxPass §III.A: 84 / (84 + 1538)).
    fn fill_ps(&self, profile: &Profile, credit_bytes: u64) -> u64 {
        let CreditPorts { credit_bytes: credit, frame_bytes: frame, .. } = self.rules;
        let pair = profile.service_ps(credit) + profile.service_ps(frame);
        let scaled = u128::from(pair) * u128::from(credit_bytes);
        match u64::try_from(scaled) {
            Ok(scaled) => scaled.div_ceil(u64::from(credit)),
            Err(_) => u64::try_from(scaled.div_ceil(u128::from(credit))).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes in the order in which they send, if all have packets of these sizes.
    fn served(scheduler: &mut Scheduler, sizes: &[u64], count: usize) -> Vec<usize> {
        (0..count).filter_map(|_| scheduler.next(sizes.len(), |class| Some(sizes[class]))).collect()
    }

    #[test]
    fn turns_are_as_long_as_weights_say_by_hand() {
        let mut scheduler = Scheduler::weighted(0, Rounds::new([3_000, 1_000].into()));
        assert_eq!(served(&mut scheduler, &[1_000, 1_000], 8), [0, 0, 0, 1, 0, 0, 0, 1]);
        // Two packets of 1,200 in the first turn, and three in the second with the 600 that were left over.
        let mut scheduler = Scheduler::weighted(0, Rounds::new([3_000, 1_500].into()));
        assert_eq!(served(&mut scheduler, &[1_200, 1_500], 8), [0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_class_that_has_nothing_keeps_nothing_for_later() {
        let mut scheduler = Scheduler::weighted(0, Rounds::new([3_000, 3_000].into()));
        assert_eq!(scheduler.next(2, |class| (class == 0).then_some(1_000)), Some(0));
        scheduler.emptied(0);
        let rest = served(&mut scheduler, &[1_000, 1_000], 6);
        assert_eq!(rest, [1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn classes_ahead_of_the_turns_go_first_and_take_no_turn() {
        let mut scheduler = Scheduler::weighted(1, Rounds::new([1_000, 1_000].into()));
        let mut serve = |credit: bool| scheduler.next(3, |class| (class > 0 || credit).then_some(1_000));
        assert_eq!([true, false, true, true, false, false].map(&mut serve), [0, 1, 0, 0, 2, 1].map(Some));
    }

    #[test]
    fn what_is_ahead_of_a_packet_is_what_is_sent_before_it() {
        let waiting = [5_000, 700, 9_000];
        assert_eq!(Scheduler::STRICT.ahead_of(1, |class| waiting[class]), 5_700);
        let weighted = Scheduler::weighted(0, Rounds::new([1, 1, 2].map(|weight| weight * 1_500).into()));
        // While the second sends 700, the first sends 700 and the third 1,400.
        assert_eq!(weighted.ahead_of(1, |class| waiting[class]), 2_800);
        assert_eq!(weighted.ahead_of(2, |class| waiting[class]), 4_500 + 700 + 9_000);
    }
}
