//! SACK: what its blocks say, and what to send accordingly (RFC 6675).

use weft_packet::Packet;

use super::LossDetection;
use super::dupack::Counting;
use crate::Outbox;
use crate::tcp::Tcp;
use crate::tcp::host_stack::Bursts;
use crate::tcp::segments::SegmentSet;
use crate::tcp::sender::{Phase, Sender};

/// Which segments beyond the cumulative acknowledgement have arrived.
///
/// The receiver never takes back what it reported, so the board outlives timeouts (RFC 6675 §5.1).
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Scoreboard {
    arrived: SegmentSet,
    /// RFC 6675's `HighRxt`: one past the highest segment retransmitted in this recovery.
    high_rxt: u32,
    /// If segments leave in bursts.
    bursts: Option<Bursts>,
}

impl Scoreboard {
    fn new(una: u32) -> Self {
        Self { arrived: SegmentSet::new(una), high_rxt: una, bursts: None }
    }

    /// Scoreboard with segments that leave in bursts.
    pub(super) fn with_bursts(una: u32, bursts: Bursts) -> Self {
        Self { bursts: Some(bursts), ..Self::new(una) }
    }

    /// `IsLost` for all at once: a segment that has not arrived is lost if it is below this one,
    /// since `threshold` segments above it have arrived.
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

    /// `NextSeg` rules 1 and 3: the first segment below `limit` that has neither arrived nor been
    /// retransmitted.
    fn next_hole(&self, una: u32, limit: u32) -> Option<u32> {
        let hole = self.arrived.next_absent(self.high_rxt.max(una));
        (hole < limit).then_some(hole)
    }
}

/// RFC 6675.
pub(super) struct Sack;

impl Counting for Sack {
    const SENDS_ON_DUPLICATES: bool = true;

    /// RFC 6675 §2: a duplicate acknowledgement is one whose SACK blocks tell of segments that were
    /// not known to have arrived.
    fn take(sender: &mut Sender, packet: &Packet) -> bool {
        let (ack, una, max) = (packet.seq, sender.una, sender.max);
        let mut news = false;
        for block in packet.sack_blocks().into_iter().filter(|block| block.count > 0) {
            let from = ack.saturating_add(u32::from(block.first));
            let to = from.saturating_add(u32::from(block.count)).min(max);
            if from < to {
                let new = || Box::new(LossDetection::Sack(Scoreboard::new(una)));
                if let LossDetection::Sack(board) = &mut **sender.board.get_or_insert_with(new) {
                    news |= board.arrived.insert_range(from, to);
                }
            }
        }
        if let Some(board) = sender.scoreboard()
            && ack > una
        {
            board.arrived.advance(ack);
        }
        news
    }

    /// RFC 6675 §§5 and 5.1: `HighACK` has reached `RecoveryPoint`.
    fn may_enter(sender: &Sender) -> bool {
        sender.una >= sender.recover
    }

    /// `IsLost` of the first unacknowledged segment.
    fn first_is_lost(sender: &Sender, tcp: &Tcp) -> bool {
        match sender.board.as_deref() {
            Some(LossDetection::Sack(board)) => sender.una < board.lost_below(tcp.dup_ack_threshold),
            _ => false,
        }
    }

    /// RFC 6675 §5 step 4.3: the first segment is about to be retransmitted.
    fn begin(sender: &mut Sender, _: &Tcp) {
        let una = sender.una;
        if let Some(board) = sender.scoreboard() {
            board.high_rxt = una + 1;
        }
    }

    fn on_duplicate(_: &mut Sender) {}

    /// Missing segments are sent as the window allows.
    fn on_partial_ack(_: &mut Sender, _: &Tcp, _: u32, _: &mut impl Outbox) -> bool {
        true
    }

    fn end(_: &mut Sender) {}
}

impl Sender {
    fn scoreboard(&mut self) -> Option<&mut Scoreboard> {
        match self.board.as_deref_mut() {
            Some(LossDetection::Sack(board)) => Some(board),
            _ => None,
        }
    }

    /// Sends what the window allows, past what has arrived, or in bursts.
    pub(in crate::tcp) fn send_around_sacked(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.board.take() else { return };
        match &mut *board {
            LossDetection::Sack(board) if self.phase == Phase::Recovery => {
                self.send_in_recovery(tcp, board, out);
            }
            LossDetection::Sack(board) => self.send_in_sequence(tcp, board, out),
            LossDetection::Bursts(bursts) => self.send_in_bursts(tcp, bursts, out),
            LossDetection::Rack(_) => {}
        }
        self.board = Some(board);
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
    fn send_in_sequence(&mut self, tcp: &Tcp, board: &mut Scoreboard, out: &mut impl Outbox) {
        let end = self.una.saturating_add(tcp.max_window).min(self.segments);
        let mut pipe = board.missing(self.una, self.next);
        while pipe < self.window.segments() {
            self.next = board.arrived.next_absent(self.next);
            if self.next >= end {
                break;
            }
            let count = match &mut board.bursts {
                Some(bursts) => self.next_burst(tcp, bursts, pipe, out),
                None => 1,
            };
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.transmit(tcp, self.next, out);
                self.next += 1;
            }
            pipe += count;
        }
    }
}
