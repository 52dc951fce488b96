//! Reports of the agent of a kernel, line by line. The lines are listed in the first comment of
//! `linux-hosts/agent/main.c`; whatever a kernel says instead is told as it is.

use std::fmt;
use std::net::Ipv4Addr;

use weft_units::Time;

use crate::clock::from_ns;
use crate::error::Fault;

/// Report of the agent. Instants are those of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// All hosts are there.
    Ready,
    /// A flow has begun.
    Started {
        /// The flow.
        id: u64,
        /// Port of the flow.
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
        /// Counters of the kernel; `None` for MPTCP, which counts by [`Report::Subflow`].
        info: Option<Box<TcpInfo>>,
    },
    /// The receiver's end of a flow is done.
    Received(Received),
    /// How many ways an MPTCP flow had; comes before [`Report::Closed`].
    Multipath {
        /// The flow.
        id: u64,
        /// How many subflows it had at its end.
        subflows: u32,
        /// Whether it was an ordinary TCP connection after all.
        fell_back: bool,
    },
    /// Counters of the kernel for a subflow of an MPTCP flow; comes before [`Report::Closed`].
    Subflow(Connection),
    /// Counters of the kernel for a connection at the time of a sample
    /// ([`FlowOptions`](crate::FlowOptions)).
    Sample(Connection),
    /// Output of a program.
    Output {
        /// The program.
        program: u64,
        /// Where to.
        stream: Stream,
        /// At most some thousand bytes; a line may come in parts.
        bytes: Vec<u8>,
    },
    /// A program has ended, or could not be started; nothing more comes of it.
    Ended {
        /// The program.
        program: u64,
        /// How.
        status: Status,
        /// Bytes of its output beyond what was to be kept.
        left_out_bytes: u64,
    },
    /// A flow ended without success.
    Failed {
        /// The flow.
        id: u64,
        /// Action that failed, with the kernel's message.
        what: String,
    },
    /// Nothing goes on from here.
    Error(String),
}

/// Statistics of the receiver's end of a flow.
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

/// Counters of the kernel for one TCP connection of a flow: the flow itself, or a subflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The flow.
    pub id: u64,
    /// The connection's own port.
    pub port: u16,
    /// The receiver's port.
    pub to_port: u16,
    /// The counts.
    pub info: Box<TcpInfo>,
}

/// Where a program writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Status {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Killed(u8),
    /// It never began: what is wrong, and what the kernel says.
    NotStarted(String),
}

impl Status {
    /// Whether it did what it was to do: it exited with 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with {code}"),
            Self::Killed(signal) => write!(f, "was ended by signal {signal}"),
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
        }
    }
}

macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident: $name:literal,)*) => {
        /// Counters of the sender's kernel for one TCP connection (`tcp_info`), at its end or at a
        /// sample.
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
    /// How much it varies, in us.
    rtt_var_us: "rtt_var_us",
    /// The least round-trip time in us.
    rtt_min_us: "rtt_min_us",
    /// Retransmission timeout in us.
    rto_us: "rto_us",
    /// How often the timeout has doubled and not come back.
    backoff: "backoff",
    /// Congestion window in segments.
    cwnd: "cwnd",
    /// Slow-start threshold in segments.
    ssthresh: "ssthresh",
    /// Largest segment in bytes.
    mss: "mss",
    /// Segments delivered.
    delivered: "delivered",
    /// Segments delivered with a congestion mark.
    delivered_ce: "delivered_ce",
    /// Duplicates that the receiver told of (DSACK).
    dsack_dups: "dsack_dups",
    /// Segments by which a segment may be late and is not taken for lost.
    reordering: "reordering",
    /// Times that segments were seen out of order.
    reord_seen: "reord_seen",
    /// Segments sent and not acknowledged.
    unacked: "unacked",
    /// Segments in flight that are acknowledged selectively.
    sacked: "sacked",
    /// 0 open, 1 disorder, 2 window reduced after a mark, 3 recovery, 4 loss.
    state: "state",
    /// Bytes of payload sent, with those sent again.
    bytes_sent: "bytes_sent",
    /// Bytes acknowledged; the SYN and the FIN count as one each.
    bytes_acked: "bytes_acked",
    /// Bytes sent again.
    bytes_retransmitted: "bytes_retransmitted",
    /// Bytes that wait to be sent.
    not_sent_bytes: "not_sent_bytes",
    /// The receiver's window in bytes.
    peer_window_bytes: "peer_window_bytes",
    /// The rate of pacing in bytes a second.
    pacing_rate: "pacing_rate",
    /// The rate last seen at the receiver, in bytes a second.
    delivery_rate: "delivery_rate",
    /// Time in us in which the receiver's window was the limit.
    window_limited_us: "window_limited_us",
    /// Time in us in which the sender's buffer was the limit.
    buffer_limited_us: "buffer_limited_us",
    /// Time in us in which there was something to send.
    busy_us: "busy_us",
    /// Bits of what was agreed: 1 time stamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen.
    options: "options",
}

/// Reads a line of the agent, which may be anything.
///
/// # Errors
/// It is no report.
pub(crate) fn parse_report(line: &[u8]) -> Result<Report, Fault> {
    if let Some(output) = line.strip_prefix(b"output ").and_then(parse_output) {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(line);
    parse_words(&text).ok_or_else(|| Fault::Line(text.chars().take(200).collect()))
}

/// Parses the output of a program, which is bytes, not text.
fn parse_output(line: &[u8]) -> Option<Report> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let program = str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    let stream = match parts.next()? {
        b"1" => Stream::Output,
        b"2" => Stream::Errors,
        _ => return None,
    };
    Some(Report::Output { program, stream, bytes: parts.next()?.to_vec() })
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
        "unstarted" => {
            let (program, what) = rest.split_once(' ')?;
            let status = Status::NotStarted(what.to_owned());
            return Some(Report::Ended { program: program.parse().ok()?, status, left_out_bytes: 0 });
        }
        "exited" => {
            let (program, status) = (number(next())?, Status::Exited(number(next())?));
            Report::Ended { program, status, left_out_bytes: number(next())? }
        }
        "killed" => {
            let (program, status) = (number(next())?, Status::Killed(number(next())?));
            Report::Ended { program, status, left_out_bytes: number(next())? }
        }
        "mptcp" => Report::Multipath {
            id: number(next())?,
            subflows: number(next())?,
            fell_back: number::<u8>(next())? != 0,
        },
        "subflow" => return parse_connection(words).map(Report::Subflow),
        "sample" => return parse_connection(words).map(Report::Sample),
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

fn parse_connection<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Connection> {
    let (id, port, to_port) = (number(words.next())?, number(words.next())?, number(words.next())?);
    Some(Connection { id, port, to_port, info: parse_info(words)?? })
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
#[path = "report_tests.rs"]
mod tests;
