//! External schemes: switch schemes that the registry does not name.

use weft_packet::Packet;

use crate::{Arrival, NextHops, PortId, Queued, SwitchContext, SwitchHooks};

/// An external scheme, for prototypes: called through a pointer, once a
/// packet.
pub trait ExternalScheme: Send {
    /// The optional calls that it wants, asked for once.
    fn hooks(&self) -> SwitchHooks {
        SwitchHooks::default()
    }

    /// As [`crate::SwitchScheme::needs_waiting_bytes`].
    fn needs_waiting_bytes(&self) -> bool {
        false
    }

    /// As [`crate::SwitchScheme::choose`].
    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize;

    /// As [`crate::SwitchScheme::start`].
    fn start(&mut self, _cx: &mut dyn SwitchContext) {}

    /// As [`crate::SwitchScheme::on_arrival`].
    fn on_arrival(&mut self, _cx: &mut dyn SwitchContext, _packet: &mut Packet, _port: PortId) -> Arrival {
        Arrival::Forward
    }

    /// As [`crate::SwitchScheme::on_timer`].
    fn on_timer(&mut self, _cx: &mut dyn SwitchContext, _token: u32) {}

    /// As [`crate::SwitchScheme::on_enqueued`].
    fn on_enqueued(&mut self, _cx: &mut dyn SwitchContext, _packet: &mut Packet, _queued: Queued) {}

    /// As [`crate::SwitchScheme::on_port_change`].
    fn on_port_change(&mut self, _cx: &mut dyn SwitchContext, _port: PortId) {}

    /// As [`crate::SwitchScheme::state_bytes`]; 0 if it is not known.
    fn state_bytes(&self) -> u64 {
        0
    }

    /// As [`crate::SwitchScheme::counters`].
    fn counters(&self, _count: &mut dyn FnMut(&'static str, u64)) {}
}
