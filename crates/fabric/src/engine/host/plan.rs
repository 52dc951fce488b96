//! Facts that hosts know before the run begins.

use weft_balance::AnyHostScheme;
use weft_packet::{FlowId, HostId, Packet, PacketFlags};
use weft_traffic::{Application, Dependencies, Flow};
use weft_transport::{FiveTuples, FlowSize, Multipath, Protocol, Transports};
use weft_units::mix64;

use super::HostCall;
use super::facts::PacketSizes;
use super::flow::Side;
use super::outbox::{End, FlowEnd};
use super::writer::Writer;
use crate::engine::fetch::fetch;
use crate::engine::ports::SwitchConfigs;

/// The hosts' numbers for their own flows: the n-th flow that a host sends has its number n, and
/// likewise for those that it receives. Follows from the traffic alone.
#[derive(Debug)]
pub struct Directory {
    /// By flow, then by second subflow, and so on.
    sender: Vec<u32>,
    receiver: Vec<u32>,
    /// How many flows begin and end at each host.
    pub counts: Vec<(usize, usize)>,
}

impl Directory {
    /// The numbers of these flows, each of which has so many subflows.
    pub fn new(hosts: usize, flows: &[Flow], subflows: usize) -> Self {
        let mut counts = vec![(0, 0); hosts];
        let (mut sender, mut receiver) = (Vec::new(), Vec::new());
        sender.reserve_exact(flows.len() * subflows);
        receiver.reserve_exact(flows.len() * subflows);
        for flow in flows {
            let sent = &mut counts[flow.src.index()].0;
            sender.push(*sent as u32);
            *sent += 1;
            let received = &mut counts[flow.dst.index()].1;
            receiver.push(*received as u32);
            *received += 1;
        }
        for _ in 1..subflows {
            sender.extend_from_within(..flows.len());
            receiver.extend_from_within(..flows.len());
        }
        Self { sender, receiver, counts }
    }

    /// The number of a flow at the host of this end.
    #[inline]
    pub fn number(&self, side: Side, flow: FlowId) -> u32 {
        match side {
            Side::Sender => self.sender[flow.index()],
            Side::Receiver => self.receiver[flow.index()],
        }
    }

    /// Asks for the number of the flow of a packet: see [`crate::engine::ahead`].
    #[inline]
    pub fn fetch_number(&self, packet: &Packet) {
        if let Some(number) = self.numbers_of(packet).get(packet.flow.index()) {
            fetch(number);
        }
    }

    /// The number of the flow of a packet at the host that it is for; none if it belongs to no
    /// flow.
    #[inline]
    pub fn number_of(&self, packet: &Packet) -> Option<u32> {
        self.numbers_of(packet).get(packet.flow.index()).copied()
    }

    #[inline]
    fn numbers_of(&self, packet: &Packet) -> &[u32] {
        match Side::of(packet) {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        }
    }
}

/// Facts that all hosts know before the run begins.
pub struct RunPlan<'a, T> {
    /// The transports.
    pub transports: T,
    /// The traffic.
    pub flows: &'a [Flow],
    /// How the applications of flows write, if not all at once.
    pub application: Option<Application>,
    /// Dependencies of flows, if there are any.
    pub dependencies: Option<&'a Dependencies>,
    /// The hosts' numbers for it.
    pub directory: Directory,
    /// Key of the hash that makes five-tuples of flows.
    pub hash_key: u64,
    /// How switches are configured, if the transport chooses ports by it.
    pub switches: SwitchConfigs,
}

impl<T: Transports> RunPlan<'_, T> {
    /// Whether a flow waits for others.
    pub fn waits(&self, flow: FlowId) -> bool {
        self.dependencies.is_some_and(|dependencies| dependencies.waits(flow.0))
    }

    /// The transport that carries a flow.
    #[inline]
    pub fn transport(&self, flow: &Flow) -> &T::Protocol {
        self.transports.numbered(flow.transport)
    }

    /// The transport of an end of a flow.
    #[inline]
    pub fn of(&self, end: &FlowEnd) -> &T::Protocol {
        self.transports.numbered(end.transport)
    }

    /// Bytes of payload in a full-size packet of a flow.
    pub fn payload_bytes(&self, flow: &Flow) -> u64 {
        PacketSizes::of(self.transport(flow)).payload_bytes()
    }

    /// Bytes of headers in every packet of a flow.
    pub fn header_bytes(&self, flow: &Flow) -> u16 {
        PacketSizes::of(self.transport(flow)).header_bytes
    }

    /// The size of a flow.
    pub fn size(&self, flow: FlowId) -> FlowSize {
        let flow = &self.flows[flow.index()];
        if flow.background {
            FlowSize { segments: FlowSize::ENDLESS, last_payload: 1 }
        } else {
            self.transport(flow).flow_size(flow.size_bytes)
        }
    }

    /// Writes of a flow's application, if it does not write all at once.
    pub fn writer(&self, flow: FlowId) -> Option<Writer> {
        let traffic = self.traffic(flow);
        let application = self.application.filter(|_| !traffic.background)?;
        let mss = self.transport(traffic).segmentation().mss;
        let writes = application.writes(flow.0, traffic.size_bytes);
        Some(Writer::new(writes, mss, self.size(flow), traffic.size_bytes))
    }

    /// An end of a flow at its host.
    pub fn end(&self, flow: FlowId, side: Side, scheme: &AnyHostScheme) -> FlowEnd {
        let traffic = &self.flows[flow.index()];
        let hosts = match side {
            Side::Sender => (traffic.src, traffic.dst),
            Side::Receiver => (traffic.dst, traffic.src),
        };
        let class = PacketFlags::of_class(traffic.class);
        let first = End::new(flow, side, hosts, self.entropy(flow), class, scheme.new_flow());
        let mut end = FlowEnd::new(first, traffic.transport);
        if let FiveTuples::Subflows(count) = self.transport(traffic).five_tuples() {
            end.set_subflows(count, self.flows.len() as u32, || scheme.new_flow());
        }
        end
    }

    /// Entropy of the flow's five-tuple.
    fn entropy(&self, flow: FlowId) -> u32 {
        (mix64(self.hash_key ^ flow.index() as u64) >> 32) as u32
    }

    /// The entropies of a flow's ports, if they lead over paths of their own. A scheme at hosts may
    /// change them on the way, so then there is one.
    pub fn entropies(&self, flow: FlowId, here: &HostCall<'_, '_, '_>) -> Option<Box<[u32]>> {
        let own = self.entropy(flow);
        let flow = &self.flows[flow.index()];
        let most = self.transport(flow).five_tuples().apart();
        if most == 1 || here.common.hooks.on_send {
            return None;
        }
        let topology = here.common.topology;
        let racks = [flow.src, flow.dst].map(|host| usize::from(topology.rack_of_host[host.index()]));
        Some(self.switches.apart(topology, here.nic.routes(), racks, own, most))
    }

    /// The traffic that a flow or subflow belongs to.
    pub fn traffic(&self, flow: FlowId) -> &Flow {
        &self.flows[flow.index() % self.flows.len()]
    }

    /// The number of the flow that a flow or subflow belongs to.
    pub const fn whole(&self, flow: FlowId) -> FlowId {
        FlowId((flow.index() % self.flows.len()) as u32)
    }

    /// Which of its flow's subflows this is, from 0.
    pub const fn subflow(&self, flow: FlowId) -> usize {
        flow.index() / self.flows.len()
    }

    /// The host at one end of a flow or subflow.
    pub fn host(&self, flow: FlowId, side: Side) -> HostId {
        let traffic = self.traffic(flow);
        if side == Side::Sender { traffic.src } else { traffic.dst }
    }
}
