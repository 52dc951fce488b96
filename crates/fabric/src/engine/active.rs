//! The flows that are active: both ends of each, in places that are used again.

use weft_packet::{FlowId, Packet};
use weft_transport::Protocol;
use weft_units::Time;

use super::endpoint::{End, Ends};
use super::spent::Followed;

/// No place: the flow is not active.
pub const NOT_ACTIVE: u32 = u32::MAX;
/// No packet has arrived yet: trails have 16 bits.
const NO_TRAIL: u32 = u32::MAX;

/// The sending end of an active flow, with its transport's state.
pub struct Sender<S> {
    pub end: Ends,
    pub state: S,
}

/// The receiving end of an active flow, with its transport's state and what its packets went through.
pub struct Receiver<R> {
    pub end: Ends,
    pub state: R,
    pub wait_ps: [u64; 4],
    last_trail: u32,
    pub path_changes: u32,
    pub followed: Followed,
}

/// Both ends of an active flow. They share a place, not knowledge: each is touched by its own host's packets only.
pub struct Active<P: Protocol> {
    pub sender: Vec<Option<Sender<P::Sender>>>,
    pub receiver: Vec<Option<Receiver<P::Receiver>>>,
    free: Vec<u32>,
}

impl<R> Receiver<R> {
    /// An end that nothing has reached yet.
    pub const fn new(end: Ends, state: R, start: Time) -> Self {
        let followed = Followed::new(start);
        Self { end, state, wait_ps: [0; 4], last_trail: NO_TRAIL, path_changes: 0, followed }
    }

    /// Adds up what a data packet went through.
    #[inline]
    pub fn note_path(&mut self, packet: &Packet, now: Time) {
        for (tier, sum) in self.wait_ps.iter_mut().enumerate() {
            *sum += packet.wait_ps(tier);
        }
        let trail = u32::from(packet.trail);
        self.path_changes += u32::from(self.last_trail != trail && self.last_trail != NO_TRAIL);
        self.last_trail = trail;
        self.followed.note(packet, now);
    }
}

impl<P: Protocol> Default for Active<P> {
    fn default() -> Self {
        Self { sender: Vec::new(), receiver: Vec::new(), free: Vec::new() }
    }
}

impl<P: Protocol> Active<P> {
    /// Finds a place for a flow.
    pub fn insert(&mut self, sender: Sender<P::Sender>, receiver: Receiver<P::Receiver>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.sender[place as usize] = Some(sender);
            self.receiver[place as usize] = Some(receiver);
            return place;
        }
        self.sender.push(Some(sender));
        self.receiver.push(Some(receiver));
        (self.sender.len() - 1) as u32
    }

    /// Forgets the flow at this place.
    pub fn remove(&mut self, place: u32) {
        self.sender[place as usize] = None;
        self.receiver[place as usize] = None;
        self.free.push(place);
    }

    /// One end of the flow or subflow with this number, if its flow is at this place.
    pub fn end(&mut self, place: u32, sender: bool, flow: FlowId) -> Option<&mut End> {
        let place = place as usize;
        let ends = if sender {
            self.sender.get_mut(place)?.as_mut().map(|sender| &mut sender.end)
        } else {
            self.receiver.get_mut(place)?.as_mut().map(|receiver| &mut receiver.end)
        };
        ends.map(|ends| ends.numbered(flow))
    }
}
