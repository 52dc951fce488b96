//! The `[fabric]` table: what it says, what is refused, and the fabric that it describes.

mod amount;
mod classes;
mod error;
mod fabric;
mod fault;
mod kinds;
mod names;
mod queue;
mod shared_buffer;
mod software;
mod timeline;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Class;
use weft_units::Bytes;

pub use amount::{Mark, PacketRate};
pub use classes::{ClassMember, ClassTable, SchedulerName};
pub use error::FabricError;
pub use fabric::Fabric;
pub use fault::FaultTable;
pub use kinds::{FatTreeSpec, GraphSpec, LeafSpineSpec, RailSpec};
pub(crate) use names::unknown_name;
pub use queue::{MarkAt, QueueTable, RedTable};
pub use shared_buffer::{PauseTable, SharedBufferTable};
pub use software::SoftwareSwitchTable;

use crate::plan::{Plan, Shared, check_delay};
use crate::{Topology, fat_tree, graph, leaf_spine, rail};

/// The fabric: hosts, switches, cables, queues and faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FabricSpec {
    /// Two layers: every leaf has a cable, or several, to every spine.
    LeafSpine(LeafSpineSpec),
    /// Three layers of k-port switches in k pods.
    FatTree(FatTreeSpec),
    /// Two layers for servers with several cards: card i of every server is at the leaf of rail i.
    Rail(RailSpec),
    /// Any hosts, switches and links, listed in a file.
    Graph(GraphSpec),
}

/// A kind of fabric, as `weft fabrics` shows it.
#[derive(Debug, Clone)]
pub struct FabricInfo {
    /// Name of the fabric: its `kind` in specs.
    pub name: &'static str,
    /// Description of the fabric, in a line.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// JSON Schema of its parameters, with their docs.
    pub parameters: serde_json::Value,
}

/// Every kind of fabric.
pub fn fabrics() -> &'static [FabricInfo] {
    static ALL: std::sync::LazyLock<Vec<FabricInfo>> = std::sync::LazyLock::new(|| {
        vec![
            FabricInfo {
                name: "leaf-spine",
                title: "Two layers: every leaf has a cable, or several, to every spine.",
                source: "Alizadeh et al., CONGA, SIGCOMM 2014, section 2",
                parameters: schemars::schema_for!(LeafSpineSpec).to_value(),
            },
            FabricInfo {
                name: "fat-tree",
                title: "Three layers of k-port switches in k pods.",
                source: "Al-Fares et al., SIGCOMM 2008, section 3",
                parameters: schemars::schema_for!(FatTreeSpec).to_value(),
            },
            FabricInfo {
                name: "rail",
                title: "Two layers for servers with several cards: card i of every server is at the leaf of rail i.",
                source: "NVIDIA, DGX SuperPOD reference architecture",
                parameters: schemars::schema_for!(RailSpec).to_value(),
            },
            FabricInfo {
                name: "graph",
                title: "Any hosts, switches and links, listed in a file.",
                source: "your own",
                parameters: schemars::schema_for!(GraphSpec).to_value(),
            },
        ]
    });
    &ALL
}

/// A fabric without its faults.
struct Built {
    plan: Plan,
    topology: Topology,
    /// Both links of each cable of the plan.
    links_of_cable: Vec<[u32; 2]>,
}

impl FabricSpec {
    /// The fabric that this describes. `seed` is the run's; files are looked for in `base_dir`.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn build(&self, seed: u64, base_dir: &Path) -> Result<Fabric, FabricError> {
        let common = self.common();
        let shared = common.shared()?;
        check_delay("fabric.reroute_after", common.reroute_after)?;
        let plan = match self {
            Self::LeafSpine(spec) => leaf_spine::plan(spec),
            Self::FatTree(spec) => fat_tree::plan(spec),
            Self::Rail(spec) => rail::plan(spec),
            Self::Graph(spec) => graph::plan(spec, base_dir),
        }?;
        let software = common.software_switch.map(SoftwareSwitchTable::rules).transpose()?;
        let laid_out = plan.topology(&shared);
        let (mut topology, links_of_cable) = laid_out.map_err(|error| match self {
            Self::Graph(spec) => graph::blamed(spec, base_dir, error),
            _ => error,
        })?;
        topology.software = software;
        topology.shared_buffer = common.shared_buffer_rules(&shared)?;
        let built = Built { plan, topology, links_of_cable };
        let links = timeline::links_of_faults(common.fault, &built, seed)?;
        Ok(Fabric::new(built.topology, common.fault, &links, common.reroute_after))
    }

    /// Checks that every port with classes has one that holds flows of each of these.
    ///
    /// # Errors
    /// The first class that none of a port's holds.
    pub fn check_flows_are_held(&self, flows: &[Class]) -> Result<(), FabricError> {
        let common = self.common();
        classes::check_held(common.switch_queue, "fabric.switch_queue", flows)?;
        classes::check_held(common.host_queue, "fabric.host_queue", flows)
    }

    /// The spec with every default written out.
    #[must_use]
    pub fn resolved(&self) -> Self {
        let mut spec = self.clone();
        match &mut spec {
            Self::LeafSpine(spec) => spec.resolve_queues(),
            Self::Graph(spec) => spec.resolve_queues(),
            Self::Rail(spec) => {
                spec.resolve_queues();
                spec.servers_per_group = spec.servers_per_group.or(Some(spec.servers));
            }
            Self::FatTree(spec) => {
                spec.resolve_queues();
                spec.hosts_per_edge = spec.hosts_per_edge.or(Some(spec.k / 2));
                spec.core_rate = spec.core_rate.or(Some(spec.fabric_rate));
                spec.core_delay = spec.core_delay.or(Some(spec.fabric_delay));
            }
        }
        spec
    }

    fn common(&self) -> kinds::Common<'_> {
        match self {
            Self::LeafSpine(spec) => spec.common(),
            Self::FatTree(spec) => spec.common(),
            Self::Rail(spec) => spec.common(),
            Self::Graph(spec) => spec.common(),
        }
    }
}

impl kinds::Common<'_> {
    fn shared(&self) -> Result<Shared, FabricError> {
        /// Preamble, inter-frame gap and a few tags: no real overhead is larger.
        const MAX_OVERHEAD: Bytes = Bytes::new(1_000);
        check_delay("fabric.stack_delay", self.stack_delay)?;
        check_delay("fabric.switch_delay", self.switch_delay)?;
        if self.overhead > MAX_OVERHEAD {
            return Err(FabricError::bad(
                "fabric.overhead",
                &self.overhead,
                format!("at most {MAX_OVERHEAD}"),
            ));
        }
        let overhead = self.overhead.as_u64();
        let switch_queue = self.switch_queue.resolved(&self.switch_default());
        let host_queue = self.host_table(&switch_queue)?.resolved(&QueueTable::HOST);
        Ok(Shared {
            stack_delay: self.stack_delay,
            switch_delay: self.switch_delay,
            overhead_bytes: overhead as u16,
            switch_queue: classes::port(&switch_queue, "fabric.switch_queue", overhead)?,
            host_queue: classes::port(&host_queue, "fabric.host_queue", overhead)?,
        })
    }
}
