//! Which hosts take part, and in what order.

use std::sync::Arc;

use weft_packet::HostId;
use weft_units::{Purpose, Stream};

use super::spec::Placement;
use crate::hosts::hosts_in;
use crate::{FabricShape, HostRange, TrafficError};

/// Who may take part, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'s> {
    pub hosts: Option<&'s [HostRange]>,
    pub count: Option<u16>,
    pub placement: Placement,
}

/// The hosts by rank. `free` are those that are there without a word; `key` makes keys of names;
/// `entity` names the stream.
pub(crate) fn ranks(
    asked: Asked<'_>,
    free: &[u16],
    shape: &FabricShape,
    key: &impl Fn(&str) -> String,
    (seed, entity): (u64, u64),
) -> Result<Arc<[HostId]>, TrafficError> {
    let mut hosts = match asked.hosts {
        Some(ranges) => hosts_in(ranges, &key("hosts"), shape)?,
        None => free.to_vec(),
    };
    if asked.hosts.is_some() && hosts.len() < 2 {
        return Err(TrafficError::bad_value(
            key("hosts"),
            format!("{} host", hosts.len()),
            "at least 2 hosts",
        ));
    }
    let most = hosts.len();
    let count = asked.count.map_or(most, usize::from);
    if !(2..=most).contains(&count) {
        let allowed = if most < 2 {
            "fewer hosts in the tables before: too few are left".to_owned()
        } else {
            format!("2 to {most}, the hosts that there are for it")
        };
        return Err(TrafficError::bad_value(key("count"), count, allowed));
    }
    if asked.placement == Placement::Random {
        Stream::new(seed, Purpose::Placement, entity).shuffle(&mut hosts);
    }
    hosts.truncate(count);
    Ok(hosts.into_iter().map(HostId).collect())
}
