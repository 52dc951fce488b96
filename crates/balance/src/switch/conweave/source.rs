//! The source leaf: it watches each connection's path, and moves the connection when the answer is
//! late (§3.2).

use weft_packet::Packet;
use weft_units::{Span, Time};

use super::header::{Epoch, Header, Opcode, Stamp};
use super::params::Params;
use crate::switch::connections::{Connections, Key};
use crate::{NextHops, Peer, PortId, SwitchContext, SwitchInfo};

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// It is new.
    #[default]
    New,
    /// An `RTT_REQUEST` is out; the answer is due by then.
    Watched(Time),
    /// Packets go by the new path; the TAIL left the old one at this time. No word yet that all is
    /// in order.
    Rerouted(Stamp),
    /// All is in order: the next packet begins an epoch.
    Settled,
}

/// State of a connection at the source leaf.
#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    last: Time,
    phase: Phase,
    epoch: Epoch,
    path: u8,
    /// Whether the far leaf had no queue when it last said so.
    refused: bool,
}

/// The paths of a leaf: by uplink, and by way above it.
#[derive(Debug, Clone)]
struct Paths {
    uplinks: Box<[PortId]>,
    above: u8,
    /// Until when each is not taken: by rack and path.
    busy: Box<[Time]>,
}

impl Paths {
    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let is_uplink = |(_, peer): &(usize, &Peer)| matches!(peer, Peer::Switch { .. });
        let uplinks: Box<[PortId]> = info
            .port_peers
            .iter()
            .enumerate()
            .filter(is_uplink)
            .map(|(port, _)| PortId(port as u16))
            .collect();
        let busy = vec![Time::ZERO; usize::from(info.racks) * uplinks.len() * usize::from(params.above)];
        Self { uplinks, above: params.above, busy: busy.into_boxed_slice() }
    }

    const fn count(&self) -> usize {
        self.uplinks.len() * self.above as usize
    }

    /// Where among the next hops a path begins.
    fn hop(&self, path: u8, hops: &NextHops<'_>) -> Option<usize> {
        hops.index_of(*self.uplinks.get(usize::from(path / self.above))?)
    }

    fn set_busy(&mut self, rack: u16, path: u8, until: Time) {
        let place = usize::from(rack) * self.count() + usize::from(path);
        if usize::from(path) < self.count()
            && let Some(busy) = self.busy.get_mut(place)
        {
            *busy = until;
        }
    }

    fn is_busy(&self, rack: u16, path: u8, now: Time) -> bool {
        self.busy.get(usize::from(rack) * self.count() + usize::from(path)).is_some_and(|&until| now < until)
    }

    /// Any path that begins at one of the next hops, and at which.
    fn draw<C: SwitchContext + ?Sized>(&self, cx: &mut C, hops: &NextHops<'_>) -> (u8, usize) {
        let hop = cx.random().below(hops.ports.len() as u32) as usize;
        let way = if self.above > 1 { cx.random().below(self.above.into()) as u8 } else { 0 };
        let uplink = self.uplinks.binary_search(&hops.ports[hop]).unwrap_or(0) as u8;
        (uplink.wrapping_mul(self.above).wrapping_add(way), hop)
    }
}

/// Counters of connections.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub epochs: u64,
    pub replies_in_time: u64,
    pub reroutes: u64,
    pub aborted: u64,
    pub unlisted: u64,
}

/// A source leaf.
#[derive(Debug, Clone)]
pub struct Source {
    paths: Paths,
    connections: Connections<Connection>,
    /// By rack: how long after a request its answer is late.
    cutoff: Box<[Span]>,
    inactive: Span,
    path_busy: Span,
    samples: u8,
    pub counts: Counts,
}

impl Source {
    pub fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        // What lies between the leaves: the round trip of hosts, without that of hosts of one rack.
        let own =
            info.rack.and_then(|rack| info.base_rtts.get(usize::from(rack))).copied().unwrap_or_default();
        let cutoff = |rtt: &Span| rtt.saturating_sub(own) + params.reply_extra;
        Self {
            paths: Paths::new(params, info),
            connections: Connections::new(params.entries as usize),
            cutoff: info.base_rtts.iter().map(cutoff).collect(),
            inactive: params.inactive,
            path_busy: params.path_busy,
            samples: params.samples,
            counts: Counts::default(),
        }
    }

    /// The way of a data packet that leaves the rack, and its header. `None` if the connection has
    /// no place in the table.
    pub fn send<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> Option<usize> {
        let (now, inactive) = (cx.now(), self.inactive);
        let is_dead = |own: &Connection| now.since(own.last) > inactive.saturating_mul(4);
        let Some(own) = self.connections.entry(Key::sent(packet), is_dead) else {
            self.counts.unlisted += 1;
            return None;
        };
        let mut connection = *own;
        let stays = self.paths.hop(connection.path, hops).filter(|_| connection.phase != Phase::New);
        let is_idle = now.since(connection.last) > inactive;
        let (header, hop) = match (connection.phase, stays) {
            (Phase::New, _) | (_, None) => self.begin_anywhere(cx, &mut connection, hops, None),
            (_, Some(hop)) if is_idle => self.begin_anywhere(cx, &mut connection, hops, Some(hop)),
            (Phase::Settled, Some(hop)) => (self.begin(now, &mut connection, hops.rack), hop),
            (Phase::Watched(due), Some(hop)) => {
                let late = now > due && !connection.refused;
                let moved = if late { self.reroute(cx, connection.path, hops) } else { None };
                self.counts.aborted += u64::from(late && moved.is_none());
                let plain = Header { stamp: Stamp::of(now), ..connection.header() };
                if let Some(path) = moved {
                    // One more packet goes by the old path, and says that it is the last (§3.2.3).
                    self.counts.reroutes += 1;
                    connection.phase = Phase::Rerouted(Stamp::of(now));
                    connection.path = path;
                }
                (Header { tail: moved.is_some(), ..plain }, hop)
            }
            (Phase::Rerouted(tail), Some(hop)) => {
                (Header { rerouted: true, stamp: tail, ..connection.header() }, hop)
            }
        };
        connection.last = now;
        if let Some(own) = self.connections.get(Key::sent(packet)) {
            *own = connection;
        }
        packet.scheme = header.bits();
        packet.wire_bytes = packet.wire_bytes.saturating_add(Header::BYTES);
        Some(hop)
    }

    /// A new epoch on the path that there is: this packet asks for an answer (§3.2.1).
    fn begin(&mut self, now: Time, connection: &mut Connection, rack: u16) -> Header {
        let cutoff = self.cutoff.get(usize::from(rack)).copied().unwrap_or_default();
        self.counts.epochs += 1;
        connection.epoch = connection.epoch.next();
        connection.phase = Phase::Watched(now.saturating_add(cutoff));
        Header { opcode: Opcode::Request, stamp: Stamp::of(now), ..connection.header() }
    }

    /// A new epoch on any path, as nothing is under way: one that is not busy if samples find it,
    /// else where it is at `stays`.
    fn begin_anywhere<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        connection: &mut Connection,
        hops: &NextHops<'_>,
        stays: Option<usize>,
    ) -> (Header, usize) {
        let found = self.sample(cx, None, hops);
        let (path, hop) = match (found, stays) {
            (Some(found), _) => found,
            (None, Some(hop)) => (connection.path, hop),
            (None, None) => self.paths.draw(cx, hops),
        };
        connection.path = path;
        connection.refused = false;
        (self.begin(cx.now(), connection, hops.rack), hop)
    }

    /// A few paths are drawn; the first that is not `but`, nor busy (§3.2.2).
    fn sample<C: SwitchContext + ?Sized>(
        &self,
        cx: &mut C,
        but: Option<u8>,
        hops: &NextHops<'_>,
    ) -> Option<(u8, usize)> {
        let now = cx.now();
        (0..self.samples)
            .map(|_| self.paths.draw(cx, hops))
            .find(|&(path, _)| Some(path) != but && !self.paths.is_busy(hops.rack, path, now))
    }

    fn reroute<C: SwitchContext + ?Sized>(&self, cx: &mut C, from: u8, hops: &NextHops<'_>) -> Option<u8> {
        self.sample(cx, Some(from), hops).map(|(path, _)| path)
    }

    /// The far leaf answered.
    pub fn hear<C: SwitchContext + ?Sized>(&mut self, cx: &C, answer: &Packet, header: Header) {
        let now = cx.now();
        if header.opcode == Opcode::Notify {
            return self.paths.set_busy(
                cx.rack_of(answer.src),
                header.path,
                now.saturating_add(self.path_busy),
            );
        }
        let Some(own) = self.connections.get(Key::answered(answer)).filter(|own| own.epoch == header.epoch)
        else {
            return;
        };
        match (header.opcode, own.phase) {
            (Opcode::Reply, Phase::Watched(due)) => {
                own.refused = header.rerouted;
                if now <= due {
                    own.phase = Phase::Settled;
                    self.counts.replies_in_time += 1;
                }
            }
            (Opcode::Clear, Phase::Rerouted(_)) => own.phase = Phase::Settled,
            _ => {}
        }
    }

    /// Why a packet will go as it does.
    pub fn explain(&self, now: Time, packet: &Packet) -> String {
        let Some(own) = self.connections.look(Key::sent(packet)) else {
            return "a new connection: any path that is not busy".to_owned();
        };
        match own.phase {
            _ if now.since(own.last) > self.inactive => "after a pause, any path that is not busy".to_owned(),
            Phase::New | Phase::Settled => "the path is as quick as it should be: it stays".to_owned(),
            Phase::Watched(due) if now <= due => "its path is being watched: it stays".to_owned(),
            Phase::Watched(_) => "the answer is late: the TAIL, if another path is not busy".to_owned(),
            Phase::Rerouted(_) => "rerouted: it stays until the far leaf has all of the old path".to_owned(),
        }
    }

    /// Whether a path to a rack is not to be taken now.
    #[cfg(test)]
    pub fn is_busy(&self, rack: u16, path: u8, now: Time) -> bool {
        self.paths.is_busy(rack, path, now)
    }

    /// Connections, and a time for each path to each rack.
    pub fn state_bytes(&self) -> u64 {
        self.connections.state_bytes() + self.paths.busy.len() as u64 * 8
    }
}

impl Connection {
    fn header(&self) -> Header {
        Header { path: self.path, epoch: self.epoch, ..Header::default() }
    }
}
