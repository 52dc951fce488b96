//! Prefetch of the memory that packets and the RDMA card of a host will need: see
//! [`crate::engine::ahead`].

use weft_packet::Packet;
use weft_transport::{Protocol, Transports};

use super::flow::{Receiver, Sender, Side};
use super::{Host, ReceiverOf, RunPlan, SenderOf};
use crate::engine::fetch::{fetch, fetch_at, fetch_first};

impl<T: Transports> Host<T> {
    /// Asks for what a packet needs of the host: see [`crate::engine::ahead`].
    #[inline]
    pub fn fetch(&self, packet: &Packet) {
        match Side::of(packet) {
            Side::Sender => fetch(&self.senders),
            Side::Receiver => fetch(&self.receivers),
        }
    }

    /// Asks for what a host with an RDMA card has beside its ends.
    #[inline]
    pub fn fetch_card(&self) {
        const BYTES: usize = 3 * 64;
        fetch_first(&*self.rest, BYTES);
    }

    /// Asks for the senders, of which the card will ask one.
    #[inline]
    pub fn fetch_senders(&self) {
        fetch(&self.senders);
    }

    /// Asks for what tells whom the card asks next.
    #[inline]
    pub fn fetch_lanes(&self) {
        self.rest.rnic.fetch();
    }

    /// Asks for what tells where the queue pairs are that the card asks next: of each class, and of
    /// those that wait for a time.
    #[inline]
    pub fn fetch_pairs(&self) {
        self.rest.rnic.next().for_each(|number| self.senders.fetch_place(number));
    }

    /// Asks for these queue pairs.
    #[inline]
    pub fn fetch_asked(&self) {
        self.rest
            .rnic
            .next()
            .for_each(|number| self.senders.fetch_end(number, Sender::<SenderOf<T>>::HOT_BYTES));
    }

    /// Asks for what these queue pairs keep elsewhere.
    #[inline]
    pub fn fetch_kept_by_asked(&self, plan: &RunPlan<'_, T>) {
        self.rest.rnic.next().for_each(|number| self.fetch_kept(plan, number));
    }

    /// Asks for what the end of a flow keeps elsewhere that a packet is for.
    #[inline]
    pub fn fetch_kept_for(&self, plan: &RunPlan<'_, T>, packet: &Packet, number: u32) {
        match Side::of(packet) {
            Side::Sender => self.fetch_kept(plan, number),
            Side::Receiver => {
                self.receivers.look(number).into_iter().for_each(|end| end.end.first.fetch_edge());
            }
        }
    }

    #[inline]
    fn fetch_kept(&self, plan: &RunPlan<'_, T>, number: u32) {
        if let Some(sender) = self.senders.look(number) {
            sender.end.first.fetch_edge();
            plan.of(&sender.end).prefetch_sender(&sender.state, |place| fetch_at(place.cast()));
        }
    }

    /// Asks for what says where the end of a flow is that a packet is for.
    #[inline]
    pub fn fetch_place(&self, packet: &Packet, number: u32) {
        match Side::of(packet) {
            Side::Sender => self.senders.fetch_place(number),
            Side::Receiver => self.receivers.fetch_place(number),
        }
    }

    /// Asks for the end itself.
    #[inline]
    pub fn fetch_end(&self, packet: &Packet, number: u32) {
        match Side::of(packet) {
            Side::Sender => self.senders.fetch_end(number, Sender::<SenderOf<T>>::HOT_BYTES),
            Side::Receiver => self.receivers.fetch_end(number, Receiver::<ReceiverOf<T>>::HOT_BYTES),
        }
    }
}
