//! The `[hosts]` table of a spec.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_fabric::HostCpuSpec;
use weft_linux_hosts::{Error, FlowOptions, KNOBS, Knob, KnobTarget, MAX_HOSTS};
use weft_packet::HostId;
use weft_traffic::{FabricShape, HostRange, hosts_in};
use weft_transport::mptcp::Coupling;
use weft_transport::{Profile, TransportSpec, TransportsSpec};
use weft_units::{Bytes, Mistake, Span};

use super::world::HEADERS;
use crate::spec::{Spec, nearest};

/// Kernels of a run, at most.
const MOST_KERNELS: usize = 16;
/// Subflows of a flow at most: what the agent opens.
const MOST_SUBFLOWS: u8 = 8;
/// The settings of a flow's socket that the kernel's MPTCP has.
const MPTCP_OPTIONS: [&str; 4] = ["send_buffer_bytes", "receive_buffer_bytes", "no_delay", "cork"];
/// Where the kernel keeps whether there are time stamps.
const TIMESTAMPS: &str = "net/ipv4/tcp_timestamps";

/// Kind of hosts: simulated, or the TCP of a real Linux kernel. `hosts = "linux"` is short for the
/// table with this `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HostsSpec {
    /// Weft's own hosts, with the transports of the spec.
    Simulated(SimulatedSpec),
    /// Network namespaces of a Linux kernel under the simulated clock, with the kernel's own TCP.
    /// `make linux-hosts` builds it.
    Linux(LinuxSpec),
}

/// The cards and CPUs of simulated hosts. By default they take no time; the keys are those of Linux
/// hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimulatedSpec {
    /// Packets that may wait for a host's CPU, at most; 0 for no limit. Default: 0. Source: a
    /// choice, as of Linux hosts.
    pub receive_ring: u32,
    /// Whether segments that the CPU takes together, 64 packets at most, are joined before TCP sees
    /// them (GRO), so that each such train is acknowledged once. Default: false. Source: a choice;
    /// hosts of today have it.
    pub receive_offload: bool,
    /// From the first packet that waits to the interrupt, at most 1 s; 0s for at once. Default: 0s.
    /// Source: a choice, as of Linux hosts.
    pub interrupt_delay: Span,
    /// So many packets that wait are an interrupt before that; 0 for however many. Default: 0.
    /// Source: a choice.
    pub interrupt_packets: u32,
    /// CPU time of a host per packet, one that arrives as well as one that is sent; at most 1 ms.
    /// Default: 0s. Source: a choice.
    pub cpu_per_packet: Span,
    /// And each byte of it; at most 1 us. Default: 0s. Source: a choice.
    pub cpu_per_byte: Span,
}

impl SimulatedSpec {
    /// Host CPU for the engine.
    pub(crate) const fn machine(&self) -> HostCpuSpec {
        HostCpuSpec {
            receive_ring: self.receive_ring,
            receive_offload: self.receive_offload,
            interrupt_delay: self.interrupt_delay,
            interrupt_packets: self.interrupt_packets,
            cpu_per_packet: self.cpu_per_packet,
            cpu_per_byte: self.cpu_per_byte,
        }
    }

    fn check(&self) -> Result<(), Mistake> {
        check_card(&self.machine())
    }
}

/// How the Linux hosts are set. What is not here is as the kernel has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxSpec {
    /// Which hosts are Linux hosts, as numbers and ranges: `[0, "8-15"]`; the others are simulated.
    /// That takes a transport with `profile = "linux"`. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Vec<HostRange>>,
    /// How many kernels the Linux hosts are dealt to, by rack. Each has 256 hosts at most and works
    /// on a core of its own; several draw other ports than one. Default: as few as there can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<u16>,
    /// The congestion control of every flow: "cubic", "reno", "dctcp" or "bbr". Default: "dctcp" if
    /// the transport is, or the subflows of `mptcp` are, else "cubic".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<CongestionControl>,
    /// Whether the kernel makes segments of many packets and cuts them before the card, as hosts do
    /// today.
    pub segmentation_offload: bool,
    /// Packets that a card takes before the queueing discipline has to wait, 1 to 65,536.
    pub ring: u32,
    /// Packets that may wait for a host's CPU, at most; 0 for no limit.
    pub receive_ring: u32,
    /// Whether packets that the CPU takes together are joined before the kernel's TCP sees them
    /// (GRO), as hosts do today.
    pub receive_offload: bool,
    /// From the first packet that waits to the interrupt, at most 1 s; 0s for at once.
    pub interrupt_delay: Span,
    /// So many packets that wait are an interrupt before that; 0 for however many.
    pub interrupt_packets: u32,
    /// CPU time of a host per packet, one that arrives as well as one that is sent; at most 1 ms. A
    /// kernel's CPU takes no time of its own.
    pub cpu_per_packet: Span,
    /// And each byte of it; at most 1 us.
    pub cpu_per_byte: Span,
    /// Bytes of the header around each packet for what the load balancer needs and TCP/IP does not
    /// carry. Default: 8 if it sets header bits or routes at hosts or switches, else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Bytes>,
    /// Settings of the kernel's TCP by name, as in `initial_window = 20` or `min_rto_ms = 10`. The
    /// guide's page on Linux hosts lists them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel: BTreeMap<String, u64>,
    /// Settings below `/proc/sys` of every host, as in `"net/ipv4/tcp_sack" = "0"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, String>,
}

impl Default for LinuxSpec {
    fn default() -> Self {
        Self {
            at: None,
            kernels: None,
            congestion_control: None,
            segmentation_offload: true,
            ring: 256,
            receive_ring: 0,
            receive_offload: true,
            interrupt_delay: Span::ZERO,
            interrupt_packets: 0,
            cpu_per_packet: Span::ZERO,
            cpu_per_byte: Span::ZERO,
            overlay: None,
            kernel: BTreeMap::new(),
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
        Self::Simulated(SimulatedSpec::default())
    }
}

impl HostsSpec {
    /// Kinds of hosts, as a spec names them.
    pub(crate) const KINDS: [&str; 2] = ["simulated", "linux"];

    /// Whether all hosts are Weft's own.
    pub(crate) const fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Whether they are Weft's own, and take no time.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Host CPU of simulated hosts, if all hosts are simulated.
    pub(crate) const fn machine(&self) -> Option<HostCpuSpec> {
        match self {
            Self::Simulated(simulated) => Some(simulated.machine()),
            Self::Linux(_) => None,
        }
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
        let linux = match self {
            Self::Simulated(simulated) => return simulated.check(),
            Self::Linux(linux) => linux,
        };
        let refuse = |key: &str, found: String, allowed: &str| {
            Err(Mistake::at(key, format!(" is {found}: allowed is {allowed}")).found(found).allowed(allowed))
        };
        if !(1..=65_536).contains(&linux.ring) {
            return refuse("hosts.ring", linux.ring.to_string(), "1 to 65536");
        }
        linux.check_card()?;
        linux.check_kernel()?;
        if linux.overlay.is_some_and(|overlay| overlay.as_u64() > 1_000) {
            let found = linux.overlay.unwrap_or_default();
            return refuse("hosts.overlay", found.to_string(), "0B to 1KB");
        }
        match &spec.transport {
            TransportsSpec::One(transport) => {
                check_transport(transport)?;
                linux.check_options(transport)
            }
            TransportsSpec::Several(_) => {
                refuse("transport", "several transports".to_owned(), "one, with Linux hosts")
            }
        }
    }
}

/// Warning that the kernel of Linux hosts does not couple the subflows that the spec couples.
pub(crate) fn uncoupled(spec: &Spec) -> Option<String> {
    let TransportsSpec::One(TransportSpec::Mptcp(config)) = &spec.transport else { return None };
    (!spec.hosts.is_simulated() && config.subflows > 1 && config.coupling != Coupling::None).then(|| {
        "transport.coupling: the kernel of Linux hosts has none; each subflow's window grows as that of a TCP alone"
            .to_owned()
    })
}

impl LinuxSpec {
    /// Which hosts of this fabric are Linux hosts, in order.
    ///
    /// # Errors
    /// Hosts that there are not, more than kernels have, or simulated hosts beside them that do not
    /// speak as they do.
    pub(crate) fn hosts(&self, spec: &Spec, shape: &FabricShape) -> Result<Vec<HostId>, Mistake> {
        let all = 0..shape.hosts() as u16;
        let chosen = match &self.at {
            None => all.collect(),
            Some(ranges) => hosts_in(ranges, "hosts.at", shape)?,
        };
        let (least, most) = (chosen.len().div_ceil(MAX_HOSTS), chosen.len().min(MOST_KERNELS));
        if least > most {
            let (found, allowed) = (format!("{} hosts", chosen.len()), MAX_HOSTS * MOST_KERNELS);
            let what = format!(" makes {found} Linux hosts: allowed are {allowed}");
            return Err(Mistake::at("hosts.at", what).found(found).allowed(allowed.to_string()));
        }
        if let Some(kernels) = self.kernels.filter(|&kernels| !(least..=most).contains(&usize::from(kernels)))
        {
            let (found, allowed) = (kernels.to_string(), format!("{least} to {most}"));
            let what = format!(" is {found}: allowed is {allowed}, for {} Linux hosts", chosen.len());
            return Err(Mistake::at("hosts.kernels", what).found(found).allowed(allowed));
        }
        if chosen.len() < shape.hosts() {
            self.check_beside_simulated(&spec.transport)?;
            let mut programs = spec.traffic.program.iter().enumerate();
            if let Some((index, other)) = programs.find(|(_, program)| !chosen.contains(&program.host)) {
                let (found, allowed) = (other.host.to_string(), "a Linux host, as hosts.at names them");
                let what = format!(" is {found}: allowed is {allowed}");
                let key = format!("traffic.program[{index}].host");
                return Err(Mistake::at(key, what).found(found).allowed(allowed));
            }
        }
        Ok(chosen.into_iter().map(HostId).collect())
    }

    /// How many kernels so many Linux hosts are dealt to.
    pub(super) fn kernels_for(&self, hosts: usize) -> usize {
        self.kernels.map_or(hosts.div_ceil(MAX_HOSTS), usize::from).max(1)
    }

    /// Simulated hosts speak with Linux hosts if they have a handshake and packets of the same
    /// sizes, with time stamps.
    fn check_beside_simulated(&self, transport: &TransportsSpec) -> Result<(), Mistake> {
        let refuse = |key: &str, found: &str, allowed: &str| {
            let allowed = format!("{allowed}, with simulated hosts beside Linux hosts");
            Err(Mistake::at(key, format!(" is {found}: allowed is {allowed}")).found(found).allowed(allowed))
        };
        let (profile, handshake, header) = match transport {
            TransportsSpec::One(TransportSpec::Tcp(config)) => {
                (config.profile, config.handshake, config.header)
            }
            TransportsSpec::One(TransportSpec::Dctcp(config)) => {
                (config.profile, config.handshake, config.header)
            }
            // None but this one: the others were refused before.
            _ => return refuse("transport.name", "\"mptcp\"", "tcp or dctcp"),
        };
        let least = Bytes::new(u64::from(HEADERS) + profile.timestamps().as_u64());
        if profile != Profile::Linux {
            let found = if profile == Profile::Rfc { "\"rfc\"" } else { "\"hermes-ns3\"" };
            return refuse("transport.profile", found, "\"linux\"");
        }
        if !handshake {
            return refuse("transport.handshake", "false", "true");
        }
        if header < least {
            return refuse("transport.header", &header.to_string(), &format!("{least} or more"));
        }
        if self.kernel.get("timestamps") == Some(&0) {
            return refuse("hosts.kernel.timestamps", "0", "1 or 2");
        }
        if let Some(bytes) = self.kernel.get("max_segment_bytes") {
            return refuse("hosts.kernel.max_segment_bytes", &bytes.to_string(), "none");
        }
        if self.sysctl.get(TIMESTAMPS).is_some_and(|value| value == "0") {
            return refuse("hosts.sysctl", &format!("{TIMESTAMPS} = 0"), "1 or 2 there");
        }
        Ok(())
    }

    fn check_card(&self) -> Result<(), Mistake> {
        check_card(&HostCpuSpec {
            receive_ring: self.receive_ring,
            receive_offload: self.receive_offload,
            interrupt_delay: self.interrupt_delay,
            interrupt_packets: self.interrupt_packets,
            cpu_per_packet: self.cpu_per_packet,
            cpu_per_byte: self.cpu_per_byte,
        })
    }

    fn check_kernel(&self) -> Result<(), Mistake> {
        for (name, value) in &self.kernel {
            let key = format!("hosts.kernel.{name}");
            let known = || KNOBS.iter().filter(|knob| !matches!(knob.place, KnobTarget::Multipath(_)));
            let Some(knob) = known().find(|knob| knob.name == name) else {
                let near = nearest(name, known().map(|knob| knob.name));
                let allowed = known().map(|knob| knob.name).collect::<Vec<_>>().join(", ");
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                return Err(Mistake::at(key, format!(" is not a key; allowed here: {allowed}{hint}"))
                    .found(name)
                    .allowed(allowed)
                    .nearest(near));
            };
            if !(knob.least..=knob.most).contains(value) {
                let allowed = format!("{} to {}", knob.least, knob.most);
                return Err(Mistake::at(key, format!(" is {value}: allowed is {allowed}"))
                    .found(value.to_string())
                    .allowed(allowed));
            }
        }
        Ok(())
    }

    /// The sockets of MPTCP take some of the options that those of TCP take.
    fn check_options(&self, transport: &TransportSpec) -> Result<(), Mistake> {
        if !matches!(transport, TransportSpec::Mptcp(_)) {
            return Ok(());
        }
        let options = self.kernel.keys().filter_map(|name| Knob::named(name).ok());
        let of_sockets = |knob: &&Knob| matches!(knob.place, KnobTarget::Socket(_));
        let Some(wrong) = options.filter(of_sockets).find(|knob| !MPTCP_OPTIONS.contains(&knob.name)) else {
            return Ok(());
        };
        let (key, allowed) = (format!("hosts.kernel.{}", wrong.name), MPTCP_OPTIONS.join(", "));
        let what = format!(" is no option of the kernel's MPTCP; of those of flows it has {allowed}");
        Err(Mistake::at(key, what).found(wrong.name).allowed(allowed))
    }

    /// Settings of every host, in the order in which they are made.
    pub(super) fn settings(&self) -> Result<Vec<(String, String)>, Error> {
        let of_hosts = self.kernel.iter().map(|(name, &value)| Ok((Knob::named(name)?, value)));
        let named = of_hosts.collect::<Result<Vec<_>, Error>>()?;
        let named = named.into_iter().filter(|(knob, _)| !matches!(knob.place, KnobTarget::Socket(_)));
        let mut all = named.map(|(knob, value)| knob.setting(value)).collect::<Result<Vec<_>, Error>>()?;
        all.extend(self.sysctl.iter().map(|(path, value)| (path.clone(), value.clone())));
        Ok(all)
    }

    /// Options of every flow.
    pub(super) fn of_flows(&self) -> Result<FlowOptions, Error> {
        let mut options = FlowOptions::default();
        for (name, &value) in &self.kernel {
            if matches!(Knob::named(name)?.place, KnobTarget::Socket(_)) {
                options = options.set(name, value)?;
            }
        }
        Ok(options)
    }
}

/// Refuses times of a card or a CPU that no kernel takes; simulated hosts have the same ranges.
fn check_card(card: &HostCpuSpec) -> Result<(), Mistake> {
    let refuse = |key: &str, found: Span, allowed: &str| {
        Err(Mistake::at(format!("hosts.{key}"), format!(" is {found}: allowed is {allowed}"))
            .found(found.to_string())
            .allowed(allowed))
    };
    let nanosecond = Span::from_ns(1);
    let delay = card.interrupt_delay;
    if delay > Span::from_s(1) || !delay.is_zero() && delay < nanosecond {
        return refuse("interrupt_delay", delay, "0s, or 1ns to 1s");
    }
    if card.interrupt_packets > 0 && delay.is_zero() {
        let allowed = "0 without hosts.interrupt_delay: fewer packets would wait for ever";
        let found = card.interrupt_packets.to_string();
        return Err(Mistake::at("hosts.interrupt_packets", format!(" is {found}: allowed is {allowed}"))
            .found(found)
            .allowed(allowed));
    }
    if card.cpu_per_packet > Span::from_ms(1) {
        return refuse("cpu_per_packet", card.cpu_per_packet, "0s to 1ms");
    }
    if card.cpu_per_byte > Span::from_us(1) {
        return refuse("cpu_per_byte", card.cpu_per_byte, "0s to 1us");
    }
    Ok(())
}

/// Linux hosts have TCP only; the transport of the spec says which, and how large packets are.
fn check_transport(transport: &TransportSpec) -> Result<(), Mistake> {
    let (mss, header) = match transport {
        TransportSpec::Tcp(config) => (config.mss, config.header),
        TransportSpec::Dctcp(config) => (config.mss, config.header),
        TransportSpec::Mptcp(config) if config.subflows > MOST_SUBFLOWS => {
            let (found, allowed) = (config.subflows, format!("1 to {MOST_SUBFLOWS}, with Linux hosts"));
            return Err(Mistake::at("transport.subflows", format!(" is {found}: allowed is {allowed}"))
                .found(found.to_string())
                .allowed(allowed));
        }
        TransportSpec::Mptcp(config) => (config.mss, config.header),
        other => {
            let allowed = "tcp, dctcp or mptcp, with Linux hosts";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_every_setting_of_the_kernel() {
        let page = include_str!("../../../../docs/linux-hosts.md");
        for knob in KNOBS.iter().filter(|knob| !matches!(knob.place, KnobTarget::Multipath(_))) {
            let Knob { name, least, most, otherwise, doc, .. } = knob;
            let row = format!("| `{name}` | {least} to {most} | {otherwise} | {doc} |");
            assert!(page.contains(&row), "docs/linux-hosts.md is to have this row:\n{row}");
        }
    }
}
