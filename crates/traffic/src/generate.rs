//! From a spec, a shape and a seed to flows.

use std::path::Path;

use weft_units::{Purpose, Span, Stream, Time};

use crate::carriers::{Carrier, Carriers};
use crate::classes::ClassPicker;
use crate::collective::{Builder, World};
use crate::incast::Horizon;
use crate::load::offered;
use crate::pairs::{PairPicker, stream};
use crate::spec::check_size;
use crate::trace::{read_file, read_trace_file};
use crate::{
    Application, Distribution, FabricShape, Flow, MAX_FLOW_BYTES, MAX_FLOWS, OfferedLoad, Schedule, Traffic,
    TrafficError, TrafficSpec, WorkloadUsed,
};

/// No flow starts later, so that what follows a start can be computed without overflow: 100 days.
pub(crate) const LATEST_START: Time = Time::from_ps(100 * 86_400 * 1_000_000_000_000);

/// The flows of the trace or the random ones, and what they amount to.
#[derive(Default)]
struct Main {
    flows: Vec<Flow>,
    offered_load: Option<OfferedLoad>,
    workload: Option<WorkloadUsed>,
}

impl TrafficSpec {
    /// The flows that this spec asks for on a fabric of this `shape`. Files are looked up from
    /// `base_dir`, the directory of the spec. The result depends on the spec, the shape, the seed
    /// and the files alone.
    ///
    /// # Errors
    /// The first mistake found in the spec or in a file that it names. See [`TrafficError`].
    pub fn generate(&self, shape: &FabricShape, seed: u64, base_dir: &Path) -> Result<Traffic, TrafficError> {
        self.generate_over(&[], shape, seed, base_dir)
    }

    /// As [`TrafficSpec::generate`], for a run with several transports, by number. Each must be
    /// named.
    ///
    /// # Errors
    /// As [`TrafficSpec::generate`].
    pub fn generate_over(
        &self,
        transports: &[Carrier],
        shape: &FabricShape,
        seed: u64,
        base_dir: &Path,
    ) -> Result<Traffic, TrafficError> {
        self.check()?;
        let carriers = &mut Carriers::new(self, transports)?;
        shape.check()?;
        self.program.iter().enumerate().try_for_each(|(index, program)| program.check(index, shape))?;
        let pairs = if self.draws_pairs() { Some(PairPicker::new(self, shape, seed)?) } else { None };
        let main = match (&self.trace, &pairs) {
            (Some(trace), _) => self.trace_flows(trace, carriers, shape, seed, base_dir)?,
            (None, Some(pairs)) if self.has_random_flows() => {
                let mut main = self.random_flows(pairs, shape, seed, base_dir)?;
                carriers.assign(&mut main.flows, "traffic", None)?;
                main
            }
            (None, _) => Main::default(),
        };
        let mut flows = self.flows_beside(&main.flows, pairs.as_ref(), carriers, (shape, seed))?;
        flows.extend(main.flows);
        let (mut flows, schedule) = self.with_collectives(flows, carriers, (shape, seed), base_dir)?;
        if let (true, None, Some(schedule)) = (flows.is_empty(), self.duration, &self.schedule) {
            return Err(TrafficError::NoFlows { reason: format!("{} has no message", schedule.file) });
        }
        if !flows.is_empty() || self.program.is_empty() {
            check_total(&flows)?;
        }
        carriers.check_used(&flows)?;
        carriers.class(&mut flows);
        // A stable sort: flows of one instant keep the order that `Traffic::flows` promises.
        flows.sort_by_key(|flow| flow.start);
        let deadlines = match &self.deadlines {
            Some(deadlines) => deadlines.draw(&flows, seed)?,
            None => Vec::new(),
        };
        let application = self.application.map(|application| Application::new(application, seed));
        Ok(Traffic {
            flows,
            deadlines,
            application,
            offered_load: main.offered_load,
            workload: main.workload,
            schedule,
        })
    }

    /// These flows and those of collectives, and what they wait for.
    fn with_collectives(
        &self,
        flows: Vec<Flow>,
        carriers: &mut Carriers<'_>,
        (shape, seed): (&FabricShape, u64),
        base_dir: &Path,
    ) -> Result<(Vec<Flow>, Option<Schedule>), TrafficError> {
        if !self.has_collectives() {
            return Ok((flows, None));
        }
        let mut builder = Builder::new(&self.classes, carriers);
        for (index, collective) in self.collective.iter().enumerate() {
            builder.collective(index, collective, World { shape, seed })?;
        }
        let mut free = shape.all_hosts();
        for (index, job) in self.job.iter().enumerate() {
            builder.job(index, job, &mut free, World { shape, seed })?;
        }
        if let Some(schedule) = &self.schedule {
            builder.schedule(schedule, World { shape, seed }, base_dir)?;
        }
        let file = self.schedule.as_ref().map_or("traffic", |schedule| &schedule.file);
        let (flows, schedule) = builder.finish(flows, file)?;
        Ok((flows, Some(schedule)))
    }

    fn trace_flows(
        &self,
        trace: &str,
        carriers: &mut Carriers<'_>,
        shape: &FabricShape,
        seed: u64,
        base_dir: &Path,
    ) -> Result<Main, TrafficError> {
        let classes = &mut ClassPicker::new(&self.classes, seed);
        let most = self.flows.map_or(usize::MAX, |flows| flows as usize);
        let mut flows = read_trace_file(trace, base_dir, most, shape, classes, carriers)?;
        if let Some(duration) = self.duration {
            flows.retain(|flow| flow.start.since(Time::ZERO) < duration);
        }
        Ok(Main { flows, ..Main::default() })
    }

    fn random_flows(
        &self,
        pairs: &PairPicker,
        shape: &FabricShape,
        seed: u64,
        base_dir: &Path,
    ) -> Result<Main, TrafficError> {
        let load = self
            .load
            .ok_or_else(|| TrafficError::missing("traffic.load", "random flows need it, as in 0.5"))?;
        let (name, sizes) = self.sizes(base_dir)?;
        let sizes = self.scaled(sizes)?;
        let offered_load = offered(load, self.load_of, pairs, shape, sizes.mean())?;
        let mean_gap_ps = 1e12 / offered_load.flows_per_s;
        let starts = self.arrivals(mean_gap_ps, seed)?;

        let mut random_sizes = Stream::new(seed, Purpose::Sizes, 0);
        let mut random_pairs = Stream::new(seed, Purpose::Pairs, stream::FLOWS);
        let mut classes = ClassPicker::new(&self.classes, seed);
        let flow = |start| {
            let size_bytes = sizes.sample(&mut random_sizes);
            let (src, dst) = pairs.pick(&mut random_pairs);
            Flow {
                start,
                size_bytes,
                src,
                dst,
                class: classes.pick(size_bytes),
                background: false,
                transport: 0,
            }
        };
        Ok(Main {
            flows: starts.into_iter().map(flow).collect(),
            offered_load: Some(offered_load),
            workload: Some(WorkloadUsed { name, mean_bytes: sizes.mean() }),
        })
    }

    /// The distribution of the random flows' sizes, and its name.
    fn sizes(&self, base_dir: &Path) -> Result<(String, Distribution), TrafficError> {
        if let Some(size) = self.size {
            check_size("traffic.size", size)?;
            return Ok((format!("fixed {size}"), Distribution::fixed(size)));
        }
        let name = self.workload.clone().unwrap_or_default();
        let is_file =
            Path::new(&name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        let sizes = if is_file {
            Distribution::from_csv(&name, &read_file("traffic.workload", &name, base_dir)?)?
        } else {
            Distribution::builtin(&name)?
        };
        Ok((name, sizes))
    }

    /// These sizes with the factor that the spec has for them.
    fn scaled(&self, sizes: Distribution) -> Result<Distribution, TrafficError> {
        let Some(scale) = self.size_scale else { return Ok(sizes) };
        let scaled = sizes.scaled(scale);
        if scaled.max() > MAX_FLOW_BYTES as f64 {
            let allowed = "a factor that leaves every flow at most 1 TB";
            return Err(TrafficError::bad_value("traffic.size_scale", scale, allowed));
        }
        // Smaller ones would all be rounded up to a byte, and the load would be another one.
        if scaled.mean() < 1.0 {
            let found = format!("{scale}, a mean of {} bytes", scaled.mean());
            return Err(TrafficError::bad_value("traffic.size_scale", found, "a mean of at least 1 byte"));
        }
        Ok(scaled)
    }

    /// The starts of the random flows: a Poisson process from time 0 on, until `flows` or
    /// `duration` ends it.
    fn arrivals(&self, mean_gap_ps: f64, seed: u64) -> Result<Vec<Time>, TrafficError> {
        let expected = self.duration.map_or(f64::INFINITY, |duration| duration.as_ps() as f64 / mean_gap_ps);
        let most = self.flows.map_or(f64::INFINITY, f64::from);
        if expected.min(most) > MAX_FLOWS as f64 {
            let key = if most < expected { "traffic.flows" } else { "traffic.duration" };
            return Err(TrafficError::too_many_flows(key, expected.min(most)));
        }
        let most = self.flows.map_or(usize::MAX, |flows| flows as usize);
        let mut random = Stream::new(seed, Purpose::Arrivals, 0);
        // Kept as a fraction, so that rounding to a picosecond does not add up over the gaps.
        let mut now_ps = 0.0;
        let next = std::iter::from_fn(|| {
            now_ps += random.exponential(mean_gap_ps);
            Some(Span::from_ps((now_ps + 0.5) as u64))
                .filter(|&start| self.duration.is_none_or(|end| start < end))
        });
        let starts: Vec<Time> = next.take(most).map(|start| Time::ZERO.saturating_add(start)).collect();
        if starts.is_empty() {
            let gap = Span::from_ps(mean_gap_ps as u64).rounded();
            let reason = format!(
                "no random flow starts within traffic.duration = {}; one starts every {gap} on average; make the \
                 duration longer or the load higher",
                self.duration.unwrap_or(Span::MAX)
            );
            return Err(TrafficError::NoFlows { reason });
        }
        Ok(starts)
    }

    /// Long-lived flows, then incasts.
    fn flows_beside(
        &self,
        main: &[Flow],
        pairs: Option<&PairPicker>,
        carriers: &mut Carriers<'_>,
        (shape, seed): (&FabricShape, u64),
    ) -> Result<Vec<Flow>, TrafficError> {
        let horizon = Horizon { duration: self.duration, last_start: main.last().map(|flow| flow.start) };
        let mut flows = Vec::new();
        for (index, long_lived) in self.long_lived.iter().enumerate() {
            let mut own = long_lived.generate(index, pairs, &self.classes, shape, seed)?;
            let table = format!("traffic.long_lived[{index}]");
            carriers.assign(&mut own, &table, long_lived.transport.as_deref())?;
            flows.extend(own);
            check_total(&flows)?;
        }
        for (index, incast) in self.incast.iter().enumerate() {
            let mut own = incast.generate(index, &self.classes, horizon, shape, seed)?;
            carriers.assign(&mut own, &format!("traffic.incast[{index}]"), incast.transport.as_deref())?;
            flows.extend(own);
            check_total(&flows)?;
        }
        Ok(flows)
    }
}

/// Neither none nor too many, and none too late.
fn check_total(flows: &[Flow]) -> Result<(), TrafficError> {
    let Some(last) = flows.iter().map(|flow| flow.start).max() else {
        return Err(TrafficError::NoFlows { reason: "none starts before traffic.duration".to_owned() });
    };
    if flows.len() as u64 > MAX_FLOWS {
        return Err(TrafficError::too_many_flows("traffic", flows.len() as f64));
    }
    if last > LATEST_START {
        let found = format!("a flow that starts after {} days", (last.as_us() / 86_400e6) as u64);
        return Err(TrafficError::bad_value("traffic", found, "a start within 100 days"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
