//! What SACK blocks say, and what to send accordingly (RFC 6675).

use weft_packet::Packet;

use super::Tcp;
use super::rack::Rack;
use super::segments::SegmentSet;
use super::sender::{Phase, Sender};
use crate::Outbox;

/// Which segments beyond the cumulative acknowledgement have arrived.
///
/// The receiver never takes back what it reported, so the board outlives timeouts (RFC 6675 §5.1).
#[derive(Debug, Clone)]
pub(super) struct Scoreboard {
    arrived: SegmentSet,
    /// RFC 6675's `HighRxt`: one past the highest segment retransmitted in this recovery.
    high_rxt: u32,
    /// What RFC 8985 keeps instead, if losses are found by time.
    pub rack: Option<Rack>,
}

impl Scoreboard {
    fn new(una: u32) -> Self {
        Self { arrived: SegmentSet::new(una), high_rxt: una, rack: None }
    }

    /// The board of a sender that finds losses by time.
    pub fn by_time() -> Self {
        Self { rack: Some(Rack::default()), ..Self::new(0) }
    }

    /// `IsLost` for all at once: a segment that has not arrived is lost if it is below this one, since `threshold`
    /// segments above it have arrived.
    fn lost_below(&self, threshold: u32) -> u32 {
        self.arrived.nth_highest(threshold).unwrap_or(0)
    }

    /// How many of `from .. to` have not arrived.
    fn missing(&self, from: u32, to: u32) -> u32 {
        to.saturating_sub(from) - self.arrived.count(from, to)
    }

    /// `SetPipe`: segments that are in the network, as far as one can tell.
    fn pipe(&self, una: u32, max: u32, lost_below: u32) -> u32 {
        // (a) not lost, and (b) retransmitted: a segment that is both counts twice.
        self.missing(lost_below.max(una), max) + self.missing(una, self.high_rxt)
    }

    /// `NextSeg` rules 1 and 3: the first segment below `limit` that has neither arrived nor been retransmitted.
    fn next_hole(&self, una: u32, limit: u32) -> Option<u32> {
        let hole = self.arrived.next_absent(self.high_rxt.max(una));
        (hole < limit).then_some(hole)
    }
}

impl Sender {
    /// Takes the SACK blocks of an acknowledgement. Returns whether they told anything new.
    pub(super) fn take_sack(&mut self, packet: &Packet) -> bool {
        let (ack, una, max) = (packet.seq, self.una, self.max);
        let mut news = false;
        for block in packet.sack_blocks().into_iter().filter(|block| block.count > 0) {
            let from = ack.saturating_add(u32::from(block.first));
            let to = from.saturating_add(u32::from(block.count)).min(max);
            if from < to {
                let board = self.scoreboard.get_or_insert_with(|| Box::new(Scoreboard::new(una)));
                news |= board.arrived.insert_range(from, to);
            }
        }
        if let Some(board) = &mut self.scoreboard
            && ack > una
        {
            board.arrived.advance(ack);
        }
        news
    }

    /// `IsLost` of the first unacknowledged segment.
    pub(super) fn first_is_lost(&self, tcp: &Tcp) -> bool {
        let board = self.scoreboard.as_ref();
        board.is_some_and(|board| self.una < board.lost_below(tcp.dup_ack_threshold))
    }

    /// RFC 6675 §5 step 4.3: the first segment is about to be retransmitted.
    pub(super) fn begin_sack_recovery(&mut self) {
        if let Some(board) = &mut self.scoreboard {
            board.high_rxt = self.una + 1;
        }
    }

    /// Sends what the window allows, past what has arrived.
    pub(super) fn send_around_sacked(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.scoreboard.take() else { return };
        if self.phase == Phase::Recovery {
            self.send_in_recovery(tcp, &mut board, out);
        } else {
            self.send_in_sequence(tcp, &board, out);
        }
        self.scoreboard = Some(board);
    }

    /// RFC 6675 §5 step C.
    fn send_in_recovery(&mut self, tcp: &Tcp, board: &mut Scoreboard, out: &mut impl Outbox) {
        let lost_below = board.lost_below(tcp.dup_ack_threshold);
        let mut pipe = board.pipe(self.una, self.max, lost_below);
        let new_end = self.una.saturating_add(tcp.max_window).min(self.segments);
        while pipe < self.window.segments() {
            if let Some(hole) = board.next_hole(self.una, lost_below) {
                // NextSeg rule 1: lost.
                self.transmit(tcp, hole, out);
                board.high_rxt = hole + 1;
            } else if self.next < new_end {
                // Rule 2: new data.
                self.transmit(tcp, self.next, out);
                self.next += 1;
            } else if let Some(hole) = board.next_hole(self.una, board.arrived.end()) {
                // Rule 3: not lost by the count, but a hole.
                self.transmit(tcp, hole, out);
                board.high_rxt = hole + 1;
            } else {
                break;
            }
            pipe += 1;
        }
    }

    /// Outside recovery: onwards from `next`, also on the way back after a timeout.
    fn send_in_sequence(&mut self, tcp: &Tcp, board: &Scoreboard, out: &mut impl Outbox) {
        let end = self.una.saturating_add(tcp.max_window).min(self.segments);
        let mut pipe = board.missing(self.una, self.next);
        while pipe < self.window.segments() {
            self.next = board.arrived.next_absent(self.next);
            if self.next >= end {
                break;
            }
            self.transmit(tcp, self.next, out);
            self.next += 1;
            pipe += 1;
        }
    }
}
