//! What a sender does whose losses are found by time (RFC 8985): what it sends when, and what its one timer is for.

use weft_packet::{Packet, PacketFlags};
use weft_units::Time;

use super::Board;
use super::rack::Rack;
use super::reduction::Reduction;
use super::spurious::{Next, Undo};
use crate::congestion::Controller;
use crate::tcp::Tcp;
use crate::tcp::sender::{Facts, Phase, Sender};
use crate::tcp::stack::Flow;
use crate::{Outbox, Resend};

impl Sender {
    /// Opens, and sends the first window.
    pub(super) fn open_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let mut rack = Box::<Rack>::default();
        rack.note_handshake(self.rtt.smoothed());
        // A SYN-ACK tells it; without a handshake it is known.
        rack.edge = tcp.offers.map_or(u32::MAX, |offers| offers.first);
        self.send_written(tcp, &mut rack, out);
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
        if self.is_acknowledged() {
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
        let told = rack.take(packet, out.now(), tcp.taking_back);
        self.una = packet.seq;
        if tcp.offers.is_some() {
            rack.edge = rack.edge.max(packet.seq.saturating_add(u32::from(packet.receive_window())));
        }
        if acked > 0 {
            self.backoff = 0;
            let rtt = out.now().since(packet.sent);
            self.rtt.sample(rtt);
            let ack = self.told(acked, marked, rtt, out);
            control.on_ack(&mut self.window, ack);
        } else if self.una < self.max {
            self.counts.duplicate_acks += 1;
        }
        self.judge_probe(control, rack, packet, told.segments);
        if marked {
            rack.undo = rack.undo.map(Undo::keep);
        }
        let next = self.take_back(tcp, rack, packet, acked > 0, told);
        let recovered = self.leave_recovery(rack);
        rack.adapt(packet.flags.has(PacketFlags::RETRANSMISSION), self.next, recovered);
        if self.phase == Phase::Open && marked && (acked > 0 || told.segments > 0) {
            self.on_mark_by_time(tcp, control, rack);
        }
        let may_grow =
            self.phase == Phase::Open && rack.reduction.is_none() && rack.handed.uses(&self.window);
        if may_grow && acked > 0 && self.una > self.window.cwr_end {
            self.window.grow(control, acked, (tcp.max_window, tcp.abc_limit));
        }
        let lost = next == Next::LostFirst && self.find_losses(tcp, control, rack, out);
        if let Some(reduction) = &mut rack.reduction {
            reduction.follow(&mut self.window, rack.in_network, told.segments, acked > 0 && !lost);
        }
        self.send_by_time(tcp, rack, next, out);
        if next == Next::NewOnly && rack.frto && self.next == self.recover {
            // Nothing new could be sent: RFC 5682 §3.1 step 2.b goes on as without it.
            rack.frto = false;
            self.send_by_time(tcp, rack, Next::LostFirst, out);
        }
        if acked > 0 {
            self.restart_timer(tcp, rack, out);
        } else {
            Self::set_timer(rack, out);
        }
    }

    /// A mark: the window shrinks at once, or over a round trip.
    fn on_mark_by_time(&mut self, tcp: &Tcp, control: &impl Controller, rack: &mut Rack) {
        let (before, reduced) = (self.window.cwnd, self.window.cwr_end);
        self.on_mark(control);
        if tcp.prr && self.window.cwr_end != reduced {
            rack.reduction = Some(Reduction::from(before, self.window.cwr_end + 1));
            self.window.cwnd = before;
        }
        if self.window.cwr_end != reduced {
            // What a loss took before is not given back any more.
            rack.undo = None;
        }
    }

    /// Whether a recovery, be it fast or after a timeout, is over with this acknowledgement. A reduction ends with it, or by itself.
    fn leave_recovery(&mut self, rack: &mut Rack) -> bool {
        let recovering = self.phase == Phase::Recovery || rack.after_timeout;
        let recovered = recovering && self.una >= self.recover;
        if recovered {
            self.phase = Phase::Open;
            (rack.after_timeout, rack.frto) = (false, false);
        }
        if rack.reduction.is_some_and(|reduction| self.una >= reduction.end()) {
            rack.reduction = None;
            self.window.cwnd = self.window.ssthresh;
        }
        recovered
    }

    /// Finds what is lost, and reduces the window for it once.
    fn find_losses(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        rack: &mut Rack,
        out: &mut impl Outbox,
    ) -> bool {
        let recovering = self.phase == Phase::Recovery || rack.after_timeout;
        let window = rack.reordering_window(tcp, recovering, self.rtt.smoothed());
        let lost = rack.find_losses(window, out.now());
        if rack.reorder_at < Time::NEVER {
            // RFC 8985 §8: the timers are one, and this is what it is for now.
            rack.probe.at = Time::NEVER;
            rack.reorder_at = tcp.timers.due(out.now(), rack.reorder_at.since(out.now()) + tcp.rack_wait);
        }
        if lost && !recovering {
            self.counts.fast_recoveries += 1;
            self.phase = Phase::Recovery;
            rack.probe.ends();
            self.remember(tcp, rack);
            if let Some(reduction) = rack.reduction {
                // The window shrinks for a mark in the same round trip already.
                self.recover = self.window.cwr_end;
                rack.reduction = Some(reduction.until(self.recover));
            } else {
                let before = self.window.cwnd;
                self.reduce_by_time(control);
                (self.recover, self.cwr_due) = (self.max, true);
                if tcp.prr {
                    rack.reduction = Some(Reduction::from(before, self.recover));
                } else {
                    self.window.cwnd = self.window.ssthresh;
                }
            }
            if rack.reduction.is_none() {
                self.send_first_lost(tcp, rack, out);
            }
        }
        lost
    }

    /// The same when the timer tells. If recovery begins so, its first step is that of one segment that arrived: `tcp_rack_reo_timeout`.
    fn find_losses_in_time(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        let recovered = self.phase == Phase::Recovery;
        self.find_losses(tcp, &tcp.control, rack, out);
        let begins = self.phase == Phase::Recovery && !recovered;
        if let Some(reduction) = rack.reduction.as_mut().filter(|_| begins) {
            reduction.follow(&mut self.window, rack.in_network, 1, false);
        }
    }

    /// Sends the first lost segment again, if there is one: as recovery begins whatever the window (RFC 6675 §5
    /// step 4.3), unless the window shrinks over a round trip. Then its first step leaves room for one (`tcp_cwnd_reduction`), which waits for
    /// the host's queue as any other (`tcp_xmit_retransmit_queue`).
    fn send_first_lost(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) -> bool {
        let Some(lost) = rack.next_lost() else { return false };
        rack.first_again.get_or_insert(out.now());
        self.send_again(tcp, rack, lost, out);
        if lost == self.una {
            rack.retransmit_at = tcp.timers.due(out.now(), self.rtt.timeout(tcp, self.backoff));
        }
        true
    }

    /// Lost segments first, then new ones, as long as fewer are in the network than the window allows and the host's queue
    /// takes more.
    fn send_by_time(&mut self, tcp: &Tcp, rack: &mut Rack, next: Next, out: &mut impl Outbox) {
        rack.handed.settle(out.now());
        let before = self.max;
        while rack.in_network < self.window.segments() && tcp.stack.is_its_time(&mut rack.handed, out.now()) {
            let again = next == Next::LostFirst && rack.next_lost().is_some();
            let flow = self.as_flow(tcp, rack);
            let count = if again { 1 } else { tcp.stack.burst(&flow, &mut rack.handed, out.now()) };
            if count == 0 || !tcp.stack.has_room(&flow, &mut rack.handed, count, again) {
                break;
            }
            if again {
                self.send_first_lost(tcp, rack, out);
            } else {
                rack.handed.begins(self.next);
                for _ in 0..count {
                    self.send_new(tcp, rack, out);
                }
            }
            let flow = self.as_flow(tcp, rack);
            tcp.stack.paces_after(&flow, &mut rack.handed, count, out.now());
        }
        self.send_end(tcp, rack, out);
        let flow = self.as_flow(tcp, rack);
        rack.handed.note_use(&flow, self.max > before);
        if self.max > before {
            self.schedule_probe(tcp, rack, out);
        }
    }

    /// Sends the segment with the FIN, if it alone is left: for it the congestion window is not asked (`tcp_cwnd_test` of Linux).
    fn send_end(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        let is_left = self.next == self.max && self.next + 1 == self.segments;
        if !tcp.fin || !is_left || self.may_go_on() || self.end_of_window(tcp, rack) < self.segments {
            return;
        }
        let flow = self.as_flow(tcp, rack);
        if tcp.stack.is_its_time(&mut rack.handed, out.now())
            && tcp.stack.has_room(&flow, &mut rack.handed, 1, false)
        {
            rack.handed.begins(self.next);
            self.send_new(tcp, rack, out);
            let flow = self.as_flow(tcp, rack);
            tcp.stack.paces_after(&flow, &mut rack.handed, 1, out.now());
        }
    }

    /// One past the last segment that the receiver's window and the flow allow.
    pub(super) fn end_of_window(&self, tcp: &Tcp, rack: &Rack) -> u32 {
        self.una.saturating_add(tcp.max_window).min(rack.edge).min(self.segments)
    }

    /// What the rules of the host's stack go by.
    fn as_flow(&self, tcp: &Tcp, rack: &Rack) -> Flow<'_> {
        Flow {
            window: &self.window,
            una: self.una,
            next: self.next,
            max: self.max,
            end: self.end_of_window(tcp, rack),
            in_network: rack.in_network,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: rack.min_rtt,
            recovers: self.phase == Phase::Recovery || rack.after_timeout,
            first_sent: rack.first_sent(),
        }
    }

    /// Sends the next new segment.
    pub(super) fn send_new(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        self.put_out(tcp, rack, self.next, out);
        self.next += 1;
    }

    /// Sends a segment again.
    pub(super) fn send_again(&mut self, tcp: &Tcp, rack: &mut Rack, segment: u32, out: &mut impl Outbox) {
        if let Some(undo) = &mut rack.undo {
            undo.sends_again();
        }
        self.put_out(tcp, rack, segment, out);
    }

    fn put_out(&mut self, tcp: &Tcp, rack: &mut Rack, segment: u32, out: &mut impl Outbox) {
        let cause = if rack.after_timeout { Resend::Timeout } else { Resend::FastRecovery };
        // What is sent again goes by itself.
        let is_first = segment < self.max || rack.handed.began_with(segment);
        let turn = tcp.stack.keeps_queue_small().then(|| out.free_at().max(out.now()));
        self.transmit_for(cause, tcp, segment, out);
        rack.sent(segment, out.now());
        if let Some(reduction) = &mut rack.reduction {
            reduction.sends();
        }
        let sent = turn.map(|turn| (turn, out.free_at()));
        tcp.stack.hands_over(&mut rack.handed, out.now(), is_first, sent);
    }

    /// The one timer is due: for a probe, for retransmission, for reordering, or since the host's queue takes more.
    pub(super) fn wakes_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.board.take() else { return };
        if let Board::Rack(rack) = &mut *board {
            let times_out = out.now() >= rack.retransmit_at && out.now() < rack.probe.at;
            if !times_out {
                // What else the timer is for tells of no loss.
                if out.now() >= rack.reorder_at {
                    self.find_losses_in_time(tcp, rack, out);
                }
                self.send_by_time(tcp, rack, Next::LostFirst, out);
            }
            // What was due may be due no more: a loss was found, or new data sent.
            if out.now() >= rack.probe.at {
                self.send_probe(tcp, rack, out);
            }
            if out.now() >= rack.retransmit_at {
                self.time_out_by_time(tcp, rack, out);
            }
            Self::set_timer(rack, out);
        }
        self.board = Some(board);
    }

    /// The retransmission timer expired: RFC 6298 rules 5.4 to 5.6, RFC 8985 §6.3.
    fn time_out_by_time(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        self.count_timeout(self.rtt.timeout(tcp, self.backoff));
        out.timed_out();
        rack.probe.ends();
        // RFC 5682 §3.1 step 1: not while another loss is being repaired, but for the same timeout again.
        let repairs = self.phase == Phase::Recovery || rack.after_timeout;
        rack.frto = tcp.taking_back.frto && (!repairs || self.backoff > 0);
        if self.backoff == 0 {
            if rack.reduction.is_none() {
                self.remember(tcp, rack);
                self.reduce_by_time(&tcp.control);
            }
            tcp.control.on_timeout(&mut self.window);
        }
        rack.reduction = None;
        self.window.cwnd = 1.0;
        self.phase = Phase::Open;
        self.recover = self.max;
        (self.window.cwr_end, self.cwr_due) = (0, true);
        self.backoff = self.backoff.saturating_add(1);
        let window = rack.reordering_window(tcp, true, self.rtt.smoothed());
        rack.time_out(window, out.now());
        self.send_first_lost(tcp, rack, out);
        self.send_by_time(tcp, rack, Next::LostFirst, out);
        self.restart_timer(tcp, rack, out);
    }

    /// A loss. What arrived beyond a hole makes room for more, so that more than a window can be unacknowledged: the
    /// window is what the path was asked to carry.
    pub(super) fn reduce_by_time(&mut self, control: &impl Controller) {
        let flight = (self.max - self.una).min(self.window.segments());
        control.on_loss(&mut self.window, flight);
    }

    /// The application has written more.
    pub(in crate::tcp) fn resume_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.board.take() else { return };
        if let Board::Rack(rack) = &mut *board {
            let was_idle = self.una == self.max;
            self.send_written(tcp, rack, out);
            if was_idle {
                self.restart_timer(tcp, rack, out);
            } else {
                Self::set_timer(rack, out);
            }
        }
        self.board = Some(board);
    }

    /// The application has written, and closes the connection if it is done. Where all was sent by then, the FIN goes by itself, whatever the
    /// window (`tcp_send_fin` of Linux); else the last segment has it.
    fn send_written(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        self.facts.set(Facts::IS_WRITING, tcp.fin);
        self.send_by_time(tcp, rack, Next::LostFirst, out);
        self.facts.set(Facts::IS_WRITING, false);
        let all_was_sent = self.una < self.segments && self.next == self.segments;
        if tcp.fin && all_was_sent && !self.has_more_to_come() {
            self.facts.set(Facts::ENDS_BY_FIN, true);
            self.segments += 1;
            rack.handed.begins(self.next);
            self.send_new(tcp, rack, out);
        } else {
            self.send_end(tcp, rack, out);
        }
    }

    /// The retransmission timer runs from now, and with it what goes by it.
    pub(super) fn restart_timer(&self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        // All that is written is acknowledged, and the application pauses.
        let pauses = self.una == self.segments && self.has_more_to_come();
        let timeout = self.rtt.timeout(tcp, self.backoff);
        rack.retransmit_at = if pauses { Time::NEVER } else { tcp.timers.due(out.now(), timeout) };
        self.schedule_probe(tcp, rack, out);
        Self::set_timer(rack, out);
    }

    fn set_timer(rack: &Rack, out: &mut impl Outbox) {
        let at = rack.retransmit_at.min(rack.reorder_at).min(rack.probe.at).min(rack.handed.resume_at);
        // What is due at this instant is pending already.
        if at > out.now() {
            out.wake_at(at);
        }
    }
}
