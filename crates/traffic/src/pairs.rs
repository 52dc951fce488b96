//! Who sends to whom.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::HostId;
use weft_units::{Purpose, Stream};

use crate::hosts::hosts_in;
use crate::{FabricShape, TrafficError, TrafficSpec};

/// Entities of [`Purpose::Pairs`]: one stream each.
pub(crate) mod stream {
    /// The pair of each random flow.
    pub const FLOWS: u64 = 0;
    /// Who sends to whom in a permutation.
    pub const PERMUTATION: u64 = 1;
    /// Which hosts are the random sources.
    pub const SOURCES: u64 = 2;
    /// The pairs of the first table of long-lived flows; the next table has the next number.
    pub const LONG_LIVED: u64 = 1 << 32;
}

/// The rule by which a flow gets its source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Every host is equally likely to send; the destination is equally likely any host of another
    /// rack.
    #[default]
    BetweenRacks,
    /// Every host is equally likely to send; the destination is equally likely any other host.
    Anywhere,
    /// The source is equally likely any of `sources`; the destination equally likely any other of
    /// `destinations`.
    GroupToGroup,
    /// Each host sends to one other host and receives from one other host, as drawn once from the
    /// seed. Every host is equally likely to send the next flow. The permutation is one cycle
    /// through all hosts.
    Permutation,
}

/// A rule made ready to draw from: every source it names has a destination.
#[derive(Debug)]
pub(crate) enum PairPicker {
    /// Hosts sorted by rack; for each host, where its rack begins among them and how many it has.
    BetweenRacks { by_rack: Vec<u16>, rack_of_host: Vec<(u32, u32)> },
    /// For each host, its place among the destinations, if it is one.
    Groups { sources: Vec<u16>, destinations: Vec<u16>, place: Vec<Option<u32>> },
    /// The destination of each host.
    Permutation { destination: Vec<u16> },
}

impl PairPicker {
    pub fn new(spec: &TrafficSpec, shape: &FabricShape, seed: u64) -> Result<Self, TrafficError> {
        check_group_keys(spec)?;
        match spec.pairs {
            Pairs::BetweenRacks => Self::between_racks(shape),
            Pairs::Anywhere => Ok(Self::groups(shape.all_hosts(), shape.all_hosts(), shape)),
            Pairs::GroupToGroup => Self::named_groups(spec, shape, seed),
            Pairs::Permutation => Ok(Self::permutation(shape, seed)),
        }
    }

    fn between_racks(shape: &FabricShape) -> Result<Self, TrafficError> {
        let mut by_rack = shape.all_hosts();
        by_rack.sort_by_key(|&host| shape.rack(host));
        let sizes = shape.hosts_by_rack(&by_rack);
        if sizes.iter().filter(|&&size| size > 0).count() < 2 {
            let allowed =
                "\"anywhere\", \"group-to-group\" or \"permutation\", since all hosts are in one rack";
            return Err(TrafficError::bad_value("traffic.pairs", "\"between-racks\"", allowed));
        }
        let mut next = 0;
        let spans: Vec<(u32, u32)> = sizes
            .into_iter()
            .map(|size| {
                next += size;
                (next - size, size)
            })
            .collect();
        let rack_of_host = shape.all_hosts().into_iter().map(|host| spans[shape.rack(host)]).collect();
        Ok(Self::BetweenRacks { by_rack, rack_of_host })
    }

    fn named_groups(spec: &TrafficSpec, shape: &FabricShape, seed: u64) -> Result<Self, TrafficError> {
        let missing =
            |key| TrafficError::missing(key, "pairs = \"group-to-group\" needs it, as in [\"0-15\"]");
        let (sources, destinations) = if let Some(count) = spec.random_sources {
            random_split(count, shape, seed)?
        } else {
            let sources = spec.sources.as_ref().ok_or_else(|| missing("traffic.sources"))?;
            let destinations = spec.destinations.as_ref().ok_or_else(|| missing("traffic.destinations"))?;
            (
                hosts_in(sources, "traffic.sources", shape)?,
                hosts_in(destinations, "traffic.destinations", shape)?,
            )
        };
        if let [only] = destinations[..]
            && sources.contains(&only)
        {
            let allowed = format!("a host besides {only}, which is also a source and cannot send to itself");
            return Err(TrafficError::bad_value("traffic.destinations", format!("[{only}]"), allowed));
        }
        Ok(Self::groups(sources, destinations, shape))
    }

    fn groups(sources: Vec<u16>, destinations: Vec<u16>, shape: &FabricShape) -> Self {
        let mut place = vec![None; shape.hosts()];
        for (index, &host) in destinations.iter().enumerate() {
            place[usize::from(host)] = Some(index as u32);
        }
        Self::Groups { sources, destinations, place }
    }

    /// Sattolo's shuffle: every cycle through all hosts is equally likely, so that no host sends to
    /// itself.
    fn permutation(shape: &FabricShape, seed: u64) -> Self {
        let mut random = Stream::new(seed, Purpose::Pairs, stream::PERMUTATION);
        let mut destination = shape.all_hosts();
        for last in (1..destination.len()).rev() {
            destination.swap(last, random.below(last as u32) as usize);
        }
        Self::Permutation { destination }
    }

    /// The hosts that may send; each is equally likely to.
    pub fn sources(&self) -> Vec<u16> {
        match self {
            Self::BetweenRacks { rack_of_host: hosts, .. } => {
                (0..hosts.len()).map(|host| host as u16).collect()
            }
            Self::Groups { sources, .. } => sources.clone(),
            Self::Permutation { destination } => (0..destination.len()).map(|host| host as u16).collect(),
        }
    }

    /// The hosts that may receive.
    pub fn destinations(&self) -> Vec<u16> {
        match self {
            Self::Groups { destinations, .. } => destinations.clone(),
            Self::BetweenRacks { .. } | Self::Permutation { .. } => self.sources(),
        }
    }

    /// The probability that a flow goes to another rack than it comes from.
    pub fn cross_rack_share(&self, shape: &FabricShape) -> f64 {
        match self {
            Self::BetweenRacks { .. } => 1.0,
            Self::Permutation { destination } => {
                let crosses = |(host, &to): (usize, &u16)| shape.rack(host as u16) != shape.rack(to);
                let crossing = destination.iter().enumerate().filter(|&pair| crosses(pair)).count();
                crossing as f64 / destination.len() as f64
            }
            Self::Groups { sources, destinations, place } => {
                let near = shape.hosts_by_rack(destinations);
                let share = |&host: &u16| {
                    let all = destinations.len() as f64;
                    let others = all - f64::from(u8::from(place[usize::from(host)].is_some()));
                    (all - f64::from(near[shape.rack(host)])) / others
                };
                sources.iter().map(share).sum::<f64>() / sources.len() as f64
            }
        }
    }

    /// Draws a pair: two draws from the stream, or one for a permutation.
    pub fn pick(&self, random: &mut Stream) -> (HostId, HostId) {
        let one_of = |hosts: &[u16], random: &mut Stream| hosts[random.below(hosts.len() as u32) as usize];
        let (src, dst) = match self {
            Self::BetweenRacks { by_rack, rack_of_host } => {
                let src = one_of(by_rack, random);
                let (begin, size) = rack_of_host[usize::from(src)];
                let place = random.below(by_rack.len() as u32 - size);
                // Step over the source's own rack.
                (src, by_rack[(if place < begin { place } else { place + size }) as usize])
            }
            Self::Groups { sources, destinations, place } => {
                let src = one_of(sources, random);
                let dst = match place[usize::from(src)] {
                    None => one_of(destinations, random),
                    Some(own) => {
                        let place = random.below(destinations.len() as u32 - 1);
                        destinations[(place + u32::from(place >= own)) as usize]
                    }
                };
                (src, dst)
            }
            Self::Permutation { destination } => {
                let src = random.below(destination.len() as u32) as u16;
                (src, destination[usize::from(src)])
            }
        };
        (HostId(src), HostId(dst))
    }

    /// The pair of long-lived flow number `index`: drawn, except that a permutation gives each host
    /// its turn.
    pub fn pick_in_turn(&self, index: u32, random: &mut Stream) -> (HostId, HostId) {
        let Self::Permutation { destination } = self else { return self.pick(random) };
        let src = index as usize % destination.len();
        (HostId(src as u16), HostId(destination[src]))
    }
}

/// The keys for groups stand only where groups are asked for, and either by name or by number.
fn check_group_keys(spec: &TrafficSpec) -> Result<(), TrafficError> {
    let named =
        [("traffic.sources", spec.sources.is_some()), ("traffic.destinations", spec.destinations.is_some())];
    let given = |key: &'static str, is_given: bool| is_given.then_some(key);
    let named = named.into_iter().find_map(|(key, is_given)| given(key, is_given));
    let random = given("traffic.random_sources", spec.random_sources.is_some());
    if let (Some(key), Some(other)) = (named, random) {
        return Err(TrafficError::conflict(key, other, "groups are named or drawn"));
    }
    match named.or(random) {
        Some(key) if spec.pairs != Pairs::GroupToGroup => {
            Err(TrafficError::missing("traffic.pairs", format!("{key} needs pairs = \"group-to-group\"")))
        }
        _ => Ok(()),
    }
}

/// `count` hosts drawn as sources, and all others as destinations.
fn random_split(count: u16, shape: &FabricShape, seed: u64) -> Result<(Vec<u16>, Vec<u16>), TrafficError> {
    let most = shape.hosts() - 1;
    if !(1..=most).contains(&usize::from(count)) {
        return Err(TrafficError::bad_value("traffic.random_sources", count, format!("1 to {most}")));
    }
    let mut hosts = shape.all_hosts();
    Stream::new(seed, Purpose::Pairs, stream::SOURCES).shuffle(&mut hosts);
    let destinations = hosts.split_off(usize::from(count));
    Ok((hosts, destinations))
}

#[cfg(test)]
mod tests;
