//! A run that somebody looks at as it goes: who advances it, and how far at a time, is not decided
//! here.

use weft_fabric::Simulation;
use weft_units::Mistake;

use crate::linux::KernelResults;
use crate::outcome::Outcome;
use crate::run::{Elapsed, Prepared, RunError, Simulated};
use crate::spec::SpecError;

impl Prepared {
    /// A run that has not begun, on this thread, for somebody who looks at it as it goes.
    /// [`Self::end`] says what came of it.
    ///
    /// # Errors
    /// Linux hosts: those have a clock that nobody else holds.
    pub fn begin(&self) -> Result<Simulation<'_>, SpecError> {
        if !self.resolved.spec.hosts.is_simulated() {
            let refused =
                Mistake::at("hosts.kind", " is \"linux\": here only simulated hosts can be watched");
            return Err(self.resolved.error(refused.found("linux").allowed("simulated")));
        }
        let mut simulation = Simulation::new(self.input(None)).map_err(|error| self.resolved.error(error))?;
        // Whoever looks sees all flows.
        simulation.take_in_every(usize::MAX);
        Ok(simulation)
    }

    /// Outcome of a run that [`Self::begin`] began, over or not.
    ///
    /// # Errors
    /// A table that could not be made: a defect of Weft.
    pub fn end(&self, simulation: Simulation<'_>) -> Result<Outcome, RunError> {
        let (results, records) = simulation.finish();
        let elapsed = Elapsed { cpu_s: 0.0, wall_s: 0.0 };
        let kernel = KernelResults::default();
        // Whoever looks ends it.
        self.outcome(Simulated { results, records, elapsed, kernel, cut_off: false }, None)
    }
}
