//! Ports whose packets go to other parts of the fabric.
//!
//! What goes into service in a window arrives in a later one. So such a port, if nobody watches it,
//! has no events at all: what it sends is worked out when the next packet comes, or at the end of
//! the window, and all of it is sent then. Until then it is on the list of the link. The event set
//! has the numbers of ports where something waits, or is to be sent.

use super::service::{Outlet, outlet};
use crate::engine::network::Network;
use crate::engine::pool::{NO_PACKET, PacketIndex};
use weft_units::Time;

impl Outlet<'_> {
    /// A packet that has just gone into service is to be sent.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn put_on_way(&mut self, index: PacketIndex, arrive: u64) {
        self.packets[index as usize].arrive = Time::from_ps(arrive);
        let tail = std::mem::replace(&mut self.state.tail, index);
        match self.packets.get_mut(tail as usize) {
            Some(ahead) => ahead.next = index,
            None => self.state.head = index,
        }
        self.list();
    }

    /// Has something to say at the end of the window.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub(super) fn list(&mut self) {
        if !self.port.is_listed {
            self.port.is_listed = true;
            self.events.list_leaving(self.link, self.port.free_at);
        }
    }
}

impl Network<'_> {
    /// Posts what went into service before `until`, in ps, at ports whose packets leave this part.
    /// Nothing else comes to them before that.
    pub(in crate::engine) fn send_leaving(&mut self, until: u64) {
        let mut listed = self.events.take_leaving();
        listed.retain(|&link| {
            let serves_at = self.send_leaving_by(link, until);
            if serves_at != u64::MAX {
                self.events.leaves_again(serves_at);
            }
            serves_at != u64::MAX
        });
        self.events.put_leaving(listed);
    }

    /// Posts packets of one port that went into service before `until`. Returns when it sends next,
    /// in ps; `u64::MAX` if nothing waits there.
    fn send_leaving_by(&mut self, link: u32, until: u64) -> u64 {
        let Some(mut outlet) = outlet!(self, link) else { return u64::MAX };
        outlet.send_before(until);
        let serves_at = outlet.port.serves_at;
        outlet.port.is_listed = serves_at != u64::MAX;
        let (mut index, last) = (outlet.state.head, outlet.state.tail);
        (outlet.state.head, outlet.state.tail) = (NO_PACKET, NO_PACKET);
        while index != NO_PACKET {
            let packet = &self.pool[index];
            let next = if index == last { NO_PACKET } else { packet.next };
            let arrive = packet.arrive.as_ps();
            self.send_at_end(link, index, arrive);
            index = next;
        }
        serves_at
    }
}
