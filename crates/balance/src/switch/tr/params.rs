//! The parameters of TR, with the readings of what its paper leaves open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use crate::registry::{Parameters, check_table_size, time_or_words};
use crate::{ParameterError, SwitchInfo};

/// Parameters of TR.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// A flow that has sent more than this, headers included, is long (bytes): 1 B to 1 GB. Source:
    /// 100 KB in TR, which tries 10 KB to 1 MB.
    pub long_after: Bytes,
    /// A flow without a packet for longer than this is inactive (time); `fabric`: the longest round
    /// trip of the idle fabric between the leaf's rack and another. Source: "one RTT" in TR
    /// §Counting the number of short flows, whatever the fabric, which is the second; 200 us is the
    /// round-trip propagation of the good paths in its small experiment.
    pub rtt: Rtt,
    /// For how long a leaf believes what it heard of a spine's queue; from then on the queue counts
    /// as empty (time); `rtt`: one round trip, as long as `rtt` is; `forever`: until the next
    /// report. Source: the last; in TR §Counting the number of short flows, what is kept of a spine
    /// is updated by acknowledgements, and by nothing else.
    pub believe: Believe,
    /// The buffer that the spines' codes divide into steps (bytes): the size of a spine's output
    /// queue. Source: TR; 375 KB in its large experiment, 250 packets in the small ones.
    pub spine_buffer: Bytes,
    /// Bits of the code: 1 to 16. Source: 5 in TR, those that the TTL field has to spare.
    pub code_bits: u8,
    /// On which uplinks an active short flow counts: `last`, the one of its last packet; `each`,
    /// every one that a packet of it took within `rtt`. Source: the second, by TR §Counting the
    /// number of short flows, which goes by the last packet "at the jth output queue"; the first, a
    /// guess, needs no time for each flow and uplink.
    pub counted: Counted,
    /// Part of the packet itself in the time to the next leaf: `with-packet`, its transmission on
    /// both cables; `without-packet`, nothing. Source: the second, by TR eq. 1, which has queues
    /// and propagation alone; TR §Basic insight defines it as the time at which the packet reaches
    /// the leaf, which is the first.
    pub tnl: Tnl,
    /// Whether a packet may follow its flow's last one: `always`, behind it in the same two queues;
    /// `as-others`, only if it would be later by the prediction. Source: the second; TR Alg. 1
    /// makes no exception. The first, a guess, keeps the set from being empty.
    pub last_uplink: LastUplink,
    /// By how much a packet may be predicted earlier than its flow's last one and still count as
    /// not overtaking (time); `step`: what a step of the code takes to drain at the leaf's slowest
    /// uplink. Source: none in TR Alg. 1, which compares times as they are; a step is what TR §TNL
    /// calculation rounds a spine's queue to, so two times closer than that are not told apart.
    pub slack: Gap,
    /// By how much a packet must be predicted later than its flow's last one, to count as not
    /// overtaking: by more than this (time); `step`: as of `slack`, from which it is the opposite.
    /// Source: none in TR Alg. 1, where a TNL "is larger", by however little; a report rounds a
    /// queue down by up to a step (TR §TNL calculation), in which more than three packets may
    /// overtake.
    pub margin: Gap,
    /// Whose queue an acknowledgement reports: `by-rack`, the spine's towards the rack that it came
    /// from; `by-uplink`, the spine's towards any rack. Source: TR §Counting has one entry for each
    /// output queue of a leaf, which is the second; a spine has a queue towards each leaf.
    pub spine_queue: SpineQueue,
    /// Entries of a leaf's flow table: a power of two, 1 to 16,777,216. Source: the choice of this
    /// project; TR gives no size.
    pub entries: u32,
}

time_or_words! {
    /// The pause after which a flow is inactive.
    Rtt, "a time (\"200us\") or \"fabric\"",
    {
        /// The round trip of the idle fabric.
        Fabric = "fabric",
    }
    /// So long.
    Is
}

time_or_words! {
    /// How long a report holds.
    Believe, "a time (\"200us\"), \"rtt\" or \"forever\"",
    {
        /// One round trip.
        Rtt = "rtt",
        /// Until the next one.
        Forever = "forever",
    }
    /// So long.
    For
}

time_or_words! {
    /// A difference of two times of arrival.
    Gap, "a time (\"2us\") or \"step\"",
    {
        /// A step of the code.
        Step = "step",
    }
    /// So far.
    Is
}

/// Where an active short flow counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// On the uplink of its last packet.
    Last,
    /// On each uplink that a packet of it took within a round trip.
    #[default]
    Each,
}

/// Part of the packet itself in the time to the next leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tnl {
    /// The packet's transmission on both cables.
    WithPacket,
    /// Nothing.
    #[default]
    WithoutPacket,
}

/// Whether a packet may follow its flow's last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LastUplink {
    /// Always.
    Always,
    /// If it would be later by the prediction.
    #[default]
    AsOthers,
}

/// Whose queue an acknowledgement reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpineQueue {
    /// The spine's towards the rack that it came from.
    #[default]
    ByRack,
    /// The spine's towards any rack.
    ByUplink,
}

impl Rtt {
    /// The round trip where nobody told the leaf one: the propagation of the good paths in TR's
    /// small experiment.
    const OF_THE_PAPER: Span = Span::from_us(200);

    /// At this leaf. Where there is no other rack there is nothing to choose, and every value goes.
    pub(super) fn at(self, info: &SwitchInfo<'_>) -> Span {
        match self {
            Self::Is(rtt) => rtt,
            Self::Fabric => {
                let is_other = |rack: usize| info.rack.is_none_or(|own| usize::from(own) != rack);
                let others = info.base_rtts.iter().enumerate().filter(|&(rack, _)| is_other(rack));
                let longest = others.map(|(_, &rtt)| rtt).max().filter(|rtt| !rtt.is_zero());
                longest.unwrap_or(Self::OF_THE_PAPER)
            }
        }
    }
}

impl Believe {
    /// With this round trip.
    pub(super) const fn after(self, rtt: Span) -> Span {
        match self {
            Self::Rtt => rtt,
            Self::Forever => Span::MAX,
            Self::For(time) => time,
        }
    }
}

impl Params {
    /// Beyond that, the comparison would say nothing on any fabric.
    const LONGEST_GAP: Span = Span::from_s(1);
}

impl Default for Params {
    fn default() -> Self {
        Self {
            long_after: Bytes::from_kb(100),
            rtt: Rtt::Fabric,
            believe: Believe::Forever,
            spine_buffer: Bytes::from_kb(375),
            code_bits: 5,
            counted: Counted::Each,
            tnl: Tnl::WithoutPacket,
            last_uplink: LastUplink::AsOthers,
            slack: Gap::Is(Span::ZERO),
            margin: Gap::Is(Span::ZERO),
            spine_queue: SpineQueue::ByRack,
            entries: 1 << 16,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found: String, allowed| Err(ParameterError { key, found, allowed });
        if !(1..=1_000_000_000).contains(&self.long_after.as_u64()) {
            return refuse("long_after", self.long_after.to_string(), "1B to 1GB");
        }
        if self.rtt == Rtt::Is(Span::ZERO) {
            return refuse("rtt", self.rtt.to_string(), "longer than nothing");
        }
        if self.believe == Believe::For(Span::ZERO) {
            return refuse("believe", self.believe.to_string(), "longer than nothing");
        }
        if !(1..=1 << 40).contains(&self.spine_buffer.as_u64()) {
            return refuse("spine_buffer", self.spine_buffer.to_string(), "1B to 1TB");
        }
        if !(1..=16).contains(&self.code_bits) {
            return refuse("code_bits", self.code_bits.to_string(), "1 to 16");
        }
        for (key, gap) in [("slack", self.slack), ("margin", self.margin)] {
            if let Gap::Is(gap) = gap
                && gap > Self::LONGEST_GAP
            {
                return refuse(key, gap.to_string(), "0s to 1s");
            }
        }
        check_table_size(self.entries)
    }

    fn asks_for_base_rtts(&self) -> bool {
        self.rtt == Rtt::Fabric
    }
}
