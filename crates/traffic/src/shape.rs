//! Shape of a fabric: the facts that traffic needs, and no more.

use weft_units::Rate;

use crate::TrafficError;

/// Shape of a fabric: the facts that traffic needs. Two fabrics of one shape get the same traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricShape {
    /// The rack (edge switch) of each host, indexed by host.
    pub rack_of_host: Vec<u16>,
    /// The NIC rate of each host; none is zero.
    pub host_rate: Vec<Rate>,
    /// The sum of the nominal uplink rates of each rack's edge switch, indexed by rack; zero if it
    /// has none.
    pub rack_uplink_rate: Vec<Rate>,
    /// The rate across the middle of the fabric, in one direction.
    pub bisection_rate: Rate,
}

impl FabricShape {
    /// The most hosts that a host number can tell apart.
    const MAX_HOSTS: usize = 1 << 16;

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        self.rack_of_host.len()
    }

    /// The number of racks.
    pub fn racks(&self) -> usize {
        self.rack_uplink_rate.len()
    }

    /// The rack of `host`.
    pub(crate) fn rack(&self, host: u16) -> usize {
        usize::from(self.rack_of_host[usize::from(host)])
    }

    /// Every host, in order.
    pub(crate) fn all_hosts(&self) -> Vec<u16> {
        (0..self.hosts()).map(|host| host as u16).collect()
    }

    /// How many of `hosts` stand in each rack.
    pub(crate) fn hosts_by_rack(&self, hosts: &[u16]) -> Vec<u32> {
        let mut counts = vec![0; self.racks()];
        for &host in hosts {
            counts[self.rack(host)] += 1;
        }
        counts
    }

    /// The NIC rates of `hosts` together, in bit/s.
    pub(crate) fn nic_bps(&self, hosts: &[u16]) -> f64 {
        hosts.iter().map(|&host| self.host_rate[usize::from(host)].as_bps() as f64).sum()
    }

    /// The uplink rates of the racks in which `hosts` stand together, in bit/s.
    pub(crate) fn uplink_bps(&self, hosts: &[u16]) -> f64 {
        let inhabited = self.hosts_by_rack(hosts).into_iter().map(|count| count > 0);
        let rates = self.rack_uplink_rate.iter().map(|rate| rate.as_bps() as f64);
        inhabited.zip(rates).filter(|(inhabited, _)| *inhabited).map(|(_, bps)| bps).sum()
    }

    /// Whether every index is in range; the rest of the crate relies on it.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        let (hosts, racks) = (self.hosts(), self.racks());
        let shape = |reason: String| Err(TrafficError::Shape { reason });
        if hosts != self.host_rate.len() {
            return shape(format!("{hosts} hosts have a rack and {} have a rate", self.host_rate.len()));
        }
        if !(2..=Self::MAX_HOSTS).contains(&hosts) {
            return shape(format!("it has {hosts} hosts; allowed are 2 to {}", Self::MAX_HOSTS));
        }
        if let Some(host) = self.rack_of_host.iter().position(|&rack| usize::from(rack) >= racks) {
            return shape(format!(
                "host {host} is in rack {}, and there are {racks} racks",
                self.rack_of_host[host]
            ));
        }
        if let Some(host) = self.host_rate.iter().position(|rate| rate.is_zero()) {
            return shape(format!("host {host} has a link of rate 0"));
        }
        Ok(())
    }
}
