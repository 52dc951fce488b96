//! How long pauses stop the queue pairs of an RDMA card.
//!
//! A packet that waits at a port while its class is paused is blocked, and the port knows how long.
//! Of data that is pulled one packet waits there at most; the other queue pairs that have something
//! to send wait at the card, for their turn. While the class is paused they are stopped as that
//! packet is. Each brings what it was stopped to the port, with the packet that it sends next, and
//! so the switch behind tells for whom it was stopped innocently: for whom would have gone another
//! way.
//!
//! A queue pair is stopped from when it takes its turn: before, its window or its rate held it
//! back. One that an answer lets take its turn while its class is stopped is not asked, and so does
//! not say that its rate holds it back yet: it is stopped from when the rate lets it go, as if the
//! pause lasted until then. If it does not, the queue pair is asked, says so, and takes its turn
//! anew.
//!
//! One whose packet waits at the port is blocked by that packet, and stopped only from when that
//! has left: nothing counts twice. What else waits there in its class, as packets of TCP do, is
//! ahead of it as other queue pairs are: it is stopped meanwhile.

/// Since when the queue pairs of a card wait for their turn, told by how long their class had been
/// paused then, in ps.
#[derive(Debug, Default)]
pub struct QpStalls {
    /// By the host's numbers for flows that it sends.
    since_ps: Vec<u64>,
    /// By class: the queue pair that sent last.
    sent_last: Vec<Option<u32>>,
}

impl QpStalls {
    /// A queue pair takes its turn. Its class has been paused for so long until now, or will have
    /// been when its rate lets it go.
    pub fn begin(&mut self, number: u32, paused_ps: u64) {
        let number = number as usize;
        self.since_ps.resize(self.since_ps.len().max(number + 1), 0);
        self.since_ps[number] = paused_ps;
    }

    /// A queue pair has its turn. Its class has been paused for so long until now, and had been for
    /// `left_ps` when data of a queue pair that had waited left the port last. Returns how long the
    /// queue pair was stopped, in ps.
    pub fn end(&mut self, lane: usize, number: u32, paused_ps: u64, left_ps: u64) -> u64 {
        if let Some(last) = self.sent_last.get_mut(lane).and_then(Option::take)
            && let Some(since) = self.since_ps.get_mut(last as usize)
        {
            *since = (*since).max(left_ps);
        }
        let since = self.since_ps.get(number as usize).copied().unwrap_or(paused_ps);
        paused_ps.saturating_sub(since)
    }

    /// A queue pair was asked, and sent something or not.
    pub fn asked(&mut self, lane: usize, number: u32, has_sent: bool) {
        if has_sent {
            self.sent_last.resize(self.sent_last.len().max(lane + 1), None);
            self.sent_last[lane] = Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_pair_is_stopped_from_when_it_takes_its_turn() {
        let mut stops = QpStalls::default();
        stops.begin(3, 0);
        stops.begin(1, 40);
        assert_eq!(stops.end(0, 3, 100, 100), 100);
        assert_eq!(stops.end(0, 1, 100, 100), 60, "its window let it go when the pause was 40 old");
    }

    #[test]
    fn one_that_its_rate_lets_go_within_a_pause_is_stopped_from_then_on() {
        let mut stops = QpStalls::default();
        // An answer lets it take its turn when the pause is 40 old, its rate when it is 70.
        stops.begin(2, 40 + 30);
        assert_eq!(stops.end(0, 2, 100, 0), 30);
        stops.begin(2, 140 + 30);
        assert_eq!(stops.end(0, 2, 160, 0), 0, "the pause ended before that");
    }

    #[test]
    fn one_whose_packet_waits_at_the_port_is_stopped_from_when_that_has_left() {
        let mut stops = QpStalls::default();
        stops.begin(0, 0);
        stops.begin(1, 0);
        assert_eq!(stops.end(0, 0, 0, 0), 0);
        stops.asked(0, 0, true);
        stops.begin(0, 0);
        // A pause of 100: the packet waits for it, and so does queue pair 1, which is next.
        assert_eq!(stops.end(0, 1, 100, 100), 100);
        stops.asked(0, 1, true);
        stops.begin(1, 100);
        // Another one of 30 stops queue pair 0 and holds the packet of queue pair 1.
        assert_eq!(stops.end(0, 0, 130, 130), 30);
        stops.asked(0, 0, true);
        assert_eq!(stops.end(0, 1, 130, 130), 0);
    }

    #[test]
    fn classes_have_each_a_packet_of_their_own_at_the_port() {
        let mut stops = QpStalls::default();
        stops.begin(0, 0);
        stops.begin(1, 0);
        stops.asked(1, 1, true);
        assert_eq!(stops.end(0, 0, 50, 50), 50);
        assert_eq!(
            stops.end(1, 1, 50, 20),
            30,
            "its packet left after 20, something else waited there since"
        );
    }
}
