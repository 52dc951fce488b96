//! Switches that are programs: what arrives waits for the one process of its switch, which forwards
//! packet by packet.
//!
//! The process is a server with one queue, so the end of its work on a packet is known when the
//! packet comes. Still there is an event for it: what becomes of the packet is decided when the
//! process is through with it, by the queues of that instant. Only the first packet of a switch is
//! in the event set.

use std::collections::VecDeque;

use weft_balance::{Ports, SwitchHooks};
use weft_packet::{Kind, Kinds, PortId};
use weft_topology::{SoftwareSwitch, Tier, Topology};
use weft_units::Time;

use super::event_set::EventKey;
use super::link::FarEnd;
use super::network::Network;
use super::pool::PacketIndex;

/// Hooks that make every packet stop where it arrives at a switch.
pub const STOPS_ALL: SwitchHooks =
    SwitchHooks { on_arrival: Kinds::ALL, on_arrival_by: Ports::All, ..SwitchHooks::NONE };

/// A packet that waits for the process of its switch, or is worked on.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    index: PacketIndex,
    at: FarEnd,
    /// The port by which it came.
    port: PortId,
    /// When the process is through with it, in ps.
    done_ps: u64,
}

/// The input queues of the switches of a part.
#[derive(Debug)]
pub struct SoftwareSwitches {
    rules: SoftwareSwitch,
    /// By switch, the packet that is worked on first.
    queues: Vec<VecDeque<Waiting>>,
}

impl SoftwareSwitches {
    /// State of so many software switches; none if packets wait for no process.
    pub fn of(topology: &Topology, switches: usize) -> Option<Self> {
        let rules = topology.software.filter(SoftwareSwitch::has_process)?;
        Some(Self { rules, queues: vec![VecDeque::new(); switches] })
    }
}

impl Network<'_> {
    /// A packet came to a switch by `port`: it waits for the process there, or is dropped.
    pub(super) fn wait_at_input(&mut self, at: FarEnd, port: PortId, index: PacketIndex) {
        let now = self.now.as_ps();
        let Some(inputs) = &mut self.inputs else { return };
        let queue = &mut inputs.queues[at.switch as usize];
        if queue.len() >= inputs.rules.input_queue as usize {
            let node = self.topology.hosts as u32 + self.map.switch_number(at.switch);
            return self.drop_at_input(node, index);
        }
        let packet = &mut self.pool[index];
        let begins_ps = queue.back().map_or(now, |last| last.done_ps);
        if packet.kind == Kind::Data {
            // As if it waited at the port by which it will leave.
            let tier = match self.topology.rack_of_host[packet.dst.index()] {
                rack if rack == at.rack => Tier::Last,
                _ if at.rack == FarEnd::NO_RACK => Tier::Spine,
                _ => Tier::Leaf,
            };
            packet.add_wait_ps(tier as usize, begins_ps - now);
        }
        let done_ps = begins_ps + inputs.rules.service(packet.wire_bytes).as_ps();
        queue.push_back(Waiting { index, at, port, done_ps });
        if queue.len() == 1 {
            self.events.push_timer(Time::from_ps(done_ps), EventKey::forwarded(at.switch));
        }
    }

    /// The process of a switch is through with its first packet, which goes on by what is known
    /// now.
    pub fn forward_first(&mut self, switch: u32) {
        let Some(inputs) = &mut self.inputs else { return };
        let queue = &mut inputs.queues[switch as usize];
        let Some(first) = queue.pop_front() else { return };
        if let Some(next) = queue.front() {
            self.events.push_timer(Time::from_ps(next.done_ps), EventKey::forwarded(switch));
        }
        let Waiting { index, at, port, .. } = first;
        if !self.scheme_wants_arrival(at, port, index) || self.passes(at, port, index) {
            self.forward(at, index);
        }
    }

    /// Whether a scheme wants to see a packet that came by this port.
    pub(super) fn scheme_wants_arrival(&self, at: FarEnd, port: PortId, index: PacketIndex) -> bool {
        self.scheme_hooks.on_arrival.has(self.pool[index].kind)
            && (self.scheme_hooks.on_arrival_by == Ports::All || !self.is_from_host(at, port))
    }

    /// Whether a host is behind a port.
    fn is_from_host(&self, at: FarEnd, port: PortId) -> bool {
        // Where a link leads that goes to another part is not known here.
        self.state.links[(at.first_link + u32::from(port.0)) as usize].tier == Tier::Last as u8
    }
}
