//! Lines that the agent of a kernel receives. The agent (`linux-hosts/agent/`) is its first
//! process; the first comment of its `main.c` lists the same lines.

use std::fmt;
use std::net::Ipv4Addr;

use crate::error::Error;
use crate::knobs::FlowOptions;
use crate::program::Program;
use crate::wire::MAX_TEXT;

/// Words of a program, at most; as many as the agent takes.
const MAX_WORDS: usize = 512;

/// Protocol that carries a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// Multipath TCP, RFC 8684.
    Mptcp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
        })
    }
}

/// A host to be made: one network namespace with one card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAddress {
    /// Address of the host.
    pub address: Ipv4Addr,
    /// How many bits of it all hosts that it can reach have in common; 1 to 32.
    pub prefix_bits: u8,
}

/// A port at which flows may arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The host.
    pub host: usize,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// The congestion control of the receiving end, as the kernel names it; it decides how ECN is
    /// echoed.
    pub control: String,
}

/// A flow to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Any number; reports carry it.
    pub id: u64,
    /// The sending host.
    pub host: usize,
    /// The receiver's address.
    pub to: Ipv4Addr,
    /// The receiver's port.
    pub port: u16,
    /// How many bytes.
    pub bytes: u64,
    /// The protocol.
    pub protocol: Protocol,
    /// The congestion control, as the kernel names it.
    pub control: String,
}

/// A line to the agent.
///
/// # Errors
/// A word that has a space or the end of a line in it, or is empty or long.
fn word(text: &str) -> Result<&str, Error> {
    let fits = !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_graphic());
    if fits { Ok(text) } else { Err(Error::Untellable { what: text.to_owned() }) }
}

pub(crate) fn host_line(number: usize, host: &HostAddress) -> Result<String, Error> {
    if !(1..=32).contains(&host.prefix_bits) {
        return Err(Error::Untellable { what: format!("{}/{}", host.address, host.prefix_bits) });
    }
    Ok(format!("host {number} {}/{}", host.address, host.prefix_bits))
}

/// Line that sets a value for a kernel's host: a file below `/proc/sys`, or `route/ATTRIBUTE`,
/// `mptcp/subflows`; `module/...` reaches the kernel before there are hosts.
pub(crate) fn set_line(number: usize, path: &str, value: &str) -> Result<String, Error> {
    let relative = !path.split('/').any(|part| part == ".." || part.is_empty());
    if !relative
        || value.len() > 128
        || !value.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        || value.is_empty()
    {
        return Err(Error::Untellable { what: format!("{path} = {value}") });
    }
    if let Some(attribute) = path.strip_prefix("route/") {
        return Ok(format!("route {number} {} {value}", word(attribute)?));
    }
    if path == "mptcp/subflows" {
        return Ok(format!("mptcp {number} {value}"));
    }
    Ok(format!("set {number} {} {value}", word(path)?))
}

/// `MODULE.NAME=VALUE` for the kernel's command line, if a setting is of that kind.
pub(crate) fn parameter(path: &str, value: &str) -> Option<Result<String, Error>> {
    let (module, name) = path.strip_prefix("module/")?.split_once('/')?;
    let parameter = || Ok(format!("{}.{}={}", word(module)?, word(name)?, word(value)?));
    Some(parameter())
}

/// The agent's line for a program: words, then parts that end with a zero.
pub(crate) fn program_line(program: &Program) -> Result<String, Error> {
    let Program { id, host, words, directory, output_limit_bytes } = program;
    let parts = [directory].into_iter().chain(words);
    let untellable = |what: &str| Err(Error::Untellable { what: what.to_owned() });
    let mut line = format!("program {id} {host} {output_limit_bytes} ");
    for part in parts {
        if part.contains('\0') {
            return untellable(part);
        }
        line.push_str(part);
        line.push('\0');
    }
    if words.is_empty() || words.len() > MAX_WORDS || !directory.starts_with('/') {
        return untellable(&format!("{words:?} in {directory:?}"));
    }
    if line.len() > MAX_TEXT { untellable(&line) } else { Ok(line) }
}

pub(crate) fn signal_line(program: u64, signal: u8) -> String {
    format!("signal {program} {signal}")
}

pub(crate) fn listen_line(listener: &Listener) -> Result<String, Error> {
    let Listener { host, port, protocol, control } = listener;
    Ok(format!("listen {host} {port} {protocol} {}", word(control)?))
}

pub(crate) fn flow_line(flow: &Flow, options: &FlowOptions) -> Result<String, Error> {
    let Flow { id, host, to, port, bytes, protocol, control } = flow;
    let tail = options.tail();
    Ok(format!("flow {id} {host} {to} {port} {bytes} {protocol} {}{tail}", word(control)?))
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
