//! Which flows start at the hosts of a partition by themselves.

use std::ops::Range;

use weft_traffic::{Dependencies, Flow};

/// The flows that start at the hosts of a partition at a time that is known, in their order.
pub enum Starts {
    /// All flows of the traffic.
    All,
    /// These.
    Some(Vec<u32>),
}

impl Starts {
    /// Those that start at these hosts, and do not wait for others.
    pub fn of_hosts(flows: &[Flow], dependencies: Option<&Dependencies>, hosts: &Range<u32>) -> Self {
        let starts_here = |flow: &Flow| hosts.contains(&u32::from(flow.src.0));
        let waits = |number| dependencies.is_some_and(|dependencies| dependencies.waits(number));
        let here = (0u32..).zip(flows).filter(|&(number, flow)| starts_here(flow) && !waits(number));
        Self::Some(here.map(|(number, _)| number).collect())
    }

    /// The one at this place among them, of so many flows of the traffic.
    pub(super) fn get(&self, place: usize, flows: usize) -> Option<u32> {
        match self {
            Self::All => (place < flows).then_some(place as u32),
            Self::Some(starts) => starts.get(place).copied(),
        }
    }
}
