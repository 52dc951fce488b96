//! Packets of edge schemes: what they carry, and switches that answer when a hop limit expires.

use std::sync::Arc;

use weft_balance::{Expired, Message};
use weft_packet::{HostId, Kind, MessageBody, Packet, PacketFlags};

use super::network::Network;
use super::pool::PacketIndex;

/// The contents of messages that are under way, in places that are used again. A packet holds the number of its place.
#[derive(Default)]
pub struct Contents {
    places: Vec<Option<Arc<[u32]>>>,
    free: Vec<u32>,
}

impl Contents {
    fn keep(&mut self, contents: Arc<[u32]>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(contents);
            return place;
        }
        self.places.push(Some(contents));
        (self.places.len() - 1) as u32
    }

    fn take(&mut self, place: u32) -> Option<Arc<[u32]>> {
        self.free.push(place);
        self.places[place as usize].take()
    }

    /// Forgets what a packet carried.
    pub fn forget(&mut self, packet: &Packet) {
        if packet.kind == Kind::Message
            && let Some(place) = packet.message_body().contents
        {
            self.take(place);
        }
    }

    /// Messages under way that carry something.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl Network<'_> {
    /// Queues a message of the edge scheme of `host`.
    pub fn send_message(&mut self, host: HostId, message: Message) {
        let body = MessageBody {
            hop_limit: message.hop_limit,
            expired: None,
            contents: message.contents.map(|contents| self.contents.keep(contents)),
        };
        let mut packet = Packet::default();
        packet.kind = Kind::Message;
        packet.src = host;
        packet.dst = message.peer;
        packet.wire_bytes = message.wire_bytes;
        packet.route = message.route;
        packet.entropy = message.entropy;
        packet.scheme = message.tag;
        packet.seq = message.number;
        packet.sent = message.stamp;
        packet.flags = PacketFlags::default().with_if(PacketFlags::ECT, message.marked);
        packet.set_message_body(body);
        self.send(packet);
    }

    /// The message that a packet brought to its host.
    pub fn message_of(&mut self, packet: &Packet) -> Message {
        let body = packet.message_body();
        Message {
            peer: packet.src,
            wire_bytes: packet.wire_bytes,
            route: packet.route,
            entropy: packet.entropy,
            tag: packet.scheme,
            number: packet.seq,
            stamp: packet.sent,
            marked: packet.flags.has(PacketFlags::CE),
            hop_limit: body.hop_limit,
            expired: body.expired.map(|(switch, port)| Expired { switch, port }),
            contents: body.contents.and_then(|place| self.contents.take(place)),
        }
    }

    /// Counts a hop of a packet that came to a switch by its port `port`. True if the hop limit expired: then the answer
    /// is on its way back by that port, and the packet ends here.
    pub(super) fn expires(&mut self, switch: usize, port: u16, index: PacketIndex) -> bool {
        let packet = &mut self.pool[index];
        let mut body = packet.message_body();
        if packet.kind != Kind::Message || body.hop_limit == 0 {
            return false;
        }
        body.hop_limit -= 1;
        packet.set_message_body(body);
        if body.hop_limit > 0 {
            return false;
        }
        let mut answer = Packet::default();
        answer.kind = Kind::Message;
        (answer.src, answer.dst) = (packet.dst, packet.src);
        answer.wire_bytes = Message::EXPIRED_BYTES;
        (answer.entropy, answer.scheme) = (packet.entropy, packet.scheme);
        (answer.seq, answer.sent) = (packet.seq, packet.sent);
        answer.set_message_body(MessageBody {
            hop_limit: 0,
            expired: Some((switch as u32, port)),
            contents: None,
        });
        self.contents.forget(&self.pool[index]);
        let first = self.ports(switch).start;
        self.send_control((first + usize::from(port)) as u32, answer);
        true
    }
}

#[cfg(test)]
mod tests;
