//! The lines that Weft and the agent exchange. The agent (`linux-hosts/agent.c`) is the only process of a kernel; its
//! first comment lists the same lines.

use std::fmt;
use std::net::Ipv4Addr;

use weft_units::Time;

use crate::clock::from_ns;
use crate::error::{Error, Fault};

/// What carries a flow.
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
    /// Its address.
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
    /// The congestion control of the receiving end, as the kernel names it; it decides how ECN is echoed.
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

/// What the agent reports. Instants are those of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// All hosts are there.
    Ready,
    /// A flow has begun.
    Started {
        /// The flow.
        id: u64,
        /// Its own port.
        port: u16,
        /// When.
        at: Time,
    },
    /// The sender's end of a flow is done: the receiver has everything and said so.
    Closed {
        /// The flow.
        id: u64,
        /// When the connection was there.
        connected: Time,
        /// When the receiver's end of the connection was known to be closed.
        closed: Time,
        /// What the kernel counted; `None` for MPTCP, which counts by subflow.
        info: Option<Box<TcpInfo>>,
    },
    /// The receiver's end of a flow is done.
    Received(Received),
    /// A flow ended without success.
    Failed {
        /// The flow.
        id: u64,
        /// What failed, and what the kernel says.
        what: String,
    },
    /// Nothing goes on from here.
    Error(String),
}

/// What the receiver's end of a flow saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The receiving host.
    pub host: usize,
    /// The receiving port.
    pub port: u16,
    /// The sender's address.
    pub from: Ipv4Addr,
    /// The sender's port.
    pub from_port: u16,
    /// How many bytes came.
    pub bytes: u64,
    /// When the application read the first of them.
    pub first: Time,
    /// When it read the last of them.
    pub last: Time,
}

macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident: $name:literal,)*) => {
        /// What the sender's kernel counted for one TCP flow (`tcp_info`, at its end).
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct TcpInfo {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl TcpInfo {
            fn field(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

tcp_info! {
    /// Segments sent again.
    retransmits: "retransmits",
    /// Segments taken for lost at the end.
    lost: "lost",
    /// Segments sent.
    segments_out: "segments_out",
    /// Segments received.
    segments_in: "segments_in",
    /// Smoothed round-trip time in us.
    rtt_us: "rtt_us",
    /// The least round-trip time in us.
    rtt_min_us: "rtt_min_us",
    /// Retransmission timeout in us.
    rto_us: "rto_us",
    /// Congestion window in segments.
    cwnd: "cwnd",
    /// Slow-start threshold in segments.
    ssthresh: "ssthresh",
    /// Largest segment in bytes.
    mss: "mss",
    /// Segments delivered.
    delivered: "delivered",
    /// Of these, with a mark of congestion.
    delivered_ce: "delivered_ce",
    /// Duplicates that the receiver told of.
    dsack_dups: "dsack_dups",
    /// Times that segments were seen out of order.
    reord_seen: "reord_seen",
    /// Time in us in which there was something to send.
    busy_us: "busy_us",
    /// Bits of what was agreed: 1 time stamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen.
    options: "options",
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

pub(crate) fn set_line(number: usize, path: &str, value: &str) -> Result<String, Error> {
    let relative = !path.split('/').any(|part| part == ".." || part.is_empty());
    if !relative
        || value.len() > 128
        || !value.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        || value.is_empty()
    {
        return Err(Error::Untellable { what: format!("{path} = {value}") });
    }
    Ok(format!("set {number} {} {value}", word(path)?))
}

pub(crate) fn listen_line(listener: &Listener) -> Result<String, Error> {
    let Listener { host, port, protocol, control } = listener;
    Ok(format!("listen {host} {port} {protocol} {}", word(control)?))
}

pub(crate) fn flow_line(flow: &Flow) -> Result<String, Error> {
    let Flow { id, host, to, port, bytes, protocol, control } = flow;
    Ok(format!("flow {id} {host} {to} {port} {bytes} {protocol} {}", word(control)?))
}

/// Reads a line of the agent, which may be anything.
///
/// # Errors
/// It is no report.
pub(crate) fn parse_report(line: &[u8]) -> Result<Report, Fault> {
    let text = String::from_utf8_lossy(line);
    parse_words(&text).ok_or_else(|| Fault::Line(text.chars().take(200).collect()))
}

fn parse_words(text: &str) -> Option<Report> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut words = rest.split(' ');
    let mut next = || words.next();
    let report = match kind {
        "ready" => return rest.is_empty().then_some(Report::Ready),
        "error" => return Some(Report::Error(rest.to_owned())),
        "failed" => {
            let (id, what) = rest.split_once(' ')?;
            return Some(Report::Failed { id: id.parse().ok()?, what: what.to_owned() });
        }
        "started" => Report::Started { id: number(next())?, port: number(next())?, at: instant(next())? },
        "closed" => {
            let (id, connected, closed) = (number(next())?, instant(next())?, instant(next())?);
            let info = parse_info(words)?;
            return Some(Report::Closed { id, connected, closed, info });
        }
        "received" => Report::Received(Received {
            host: number(next())?,
            port: number(next())?,
            from: number(next())?,
            from_port: number(next())?,
            bytes: number(next())?,
            first: instant(next())?,
            last: instant(next())?,
        }),
        _ => return None,
    };
    words.next().is_none().then_some(report)
}

fn number<T: std::str::FromStr>(word: Option<&str>) -> Option<T> {
    word?.parse().ok()
}

fn instant(word: Option<&str>) -> Option<Time> {
    from_ns(number(word)?)
}

/// `None`: not the words of a block of counts; `Some(None)`: there are none.
#[allow(clippy::option_option)]
fn parse_info<'a>(words: impl Iterator<Item = &'a str>) -> Option<Option<Box<TcpInfo>>> {
    let mut info = None;
    for word in words {
        let (name, value) = word.split_once('=')?;
        *info.get_or_insert_with(Box::<TcpInfo>::default).field(name)? = value.parse().ok()?;
    }
    Some(info)
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
