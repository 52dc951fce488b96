//! The destination leaf: it answers, and holds what came by the new path until the old one has
//! given all (§3.3).

use weft_packet::{HostId, Kind, Packet};
use weft_units::{Span, Time};

use super::header::{Epoch, Header, Opcode, Stamp};
use super::params::{Params, WhenFull};
use crate::switch::connections::{Connections, Key};
use crate::{Arrival, Peer, PortId, SwitchContext, SwitchInfo};

/// State of a connection at the destination leaf.
#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    /// When its last packet came; nothing is known of one that has none yet.
    last: Option<Time>,
    epoch: Epoch,
    /// The TAIL came, or is waited for no longer.
    is_clear: bool,
    /// The last packet of the old path: when it left the source leaf, and when it came.
    old: Option<(Stamp, Time)>,
    /// When the TAIL left the source leaf, as rerouted packets say.
    tail: Stamp,
    /// Where its packets are held.
    queue: Option<u32>,
}

/// A queue that holds packets of one connection.
#[derive(Debug, Clone, Copy)]
struct Queue {
    key: Key,
    /// The port to the host that they are for.
    port: u16,
    /// When they go on without the TAIL: `T_resume`.
    resume: Time,
    /// Packet sent to the source leaf then, and its port.
    clear: Packet,
    back: PortId,
}

/// A place for a queue, with its timer.
#[derive(Debug, Clone, Copy, Default)]
struct ReorderEntry {
    queue: Option<Queue>,
    /// When the timer goes off that counts; others that were set before do not.
    due: Option<Time>,
}

/// Counters of packets.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub replies: u64,
    pub clears: u64,
    pub notifies: u64,
    pub held: u64,
    pub resumed_by_timer: u64,
    pub passed_out_of_order: u64,
    pub most_queues: u64,
    pub most_held_bytes: u64,
}

/// A destination leaf.
#[derive(Debug, Clone)]
pub struct Destination {
    connections: Connections<Connection>,
    /// The port to each host, by host.
    hosts: Box<[(HostId, u16)]>,
    places: Vec<ReorderEntry>,
    free: Vec<u32>,
    /// Queues in use, by port.
    in_use: Box<[u16]>,
    queues: u16,
    says_when_full: bool,
    inactive: Span,
    resume_default: Span,
    resume_extra: Span,
    pub counts: Counts,
}

impl Destination {
    pub fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let host = |(port, peer): (usize, &Peer)| match *peer {
            Peer::Host(host) => Some((host, port as u16)),
            Peer::Switch { .. } => None,
        };
        let mut hosts: Vec<_> = info.port_peers.iter().enumerate().filter_map(host).collect();
        hosts.sort_unstable();
        Self {
            connections: Connections::new(params.entries as usize),
            hosts: hosts.into_boxed_slice(),
            places: Vec::new(),
            free: Vec::new(),
            in_use: vec![0; info.port_peers.len()].into_boxed_slice(),
            queues: params.queues,
            says_when_full: params.when_full == WhenFull::Refuse,
            inactive: params.inactive,
            resume_default: params.resume_default,
            resume_extra: params.resume_extra,
            counts: Counts::default(),
        }
    }

    /// A packet with a header came from the fabric by `back`, for a host of this rack.
    pub fn receive<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &Packet,
        header: Header,
        back: PortId,
    ) -> Arrival {
        let (now, inactive, key) = (cx.now(), self.inactive, Key::sent(packet));
        // Nobody is gone of whom packets are held. A source forgets later than this.
        let is_dead = |own: &Connection| {
            own.queue.is_none() && own.last.is_none_or(|last| now.since(last) > inactive.saturating_mul(2))
        };
        let Some(&mut own) = self.connections.entry(key, is_dead) else { return Arrival::Forward };
        let mut connection = own;
        self.answer(cx, packet, header, back);
        let is_new = is_dead(&connection);
        if !is_new && header.epoch.is_before(connection.epoch) {
            // Of an epoch that is over: nothing waits for it.
            return Arrival::Forward;
        }
        // What was held of the epoch before is waited for no longer.
        let mut over = None;
        if is_new || header.epoch != connection.epoch {
            over = connection.queue;
            connection = Connection { epoch: header.epoch, ..Connection::default() };
        }
        connection.last = Some(now);
        let mut arrival = if header.rerouted {
            self.take_rerouted(cx, &mut connection, packet, header, back)
        } else {
            self.take_old(cx, &mut connection, packet, header, back);
            Arrival::Forward
        };
        if let Some(own) = self.connections.get(key) {
            *own = connection;
        }
        if let Some(queue) = over {
            self.give_back(queue);
            cx.release(queue);
            if arrival == Arrival::Forward {
                // Behind what was held.
                arrival = Arrival::Hold(queue);
            }
        }
        arrival
    }

    /// Answer to the source leaf that a packet gets in any case.
    fn answer<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &Packet,
        header: Header,
        back: PortId,
    ) {
        if packet.flags.has(weft_packet::PacketFlags::CE) {
            self.counts.notifies += 1;
            cx.send(
                back,
                Header { opcode: Opcode::Notify, path: header.path, ..Header::default() }.answer(packet),
            );
        }
        if header.opcode == Opcode::Request {
            self.counts.replies += 1;
            let port = self.port_to(packet.dst);
            let is_full = self.says_when_full && self.in_use[usize::from(port)] >= self.queues;
            let reply =
                Header { opcode: Opcode::Reply, epoch: header.epoch, rerouted: is_full, ..Header::default() };
            cx.send(back, reply.answer(packet));
        }
    }

    /// A packet of the old path (§3.3.1), the TAIL among them.
    fn take_old<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        connection: &mut Connection,
        packet: &Packet,
        header: Header,
        back: PortId,
    ) {
        let now = cx.now();
        connection.old = Some((header.stamp, now));
        if header.tail {
            if !connection.is_clear {
                connection.is_clear = true;
                self.counts.clears += 1;
                cx.send(back, clear(header.epoch).answer(packet));
            }
            // What was held follows the TAIL.
            if let Some(queue) = connection.queue.take() {
                self.give_back(queue);
                cx.release(queue);
            }
        } else if let Some(queue) = connection.queue {
            let resume = self.expected(now, connection);
            self.wait_until(cx, queue, resume);
        }
    }

    /// When the TAIL should have come: as long after the last packet of the old path as it left
    /// behind it (appendix A).
    fn expected(&self, now: Time, connection: &Connection) -> Time {
        match connection.old {
            Some((left, came)) => {
                let behind = Span::from_us(connection.tail.since_us(left));
                came.saturating_add(behind + self.resume_extra).max(now)
            }
            None => now.saturating_add(self.resume_default),
        }
    }

    /// A packet of the new path: it waits if the TAIL has not come.
    fn take_rerouted<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        connection: &mut Connection,
        packet: &Packet,
        header: Header,
        back: PortId,
    ) -> Arrival {
        if connection.is_clear {
            return Arrival::Forward;
        }
        connection.tail = header.stamp;
        let queue = if let Some(queue) = connection.queue {
            queue
        } else {
            let resume = self.expected(cx.now(), connection);
            let Some(queue) = self.take_queue(packet, header, back, resume) else {
                self.counts.passed_out_of_order += 1;
                return Arrival::Forward;
            };
            connection.queue = Some(queue);
            self.wait_until(cx, queue, resume);
            queue
        };
        self.counts.held += 1;
        let held = cx.held_bytes() + u64::from(packet.wire_bytes);
        self.counts.most_held_bytes = self.counts.most_held_bytes.max(held);
        Arrival::Hold(queue)
    }

    /// A queue for a connection at the port of its host, if one is free there.
    fn take_queue(&mut self, packet: &Packet, header: Header, back: PortId, resume: Time) -> Option<u32> {
        let port = self.port_to(packet.dst);
        let in_use = &mut self.in_use[usize::from(port)];
        if *in_use >= self.queues {
            return None;
        }
        *in_use += 1;
        self.counts.most_queues = self.counts.most_queues.max(u64::from(*in_use));
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(ReorderEntry::default());
            self.places.len() as u32 - 1
        });
        let clear = clear(header.epoch).answer(packet);
        let queue = Queue { key: Key::sent(packet), port, resume, clear, back };
        self.places[number as usize].queue = Some(queue);
        Some(number)
    }

    fn give_back(&mut self, number: u32) {
        if let Some(queue) = self.places[number as usize].queue.take() {
            self.in_use[usize::from(queue.port)] -= 1;
            self.free.push(number);
        }
    }

    /// The packets of a queue wait until then for the TAIL.
    fn wait_until<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, number: u32, resume: Time) {
        let place = &mut self.places[number as usize];
        if let Some(queue) = &mut place.queue {
            queue.resume = resume;
        }
        // A timer that goes off earlier sets the next one.
        if place.due.is_none_or(|due| due > resume) {
            place.due = Some(resume);
            cx.set_timer(resume.since(cx.now()), number);
        }
    }

    /// The timer of a queue: the TAIL is lost, if it is time (§3.3.1, Fig. 9d).
    pub fn timer<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, number: u32) {
        let now = cx.now();
        let is_due = |place: &&mut ReorderEntry| place.due.is_some_and(|due| due <= now);
        let Some(place) = self.places.get_mut(number as usize).filter(is_due) else { return };
        place.due = None;
        let Some(queue) = place.queue else { return };
        if now < queue.resume {
            return self.wait_until(cx, number, queue.resume);
        }
        self.give_back(number);
        self.counts.resumed_by_timer += 1;
        self.counts.clears += 1;
        if let Some(connection) = self.connections.get(queue.key) {
            connection.queue = None;
            connection.is_clear = true;
        }
        cx.send(queue.back, queue.clear);
        cx.release(number);
    }

    fn port_to(&self, host: HostId) -> u16 {
        let place = self.hosts.binary_search_by_key(&host, |&(host, _)| host);
        place.map_or(0, |place| self.hosts[place].1)
    }

    /// Connections, and the queues in use.
    pub fn state_bytes(&self) -> u64 {
        self.connections.state_bytes() + (self.places.len() * size_of::<Key>()) as u64
    }
}

fn clear(epoch: Epoch) -> Header {
    Header { opcode: Opcode::Clear, epoch, ..Header::default() }
}

/// Takes the header off a packet that came from the fabric, if it has one.
pub fn strip(packet: &mut Packet) -> Option<Header> {
    let header = Header::read(packet)?;
    packet.scheme = 0;
    if packet.kind == Kind::Data {
        packet.wire_bytes = packet.wire_bytes.saturating_sub(Header::BYTES);
    }
    Some(header)
}
