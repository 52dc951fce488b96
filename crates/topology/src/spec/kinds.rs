//! The kinds of fabrics: each with its own keys, and all with the same common ones.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Rate, Span};

use super::fault::FaultTable;
use super::queue::QueueTable;
use super::shared_buffer::{PauseTable, SharedBufferTable};
use super::software::SoftwareSwitchTable;

/// The common keys of every kind.
pub(crate) struct Common<'a> {
    pub stack_delay: Span,
    pub switch_delay: Span,
    pub overhead: Bytes,
    pub switch_queue: &'a QueueTable,
    pub host_queue: &'a QueueTable,
    pub shared_buffer: Option<&'a SharedBufferTable>,
    pub pause: Option<&'a PauseTable>,
    pub software_switch: Option<&'a SoftwareSwitchTable>,
    pub reroute_after: Span,
    pub fault: &'a [FaultTable],
}

/// Declares one kind: its own keys, and after them the common ones.
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
            /// Time that a packet takes through the network stack of a host, each way; part of the
            /// delay of its link. Default: none.
            #[serde(default)]
            pub stack_delay: Span,
            /// Time that a switch takes to forward a packet; part of the delay of every link into a
            /// switch. Default: none.
            #[serde(default)]
            pub switch_delay: Span,
            /// Bytes that every packet takes on the wire beyond its own. Default: 0B. Source: the
            /// papers' simulators; IEEE 802.3 has 20B for preamble and inter-frame gap.
            #[serde(default)]
            pub overhead: Bytes,
            /// The output queue of every switch port. Default: 375KB, marking above 97500B.
            #[serde(default = "switch_queue")]
            pub switch_queue: QueueTable,
            /// The output queue of every host. Default: unlimited, marking above 97500B.
            #[serde(default = "host_queue")]
            pub host_queue: QueueTable,
            /// The memory that the ports of each switch share. Default: absent, each port has a
            /// `buffer` of its own; present where a class is lossless.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub shared_buffer: Option<SharedBufferTable>,
            /// Priority flow control before classes that are lossless. Default: absent; present
            /// where a class is lossless.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub pause: Option<PauseTable>,
            /// Switches that are programs, with one process that forwards for all ports. Default:
            /// absent, a switch forwards whatever comes.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub software_switch: Option<SoftwareSwitchTable>,
            /// Time from a link's going down, coming back or changing its rate until all switches
            /// route by it; its own switch knows at once whether it is up. Default: 10ms. Source:
            /// three of the 3.3 ms intervals at which hardware sends BFD packets (RFC 5880).
            #[serde(default = "ten_ms")]
            pub reroute_after: Span,
            /// Links that are degraded from the start, or for some time. Default: none.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub fault: Vec<FaultTable>,
        }

        impl $name {
            pub(crate) fn common(&self) -> Common<'_> {
                Common {
                    stack_delay: self.stack_delay,
                    switch_delay: self.switch_delay,
                    overhead: self.overhead,
                    switch_queue: &self.switch_queue,
                    host_queue: &self.host_queue,
                    shared_buffer: self.shared_buffer.as_ref(),
                    pause: self.pause.as_ref(),
                    software_switch: self.software_switch.as_ref(),
                    reroute_after: self.reroute_after,
                    fault: &self.fault,
                }
            }

            /// Writes out the defaults of the queues.
            pub(crate) fn resolve_queues(&mut self) {
                let common = self.common();
                let (memory, pause) = (common.resolved_shared_buffer(), common.resolved_pause());
                let switch_queue = self.switch_queue.resolved(&common.switch_default());
                self.host_queue = self.host_queue.resolved(&QueueTable::HOST);
                (self.switch_queue, self.shared_buffer, self.pause) = (switch_queue, memory, pause);
            }
        }
    };
}

kind! {
    /// Two layers: every leaf has a cable, or several, to every spine.
    LeafSpineSpec {
        /// Number of leaves, and so of racks. Default: 8.
        #[serde(default = "eight")]
        leaves: u32,
        /// Number of spines. Default: 8.
        #[serde(default = "eight")]
        spines: u32,
        /// Hosts at each leaf. Default: 16.
        #[serde(default = "sixteen")]
        hosts_per_leaf: u32,
        /// Parallel cables between each leaf and each spine. Default: 1.
        #[serde(default = "one")]
        links_per_pair: u32,
        /// Rate of the cable of a host. Default: 10Gbps.
        #[serde(default = "ten_gbps")]
        host_rate: Rate,
        /// Rate of a cable between leaf and spine. Default: 10Gbps.
        #[serde(default = "ten_gbps")]
        fabric_rate: Rate,
        /// Propagation between host and leaf, each way. Default: 1us.
        #[serde(default = "one_us")]
        host_delay: Span,
        /// Propagation between leaf and spine, each way. Default: 1us.
        #[serde(default = "one_us")]
        fabric_delay: Span,
    }
}

kind! {
    /// Three layers of k-port switches in k pods: Al-Fares et al., SIGCOMM 2008.
    FatTreeSpec {
        /// Ports of a switch, an even number: k pods of k/2 edge and k/2 aggregation switches, and
        /// (k/2)^2 cores. Default: 8, so 128 hosts.
        #[serde(default = "eight")]
        k: u32,
        /// Hosts at each edge switch; more than k/2 oversubscribe it. Default: k/2. Source:
        /// Al-Fares et al., SIGCOMM 2008, §3.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosts_per_edge: Option<u32>,
        /// Number of cores, a multiple of k/2: fewer than (k/2)^2 oversubscribe the aggregation
        /// switches. Default: (k/2)^2. Source: 8 cores in 8 pods, MaxPass §IV.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cores: Option<u32>,
        /// Rate of the cable of a host. Default: 10Gbps.
        #[serde(default = "ten_gbps")]
        host_rate: Rate,
        /// Rate of a cable between edge and aggregation switch. Default: 10Gbps.
        #[serde(default = "ten_gbps")]
        fabric_rate: Rate,
        /// Rate of a cable between aggregation switch and core. Default: as `fabric_rate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        core_rate: Option<Rate>,
        /// Propagation between host and edge switch, each way. Default: 1us.
        #[serde(default = "one_us")]
        host_delay: Span,
        /// Propagation between edge and aggregation switch, each way. Default: 1us.
        #[serde(default = "one_us")]
        fabric_delay: Span,
        /// Propagation between aggregation switch and core, each way. Default: as `fabric_delay`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        core_delay: Option<Span>,
    }
}

kind! {
    /// Two layers for servers with several cards, one for each GPU: card i of every server of a
    /// group is at the leaf of rail i, so that GPUs of one number reach each other by one leaf. A
    /// host is a card; what GPUs of a server tell each other goes over NVLink, and is not
    /// simulated: flows between them take the fabric, by way of a spine.
    RailSpec {
        /// Number of servers. Default: 16.
        #[serde(default = "sixteen")]
        servers: u32,
        /// Cards of each server, one a GPU, and so rails. Hosts are numbered server by server.
        /// Default: 8. Source: NVIDIA's DGX H100.
        #[serde(default = "eight")]
        gpus: u32,
        /// Servers whose cards share a leaf a rail; each such group has `gpus` leaves. Default: all
        /// servers. Source: 32 in NVIDIA's DGX SuperPOD.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        servers_per_group: Option<u32>,
        /// Fabrics side by side that share nothing, each with its own leaves and spines. A card has
        /// a port to each, of its rate divided by so many; which of them a packet takes is the load
        /// balancer's choice, at a switch `nic` for each card. Default: 1, and no such switch.
        /// Source: two planes of 200 Gbit/s a card in Alibaba's HPN (SIGCOMM 2024).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planes: Option<u32>,
        /// Number of spines of each plane. Default: 8.
        #[serde(default = "eight")]
        spines: u32,
        /// Parallel cables between each leaf and each spine. Default: 1.
        #[serde(default = "one")]
        links_per_pair: u32,
        /// Rate of a card: of its cable, or of its ports to all planes together. Default: 400Gbps.
        #[serde(default = "four_hundred_gbps")]
        host_rate: Rate,
        /// Rate of a cable between leaf and spine. Default: 400Gbps.
        #[serde(default = "four_hundred_gbps")]
        fabric_rate: Rate,
        /// Propagation between host and leaf, each way. Default: 1us.
        #[serde(default = "one_us")]
        host_delay: Span,
        /// Propagation between leaf and spine, each way. Default: 1us.
        #[serde(default = "one_us")]
        fabric_delay: Span,
    }
}

kind! {
    /// Any hosts, switches and links, listed in a file. Packets take all paths of fewest hops.
    GraphSpec {
        /// The TOML file that lists them, relative to the spec. Its keys are `hosts` and
        /// `switches`, lists of names or of `{ prefix = "host", count = 16 }`; optionally `rate`
        /// and `delay`, for links that give none; and `[[link]]` tables with `from` and `to` (a
        /// name or a list of names: every one to every one), `rate`, `delay` and `count` (parallel
        /// cables, 1 by default).
        file: PathBuf,
    }
}

const fn one() -> u32 {
    1
}

const fn eight() -> u32 {
    8
}

const fn sixteen() -> u32 {
    16
}

const fn ten_gbps() -> Rate {
    Rate::from_gbps(10)
}

const fn four_hundred_gbps() -> Rate {
    Rate::from_gbps(400)
}

const fn one_us() -> Span {
    Span::from_us(1)
}

const fn ten_ms() -> Span {
    Span::from_ms(10)
}

const fn switch_queue() -> QueueTable {
    QueueTable::SWITCH
}

const fn host_queue() -> QueueTable {
    QueueTable::HOST
}
