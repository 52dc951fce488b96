//! A flow that somebody follows: why its packets go where they go. Only if asked for, and then it
//! changes nothing.

use weft_packet::{Kind, Packet, Route};
use weft_units::Time;

use super::link::FarEnd;
use super::network::Network;
use super::pool::PacketIndex;

/// More decisions than this are not kept until somebody takes them.
const MOST_DECISIONS: usize = 10_000;

/// Why a packet of a followed flow goes where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Time,
    /// Where: the node, as the topology numbers them.
    pub node: u32,
    /// Kind of the packet.
    pub kind: Kind,
    /// Segment of the packet, or the next one that is expected.
    pub segment: u32,
    /// The decision.
    pub choice: Choice,
}

/// A decision about a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// A switch with several next hops chose a link.
    Link {
        /// The link.
        link: u32,
        /// The scheme's own words for why.
        reason: Option<String>,
        /// Each link that it might have taken, and the bytes that waited there.
        queues: Vec<(u32, u64)>,
    },
    /// A host wrote into the packet which way it goes.
    Label {
        /// The explicit route, if it has one: the choices at the switches ahead, as the digits of
        /// one number.
        route: Option<u16>,
        /// Entropy that switches hash.
        entropy: u32,
        /// Whether the flow's packet before it had another label.
        changed: bool,
    },
}

/// Decisions about the packets of a followed flow.
pub struct Follow {
    flow: u32,
    /// How many flows there are: subflows are numbered beyond them.
    total: u32,
    /// The label of the flow's last packet, by direction.
    labels: [Option<(Route, u32)>; 2],
    decisions: Vec<Decision>,
}

impl Follow {
    /// Follows this flow of so many.
    pub fn new(flow: u32, total: u32) -> Self {
        Self { flow, total: total.max(1), labels: [None; 2], decisions: Vec::new() }
    }

    /// Whether a packet is one of the flow.
    fn has(&self, packet: &Packet) -> bool {
        let is_of_a_flow = !matches!(packet.kind, Kind::Control | Kind::Message);
        is_of_a_flow && packet.flow.connection().is_none() && packet.flow.0 % self.total == self.flow
    }

    fn note(&mut self, decision: Decision) {
        if self.decisions.len() < MOST_DECISIONS {
            self.decisions.push(decision);
        }
    }

    /// Takes the decisions since the last call.
    pub fn take(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.decisions)
    }
}

impl Network<'_> {
    /// Follows a flow from now on, or none.
    pub fn follow(&mut self, follow: Option<Follow>) {
        // Decisions apart are the same decisions.
        self.state.chooses_apart |= follow.is_some();
        self.follow = follow.map(Box::new);
    }

    /// Whether a packet is one of the followed flow.
    pub(super) fn follows(&self, index: PacketIndex) -> bool {
        self.follow.as_ref().is_some_and(|follow| follow.has(&self.pool[index]))
    }

    /// A switch chose a port of a group for a packet of the followed flow.
    pub(super) fn note_choice(
        &mut self,
        at: FarEnd,
        group: u32,
        index: PacketIndex,
        choice: usize,
        reason: Option<String>,
    ) {
        let link_of = |port: &weft_packet::PortId| at.first_link + u32::from(port.0);
        let links: Vec<u32> = self.routes.group(group).0.iter().map(link_of).collect();
        let queue = |&link: &u32| (self.map.number(link), self.backlog_at(link as usize, self.now));
        let queues: Vec<(u32, u64)> = links.iter().map(queue).collect();
        let (now, packet, node) = (self.now, &self.pool[index], self.map.node_of(at.switch));
        let decision = Decision {
            at: now,
            node,
            kind: packet.kind,
            segment: packet.seq,
            choice: Choice::Link { link: self.map.number(links[choice]), reason, queues },
        };
        if let Some(follow) = &mut self.follow {
            follow.note(decision);
        }
    }

    /// A host scheme has seen a packet that its host sends.
    pub(super) fn note_label(&mut self, packet: &Packet) {
        let Some(follow) = self.follow.as_mut().filter(|follow| follow.has(packet)) else { return };
        let label = (packet.route, packet.entropy);
        let direction = usize::from(packet.kind.is_for_sender());
        let before = follow.labels[direction].replace(label);
        if before == Some(label) {
            return;
        }
        let choice = Choice::Label {
            route: packet.route.as_label(),
            entropy: packet.entropy,
            changed: before.is_some(),
        };
        let node = u32::from(packet.src.0);
        follow.note(Decision { at: self.now, node, kind: packet.kind, segment: packet.seq, choice });
    }
}
