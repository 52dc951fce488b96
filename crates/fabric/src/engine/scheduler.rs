//! Which class of a port sends next: strict priority or weighted rounds, and the token bucket that
//! holds credits back.

use weft_transport::CreditPorts;

use super::link::Profile;

/// How a port chooses among the classes that have a packet ready: the first of them, or, of those
/// from `ahead` on, each in its turn, as much as its weight allows.
#[derive(Debug)]
pub struct Scheduler {
    /// Classes that always go first, in order.
    ahead: usize,
    /// The turns of the others; none for strict priority.
    rounds: Option<Box<Rounds>>,
}

/// Deficit round robin (Shreedhar and Varghese, IEEE/ACM Transactions on Networking, 1996): in its
/// turn a class may send its quantum and what it left over before. After any number of whole rounds
/// a class that always had packets has sent so many quanta, less at most one packet.
#[derive(Debug)]
pub struct Rounds {
    /// Bytes in each turn.
    quanta: Box<[u64]>,
    /// Bytes left over, by class.
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

    /// Whether priority is strict.
    #[inline]
    pub const fn is_strict(&self) -> bool {
        self.rounds.is_none()
    }

    /// Turns, behind as many classes as always go first.
    pub fn weighted(ahead: usize, rounds: Rounds) -> Self {
        Self { ahead, rounds: Some(Box::new(rounds)) }
    }

    /// The class that sends next. `ready` gives the bytes on the wire of a class's first packet, if
    /// it may leave now.
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

    /// How long what waits in the classes (in ps, each) takes until a packet that comes to `class`
    /// now is sent, if nothing else comes.
    pub fn ahead_of(&self, class: usize, waiting_ps: impl Fn(usize) -> u64) -> u64 {
        let (Some(rounds), Some(place)) = (&self.rounds, class.checked_sub(self.ahead)) else {
            return (0..=class).map(waiting_ps).sum();
        };
        // While the class sends what waits in it, each other class sends its share, or all that it
        // has.
        let (own, quantum) = (u128::from(waiting_ps(class)), u128::from(rounds.quanta[place]));
        let share = |(other, &its): (usize, &u64)| {
            let most = u64::try_from(own * u128::from(its) / quantum).unwrap_or(u64::MAX);
            waiting_ps(self.ahead + other).min(most)
        };
        let first: u64 = (0..self.ahead).map(&waiting_ps).sum();
        rounds.quanta.iter().enumerate().map(share).fold(first, u64::saturating_add)
    }
}

/// Limits credits to their share of the link.
///
/// It is exact: it is kept as the moment when it will be full again ("virtual scheduling", ITU-T
/// I.371), in picoseconds and a fraction. The tokens for one credit fill in the time that a credit
/// and the frame that it calls for take on the link (MaxPass §III.A: 84 / (84 + 1538)). Where
/// credits differ in size, those for a part of a credit take a part of that time; a packet goes at
/// the first whole byte time of the link by which its own are there.
#[derive(Debug)]
pub struct TokenBucket {
    rules: CreditPorts,
    /// How long the tokens for one credit take to fill at the link's rate of now, and how long a
    /// byte takes, in ps.
    pair_ps: u64,
    byte_ps: u64,
    /// See [`Self::offsets`]: those of a credit of the usual size, if no part of one is to fill.
    ahead_ps: u64,
    behind_ps: u64,
    tokens: Tokens,
}

/// Level of a bucket, as the time at which it is full again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// This, in ps, ...
    pub full_at: u64,
    /// ... and the time that tokens for so many bytes take to fill; fewer than a credit has.
    pub part: u32,
}

impl TokenBucket {
    /// A full one.
    pub fn new(rules: CreditPorts, profile: &Profile) -> Self {
        let mut bucket = Self {
            rules,
            pair_ps: 0,
            byte_ps: 0,
            ahead_ps: 0,
            behind_ps: 0,
            tokens: Tokens { full_at: 0, part: 0 },
        };
        bucket.follow(profile);
        bucket
    }

    /// The link has this profile from now on.
    pub fn follow(&mut self, profile: &Profile) {
        let CreditPorts { credit_bytes, frame_bytes, .. } = self.rules;
        self.pair_ps = profile.service_ps(credit_bytes) + profile.service_ps(frame_bytes);
        self.byte_ps = profile.byte_ps();
        (self.ahead_ps, self.behind_ps) = self.offsets(0, credit_bytes);
    }

    /// Whether that is a credit of the usual size, and no part of one is to fill: then nothing is
    /// divided.
    #[inline]
    const fn is_usual(&self, wire_bytes: u16) -> bool {
        self.tokens.part == 0 && wire_bytes == self.rules.credit_bytes
    }

    /// When it has enough for a packet of `wire_bytes`, in ps.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn ready_at(&self, wire_bytes: u16) -> u64 {
        if self.is_usual(wire_bytes) {
            return (self.tokens.full_at + self.behind_ps).saturating_sub(self.ahead_ps);
        }
        self.filled_at(self.tokens, wire_bytes)
    }

    /// When it would have enough for a packet of `wire_bytes` that comes `now`, in ps: behind
    /// packets of `before` bytes that wait for theirs.
    pub fn ready_behind(&self, now: u64, before: u64, wire_bytes: u16) -> u64 {
        self.filled_at(self.fills_until(now, before), wire_bytes)
    }

    /// When it has enough for a packet of `wire_bytes`, in ps, if this is what it has.
    #[inline(never)]
    fn filled_at(&self, tokens: Tokens, wire_bytes: u16) -> u64 {
        let (ahead_ps, behind_ps) = self.offsets(tokens.part, wire_bytes);
        tokens.full_at.saturating_add(behind_ps).saturating_sub(ahead_ps)
    }

    /// How long before it is full again, but for part of a credit, it has enough for a packet of
    /// `wire_bytes`, and how long after that, in ps: the first less the second.
    fn offsets(&self, full_part: u32, wire_bytes: u16) -> (u64, u64) {
        let credit = u32::from(self.rules.credit_bytes);
        // Tokens are what the bucket holds less what fills until it is full.
        let spare = u32::from(self.rules.burst_bytes.saturating_sub(wire_bytes));
        // It is there so many credits before it is full, and the time for a part of one later.
        let (credits, part) = match spare.checked_sub(full_part) {
            Some(earlier) if earlier % credit == 0 => (earlier / credit, 0),
            Some(earlier) => (earlier / credit + 1, credit - earlier % credit),
            None => (0, full_part - spare),
        };
        let behind_ps = if part == 0 { 0 } else { self.part_ps(part) };
        (self.pair_ps * u64::from(credits), behind_ps)
    }

    /// How long `part` of the bytes of a credit take to fill, in whole byte times of the link, in
    /// ps.
    #[cold]
    fn part_ps(&self, part: u32) -> u64 {
        let credit = u64::from(self.rules.credit_bytes);
        (self.pair_ps * u64::from(part)).div_ceil(credit * self.byte_ps) * self.byte_ps
    }

    /// Whether it has enough for a packet of `wire_bytes`, which then leaves now.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn take_if_ready(&mut self, now: u64, wire_bytes: u16) -> bool {
        if !self.is_usual(wire_bytes) {
            return self.take_part_if_ready(now, wire_bytes);
        }
        let is_ready = self.tokens.full_at + self.behind_ps <= now + self.ahead_ps;
        if is_ready {
            self.tokens.full_at = self.tokens.full_at.max(now) + self.pair_ps;
        }
        is_ready
    }

    #[inline(never)]
    fn take_part_if_ready(&mut self, now: u64, wire_bytes: u16) -> bool {
        let is_ready = self.ready_at(wire_bytes) <= now;
        if is_ready {
            self.take(now, wire_bytes);
        }
        is_ready
    }

    /// A packet of `wire_bytes` leaves at `now`.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn take(&mut self, now: u64, wire_bytes: u16) {
        if self.is_usual(wire_bytes) {
            self.tokens.full_at = self.tokens.full_at.max(now) + self.pair_ps;
        } else {
            self.tokens = self.fills_until(now, wire_bytes.into());
        }
    }

    /// A packet of `wire_bytes` leaves as soon as it has enough, but not before `earliest`. Returns
    /// when, in ps.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn take_from(&mut self, earliest: u64, wire_bytes: u16) -> u64 {
        if !self.is_usual(wire_bytes) {
            return self.take_part_from(earliest, wire_bytes);
        }
        let at = self.ready_at(wire_bytes).max(earliest);
        self.take(at, wire_bytes);
        at
    }

    #[inline(never)]
    fn take_part_from(&mut self, earliest: u64, wire_bytes: u16) -> u64 {
        let at = self.ready_at(wire_bytes).max(earliest);
        self.take(at, wire_bytes);
        at
    }

    /// Level of the bucket.
    pub const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// It has this again.
    pub const fn set_tokens(&mut self, tokens: Tokens) {
        self.tokens = tokens;
    }

    /// Level of the bucket when packets of so many bytes leave `now`.
    #[inline(never)]
    fn fills_until(&self, now: u64, bytes: u64) -> Tokens {
        let Tokens { full_at, part } =
            if self.is_full(now) { Tokens { full_at: now, part: 0 } } else { self.tokens };
        let (credit, part) = (u64::from(self.rules.credit_bytes), u64::from(part) + bytes);
        let whole = self.pair_ps.saturating_mul(part / credit);
        Tokens { full_at: full_at.saturating_add(whole), part: (part % credit) as u32 }
    }

    /// Whether the part is full, too, that takes its share of `pair_ps` to fill from `full_at` on.
    /// That is less than the whole: so no product is larger than a credit's bytes times `pair_ps`.
    #[inline]
    fn is_full(&self, now: u64) -> bool {
        let Tokens { full_at, part } = self.tokens;
        let needed = || self.pair_ps * u64::from(part);
        now.checked_sub(full_at).is_some_and(|since| {
            part == 0 || since >= self.pair_ps || since * u64::from(self.rules.credit_bytes) >= needed()
        })
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
        // Two packets of 1,200 in the first turn, and three in the second with the 600 that were
        // left over.
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

    /// The profile of a link of so many Mbit/s.
    fn profile(mbps: u64) -> Profile {
        let spec: weft_topology::FabricSpec =
            toml::from_str(&format!("kind = 'leaf-spine'\nhost_rate = '{mbps}Mbps'")).expect("a fabric");
        let fabric = spec.build(1, std::path::Path::new(".")).expect("a fabric");
        let link = &fabric.topology.links[0];
        Profile::new(link, &link.condition, &fabric.topology)
    }

    /// When credits of these sizes leave that all wait from the beginning, in ps.
    fn departures(profile: &Profile, sizes: &[u16]) -> Vec<u64> {
        let rules = CreditPorts { credit_bytes: 84, frame_bytes: 1_538, queue: 8, burst_bytes: 168 };
        let (mut bucket, mut free_at) = (TokenBucket::new(rules, profile), 0);
        let leave = |&size: &u16| {
            let at = free_at.max(bucket.ready_at(size));
            bucket.take(at, size);
            free_at = at + profile.service_ps(size);
            at
        };
        sizes.iter().map(leave).collect()
    }

    #[test]
    fn credits_of_any_size_leave_at_whole_bytes_and_at_their_share_in_the_long_run() {
        let sizes: Vec<u16> = (0..10_000u16).map(|number| 76 + number % 17).collect();
        let left = departures(&profile(10_000), &sizes);
        assert!(left.iter().all(|at| at % 800 == 0), "a byte takes 800 ps");
        // All but a burst of two credits fill at 84 in the time of 84 + 1,538, rounded up to a byte
        // time once, not each time.
        let sum: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
        let last = left[left.len() - 1];
        let exact = (u128::from(sum - 168) * 1_622 * 800).div_ceil(84) as u64;
        assert!((exact..exact + 800).contains(&last), "{last} is not {exact}");
        let slow = departures(&profile(1_000), &sizes);
        assert!(left.iter().zip(&slow).all(|(fast, slow)| fast * 10 == *slow), "at any scale");
    }
}
