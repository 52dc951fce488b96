//! A packet comes to a port with several classes: into service, into the queue of its class, or dropped.

use super::service::{Outlet, count, outlet};
use super::{Ahead, Waiting};
use crate::engine::admission::{Admission, Found, Verdict};
use crate::engine::network::{Network, mark};
use crate::engine::pool::PacketIndex;
use crate::engine::special::{Peaks, Special};

impl Network<'_> {
    /// A packet comes to a port: into service, into the queue of its class, or dropped.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(in crate::engine) fn offer(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        if outlet.port.serves_at < now {
            return self.offer_late(link, index);
        }
        let packet = &outlet.pool[index];
        let (class, wire_bytes) = (outlet.port.sorting.class_of(packet), packet.wire_bytes);
        let service_ps = outlet.profile.service_ps(wire_bytes);
        if outlet.port.passes(class, now, (wire_bytes, service_ps)) {
            count(outlet.state, packet, &mut self.counts);
            outlet.state.busy_until = outlet.port.free_at;
            outlet.put_on_link(index);
        } else if outlet.port.is_late {
            self.queue_late(link, index, (class, service_ps));
        } else {
            self.queue_watched(link, index, (class, service_ps));
        }
    }

    /// The same at a port that has not said yet what it sent before.
    #[inline(never)]
    fn offer_late(&mut self, link: u32, index: PacketIndex) {
        let now = self.now.as_ps();
        if let Some(mut outlet) = outlet!(self, link) {
            outlet.send_before(now);
        }
        self.offer(link, index);
    }

    /// The same for a packet that may have to wait, at a port that is late. Nearly always nothing waits, but for others of its class
    /// that are on the link before their time: so it goes there, too.
    #[inline(never)]
    fn queue_late(&mut self, link: u32, index: PacketIndex, (class, service_ps): (usize, u64)) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        let (port, packet) = (&mut *outlet.port, &mut outlet.pool[index]);
        let ahead = port.count_ahead(now);
        if ahead > 0 && class != port.ahead_class {
            return self.offer_before_others(link, index);
        }
        let Some(queue) = port.classes.get_mut(class) else { return };
        if port.serves_at != u64::MAX || (port.free_at <= now && queue.bucket.is_none()) {
            return self.queue_behind(link, index, (class, service_ps));
        }
        // What is ahead and not held back follows at once on what is in service.
        let free_at = port.ahead.front().map_or(port.free_at, |first| first.free_at);
        let backlog_ps = port.free_at.saturating_sub(now);
        let found =
            Found { backlog_ps, packets: ahead as u32 + u32::from(free_at > now), waiting: ahead as u32 };
        let bytes = || outlet.profile.bytes_in(backlog_ps);
        match queue.admission.judge(packet, service_ps, found, bytes) {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[link as usize]),
            Verdict::Take => {}
        }
        count(outlet.state, packet, &mut self.counts);
        let (wire_bytes, free_at) = (packet.wire_bytes, port.free_at);
        let (begins_at, tokens) = queue.leave(free_at, wire_bytes);
        debug_assert!(begins_at > now, "what may go now does");
        port.ahead_class = class;
        let (since, behind) = (self.now, outlet.state.tail);
        outlet.put_ahead(Ahead { begins_at, since, service_ps, free_at, tokens, index, behind, wire_bytes });
    }

    /// The same for a packet that comes behind others, or has to be judged first.
    #[inline(never)]
    fn queue_behind(&mut self, link: u32, index: PacketIndex, (class, service_ps): (usize, u64)) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        let (port, packet) = (&mut *outlet.port, &mut outlet.pool[index]);
        let (rest_ps, is_free, ahead) = (port.rest_ps(now), port.is_free(now), port.count_ahead(now));
        let Some(queue) = port.classes.get_mut(class) else { return };
        let waiting = (queue.len() + ahead) as u32;
        let backlog_ps = rest_ps + queue.waiting_ps;
        let found = Found { backlog_ps, packets: waiting + u32::from(rest_ps > 0), waiting };
        let bytes = || outlet.profile.bytes_in(backlog_ps);
        match queue.admission.judge(packet, service_ps, found, bytes) {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[link as usize]),
            Verdict::Take => {}
        }
        count(outlet.state, packet, &mut self.counts);
        packet.arrive = self.now;
        let wire_bytes = packet.wire_bytes;
        port.push(class, Waiting { index, wire_bytes, service_ps, found_ps: backlog_ps }, now);
        // What had to be judged first, and finds its port free, is sent now.
        if is_free && port.serves_at <= now {
            outlet.send_before(now + 1);
        }
        outlet.arm_late();
    }

    /// A packet comes to a port that put others on the link which do not all go before it.
    #[inline(never)]
    fn offer_before_others(&mut self, link: u32, index: PacketIndex) {
        self.take_back(link);
        self.offer(link, index);
    }

    /// The same at a port that is not late.
    #[inline(never)]
    fn queue_watched(&mut self, link: u32, index: PacketIndex, (class, service_ps): (usize, u64)) {
        let now = self.now.as_ps();
        let Some(mut outlet) = outlet!(self, link) else { return };
        let Outlet { state, port, profile, pool, .. } = &mut outlet;
        let packet = &mut pool[index];
        let (rest_ps, wire_bytes) = (port.rest_ps(now), packet.wire_bytes);
        let (is_plain, is_free) = (port.is_plain, port.is_free(now));
        let Some(queue) = port.classes.get_mut(class) else { return };
        let waiting = queue.len() as u32;
        let backlog_ps = rest_ps + queue.waiting_ps;
        let found = Found { backlog_ps, packets: waiting + u32::from(rest_ps > 0), waiting };
        let is_up = is_plain || self.specials.get(state.special as usize).is_none_or(Special::is_up);
        let judge = |admission: &mut Admission| {
            admission.judge(packet, service_ps, found, || profile.bytes_in(backlog_ps))
        };
        match if is_up { judge(&mut queue.admission) } else { Verdict::Drop } {
            Verdict::Drop => return self.refuse(link, index),
            Verdict::Mark => mark(packet, &mut self.drops[link as usize]),
            Verdict::Take => {}
        }
        count(state, packet, &mut self.counts);
        let entering = Waiting { index, wire_bytes, service_ps, found_ps: backlog_ps };
        let goes = is_free && waiting == 0 && port.scheduler.is_strict() && queue.lets_go(now, wire_bytes);
        if !is_plain && self.peaks == Peaks::Kept {
            let bytes = port.backlog_bytes(now, profile) + u64::from(wire_bytes);
            port.peak_bytes = port.peak_bytes.max(bytes);
        }
        if goes {
            port.begin_service(now, wire_bytes, service_ps);
            let sent_before = state.bytes - port.waiting_bytes - u64::from(wire_bytes);
            return self.send_off_watched(link, entering, sent_before, true);
        }
        packet.arrive = self.now;
        port.push(class, entering, now);
        // With strict priority it is held back, as all that waits at a free port; where classes take turns, it may be its turn.
        let is_its_turn = is_free && !port.scheduler.is_strict();
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
}
