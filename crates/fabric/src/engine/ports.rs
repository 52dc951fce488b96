//! Port numbers that lead over paths of their own.
//!
//! A sender that knows the switches' hash function and its parameters can work out which way a
//! five-tuple goes, and choose its ports accordingly. MaxPass assumes that it does (§III.B).

use std::sync::{Mutex, PoisonError};

use weft_balance::{AnySwitchScheme, NextHops};
use weft_topology::{RouteEntry, Routes, Topology};
use weft_units::mix64;

/// Candidates that are tried for each path that there is. Of `n` paths that hashes choose evenly,
/// one is left out with a probability below `n x exp(-32)`.
const TRIES_PER_PATH: u32 = 32;

/// How the switches are configured, as an operator tells hosts that choose ports by it: a scheme of
/// each that no packet ever meets. Empty where hosts do not know it.
#[derive(Default)]
pub struct SwitchConfigs {
    /// Behind a lock: schemes may go from one thread to another, but only one may look at them at a
    /// time.
    schemes: Mutex<Vec<AnySwitchScheme>>,
}

impl SwitchConfigs {
    /// Switches whose schemes were made like these.
    pub const fn new(schemes: Vec<AnySwitchScheme>) -> Self {
        Self { schemes: Mutex::new(schemes) }
    }

    /// The entropies of a flow's ports, from one rack to another by these routes: its own, then
    /// those of as many others, up to `most`, as lead over paths that none before them takes. Empty
    /// if the flow's own is the only one.
    pub fn apart(
        &self,
        topology: &Topology,
        routes: &Routes,
        [from, to]: [usize; 2],
        own: u32,
        most: u8,
    ) -> Box<[u32]> {
        let there_are = routes.routes_to(topology, from, to);
        let wanted = there_are.min(u32::from(most));
        let schemes = self.schemes.lock().unwrap_or_else(PoisonError::into_inner);
        let path = |entropy| path(&schemes, topology, routes, [from, to], entropy);
        let Some(first) = (wanted > 1).then(|| path(own)).flatten() else {
            return Box::default();
        };
        let (mut ports, mut paths) = (vec![own], vec![first]);
        for candidate in 1..=TRIES_PER_PATH.saturating_mul(there_are) {
            if ports.len() == wanted as usize {
                break;
            }
            let entropy = (mix64(u64::from(candidate) << 32 | u64::from(own)) >> 32) as u32;
            let Some(path) = path(entropy) else { break };
            if !paths.contains(&path) && !ports.contains(&entropy) {
                ports.push(entropy);
                paths.push(path);
            }
        }
        if ports.len() > 1 { ports.into() } else { Box::default() }
    }
}

/// The choices on the way of a five-tuple as the digits of one number, or `None` if they depend on
/// more than the hash.
fn path(
    schemes: &[AnySwitchScheme],
    topology: &Topology,
    routes: &Routes,
    [from, to]: [usize; 2],
    entropy: u32,
) -> Option<u64> {
    let (mut switch, end) = (topology.switch_of_rack[from], topology.switch_of_rack[to]);
    let (mut digits, mut base) = (0u64, 1u64);
    while switch != end {
        let port = match routes.entry(switch as usize, to) {
            RouteEntry::None => return None,
            RouteEntry::Port(port) => port,
            RouteEntry::Group(group) => {
                let (ports, weights) = routes.group(group);
                let hops = NextHops { ports, weights, rack: to as u16 };
                let choice = schemes.get(switch as usize)?.hash_choice(entropy, &hops)?;
                digits = digits.wrapping_add(base.wrapping_mul(choice as u64));
                base = base.wrapping_mul(ports.len() as u64);
                ports[choice]
            }
        };
        let link = topology.first_link[topology.hosts + switch as usize] + u32::from(port.0);
        switch = topology.links[link as usize].to.0 - topology.hosts as u32;
    }
    Some(digits)
}
