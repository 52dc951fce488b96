//! A packet comes to a port with several classes: into service, into the queue of its class, or
//! dropped.

use weft_packet::Kind;
use weft_units::{Stream, Time};

use super::planned::Ahead;
use super::service::{Outlet, count, outlet};
use super::{Beside, Rare, Waiting};
use crate::engine::admission::{Found, Verdict};
use crate::engine::drops::DropCause;
use crate::engine::network::{Network, PacketCounts, mark};
use crate::engine::pool::{PacketIndex, note_blocked, units_of};
use crate::engine::retransmission_causes::Dropped;
use crate::engine::shared_buffer::OWN;
use crate::engine::special::{Peaks, Special};

/// Where a packet goes that comes to a port.
enum Goes {
    /// Onto the link, ahead of its time if it has to wait.
    OnLink,
    /// Before some that are there ahead of their time: these are to be taken back.
    BeforeOthers,
    /// Behind others of its class, or nowhere: it has to be judged first.
    Behind,
    /// Nowhere: it is dropped.
    Nowhere,
    /// That is for a port to say which is not late.
    Watched,
}

/// Random stream by which a class marks packets, if it does.
#[inline]
fn stream_of(rare: &mut [Rare], class: usize) -> Option<&mut Stream> {
    rare.get_mut(class)?.stream.as_mut()
}

impl Outlet<'_> {
    /// A packet comes that may have to wait, at a port that is late. Nearly always nothing waits,
    /// but for others of its class that are on the link before their time: so it goes there, too.
    /// Inlined by force: a call would look up again all that the caller has.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn queue_late<const FAR: bool>(
        &mut self,
        index: PacketIndex,
        (class, (wire_bytes, service_ps)): (usize, (u16, u64)),
        since: Time,
        counts: &mut PacketCounts,
    ) -> Goes {
        let now = since.as_ps();
        let port = &mut *self.port;
        let ahead = port.count_ahead(now);
        if ahead > 0 && class != usize::from(port.ahead_class) {
            return Goes::BeforeOthers;
        }
        let is_counted = port.counts();
        let Some(queue) = port.classes.get_mut(class) else { return Goes::Behind };
        // What a packet that is marked when it leaves will leave behind, nobody knows yet.
        let is_marked_later = port.rules.first(class).marks_leaving;
        if port.serves_at != u64::MAX || is_marked_later || (port.free_at <= now && queue.bucket.is_none()) {
            return Goes::Behind;
        }
        // What is ahead and not held back follows at once on what is in service.
        let free_at = port.ahead.first().map_or(port.free_at, |first| first.free_at);
        let backlog_ps = port.free_at.saturating_sub(now);
        let found =
            Found { backlog_ps, packets: ahead as u32 + u32::from(free_at > now), waiting: ahead as u32 };
        let packet = &mut self.packets[index as usize];
        let bytes = || self.profile.bytes_in(backlog_ps);
        let admission = &port.rules.class(class).admission;
        match admission.judge(packet, service_ps, found, bytes, || stream_of(&mut port.rare, class)) {
            Verdict::Drop => return Goes::Nowhere,
            Verdict::Mark => {
                port.rare[class].marked += u64::from(mark(packet));
            }
            Verdict::Take => {}
        }
        count::<FAR>(self.state, packet, counts);
        if is_counted {
            queue.note(wire_bytes, self.profile.bytes_in(backlog_ps));
        }
        let free_at = port.free_at;
        let (begins_at, tokens) = queue.leave(free_at, wire_bytes);
        debug_assert!(begins_at > now, "what may go now does");
        port.ahead_class = class as u8;
        let behind = self.state.tail;
        self.put_ahead(Ahead { begins_at, since, service_ps, free_at, tokens, index, behind, wire_bytes });
        Goes::OnLink
    }

    /// A packet of this class comes to a port that has said all that it sent before: onto the link,
    /// if it may go there at once.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn take_in<const FAR: bool>(
        &mut self,
        index: PacketIndex,
        (class, service_ps): (usize, u64),
        since: Time,
        counts: &mut PacketCounts,
    ) -> Goes {
        let packet = &self.packets[index as usize];
        let size = (packet.wire_bytes, service_ps);
        if self.port.passes(class, since.as_ps(), size) {
            count::<FAR>(self.state, packet, counts);
            self.state.busy_until = self.port.free_at;
            if self.port.has_more {
                self.port.note(class, size.0, 0);
                self.put_on_link(index);
            } else {
                self.put_on_wire(index);
            }
            Goes::OnLink
        } else if self.port.is_late {
            self.queue_late::<FAR>(index, (class, size), since, counts)
        } else if self.port.leaves {
            Goes::Behind
        } else {
            Goes::Watched
        }
    }

    /// The class of a packet, and how long it takes to send, in ps. If it is not `FAR`, that is
    /// none unless the class is one of the first and the packet none of a scheme: as nearly all
    /// are, so that the compiler knows it and what follows need not ask.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn class_and_service<const FAR: bool>(&self, index: PacketIndex) -> Option<(usize, u64)> {
        let (packet, rules) = (&self.packets[index as usize], &self.port.rules);
        let class = if FAR { rules.class_of(packet) } else { rules.near_class_of(packet)? };
        Some((class, self.profile.service_ps(packet.wire_bytes)))
    }

    /// A packet comes behind others, or has to be judged first. False if its class does not take
    /// it.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn queue_behind<const FAR: bool>(
        &mut self,
        index: PacketIndex,
        (class, service_ps): (usize, u64),
        since: Time,
        counts: &mut PacketCounts,
    ) -> bool {
        let now = since.as_ps();
        let (port, packet) = (&mut *self.port, &mut self.packets[index as usize]);
        let (rest_ps, is_free, ahead) = (port.rest_ps(now), port.is_free(now), port.count_ahead(now));
        let is_counted = port.counts();
        let admission = &port.rules.class(class).admission;
        let Some(queue) = port.classes.get_mut(class) else { return false };
        let waiting = (queue.len() + ahead) as u32;
        let backlog_ps = rest_ps + queue.waiting_ps;
        let found = Found { backlog_ps, packets: waiting + u32::from(rest_ps > 0), waiting };
        let bytes = || self.profile.bytes_in(backlog_ps);
        match admission.judge(packet, service_ps, found, bytes, || stream_of(&mut port.rare, class)) {
            Verdict::Drop => {
                // What was taken back for it is put ahead again.
                self.arm_late();
                return false;
            }
            Verdict::Mark => {
                port.rare[class].marked += u64::from(mark(packet));
            }
            Verdict::Take => {}
        }
        count::<FAR>(self.state, packet, counts);
        packet.arrive = since;
        let wire_bytes = packet.wire_bytes;
        if is_counted {
            queue.note(wire_bytes, bytes());
        }
        let waiting = Waiting { index, wire_bytes, service_ps, beside: Beside::NOTHING };
        port.push(class, waiting, self.packets, now);
        // What had to be judged first, and finds its port free, is sent now.
        if is_free && port.serves_at <= now {
            self.send_before(now + 1);
        }
        self.arm_late();
        true
    }
}

impl Network<'_> {
    /// A packet comes to a port: into service, into the queue of its class, or dropped.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(in crate::engine) fn offer(&mut self, link: u32, index: PacketIndex) {
        let since = self.now;
        let Some(mut outlet) = outlet!(self, link) else { return };
        // What goes into service at this very instant does so later. But that is rare, and is asked
        // here for all that follows.
        if outlet.port.serves_at <= since.as_ps() {
            return self.offer_late(link, index);
        }
        let Some(sorted) = outlet.class_and_service::<false>(index) else {
            return self.offer_far(link, index);
        };
        match outlet.take_in::<false>(index, sorted, since, &mut self.counts) {
            Goes::OnLink => {}
            Goes::BeforeOthers => self.offer_before_others(link, index),
            Goes::Behind => self.queue_behind(link, index, sorted),
            Goes::Nowhere => self.refuse_by_class(link, index, sorted.0, true, DropCause::Queue),
            Goes::Watched => self.queue_watched(link, index, sorted),
        }
    }

    /// Takes a packet at a port that has not said yet what it sent before. All in one, for a busy
    /// port where packets get their marks as they leave has nothing else to do: each call would
    /// look up again all that the caller has.
    #[inline(never)]
    fn offer_late(&mut self, link: u32, index: PacketIndex) {
        self.offer_to_busy::<false>(link, index);
    }

    /// A packet comes to a port that belongs to a scheme, or whose class is not one of the first.
    #[inline(never)]
    fn offer_far(&mut self, link: u32, index: PacketIndex) {
        self.offer_to_busy::<true>(link, index);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn offer_to_busy<const FAR: bool>(&mut self, link: u32, index: PacketIndex) {
        let since = self.now;
        let Some(mut outlet) = outlet!(self, link) else { return };
        outlet.send_before(since.as_ps());
        let Some(sorted) = outlet.class_and_service::<FAR>(index) else {
            return self.offer_far(link, index);
        };
        match outlet.take_in::<FAR>(index, sorted, since, &mut self.counts) {
            Goes::OnLink => {}
            Goes::BeforeOthers => self.offer_before_others(link, index),
            Goes::Behind => {
                if !outlet.queue_behind::<FAR>(index, sorted, since, &mut self.counts) {
                    self.refuse_by_class(link, index, sorted.0, true, DropCause::Queue);
                }
            }
            Goes::Nowhere => self.refuse_by_class(link, index, sorted.0, true, DropCause::Queue),
            Goes::Watched => self.queue_watched(link, index, sorted),
        }
    }

    /// A packet comes behind others, or has to be judged first.
    #[inline(never)]
    fn queue_behind(&mut self, link: u32, index: PacketIndex, sorted: (usize, u64)) {
        let since = self.now;
        let Some(mut outlet) = outlet!(self, link) else { return };
        if !outlet.queue_behind::<true>(index, sorted, since, &mut self.counts) {
            self.refuse_by_class(link, index, sorted.0, true, DropCause::Queue);
        }
    }

    /// A packet comes to a port that put others on the link which do not all go before it.
    #[inline(never)]
    fn offer_before_others(&mut self, link: u32, index: PacketIndex) {
        self.take_back(link);
        self.offer(link, index);
    }

    /// Queues a packet at a port that is not late.
    #[inline(never)]
    fn queue_watched(&mut self, link: u32, index: PacketIndex, (class, service_ps): (usize, u64)) {
        let now = self.now.as_ps();
        if self.shared_buffers.is_some() {
            self.book_blocked(link, index);
        }
        let pulled = self.begins_way(link, index);
        let stopped_ps = pulled.unwrap_or(0);
        let Some(Outlet { state, port, profile, packets, .. }) = outlet!(self, link) else { return };
        let packet = &mut packets[index as usize];
        let (rest_ps, wire_bytes) = (port.rest_ps(now), packet.wire_bytes);
        let (is_plain, is_free) = (port.is_plain, port.is_free(now));
        let admission = &port.rules.class(class).admission;
        let Some(queue) = port.classes.get_mut(class) else { return };
        let waiting = queue.len() as u32;
        let backlog_ps = rest_ps + queue.waiting_ps;
        let found = Found { backlog_ps, packets: waiting + u32::from(rest_ps > 0), waiting };
        let is_up = is_plain || self.state.specials.get(state.special as usize).is_none_or(Special::is_up);
        let bytes = || profile.bytes_in(backlog_ps);
        let verdict = if is_up {
            admission.judge(packet, service_ps, found, bytes, || stream_of(&mut port.rare, class))
        } else {
            Verdict::Drop
        };
        if verdict == Verdict::Drop {
            return self.refuse_by_class(link, index, class, is_up, DropCause::Queue);
        }
        let may_go = is_free && waiting == 0 && port.is_strict && !queue.is_paused();
        let goes = may_go && queue.lets_go(now, wire_bytes);
        // What goes at once takes no memory.
        let came_by = match if goes { Ok(OWN) } else { self.admit_to(link, class, wire_bytes) } {
            Ok(came_by) => came_by,
            Err(cause) => return self.refuse_by_class(link, index, class, is_up, cause),
        };
        let Some(mut outlet) = outlet!(self, link) else { return };
        let Outlet { state, port, profile, packets, blocked, .. } = &mut outlet;
        let packet = &mut packets[index as usize];
        if verdict == Verdict::Mark && mark(packet) {
            port.rare[class].marked += 1;
        }
        port.note(class, wire_bytes, profile.bytes_in(backlog_ps));
        count::<true>(state, packet, &mut self.counts);
        let own = class.checked_sub(port.first_own());
        let paused_before_ps =
            port.aside.pausing.as_ref().zip(own).map_or(0, |(pausing, own)| pausing.paused_ps(own, now));
        let paused_before_ps = paused_before_ps.saturating_sub(stopped_ps);
        let beside = Beside { found_ps: backlog_ps, came_by, paused_before_ps };
        let entering = Waiting { index, wire_bytes, service_ps, beside };
        if !is_plain && self.peaks == Peaks::Kept {
            let bytes = port.backlog_bytes(now, profile) + u64::from(wire_bytes);
            port.aside.peak_bytes = port.aside.peak_bytes.max(bytes);
        }
        if goes {
            note_blocked(blocked, index, state.tier, units_of(stopped_ps));
            port.begin_service(now, wire_bytes, service_ps);
            let sent_before = state.bytes - port.waiting_bytes - u64::from(wire_bytes);
            return self.send_off_watched(link, entering, sent_before, true);
        }
        packet.arrive = self.now;
        if let (Some(_), Some(pausing), Some(own)) = (pulled, &mut port.aside.pausing, own) {
            pausing.pulled_waits(own, index);
        }
        port.push(class, entering, packets, now);
        // With strict priority it is held back, as all that waits at a free port; where classes
        // take turns, it may be its turn.
        let is_its_turn = is_free && !port.is_strict;
        if !is_its_turn {
            outlet.arm(now);
        }
        if !is_plain {
            self.trace_offered(link, index);
        }
        if is_its_turn {
            self.serve_by_turns(link);
        }
    }

    /// Whether the memory of the port's switch has room for a packet of this class: then it is on
    /// the account of the port that is returned.
    #[inline]
    fn admit_to(&mut self, link: u32, class: usize, wire_bytes: u16) -> Result<u16, DropCause> {
        if self.shared_buffers.is_none() {
            return Ok(OWN);
        }
        self.own_class(link, class).map_or(Ok(OWN), |own| self.admit(link, own, wire_bytes))
    }

    /// The memory of a port's switch has no room for a packet that is to be held back: it is
    /// dropped at the port, or cut.
    #[cold]
    pub(in crate::engine) fn refuse_to_hold(
        &mut self,
        link: u32,
        index: PacketIndex,
        own_class: u8,
        cause: DropCause,
    ) {
        let Some(Outlet { port, .. }) = outlet!(self, link) else { return };
        let class = port.first_own() + usize::from(own_class);
        self.refuse_by_class(link, index, class, true, cause);
    }

    /// A class does not take a packet: it is dropped, or cut to its header.
    #[cold]
    fn refuse_by_class(
        &mut self,
        link: u32,
        index: PacketIndex,
        class: usize,
        is_up: bool,
        cause: DropCause,
    ) {
        let Some(Outlet { port, packets, .. }) = outlet!(self, link) else { return };
        let packet = &mut packets[index as usize];
        let trim_bytes = port.rules.class(class).trim_bytes;
        let is_cut = is_up && packet.kind == Kind::Data && trim_bytes > 0;
        let rare = &mut port.rare[class];
        if !is_cut {
            rare.dropped += 1;
            self.trace_offered(link, index);
            return self.drop_at(link, if is_up { cause } else { DropCause::Down }, index);
        }
        rare.trimmed += 1;
        if packet.flow.connection().is_none() {
            self.dropped.push(Dropped::trimmed(packet, self.now));
        }
        packet.kind = Kind::Trimmed;
        packet.wire_bytes = packet.wire_bytes.min(trim_bytes);
        self.offer(link, index);
    }
}
