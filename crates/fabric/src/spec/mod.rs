//! The `[fabric]` table: what it says, what is refused, and the fabric that it describes.

mod amount;
mod error;
mod kinds;
mod queue;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

pub use amount::Mark;
pub use error::FabricError;
pub use kinds::LeafSpineSpec;
pub use queue::{QueueTable, RedTable};

use crate::topology::plan::{Plan, Shared, check_delay};
use crate::topology::{FaultEvent, Topology, leaf_spine};

/// The fabric: hosts, switches, cables, queues and faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FabricSpec {
    /// Two layers: every leaf has a cable, or several, to every spine.
    LeafSpine(LeafSpineSpec),
}

/// A fabric that is ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fabric {
    /// Nodes and links, in the condition that the run begins with.
    pub topology: Topology,
    /// What changes later, by time.
    pub faults: Vec<FaultEvent>,
    /// How long it takes until all switches know that a link is down or up again; its own switch knows at once.
    pub reroute_after: Span,
    /// What is allowed and yet probably not meant.
    pub warnings: Vec<String>,
}

impl FabricSpec {
    /// The fabric that this describes. `seed` is the run's; files are looked for in `base_dir`.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn build(&self, _seed: u64, _base_dir: &Path) -> Result<Fabric, FabricError> {
        let plan = self.plan()?;
        let (topology, _) = plan.topology(&self.common().shared()?)?;
        let reroute_after = self.common().reroute_after;
        check_delay("fabric.reroute_after", reroute_after)?;
        Ok(Fabric { topology, faults: Vec::new(), reroute_after, warnings: Vec::new() })
    }

    fn plan(&self) -> Result<Plan, FabricError> {
        match self {
            Self::LeafSpine(spec) => leaf_spine::plan(spec),
        }
    }

    fn common(&self) -> kinds::Common<'_> {
        match self {
            Self::LeafSpine(spec) => spec.common(),
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
        let switch_queue = self.switch_queue.resolved(&QueueTable::SWITCH);
        let host_queue = self.host_queue.resolved(&QueueTable::HOST);
        Ok(Shared {
            stack_delay: self.stack_delay,
            switch_delay: self.switch_delay,
            overhead_bytes: overhead as u16,
            switch_queue: switch_queue.queue("fabric.switch_queue", overhead)?,
            host_queue: host_queue.queue("fabric.host_queue", overhead)?,
        })
    }
}
