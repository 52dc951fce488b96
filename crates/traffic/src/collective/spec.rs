//! The tables `[[traffic.collective]]` of a spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Rate, Span};

use crate::{ClassName, HostRange};

/// Which hosts become which ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// In the order of their numbers: neighbours on the ring are in one rack as far as can be.
    #[default]
    InOrder,
    /// Drawn from the seed, by a stream of its own.
    Random,
}

/// How an all-reduce goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AllReduceAlgorithm {
    /// 2 (N - 1) steps around a ring, each with an N-th of the bytes.
    #[default]
    Ring,
    /// Up a binary tree and down again.
    Tree,
    /// Up and down two trees, each with half of the bytes: what is a leaf in one is inside the
    /// other.
    DoubleTree,
    /// Recursive halving, then doubling: 2 log2 N steps. The number of ranks is a power of two.
    HalvingDoubling,
}

/// How an all-gather or a reduce-scatter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GatherAlgorithm {
    /// N - 1 steps around a ring, each with an N-th of the bytes.
    #[default]
    Ring,
    /// An all-gather doubles what each has in every step, a reduce-scatter halves it: log2 N steps.
    /// The number of ranks is a power of two.
    HalvingDoubling,
}

/// In what order a stage computes its microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum PipelineSchedule {
    /// All forward, then all backward.
    #[serde(rename = "gpipe")]
    Gpipe,
    /// One forward, one backward, as soon as the first microbatch comes back.
    #[default]
    #[serde(rename = "1f1b")]
    OneForwardOneBackward,
}

impl PipelineSchedule {
    /// As specs and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpipe => "gpipe",
            Self::OneForwardOneBackward => "1f1b",
        }
    }
}

const fn one() -> u32 {
    1
}

const fn two() -> u32 {
    2
}

const fn token() -> Bytes {
    Bytes::new(8_192)
}

/// Declares the table of one kind: its own keys, and after them those that all have.
macro_rules! kind {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            /// Label of the collective in results. Default: by its place, as in `collective[0]`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub label: Option<String>,
            /// The hosts that take part, as in `[0, "8-15"]`. Default: all.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub hosts: Option<Vec<HostRange>>,
            /// How many of them take part, at least 2: the first ones, or as many as are drawn.
            /// Default: all of them.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub count: Option<u16>,
            /// Which host becomes which rank. Default `"in-order"`.
            #[serde(default)]
            pub placement: Placement,
            /// When every rank may begin. Default 0.
            #[serde(default)]
            pub start: Span,
            /// How often the same comes one after the other, at least 1. A rank begins again when
            /// it has all that it is to have and all that it sent is acknowledged. Default 1.
            #[serde(default = "one")]
            pub iterations: u32,
            /// Compute time of every rank before it begins, each time. Default 0.
            #[serde(default)]
            pub compute: Span,
            /// The class of the flows. Default: by size, if `traffic.classes.short_below` is given,
            /// else `unknown`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub class: Option<ClassName>,
            /// The label of the transport that carries the flows. Default: as
            /// `traffic.classes.transport` says for their class.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub transport: Option<String>,
        }

        impl $name {
            fn common(&self) -> Common<'_> {
                Common {
                    label: self.label.as_deref(),
                    hosts: self.hosts.as_deref(),
                    count: self.count,
                    placement: self.placement,
                    start: self.start,
                    iterations: self.iterations,
                    compute: self.compute,
                    class: self.class,
                    transport: self.transport.as_deref(),
                }
            }
        }
    };
}

/// The keys that all kinds have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common<'s> {
    pub label: Option<&'s str>,
    pub hosts: Option<&'s [HostRange]>,
    pub count: Option<u16>,
    pub placement: Placement,
    pub start: Span,
    pub iterations: u32,
    pub compute: Span,
    pub class: Option<ClassName>,
    pub transport: Option<&'s str>,
}

kind! {
    /// Every rank gets the sum of what all have.
    AllReduceSpec {
        /// Payload at every rank, as NCCL counts it: at least a byte for every rank and chunk.
        size: Bytes,
        /// How it goes. Default `"ring"`.
        #[serde(default)]
        algorithm: AllReduceAlgorithm,
        /// Pieces that each message is cut into; each goes on by itself as soon as it has come. 1
        /// to 1024, default 1.
        #[serde(default = "one")]
        chunks: u32,
        /// How much payload a host adds up in a second. Default: it takes no time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reduction_rate: Option<Rate>,
    }
}

kind! {
    /// Every rank gets what all have.
    AllGatherSpec {
        /// Payload at every rank in the end, as NCCL counts it: at least a byte for every rank and
        /// chunk.
        size: Bytes,
        /// How it goes. Default `"ring"`.
        #[serde(default)]
        algorithm: GatherAlgorithm,
        /// Pieces that each message is cut into; each goes on by itself as soon as it has come. 1
        /// to 1024, default 1.
        #[serde(default = "one")]
        chunks: u32,
    }
}

kind! {
    /// Every rank gets its part of the sum of what all have.
    ReduceScatterSpec {
        /// Payload at every rank in the beginning, as NCCL counts it: at least a byte for every
        /// rank and chunk.
        size: Bytes,
        /// How it goes. Default `"ring"`.
        #[serde(default)]
        algorithm: GatherAlgorithm,
        /// Pieces that each message is cut into; each goes on by itself as soon as it has come. 1
        /// to 1024, default 1.
        #[serde(default = "one")]
        chunks: u32,
        /// How much payload a host adds up in a second. Default: it takes no time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reduction_rate: Option<Rate>,
    }
}

kind! {
    /// Every rank has something for each other one.
    AllToAllSpec {
        /// Payload at every rank, its own part included, as NCCL counts it: at least a byte for
        /// every rank.
        size: Bytes,
        /// How many ranks each sends to at a time, at least 1: the next one waits until the one so
        /// many before is acknowledged. Default: all at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parallel: Option<u32>,
    }
}

kind! {
    /// A layer with a mixture of experts: the tokens of every rank go to the ranks of their
    /// experts, and come back.
    MoeSpec {
        /// The tokens of every rank, in payload bytes: at least one `token`.
        size: Bytes,
        /// A token. Default 8192 B: 4,096 numbers of 16 bits.
        #[serde(default = "token")]
        token: Bytes,
        /// How many experts there are; expert e is at rank e modulo the number of ranks. Default:
        /// one a rank.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        experts: Option<u32>,
        /// How many experts a token goes to, at least 1. Default 2.
        #[serde(default = "two")]
        top_k: u32,
        /// How uneven experts are: the n-th most popular is chosen in proportion to n to the power
        /// of minus this (Zipf), 0 to 10. Which is the n-th is drawn anew each time. Default 0,
        /// even.
        #[serde(default)]
        skew: f64,
        /// Compute time of the experts of a rank for a token, one after the other. Default 0.
        #[serde(default)]
        expert_compute: Span,
        /// How many ranks each sends to at a time, at least 1. Default: all at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parallel: Option<u32>,
    }
}

kind! {
    /// Microbatches pass through stages, and their gradients back. Ranks are cut into as many
    /// stages of equal width; rank i of a stage sends to rank i of the next one.
    PipelineSpec {
        /// Bytes that a rank sends to the next stage for a microbatch, and gets back.
        size: Bytes,
        /// How many stages there are, at least 2; the number of ranks is a multiple of it. Default:
        /// as many as ranks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stages: Option<u32>,
        /// How many microbatches there are, at least 1.
        microbatches: u32,
        /// Compute time of a stage for a microbatch on its way forward. Default 0.
        #[serde(default)]
        forward: Span,
        /// And on its way back. Default 0.
        #[serde(default)]
        backward: Span,
        /// In what order a stage computes. Default `"1f1b"`.
        #[serde(default)]
        schedule: PipelineSchedule,
    }
}

/// Flows that wait for each other: what a library of collectives sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CollectiveSpec {
    /// Every rank gets the sum of what all have.
    AllReduce(AllReduceSpec),
    /// Every rank gets what all have.
    AllGather(AllGatherSpec),
    /// Every rank gets its part of the sum of what all have.
    ReduceScatter(ReduceScatterSpec),
    /// Every rank has something for each other one.
    AllToAll(AllToAllSpec),
    /// Tokens go to experts and come back.
    Moe(MoeSpec),
    /// Microbatches pass through stages, and their gradients back.
    Pipeline(PipelineSpec),
}

impl CollectiveSpec {
    /// The keys that all kinds have.
    pub(crate) fn common(&self) -> Common<'_> {
        match self {
            Self::AllReduce(spec) => spec.common(),
            Self::AllGather(spec) => spec.common(),
            Self::ReduceScatter(spec) => spec.common(),
            Self::AllToAll(spec) => spec.common(),
            Self::Moe(spec) => spec.common(),
            Self::Pipeline(spec) => spec.common(),
        }
    }
}
