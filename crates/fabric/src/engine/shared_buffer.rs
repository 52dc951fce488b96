//! The memory that the ports of a switch share: what comes in takes of it until its transmission
//! begins.
//!
//! A class of a port may hold `alpha` times what is free (Choudhury and Hahne, 1998), beyond its
//! reserve. A lossless class has no such limit. Its packets are on the account of the port by which
//! they came: when that has too much, the port before it is told to pause (IEEE 802.1Qbb), and what
//! comes until it does goes into headroom, which is kept free for that.
//!
//! What the scheme of the switch holds back waits here, too. Each of its queues counts as one more
//! queue, without a reserve, and when a packet goes on to a port, what it takes stays taken.

use weft_topology::{ClassSpec, PauseRules, SharedBufferRules, Xoff};

/// No port of arrival: a packet of the switch's own scheme.
pub const OWN: u16 = u16::MAX;

/// The port by which a packet will leave that is held back, if the scheme has still to choose.
pub const OPEN: u16 = u16::MAX;

/// Outcomes for a packet that is to wait.
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
pub struct BufferAccount {
    /// The port by which it came, or [`OWN`].
    pub came_by: u16,
    /// The port by which it will leave, or [`OPEN`].
    pub port: u16,
    /// Class of the packet.
    pub class: u8,
    /// In which queue of the switch's scheme, if it is held back; else at its port.
    pub held_in: Option<u32>,
}

/// Limits on the share of a class.
#[derive(Debug, Clone, Copy)]
struct ClassQuota {
    alpha: f64,
    reserve: u64,
    lossless: bool,
}

/// Bytes that came by one port in one lossless class and wait.
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
pub struct SharedBuffer {
    ports: usize,
    shares: Box<[ClassQuota]>,
    pause: Option<PauseRules>,
    /// Bytes that ports share: all less reserves and headrooms.
    shared: u64,
    /// Bytes of the shared part that are taken.
    used: u64,
    /// Bytes that wait, headroom and reserves included; the most that ever did, and since somebody
    /// last asked.
    held: u64,
    peak: u64,
    recent_peak: u64,
    /// By port by which they will leave, and class: bytes that wait.
    egress: Box<[u64]>,
    /// By queue of the switch's scheme: bytes that are held back.
    held_back: Vec<u64>,
    /// By port by which they came, and class; empty if nobody is paused.
    ingress: Box<[Ingress]>,
    /// By port by which they came, class, and port by which they will leave: bytes that wait; empty
    /// if nobody is paused.
    crossing: Box<[u64]>,
}

impl SharedBuffer {
    /// The memory of a switch whose ports have these classes each, with so much headroom for each
    /// port.
    pub fn new(rules: &SharedBufferRules, classes: &[ClassSpec], headrooms: &[u64]) -> Self {
        let share = |class: &ClassSpec| ClassQuota {
            alpha: class.alpha.unwrap_or(rules.alpha),
            reserve: class.reserve.map_or(rules.reserve, weft_units::Bytes::as_u64),
            lossless: class.lossless,
        };
        let shares: Box<[ClassQuota]> = classes.iter().map(share).collect();
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
            held_back: Vec::new(),
            ingress: if pauses { (0..ports * count).map(ingress).collect() } else { Box::default() },
            crossing: if pauses { vec![0; ports * count * ports].into() } else { Box::default() },
            shares,
        }
    }

    /// Bytes of reserves and headrooms: what ports do not share.
    pub fn kept_back(rules: &SharedBufferRules, classes: &[ClassSpec], headrooms: &[u64]) -> u64 {
        let reserve = |class: &ClassSpec| class.reserve.map_or(rules.reserve, weft_units::Bytes::as_u64);
        let reserves: u64 = classes.iter().map(reserve).fold(0, u64::saturating_add);
        let lossless = classes.iter().filter(|class| class.lossless).count() as u64;
        let headroom: u64 = headrooms.iter().copied().fold(0, u64::saturating_add);
        reserves.saturating_mul(headrooms.len() as u64).saturating_add(headroom.saturating_mul(lossless))
    }

    /// Bytes in the queue where a packet waits, or is to.
    fn queued(&self, at: BufferAccount) -> u64 {
        match at.held_in {
            None => self.egress[self.place(at.port, at.class)],
            Some(queue) => self.held_back.get(queue as usize).copied().unwrap_or_default(),
        }
    }

    /// Bytes queued in this account, to be changed.
    fn queued_mut(&mut self, at: BufferAccount) -> &mut u64 {
        let Some(queue) = at.held_in else {
            let place = self.place(at.port, at.class);
            return &mut self.egress[place];
        };
        let queue = queue as usize;
        self.held_back.resize(self.held_back.len().max(queue + 1), 0);
        &mut self.held_back[queue]
    }

    /// Bytes of a queue that are not of the shared part.
    fn reserve_of(&self, at: BufferAccount) -> u64 {
        if at.held_in.is_some() { 0 } else { self.shares[usize::from(at.class)].reserve }
    }

    /// Where the books of a port and class are.
    const fn place(&self, port: u16, class: u8) -> usize {
        port as usize * self.shares.len() + class as usize
    }

    /// Whether packets of this class that came by a port are on that port's account.
    fn is_on_ingress(&self, at: BufferAccount) -> bool {
        at.came_by != OWN && !self.ingress.is_empty() && self.shares[usize::from(at.class)].lossless
    }

    const fn free(&self) -> u64 {
        self.shared.saturating_sub(self.used)
    }

    /// Bytes of the shared part that `bytes` more take, if `held` are there and `reserve` are not
    /// of the shared part.
    const fn growth(held: u64, bytes: u64, reserve: u64) -> u64 {
        (held + bytes).saturating_sub(reserve) - held.saturating_sub(reserve)
    }

    /// A packet of so many bytes is to wait.
    pub fn admit(&mut self, at: BufferAccount, bytes: u64) -> Admitted {
        let admitted =
            if self.is_on_ingress(at) { self.admit_lossless(at, bytes) } else { self.admit_lossy(at, bytes) };
        if matches!(admitted, Admitted::Taken | Admitted::TakenAndPaused) {
            *self.queued_mut(at) += bytes;
            self.held += bytes;
            self.recent_peak = self.recent_peak.max(self.held);
            self.peak = self.peak.max(self.held);
        }
        admitted
    }

    fn admit_lossy(&mut self, at: BufferAccount, bytes: u64) -> Admitted {
        let (share, held, reserve) =
            (self.shares[usize::from(at.class)], self.queued(at), self.reserve_of(at));
        let growth = Self::growth(held, bytes, reserve);
        let beyond = (held + bytes).saturating_sub(reserve);
        // In a lossless class here are packets of the switch itself: nobody could be paused, and
        // they are taken in any case.
        let is_full =
            growth > self.free() || (beyond > 0 && beyond as f64 > share.alpha * self.free() as f64);
        if is_full && !share.lossless {
            return Admitted::NoRoom;
        }
        self.used += growth;
        Admitted::Taken
    }

    fn admit_lossless(&mut self, at: BufferAccount, bytes: u64) -> Admitted {
        let (place, reserve) = (self.place(at.came_by, at.class), self.shares[usize::from(at.class)].reserve);
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
        if let Some(crossing) = self.crossing_of(at) {
            *crossing += bytes;
        }
        admitted
    }

    /// Bytes that go the same way; none of which that is not known.
    fn crossing_of(&mut self, at: BufferAccount) -> Option<&mut u64> {
        let place = self.place(at.came_by, at.class) * self.ports + at.port as usize;
        if at.port == OPEN { None } else { self.crossing.get_mut(place) }
    }

    /// A packet that was held back waits at a port from now on. What it takes stays taken: nothing
    /// is asked, and nobody told.
    pub fn moves(&mut self, from: BufferAccount, to: BufferAccount, bytes: u64) {
        debug_assert!((from.came_by, from.class) == (to.came_by, to.class), "it is on the same account");
        if self.is_on_ingress(from) {
            if let Some(crossing) = self.crossing_of(from) {
                *crossing -= bytes;
            }
            if let Some(crossing) = self.crossing_of(to) {
                *crossing += bytes;
            }
        } else {
            self.used -= Self::growth(self.queued(from) - bytes, bytes, self.reserve_of(from));
            self.used += Self::growth(self.queued(to), bytes, self.reserve_of(to));
        }
        *self.queued_mut(from) -= bytes;
        *self.queued_mut(to) += bytes;
    }

    /// With more than this on its account beyond its reserve, the port before a port is paused, if
    /// so much is free.
    fn xoff(&self, free: u64) -> u64 {
        match self.pause.map(|pause| pause.xoff) {
            Some(Xoff::Share(alpha)) => (alpha * free as f64) as u64,
            Some(Xoff::Bytes(bytes)) => bytes,
            None => u64::MAX,
        }
    }

    /// A packet no longer waits. True if the port before the one by which it came may go on with
    /// its class.
    pub fn release(&mut self, at: BufferAccount, bytes: u64) -> bool {
        *self.queued_mut(at) -= bytes;
        self.held -= bytes;
        if !self.is_on_ingress(at) {
            self.used -= Self::growth(self.queued(at), bytes, self.reserve_of(at));
            return false;
        }
        if let Some(crossing) = self.crossing_of(at) {
            *crossing -= bytes;
        }
        let reserve = self.shares[usize::from(at.class)].reserve;
        let place = self.place(at.came_by, at.class);
        let ingress = &mut self.ingress[place];
        // What came last goes out of the books first: so headroom is free again as soon as it can
        // be.
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

    /// The port by which most of that will leave which came by this port in this class and waits;
    /// the first of several. None if it is not known of any of it.
    pub fn blamed(&self, came_by: u16, class: u8) -> Option<u16> {
        let first = self.place(came_by, class) * self.ports;
        let all = self.crossing.get(first..first + self.ports).unwrap_or_default();
        let most =
            (0..).zip(all).max_by_key(|&(port, bytes): &(u16, &u64)| (*bytes, std::cmp::Reverse(port)));
        most.filter(|(_, bytes)| **bytes > 0).map(|(port, _)| port)
    }

    /// Bytes that wait in all, and the most since this was last asked.
    pub const fn take_peak(&mut self) -> (u64, u64) {
        (self.held, std::mem::replace(&mut self.recent_peak, self.held))
    }

    /// The most bytes that ever waited.
    pub const fn peak(&self) -> u64 {
        self.peak
    }

    /// The lossless classes, and whether the port before this one has to pause each; none if nobody
    /// is paused.
    pub fn pauses_before(&self, port: u16) -> impl Iterator<Item = (u8, bool)> + use<'_> {
        let first = self.place(port, 0);
        let own = self.ingress.get(first..first + self.shares.len()).unwrap_or_default();
        let known = (0..).zip(own.iter().zip(&self.shares));
        known.filter(|(_, (_, share))| share.lossless).map(|(class, (ingress, _))| (class, ingress.is_paused))
    }

    /// The ports and classes before which a port is told to pause.
    pub fn paused(&self) -> impl Iterator<Item = (u16, u8)> + use<'_> {
        let count = self.shares.len();
        let paused = self.ingress.iter().enumerate().filter(|(_, ingress)| ingress.is_paused);
        paused.map(move |(place, _)| ((place / count) as u16, (place % count) as u8))
    }

    /// Bytes that came by this port in this class and wait for the ports of which that is said.
    pub fn stuck(&self, came_by: u16, class: u8, is_stuck: impl Fn(u16) -> bool) -> u64 {
        let first = self.place(came_by, class) * self.ports;
        let all = self.crossing.get(first..first + self.ports).unwrap_or_default();
        (0..)
            .zip(all)
            .filter(|&(port, bytes): &(u16, &u64)| *bytes > 0 && is_stuck(port))
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// Whether a port that is paused before this account stays so, with so many bytes that never
    /// leave on it and no other packet in the memory but `all_stuck` of such bytes.
    pub fn stays_paused(&self, came_by: u16, class: u8, stuck: u64, all_stuck: u64) -> bool {
        let ingress = self.ingress[self.place(came_by, class)];
        let reserve = self.shares[usize::from(class)].reserve;
        let drained = (ingress.bytes + ingress.in_headroom).saturating_sub(stuck);
        let in_headroom = ingress.in_headroom.saturating_sub(drained);
        let left = Ingress { bytes: stuck - in_headroom, in_headroom, ..ingress };
        stuck > 0 && !self.may_go_on(left, reserve, self.shared.saturating_sub(all_stuck))
    }
}

#[cfg(test)]
mod tests;
