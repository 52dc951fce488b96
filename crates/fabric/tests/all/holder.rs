//! A scheme that holds data back at the leaf of its receiver, as a test says.

use weft_balance::{
    AnySwitchScheme, Arrival, ExternalScheme, NextHops, PortId, Ports, SwitchContext, SwitchHooks, SwitchInfo,
};
use weft_packet::{Kind, Kinds, Packet};
use weft_units::Span;

/// Action on a data packet that comes from another switch to the leaf of its receiver.
pub type Does = fn(&mut dyn SwitchContext, &Packet) -> Arrival;

/// Takes the first way, and does this at the last leaf.
#[derive(Clone, Copy)]
pub struct Holder {
    pub does: Does,
    /// When it lets go what is in queue 0 for the first time, and then how often; if it does.
    pub lets_go: Option<[Span; 2]>,
}

impl Holder {
    /// Scheme of one switch.
    pub fn scheme(self, info: &SwitchInfo<'_>) -> AnySwitchScheme {
        AnySwitchScheme::External(Box::new(AtSwitch { holder: self, rack: info.rack }))
    }
}

struct AtSwitch {
    holder: Holder,
    rack: Option<u16>,
}

impl ExternalScheme for AtSwitch {
    fn hooks(&self) -> SwitchHooks {
        SwitchHooks {
            on_arrival: Kinds::of(&[Kind::Data]),
            on_arrival_by: Ports::ToSwitches,
            timers: true,
            ..SwitchHooks::NONE
        }
    }

    fn choose(&mut self, _: &mut dyn SwitchContext, _: &mut Packet, _: &NextHops<'_>) -> usize {
        0
    }

    fn start(&mut self, cx: &mut dyn SwitchContext) {
        if let Some([first, _]) = self.holder.lets_go {
            cx.set_timer(first, 0);
        }
    }

    fn on_arrival(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, _: PortId) -> Arrival {
        let is_last = self.rack == Some(cx.rack_of(packet.dst));
        if is_last { (self.holder.does)(cx, packet) } else { Arrival::Forward }
    }

    fn on_timer(&mut self, cx: &mut dyn SwitchContext, _: u32) {
        if let Some([_, every]) = self.holder.lets_go {
            cx.release(0);
            cx.set_timer(every, 0);
        }
    }
}
