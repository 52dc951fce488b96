//! Order of transmissions of a sender with losses by time (RFC 8985): lost segments first, then new
//! ones in the packets that the application has written, as long as the window and the host's queue
//! have room.

use super::LossDetection;
use super::rack::Rack;
use super::timer::{Purpose, wake};
use super::undo::Next;
use crate::tcp::Tcp;
use crate::tcp::host_stack::Flow;
use crate::tcp::send_queue::Progress;
use crate::tcp::sender::{Phase, Sender, SenderFlags};
use crate::{Outbox, Resend};

impl Sender {
    /// Sends the first lost segment again, if there is one: as recovery begins whatever the window
    /// (RFC 6675 §5 step 4.3), unless the window shrinks over a round trip. Then its first step
    /// leaves room for one (`tcp_cwnd_reduction`), which waits for the host's queue as any other
    /// (`tcp_xmit_retransmit_queue`).
    pub(super) fn send_first_lost(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) -> bool {
        let Some(lost) = rack.next_lost() else { return false };
        rack.first_again.get_or_insert(out.now());
        self.send_again(tcp, rack, lost, out);
        if lost == self.una && rack.timer.purpose != Purpose::Reordering {
            self.set_for_whole_timeout(tcp, rack, out.now());
        }
        true
    }

    /// Lost segments first, then new ones, as long as fewer are in the network than the window
    /// allows and the host's queue takes more.
    pub(super) fn send_by_time(&mut self, tcp: &Tcp, rack: &mut Rack, next: Next, out: &mut impl Outbox) {
        rack.handed.settle(out.now());
        let (before, was_idle) = (self.max, self.una == self.max);
        self.hand_over(tcp, rack, next, out);
        if tcp.stack.writes_ahead && self.wakes_application(tcp, rack) {
            self.write(tcp, rack);
            self.hand_over(tcp, rack, next, out);
        }
        self.send_end(tcp, rack, out);
        let flow = self.as_flow(tcp, rack);
        rack.handed.note_use(&flow, self.max > before);
        if self.max > before {
            self.set_after_sending(tcp, rack, was_idle, out.now());
        }
    }

    /// Hands over what `send_by_time` says.
    fn hand_over(&mut self, tcp: &Tcp, rack: &mut Rack, next: Next, out: &mut impl Outbox) {
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
                self.send_burst(tcp, rack, count, out);
            }
            let flow = self.as_flow(tcp, rack);
            tcp.stack.paces_after(&flow, &mut rack.handed, count, out.now());
        }
    }

    /// Whether the application, which waits for room in its buffer, has it now: the buffer grows as
    /// long as the window is not full.
    fn wakes_application(&self, tcp: &Tcp, rack: &mut Rack) -> bool {
        let (sizes, window, in_network) = (tcp.stack.sizes(), self.window.segments(), rack.in_network);
        rack.handed.queue.wakes(sizes, self.una, window, in_network)
    }

    /// The application writes as much as its buffer takes.
    fn write(&self, tcp: &Tcp, rack: &mut Rack) {
        while self.write_packet(tcp, rack) {}
    }

    /// The application writes a packet, if its buffer takes it.
    fn write_packet(&self, tcp: &Tcp, rack: &mut Rack) -> bool {
        let progress = Progress { una: self.una, next: self.next, segments: self.segments };
        rack.handed.queue.write(tcp.stack.sizes(), progress)
    }

    /// Sends the segment with the FIN, if it alone is left: for it the congestion window is not
    /// asked (`tcp_cwnd_test` of Linux).
    fn send_end(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        let is_left = self.next == self.max && self.next + 1 == self.segments;
        if !tcp.fin || !is_left || self.may_go_on() || self.end_of_window(tcp, rack) < self.segments {
            return;
        }
        let flow = self.as_flow(tcp, rack);
        if tcp.stack.is_its_time(&mut rack.handed, out.now())
            && tcp.stack.has_room(&flow, &mut rack.handed, 1, false)
        {
            self.send_burst(tcp, rack, 1, out);
            let flow = self.as_flow(tcp, rack);
            tcp.stack.paces_after(&flow, &mut rack.handed, 1, out.now());
        }
    }

    /// One past the last segment that the receiver's window and the flow allow.
    pub(super) fn end_of_window(&self, tcp: &Tcp, rack: &Rack) -> u32 {
        self.una.saturating_add(tcp.max_window).min(rack.edge).min(self.segments)
    }

    /// Inputs of the rules of the host's stack.
    fn as_flow(&self, tcp: &Tcp, rack: &Rack) -> Flow<'_> {
        Flow {
            window: &self.window,
            una: self.una,
            next: self.next,
            max: self.max,
            edge: self.una.saturating_add(tcp.max_window).min(rack.edge),
            segments: self.segments,
            in_network: rack.in_network,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: rack.min_rtt,
            recovers: self.phase == Phase::Recovery || rack.after_timeout,
            first_sent: rack.first_sent(),
        }
    }

    /// Sends so many new segments at once.
    pub(super) fn send_burst(&mut self, tcp: &Tcp, rack: &mut Rack, count: u32, out: &mut impl Outbox) {
        rack.handed.begins(self.next);
        for _ in 0..count {
            self.put_out(tcp, rack, self.next, out);
            self.next += 1;
        }
        if tcp.stack.writes_ahead {
            rack.handed.queue.sends(self.next);
        }
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

    /// The application has written more.
    pub(in crate::tcp) fn resume_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.board.take() else { return };
        if let LossDetection::Rack(rack) = &mut *board {
            self.send_written(tcp, rack, out);
            wake(rack, out);
        }
        self.board = Some(board);
    }

    /// The application has written, and closes the connection if it is done. Where all was sent by
    /// then, the FIN goes by itself, whatever the window (`tcp_send_fin` of Linux); else the last
    /// segment has it.
    pub(super) fn send_written(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        self.facts.set(SenderFlags::IS_WRITING, tcp.fin);
        if tcp.stack.writes_ahead {
            // The first packet goes as soon as it is written.
            self.write_packet(tcp, rack);
            self.send_by_time(tcp, rack, Next::LostFirst, out);
            self.write(tcp, rack);
        }
        self.send_by_time(tcp, rack, Next::LostFirst, out);
        self.facts.set(SenderFlags::IS_WRITING, false);
        let (before, was_idle) = (self.max, self.una == self.max);
        let all_was_sent = self.una < self.segments && self.next == self.segments;
        if tcp.fin && all_was_sent && !self.has_more_to_come() {
            self.facts.set(SenderFlags::ENDS_BY_FIN, true);
            self.segments += 1;
            self.send_burst(tcp, rack, 1, out);
        } else {
            self.send_end(tcp, rack, out);
        }
        if self.max > before {
            self.set_after_sending(tcp, rack, was_idle, out.now());
        }
    }
}
