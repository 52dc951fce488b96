//! The memory that the ports of a switch share: what comes in takes of it until its transmission begins.
//!
//! A class of a port may hold `alpha` times what is free (Choudhury and Hahne, 1998), beyond its reserve. A lossless class has no
//! such limit. Its packets are on the account of the port by which they came: when that has too much, the port before it is told
//! to pause (IEEE 802.1Qbb), and what comes until it does goes into headroom, which is kept free for that.

use weft_topology::{ClassSpec, PauseRules, SwitchMemory, Xoff};

/// What came by no port: a packet of the switch's own scheme.
pub const OWN: u16 = u16::MAX;

/// What becomes of a packet that is to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It waits.
    Taken,
    /// It waits, and the port before the one by which it came is to pause its class.
    TakenAndPaused,
    /// There is no room for its class.
    NoRoom,
    /// It came after a pause, and there is no headroom left.
    NoHeadroom,
}

/// Where a packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The port by which it came, or [`OWN`].
    pub came_by: u16,
    /// The port by which it will leave.
    pub port: u16,
    /// Its class.
    pub class: u8,
}

/// What a class may take.
#[derive(Debug, Clone, Copy)]
struct Share {
    alpha: f64,
    reserve: u64,
    lossless: bool,
}

/// What came by one port in one lossless class and waits, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Ingress {
    /// In the shared part and the reserve.
    bytes: u64,
    /// In headroom: what came after the pause.
    in_headroom: u64,
    /// The headroom there is.
    headroom: u64,
    /// Whether the port before is told to pause.
    is_paused: bool,
}

/// The memory of one switch.
#[derive(Debug)]
pub struct Memory {
    ports: usize,
    shares: Box<[Share]>,
    pause: Option<PauseRules>,
    /// What ports share: all less reserves and headrooms.
    shared: u64,
    /// What of it is taken.
    used: u64,
    /// Bytes that wait, headroom and reserves included; the most that ever did, and since somebody last asked.
    held: u64,
    peak: u64,
    recent_peak: u64,
    /// By port by which they will leave, and class: bytes that wait.
    egress: Box<[u64]>,
    /// By port by which they came, and class; empty if nobody is paused.
    ingress: Box<[Ingress]>,
    /// By port by which they came, class, and port by which they will leave: bytes that wait; empty if nobody is paused.
    crossing: Box<[u64]>,
}

impl Memory {
    /// The memory of a switch whose ports have these classes each, with so much headroom for each port.
    pub fn new(rules: &SwitchMemory, classes: &[ClassSpec], headrooms: &[u64]) -> Self {
        let share = |class: &ClassSpec| Share {
            alpha: class.alpha.unwrap_or(rules.alpha),
            reserve: class.reserve.map_or(rules.reserve, weft_units::Bytes::as_u64),
            lossless: class.lossless,
        };
        let shares: Box<[Share]> = classes.iter().map(share).collect();
        let (ports, count) = (headrooms.len(), shares.len());
        let kept = Self::kept_back(rules, classes, headrooms);
        let ingress = |place: usize| Ingress {
            headroom: if shares[place % count].lossless { headrooms[place / count] } else { 0 },
            ..Ingress::default()
        };
        let pauses = rules.pause.is_some();
        Self {
            ports,
            pause: rules.pause,
            shared: rules.bytes.saturating_sub(kept),
            used: 0,
            held: 0,
            peak: 0,
            recent_peak: 0,
            egress: vec![0; ports * count].into(),
            ingress: if pauses { (0..ports * count).map(ingress).collect() } else { Box::default() },
            crossing: if pauses { vec![0; ports * count * ports].into() } else { Box::default() },
            shares,
        }
    }

    /// Bytes of reserves and headrooms: what ports do not share.
    pub fn kept_back(rules: &SwitchMemory, classes: &[ClassSpec], headrooms: &[u64]) -> u64 {
        let reserve = |class: &ClassSpec| class.reserve.map_or(rules.reserve, weft_units::Bytes::as_u64);
        let reserves: u64 = classes.iter().map(reserve).fold(0, u64::saturating_add);
        let lossless = classes.iter().filter(|class| class.lossless).count() as u64;
        let headroom: u64 = headrooms.iter().copied().fold(0, u64::saturating_add);
        reserves.saturating_mul(headrooms.len() as u64).saturating_add(headroom.saturating_mul(lossless))
    }

    const fn egress_place(&self, at: At) -> usize {
        at.port as usize * self.shares.len() + at.class as usize
    }

    const fn ingress_place(&self, port: u16, class: u8) -> usize {
        port as usize * self.shares.len() + class as usize
    }

    /// Whether packets of this class that came by a port are on that port's account.
    fn is_on_ingress(&self, at: At) -> bool {
        at.came_by != OWN && !self.ingress.is_empty() && self.shares[usize::from(at.class)].lossless
    }

    const fn free(&self) -> u64 {
        self.shared - self.used
    }

    /// What `bytes` more of the shared part take, if `held` are there and `reserve` are not of the shared part.
    const fn growth(held: u64, bytes: u64, reserve: u64) -> u64 {
        (held + bytes).saturating_sub(reserve) - held.saturating_sub(reserve)
    }

    /// A packet of so many bytes is to wait.
    pub fn admit(&mut self, at: At, bytes: u64) -> Admitted {
        let admitted =
            if self.is_on_ingress(at) { self.admit_lossless(at, bytes) } else { self.admit_lossy(at, bytes) };
        if matches!(admitted, Admitted::Taken | Admitted::TakenAndPaused) {
            let place = self.egress_place(at);
            self.egress[place] += bytes;
            self.held += bytes;
            self.recent_peak = self.recent_peak.max(self.held);
            self.peak = self.peak.max(self.held);
        }
        admitted
    }

    fn admit_lossy(&mut self, at: At, bytes: u64) -> Admitted {
        let (share, held) = (self.shares[usize::from(at.class)], self.egress[self.egress_place(at)]);
        let growth = Self::growth(held, bytes, share.reserve);
        let beyond = (held + bytes).saturating_sub(share.reserve);
        // A lossless class takes what is there: here are packets of its own switch.
        let limit = if share.lossless { f64::INFINITY } else { share.alpha * self.free() as f64 };
        if growth > self.free() || (beyond > 0 && beyond as f64 > limit) {
            return Admitted::NoRoom;
        }
        self.used += growth;
        Admitted::Taken
    }

    fn admit_lossless(&mut self, at: At, bytes: u64) -> Admitted {
        let (place, reserve) =
            (self.ingress_place(at.came_by, at.class), self.shares[usize::from(at.class)].reserve);
        let (free, ingress) = (self.free(), self.ingress[place]);
        let growth = Self::growth(ingress.bytes, bytes, reserve);
        let beyond = (ingress.bytes + bytes).saturating_sub(reserve);
        let fits = growth <= free && beyond <= self.xoff(free);
        let ingress = &mut self.ingress[place];
        let admitted = if fits && !ingress.is_paused {
            ingress.bytes += bytes;
            self.used += growth;
            Admitted::Taken
        } else if ingress.in_headroom + bytes <= ingress.headroom {
            ingress.in_headroom += bytes;
            if std::mem::replace(&mut ingress.is_paused, true) {
                Admitted::Taken
            } else {
                Admitted::TakenAndPaused
            }
        } else {
            return Admitted::NoHeadroom;
        };
        let crossing = self.crossing_place(at);
        self.crossing[crossing] += bytes;
        admitted
    }

    const fn crossing_place(&self, at: At) -> usize {
        self.ingress_place(at.came_by, at.class) * self.ports + at.port as usize
    }

    /// With more than this on its account beyond its reserve, the port before a port is paused, if so much is free.
    fn xoff(&self, free: u64) -> u64 {
        match self.pause.map(|pause| pause.xoff) {
            Some(Xoff::Share(alpha)) => (alpha * free as f64) as u64,
            Some(Xoff::Bytes(bytes)) => bytes,
            None => u64::MAX,
        }
    }

    /// A packet no longer waits. True if the port before the one by which it came may go on with its class.
    pub fn release(&mut self, at: At, bytes: u64) -> bool {
        let place = self.egress_place(at);
        let held = self.egress[place];
        self.egress[place] -= bytes;
        self.held -= bytes;
        let reserve = self.shares[usize::from(at.class)].reserve;
        if !self.is_on_ingress(at) {
            self.used -= Self::growth(held - bytes, bytes, reserve);
            return false;
        }
        let crossing = self.crossing_place(at);
        self.crossing[crossing] -= bytes;
        let place = self.ingress_place(at.came_by, at.class);
        let ingress = &mut self.ingress[place];
        // What came last goes out of the books first: so headroom is free again as soon as it can be.
        let of_headroom = bytes.min(ingress.in_headroom);
        ingress.in_headroom -= of_headroom;
        let rest = bytes - of_headroom;
        ingress.bytes -= rest;
        self.used -= Self::growth(ingress.bytes, rest, reserve);
        let goes_on = ingress.is_paused && self.may_go_on(self.ingress[place], reserve, self.free());
        if goes_on {
            self.ingress[place].is_paused = false;
        }
        goes_on
    }

    /// Whether a port that is paused before this account goes on, if so much is free.
    fn may_go_on(&self, ingress: Ingress, reserve: u64, free: u64) -> bool {
        let hysteresis = self.pause.map_or(0, |pause| pause.hysteresis);
        let beyond = ingress.bytes.saturating_sub(reserve);
        ingress.in_headroom == 0 && (beyond == 0 || beyond <= self.xoff(free).saturating_sub(hysteresis))
    }

    /// The port by which most of that will leave which came by this port in this class and waits; the first of several.
    pub fn blamed(&self, came_by: u16, class: u8) -> u16 {
        let first = self.ingress_place(came_by, class) * self.ports;
        let all = self.crossing.get(first..first + self.ports).unwrap_or_default();
        let most =
            (0..).zip(all).max_by_key(|&(port, bytes): &(u16, &u64)| (*bytes, std::cmp::Reverse(port)));
        most.map_or(0, |(port, _)| port)
    }

    /// Bytes that wait in all, and the most since this was last asked.
    pub const fn take_peak(&mut self) -> (u64, u64) {
        (self.held, std::mem::replace(&mut self.recent_peak, self.held))
    }

    /// The most bytes that ever waited.
    pub const fn peak(&self) -> u64 {
        self.peak
    }

    /// The ports and classes before which a port is told to pause.
    pub fn paused(&self) -> impl Iterator<Item = (u16, u8)> + use<'_> {
        let count = self.shares.len();
        let paused = self.ingress.iter().enumerate().filter(|(_, ingress)| ingress.is_paused);
        paused.map(move |(place, _)| ((place / count) as u16, (place % count) as u8))
    }

    /// Bytes that came by this port in this class and wait for the ports of which that is said.
    pub fn stuck(&self, came_by: u16, class: u8, is_stuck: impl Fn(u16) -> bool) -> u64 {
        let first = self.ingress_place(came_by, class) * self.ports;
        let all = self.crossing.get(first..first + self.ports).unwrap_or_default();
        (0..)
            .zip(all)
            .filter(|&(port, bytes): &(u16, &u64)| *bytes > 0 && is_stuck(port))
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// Whether a port that is paused before this account stays so, with so many bytes that never leave on it and no other packet
    /// in the memory but `all_stuck` of such bytes.
    pub fn stays_paused(&self, came_by: u16, class: u8, stuck: u64, all_stuck: u64) -> bool {
        let ingress = self.ingress[self.ingress_place(came_by, class)];
        let reserve = self.shares[usize::from(class)].reserve;
        let drained = (ingress.bytes + ingress.in_headroom).saturating_sub(stuck);
        let in_headroom = ingress.in_headroom.saturating_sub(drained);
        let left = Ingress { bytes: stuck - in_headroom, in_headroom, ..ingress };
        stuck > 0 && !self.may_go_on(left, reserve, self.shared.saturating_sub(all_stuck))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_topology::{Limit, Marking, QueueSpec};
    use weft_units::{Bytes, Span};

    use super::*;

    fn class(lossless: bool) -> ClassSpec {
        let queue = QueueSpec { limit: Limit::Unlimited, marking: Marking::Never };
        ClassSpec { lossless, ..ClassSpec::plain(queue, 1) }
    }

    fn rules(bytes: u64, xoff: Option<Xoff>) -> SwitchMemory {
        let pause = xoff.map(|xoff| PauseRules {
            xoff,
            hysteresis: 2_000,
            response: None,
            headroom: None,
            look_every: Span::from_ms(1),
        });
        SwitchMemory { bytes, alpha: 1.0, reserve: 0, pause }
    }

    const fn at(came_by: u16, port: u16, class: u8) -> At {
        At { came_by, port, class }
    }

    #[test]
    fn one_queue_holds_half_and_two_a_third_each_with_an_alpha_of_one() {
        // Choudhury and Hahne, eq. 3: each of n queues gets alpha B / (1 + alpha n).
        let mut memory = Memory::new(&rules(90_000, None), &[class(false)], &[0; 4]);
        let mut fill = |port: u16| -> u64 {
            (0..1_000).take_while(|_| memory.admit(at(3, port, 0), 100) == Admitted::Taken).count() as u64
                * 100
        };
        assert_eq!(fill(0), 45_000);
        assert_eq!(fill(1), 22_500, "half of what is left");
        for _ in 0..150 {
            assert!(!memory.release(at(3, 0, 0), 100));
        }
        while memory.admit(at(3, 1, 0), 100) == Admitted::Taken {}
        assert_eq!([memory.egress[0], memory.egress[1]], [30_000, 30_000]);
        assert_eq!(memory.free(), 30_000);
    }

    #[test]
    fn a_reserve_is_there_when_nothing_else_is() {
        let with_reserve = ClassSpec { reserve: Some(Bytes::new(1_000)), ..class(false) };
        let mut memory = Memory::new(&rules(10_000, None), &[class(false), with_reserve], &[0; 2]);
        assert_eq!(memory.shared, 8_000);
        let greedy = ClassSpec { alpha: Some(1_000.0), ..class(false) };
        let mut greedy = Memory::new(&rules(10_000, None), &[greedy, with_reserve], &[0; 2]);
        while greedy.admit(at(0, 0, 0), 100) == Admitted::Taken {}
        assert!(greedy.free() < 100);
        assert_eq!(greedy.admit(at(0, 1, 1), 1_000), Admitted::Taken);
        assert_eq!(greedy.admit(at(0, 1, 1), 100), Admitted::NoRoom);
        assert_eq!(memory.admit(at(0, 1, 1), 1_000), Admitted::Taken);
        assert_eq!(memory.free(), 8_000, "a reserve is not of the shared part");
    }

    #[test]
    fn a_lossless_class_pauses_at_xoff_fills_its_headroom_and_goes_on_below() {
        let mut memory = Memory::new(&rules(100_000, Some(Xoff::Bytes(10_000))), &[class(true)], &[5_000; 3]);
        for _ in 0..10 {
            assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::Taken);
        }
        assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::TakenAndPaused);
        assert_eq!(memory.paused().collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(memory.blamed(0, 0), 2);
        for _ in 0..4 {
            assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::Taken);
        }
        assert_eq!(memory.admit(at(0, 2, 0), 1_000), Admitted::NoHeadroom);
        assert_eq!(memory.admit(at(1, 2, 0), 1_000), Admitted::Taken, "another port is another account");
        // Five of headroom, and two of hysteresis.
        let released: Vec<bool> = (0..7).map(|_| memory.release(at(0, 2, 0), 1_000)).collect();
        assert_eq!(released, [false, false, false, false, false, false, true]);
        assert_eq!(memory.paused().count(), 0);
        assert_eq!(memory.held, 9_000);
    }

    #[test]
    fn what_never_leaves_keeps_a_port_paused_and_what_may_leave_does_not() {
        let mut memory = Memory::new(&rules(100_000, Some(Xoff::Bytes(4_000))), &[class(true)], &[5_000; 3]);
        for port in [1, 1, 1, 2, 2] {
            memory.admit(at(0, port, 0), 1_000);
        }
        let stuck = |ports: &[u16]| memory.stuck(0, 0, |port| ports.contains(&port));
        assert_eq!([stuck(&[1]), stuck(&[2]), stuck(&[1, 2])], [3_000, 2_000, 5_000]);
        assert!(memory.stays_paused(0, 0, stuck(&[1]), 3_000), "three are more than XON");
        assert!(!memory.stays_paused(0, 0, stuck(&[2]), 2_000));
        assert!(!memory.stays_paused(0, 0, 0, 0));
    }

    proptest! {
        #[test]
        fn books_are_even_whatever_comes_and_goes(
            steps in proptest::collection::vec((0u16..4, 0u16..4, 0u8..3, 64u64..4_200, any::<bool>()), 1..400),
            share in 0.05f64..4.0,
            reserve in 0u64..3_000,
        ) {
            let classes = [class(true), class(false), ClassSpec { reserve: Some(Bytes::new(reserve)), ..class(true) }];
            let mut memory = Memory::new(&rules(120_000, Some(Xoff::Share(share))), &classes, &[6_000; 4]);
            let mut waiting = Vec::new();
            let (mut paused, mut told) = (std::collections::BTreeSet::new(), 0u64);
            for (came_by, port, class, bytes, leaves) in steps {
                if leaves && !waiting.is_empty() {
                    let (place, bytes): (At, u64) = waiting.remove(0);
                    if memory.release(place, bytes) {
                        prop_assert!(paused.remove(&(place.came_by, place.class)), "only who is paused goes on");
                    }
                } else {
                    let place = at(came_by, port, class);
                    let admitted = memory.admit(place, bytes);
                    if admitted == Admitted::TakenAndPaused {
                        told += 1;
                        prop_assert!(paused.insert((came_by, class)), "nobody is told twice");
                    }
                    if matches!(admitted, Admitted::Taken | Admitted::TakenAndPaused) {
                        waiting.push((place, bytes));
                    }
                }
                prop_assert!(memory.used <= memory.shared);
                prop_assert_eq!(memory.held, waiting.iter().map(|(_, bytes)| bytes).sum::<u64>());
                prop_assert_eq!(memory.paused().collect::<std::collections::BTreeSet<_>>(), paused.clone());
            }
            for (place, bytes) in waiting {
                if memory.release(place, bytes) {
                    paused.remove(&(place.came_by, place.class));
                }
            }
            prop_assert_eq!((memory.held, memory.used), (0, 0));
            prop_assert!(paused.is_empty(), "an empty memory pauses nobody: {told}");
            prop_assert!(memory.crossing.iter().all(|bytes| *bytes == 0));
        }
    }
}
