//! Now and then somebody looks whether pauses wait for each other: then the run is over.

use std::cmp::Reverse;

use weft_transport::Transports;
use weft_units::Time;

use super::{Engine, inner};
use crate::engine::deadlock::{SwitchNow, circle};
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::partition::Partition;
use crate::engine::partition::PartitionMap;
use crate::engine::simulation::Ending;

impl<T: Transports> Engine<'_, T> {
    /// Looks again after a while, if anybody pauses.
    pub(super) fn look_for_deadlock_from(&mut self, now: Time) {
        if let Some(pause) = self.topology.shared_buffer.and_then(|memory| memory.pause) {
            let at = now.saturating_add(pause.look_every);
            self.agenda.push(Reverse((at, EventKey::new(EventKind::Deadlock, 0))));
        }
    }

    /// Looks whether paused links wait for each other in a circle.
    pub(super) fn look_for_deadlock(&mut self, at: Time) {
        let partitions: Vec<&mut Partition<'_, T>> = self.partitions.iter_mut().map(inner).collect();
        let switches: Vec<SwitchNow<'_>> =
            partitions.iter().flat_map(|partition| switches(partition)).collect();
        if let Some(found) = circle(&switches) {
            self.deadlock = found;
            self.ending = Some(Ending::Deadlock);
        } else if !self.rests() {
            self.look_for_deadlock_from(at);
        }
    }
}

fn switches<'g, T: Transports>(partition: &'g Partition<'_, T>) -> impl Iterator<Item = SwitchNow<'g>> {
    let shared_buffers =
        partition.network.shared_buffers.as_ref().map_or(&[][..], |shared_buffers| &shared_buffers.switches);
    (0..)
        .zip(shared_buffers)
        .map(|(switch, memory)| SwitchNow { memory, links: links(&partition.network.map, switch) })
}

/// The links of a switch's ports: those that leave by each, and those that come in by it.
fn links(map: &PartitionMap<'_>, switch: usize) -> Vec<(u32, u32)> {
    let number = |link: usize| map.number(link as u32);
    map.ports(switch).map(|link| (number(link), map.fabric.reverse[number(link) as usize])).collect()
}
