//! The `[hosts]` table of a spec.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_transport::{TransportSpec, TransportsSpec};
use weft_units::{Bytes, Mistake};

use super::world::HEADERS;
use crate::spec::Spec;

/// What hosts are: simulated, or the TCP of a real Linux kernel. `hosts = "linux"` is short for the table with this `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HostsSpec {
    /// Weft's own hosts, with the transports of the spec.
    Simulated(SimulatedSpec),
    /// Network namespaces of a Linux kernel under the simulated clock, with the kernel's own TCP. `make linux-hosts` builds it.
    Linux(LinuxSpec),
}

/// There is nothing to say of simulated hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedSpec {}

/// How the Linux hosts are set. What is not here is as the kernel has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxSpec {
    /// The congestion control of every flow: "cubic", "reno", "dctcp" or "bbr". Default: "dctcp" if the transport is, else "cubic".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControl>,
    /// Whether the kernel makes segments of many packets and cuts them before the card, as hosts do today.
    pub segmentation_offload: bool,
    /// Packets that a card takes before the queueing discipline has to wait, 1 to 65,536.
    pub ring: u32,
    /// Bytes of the header around each packet for what the load balancer needs and TCP/IP does not carry. Default: 8 if
    /// it sets header bits or routes at hosts or switches, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Bytes>,
    /// What is set below `/proc/sys` of every host, as in `"net/ipv4/tcp_sack" = "0"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, String>,
}

impl Default for LinuxSpec {
    fn default() -> Self {
        Self {
            congestion_control: None,
            segmentation_offload: true,
            ring: 256,
            overlay: None,
            sysctl: BTreeMap::new(),
        }
    }
}

/// The congestion controls that the kernel is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// CUBIC (RFC 9438), the kernel's default.
    Cubic,
    /// NewReno.
    Reno,
    /// Data Center TCP (RFC 8257).
    Dctcp,
    /// BBR, version 1.
    Bbr,
}

impl CongestionControl {
    /// As the kernel names it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Dctcp => "dctcp",
            Self::Bbr => "bbr",
        }
    }
}

impl Default for HostsSpec {
    fn default() -> Self {
        Self::Simulated(SimulatedSpec {})
    }
}

impl HostsSpec {
    /// Its kinds, as a spec names them.
    pub(crate) const KINDS: [&str; 2] = ["simulated", "linux"];

    /// Whether all hosts are Weft's own.
    pub(crate) const fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// How Linux hosts are set, if there are any.
    pub(crate) const fn linux(&self) -> Option<&LinuxSpec> {
        match self {
            Self::Simulated(_) => None,
            Self::Linux(linux) => Some(linux),
        }
    }

    /// Refuses what cannot be meant.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), Mistake> {
        let Some(linux) = self.linux() else { return Ok(()) };
        let refuse = |key: &str, found: String, allowed: &str| {
            Err(Mistake::at(key, format!(" is {found}: allowed is {allowed}")).found(found).allowed(allowed))
        };
        if !(1..=65_536).contains(&linux.ring) {
            return refuse("hosts.ring", linux.ring.to_string(), "1 to 65536");
        }
        if linux.overlay.is_some_and(|overlay| overlay.as_u64() > 1_000) {
            let found = linux.overlay.unwrap_or_default();
            return refuse("hosts.overlay", found.to_string(), "0B to 1KB");
        }
        match &spec.transport {
            TransportsSpec::One(transport) => check_transport(transport),
            TransportsSpec::Several(_) => {
                refuse("transport", "several transports".to_owned(), "one, with Linux hosts")
            }
        }
    }
}

/// Linux hosts have TCP only; the transport of the spec says which, and how large packets are.
fn check_transport(transport: &TransportSpec) -> Result<(), Mistake> {
    let (mss, header) = match transport {
        TransportSpec::Tcp(config) => (config.mss, config.header),
        TransportSpec::Dctcp(config) => (config.mss, config.header),
        other => {
            let allowed = "tcp or dctcp, with Linux hosts";
            let found = other.name();
            return Err(Mistake::at("transport.name", format!(" is {found:?}: allowed is {allowed}"))
                .found(found)
                .allowed(allowed));
        }
    };
    let least = u64::from(HEADERS);
    if header.as_u64() < least {
        let allowed = format!("{least}B or more, with Linux hosts: IPv4 and TCP");
        return Err(Mistake::at("transport.header", format!(" is {header}: allowed is {allowed}"))
            .found(header.to_string())
            .allowed(allowed));
    }
    // The kernel takes no MTU below 576 bytes.
    if mss.as_u64() + least < 576 {
        let allowed = format!("{}B or more, with Linux hosts", 576 - least);
        return Err(Mistake::at("transport.mss", format!(" is {mss}: allowed is {allowed}"))
            .found(mss.to_string())
            .allowed(allowed));
    }
    Ok(())
}
