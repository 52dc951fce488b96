//! The flow's segments: which are sent, acknowledged, and to be sent once more.

use std::collections::BTreeMap;

use crate::FlowSize;

/// The flow's segments, as its sender keeps them.
#[derive(Debug, Clone)]
pub(super) struct Data {
    size: FlowSize,
    /// One past the last that the application has written.
    pub written: u32,
    /// The first that no subflow has taken.
    next: u32,
    /// The first that the receiver waits for (`DATA_ACK`).
    una: u32,
    /// Outstanding segments of subflows that timed out: the subflow, by segment.
    given_back: BTreeMap<u32, u8>,
    /// How many of these each subflow gave back.
    given_back_by: Box<[u32]>,
}

impl Data {
    /// A flow of this size, for so many subflows.
    pub fn new(size: FlowSize, subflows: u8) -> Self {
        let given_back_by = vec![0; usize::from(subflows)].into_boxed_slice();
        Self { size, written: size.segments, next: 0, una: 0, given_back: BTreeMap::new(), given_back_by }
    }

    /// The size of the flow.
    pub const fn size(&self) -> FlowSize {
        self.size
    }

    /// The first segment that the receiver waits for.
    pub const fn acknowledged(&self) -> u32 {
        self.una
    }

    /// Whether the receiver has everything.
    pub const fn is_delivered(&self) -> bool {
        self.una == self.size.segments
    }

    /// How many segments there are for a subflow to take.
    pub fn available(&self, subflow: u8) -> u32 {
        let again = self.given_back.len() as u32 - self.given_back_by[usize::from(subflow)];
        self.written - self.next + again
    }

    /// The next segment for a subflow: what others failed to deliver first. There must be one.
    pub fn take(&mut self, subflow: u8) -> u32 {
        let again = self.given_back.iter().find(|(_, from)| **from != subflow).map(|(&segment, _)| segment);
        if let Some(segment) = again {
            self.forget(segment);
            return segment;
        }
        self.next += 1;
        self.next - 1
    }

    /// The receiver has everything before this segment.
    pub fn acknowledge(&mut self, una: u32) {
        self.una = self.una.max(una);
        while let Some((&segment, _)) = self.given_back.first_key_value()
            && segment < self.una
        {
            self.forget(segment);
        }
    }

    /// A subflow that timed out has these segments outstanding. Those that the receiver lacks may
    /// be taken by others.
    pub fn give_back(&mut self, subflow: u8, segments: impl Iterator<Item = u32>) {
        let una = self.una;
        for segment in segments.filter(|segment| *segment >= una) {
            self.given_back.entry(segment).or_insert_with(|| {
                self.given_back_by[usize::from(subflow)] += 1;
                subflow
            });
        }
    }

    fn forget(&mut self, segment: u32) {
        if let Some(from) = self.given_back.remove(&segment) {
            self.given_back_by[usize::from(from)] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_subflow_gives_back_is_for_the_others_until_it_is_acknowledged() {
        let mut data = Data::new(FlowSize { segments: 6, last_payload: 1 }, 3);
        assert_eq!([0, 0, 1, 0, 1].map(|subflow| data.take(subflow)), [0, 1, 2, 3, 4]);
        data.acknowledge(1);
        data.give_back(0, [0, 1, 3].into_iter());
        data.give_back(1, [2, 3, 4].into_iter());
        // 0 has arrived, 3 was given back already, 5 is new: of 1, 2, 3, 4 two each are another
        // subflow's.
        assert_eq!([0, 1, 2].map(|subflow| data.available(subflow)), [3, 3, 5]);
        assert_eq!([data.take(1), data.take(0)], [1, 2]);
        data.acknowledge(4);
        assert_eq!([0, 1, 2].map(|subflow| data.available(subflow)), [2, 1, 2]);
        assert_eq!([2, 2].map(|subflow| data.take(subflow)), [4, 5]);
        data.acknowledge(3);
        assert_eq!(
            (data.acknowledged(), data.is_delivered()),
            (4, false),
            "an old acknowledgement says nothing"
        );
        data.acknowledge(6);
        assert!(data.is_delivered());
    }
}
