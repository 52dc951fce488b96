//! ConWeave: the source leaf moves a connection when its path is slow, and the destination leaf
//! puts its packets in order again (Song et al., SIGCOMM 2023). For RDMA, which bears nothing out
//! of order.
//!
//! One packet an epoch asks the far leaf for an answer. If the answer is late, one more packet goes
//! by the old path, as its TAIL, and those behind it go by another that is not known to be
//! congested. The far leaf holds what comes by the new path until the TAIL is there, and then says
//! so; the next epoch begins. So a connection is never under way on more than two paths, and one
//! queue puts it in order. A lost TAIL is waited for until it should have come.
//!
//! Only leaves know of it. Switches above hash, or go by the path's number if `above` says how many
//! ways there are. Packets other than data go by ECMP.

use weft_packet::{Kind, Kinds, Packet};

use self::destination::Destination;
use self::header::Header;
use self::source::Source;
use super::ecmp::{self, Ecmp};
use crate::{Arrival, NextHops, PortId, Ports, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme};

mod destination;
mod header;
mod params;
mod source;
#[cfg(test)]
mod tests;

pub use params::{Params, WhenFull};

/// ConWeave at one switch.
#[derive(Debug, Clone)]
pub struct ConWeave {
    ecmp: Ecmp,
    above: u8,
    leaf: Option<Box<Leaf>>,
}

/// State that only a leaf has.
#[derive(Debug, Clone)]
struct Leaf {
    rack: u16,
    source: Source,
    destination: Destination,
}

impl SwitchScheme for ConWeave {
    type Params = Params;

    const HOOKS: SwitchHooks = SwitchHooks {
        on_arrival: Kinds::of(&[Kind::Data, Kind::Trimmed, Kind::Control]),
        on_arrival_by: Ports::ToSwitches,
        ..SwitchHooks::NONE
    };

    const LOOKS_AT_QUEUES: bool = false;

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let leaf = |rack| Leaf {
            rack,
            source: Source::new(params, info),
            destination: Destination::new(params, info),
        };
        Self {
            ecmp: Ecmp::new(&ecmp::Params::default(), info),
            above: params.above,
            leaf: info.rack.map(|rack| Box::new(leaf(rack))),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        if packet.kind == Kind::Data
            && let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.src))
        {
            if let Some(hop) = leaf.source.send(cx, packet, hops) {
                return hop;
            }
        } else if self.above > 1
            && matches!(packet.kind, Kind::Data | Kind::Trimmed)
            && let Some(header) = Header::read(packet)
        {
            return usize::from(header.path % self.above) % hops.ports.len();
        }
        self.ecmp.choose(cx, packet, hops)
    }

    /// At a leaf: what ends here is looked at, and what its neighbours above sent it. All else goes
    /// on.
    #[inline]
    fn on_arrival<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        port: PortId,
    ) -> Arrival {
        let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.rack == cx.rack_of(packet.dst)) else {
            return Arrival::Pass;
        };
        if packet.kind == Kind::Control {
            if let Some(header) = Header::read(packet) {
                leaf.source.hear(cx, packet, header);
            }
            return Arrival::Consume;
        }
        match destination::strip(packet) {
            Some(header) => leaf.destination.receive(cx, packet, header, port),
            None => Arrival::Forward,
        }
    }

    fn on_timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        if let Some(leaf) = &mut self.leaf {
            leaf.destination.timer(cx, token);
        }
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        let leaf = self.leaf.as_ref().filter(|leaf| leaf.rack == cx.rack_of(packet.src));
        match leaf {
            Some(leaf) if packet.kind == Kind::Data => Some(leaf.source.explain(cx.now(), packet)),
            _ => self.ecmp.explain(cx, packet, hops),
        }
    }

    fn state_bytes(&self) -> u64 {
        self.leaf.as_ref().map_or(0, |leaf| leaf.source.state_bytes() + leaf.destination.state_bytes())
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let Some(leaf) = &self.leaf else { return };
        let (source, destination) = (&leaf.source.counts, &leaf.destination.counts);
        for (name, value) in [
            ("epochs", source.epochs),
            ("replies_in_time", source.replies_in_time),
            ("reroutes", source.reroutes),
            ("aborted_reroutes", source.aborted),
            ("unlisted_packets", source.unlisted),
            ("replies", destination.replies),
            ("clears", destination.clears),
            ("notifies", destination.notifies),
            ("held_packets", destination.held),
            ("resumed_by_timer", destination.resumed_by_timer),
            ("passed_out_of_order", destination.passed_out_of_order),
            ("most_queues", destination.most_queues),
            ("most_held_bytes", destination.most_held_bytes),
        ] {
            count(name, value);
        }
    }
}
