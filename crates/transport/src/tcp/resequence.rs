//! A reordering buffer below TCP: what arrived too early waits a little, so that TCP sees segments
//! in order.

use weft_packet::Packet;
use weft_units::Time;

/// Segments that wait for earlier ones. Each waits at most for the time that it is given.
#[derive(Debug, Clone, Default)]
pub(super) struct Resequencer {
    /// The segment behind the last one that was passed up in order, or behind a gap that was given
    /// up.
    next: u32,
    /// Held segments, by number.
    held: Vec<ReorderedSegment>,
    /// When a delayed acknowledgement is due, which shares the receiver's timer.
    pub acknowledge_at: Option<Time>,
}

#[derive(Debug, Clone)]
struct ReorderedSegment {
    until: Time,
    packet: Packet,
}

impl Resequencer {
    /// Takes a data packet; what is in turn now goes to `up`, in order. A packet that waits does so
    /// until `until`; when more than `most` wait, the first gap is given up.
    pub fn take(&mut self, packet: &Packet, until: Time, most: u32, up: &mut Vec<Packet>) {
        if packet.seq > self.next {
            let place = self.held.partition_point(|held| held.packet.seq <= packet.seq);
            self.held.insert(place, ReorderedSegment { until, packet: *packet });
            if self.held.len() > most as usize {
                self.next = self.held[0].packet.seq;
            }
        } else {
            self.next = self.next.max(packet.seq.saturating_add(1));
            up.push(*packet);
        }
        self.release(up);
    }

    /// Gives up every gap in front of packets that waited long enough; what is in turn now goes to
    /// `up`.
    pub fn expire(&mut self, now: Time, up: &mut Vec<Packet>) {
        while let Some(last) = self.held.iter().rposition(|held| held.until <= now) {
            for held in self.held.drain(..=last) {
                self.next = held.packet.seq.saturating_add(1);
                up.push(held.packet);
            }
        }
        self.release(up);
    }

    /// When the packet that came first has waited long enough, or never.
    pub fn due(&self) -> Time {
        self.held.iter().map(|held| held.until).min().unwrap_or(Time::NEVER)
    }

    fn release(&mut self, up: &mut Vec<Packet>) {
        let mut ready = 0;
        while let Some(held) = self.held.get(ready).filter(|held| held.packet.seq <= self.next) {
            self.next = self.next.max(held.packet.seq.saturating_add(1));
            ready += 1;
        }
        up.extend(self.held.drain(..ready).map(|held| held.packet));
    }
}

#[cfg(test)]
mod tests {
    use weft_units::Span;

    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Segments delivered upward when these segments arrive at these times, and then at `end`.
    fn passed(arrivals: &[(u64, u32)], most: u32, end: u64) -> Vec<u32> {
        let (mut buffer, mut up) = (Resequencer::default(), Vec::new());
        for &(us, seq) in arrivals {
            let mut packet = Packet::default();
            packet.seq = seq;
            buffer.expire(at(us), &mut up);
            buffer.take(&packet, at(us + 10), most, &mut up);
        }
        buffer.expire(at(end), &mut up);
        up.iter().map(|packet| packet.seq).collect()
    }

    #[test]
    fn segments_go_up_in_order_when_the_gap_fills_in_time() {
        assert_eq!(passed(&[(0, 0), (1, 2), (2, 4), (3, 3), (9, 1), (9, 5)], 8, 9), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn none_waits_longer_than_allowed_and_those_before_it_need_not_wait_either() {
        // 4 came at 1 and goes at 11, with 2 that came at 8; 6 came at 9 and stays.
        assert_eq!(passed(&[(0, 0), (1, 4), (8, 2), (9, 6)], 8, 10), [0]);
        assert_eq!(passed(&[(0, 0), (1, 4), (8, 2), (9, 6)], 8, 11), [0, 2, 4]);
        assert_eq!(passed(&[(0, 0), (1, 4), (8, 2), (9, 6)], 8, 19), [0, 2, 4, 6]);
    }

    #[test]
    fn one_too_many_gives_up_the_first_gap_only() {
        assert_eq!(passed(&[(0, 1), (0, 2), (0, 4)], 2, 0), [1, 2]);
    }

    #[test]
    fn what_is_late_or_came_before_goes_up_at_once() {
        assert_eq!(passed(&[(0, 0), (1, 0), (2, 2), (12, 3), (13, 1), (13, 2)], 8, 13), [0, 0, 2, 3, 1, 2]);
    }
}
