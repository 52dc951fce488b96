//! Views of a scheme written in Python: the packet in hand, ports, its switch.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use weft_balance::{NextHops, Peer, PortId, SwitchContext, SwitchInfo};
use weft_packet::{HostId, Kind, Packet, PacketFlags};
use weft_units::{Bytes, Purpose, Span, Stream, Time};

/// The rack of each host.
pub type Racks = Arc<[u16]>;

/// The packet in hand. `scheme` and `entropy` may be written, and go back into the packet.
#[pyclass(get_all, module = "weft._core")]
#[allow(clippy::struct_excessive_bools)] // Each is a bit of the header.
pub struct PacketView {
    /// Number of the source host.
    src: u16,
    /// Number of the destination host.
    dst: u16,
    /// Rack of the source host.
    src_rack: u16,
    /// Rack of the destination host.
    dst_rack: u16,
    /// Number of the flow.
    flow: u32,
    /// Hash of the five-tuple, which an ECMP hash mixes in.
    #[pyo3(set)]
    entropy: u32,
    /// The scheme's own header bits, 32 of them.
    #[pyo3(set)]
    scheme: u32,
    /// Size on the wire, in bytes.
    size_bytes: u16,
    /// Number of the segment in its flow, from 0; on an acknowledgement, of the segment that is
    /// waited for.
    seq: u32,
    /// Kind of the packet: "data", "ack", "syn", "syn-ack", "credit", "credit-request",
    /// "credit-stop", "control", "message", "nack", "cnp" or "trimmed".
    kind: &'static str,
    /// The class of its flow: "unknown", "short", "long", "best-effort", or "tc4" to "tc7", which
    /// say nothing.
    traffic_class: &'static str,
    /// Whether the packet is an acknowledgement without payload.
    is_ack: bool,
    /// Whether queues may mark it (ECT): its transport understands ECN.
    is_ecn_capable: bool,
    /// Whether a queue marked it (CE).
    is_marked: bool,
    /// Whether it tells its receiver of a mark (ECE), on acknowledgements.
    is_echo: bool,
    /// Whether the segment was sent before.
    is_retransmission: bool,
    /// Whether it is the last segment of its flow.
    is_last: bool,
    /// When its transport sent it, in picoseconds; of an acknowledgement, the packet that caused
    /// it.
    sent_ps: u64,
}

impl PacketView {
    pub fn new(packet: &Packet, racks: &Racks) -> Self {
        let rack = |host: HostId| racks.get(host.index()).copied().unwrap_or_default();
        Self {
            src: packet.src.0,
            dst: packet.dst.0,
            src_rack: rack(packet.src),
            dst_rack: rack(packet.dst),
            flow: packet.flow.0,
            entropy: packet.entropy,
            scheme: packet.scheme,
            size_bytes: packet.wire_bytes,
            seq: packet.seq,
            kind: packet.kind.name(),
            traffic_class: packet.flags.class().name(),
            is_ack: packet.kind == Kind::Ack,
            is_ecn_capable: packet.flags.has(PacketFlags::ECT),
            is_marked: packet.flags.has(PacketFlags::CE),
            is_echo: packet.kind == Kind::Ack && packet.is_echo(),
            is_retransmission: packet.flags.has(PacketFlags::RETRANSMISSION),
            is_last: packet.flags.has(PacketFlags::LAST),
            sent_ps: packet.sent.as_ps(),
        }
    }

    /// Writes into `packet` what a scheme may change.
    pub const fn write_to(&self, packet: &mut Packet) {
        packet.entropy = self.entropy;
        packet.scheme = self.scheme;
    }
}

/// One port that leads to the destination, as its own switch sees it. Read-only.
#[pyclass(frozen, get_all, module = "weft._core")]
pub struct PortView {
    /// Number of the port at its switch.
    index: u16,
    /// Bytes queued or in service.
    backlog_bytes: u64,
    /// Time that the port needs to send what is queued, in picoseconds.
    drain_ps: u64,
    /// Bytes that the port would send before this packet: `backlog_bytes` where there is one queue.
    ahead_bytes: u64,
    /// Time until the port would send this packet, in picoseconds: `drain_ps` where there is one
    /// queue.
    wait_ps: u64,
    /// Rate of the link now, in bits per second.
    rate_bps: u64,
    /// Bytes that the port was given to send since the run began.
    bytes_sent: u64,
    /// Whether the port's cable works, as the switch sees it by itself.
    is_up: bool,
    /// Capacity behind the port towards the destination, in Mbit/s.
    weight: u32,
}

impl PortView {
    /// The next hops of a packet.
    pub fn all(cx: &dyn SwitchContext, hops: &NextHops<'_>, packet: &Packet) -> Vec<Self> {
        let view = |(&port, &weight): (&PortId, &u32)| Self {
            weight,
            ahead_bytes: cx.backlog_bytes_for(port, packet),
            wait_ps: cx.drain_time_for(port, packet).as_ps(),
            ..Self::of(cx, port)
        };
        hops.ports.iter().zip(hops.weights).map(view).collect()
    }

    fn of(cx: &dyn SwitchContext, port: PortId) -> Self {
        Self {
            index: port.0,
            backlog_bytes: cx.backlog_bytes(port),
            drain_ps: cx.drain_time(port).as_ps(),
            ahead_bytes: cx.backlog_bytes(port),
            wait_ps: cx.drain_time(port).as_ps(),
            rate_bps: cx.rate(port).as_bps(),
            bytes_sent: cx.bytes_sent(port),
            is_up: cx.is_up(port),
            weight: 0,
        }
    }
}

/// Facts about a switch that a scheme knows before the first packet. Read-only.
#[pyclass(frozen, get_all, module = "weft._core", name = "SwitchInfo")]
pub struct InfoView {
    /// The switch's number in the fabric, from 0.
    switch: u32,
    /// Hops from the nearest host: an edge switch is of tier 0.
    tier: u8,
    /// The seed of the run.
    seed: u64,
    /// 64 random bits that this switch hashes with, as the schemes of the core do.
    hash_seed: u64,
    /// The rate of each port, in bits per second.
    port_rates_bps: Vec<u64>,
    /// The propagation delay of each port's cable, with the processing at its far end, in
    /// picoseconds.
    port_delays_ps: Vec<u64>,
    /// Capacity of each port's output queue in bytes, or `None` if it has no limit.
    port_buffers_bytes: Vec<Option<u64>>,
    /// The host at the far end of each port's cable, or `None` if a switch is there.
    port_hosts: Vec<Option<u16>>,
    /// The switch at the far end of each port's cable, or `None` if a host is there.
    port_switches: Vec<Option<u32>>,
    /// The rack that hangs at this switch, if it is an edge switch.
    rack: Option<u16>,
    /// How many racks the fabric has.
    racks: u16,
    /// By rack: how long a full-size packet and its acknowledgement take there and back from a host
    /// of the own rack when nothing else moves, in picoseconds. Empty at a switch without a rack.
    base_rtts_ps: Vec<u64>,
}

impl From<&SwitchInfo<'_>> for InfoView {
    fn from(info: &SwitchInfo<'_>) -> Self {
        let host = |peer: &Peer| match *peer {
            Peer::Host(host) => Some(host.0),
            Peer::Switch { .. } => None,
        };
        let switch = |peer: &Peer| match *peer {
            Peer::Switch { switch, .. } => Some(switch),
            Peer::Host(_) => None,
        };
        Self {
            switch: info.switch,
            tier: info.tier,
            seed: info.seed,
            hash_seed: Stream::new(info.seed, Purpose::SwitchHash, u64::from(info.switch)).next_u64(),
            port_rates_bps: info.port_rates.iter().map(|rate| rate.as_bps()).collect(),
            port_delays_ps: info.port_delays.iter().map(|delay| delay.as_ps()).collect(),
            port_buffers_bytes: info.port_buffers.iter().map(|buffer| buffer.map(Bytes::as_u64)).collect(),
            port_hosts: info.port_peers.iter().map(host).collect(),
            port_switches: info.port_peers.iter().map(switch).collect(),
            rack: info.rack,
            racks: info.racks,
            base_rtts_ps: info.base_rtts.iter().map(|rtt| rtt.as_ps()).collect(),
        }
    }
}

/// A switch as its scheme sees it, and what the scheme asks of it. What it shows is from the moment
/// of the call; what is asked for is done when the call is over.
#[pyclass(module = "weft._core")]
pub struct SwitchView {
    number: u32,
    now: Time,
    ports: Vec<PortView>,
    racks: Racks,
    /// The switch's own random stream, while the scheme is called.
    stream: Option<Stream>,
    sent: Vec<(PortId, Packet)>,
    timers: Vec<(Span, u32)>,
}

impl SwitchView {
    pub const fn new(number: u32, racks: Racks) -> Self {
        Self {
            number,
            now: Time::ZERO,
            ports: Vec::new(),
            racks,
            stream: None,
            sent: Vec::new(),
            timers: Vec::new(),
        }
    }

    /// A call begins: shows the switch with this many ports as it is now.
    pub fn open(&mut self, cx: &mut dyn SwitchContext, ports: u16) {
        self.now = cx.now();
        self.ports.clear();
        self.ports.extend((0..ports).map(|port| PortView::of(cx, PortId(port))));
        self.stream = Some(cx.random().clone());
    }

    /// The call is over: does what was asked for.
    pub fn close(&mut self, cx: &mut dyn SwitchContext) {
        if let Some(stream) = self.stream.take() {
            *cx.random() = stream;
        }
        for (port, packet) in self.sent.drain(..) {
            cx.send(port, packet);
        }
        for (delay, token) in self.timers.drain(..) {
            cx.set_timer(delay, token);
        }
    }

    fn port(&self, port: usize) -> PyResult<&PortView> {
        self.ports.get(port).ok_or_else(|| {
            let last = self.ports.len().saturating_sub(1);
            PyIndexError::new_err(format!("port is {port}: allowed is 0 to {last}"))
        })
    }

    fn stream(&mut self) -> PyResult<&mut Stream> {
        self.stream.as_mut().ok_or_else(|| {
            PyRuntimeError::new_err("a switch draws, sends and sets timers only while it calls its scheme")
        })
    }
}

#[pymethods]
impl SwitchView {
    /// The switch's number in the fabric, from 0.
    #[getter]
    const fn number(&self) -> u32 {
        self.number
    }

    /// The time now, in picoseconds since the run began.
    #[getter]
    const fn now_ps(&self) -> u64 {
        self.now.as_ps()
    }

    /// How many ports the switch has; their numbers begin at 0.
    #[getter]
    const fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Bytes queued on the port or in service.
    fn backlog_bytes(&self, port: usize) -> PyResult<u64> {
        Ok(self.port(port)?.backlog_bytes)
    }

    /// Time that the port needs to send what is queued on it, in picoseconds.
    fn drain_ps(&self, port: usize) -> PyResult<u64> {
        Ok(self.port(port)?.drain_ps)
    }

    /// The port's rate now, in bits per second.
    fn rate_bps(&self, port: usize) -> PyResult<u64> {
        Ok(self.port(port)?.rate_bps)
    }

    /// Bytes that the port was given to send since the run began.
    fn bytes_sent(&self, port: usize) -> PyResult<u64> {
        Ok(self.port(port)?.bytes_sent)
    }

    /// Whether the port's cable works, as the switch sees it by itself.
    fn is_up(&self, port: usize) -> PyResult<bool> {
        Ok(self.port(port)?.is_up)
    }

    /// The rack of a host (switches know the addressing plan).
    fn rack_of(&self, host: usize) -> PyResult<u16> {
        self.racks.get(host).copied().ok_or_else(|| {
            let last = self.racks.len().saturating_sub(1);
            PyIndexError::new_err(format!("host is {host}: allowed is 0 to {last}"))
        })
    }

    /// A number from [0, 1) of the switch's own random stream.
    fn random(&mut self) -> PyResult<f64> {
        Ok(self.stream()?.unit())
    }

    /// A whole number from 0 to `bound` - 1 of the switch's own random stream.
    fn below(&mut self, bound: u32) -> PyResult<u32> {
        if bound == 0 {
            return Err(PyValueError::new_err("bound is 0: allowed is 1 to 4294967295"));
        }
        Ok(self.stream()?.below(bound))
    }

    /// 64 bits of the switch's own random stream.
    fn random_bits(&mut self) -> PyResult<u64> {
        Ok(self.stream()?.next_u64())
    }

    /// Sends a packet of the scheme's own out of a port: at the next switch `on_arrival` gets it,
    /// and it ends there.
    #[pyo3(signature = (port, scheme = 0, size_bytes = Packet::LEAST_WIRE_BYTES))]
    fn send(&mut self, port: usize, scheme: u32, size_bytes: u16) -> PyResult<()> {
        self.port(port)?;
        self.stream()?;
        if size_bytes < Packet::LEAST_WIRE_BYTES {
            let least = Packet::LEAST_WIRE_BYTES;
            return Err(PyValueError::new_err(format!(
                "size_bytes is {size_bytes}: allowed is {least} to 65535"
            )));
        }
        let mut packet = Packet::control(scheme);
        packet.wire_bytes = size_bytes;
        self.sent.push((PortId(port as u16), packet));
        Ok(())
    }

    /// Asks for `on_timer(switch, token)` after `delay_ps` picoseconds.
    #[pyo3(signature = (delay_ps, token = 0))]
    fn set_timer(&mut self, delay_ps: u64, token: u32) -> PyResult<()> {
        self.stream()?;
        self.timers.push((Span::from_ps(delay_ps), token));
        Ok(())
    }
}
