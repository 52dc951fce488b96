//! Sender whose losses are found by time (RFC 8985): its transmissions, and the uses of its one
//! timer.

use weft_packet::{Packet, PacketFlags};
use weft_units::{Span, Time};

use super::LossDetection;
use super::rack::{Losses, NewlyAcked, Rack};
use super::reduction::Reduction;
use super::samples::Sample;
use super::timer::{Purpose, Timer, wake};
use super::undo::{Next, Undo};
use crate::Outbox;
use crate::congestion::Controller;
use crate::tcp::Tcp;
use crate::tcp::sender::{Phase, Sender};

impl Sender {
    /// Opens, and sends the first window.
    pub(super) fn open_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let mut rack = Box::<Rack>::default();
        self.note_handshake(tcp, &mut rack);
        // A SYN-ACK tells it; without a handshake it is known.
        rack.edge = tcp.offers.map_or(u32::MAX, |offers| offers.first);
        rack.handed.queue.follow(0, rack.edge);
        self.send_written(tcp, &mut rack, out);
        wake(&rack, out);
        self.board = Some(Box::new(LossDetection::Rack(rack)));
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
        if let LossDetection::Rack(rack) = &mut *board {
            self.take_by_time((tcp, control), rack, packet, marked, out);
        }
        if self.is_acknowledged() {
            self.acknowledge(tcp, out);
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
        let newly_acked = rack.take(packet, out.now(), tcp.undo_rules);
        self.una = packet.seq;
        if tcp.offers.is_some() {
            rack.edge = rack.edge.max(packet.seq.saturating_add(u32::from(packet.receive_window())));
        }
        if tcp.stack.writes_ahead {
            rack.handed.queue.follow(self.una, rack.edge - self.una);
        }
        if acked > 0 {
            rack.timeouts = 0;
        } else if self.una < self.max {
            self.counts.duplicate_acks += 1;
        }
        let sample = self.take_sample(tcp, rack, packet, acked > 0, newly_acked, out.now());
        if acked > 0 || newly_acked.segments > 0 {
            let rtt = sample.map(|sample| sample.of_last);
            let ack = self.ack_info(newly_acked.segments, marked, rtt, out);
            control.on_ack(&mut self.window, ack);
        }
        self.judge_probe(control, rack, packet, newly_acked.segments);
        if marked {
            rack.undo = rack.undo.map(Undo::keep);
        }
        let next = self.undo(tcp, rack, packet, acked, newly_acked);
        let recovered = self.leave_recovery(rack);
        rack.adapt(packet.flags.has(PacketFlags::RETRANSMISSION), self.next, recovered);
        if self.phase == Phase::Open && marked && (acked > 0 || newly_acked.segments > 0) {
            self.on_mark_by_time(tcp, control, rack);
        }
        let may_grow =
            self.phase == Phase::Open && rack.reduction.is_none() && rack.handed.uses(&self.window);
        // `tcp_may_raise_cwnd`, and what `tcp_newly_delivered` counts.
        let is_progress = acked > 0 || (tcp.grow_beyond_holes && rack.path_reorders());
        if may_grow && is_progress && newly_acked.segments > 0 && self.una > self.window.cwr_end {
            self.window.grow(control, newly_acked.segments, (tcp.max_window, tcp.abc_limit));
        }
        let puts_off = acked > 0 || Self::is_older_than_first(rack, newly_acked, out.now());
        let losses = match next {
            Next::LostFirst => self.find_losses(tcp, control, rack, Some(newly_acked.certain), out),
            Next::NewOnly => Losses::default(),
        };
        if let Some(wait) = losses.wait {
            Self::set_for_reordering(tcp, rack, wait, out.now());
        } else if puts_off {
            self.restart_timer(tcp, rack, out.now());
        }
        if let Some(reduction) = &mut rack.reduction {
            reduction.follow(
                &mut self.window,
                rack.in_network,
                newly_acked.segments,
                acked > 0 && !losses.any,
            );
        }
        self.send_by_time(tcp, rack, next, out);
        if next == Next::NewOnly && rack.frto && self.next == self.recover {
            // Nothing new could be sent: RFC 5682 §3.1 step 2.b goes on as without it.
            rack.frto = false;
            self.send_by_time(tcp, rack, Next::LostFirst, out);
        }
        wake(rack, out);
    }

    /// The SYN is a sample as any other: `tcp_ack_update_rtt` of Linux calls `tcp_update_rtt_min`
    /// for it, too. Small as it is, it may be the fastest packet of a flow for long.
    fn note_handshake(&mut self, tcp: &Tcp, rack: &mut Rack) {
        let rtt = self.rtt.smoothed();
        if !rtt.is_zero() {
            rack.min_rtt = rtt;
            rack.deviation.sample(rtt, Span::ZERO, tcp.min_rto, (0, 0));
        }
    }

    /// Takes the round-trip times that an acknowledgement shows: one of new data always shows one,
    /// and ends the backoff.
    fn take_sample(
        &mut self,
        tcp: &Tcp,
        rack: &mut Rack,
        packet: &Packet,
        acked: bool,
        newly_acked: NewlyAcked,
        now: Time,
    ) -> Option<Sample> {
        let echo = acked.then_some(packet.sent);
        let sample = newly_acked.samples.sample(now, echo, tcp.undo_rules.tick)?;
        if tcp.min_rto_beyond_rtt {
            rack.deviation.sample(sample.of_first, self.rtt.smoothed(), tcp.min_rto, (self.una, self.next));
            self.rtt.sample_with(sample.of_first, rack.deviation.allowed);
        } else {
            self.rtt.sample(sample.of_first);
        }
        self.backoff = 0;
        rack.min_rtt = rack.min_rtt.min(sample.of_last);
        Some(sample)
    }

    /// Whether what arrived beyond a hole was sent before the first segment that is not
    /// acknowledged, the last time that this was: then a timeout counts from now
    /// (`tcp_clean_rtx_queue`).
    fn is_older_than_first(rack: &Rack, newly_acked: NewlyAcked, now: Time) -> bool {
        newly_acked.samples.of_first_beyond(now) > rack.first_sent().map(|sent| now.since(sent))
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

    /// Whether a recovery, be it fast or after a timeout, is over with this acknowledgement. A
    /// reduction ends with it, or by itself.
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

    /// Finds what is lost, and reduces the window for it once. `certain`: whether an
    /// acknowledgement is sure of an arrival; `None` if the timer asks.
    fn find_losses(
        &mut self,
        tcp: &Tcp,
        control: &impl Controller,
        rack: &mut Rack,
        certain: Option<bool>,
        out: &mut impl Outbox,
    ) -> Losses {
        let recovering = self.phase == Phase::Recovery || rack.after_timeout;
        let window = rack.reordering_window(tcp, recovering, self.rtt.smoothed());
        let losses =
            if certain == Some(false) { Losses::default() } else { rack.find_losses(window, out.now()) };
        let begins = if rack.after_timeout {
            // What was sent again after a timeout and is lost, or what the timer finds then, is a
            // loss of its own (`FLAG_LOST_RETRANS`, `tcp_rack_reo_timeout`).
            losses.again || (losses.any && certain.is_none())
        } else if recovering {
            false
        } else {
            // What was lost in the recovery before, and sent after that began, is mended by one of
            // its own (`tcp_time_to_recover`).
            losses.any || (certain.is_some() && rack.unmended > 0)
        };
        if begins {
            self.recovers(tcp, control, rack, out);
        }
        losses
    }

    /// A recovery begins.
    fn recovers(&mut self, tcp: &Tcp, control: &impl Controller, rack: &mut Rack, out: &mut impl Outbox) {
        self.counts.fast_recoveries += 1;
        self.phase = Phase::Recovery;
        (rack.after_timeout, rack.frto) = (false, false);
        rack.probe = None;
        self.remember(tcp, rack);
        if let Some(reduction) = rack.reduction {
            // The window shrinks for a mark in the same round trip already.
            self.recover = self.window.cwr_end;
            rack.reduction = Some(reduction.until(self.recover));
            control.on_loss_after_mark(&mut self.window);
            return;
        }
        let before = self.window.cwnd;
        self.reduce_by_time(control);
        (self.recover, self.cwr_due) = (self.max, true);
        if tcp.prr {
            rack.reduction = Some(Reduction::from(before, self.recover));
        } else {
            self.window.cwnd = self.window.ssthresh;
            self.send_first_lost(tcp, rack, out);
        }
    }

    /// The timer is due for RACK. If recovery begins so, its first step is that of one segment that
    /// arrived: `tcp_rack_reo_timeout`.
    fn find_losses_in_time(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        let recovered = self.phase == Phase::Recovery;
        self.find_losses(tcp, &tcp.control, rack, None, out);
        let begins = self.phase == Phase::Recovery && !recovered;
        if let Some(reduction) = rack.reduction.as_mut().filter(|_| begins) {
            reduction.follow(&mut self.window, rack.in_network, 1, false);
        }
    }

    /// The timer is due, or the host's queue takes more.
    pub(super) fn wakes_by_time(&mut self, tcp: &Tcp, out: &mut impl Outbox) {
        let Some(mut board) = self.board.take() else { return };
        if let LossDetection::Rack(rack) = &mut *board {
            let is_due = out.now() >= rack.timer.at;
            match rack.timer.purpose {
                Purpose::Timeout if is_due => self.time_out_by_time(tcp, rack, out),
                Purpose::Probe if is_due => self.send_probe(tcp, rack, out),
                Purpose::Reordering if is_due => {
                    self.find_losses_in_time(tcp, rack, out);
                    self.send_by_time(tcp, rack, Next::LostFirst, out);
                    if rack.timer.purpose != Purpose::Timeout {
                        self.set_for_timeout(tcp, rack, out.now());
                    }
                }
                _ => {}
            }
            if rack.handed.resume_at <= out.now() {
                self.send_by_time(tcp, rack, Next::LostFirst, out);
            }
            wake(rack, out);
        }
        self.board = Some(board);
    }

    /// The retransmission timer expired: RFC 6298 rules 5.4 to 5.6, RFC 8985 §6.3,
    /// `tcp_enter_loss`.
    fn time_out_by_time(&mut self, tcp: &Tcp, rack: &mut Rack, out: &mut impl Outbox) {
        self.count_timeout(self.rtt.timeout(tcp, self.backoff));
        out.timed_out();
        rack.probe = None;
        // RFC 5682 §3.1 step 1: not while another loss is being repaired, but for the same timeout
        // again.
        let repairs = self.phase == Phase::Recovery || rack.after_timeout;
        rack.frto = tcp.undo_rules.frto && (!repairs || rack.timeouts > 0);
        if rack.timeouts == 0 {
            if rack.reduction.is_none() {
                self.remember(tcp, rack);
                self.reduce_by_time(&tcp.control);
            }
            tcp.control.on_timeout(&mut self.window, out.now(), self.max);
        }
        rack.reduction = None;
        self.phase = Phase::Open;
        self.recover = self.max;
        (self.window.cwr_end, self.cwr_due) = (0, true);
        self.backoff = self.backoff.saturating_add(1);
        rack.timeouts += 1;
        let window = rack.reordering_window(tcp, true, self.rtt.smoothed());
        rack.time_out(window, out.now());
        let kept = if tcp.timeout_keeps_network { rack.in_network } else { 0 };
        self.window.cwnd = f64::from(kept + 1);
        rack.timer = Timer::OFF;
        self.send_first_lost(tcp, rack, out);
        self.send_by_time(tcp, rack, Next::LostFirst, out);
        self.set_for_whole_timeout(tcp, rack, out.now());
    }

    /// A loss. What arrived beyond a hole makes room for more, so that more than a window can be
    /// unacknowledged: the window is what the path was asked to carry.
    pub(super) fn reduce_by_time(&mut self, control: &impl Controller) {
        let flight = (self.max - self.una).min(self.window.segments());
        control.on_loss(&mut self.window, flight);
    }
}
