//! The tables of all switches, and what they follow from.

use std::sync::Arc;

use weft_topology::{FaultEvent, LinkKnowledge, Routes, Topology};

/// The tables of all switches at one time, as the operator's map has them.
#[derive(Debug)]
pub struct Tables {
    /// Those in force.
    pub routes: Routes,
    /// Those that explicit routes go by, if they mean the same paths throughout the run.
    pub pinned: Option<Arc<Routes>>,
}

impl Tables {
    /// The tables that explicit routes go by.
    pub fn explicit(&self) -> &Routes {
        self.pinned.as_deref().unwrap_or(&self.routes)
    }
}

/// Knowledge of links at switches.
#[derive(Debug)]
pub struct Knowledge {
    /// Knowledge that all have.
    known: LinkKnowledge,
    /// Whether each link works, as its own switch sees it at once.
    local_up: Vec<bool>,
}

impl Knowledge {
    /// The conditions that the run begins with, known to all.
    pub fn at_start(topology: &Topology) -> Self {
        let known = LinkKnowledge::at_start(topology);
        Self { local_up: known.up.clone(), known }
    }

    /// The link's own switch sees its new condition.
    pub fn see(&mut self, fault: &FaultEvent) {
        self.local_up[fault.link as usize] = fault.condition.up;
    }

    /// All switches know by now what became of this link.
    pub fn learn(&mut self, fault: &FaultEvent) {
        let link = fault.link as usize;
        self.known.up[link] = fault.condition.up;
        self.known.rate[link] = fault.condition.rate;
    }

    /// The tables that follow, beside those that explicit routes go by.
    pub fn tables(&self, topology: &Topology, pinned: Option<Arc<Routes>>) -> Arc<Tables> {
        Arc::new(Tables { routes: Routes::compute(topology, &self.known, &self.local_up), pinned })
    }
}
