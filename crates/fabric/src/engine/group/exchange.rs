//! What a group gets from others, and what it sends to them.

use weft_packet::Packet;
use weft_transport::Transports;
use weft_units::Time;

use super::Group;
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::mail::{Bag, Beside, Outbox};

impl<T: Transports> Group<'_, T> {
    /// Takes in what arrives on a day and was beyond the timing wheel until now. Nothing happens here before that day.
    pub fn begin_day(&mut self, day: u64) {
        let (Some(mailbox), network) = (&mut self.mailbox, &mut self.network) else { return };
        network.events.turn_to(mailbox.begin_of(day));
        mailbox.hand_out(day, &mut self.mail);
        for posted in self.mail.drain(..) {
            let is_in = network.events.push_mail(posted, &network.pool);
            debug_assert!(is_in, "the wheel covers a day");
        }
    }

    /// Takes back what was posted to this group over a link, by arrival.
    pub fn take_back(&mut self, link: u32) -> Vec<(Packet, Option<Beside>)> {
        let (Some(mailbox), network) = (&mut self.mailbox, &mut self.network) else { return Vec::new() };
        let mut posted = mailbox.take_back(link);
        posted.append(&mut network.events.take_back_mail(&mut network.state.links, link));
        network.events.sort_mail(&mut posted, &network.pool);
        posted.into_iter().map(|(_, _, index)| network.take_out(index)).collect()
    }

    /// Takes in mail from other groups.
    pub fn put(&mut self, bag: &mut Bag) {
        let (Some(mailbox), network) = (&mut self.mailbox, &mut self.network) else { return };
        bag.empty(|packet, beside, ahead| {
            if let Some(ahead) = ahead {
                network.events.fetch_slot(ahead.arrive);
                network.pool.warm_free(Bag::AHEAD);
            }
            let index = network.take_in(packet, beside);
            network.pool[index].next = network.events.number_mail();
            let posted = (packet.arrive.as_ps(), packet.next, index);
            if !network.events.push_mail(posted, &network.pool) {
                mailbox.put(posted);
            }
        });
    }

    /// All that comes before the limit has been: posts what ports sent until then.
    pub fn close(&mut self, limit: (Time, EventKey)) {
        let is_behind = limit.1 > EventKey::new(EventKind::Port, u32::MAX);
        self.network.send_leaving(limit.0.as_ps() + u64::from(is_behind));
    }

    /// Does something; what leaves the group by it goes into this outbox.
    pub fn with_outbox<R>(&mut self, mut outbox: Option<&mut Outbox>, act: impl FnOnce(&mut Self) -> R) -> R {
        self.exchange(outbox.as_deref_mut());
        let result = act(self);
        self.exchange(outbox);
        result
    }

    const fn exchange(&mut self, outbox: Option<&mut Outbox>) {
        if let (Some(office), Some(outbox)) = (&mut self.network.office, outbox) {
            std::mem::swap(&mut office.outbox, outbox);
        }
    }
}
