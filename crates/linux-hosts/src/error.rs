//! Errors of a kernel. Each is one message; after any of them the kernel is gone, and so are its
//! processes.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use weft_units::Time;

/// Why a kernel could not be started, or did not go on.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no kernel to start.
    #[error(
        "the kernel of the Linux hosts is not built: `make linux-hosts` builds it once into {cache}; or name one in WEFT_LINUX_HOSTS"
    )]
    NotBuilt {
        /// Where it was looked for.
        cache: PathBuf,
    },
    /// The kernel's file could not be started.
    #[error("{image} does not start: {source}")]
    DoesNotStart {
        /// The file.
        image: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The kernel's log could not be made.
    #[error("no log of the Linux hosts can be kept in {path}: {source}")]
    Log {
        /// The file, or the directory for files that have no name.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A kernel has 1 to 256 hosts.
    #[error("{found} Linux hosts in one kernel; allowed are 1 to 256")]
    Hosts {
        /// How many were asked for.
        found: usize,
    },
    /// A card cannot be like that.
    #[error("{what} of a Linux host's card is {found}; allowed: {allowed}")]
    Card {
        /// The field, with its unit.
        what: &'static str,
        /// Value that was found.
        found: u64,
        /// Values that are allowed.
        allowed: &'static str,
    },
    /// Nothing of that name can be set.
    #[error("no setting of Linux hosts has the name {name}")]
    NoSuchKnob {
        /// The name.
        name: String,
    },
    /// A setting out of its range.
    #[error("{name} of a Linux host is {found}; allowed: {least} to {most}")]
    Knob {
        /// The setting, with its unit.
        name: &'static str,
        /// Value that was found.
        found: u64,
        /// The least that is allowed.
        least: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// Parameters of the kernel that its hosts do not agree on.
    #[error("the hosts of one kernel have both {one} and {other}; they must agree")]
    Disagree {
        /// Parameter of one host.
        one: String,
        /// Parameter of another host.
        other: String,
    },
    /// A program's number that another has.
    #[error("two programs of Linux hosts have the number {id}")]
    ProgramTwice {
        /// The number.
        id: u64,
    },
    /// A text for the agent that is too long, or has a character that ends a line or a word.
    #[error("{what:?} cannot be told to the Linux hosts")]
    Untellable {
        /// The text.
        what: String,
    },
    /// A packet for a host that is not there, one too long for its card, or one that comes after
    /// its time.
    #[error("a packet of {bytes} bytes for Linux host {host} at {} us cannot be delivered: {why}", at.as_us())]
    Undeliverable {
        /// The host that it is for.
        host: usize,
        /// How long it is.
        bytes: usize,
        /// When it was to arrive.
        at: Time,
        /// Reason why the packet is rejected.
        why: &'static str,
    },
    /// The kernel ended by itself: it panicked, or somebody killed it.
    #[error("the kernel of the Linux hosts ended at {} us ({status}){log}", at.as_us())]
    Ended {
        /// The run's time.
        at: Time,
        /// Exit status of the process.
        status: String,
        /// The end of its log, and where the rest is.
        log: LogEnd,
    },
    /// The kernel did not answer.
    #[error("the kernel of the Linux hosts did not answer within {seconds} s at {} us{log}", at.as_us())]
    Hangs {
        /// The run's time.
        at: Time,
        /// How long Weft waited, in seconds of the wall clock.
        seconds: u64,
        /// The end of its log, and where the rest is.
        log: LogEnd,
    },
    /// The kernel said something that no sound kernel says.
    #[error("the kernel of the Linux hosts is broken at {} us: {fault}{log}", at.as_us())]
    Broken {
        /// The run's time.
        at: Time,
        /// Fault in the kernel's messages.
        fault: Fault,
        /// The end of its log, and where the rest is.
        log: LogEnd,
    },
    /// A command could not be done inside.
    #[error("a Linux host could not do what it was told at {} us: {what}", at.as_us())]
    Agent {
        /// The run's time.
        at: Time,
        /// Action that failed, with the kernel's message.
        what: String,
    },
    /// The socket to the kernel could not be made or used.
    #[error("no link to the kernel of the Linux hosts: {0}")]
    Link(io::Error),
    /// The kernel is gone after an earlier error.
    #[error("the kernel of the Linux hosts is gone after an earlier error")]
    Gone,
}

/// Fault in the messages of a broken kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// A kind of message that there is not.
    #[error("a message of kind {0}")]
    MessageKind(u32),
    /// A message that comes at the wrong time.
    #[error("a message that was not its turn")]
    MessageOrder,
    /// More bytes than a message may have.
    #[error("a message of {0} bytes")]
    MessageLength(usize),
    /// More bytes in one step than any sound kernel sends.
    #[error("more than {0} bytes in one step")]
    StepLength(usize),
    /// Another version of the link.
    #[error("it speaks version {0} of the link")]
    Version(u64),
    /// A kind of record that there is not.
    #[error("a record of kind {0}")]
    RecordKind(u16),
    /// A record longer than its kind may be.
    #[error("a record of {0} bytes")]
    RecordLength(usize),
    /// A record that goes on after its message.
    #[error("a record that is cut off")]
    RecordCutOff,
    /// A packet from a card that there is not.
    #[error("a packet from card {0}")]
    NoSuchCard(usize),
    /// A packet longer than the card's MTU.
    #[error("a packet of {bytes} bytes from card {card}")]
    PacketLength {
        /// The card.
        card: usize,
        /// Length of the packet.
        bytes: usize,
    },
    /// A packet before the one that the card sent last was over, or outside of time.
    #[error("a packet from card {card} at {begins_ps} ps, when it could not send")]
    PacketTime {
        /// The card.
        card: usize,
        /// When it was to begin.
        begins_ps: u64,
    },
    /// Time that goes backwards.
    #[error("it waits for {next_ns} ns and has run until {until_ns} ns")]
    Time {
        /// Time of the kernel's next event.
        next_ns: u64,
        /// Time until which the kernel was to run.
        until_ns: u64,
    },
    /// A line of the agent that has no meaning.
    #[error("its agent says {0:?}")]
    Line(String),
    /// Output of a program that there is not, or more than is to be kept.
    #[error("output of program {0} that was not asked for")]
    Output(u64),
    /// It was not ready when the run was to begin.
    #[error("its hosts were not ready when the run was to begin")]
    NotReady,
}

/// The last lines of a kernel's log, and its file if it has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// The last lines.
    pub lines: String,
    /// Where all of it is, if it was to be kept.
    pub path: Option<PathBuf>,
}

impl std::fmt::Display for LogEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "; its log is {}", path.display())?;
        }
        if !self.lines.is_empty() {
            write!(f, "; the log ends with\n{}", self.lines)?;
        }
        Ok(())
    }
}
