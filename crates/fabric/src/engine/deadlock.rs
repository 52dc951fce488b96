//! Pauses that wait for each other in a circle: nothing on them will ever move again.
//!
//! It is not looked for by any node, which could not know, but by whoever runs the simulation. A
//! pause of a link stands for good if what came by the link and waits for links that are paused for
//! good is alone too much for the pause to end. The largest set of pauses of which that is true is
//! found by leaving out, again and again, those of which it is not.

use std::collections::BTreeSet;

use super::shared_buffer::SharedBuffer;

/// A link, as the fabric numbers it, and one of its port's own classes.
pub type PausedLink = (u32, u8);

/// A switch, as far as pauses go.
pub struct SwitchNow<'m> {
    /// Shared buffer of the switch.
    pub memory: &'m SharedBuffer,
    /// By its port: the link that leaves by it, and the link that comes in by it.
    pub links: Vec<(u32, u32)>,
}

/// A pause, its switch, and the port by which its link comes in.
type Pause = (PausedLink, usize, u16);

/// Links on which nothing will ever move again, each because of the next one, and the last one
/// because of the first; the circle begins with the lowest. None if there is no such circle.
pub fn circle(switches: &[SwitchNow<'_>]) -> Option<Vec<PausedLink>> {
    let mut pauses: Vec<Pause> = Vec::new();
    for (number, switch) in switches.iter().enumerate() {
        let paused = switch.memory.paused();
        pauses.extend(paused.map(|(port, class)| ((switch.links[usize::from(port)].1, class), number, port)));
    }
    loop {
        let paused: BTreeSet<PausedLink> = pauses.iter().map(|pause| pause.0).collect();
        let before = pauses.len();
        let stuck = |&((_, class), switch, port): &Pause| stuck(&switches[switch], port, class, &paused);
        let mut all_stuck = vec![0; switches.len()];
        for pause in &pauses {
            all_stuck[pause.1] += stuck(pause);
        }
        let stays = |pause: &Pause| {
            let ((_, class), switch, port) = *pause;
            switches[switch].memory.stays_paused(port, class, stuck(pause), all_stuck[switch])
        };
        pauses.retain(stays);
        if pauses.len() == before {
            return walk(switches, &pauses);
        }
    }
}

/// Bytes that came by a port and wait for links that are paused.
fn stuck(switch: &SwitchNow<'_>, port: u16, class: u8, paused: &BTreeSet<PausedLink>) -> u64 {
    let is_stuck = |out: u16| paused.contains(&(switch.links[usize::from(out)].0, class));
    switch.memory.stuck(port, class, is_stuck)
}

/// From pause to pause, each time to the first that the one before waits for, until one comes
/// again.
fn walk(switches: &[SwitchNow<'_>], pauses: &[Pause]) -> Option<Vec<PausedLink>> {
    let mut way: Vec<PausedLink> = Vec::new();
    let mut at = *pauses.first()?;
    loop {
        if let Some(begin) = way.iter().position(|link| *link == at.0) {
            way.drain(..begin);
            let lowest = way.iter().enumerate().min_by_key(|(_, link)| **link).map_or(0, |(place, _)| place);
            way.rotate_left(lowest);
            return Some(way);
        }
        way.push(at.0);
        let ((_, class), switch, port) = at;
        let now = &switches[switch];
        let waits_for = |next: &&Pause| {
            next.0.1 == class
                && now.memory.stuck(port, class, |out| now.links[usize::from(out)].0 == next.0.0) > 0
        };
        at = *pauses.iter().find(waits_for)?;
    }
}

#[cfg(test)]
mod tests {
    use weft_topology::{ClassSpec, Limit, Marking, PauseRules, QueueSpec, SharedBufferRules, Xoff};
    use weft_units::Span;

    use super::*;
    use crate::engine::shared_buffer::BufferAccount;

    fn memory() -> SharedBuffer {
        let pause = PauseRules {
            xoff: Xoff::Bytes(2_000),
            hysteresis: 0,
            response: None,
            headroom: None,
            look_every: Span::from_ms(1),
        };
        let rules = SharedBufferRules { bytes: 100_000, alpha: 1.0, reserve: 0, pause: Some(pause) };
        let queue = QueueSpec { limit: Limit::Unlimited, marking: Marking::Never };
        let class = ClassSpec { lossless: true, ..ClassSpec::plain(queue, 1) };
        SharedBuffer::new(&rules, &[class], &[9_000; 3])
    }

    /// Three switches in a ring: link n leads from switch n to the next; port 0 leads on, port 1
    /// comes from the switch before, and port 2 is that of a host, with links from 10 on. Each has
    /// bytes that came by port 1: so many for the next switch, so many for its host.
    fn ring(waiting: [[u64; 2]; 3]) -> Option<Vec<PausedLink>> {
        let mut shared_buffers = [memory(), memory(), memory()];
        for (memory, [on, host]) in shared_buffers.iter_mut().zip(waiting) {
            for (port, count) in [(0, on), (2, host)] {
                for _ in 0..count {
                    memory.admit(BufferAccount { came_by: 1, port, class: 0, held_in: None }, 1_000);
                }
            }
        }
        let links = |number: u32| {
            let before = (number + 2) % 3;
            vec![(number, 20 + number), (20 + before, before), (10 + number, 13 + number)]
        };
        let switches: Vec<SwitchNow<'_>> = (0..)
            .zip(&shared_buffers)
            .map(|(number, memory)| SwitchNow { memory, links: links(number) })
            .collect();
        circle(&switches)
    }

    #[test]
    fn three_that_wait_for_each_other_are_a_circle() {
        assert_eq!(ring([[3, 0], [4, 1], [3, 2]]), Some(vec![(0, 0), (1, 0), (2, 0)]));
    }

    #[test]
    fn one_that_can_drain_to_its_host_opens_the_circle() {
        assert_eq!(ring([[3, 0], [4, 1], [1, 5]]), None, "switch 2 goes on with 1 KB for the next one");
        assert_eq!(ring([[3, 0], [0, 0], [3, 0]]), None, "switch 1 pauses nobody");
        assert_eq!(ring([[0, 0]; 3]), None);
    }
}
