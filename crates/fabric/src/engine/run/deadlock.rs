//! Now and then somebody looks whether pauses wait for each other: then the run is over.

use std::cmp::Reverse;

use weft_transport::Transports;
use weft_units::Time;

use super::{Engine, inner};
use crate::engine::deadlock::{SwitchNow, circle};
use crate::engine::event_set::{EventKey, EventKind};
use crate::engine::group::Group;
use crate::engine::simulation::Ending;
use crate::engine::site::Site;

impl<T: Transports> Engine<'_, T> {
    /// Looks again after a while, if anybody pauses.
    pub(super) fn look_for_deadlock_from(&mut self, now: Time) {
        if let Some(pause) = self.topology.memory.and_then(|memory| memory.pause) {
            let at = now.saturating_add(pause.look_every);
            self.agenda.push(Reverse((at, EventKey::new(EventKind::Deadlock, 0))));
        }
    }

    /// Looks whether paused links wait for each other in a circle.
    pub(super) fn look_for_deadlock(&mut self, at: Time) {
        let groups: Vec<&mut Group<'_, T>> = self.groups.iter_mut().map(inner).collect();
        let switches: Vec<SwitchNow<'_>> = groups.iter().flat_map(|group| switches(group)).collect();
        if let Some(found) = circle(&switches) {
            self.deadlock = found;
            self.ending = Some(Ending::Deadlock);
        } else if !self.rests() {
            self.look_for_deadlock_from(at);
        }
    }
}

fn switches<'g, T: Transports>(group: &'g Group<'_, T>) -> impl Iterator<Item = SwitchNow<'g>> {
    let memories = group.network.memories.as_ref().map_or(&[][..], |memories| &memories.switches);
    (0..)
        .zip(memories)
        .map(|(switch, memory)| SwitchNow { memory, links: links(&group.network.site, switch) })
}

/// The links of a switch's ports: those that leave by each, and those that come in by it.
fn links(site: &Site<'_>, switch: usize) -> Vec<(u32, u32)> {
    let number = |link: usize| site.number(link as u32);
    site.ports(switch).map(|link| (number(link), site.fabric.reverse[number(link) as usize])).collect()
}
