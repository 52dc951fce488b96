//! Losses by time (RFC 8985, RACK): a segment is lost if one that was sent later has arrived, and
//! the segment had a reordering window more of time to do so. Overtaking alone is no loss, however
//! many segments overtake.
//!
//! What a sender does by that is in `by_time.rs`.

use std::collections::VecDeque;

use weft_packet::Packet;
use weft_units::{Span, Time};

use super::Recovery;
use super::reduction::Reduction;
use super::samples::{Deviation, Samples};
use super::timer::Timer;
use super::undo::{Undo, UndoRules};
use crate::tcp::Tcp;
use crate::tcp::host_stack::Handed;

/// How long to wait for what was overtaken.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Tolerance {
    /// The reordering window, or a step of it, in round-trip times.
    pub round_trips: f64,
    /// Whether it is none at first and grows, as in RFC 8985.
    pub adapts: bool,
}

/// State of the last copy of a segment, as far as the sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentState {
    InNetwork,
    /// In the network, but wrongly marked lost once: its time is not judged again.
    Spared,
    Lost,
    ArrivedPacket,
}

/// News in an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct NewlyAcked {
    /// How many segments have arrived.
    pub segments: u32,
    /// Whether it is certain of one which copy arrived: `tp->rack.advanced` of Linux.
    pub certain: bool,
    /// Newly acknowledged segments beyond a hole.
    pub selectively: u32,
    /// The first of them that was sent once; beyond all if none was.
    pub original: u32,
    /// Which round-trip times that shows.
    pub samples: Samples,
}

/// Losses that RACK found, and the time for which it waits.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tcp) struct Losses {
    pub any: bool,
    /// Whether some of it had been sent again.
    pub again: bool,
    /// Until the last of what was overtaken had its time.
    pub wait: Option<Span>,
}

/// The last copy of a segment.
#[derive(Debug, Clone, Copy)]
struct Copy {
    sent: Time,
    /// Whether it was a retransmission.
    again: bool,
    /// Whether one before it was lost, or this one, as far as is known: `TCPCB_LOST`.
    mends: bool,
    fate: SegmentState,
}

impl Copy {
    /// It is lost. Returns 1 if none before it was, or that has been forgotten.
    fn is_lost(&mut self) -> u32 {
        self.fate = SegmentState::Lost;
        u32::from(!std::mem::replace(&mut self.mends, true))
    }
}

/// Duplicate acknowledgements that stand for a loss as long as no reordering was seen (RFC 8985
/// §6.2 step 4).
const DUP_THRESHOLD: u32 = 3;
/// As far as one segment may be overtaken at most, in `reordering`: `tcp_max_reordering`.
const MOST_REORDERING: u32 = 300;
/// Recoveries without a D-SACK after which a window that had grown is as at first (RFC 8985 §6.2
/// step 4).
const PERSIST: u8 = 16;

/// The state of RFC 8985 §5, per flow.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Rack {
    /// The last copy of each segment from `base` on.
    copies: VecDeque<Copy>,
    /// The first segment that is not acknowledged cumulatively.
    pub(super) base: u32,
    /// Copies that are neither lost nor arrived.
    pub(super) in_network: u32,
    pub(super) arrived: u32,
    /// Segments that were lost and have not arrived since, sent again or not: `lost_out`.
    pub(super) unmended: u32,
    /// No segment below this one is lost and not sent again.
    first_lost: u32,
    /// `RACK.xmit_ts` and `RACK.end_seq`: of all copies that arrived, the one that was sent last.
    newest: (Time, u32),
    /// `RACK.rtt`: the round-trip time of the copy that was told of last.
    rtt: Span,
    pub(super) min_rtt: Span,
    /// `RACK.fack`: one past the highest segment that arrived.
    end: u32,
    pub(super) reordering_seen: bool,
    /// How many segments one was seen to be late by, at least [`DUP_THRESHOLD`]: `tp->reordering`.
    reordering: u32,
    /// The first segment sent once that the acknowledgement at hand tells of.
    original: u32,
    /// `RACK.dsack_round`: until this segment is acknowledged, D-SACKs widen the window no more.
    dsack_round: Option<u32>,
    /// `RACK.reo_wnd_mult`.
    steps: u32,
    /// `RACK.reo_wnd_persist`.
    persist: u8,
    /// The way back after a timeout is not done.
    pub(super) after_timeout: bool,
    /// Whether that timeout may have been in vain (RFC 5682).
    pub(super) frto: bool,
    /// Timeouts since an acknowledgement of new data: `icsk_retransmits`.
    pub(super) timeouts: u32,
    /// When something was sent again first, in this recovery.
    pub(super) first_again: Option<Time>,
    pub(super) timer: Timer,
    /// `TLP.end_seq` and `TLP.is_retrans`, while a probe is out.
    pub(super) probe: Option<(u32, bool)>,
    pub(super) deviation: Deviation,
    /// The window that is being reduced over a round trip.
    pub(super) reduction: Option<Reduction>,
    /// Window that the last reduction for a loss took.
    pub(super) undo: Option<Undo>,
    /// Segments that wait in the host's queue.
    pub(super) handed: Handed,
    /// One past the last segment that the receiver's window allows.
    pub(super) edge: u32,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            copies: VecDeque::new(),
            base: 0,
            in_network: 0,
            arrived: 0,
            unmended: 0,
            first_lost: 0,
            newest: (Time::ZERO, 0),
            rtt: Span::ZERO,
            min_rtt: Span::from_ps(u64::MAX),
            end: 0,
            reordering_seen: false,
            reordering: DUP_THRESHOLD,
            original: u32::MAX,
            dsack_round: None,
            steps: 1,
            persist: 0,
            after_timeout: false,
            frto: false,
            timeouts: 0,
            first_again: None,
            timer: Timer::OFF,
            probe: None,
            deviation: Deviation::default(),
            reduction: None,
            undo: None,
            handed: Handed::default(),
            edge: u32::MAX,
        }
    }
}

impl Rack {
    /// A segment is sent, for the first time or again: one that is lost, or a probe.
    pub(super) fn sent(&mut self, segment: u32, now: Time) {
        let copy = Copy { sent: now, again: true, mends: false, fate: SegmentState::InNetwork };
        match self.copies.get_mut((segment - self.base) as usize) {
            // A probe of what has arrived meanwhile tells nothing more of it.
            Some(Copy { fate: SegmentState::ArrivedPacket, .. }) => {}
            Some(known) => {
                self.in_network += u32::from(known.fate == SegmentState::Lost);
                *known = Copy { mends: known.mends, ..copy };
            }
            None => {
                self.in_network += 1;
                self.copies.push_back(Copy { again: false, ..copy });
            }
        }
    }

    /// RFC 8985 §6.2 steps 1 to 3, for all that an acknowledgement tells of: first what it says of
    /// segments beyond a hole, then what is in order, as `tcp_ack` of Linux does.
    pub(super) fn take(&mut self, packet: &Packet, now: Time, stamps: UndoRules) -> NewlyAcked {
        let (before, ack) = (self.in_network + self.lost(), packet.seq);
        self.original = u32::MAX;
        let (mut samples, mut certain) = (Samples::default(), false);
        let end_before = self.end;
        // `tcp_sacktag_one` of Linux goes by the round trip alone, `tcp_clean_rtx_queue` by the
        // time stamp, too.
        let echo = stamps.of_sacked.then_some(packet.sent);
        let known = self.base + self.copies.len() as u32;
        for block in packet.sack_blocks().into_iter().filter(|block| block.count > 0) {
            let from = ack.saturating_add(u32::from(block.first));
            for segment in from..from.saturating_add(u32::from(block.count)).min(known) {
                let Copy { sent, again, fate, .. } = self.copies[(segment - self.base) as usize];
                samples.arrived_beyond(sent, again, fate == SegmentState::ArrivedPacket);
                certain |= self.arrives(segment, (self.end, echo), now, stamps);
            }
        }
        let beyond = self.in_network + self.lost();
        for segment in self.base..ack {
            let Copy { sent, again, fate, .. } = self.copies[(segment - self.base) as usize];
            samples.acknowledged(sent, again, fate == SegmentState::ArrivedPacket);
            // What is told of for the first time with it overtook nothing that is in order now.
            certain |= self.arrives(segment, (end_before, Some(packet.sent)), now, stamps);
        }
        let left = self.in_network + self.lost();
        self.copies.drain(..(ack - self.base) as usize);
        self.arrived -= ack - self.base;
        self.base = ack;
        self.first_lost = self.first_lost.max(ack);
        let (segments, selectively) = (before - left, before - beyond);
        NewlyAcked { segments, selectively, certain, original: self.original, samples }
    }

    /// `segment` is known to have arrived, which is late if it is below `overtaken`; `echo`: when
    /// the segment that caused the acknowledgement was sent, if that says anything of this one.
    /// Returns whether it is certain which copy arrived, and was not known before.
    fn arrives(
        &mut self,
        segment: u32,
        (overtaken, echo): (u32, Option<Time>),
        now: Time,
        stamps: UndoRules,
    ) -> bool {
        let copy = &mut self.copies[(segment - self.base) as usize];
        if copy.fate == SegmentState::ArrivedPacket {
            return false;
        }
        self.in_network -= u32::from(matches!(copy.fate, SegmentState::InNetwork | SegmentState::Spared));
        self.arrived += 1;
        self.unmended -= u32::from(copy.mends);
        copy.fate = SegmentState::ArrivedPacket;
        let Copy { sent, again, .. } = *copy;
        if !again {
            self.original = self.original.min(segment);
        }
        // Step 3.
        self.end = self.end.max(segment + 1);
        if segment < overtaken && !again {
            self.saw_reordering(segment);
        }
        // Step 2: of a segment that was sent again, an earlier copy may have arrived.
        let rtt = now.since(sent);
        let echoes_earlier = echo.is_some_and(|echo| stamps.is_before(echo, sent));
        if again && (echoes_earlier || rtt < self.min_rtt) {
            return false;
        }
        // Step 1.
        self.min_rtt = self.min_rtt.min(rtt);
        // The round trip is that of what was told of last, be it older than something that was told
        // of before.
        self.rtt = rtt;
        self.newest = self.newest.max((sent, segment));
        true
    }

    /// This segment is late.
    pub(super) fn saw_reordering(&mut self, segment: u32) {
        self.reordering_seen = true;
        self.reordering = self.reordering.max(self.end.saturating_sub(segment)).min(MOST_REORDERING);
    }

    /// Step 4, the part about D-SACK: `next` is the next new segment, `recovered` says that a
    /// recovery ended.
    pub(super) fn adapt(&mut self, duplicate: bool, next: u32, recovered: bool) {
        if self.dsack_round.is_some_and(|round| self.base >= round) {
            self.dsack_round = None;
        }
        if duplicate && self.dsack_round.is_none() {
            self.dsack_round = Some(next);
            self.steps += 1;
            self.persist = PERSIST;
        } else if recovered {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.steps = 1;
            }
        }
    }

    /// Step 4: how long to wait for a segment that was overtaken.
    pub(super) fn reordering_window(&self, tcp: &Tcp, recovering: bool, smoothed_rtt: Span) -> Span {
        let Recovery::Rack(tolerance) = tcp.recovery else { return Span::ZERO };
        if self.min_rtt == Span::from_ps(u64::MAX) {
            return Span::ZERO;
        }
        let window = |steps: u32| {
            let round_trips = tolerance.round_trips * f64::from(steps);
            Span::from_ps((self.min_rtt.as_ps() as f64 * round_trips) as u64)
        };
        if !tolerance.adapts {
            return window(1);
        }
        if !self.reordering_seen && (recovering || self.arrived >= DUP_THRESHOLD) {
            return Span::ZERO;
        }
        window(self.steps).min(smoothed_rtt)
    }

    /// Whether a segment was seen to be late by more than stands for a loss: then what arrives
    /// beyond a hole is progress, too (`tcp_may_raise_cwnd`).
    pub(super) const fn path_reorders(&self) -> bool {
        self.reordering > DUP_THRESHOLD
    }

    /// Step 5: what was overtaken by something sent later, and had its time.
    pub(super) fn find_losses(&mut self, window: Span, now: Time) -> Losses {
        let mut losses = Losses::default();
        let allowed = self.rtt + window;
        for (copy, segment) in self.copies.iter_mut().zip(self.base..) {
            if copy.fate != SegmentState::InNetwork || (copy.sent, segment) >= self.newest {
                continue;
            }
            let due = copy.sent.saturating_add(allowed);
            if due <= now {
                self.unmended += copy.is_lost();
                self.in_network -= 1;
                self.first_lost = self.first_lost.min(segment);
                (losses.any, losses.again) = (true, losses.again || copy.again);
            } else {
                // The latest, as the RFC says: one timer event for all.
                losses.wait = losses.wait.max(Some(due.since(now)));
            }
        }
        losses
    }

    /// Returns segments marked lost to the network; their time is not judged again.
    pub(super) fn spare_lost(&mut self) {
        for copy in &mut self.copies {
            if copy.fate == SegmentState::Lost {
                copy.fate = SegmentState::Spared;
                self.in_network += 1;
            }
            copy.mends = false;
        }
        self.unmended = 0;
        self.first_lost = self.base + self.copies.len() as u32;
    }

    /// How many copies that were sent again are in the network.
    pub(super) fn again_in_network(&self) -> usize {
        self.copies.iter().filter(|copy| copy.again && copy.fate == SegmentState::InNetwork).count()
    }

    /// Whether any are, or the first segment that is not acknowledged was sent again.
    pub(super) fn has_sent_again(&self) -> bool {
        self.copies.front().is_some_and(|copy| copy.again) || self.again_in_network() > 0
    }

    /// RFC 8985 §6.3: what a retransmission timeout takes for lost.
    pub(super) fn time_out(&mut self, window: Span, now: Time) {
        let allowed = self.rtt + window;
        for (copy, segment) in self.copies.iter_mut().zip(self.base..) {
            let is_due = segment == self.base || copy.sent.saturating_add(allowed) <= now;
            if matches!(copy.fate, SegmentState::InNetwork | SegmentState::Spared) && is_due {
                self.unmended += copy.is_lost();
                self.in_network -= 1;
            }
        }
        self.first_lost = self.base;
        if !self.after_timeout && self.arrived >= DUP_THRESHOLD {
            // So many had overtaken, and it was a loss all the same.
            self.reordering = DUP_THRESHOLD;
        }
        self.after_timeout = true;
    }

    /// The first segment that is lost and was not sent again since.
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        let from = self.first_lost.max(self.base);
        let mut copies = self.copies.iter().skip((from - self.base) as usize);
        let found = copies.position(|copy| copy.fate == SegmentState::Lost).map(|ahead| from + ahead as u32);
        self.first_lost = found.unwrap_or(self.base + self.copies.len() as u32);
        found
    }

    /// When the first segment was sent that is not acknowledged, the last time.
    pub fn first_sent(&self) -> Option<Time> {
        self.copies.front().map(|copy| copy.sent)
    }

    pub(super) fn lost(&self) -> u32 {
        self.copies.len() as u32 - self.in_network - self.arrived
    }
}
