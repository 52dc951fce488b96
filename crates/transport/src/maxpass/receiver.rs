//! The receiving end: credits over several paths, the choice among them, and one account of what
//! arrived.

use weft_packet::Kind;
use weft_units::{Span, Time};

use super::MaxPass;
use crate::credits::pacer::{Pacer, least_gap_bytes, ticks};
use crate::credits::sender::SUBFLOW_STOP;
use crate::selective::Intake;
use crate::{ArrivedPacket, Delivery, FlowSize, Outbox, Ports, ReceiverStats};

/// Credits over one path.
#[derive(Debug, Clone)]
struct Subflow {
    pacer: Pacer,
    /// Whether data answered a credit of the last probing.
    answered: bool,
}

/// The next credit of a path in use.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Time,
    port: u8,
}

/// A credit stop that is not answered yet, since segments may still be under way.
#[derive(Debug, Clone, Copy)]
struct Stop {
    port: u8,
    sent: Time,
    answer_at: Time,
}

/// The receiving end of a flow.
#[derive(Debug, Clone)]
pub struct Receiver {
    intake: Intake,
    /// One a port that the request named; none before it came.
    subflows: Vec<Subflow>,
    /// Those in use, by port.
    due: Vec<Due>,
    /// The place of the credit that was the first when it was last looked for: it still is, if
    /// there is one.
    first: usize,
    /// Whether the sender wants credits.
    crediting: bool,
    /// Since when all paths are tried out, if they are.
    probing: Option<Time>,
    stop: Option<Stop>,
    reselections: u32,
}

impl Receiver {
    /// Probing lasts so many times the smallest round-trip time, at most.
    const PROBING_ROUNDS: u64 = 2;

    pub(super) const fn new(size: FlowSize) -> Self {
        Self {
            intake: Intake::new(size),
            subflows: Vec::new(),
            due: Vec::new(),
            first: 0,
            crediting: false,
            probing: None,
            stop: None,
            reselections: 0,
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // It has one caller.
    pub(super) fn receives(
        &mut self,
        protocol: &MaxPass,
        arrived: ArrivedPacket<'_>,
        out: &mut impl Ports,
    ) -> Delivery {
        if arrived.packet.kind == Kind::Data {
            return self.on_data(protocol, arrived, out);
        }
        self.on_signal(protocol, arrived, out);
        Delivery::Ongoing
    }

    /// Few packets are no data: what they need is not in the way of the others.
    #[cold]
    #[inline(never)]
    fn on_signal(&mut self, protocol: &MaxPass, arrived: ArrivedPacket<'_>, out: &mut impl Ports) {
        match arrived.packet.kind {
            Kind::CreditRequest if !self.crediting => self.on_request(protocol, out),
            Kind::CreditStop => self.on_stop(protocol, arrived, out),
            _ => {}
        }
    }

    pub(super) fn wakes(&mut self, protocol: &MaxPass, out: &mut impl Ports) {
        if self.stop.is_some_and(|stop| stop.answer_at <= out.now()) {
            self.answer(protocol, out);
        }
        if self.crediting {
            self.send_credits(protocol, out);
        }
    }

    fn on_request(&mut self, protocol: &MaxPass, out: &mut impl Ports) {
        if self.subflows.is_empty() {
            let new = Subflow { pacer: Pacer::new(&protocol.terms), answered: false };
            self.subflows = vec![new; usize::from(out.ports())];
        }
        self.crediting = true;
        self.stop = None;
        self.use_all(protocol, out);
        self.send_credits(protocol, out);
    }

    /// Uses all paths at the initial rate, which they share: to choose among them if there are more
    /// than it keeps.
    fn use_all(&mut self, protocol: &MaxPass, out: &impl Outbox) {
        let (now, paths) = (out.now(), self.subflows.len());
        let rate = protocol.terms.initial_rate / paths as f64;
        // One path after the other, so that no credit waits for another at the receiver's own port.
        let apart = (least_gap_bytes(&protocol.terms) as f64 / protocol.terms.initial_rate) as u64;
        self.due.clear();
        for (subflow, port) in self.subflows.iter_mut().zip(0u8..) {
            subflow.pacer.begin(&protocol.terms, rate, now);
            subflow.answered = false;
            self.due.push(Due { at: now.saturating_add(ticks(apart * u64::from(port), out)), port });
        }
        self.first = 0;
        self.probing = (paths > protocol.keep).then_some(now);
    }

    /// Sends what credits are due, and sees to it that the next one follows. Nearly always one is
    /// due: so this is no loop, which would prepare for more.
    fn send_credits(&mut self, protocol: &MaxPass, out: &mut impl Ports) {
        let now = out.now();
        if self.due.get(self.first).is_none_or(|first| first.at > now) {
            let next_at = self.find_first();
            if next_at > now {
                return self.wake_at(next_at, out);
            }
        }
        let Some(&Due { port, .. }) = self.due.get(self.first) else { return };
        let has_hole = self.intake.has_hole(now, || patience(&self.subflows));
        let has_others = self.subflows.len() > protocol.keep;
        let Some(Subflow { pacer, .. }) = self.subflows.get_mut(usize::from(port)) else { return };
        if self.probing.is_none() {
            pacer.update(&protocol.terms, self.due.len() as u32, now, out);
            // MaxPass Alg. 2 lines 15 to 17.
            if has_others && is_congested(protocol, pacer, now) {
                self.reselections += 1;
                self.use_all(protocol, out);
                return self.send_more(protocol, out);
            }
        }
        let acknowledges = (self.intake.expected, has_hole);
        let next_at = pacer.send(&protocol.terms, acknowledges, now, &mut out.by(port));
        if let Some(first) = self.due.get_mut(self.first) {
            first.at = next_at;
        }
        let next_at = self.find_first();
        if next_at <= now {
            return self.send_more(protocol, out);
        }
        self.wake_at(next_at, out);
    }

    /// Sends one more credit. Not inlined: that would make a loop of it.
    #[cold]
    #[inline(never)]
    fn send_more(&mut self, protocol: &MaxPass, out: &mut impl Ports) {
        self.send_credits(protocol, out);
    }

    /// When the next credit goes. Which one that is, is noted: of several at one instant, that of
    /// the first port.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn find_first(&mut self) -> Time {
        let first = match self.due[..] {
            // As nearly always: a loop takes more instructions.
            [first, second] if second.at < first.at => (second.at, 1),
            [first] | [first, _] => (first.at, 0),
            _ => self.search_first(),
        };
        self.first = first.1;
        first.0
    }

    /// When the next credit goes, and its place.
    #[inline(never)]
    fn search_first(&self) -> (Time, usize) {
        let mut first = (Time::NEVER, 0);
        for (place, due) in self.due.iter().enumerate() {
            if due.at < first.0 {
                first = (due.at, place);
            }
        }
        first
    }

    fn arm(&mut self, out: &mut impl Ports) {
        let next_at = self.find_first();
        self.wake_at(next_at, out);
    }

    /// Wakes for the next credit, or to answer a credit stop.
    fn wake_at(&self, next_credit_at: Time, out: &mut impl Ports) {
        let answer = self.stop.map_or(Time::NEVER, |stop| stop.answer_at);
        out.wake_at(next_credit_at.min(answer));
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn on_data(&mut self, protocol: &MaxPass, arrived: ArrivedPacket<'_>, out: &mut impl Ports) -> Delivery {
        let now = out.now();
        let data = arrived.packet;
        if let Some(subflow) = self.subflows.get_mut(usize::from(arrived.port)) {
            subflow.answered |= subflow.pacer.note_echo(data.sent, now, out);
            if data.flags.has(SUBFLOW_STOP) {
                self.stop_subflow(arrived.port);
            }
        }
        if let Some(since) = self.probing {
            self.choose(protocol, since, out);
        }
        let delivery = self.intake.deliver(data, now);
        if self.stop.is_some() && self.intake.is_complete() {
            self.answer(protocol, out);
        }
        delivery
    }

    /// Takes a path out of use, unless it is the last one.
    #[cold]
    #[inline(never)]
    fn stop_subflow(&mut self, port: u8) {
        if self.due.len() > 1 {
            self.retain(|used| used != port);
        }
    }

    /// Takes all other paths out of use.
    fn retain(&mut self, stays: impl Fn(u8) -> bool) {
        self.due.retain(|due| stays(due.port));
        self.first = usize::MAX;
    }

    /// Keeps the paths with the smallest round-trip times, once it knows them.
    #[cold]
    #[inline(never)]
    fn choose(&mut self, protocol: &MaxPass, since: Time, out: &mut impl Ports) {
        let now = out.now();
        let measured = |due: &Due| {
            let subflow = &self.subflows[usize::from(due.port)];
            subflow.answered.then(|| (subflow.pacer.rtt(), due.port))
        };
        let mut fastest: Vec<(Span, u8)> = self.due.iter().filter_map(measured).collect();
        fastest.sort_unstable();
        let Some(&(least, _)) = fastest.first() else { return };
        if fastest.len() < self.subflows.len() && now.since(since) < least * Self::PROBING_ROUNDS {
            return;
        }
        fastest.truncate(protocol.keep);
        self.probing = None;
        let rate = protocol.terms.initial_rate / fastest.len() as f64;
        for &(_, kept) in &fastest {
            self.subflows[usize::from(kept)].pacer.control_anew(&protocol.terms, rate, now);
        }
        self.retain(|port| fastest.iter().any(|&(_, kept)| kept == port));
    }

    fn on_stop(&mut self, protocol: &MaxPass, arrived: ArrivedPacket<'_>, out: &mut impl Ports) {
        self.crediting = false;
        self.probing = None;
        for subflow in &mut self.subflows {
            subflow.pacer.end();
        }
        self.due.clear();
        let patience = if self.intake.is_complete() { Span::ZERO } else { patience(&self.subflows) };
        let answer_at = out.now().saturating_add(patience);
        self.stop = Some(Stop { port: arrived.port, sent: arrived.packet.sent, answer_at });
        if patience.is_zero() {
            self.answer(protocol, out);
        } else {
            self.arm(out);
        }
    }

    /// Answers the credit stop.
    #[cold]
    #[inline(never)]
    fn answer(&mut self, protocol: &MaxPass, out: &mut impl Ports) {
        if let Some(stop) = self.stop.take() {
            self.arm(out);
            out.by(stop.port).send(protocol.terms.signal(Kind::Ack, self.intake.expected, stop.sent));
        }
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        ReceiverStats {
            credits_sent: self.subflows.iter().map(|subflow| subflow.pacer.credits_sent()).sum(),
            reselections: self.reselections,
            ..self.intake.stats()
        }
    }
}

/// For how long a segment may be late on one path while others arrive: no path is behind by more
/// than its round trip. Nothing overtakes on a single path.
fn patience(subflows: &[Subflow]) -> Span {
    if subflows.len() < 2 {
        return Span::ZERO;
    }
    subflows.iter().map(|subflow| subflow.pacer.rtt()).max().unwrap_or_default()
}

/// Whether a path lost too many credits t times in a row (MaxPass Alg. 2 line 15), or all of t
/// round trips.
fn is_congested(protocol: &MaxPass, pacer: &Pacer, now: Time) -> bool {
    let rounds = protocol.reselect_after;
    pacer.decreases() >= rounds || pacer.is_silent(rounds, now)
}
