//! Who the rack's proxy is. Beyond the paper, which leaves the single point of failure to consensus
//! protocols (§5).
//!
//! The hosts of a rack take turns in ascending order: in term `t`, the proxy is number `t mod n`.
//! All start in term 0. A host that has heard no view for `proxy_timeout` goes on to the next term.
//! Nobody is asked: all hosts miss the same views, and so come to the same host. Views and reports
//! carry the term, and the higher one wins:
//!
//! - a report of a higher term tells its receiver that it is the proxy now;
//! - a view of a higher term tells an old proxy that its time is over.
//!
//! A host that hears nothing at all is cut off itself. It stays in its term, so that it does not
//! take over when it is back.

use weft_units::{Span, Time};

use super::wire::Kind;

/// A host's idea of the term.
#[derive(Debug, Clone)]
pub struct Term {
    number: u32,
    members: u32,
    /// The host's own place in the rack.
    me: u32,
    /// When patience with the proxy of this term began: at its last view, or when its term did.
    waiting_since: Time,
    /// When a packet of any kind last came.
    heard: Time,
    /// The last view: of which term, and when.
    viewed: (u32, Time),
}

impl Term {
    /// Term 0 of a rack with this many hosts, for the one at place `me`.
    pub fn new(me: usize, members: usize) -> Self {
        let (me, members) = (me as u32, members.max(1) as u32);
        Self { number: 0, members, me, waiting_since: Time::ZERO, heard: Time::ZERO, viewed: (0, Time::ZERO) }
    }

    /// The number that goes into messages.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The proxy's place in the rack.
    pub const fn proxy(&self) -> usize {
        (self.number % self.members) as usize
    }

    /// Whether this host is the proxy.
    pub const fn is_mine(&self) -> bool {
        self.number % self.members == self.me
    }

    /// A packet came: the host is not cut off.
    #[inline]
    pub const fn hear(&mut self, now: Time) {
        self.heard = now;
    }

    /// When the last view came.
    pub const fn viewed_at(&self) -> Time {
        self.viewed.1
    }

    /// A message of this term came. False if the term is over.
    pub fn follow(&mut self, term: u32, now: Time) -> bool {
        if term > self.number {
            (self.number, self.waiting_since) = (term, now);
        }
        term == self.number
    }

    /// A view of this term came, or was made. If it is the first one of a new proxy: how long there
    /// was none.
    pub fn viewed(&mut self, now: Time) -> Option<Span> {
        let (term, before) = std::mem::replace(&mut self.viewed, (self.number, now));
        self.waiting_since = now;
        (term != self.number).then(|| now.since(before))
    }

    /// Goes on to the next term if the proxy has been silent for longer than `timeout`, and
    /// something else came in the last `update`.
    pub fn elect(&mut self, now: Time, timeout: Span, update: Span) {
        let silent = now.since(self.waiting_since) > timeout;
        let connected = now.since(self.heard) <= update;
        if silent && connected && !self.is_mine() && self.number < Kind::MAX_TERM {
            self.follow(self.number + 1, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATE: Span = Span::from_us(500);
    const TIMEOUT: Span = Span::from_us(1_500);

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn elect(term: &mut Term, us: u64) -> u32 {
        term.elect(at(us), TIMEOUT, UPDATE);
        term.number()
    }

    #[test]
    fn hosts_take_turns_and_begin_again() {
        let mut term = Term::new(1, 3);
        let proxies: Vec<_> = (0..5)
            .map(|number| {
                assert!(term.follow(number, at(0)));
                (term.proxy(), term.is_mine())
            })
            .collect();
        assert_eq!(proxies, [(0, false), (1, true), (2, false), (0, false), (1, true)]);
    }

    #[test]
    fn silence_longer_than_the_timeout_elects_the_next_host() {
        let mut term = Term::new(2, 4);
        assert_eq!(term.viewed(at(100)), None);
        term.hear(at(1_600));
        assert_eq!(elect(&mut term, 1_600), 0, "1,500 us of silence are not longer than the timeout");
        assert_eq!(elect(&mut term, 1_601), 1);
        // The next one gets as much time.
        term.hear(at(3_101));
        assert_eq!(elect(&mut term, 3_101), 1);
        assert_eq!(elect(&mut term, 3_102), 2);
        assert!(term.is_mine());
        assert_eq!(elect(&mut term, 9_000), 2, "a proxy does not wait for itself");
        assert_eq!(term.viewed(at(3_200)), Some(Span::from_us(3_100)), "from the last view of term 0");
        assert_eq!(term.viewed(at(3_700)), None);
    }

    #[test]
    fn a_host_that_hears_nothing_is_cut_off_itself_and_elects_nobody() {
        let mut term = Term::new(1, 2);
        term.viewed(at(100));
        term.hear(at(1_500));
        assert_eq!(elect(&mut term, 2_001), 0, "nothing came for 501 us");
        term.hear(at(2_001));
        assert_eq!(elect(&mut term, 2_002), 1);
    }

    #[test]
    fn the_higher_term_wins() {
        let mut old_proxy = Term::new(0, 3);
        assert!(old_proxy.is_mine());
        assert!(old_proxy.follow(1, at(10)), "the new proxy's view");
        assert!(!old_proxy.is_mine());
        assert!(!old_proxy.follow(0, at(20)), "a message of a term that is over");
        assert_eq!(old_proxy.proxy(), 1);
    }

    #[test]
    fn a_rack_of_one_host_is_its_own_proxy() {
        assert!(Term::new(0, 1).is_mine());
    }
}
