//! Losses by time (RFC 8985, RACK): a segment is lost if one that was sent later has arrived, and the segment had a
//! reordering window more of time to do so. Overtaking alone is no loss, however many segments overtake.
//!
//! Left out: the tail loss probe (RFC 8985 §7), which is another timer, not a tolerance.

use std::collections::VecDeque;

use weft_packet::{Packet, PacketFlags};
use weft_units::{Span, Time};

use super::{Board, Recovery};
use crate::Outbox;
use crate::congestion::Controller;
use crate::tcp::Tcp;
use crate::tcp::sender::{Phase, Sender};

/// How long to wait for what was overtaken.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Tolerance {
    /// The reordering window, or a step of it, in round-trip times.
    pub round_trips: f64,
    /// Whether it is none at first and grows, as in RFC 8985.
    pub adapts: bool,
}

/// What became of the last copy of a segment, as far as the sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    InNetwork,
    Lost,
    Arrived,
}

/// The last copy of a segment.
#[derive(Debug, Clone, Copy)]
struct Copy {
    sent: Time,
    /// Whether it was a retransmission.
    again: bool,
    fate: Fate,
}

/// Duplicate acknowledgements that stand for a loss as long as no reordering was seen (RFC 8985 §6.2 step 4).
const DUP_THRESHOLD: u32 = 3;
/// Recoveries without a D-SACK after which a window that had grown is as at first (RFC 8985 §6.2 step 4).
const PERSIST: u8 = 16;

/// The state of RFC 8985 §5, per flow.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Rack {
    /// The last copy of each segment from `base` on.
    copies: VecDeque<Copy>,
    /// The first segment that is not acknowledged cumulatively.
    base: u32,
    /// Copies that are neither lost nor arrived.
    in_network: u32,
    arrived: u32,
    /// No segment below this one is lost and not sent again.
    first_lost: u32,
    /// `RACK.xmit_ts` and `RACK.end_seq`: of all copies that arrived, the one that was sent last.
    newest: (Time, u32),
    /// `RACK.rtt`: its round-trip time.
    rtt: Span,
    min_rtt: Span,
    /// `RACK.fack`: one past the highest segment that arrived.
    end: u32,
    reordering_seen: bool,
    /// `RACK.dsack_round`: until this segment is acknowledged, D-SACKs widen the window no more.
    dsack_round: Option<u32>,
    /// `RACK.reo_wnd_mult`.
    steps: u32,
    /// `RACK.reo_wnd_persist`.
    persist: u8,
    /// The way back after a timeout is not done.
    after_timeout: bool,
    retransmit_at: Time,
    /// When the reordering window of a segment that was overtaken is over.
    reorder_at: Time,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            copies: VecDeque::new(),
            base: 0,
            in_network: 0,
            arrived: 0,
            first_lost: 0,
            newest: (Time::ZERO, 0),
            rtt: Span::ZERO,
            min_rtt: Span::from_ps(u64::MAX),
            end: 0,
            reordering_seen: false,
            dsack_round: None,
            steps: 1,
            persist: 0,
            after_timeout: false,
            retransmit_at: Time::NEVER,
            reorder_at: Time::NEVER,
        }
    }
}

impl Rack {
    /// A segment is sent, for the first time or again.
    fn sent(&mut self, segment: u32, now: Time) {
        let copy = Copy { sent: now, again: true, fate: Fate::InNetwork };
        self.in_network += 1;
        match self.copies.get_mut((segment - self.base) as usize) {
            Some(known) => *known = copy,
            None => self.copies.push_back(Copy { again: false, ..copy }),
        }
    }

    /// RFC 8985 §6.2 steps 1 to 3, for all that an acknowledgement tells of. Returns whether it told anything new.
    fn take(&mut self, packet: &Packet, now: Time) -> bool {
        let (before, ack) = (self.in_network + self.lost(), packet.seq);
        for segment in self.base..ack {
            self.arrives(segment, packet.sent, now);
        }
        let known = self.base + self.copies.len() as u32;
        for block in packet.sack_blocks().into_iter().filter(|block| block.count > 0) {
            let from = ack.saturating_add(u32::from(block.first));
            for segment in from..from.saturating_add(u32::from(block.count)).min(known) {
                self.arrives(segment, packet.sent, now);
            }
        }
        let news = self.in_network + self.lost() < before;
        self.copies.drain(..(ack - self.base) as usize);
        self.arrived -= ack - self.base;
        self.base = ack;
        self.first_lost = self.first_lost.max(ack);
        news
    }

    /// `segment` is known to have arrived; `echo`: when the segment that caused the acknowledgement was sent.
    fn arrives(&mut self, segment: u32, echo: Time, now: Time) {
        let copy = &mut self.copies[(segment - self.base) as usize];
        if copy.fate == Fate::Arrived {
            return;
        }
        self.in_network -= u32::from(copy.fate == Fate::InNetwork);
        self.arrived += 1;
        copy.fate = Fate::Arrived;
        let Copy { sent, again, .. } = *copy;
        // Step 3.
        if segment >= self.end {
            self.end = segment + 1;
        } else if !again {
            self.reordering_seen = true;
        }
        // Step 2: of a segment that was sent again, an earlier copy may have arrived.
        let rtt = now.since(sent);
        if again && (echo < sent || rtt < self.min_rtt) {
            return;
        }
        // Step 1.
        self.min_rtt = self.min_rtt.min(rtt);
        if (sent, segment) > self.newest {
            (self.newest, self.rtt) = ((sent, segment), rtt);
        }
    }

    /// Step 4, the part about D-SACK: `next` is the next new segment, `recovered` says that a recovery ended.
    fn adapt(&mut self, duplicate: bool, next: u32, recovered: bool) {
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
    fn reordering_window(&self, tcp: &Tcp, recovering: bool, smoothed_rtt: Span) -> Span {
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

    /// Step 5: what was overtaken by something sent later, and had its time. Returns whether anything is lost.
    fn find_losses(&mut self, window: Span, now: Time) -> bool {
        let mut found = false;
        self.reorder_at = Time::NEVER;
        let allowed = self.rtt + window;
        for (copy, segment) in self.copies.iter_mut().zip(self.base..) {
            if copy.fate != Fate::InNetwork || (copy.sent, segment) >= self.newest {
                continue;
            }
            let due = copy.sent.saturating_add(allowed);
            if due <= now {
                copy.fate = Fate::Lost;
                self.in_network -= 1;
                self.first_lost = self.first_lost.min(segment);
                found = true;
            } else if self.reorder_at == Time::NEVER || due > self.reorder_at {
                // The latest, as the RFC says: one timer event for all.
                self.reorder_at = due;
            }
        }
        found
    }

    /// RFC 8985 §6.3: what a retransmission timeout takes for lost.
    fn time_out(&mut self, window: Span, now: Time) {
        let allowed = self.rtt + window;
        for (copy, segment) in self.copies.iter_mut().zip(self.base..) {
            let is_due = segment == self.base || copy.sent.saturating_add(allowed) <= now;
            if copy.fate == Fate::InNetwork && is_due {
                copy.fate = Fate::Lost;
                self.in_network -= 1;
            }
        }
        self.first_lost = self.base;
        self.after_timeout = true;
        self.reorder_at = Time::NEVER;
    }

    /// The first segment that is lost and was not sent again since.
    fn next_lost(&mut self) -> Option<u32> {
        let from = self.first_lost.max(self.base);
        let mut copies = self.copies.iter().skip((from - self.base) as usize);
        let found = copies.position(|copy| copy.fate == Fate::Lost).map(|ahead| from + ahead as u32);
        self.first_lost = found.unwrap_or(self.base + self.copies.len() as u32);
        found
    }

    fn lost(&self) -> u32 {
        self.copies.len() as u32 - self.in_network - self.arrived
    }
}

impl Sender {
    /// Opens, and sends the first window.
    pub(super) fn open_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let mut rack = Rack::default();
        self.send_by_time(tcp, &mut rack, out);
        self.restart_timer(tcp, &mut rack, out);
        self.board = Some(Box::new(Board::Rack(rack)));
    }

    /// An acknowledgement, with nothing about it checked but its number.
    pub(super) fn follow_by_time(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        packet: &Packet,
        marked: bool,
        out: &mut impl Outbox,
    ) {
        let Some(mut board) = self.board.take() else { return };
        if let Board::Rack(rack) = &mut *board {
            self.take_by_time((tcp, control), rack, packet, marked, out);
        }
        if self.una == self.segments {
            self.finish(out);
        } else {
            self.board = Some(board);
        }
    }

    fn take_by_time(
        &mut self,
        (tcp, control): (&Tcp, &impl Controller),
        rack: &mut Rack,
        packet: &Packet,
        marked: bool,
        out: &mut impl Outbox,
    ) {
        let acked = packet.seq - self.una;
        let news = rack.take(packet, out.now());
        self.una = packet.seq;
        if acked > 0 {
            self.backoff = 0;
            let rtt = out.now().since(packet.sent);
            self.rtt.sample(rtt);
            let ack = self.told(acked, marked, rtt, out);
            control.on_ack(&mut self.window, ack);
        } else if self.una < self.max {
            self.counts.duplicate_acks += 1;
        }
        let recovered = self.leave_recovery(rack);
        rack.adapt(packet.flags.has(PacketFlags::RETRANSMISSION), self.next, recovered);
        if self.phase == Phase::Open && marked && (acked > 0 || news) {
            self.on_mark(control);
        }
        if self.phase == Phase::Open && acked > 0 && self.una > self.window.cwr_end {
            self.window.grow(control, acked, (tcp.max_window, tcp.abc_limit));
        }
        self.repair(tcp, control, rack, out);
        if acked > 0 {
            self.restart_timer(tcp, rack, out);
        } else {
            Self::set_timer(rack, out);
        }
    }

    /// Whether a recovery, be it fast or after a timeout, is over with this acknowledgement.
    fn leave_recovery(&mut self, rack: &mut Rack) -> bool {
        let recovering = self.phase == Phase::Recovery || rack.after_timeout;
        if !recovering || self.una < self.recover {
            return false;
        }
        self.phase = Phase::Open;
        rack.after_timeout = false;
        true
    }

    /// Finds what is lost, reduces the window for it once, and sends what the window allows.
    fn repair(&mut self, tcp: &Tcp, control: &impl Controller, rack: &mut Rack, out: &mut impl Outbox) {
        let recovering = self.phase == Phase::Recovery || rack.after_timeout;
        let window = rack.reordering_window(tcp, recovering, self.rtt.smoothed());
        if rack.find_losses(window, out.now()) && !recovering {
            self.counts.fast_recoveries += 1;
            self.phase = Phase::Recovery;
            self.reduce_by_time(control);
            self.window.cwnd = self.window.ssthresh;
            (self.recover, self.cwr_due) = (self.max, true);
            self.send_first_lost(tcp, rack, out);
        }
        self.send_by_time(tcp, rack, out);
    }

    /// Sends the first lost segment again, if there is one: as recovery begins whatever the window (RFC 6675 §5
    /// step 4.3).
    fn send_first_lost(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) -> bool {
        let Some(lost) = rack.next_lost() else { return false };
        self.transmit(tcp, lost, out);
        rack.sent(lost, out.now());
        if lost == self.una {
            rack.retransmit_at = out.now().saturating_add(self.rtt.timeout(tcp, self.backoff));
        }
        true
    }

    /// Lost segments first, then new ones, as long as fewer are in the network than the window allows.
    fn send_by_time(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        let end = self.una.saturating_add(tcp.max_window).min(self.segments);
        while rack.in_network < self.window.segments() {
            if self.send_first_lost(tcp, rack, out) {
                continue;
            }
            if self.next >= end {
                break;
            }
            self.transmit(tcp, self.next, out);
            rack.sent(self.next, out.now());
            self.next += 1;
        }
    }

    /// The one timer is due: for reordering or for retransmission.
    pub(super) fn wakes_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.board.take() else { return };
        if let Board::Rack(rack) = &mut *board {
            if out.now() >= rack.retransmit_at {
                self.time_out_by_time(tcp, rack, out);
            } else {
                self.repair(tcp, &tcp.control, rack, out);
                Self::set_timer(rack, out);
            }
        }
        self.board = Some(board);
    }

    /// The retransmission timer expired: RFC 6298 rules 5.4 to 5.6, RFC 8985 §6.3.
    fn time_out_by_time(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        self.count_timeout(self.rtt.timeout(tcp, self.backoff));
        out.timed_out();
        if self.backoff == 0 {
            self.reduce_by_time(&tcp.control);
            tcp.control.on_timeout(&mut self.window);
        }
        self.window.cwnd = 1.0;
        self.phase = Phase::Open;
        self.recover = self.max;
        (self.window.cwr_end, self.cwr_due) = (0, true);
        self.backoff = self.backoff.saturating_add(1);
        let window = rack.reordering_window(tcp, true, self.rtt.smoothed());
        rack.time_out(window, out.now());
        self.send_first_lost(tcp, rack, out);
        self.send_by_time(tcp, rack, out);
        self.restart_timer(tcp, rack, out);
    }

    /// A loss. What arrived beyond a hole makes room for more, so that more than a window can be unacknowledged: the
    /// window is what the path was asked to carry.
    fn reduce_by_time(&mut self, control: &impl Controller) {
        let flight = (self.max - self.una).min(self.window.segments());
        control.on_loss(&mut self.window, flight);
    }

    fn restart_timer(&self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        rack.retransmit_at = out.now().saturating_add(self.rtt.timeout(tcp, self.backoff));
        Self::set_timer(rack, out);
    }

    fn set_timer(rack: &Rack, out: &mut impl Outbox) {
        let at = rack.retransmit_at.min(rack.reorder_at);
        // What is due at this instant is pending already.
        if at > out.now() {
            out.wake_at(at);
        }
    }
}
