//! Packets that a partition gets from others, and those that it sends to them.

use weft_packet::Packet;
use weft_transport::Transports;
use weft_units::Time;

use super::Partition;
use super::batches::{Batch, OutgoingBatches, PacketExtras};
use crate::engine::event_set::{EventKey, EventKind};

impl<T: Transports> Partition<'_, T> {
    /// Takes back what was sent to this partition over a link, by arrival.
    pub fn take_back(&mut self, link: u32) -> Vec<(Packet, Option<PacketExtras>)> {
        self.network.take_back_sent(link)
    }

    /// Takes in a batch from other partitions.
    pub fn put(&mut self, batch: &mut Batch) {
        let network = &mut self.network;
        batch.empty(|packet, extras, ahead| {
            if let Some(ahead) = ahead {
                network.prefetch_sent(ahead);
            }
            network.take_in_sent(packet, extras);
        });
    }

    /// All events before the limit are done: sends what ports served until then.
    pub fn close(&mut self, limit: (Time, EventKey)) {
        let is_behind = limit.1 > EventKey::new(EventKind::Port, u32::MAX);
        self.network.send_leaving(limit.0.as_ps() + u64::from(is_behind));
    }

    /// Calls `act`; packets that leave the partition meanwhile go into `outgoing`.
    pub fn with_outgoing<R>(
        &mut self,
        mut outgoing: Option<&mut OutgoingBatches>,
        act: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.exchange(outgoing.as_deref_mut());
        let result = act(self);
        self.exchange(outgoing);
        result
    }

    const fn exchange(&mut self, outgoing: Option<&mut OutgoingBatches>) {
        if let (Some(exchange), Some(outgoing)) = (&mut self.network.exchange, outgoing) {
            std::mem::swap(&mut exchange.outgoing, outgoing);
        }
    }
}
