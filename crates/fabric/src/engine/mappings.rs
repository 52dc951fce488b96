//! Which segment of a flow each segment of a subflow carries: header bits for which a packet of 64 bytes has no room.
//!
//! A subflow's segment carries the same segment of the flow in all its copies (RFC 8684 section 3.3.1), so the option is
//! kept once for all of them. An end asks for it with a packet in hand, which stands for reading it there.

use weft_packet::{FlowId, Packet};

/// The mappings of the subflows that are active, by their numbers.
#[derive(Default)]
pub struct Mappings {
    /// Empty if there are no subflows.
    subflows: Vec<Vec<u32>>,
}

impl Mappings {
    /// Mappings for so many subflows in all.
    pub fn new(subflows: usize) -> Self {
        Self { subflows: vec![Vec::new(); subflows] }
    }

    /// A data packet of this subflow goes out. A subflow sends its segments in order the first time.
    pub fn note(&mut self, subflow: FlowId, own: u32, segment: u32) {
        if subflow.index() >= self.subflows.len() {
            // A flow of one subflow is a subflow, too.
            self.subflows.resize_with(subflow.index() + 1, Vec::new);
        }
        let carried = &mut self.subflows[subflow.index()];
        if carried.len() == own as usize {
            carried.push(segment);
        }
        debug_assert_eq!(carried[own as usize], segment, "a mapping never changes");
    }

    /// What a data packet says that it carries.
    pub fn segment_of(&self, packet: &Packet) -> u32 {
        self.subflows[packet.flow.index()][packet.seq as usize]
    }

    /// The subflow is over.
    pub fn forget(&mut self, subflow: FlowId) {
        if let Some(carried) = self.subflows.get_mut(subflow.index()) {
            *carried = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_segment_say_the_same_and_subflows_are_kept_apart() {
        let mut mappings = Mappings::new(6);
        for (subflow, own, segment) in [(3, 0, 7), (5, 0, 8), (3, 1, 9), (3, 0, 7)] {
            mappings.note(FlowId(subflow), own, segment);
        }
        let says = |mappings: &Mappings, flow, seq| {
            let mut packet = Packet::default();
            (packet.flow, packet.seq) = (FlowId(flow), seq);
            mappings.segment_of(&packet)
        };
        assert_eq!([(3, 0), (3, 1), (5, 0)].map(|(flow, seq)| says(&mappings, flow, seq)), [7, 9, 8]);
        mappings.forget(FlowId(3));
        mappings.note(FlowId(3), 0, 1);
        assert_eq!([(3, 0), (5, 0)].map(|(flow, seq)| says(&mappings, flow, seq)), [1, 8]);
    }
}
