//! Unacknowledged data of an application, in packets as large as are handed over at once, as in
//! Linux 6.1.
//!
//! A packet is made when it is written: as large as the card takes, but no larger than half of the
//! largest window that the receiver had offered by then. The application writes as long as its
//! buffer has room, some three windows ahead. So the first few hundred kilobytes of a flow leave in
//! packets of half of the window that the handshake told of. The rules are those of
//! `tcp_sendmsg_locked`, `tcp_xmit_size_goal`, `tcp_bound_to_half_wnd`, `tcp_should_expand_sndbuf`,
//! `tcp_sndbuf_expand` and `sk_stream_write_space`, in segments for bytes.

use std::collections::VecDeque;

use super::receive_window::{FIRST_ROUND, SEGMENT_MEMORY};

/// Inputs of the queue from its sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// The first segment that is not acknowledged, the next one to be sent, and one past the last
    /// that the application has.
    pub una: u32,
    pub next: u32,
    pub segments: u32,
}

/// Bytes of payload of a segment, and bytes that a packet counts beyond its payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub mss: u64,
    pub overhead: u64,
    /// Segments that the card takes at once.
    pub full: u32,
}

/// The buffer is as large as twice the window needs, and as this window at least: `TCP_INIT_CWND`.
const LEAST_WINDOW: u32 = FIRST_ROUND;
/// Bytes of the buffer at most: `tcp_wmem`.
const MOST: u64 = 4 << 20;

/// The packets of a flow that are not acknowledged.
#[derive(Debug, Clone, Default)]
pub(super) struct SendQueue {
    /// One past the last segment of each packet that is not sent. The first packet begins with the
    /// next segment.
    unsent: VecDeque<u32>,
    /// One past the last segment of each packet that was sent.
    sent: VecDeque<u32>,
    /// One past the last segment that is written.
    end: u32,
    /// Where the first packet was cut off the last time that it, or some of it, was to be sent.
    cut_off: u32,
    /// Segments of the largest window that the receiver has offered.
    offered: u32,
    /// Bytes that may be kept.
    buffer: u64,
    /// The application waits for room.
    waits: bool,
}

impl SendQueue {
    /// The receiver offers this window, and has all below `una`.
    pub fn follow(&mut self, una: u32, window: u32) {
        self.offered = self.offered.max(window);
        while self.sent.front().is_some_and(|&end| end <= una) {
            self.sent.pop_front();
        }
    }

    /// Where the packet ends that begins with the next segment, and whether it is the last one.
    /// Where applications do not write ahead all is written, and packets are as large as the card
    /// takes.
    pub fn first_packet(&self, next: u32, segments: u32, full: u32) -> (u32, bool) {
        let (end, last) = match self.unsent.front() {
            Some(&end) => (end, self.end),
            None => ((next - next % full).saturating_add(full).min(segments), segments),
        };
        let end = if self.cut_off > next { end.min(self.cut_off) } else { end };
        (end, end >= last)
    }

    /// The first packet is cut off here: it stays so, whether it can be sent or has to wait.
    pub const fn cut_off(&mut self, at: u32) {
        self.cut_off = at;
    }

    /// All below `next` is sent.
    pub fn sends(&mut self, next: u32) {
        while self.unsent.front().is_some_and(|&end| end <= next) {
            self.unsent.pop_front();
        }
        self.end = self.end.max(next);
        self.sent.push_back(next);
    }

    /// Bytes that are kept.
    fn memory(&self, sizes: Sizes, una: u32) -> u64 {
        let packets = self.sent.len() + self.unsent.len();
        u64::from(self.end.saturating_sub(una)) * sizes.mss + packets as u64 * sizes.overhead
    }

    /// The buffer grows with a window that is not full, and wakes an application that waits if a
    /// third of it is free.
    pub fn wakes(&mut self, sizes: Sizes, una: u32, window: u32, in_network: u32) -> bool {
        if !self.waits {
            return false;
        }
        if in_network < window {
            self.buffer = self.buffer.max(Self::buffer_for(window));
        }
        let kept = self.memory(sizes, una);
        self.waits = self.buffer.saturating_sub(kept) < kept / 2;
        !self.waits
    }

    fn buffer_for(window: u32) -> u64 {
        (2 * SEGMENT_MEMORY * u64::from(window.max(LEAST_WINDOW))).min(MOST)
    }

    /// Fills the last packet, or begins another; whether there was room, and something to write.
    pub fn write(&mut self, sizes: Sizes, progress: Progress) -> bool {
        let left = progress.segments.saturating_sub(self.end);
        if left == 0 || self.waits {
            return false;
        }
        let goal = sizes.full.min(self.offered / 2).max(1);
        let begin = match self.unsent.len() {
            0 => self.end,
            1 if self.cut_off < self.end => progress.next.max(self.cut_off),
            1 => progress.next,
            count => self.unsent[count - 2],
        };
        let room = goal.saturating_sub(self.end - begin);
        if let Some(last) = self.unsent.back_mut().filter(|_| room > 0) {
            self.end += room.min(left);
            *last = self.end;
            return true;
        }
        self.buffer = self.buffer.max(Self::buffer_for(0));
        self.waits = self.memory(sizes, progress.una) >= self.buffer;
        if !self.waits {
            self.end += goal.min(left);
            self.unsent.push_back(self.end);
        }
        !self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { mss: 1_448, overhead: 768, full: 45 };

    fn fill(queue: &mut SendQueue, una: u32, next: u32, segments: u32) {
        while queue.write(SIZES, Progress { una, next, segments }) {}
    }

    fn ends(queue: &SendQueue) -> Vec<u32> {
        queue.unsent.iter().copied().collect()
    }

    /// The beginning of a flow that has its fabric for itself, as Linux 6.1 has it.
    #[test]
    fn packets_are_half_of_the_window_that_was_offered_when_they_were_written() {
        let mut queue = SendQueue::default();
        queue.follow(0, 45);
        assert!(queue.write(SIZES, Progress { una: 0, next: 0, segments: 10_000 }));
        assert_eq!(ends(&queue), [22]);
        // The window of ten segments, in two halves; then the application fills the last packet,
        // and its buffer is full.
        for next in [5, 10] {
            queue.sends(next);
        }
        fill(&mut queue, 0, 10, 10_000);
        assert_eq!(ends(&queue), [32]);
        // Acknowledgements, and what they let go. A third of the buffer is not free before the last
        // of them.
        for (una, next, window, wakes) in [(2, 14, 12, false), (4, 14, 14, false), (5, 20, 15, true)] {
            queue.follow(una, 45);
            queue.sends(next);
            // The buffer grows before all is sent.
            assert_eq!(queue.wakes(SIZES, una, window, window - 1), wakes, "{una}");
        }
        fill(&mut queue, 5, 20, 10_000);
        assert_eq!(ends(&queue), [42, 64]);
        // The window has grown: what is written from now on is larger.
        queue.follow(30, 200);
        queue.sends(42);
        assert!(queue.wakes(SIZES, 30, 30, 10));
        fill(&mut queue, 30, 42, 10_000);
        assert_eq!(ends(&queue), [87, 132]);
    }

    #[test]
    fn a_flow_ends_with_what_is_left_and_packets_that_were_cut_off_stay_as_long() {
        let mut queue = SendQueue::default();
        queue.follow(0, 45);
        fill(&mut queue, 0, 0, 30);
        assert_eq!(ends(&queue), [22, 30]);
        assert_eq!(queue.first_packet(0, 30, 45), (22, false));
        queue.cut_off(8);
        assert_eq!(queue.first_packet(0, 30, 45), (8, false));
        queue.sends(8);
        assert_eq!(queue.first_packet(8, 30, 45), (22, false), "the rest of it");
        queue.sends(22);
        assert_eq!(queue.first_packet(22, 30, 45), (30, true));
        assert!(!queue.write(SIZES, Progress { una: 0, next: 22, segments: 30 }), "all is written");
    }

    #[test]
    fn without_a_buffer_all_is_written_in_packets_as_large_as_the_card_takes() {
        let mut queue = SendQueue::default();
        assert_eq!(queue.first_packet(0, 100, 45), (45, false));
        queue.cut_off(10);
        queue.sends(10);
        assert_eq!(queue.first_packet(10, 100, 45), (45, false));
        assert_eq!(queue.first_packet(90, 100, 45), (100, true));
    }
}
