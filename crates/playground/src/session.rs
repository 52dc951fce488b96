//! A run from its spec to its results.

use serde_json::{Value, json};
use weft_fabric::{Ending, Simulation, Snapshot, Status};
use weft_lab::{Prepared, RunError, SpecError, SpecSource, Variant};
use weft_units::Time;

use crate::describe::{fabric, flows};
use crate::explain::decision;
use crate::frame::Frame;

/// The lists of [`weft_lab::catalog`] that the page shows.
const LISTS: [&str; 4] = ["schemes", "transports", "workloads", "fabrics"];

/// Catalog of schemes, transports and the like.
///
/// # Errors
/// None in practice: they are all there.
pub fn catalog() -> Result<Value, SpecError> {
    let list = |name: &str| Ok((name.to_owned(), weft_lab::catalog(name)?));
    let lists: Result<serde_json::Map<String, Value>, SpecError> = LISTS.into_iter().map(list).collect();
    let mut lists = lists?;
    lists.insert("version".to_owned(), weft_lab::VERSION.into());
    Ok(lists.into())
}

/// A run that goes on.
pub struct Session {
    prepared: &'static Prepared,
    /// None when the run was finished.
    simulation: Option<Simulation<'static>>,
    seen: Snapshot,
    frame: Frame,
}

impl Session {
    /// Begins the run of a spec in TOML, with this variant in place of its load balancer.
    ///
    /// What the run is made of stays in memory for good: the page drops the module's instance with
    /// it.
    ///
    /// # Errors
    /// The first mistake in either.
    pub fn begin(spec: &str, variant: &str) -> Result<Self, SpecError> {
        let source = SpecSource::from_text(spec).with_variant(Variant::parse(variant)?);
        let prepared: &'static Prepared = Box::leak(Box::new(Prepared::new(&source)?));
        let simulation = Some(prepared.begin()?);
        Ok(Self { prepared, simulation, seen: Snapshot::default(), frame: Frame::default() })
    }

    /// Description that the page draws: fabric, traffic, the resolved spec.
    pub fn describe(&self) -> Value {
        let topology = &self.prepared.fabric.topology;
        json!({
            "fabric": fabric(topology),
            "faults": self.prepared.fabric.faults.iter().map(|fault| json!({
                "at": fault.at.as_ps(), "link": fault.link, "up": fault.condition.up,
                "rate": fault.condition.rate.as_bps(),
            })).collect::<Vec<_>>(),
            "flows": flows(&self.prepared.traffic.flows),
            "toml": self.prepared.resolved.result_toml,
            "hash": self.prepared.resolved.hash,
            "warnings": self.prepared.fabric.warnings,
        })
    }

    /// Lets the run go on up to this time, but no longer than so many events. Returns 0 while there
    /// is more to do before, 1 when it has come there, and from 2 on when it is over: every flow
    /// ended, the time limit, or nothing left to happen, be it for a deadlock.
    pub fn advance(&mut self, until_ps: u64, max_events: u64) -> u32 {
        let Some(simulation) = &mut self.simulation else { return 2 };
        match simulation.advance_to(Time::from_ps(until_ps), max_events) {
            Status::Running => 0,
            Status::Reached => 1,
            Status::Finished(Ending::AllDone) => 2,
            Status::Finished(Ending::TimeLimit) => 3,
            Status::Finished(Ending::Idle | Ending::Broken | Ending::Deadlock) => 4,
        }
    }

    /// The time of the last event, in ps.
    pub fn now(&self) -> u64 {
        self.simulation.as_ref().map_or(0, |simulation| simulation.progress().now.as_ps())
    }

    /// Packet-hops so far.
    pub fn hops(&self) -> u64 {
        self.simulation.as_ref().map_or(0, |simulation| simulation.progress().packet_hops)
    }

    /// Looks at the run at this time, up to which it has advanced.
    pub fn look(&mut self, at_ps: u64) -> &Frame {
        if let Some(simulation) = &mut self.simulation {
            let at = Time::from_ps(at_ps);
            simulation.look(at, &mut self.seen);
            self.frame.fill(&self.seen, &self.prepared.traffic.flows, at);
        }
        &self.frame
    }

    /// Follows a flow from now on, or none.
    pub fn follow(&mut self, flow: Option<u32>) {
        if let Some(simulation) = &mut self.simulation {
            simulation.follow(flow);
        }
    }

    /// Decisions about the followed flow since the last call.
    pub fn decisions(&mut self) -> Value {
        let decisions = self.simulation.as_mut().map(Simulation::take_decisions).unwrap_or_default();
        decisions.iter().map(|taken| decision(taken, &self.prepared.fabric.topology)).collect()
    }

    /// Ends the run: `{"fingerprint", "summary"}`, as the command line has them.
    ///
    /// # Errors
    /// A table that could not be made, a defect of Weft, or a run that was finished before.
    pub fn finish(&mut self) -> Result<Value, RunError> {
        let again = || RunError::Spec(SpecError::new("the run was finished before"));
        let simulation = self.simulation.take().ok_or_else(again)?;
        let outcome = self.prepared.end(simulation)?;
        let summary = outcome.summary.to_json().unwrap_or_default();
        Ok(json!({
            "fingerprint": outcome.fingerprint()?,
            "summary": serde_json::from_str::<Value>(&summary).unwrap_or_default(),
        }))
    }
}
