//! Packets that carry more than their fields: messages of host schemes, and switches that answer
//! when a hop limit expires.

use std::sync::Arc;

use weft_balance::{Expired, Message};
use weft_packet::{HostId, Kind, MessageBody, Packet, PacketFlags};

use super::network::Network;
use super::pool::PacketIndex;

impl Network<'_> {
    /// Queues a message of the host scheme of `host`.
    pub fn send_message(&mut self, host: HostId, message: Message) {
        let body = MessageBody {
            hop_limit: message.hop_limit,
            expired: None,
            contents: message.contents.map(|contents| self.pool.contents().keep(contents)),
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
        self.send_apart(packet);
    }

    /// Puts a packet of a transport into its host's output queue, with contents that travel with
    /// it.
    pub fn send_with_contents(&mut self, mut packet: Packet, contents: Arc<[u32]>) {
        let contents = Some(self.pool.contents().keep(contents));
        packet.set_message_body(MessageBody { contents, ..MessageBody::default() });
        self.send_apart(packet);
    }

    /// Takes what a packet carried beside its 64 bytes: it has arrived, or is lost.
    pub fn contents_of(&mut self, packet: &Packet) -> Option<Arc<[u32]>> {
        self.pool.contents().take(packet)
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
            contents: self.contents_of(packet),
        }
    }

    /// Counts a hop of a packet that came to a switch by its port `port`. True if the hop limit
    /// expired: then the answer is on its way back by that port, and the packet ends here.
    #[cold]
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
            // As the fabric numbers it, for whoever asked may be in another part.
            expired: Some((self.map.switches()[switch], port)),
            contents: None,
        });
        let dropped = self.pool[index];
        self.contents_of(&dropped);
        let first = self.ports(switch).start;
        self.send_control((first + usize::from(port)) as u32, answer);
        true
    }
}

#[cfg(test)]
mod tests;
