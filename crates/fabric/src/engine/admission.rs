//! Whether a queue takes a packet, and whether it marks it: the one place where that is decided.
//!
//! A queue asks with what the packet [`Found`], and gets a [`Verdict`]. Thresholds in bytes are
//! kept as the time that they take at the link's rate, so that a port with one queue compares them
//! with its drain time, and converts nothing. What few queues have (limits in packets, RED) is in
//! [`Rules`]; the credit queue has a limit of its own. Another way to admit, such as a buffer that
//! the ports of a switch share, is another variant of [`Admission`].

use weft_packet::{Packet, PacketFlags};
use weft_topology::{Limit, Marking, QueueSpec, Threshold};
use weft_units::{Bytes, Purpose, Rate, Stream};

/// Outcomes for a packet that is offered to a queue, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is queued.
    Take,
    /// It is queued, with a congestion mark if it can carry one.
    Mark,
    /// It is dropped.
    Drop,
}

/// Queue occupancy that a packet finds: all that waits, and the rest of the packet in service.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// How long that takes to send, in ps.
    pub backlog_ps: u64,
    /// How many packets that are, the one in service included.
    pub packets: u32,
    /// Packets that wait, without the one in service.
    pub waiting: u32,
}

/// Limits in bytes, as the time that they take at a rate, in ps; `u64::MAX` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thresholds {
    limit_ps: u64,
    mark_ps: u64,
}

impl Thresholds {
    /// Thresholds of a queue on a link of this rate.
    pub fn new(queue: &QueueSpec, rate: Rate) -> Self {
        let ps = |bytes: u64| rate.service(Bytes::new(bytes)).as_ps();
        Self {
            limit_ps: match queue.limit {
                Limit::AtMost(Threshold::Bytes(bytes)) => ps(bytes),
                _ => u64::MAX,
            },
            mark_ps: match queue.marking {
                Marking::Step(Threshold::Bytes(bytes)) => ps(bytes),
                _ => u64::MAX,
            },
        }
    }

    /// Verdict on a packet that takes `service_ps` to send and finds a backlog of `backlog_ps`.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub const fn judge(&self, backlog_ps: u64, service_ps: u64) -> Verdict {
        if backlog_ps + service_ps > self.limit_ps {
            Verdict::Drop
        } else if backlog_ps > self.mark_ps {
            Verdict::Mark
        } else {
            Verdict::Take
        }
    }
}

/// Rules of a queue beyond its thresholds in bytes: limits in packets, and RED.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    packet_limit: u32,
    /// With RED, the bytes below which it picks nothing, and need not be looked up; else the
    /// packets beyond which the queue marks.
    mark_from: u32,
    has_red: bool,
}

/// How likely random early detection is to pick a packet, by the backlog.
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    min_bytes: f64,
    max_bytes: f64,
    probability: f64,
}

/// Random early detection at one queue: how likely it is, and what it draws.
#[derive(Debug)]
pub struct Red {
    curve: Curve,
    stream: Stream,
}

impl Rules {
    /// Rules of a queue.
    pub fn new(queue: &QueueSpec) -> Self {
        Self {
            packet_limit: match queue.limit {
                Limit::AtMost(Threshold::Packets(packets)) => packets,
                _ => u32::MAX,
            },
            mark_from: match queue.marking {
                Marking::Step(Threshold::Packets(packets)) => packets,
                Marking::Red { min, .. } => u32::try_from(min).unwrap_or(u32::MAX),
                _ => u32::MAX,
            },
            has_red: matches!(queue.marking, Marking::Red { .. }),
        }
    }

    /// Whether they count packets.
    pub const fn count_packets(&self) -> bool {
        self.packet_limit != u32::MAX || (!self.has_red && self.mark_from != u32::MAX)
    }

    /// Whether they ask for nothing.
    pub const fn is_empty(&self) -> bool {
        !self.count_packets() && !self.has_red
    }

    /// Verdict on a packet that finds so many others, and so many bytes. `red` is the RED of the
    /// queue, if it has any.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn judge(
        &self,
        packet: &Packet,
        packets: u32,
        backlog_bytes: impl FnOnce() -> u64,
        red: Option<(&Curve, &mut Stream)>,
    ) -> Verdict {
        if packets >= self.packet_limit {
            return Verdict::Drop;
        }
        let Some((curve, stream)) = red else {
            return if packets > self.mark_from { Verdict::Mark } else { Verdict::Take };
        };
        let backlog_bytes = backlog_bytes();
        if backlog_bytes < u64::from(self.mark_from) || !curve.hits(backlog_bytes, stream) {
            return Verdict::Take;
        }
        if packet.flags.has(PacketFlags::ECT) { Verdict::Mark } else { Verdict::Drop }
    }
}

impl Curve {
    const fn new(min: u64, max: u64, probability: f64) -> Self {
        Self { min_bytes: min as f64, max_bytes: max as f64, probability }
    }

    /// Curve of a queue that marks packets as they arrive; none if it does not.
    const fn of_coming(queue: &QueueSpec) -> Option<Self> {
        match queue.marking {
            Marking::Red { min, max, probability } => Some(Self::new(min, max, probability)),
            _ => None,
        }
    }

    /// Curve of a queue that marks packets as they leave; none if it does not.
    pub const fn of_leaving(queue: &QueueSpec) -> Option<Self> {
        match queue.marking {
            Marking::Leaving { min, max, probability } => Some(Self::new(min, max, probability)),
            _ => None,
        }
    }

    /// Whether it may pick a packet that finds this backlog, or leaves it behind: with less it
    /// draws no number.
    pub fn may_hit(&self, backlog_bytes: u64) -> bool {
        backlog_bytes as f64 >= self.min_bytes
    }

    /// Whether it picks a packet that finds this backlog, or leaves it behind.
    #[inline(never)]
    pub fn hits(&self, backlog_bytes: u64, stream: &mut Stream) -> bool {
        let backlog = backlog_bytes as f64;
        if backlog < self.min_bytes {
            return false;
        }
        let share = (backlog - self.min_bytes) / (self.max_bytes - self.min_bytes);
        backlog >= self.max_bytes || stream.unit() < share * self.probability
    }
}

impl Red {
    /// RED of a queue that marks packets as they arrive, if it does. `entity` is its link's number.
    pub fn of(queue: &QueueSpec, seed: u64, entity: u64) -> Option<Box<Self>> {
        let curve = Curve::of_coming(queue)?;
        Some(Box::new(Self { curve, stream: Self::stream(seed, entity) }))
    }

    /// Random stream of RED at a queue. `entity` is the number of its link, with the number of its
    /// class in the upper half.
    pub fn stream(seed: u64, entity: u64) -> Stream {
        Stream::new(seed, Purpose::Red, entity)
    }

    /// Curve and random stream, as [`Rules::judge`] requires them.
    #[inline]
    pub const fn parts(&mut self) -> (&Curve, &mut Stream) {
        (&self.curve, &mut self.stream)
    }
}

/// How queues of ports with several admit packets: the same for all that have the same limits, at
/// the same rate.
#[derive(Debug, Clone, Copy)]
pub enum Admission {
    /// By a buffer of its own.
    Own {
        /// Limits in bytes, at the link's rate.
        thresholds: Thresholds,
        /// The others.
        rules: Rules,
        /// RED of the buffer, if it has any.
        red: Option<Curve>,
    },
    /// At most so many packets wait, and none is marked.
    Waiting(u32),
}

impl Admission {
    /// By a buffer of its own, at this rate.
    pub fn own(queue: &QueueSpec, rate: Rate) -> Self {
        let (thresholds, rules) = (Thresholds::new(queue, rate), Rules::new(queue));
        Self::Own { thresholds, rules, red: Curve::of_coming(queue) }
    }

    /// A packet that takes no longer than this to send, in ps, is taken, and not marked, where
    /// nothing is queued.
    pub const fn idle_takes_ps(&self) -> u64 {
        match self {
            // RED that begins with nothing at all may draw a number even then.
            Self::Own { rules, .. } if rules.packet_limit == 0 || rules.mark_from == 0 && rules.has_red => 0,
            Self::Own { thresholds, .. } => thresholds.limit_ps,
            Self::Waiting(0) => 0,
            Self::Waiting(_) => u64::MAX,
        }
    }

    /// Verdict on a packet that takes `service_ps` to send. `stream` is the random stream of the
    /// queue's RED, if it has any.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    pub fn judge<'s>(
        &self,
        packet: &Packet,
        service_ps: u64,
        found: Found,
        backlog_bytes: impl FnOnce() -> u64,
        stream: impl FnOnce() -> Option<&'s mut Stream>,
    ) -> Verdict {
        match self {
            Self::Own { thresholds, rules, red } => match thresholds.judge(found.backlog_ps, service_ps) {
                Verdict::Drop => Verdict::Drop,
                by_bytes => {
                    let red = red.as_ref().and_then(|curve| Some((curve, stream()?)));
                    by_bytes.max(rules.judge(packet, found.packets, backlog_bytes, red))
                }
            },
            Self::Waiting(most) if found.waiting < *most => Verdict::Take,
            Self::Waiting(_) => Verdict::Drop,
        }
    }
}
