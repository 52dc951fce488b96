//! From faults in the spec to the links that they hit and the state of each over time.

use std::collections::{BTreeMap, BTreeSet};

use weft_units::{Purpose, Stream, Time};

use super::fault::FaultTable;
use super::names::{listed, unknown_name};
use super::{Built, FabricError};
use crate::{Condition, FaultEvent, Topology};

const LINK_FORMS: &str = "\"leaf0-spine1\" for both directions or \"leaf0>spine1\" for one; with \".0\", \".1\" \
                          and so on after it for one of several parallel cables";

/// The links that each fault hits, in order.
pub(super) fn links_of_faults(
    faults: &[FaultTable],
    built: &Built,
    seed: u64,
) -> Result<Vec<Vec<u32>>, FabricError> {
    if faults.is_empty() {
        return Ok(Vec::new());
    }
    let names = built.topology.names.iter().zip(0u32..);
    let nodes: BTreeMap<&str, u32> = names.map(|(name, node)| (name.as_str(), node)).collect();
    let links = faults.iter().enumerate().map(|(index, fault)| {
        let key = format!("fabric.fault[{index}]");
        fault.check(&key)?;
        match (&fault.link, fault.share) {
            (Some(name), _) => named(&format!("{key}.link"), name, &built.topology, &nodes),
            (None, share) => {
                drawn(&key, share.unwrap_or_default(), fault.tier.as_deref(), built, seed, index as u64)
            }
        }
    });
    links.collect()
}

/// A share of the cables of a tier, both directions of each.
fn drawn(
    key: &str,
    share: f64,
    tier: Option<&str>,
    built: &Built,
    seed: u64,
    index: u64,
) -> Result<Vec<u32>, FabricError> {
    let tiers = built.plan.tiers;
    let place = tier.map(|tier| {
        let known = || tiers.iter().copied();
        let unknown = || unknown_name(format!("{key}.tier"), "tier", tier, known);
        tiers.iter().position(|name| *name == tier).ok_or_else(unknown)
    });
    let place = place.transpose()?;
    // Every kind of fabric names the tier of its hosts first.
    let chosen = |tier: u8| place.map_or(tier > 0, |place| usize::from(tier) == place);
    let cables = built.plan.cables.iter().zip(&built.links_of_cable);
    let mut pool: Vec<[u32; 2]> =
        cables.filter(|(cable, _)| chosen(cable.tier)).map(|(_, links)| *links).collect();
    Stream::new(seed, Purpose::Degradation, index).shuffle(&mut pool);
    pool.truncate((share * pool.len() as f64).round() as usize);
    Ok(pool.into_iter().flatten().collect())
}

/// The links of one name, in one direction or both, one of parallel ones or all.
fn named(
    key: &str,
    text: &str,
    topology: &Topology,
    nodes: &BTreeMap<&str, u32>,
) -> Result<Vec<u32>, FabricError> {
    let malformed = || FabricError::bad(key, &format!("{text:?}"), LINK_FORMS);
    let (from, rest) = text.split_once(['-', '>']).ok_or_else(malformed)?;
    let both = !text.contains('>');
    let (to, number) = match rest.split_once('.') {
        None => (rest, None),
        Some((to, number)) => (to, Some(number.parse::<usize>().map_err(|_| malformed())?)),
    };
    let node = |name: &str| {
        let known = || nodes.keys().copied();
        nodes.get(name).copied().ok_or_else(|| unknown_name(key.to_owned(), "node", name, known))
    };
    let (from, to) = (node(from.trim())?, node(to.trim())?);
    let links: Vec<u32> = topology.links_between(from, to).collect();
    if links.is_empty() {
        return Err(no_cable(key, text, topology, from));
    }
    let one_way = match number {
        None => links,
        Some(number) if number < links.len() => vec![links[number]],
        Some(_) => {
            let allowed = format!("a number from .0 to .{}", links.len() - 1);
            return Err(FabricError::bad(key, &format!("{text:?}"), allowed));
        }
    };
    let other_way = one_way.iter().filter(|_| both).map(|&link| topology.reverse[link as usize]);
    Ok(one_way.iter().copied().chain(other_way).collect())
}

fn no_cable(key: &str, found: &str, topology: &Topology, from: u32) -> FabricError {
    let ports = topology.first_link[from as usize]..topology.first_link[from as usize + 1];
    let neighbours: BTreeSet<u32> = ports.map(|link| topology.links[link as usize].to.0).collect();
    let name = |node: u32| topology.names[node as usize].as_str();
    FabricError::NoCable {
        key: key.to_owned(),
        found: found.to_owned(),
        from: name(from).to_owned(),
        neighbours: listed(neighbours.into_iter().map(name)),
    }
}

/// Gives every link the state that it begins with; returns the changes that follow, by time and
/// link.
pub(super) fn apply(faults: &[FaultTable], links: &[Vec<u32>], topology: &mut Topology) -> Vec<FaultEvent> {
    let mut of_link: BTreeMap<u32, Vec<&FaultTable>> = BTreeMap::new();
    for (fault, links) in faults.iter().zip(links) {
        for &link in links {
            of_link.entry(link).or_default().push(fault);
        }
    }
    let mut events = Vec::new();
    for (link, faults) in of_link {
        let state = &mut topology.links[link as usize].condition;
        let nominal = *state;
        *state = at(Time::ZERO, &faults, &nominal);
        let mut current = *state;
        let times: BTreeSet<Time> = faults.iter().flat_map(|fault| [fault.begins(), fault.ends()]).collect();
        for time in times.into_iter().filter(|time| *time > Time::ZERO && *time < Time::NEVER) {
            let next = at(time, &faults, &nominal);
            if next != current {
                events.push(FaultEvent { at: time, link, condition: next });
                current = next;
            }
        }
    }
    events.sort_by_key(|event| (event.at, event.link));
    events
}

/// The state of a link at a time.
fn at(time: Time, faults: &[&FaultTable], nominal: &Condition) -> Condition {
    let in_force = faults.iter().filter(|fault| fault.begins() <= time && time < fault.ends());
    in_force.fold(*nominal, |condition, fault| fault.applied(condition, nominal))
}
