//! What a group gets from others, and what it sends to them.

use weft_packet::Packet;
use weft_transport::Transports;
use weft_units::Time;

use super::Group;
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::mail::{Bag, Beside, Outbox};

impl<T: Transports> Group<'_, T> {
    /// Takes back what was posted to this group over a link, by arrival.
    pub fn take_back(&mut self, link: u32) -> Vec<(Packet, Option<Beside>)> {
        self.network.take_back_mail(link)
    }

    /// Takes in mail from other groups.
    pub fn put(&mut self, bag: &mut Bag) {
        let network = &mut self.network;
        bag.empty(|packet, beside, ahead| {
            if let Some(ahead) = ahead {
                network.fetch_for_mail(ahead);
            }
            network.take_in_mail(packet, beside);
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
