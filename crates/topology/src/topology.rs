//! Nodes, links and queues, and where each stands.

use std::ops::Range;
use std::sync::Arc;

use weft_packet::{Class, HostId, Peer};
use weft_units::{Bytes, Rate, Span, Time};

/// A node: hosts first, then switches, numbered through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct NodeId(pub u32);

/// Where a link stands in the fabric: how waiting times are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Tier {
    /// From a host to its edge switch.
    Host = 0,
    /// From an edge switch up.
    Leaf = 1,
    /// From any other switch.
    Spine = 2,
    /// From an edge switch to a host.
    Last = 3,
}

/// An amount of queued data, in one of the two ways that switches count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// In bytes on the wire.
    Bytes(u64),
    /// In packets, whatever their size.
    Packets(u32),
}

/// How much an output queue holds, the packet in service included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As much as comes.
    Unlimited,
    /// A packet that would exceed this is dropped.
    AtMost(Threshold),
}

/// When an output queue sets CE on packets that can carry it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Marking {
    /// Never.
    Never,
    /// When the backlog that an arriving packet finds exceeds this (DCTCP's K).
    Step(Threshold),
    /// Random early detection on the instantaneous backlog: never up to `min`, with a probability
    /// that rises to `probability` at `max`, always beyond. Packets that cannot be marked are
    /// dropped instead.
    Red {
        /// Bytes.
        min: u64,
        /// Bytes.
        max: u64,
        /// At `max`, 0 to 1.
        probability: f64,
    },
    /// A ramp of marks as with RED when a packet leaves the queue, on the bytes that wait behind it
    /// then; at ports with classes. Nothing is dropped.
    Leaving {
        /// Bytes.
        min: u64,
        /// Bytes, no less than `min`.
        max: u64,
        /// At `max`, 0 to 1.
        probability: f64,
    },
}

/// An output queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSpec {
    /// How much it holds.
    pub limit: Limit,
    /// When it marks.
    pub marking: Marking,
}

impl QueueSpec {
    /// How much it holds in bytes, with a limit in packets as so many of `full_size` bytes; `None`
    /// if it has no limit.
    pub fn buffer(&self, full_size: u16) -> Option<Bytes> {
        match self.limit {
            Limit::Unlimited => None,
            Limit::AtMost(Threshold::Bytes(bytes)) => Some(Bytes::new(bytes)),
            Limit::AtMost(Threshold::Packets(packets)) => {
                Some(Bytes::new(u64::from(packets) * u64::from(full_size)))
            }
        }
    }
}

/// How a port chooses among its classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The first class that has a packet.
    Strict,
    /// In turns, as long as their weights say.
    Weighted,
}

/// One class of a port that has several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassSpec {
    /// Queue of the class.
    pub queue: QueueSpec,
    /// How many packets of full size it sends in its turn, at least 1; of no meaning with strict
    /// priority.
    pub weight: u32,
    /// It may hold so much of what is free of its switch's memory; that of the memory if nothing is
    /// said.
    pub alpha: Option<f64>,
    /// Bytes of its switch's memory that nobody else gets; those of the memory if nothing is said.
    pub reserve: Option<Bytes>,
    /// Whether the port before is paused lest a packet be lost for want of room.
    pub lossless: bool,
    /// The bytes that are left of a data packet that finds no room; none if it is dropped.
    pub trim_bytes: Option<u16>,
}

impl ClassSpec {
    /// A queue that has its own buffer, drops what does not fit, and weighs so much.
    pub const fn plain(queue: QueueSpec, weight: u32) -> Self {
        Self { queue, weight, alpha: None, reserve: None, lossless: false, trim_bytes: None }
    }
}

/// Which class of a port holds which packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassSorting {
    /// Classes of flows' packets, by the number of their [`Class`](weft_packet::Class).
    pub of_flows: [u8; Class::COUNT],
    /// Class of schemes' packets.
    pub schemes: u8,
    /// Acknowledgements; with their flow if nothing is said.
    pub acks: Option<u8>,
    /// Congestion notifications; likewise.
    pub notifications: Option<u8>,
    /// The headers of packets that were cut; likewise.
    pub trimmed: Option<u8>,
}

/// The classes of a port, the first one first where order counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassesSpec {
    /// Which of them sends next.
    pub scheduling: Scheduling,
    /// At least one.
    pub classes: Vec<ClassSpec>,
    /// Which of them holds what.
    pub sorting: ClassSorting,
}

/// The memory that the ports of a switch share (Choudhury and Hahne, 1998), and how ports before
/// them are paused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedBufferRules {
    /// All of it, in bytes.
    pub bytes: u64,
    /// A class of a port may hold so much of what is free.
    pub alpha: f64,
    /// Bytes that each class of each port has for itself.
    pub reserve: u64,
    /// How ports before a lossless class are paused; none if there is no such class.
    pub pause: Option<PauseRules>,
}

/// Threshold of a switch's memory that pauses the port before, by ingress port and class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Xoff {
    /// So much of what is free.
    Share(f64),
    /// So many bytes.
    Bytes(u64),
}

/// Priority flow control (IEEE 802.1Qbb).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PauseRules {
    /// With more than this from one port in one class the port before is paused.
    pub xoff: Xoff,
    /// It goes on with so many bytes less than that.
    pub hysteresis: u64,
    /// How long a port sends on that was told to pause; by the standard if nothing is said: see
    /// [`PauseRules::response_of`].
    pub response: Option<Span>,
    /// Bytes for what comes after that from each port in each class; as many as may come if nothing
    /// is said.
    pub headroom: Option<u64>,
    /// How often somebody looks for a deadlock.
    pub look_every: Span,
}

impl PauseRules {
    /// How long a port of this rate may take to obey: so many quanta of 512 bits (IEEE 802.3, annex
    /// 31B). Of a rate between two of the table it is the quanta of the lower one. Above 400 Gbit/s
    /// it is those of 400: the annex, as far as it was at hand, has none for 800 Gbit/s, and more
    /// would make headroom larger than what such a port may need. Who knows better says so:
    /// `response`.
    pub fn response_of(&self, rate: Rate) -> Span {
        const QUANTA: [(u64, u64); 6] = [(400, 905), (200, 453), (100, 394), (40, 118), (25, 80), (0, 60)];
        let standard = || {
            let gbps = rate.as_bps() / 1_000_000_000;
            let quanta = QUANTA.iter().find(|(from, _)| gbps >= *from).map_or(60, |(_, quanta)| *quanta);
            rate.service(Bytes::new(quanta * 512 / 8))
        };
        self.response.unwrap_or_else(standard)
    }
}

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// Whether it carries anything at all.
    pub up: bool,
    /// Not zero.
    pub rate: Rate,
    /// Propagation, with the far node's processing.
    pub delay: Span,
    /// Share of packets that vanish at random, 0 to 1.
    pub loss: f64,
    /// Share of flows whose packets vanish, always the same ones, 0 to 1.
    pub blackhole: f64,
}

/// One direction of a cable, with the output queue that feeds it.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// Where packets come from.
    pub from: NodeId,
    /// Where they go.
    pub to: NodeId,
    /// Where it stands.
    pub tier: Tier,
    /// State of the link when the run begins.
    pub condition: Condition,
    /// Output queue of the link; of no meaning if it has several.
    pub queue: QueueSpec,
    /// Queues of the link, if it has one for each of several classes.
    pub classes: Option<Arc<ClassesSpec>>,
}

impl LinkSpec {
    /// How much its queues hold together, as [`QueueSpec::buffer`]; `None` if any of them has no
    /// limit.
    pub fn buffer(&self, full_size: u16) -> Option<Bytes> {
        let Some(spec) = &self.classes else { return self.queue.buffer(full_size) };
        let buffers = spec.classes.iter().map(|class| class.queue.buffer(full_size));
        buffers.reduce(|all, one| Some(all? + one?)).flatten()
    }
}

/// A link changes its state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FaultEvent {
    /// When.
    pub at: Time,
    /// Which link.
    pub link: u32,
    /// State of the link from then on.
    pub condition: Condition,
}

/// A fault of a spec, with the links that it hits. What it says nothing of is none.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultSpan {
    /// When it begins.
    pub from: Time,
    /// When it ends; none for never.
    pub until: Option<Time>,
    /// The names of the links that it hits.
    pub names: Vec<String>,
    /// Their numbers, in the same order; none in a fabric that has other links in their place.
    pub links: Vec<u32>,
    /// Whether they are down.
    pub down: Option<bool>,
    /// The rate that is left.
    pub rate: Option<Rate>,
    /// The delay beyond their own.
    pub delay: Option<Span>,
    /// The share of packets that they lose.
    pub loss: Option<f64>,
    /// The share of flows that they swallow.
    pub blackhole: Option<f64>,
}

/// A fabric, checked: every host has one cable, to an edge switch, and every host reaches every
/// other.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// Number of hosts; at most 65,536.
    pub hosts: usize,
    /// Number of switches.
    pub switches: usize,
    /// Every link, by ascending `from`: the ports of a node are neighbours.
    pub links: Vec<LinkSpec>,
    /// Index of each node's first link, and one entry more: ports of node n are links
    /// `first_link[n]..first_link[n+1]`.
    pub first_link: Vec<u32>,
    /// Rack of each host. Racks are numbered from 0 in the order of their edge switches.
    pub rack_of_host: Vec<u16>,
    /// The edge switch of each rack, as a switch number (node number less `hosts`).
    pub switch_of_rack: Vec<u32>,
    /// The link to each host from its edge switch.
    pub link_to_host: Vec<u32>,
    /// Hops from the nearest host for each switch, from 0.
    pub tier_of_switch: Vec<u8>,
    /// The name of each node, as in "leaf3".
    pub names: Vec<String>,
    /// The link in the other direction of each link.
    pub reverse: Vec<u32>,
    /// Bytes that every packet takes on the wire beyond its own (preamble, inter-frame gap).
    pub overhead_bytes: u16,
    /// Parameters of software switches; none if switches forward whatever comes.
    pub software: Option<SoftwareSwitch>,
    /// Shared buffer of the ports of each switch; none if each has a buffer of its own.
    pub shared_buffer: Option<SharedBufferRules>,
}

/// Switches that are programs: one process forwards for all ports of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftwareSwitch {
    /// Time of the process for a packet, whatever its size.
    pub per_packet: Span,
    /// And what each of its bytes takes.
    pub per_byte: Span,
    /// Packets that wait for the process or are forwarded by it, at most; at least 1.
    pub input_queue: u32,
    /// Least time of the outgoing port for a packet.
    pub per_port: Span,
}

impl SoftwareSwitch {
    /// Whether packets wait for the process: if it takes any time.
    pub const fn has_process(&self) -> bool {
        !(self.per_packet.is_zero() && self.per_byte.is_zero())
    }

    /// How long the process works on a packet of so many bytes.
    pub const fn service(&self, bytes: u16) -> Span {
        Span::from_ps(self.per_packet.as_ps() + self.per_byte.as_ps() * bytes as u64)
    }
}

impl Topology {
    /// The node of a host.
    pub const fn host_node(host: HostId) -> NodeId {
        NodeId(host.0 as u32)
    }

    /// Least time that a packet takes of a port on this link, however fast the link is.
    pub fn least_service(&self, link: &LinkSpec) -> Span {
        let of_switch = |software: &SoftwareSwitch| software.per_port;
        if link.tier == Tier::Host {
            Span::ZERO
        } else {
            self.software.as_ref().map_or(Span::ZERO, of_switch)
        }
    }

    /// Node at the far end of a link.
    pub fn peer(&self, link: &LinkSpec) -> Peer {
        match (link.to.0 as usize).checked_sub(self.hosts) {
            None => Peer::Host(HostId(link.to.0 as u16)),
            Some(switch) => Peer::Switch { switch: switch as u32, tier: self.tier_of_switch[switch] },
        }
    }

    /// The links of a node's ports.
    pub fn ports_of(&self, node: usize) -> Range<usize> {
        self.first_link[node] as usize..self.first_link[node + 1] as usize
    }

    /// The fabric with each link in the best condition that it is ever in: no run with these faults
    /// can beat it.
    #[must_use]
    pub fn at_its_best(&self, faults: &[FaultEvent]) -> Self {
        let mut best = self.clone();
        for fault in faults {
            let condition = &mut best.links[fault.link as usize].condition;
            condition.up |= fault.condition.up;
            condition.rate = condition.rate.max(fault.condition.rate);
            condition.delay = condition.delay.min(fault.condition.delay);
        }
        best
    }

    /// The base of this fabric's trails: one more than the most ports that any switch has. See
    /// [`Packet::note_choice`](weft_packet::Packet::note_choice).
    pub fn trail_base(&self) -> u32 {
        let ports = self.first_link[self.hosts..].windows(2).map(|pair| pair[1] - pair[0]);
        ports.max().unwrap_or_default() + 1
    }

    /// Whether queues of switches cut packets that find no room.
    pub fn trims(&self) -> bool {
        let of_switches = self.links[self.hosts..].iter().filter_map(|link| link.classes.as_deref());
        of_switches.flat_map(|spec| &spec.classes).any(|class| class.trim_bytes.is_some())
    }

    /// Whether queues of switches pause the port before them lest a packet be lost.
    pub fn pauses(&self) -> bool {
        let of_switches = self.links[self.hosts..].iter().filter_map(|link| link.classes.as_deref());
        of_switches.flat_map(|spec| &spec.classes).any(|class| class.lossless)
    }

    /// Number of racks.
    pub fn racks(&self) -> usize {
        self.switch_of_rack.len()
    }

    /// The links from one node to another, in the order of ports: several where cables run in
    /// parallel.
    pub fn links_between(&self, from: u32, to: u32) -> impl Iterator<Item = u32> + use<'_> {
        let ports = self.first_link[from as usize]..self.first_link[from as usize + 1];
        ports.filter(move |&link| self.links[link as usize].to.0 == to)
    }

    /// The name of a link, as in "leaf0>spine1"; "leaf0>spine1.0", "leaf0>spine1.1" and so on if
    /// several run in parallel. Faults take the same names.
    pub fn link_name(&self, link: u32) -> String {
        let LinkSpec { from, to, .. } = self.links[link as usize];
        let name = format!("{}>{}", self.names[from.0 as usize], self.names[to.0 as usize]);
        let mut parallel = self.links_between(from.0, to.0);
        let number = parallel.position(|other| other == link).unwrap_or_default();
        if number > 0 || parallel.next().is_some() { format!("{name}.{number}") } else { name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: PauseRules = PauseRules {
        xoff: Xoff::Share(1.0),
        hysteresis: 0,
        response: None,
        headroom: None,
        look_every: Span::ZERO,
    };

    #[test]
    fn a_port_may_take_the_quanta_of_its_rate_to_obey() {
        // At each rate: quanta, and how long they take, in ps.
        let table = [
            (1, 60, 30_720_000),
            (10, 60, 3_072_000),
            (25, 80, 1_638_400),
            (40, 118, 1_510_400),
            (50, 118, 1_208_320),
            (100, 394, 2_017_280),
            (200, 453, 1_159_680),
            (400, 905, 1_158_400),
            (800, 905, 579_200),
        ];
        for (gbps, quanta, ps) in table {
            assert_eq!(quanta * 512 * 1_000 / gbps, ps, "the table");
            assert_eq!(RULES.response_of(Rate::from_gbps(gbps)), Span::from_ps(ps), "{gbps} Gbit/s");
        }
    }

    #[test]
    fn who_says_how_long_a_port_takes_is_heard_at_each_rate() {
        let rules = PauseRules { response: Some(Span::from_ns(500)), ..RULES };
        assert_eq!([10, 800].map(|gbps| rules.response_of(Rate::from_gbps(gbps))), [Span::from_ns(500); 2]);
    }
}
