//! The congestion windows of flows over time, of any kind of host.

use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use weft_fabric::CwndSample;
use weft_units::{Mistake, Span};

use crate::cores::Cores;
use crate::linux::KernelWindow;
use crate::results::rows::WindowRow;
use crate::results::table::Row;
use crate::run::{Observer, Prepared, RunError, Simulated, Watch};
use crate::spec::SpecError;

/// Threshold that the kernel reports when nothing has set one.
const NO_THRESHOLD: u64 = 0x7fff_ffff;
/// The shortest interval that a kernel takes.
const LEAST: Span = Span::from_us(1);

/// Reads an interval, as in "100us".
///
/// # Errors
/// A text that is no time, or one that is too short.
pub fn interval(text: &str) -> Result<Span, SpecError> {
    match text.parse::<Span>() {
        Ok(every) if every < LEAST => {
            Err(refusal("the interval of windows is too short", text, "1us or more"))
        }
        other => other.map_err(|error| SpecError::new(format!("the interval of windows: {error}"))),
    }
}

impl Prepared {
    /// Runs to the end and returns the congestion windows of these flows, each at every such
    /// interval since its start (1 us at least), by time. Transports without a window of their own
    /// have no rows.
    ///
    /// # Errors
    /// A flow that there is not, or as [`Prepared::run`].
    pub fn congestion_windows(
        &self,
        observer: Observer<'_>,
        flows: &[u32],
        every: Span,
    ) -> Result<RecordBatch, RunError> {
        self.check_flows(flows)?;
        let every = every.max(LEAST);
        let watch = Watch { windows_of: Some((flows, every)), ..Watch::default() };
        let simulated = self.simulate(observer, None, watch, Cores::UpTo(NonZeroUsize::MIN))?;
        Ok(WindowRow::table(&rows(&simulated))?)
    }
}

impl Prepared {
    /// Refuses numbers that no flow has.
    pub(crate) fn check_flows(&self, flows: &[u32]) -> Result<(), SpecError> {
        let count = self.traffic.flows.len();
        let unknown = flows.iter().find(|&&flow| flow as usize >= count);
        unknown.map_or(Ok(()), |flow| {
            let allowed = format!("0 to {}", count.saturating_sub(1));
            Err(refusal(&format!("there is no flow {flow}"), &flow.to_string(), &allowed))
        })
    }
}

fn refusal(sentence: &str, found: &str, allowed: &str) -> SpecError {
    let sentence = format!("{sentence}: allowed is {allowed}");
    SpecError::from(Mistake::new(sentence).found(found.to_owned()).allowed(allowed))
}

/// Rows of simulated hosts and of Linux hosts, by time.
fn rows(Simulated { results, kernel, .. }: &Simulated) -> Vec<WindowRow> {
    let mut rows: Vec<WindowRow> = results.windows.iter().map(of_simulated).collect();
    rows.extend(kernel.windows.iter().map(of_kernel));
    rows.sort_by(|a, b| a.time_us.total_cmp(&b.time_us).then(a.flow.cmp(&b.flow)));
    rows
}

fn of_simulated(sample: &CwndSample) -> WindowRow {
    let CwndSample { at, flow, state } = *sample;
    WindowRow {
        time_us: at.as_us(),
        flow,
        cwnd: state.cwnd,
        ssthresh: state.ssthresh.is_finite().then_some(state.ssthresh),
        outstanding: state.outstanding,
        rtt_us: (!state.smoothed_rtt.is_zero()).then(|| state.smoothed_rtt.as_us()),
    }
}

fn of_kernel(KernelWindow { at, flow, info }: &KernelWindow) -> WindowRow {
    WindowRow {
        time_us: at.as_us(),
        flow: flow.0,
        cwnd: info.cwnd as f64,
        ssthresh: (info.ssthresh < NO_THRESHOLD).then_some(info.ssthresh as f64),
        outstanding: u32::try_from(info.unacked).unwrap_or(u32::MAX),
        rtt_us: (info.rtt_us > 0).then_some(info.rtt_us as f64),
    }
}
