//! Switches whose ports share memory, and the pauses that they ask of the ports before them.
//!
//! A pause is a frame of its own on the cable back, ahead of all that waits there (IEEE 802.1Qbb).
//! It ends at the next node, whose port obeys some time later: see `scheduled_port/pausing.rs`.

use std::collections::BTreeMap;

use weft_packet::{FlowId, HostId, Kind, Packet, PortId};
use weft_topology::{ClassSpec, Condition, FaultEvent, LinkSpec, PauseRules, SharedBufferRules, Topology};
use weft_units::{Bytes, Rate, Span, Time};

use super::drops::DropCause;
use super::fct_breakdown::Paused;
use super::link::FarEnd;
use super::network::Network;
use super::partition::PartitionMap;
use super::pool::{Kept, PacketIndex, units_of};
use super::scheduled_port::PauseFrame;
use super::shared_buffer::{Admitted, BufferAccount, OPEN, OWN, SharedBuffer};

/// The shared buffers of the switches of a partition.
#[derive(Debug)]
pub struct SharedBuffers {
    /// By switch.
    pub switches: Vec<SharedBuffer>,
    /// Where the packet is from that is forwarded now.
    origin: Origin,
    /// How long a pause kept that packet from leaving the port before, in units of 2^8 ps.
    blocked: u32,
    /// How long pauses stopped the queue pair that is asked for a packet now, in ps; none if none
    /// is asked.
    stopped_ps: Option<u64>,
    /// The packet that came to its host last, and how long pauses kept it.
    arrived: (Who, Paused),
    /// By switch and port and class: the port that was to blame for the last pause that was asked
    /// for there.
    blamed: BTreeMap<(u32, u16, u8), u16>,
    /// By flow: how long its data was blocked.
    pub by_flow: BTreeMap<FlowId, Blocked>,
}

/// A copy of a segment: its flow, its number and when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Who(FlowId, u32, Time);

impl Who {
    const fn of(packet: &Packet) -> Self {
        Self(packet.flow, packet.seq, packet.sent)
    }
}

/// Where a packet is from that comes to a port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The port by which it came, or [`OWN`].
    came_by: u16,
    /// Where it was held back until now, and how many bytes of memory it takes there still.
    held: Option<(BufferAccount, u16)>,
}

impl Origin {
    /// The switch's own scheme, or its ports.
    pub const HERE: Self = Self { came_by: OWN, held: None };

    /// A packet that was held back here.
    pub const fn held(at: BufferAccount, bytes: u16) -> Self {
        Self { came_by: at.came_by, held: Some((at, bytes)) }
    }
}

/// How long pauses kept data packets of a flow from leaving ports; packets that waited at one time
/// each count. Of data that waits at an RDMA card for its turn, the next packet of each queue pair
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocked {
    /// Altogether.
    pub blocked: Span,
    /// Blocked time of packets that then did not go by the link because of which the pause was:
    /// head-of-line blocking.
    pub innocently: Span,
}

impl SharedBuffers {
    /// Shared buffers of the switches of a part, if it has any. `faults` are how links change.
    pub fn of(map: &PartitionMap<'_>, faults: &[FaultEvent], max_wire_bytes: u16) -> Option<Self> {
        let rules = map.fabric.shared_buffer?;
        let longest = extremes(map.fabric, faults);
        let memory = |&switch: &u32| memory(map.fabric, &rules, switch, &longest, max_wire_bytes);
        Some(Self {
            switches: map.switches().iter().map(memory).collect(),
            origin: Origin::HERE,
            blocked: 0,
            stopped_ps: None,
            arrived: (Who::default(), Paused::default()),
            blamed: BTreeMap::new(),
            by_flow: BTreeMap::new(),
        })
    }
}

/// The conditions of a link, over all that faults make of it.
#[derive(Debug, Clone, Copy)]
struct Extremes {
    longest: Span,
    fastest: Rate,
    slowest: Rate,
}

/// For each link.
fn extremes(topology: &Topology, faults: &[FaultEvent]) -> Vec<Extremes> {
    let of = |condition: Condition| Extremes {
        longest: condition.delay,
        fastest: condition.rate,
        slowest: condition.rate,
    };
    let mut found: Vec<Extremes> = topology.links.iter().map(|link| of(link.condition)).collect();
    for fault in faults {
        let (extremes, condition) = (&mut found[fault.link as usize], fault.condition);
        extremes.longest = extremes.longest.max(condition.delay);
        extremes.fastest = extremes.fastest.max(condition.rate);
        extremes.slowest = extremes.slowest.min(condition.rate);
    }
    found
}

fn memory(
    topology: &Topology,
    rules: &SharedBufferRules,
    switch: u32,
    extremes: &[Extremes],
    max_wire_bytes: u16,
) -> SharedBuffer {
    let ports = ports(topology, switch);
    let headroom = |link: u32| headroom(topology, rules, link, extremes, max_wire_bytes);
    let headrooms: Vec<u64> = ports.clone().map(headroom).collect();
    SharedBuffer::new(rules, classes_of(&topology.links[ports.start as usize]), &headrooms)
}

fn ports(topology: &Topology, switch: u32) -> std::ops::Range<u32> {
    let node = topology.hosts + switch as usize;
    topology.first_link[node]..topology.first_link[node + 1]
}

/// The classes of a port of a switch whose ports share memory: all have some.
fn classes_of(link: &LinkSpec) -> &[ClassSpec] {
    link.classes.as_ref().map_or(&[], |classes| &classes.classes)
}

fn headroom(
    topology: &Topology,
    rules: &SharedBufferRules,
    link: u32,
    extremes: &[Extremes],
    max_wire_bytes: u16,
) -> u64 {
    let Some(pause) = &rules.pause else { return 0 };
    pause.headroom.unwrap_or_else(|| needed_headroom(topology, pause, link, extremes, max_wire_bytes))
}

/// Bytes that may still come by a port of a switch, in one class, after the switch has found that
/// the port before is to pause: the packet by which it found that; the packets sent until the pause
/// is obeyed, which waits for a full packet on the cable back and for the pauses of other classes;
/// the packets on the wire; and one packet more, which had just begun. As in IEEE 802.1Qbb, annex
/// O. A packet that was begun at the slowest rate of the cable back is sent so to its end, though
/// the cable may be fast again.
fn needed_headroom(
    topology: &Topology,
    pause: &PauseRules,
    link: u32,
    extremes: &[Extremes],
    max_wire_bytes: u16,
) -> u64 {
    let (back, there) = (extremes[link as usize], extremes[topology.reverse[link as usize] as usize]);
    let overhead = u64::from(topology.overhead_bytes);
    let full = u64::from(max_wire_bytes) + overhead;
    let frames = classes_of(&topology.links[link as usize]).len() as u64 + 1;
    let ahead = full + frames * (u64::from(Packet::LEAST_WIRE_BYTES) + overhead);
    let until = back.slowest.service(Bytes::new(ahead))
        + back.longest
        + pause.response_of(there.fastest)
        + there.longest;
    let sent = u128::from(until.as_ps()) * u128::from(there.fastest.as_bps()) / 8_000_000_000_000;
    2 * full + sent as u64 + 1
}

/// A memory of switches that cannot do what it is to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Less headroom than what may come.
    #[error(
        "fabric.pause.headroom = {found}: a lossless class needs at least {needed} behind {link}, by its delay, rate and \
         fabric.pause.response; without the key it gets what it needs"
    )]
    Headroom {
        /// Requested headroom.
        found: Bytes,
        /// Headroom that is needed.
        needed: Bytes,
        /// Where.
        link: String,
    },
    /// Nothing is left to share.
    #[error(
        "fabric.shared_buffer.size = {found}: headroom and reserves of {switch} alone take {kept}; more memory, fewer lossless classes, or a \
         shorter fabric.pause.response leave something to share"
    )]
    Size {
        /// Requested size.
        found: Bytes,
        /// Bytes that are kept back.
        kept: Bytes,
        /// Where.
        switch: String,
    },
}

impl MemoryError {
    /// The key that is wrong; its message begins with it.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Headroom { .. } => "fabric.pause.headroom",
            Self::Size { .. } => "fabric.shared_buffer.size",
        }
    }
}

/// Refuses shared buffers that cannot do what they are to do, with packets of up to
/// `max_wire_bytes`.
///
/// # Errors
/// The first such switch.
pub fn check_memories(
    topology: &Topology,
    faults: &[FaultEvent],
    max_wire_bytes: u16,
) -> Result<(), MemoryError> {
    let Some(rules) = topology.shared_buffer else { return Ok(()) };
    let extremes = extremes(topology, faults);
    for switch in 0..topology.switches as u32 {
        let ports = ports(topology, switch);
        if let Some((pause, found)) = rules.pause.and_then(|pause| Some((pause, pause.headroom?))) {
            for link in ports.clone() {
                let needed = needed_headroom(topology, &pause, link, &extremes, max_wire_bytes);
                if found < needed {
                    let link = topology.link_name(topology.reverse[link as usize]);
                    return Err(MemoryError::Headroom {
                        found: Bytes::new(found),
                        needed: Bytes::new(needed),
                        link,
                    });
                }
            }
        }
        let headrooms: Vec<u64> =
            ports.clone().map(|link| headroom(topology, &rules, link, &extremes, max_wire_bytes)).collect();
        let kept =
            SharedBuffer::kept_back(&rules, classes_of(&topology.links[ports.start as usize]), &headrooms);
        if kept.saturating_add(u64::from(max_wire_bytes)) > rules.bytes {
            let switch = topology.names[topology.hosts + switch as usize].clone();
            return Err(MemoryError::Size { found: Bytes::new(rules.bytes), kept: Bytes::new(kept), switch });
        }
    }
    Ok(())
}

impl Network<'_> {
    /// The packet that is forwarded next is from there. Returns what was said before.
    pub(super) fn comes_from(&mut self, origin: Origin) -> Origin {
        self.shared_buffers
            .as_mut()
            .map_or(Origin::HERE, |shared_buffers| std::mem::replace(&mut shared_buffers.origin, origin))
    }

    /// A packet came to a switch whose ports share memory. False if it ends here, as a pause does.
    pub(super) fn enters_memory(&mut self, at: FarEnd, port: PortId, index: PacketIndex) -> bool {
        if self.pool[index].kind == Kind::Pause {
            let frame = self.take_pause(index);
            self.tell_port(at.first_link + u32::from(port.0), frame);
            return false;
        }
        self.comes_from(Origin { came_by: port.0, held: None });
        let blocked = self.pool.take_blocked(index);
        if let Some(shared_buffers) = &mut self.shared_buffers {
            shared_buffers.blocked = blocked;
        }
        true
    }

    /// A packet comes to a port of a switch: books how long a pause kept it from leaving the port
    /// before.
    pub(super) fn book_blocked(&mut self, link: u32, index: PacketIndex) {
        let Some(shared_buffers) = &mut self.shared_buffers else { return };
        let units = std::mem::take(&mut shared_buffers.blocked);
        let packet = &self.pool[index];
        if units == 0 || packet.kind != Kind::Data {
            return;
        }
        let Some((switch, port)) = self.map.port_of(link) else { return };
        let class = self.state.scheduled[link as usize].as_ref().and_then(|port| port.own_class_of(packet));
        let Some(class) = class else { return };
        let blamed = shared_buffers.blamed.get(&(switch as u32, shared_buffers.origin.came_by, class));
        let span = Span::from_ps(u64::from(units) << 8);
        let of_flow = shared_buffers.by_flow.entry(packet.flow).or_default();
        of_flow.blocked += span;
        if blamed.is_some_and(|blamed| *blamed != port.0) {
            of_flow.innocently += span;
        }
    }

    /// The queue pair that is asked for a packet now was stopped for so long, in ps; none if none
    /// is asked any more.
    pub(super) fn set_stopped_ps(&mut self, stopped_ps: Option<u64>) {
        if let Some(shared_buffers) = &mut self.shared_buffers {
            shared_buffers.stopped_ps = stopped_ps;
        }
    }

    /// A packet comes to a port. If that is its host's, no pause has kept it so far. Returns how
    /// long a queue pair was stopped that sends it, if one does now, in ps.
    pub(super) fn begins_way(&mut self, link: u32, index: PacketIndex) -> Option<u64> {
        let shared_buffers = self.shared_buffers.as_mut()?;
        if self.map.port_of(link).is_some() {
            return None;
        }
        let is_data = self.pool[index].kind == Kind::Data;
        let stopped_ps = if is_data { shared_buffers.stopped_ps.take() } else { None };
        let on_way = Paused { before: units_of(stopped_ps.unwrap_or(0)), ..Paused::default() };
        self.pool.set_kept(index, Kept { last: 0, on_way });
        stopped_ps
    }

    /// A packet comes to its host: notes how long pauses kept it.
    pub(super) fn note_paused(&mut self, index: PacketIndex) {
        if let Some(shared_buffers) = &mut self.shared_buffers {
            shared_buffers.arrived = (Who::of(&self.pool[index]), self.pool.kept(index).on_way);
        }
    }

    /// The packet that came to its host is with its transport, or is held there: whether it is
    /// known how long pauses kept it must not depend on whether another one has come since.
    pub(super) fn forget_paused(&mut self) {
        if let Some(shared_buffers) = &mut self.shared_buffers {
            shared_buffers.arrived = Default::default();
        }
    }

    /// How long pauses kept a packet that came to its host now. Of one that came before, and was
    /// held there, that is not known.
    pub(super) fn paused_on_way(&self, packet: &Packet) -> Paused {
        let arrived = self.shared_buffers.as_ref().map(|shared_buffers| shared_buffers.arrived);
        arrived.filter(|(who, _)| *who == Who::of(packet)).map_or_else(Paused::default, |(_, paused)| paused)
    }

    /// A pause came to a host.
    #[cold]
    pub(super) fn pause_host(&mut self, index: PacketIndex) {
        let cable = self.map.cable(self.pool[index].dst);
        let frame = self.take_pause(index);
        self.tell_port(cable, frame);
    }

    fn take_pause(&mut self, index: PacketIndex) -> PauseFrame {
        let packet = self.consume(index);
        PauseFrame { class: (packet.scheme >> 1) as u8, pauses: packet.scheme & 1 == 1, blamed: packet.seq }
    }

    /// Sends a pause, or its end, by a port of a switch. The link to blame is for whoever studies
    /// the run: nobody acts by it. It is that of port `else_blamed` if all that came by the port is
    /// held back, and its way open.
    #[cold]
    fn send_pause(&mut self, switch: usize, (port, class): (u16, u8), pauses: bool, else_blamed: u16) {
        let first = self.ports(switch).start as u32;
        let blamed = self.shared_buffers.as_mut().map_or(0, |shared_buffers| {
            let blamed = shared_buffers.switches[switch].blamed(port, class).unwrap_or(else_blamed);
            if pauses {
                shared_buffers.blamed.insert((switch as u32, port, class), blamed);
            }
            blamed
        });
        let mut packet = Packet::control(u32::from(class) << 1 | u32::from(pauses));
        packet.kind = Kind::Pause;
        packet.seq = self.map.number(first + u32::from(blamed));
        let link = first + u32::from(port);
        let to = self.map.spec(link).to.0;
        if to < self.topology.hosts as u32 {
            packet.dst = HostId(to as u16);
        }
        self.send_control(link, packet);
    }

    /// A link works again: says of each lossless class whether the port behind it is to pause,
    /// since frames may have been lost. Hardware says so again and again.
    #[cold]
    pub(super) fn repeat_pauses(&mut self, link: u32) {
        let Some((switch, port)) = self.map.port_of(link) else { return };
        let Some(shared_buffers) = &self.shared_buffers else { return };
        let state: Vec<(u8, bool)> = shared_buffers.switches[switch].pauses_before(port.0).collect();
        for (class, pauses) in state {
            self.send_pause(switch, (port.0, class), pauses, 0);
        }
    }

    /// Whether a packet may wait at a port in this class. Then the memory of its switch is that
    /// much fuller, unless it was held back there until now.
    pub(super) fn admit(&mut self, link: u32, own_class: u8, bytes: u16) -> Result<u16, DropCause> {
        let Some((switch, port)) = self.map.port_of(link) else { return Ok(OWN) };
        let Some(shared_buffers) = &mut self.shared_buffers else { return Ok(OWN) };
        let Origin { came_by, held } = shared_buffers.origin;
        let at = BufferAccount { came_by, port: port.0, class: own_class, held_in: None };
        if let Some((from, held_bytes)) = held
            && (from.class, held_bytes) == (own_class, bytes)
        {
            shared_buffers.origin.held = None;
            shared_buffers.switches[switch].moves(from, at, u64::from(bytes));
            return Ok(came_by);
        }
        self.admit_at(switch, at, bytes, port.0)?;
        Ok(came_by)
    }

    /// Whether a packet may wait there; of a switch, as the part numbers it. `else_blamed` is for
    /// [`Self::send_pause`].
    pub(super) fn admit_at(
        &mut self,
        switch: usize,
        at: BufferAccount,
        bytes: u16,
        else_blamed: u16,
    ) -> Result<(), DropCause> {
        let Some(shared_buffers) = &mut self.shared_buffers else { return Ok(()) };
        match shared_buffers.switches[switch].admit(at, u64::from(bytes)) {
            Admitted::Taken => {}
            Admitted::TakenAndPaused => {
                self.send_pause(switch, (at.came_by, at.class), true, else_blamed);
            }
            Admitted::NoRoom => return Err(DropCause::SharedBuffer),
            Admitted::NoHeadroom => return Err(DropCause::Headroom),
        }
        Ok(())
    }

    /// A packet of a class of a port, which came by this port of its switch, no longer waits.
    pub(super) fn release(&mut self, link: u32, class: usize, came_by: u16, bytes: u16) {
        if self.shared_buffers.is_none() {
            return;
        }
        let Some((switch, port)) = self.map.port_of(link) else { return };
        let Some(class) = self.own_class(link, class) else { return };
        self.release_at(switch, BufferAccount { came_by, port: port.0, class, held_in: None }, bytes);
    }

    /// A packet no longer waits there.
    fn release_at(&mut self, switch: usize, at: BufferAccount, bytes: u16) {
        let Some(shared_buffers) = &mut self.shared_buffers else { return };
        if shared_buffers.switches[switch].release(at, u64::from(bytes)) {
            self.send_pause(switch, (at.came_by, at.class), false, 0);
        }
    }

    /// Where the packet is from that a scheme of this switch wants to hold back in a queue, if
    /// memory counts it: `link` is the one by which it will leave, if `is_open` one of several that
    /// it may leave by.
    pub(super) fn to_be_held(
        &self,
        link: u32,
        queue: u32,
        index: PacketIndex,
        is_open: bool,
    ) -> Option<(usize, BufferAccount, u16)> {
        let (switch, port) = self.map.port_of(link)?;
        let class = self.state.scheduled[link as usize].as_ref()?.own_class_of(&self.pool[index])?;
        let came_by = self.shared_buffers.as_ref()?.origin.came_by;
        let port = if is_open { OPEN } else { port.0 };
        Some((
            switch,
            BufferAccount { came_by, port, class, held_in: Some(queue) },
            self.pool[index].wire_bytes,
        ))
    }

    /// A packet that was held back at a switch has gone on, or is no more: what it did not take
    /// along to a port's queue is free.
    pub(super) fn account_released(&mut self, switch: usize, before: Origin) {
        if let Origin { held: Some((at, bytes)), .. } = self.comes_from(before) {
            self.release_at(switch, at, bytes);
        }
    }

    /// Nothing is known of how long the packet was blocked that is forwarded next.
    pub(super) fn forget_blocked(&mut self) {
        if let Some(shared_buffers) = &mut self.shared_buffers {
            shared_buffers.blocked = 0;
        }
    }
}
