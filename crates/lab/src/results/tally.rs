//! The figures of a run, summed up flow after flow, so that no run has to hold the rows of all its
//! flows.
//!
//! What is sorted is kept in columns: three numbers and a size for each flow. Everything else is a
//! sum in the order of the flows.

#[cfg(test)]
use weft_units::Span;
use weft_units::Time;

use super::bin::{Bin, Deadlines, DuplicateAcks, FctBreakdownMeans, Goodput, GoodputBounds, Resent};
use super::rows::FlowRow;
use super::stats::{Mark, Sample, Statistics, sum};
use super::summary::{Background, ClassBin, LabelledBin, Packets, Unmeasured, Waits};
use crate::bins::{SizeRange, groups};

/// All that a summary says of flows.
#[derive(Debug, Clone)]
pub struct Figures {
    values: Values,
    all: Tally,
    /// By the groups of sizes: small, medium, large.
    groups: [(SizeRange, Tally); 3],
    /// By the ranges of sizes that the spec asks for.
    ranges: Vec<(SizeRange, Tally)>,
    /// By class, those that have come up, in the order in which they did.
    classes: Vec<(&'static str, Tally)>,
    background: BackgroundTally,
    /// Finished flows, measured or not, but for background flows.
    finished: u64,
    unmeasured: Option<Unmeasured>,
    waits_us: [f64; 4],
}

/// Flows of one range of sizes, summed up. Background flows are not among them.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    flows: u64,
    unfinished: u64,
    never_started: u64,
    /// Sums and numbers of the parts of completion times, as [`FctBreakdownMeans`] has them.
    fct_breakdown_us: [(f64, u64); 10],
    waited_us: f64,
    data_packets: u64,
    out_of_order_packets: u64,
    duplicate_segments: u64,
    timeouts: u64,
    retransmissions: u64,
    segments_sent: u64,
    after_loss: u64,
    after_reordering: u64,
    after_timeout: u64,
    /// Flows whose transport counts duplicate acknowledgements, and how many these had.
    counts_duplicate_acks: u64,
    duplicate_acks: u64,
    /// Flows with one duplicate acknowledgement or more, and with three or more.
    with_duplicate_acks: [u64; 2],
    has_deadlines: bool,
    /// Flows of which it is known whether they missed their deadline, and those that did.
    deadlines: [u64; 2],
    /// Flows with a goodput, and unfinished ones: when the first started, when the last was done or
    /// the run ended, and their payload.
    first_us: Option<f64>,
    last_us: f64,
    bits: f64,
}

/// A size, and what is known of it, for each flow but background ones; what is not known is NaN.
#[derive(Debug, Clone)]
struct Values {
    size_bytes: Vec<u64>,
    /// The place among the classes.
    class: Vec<u8>,
    /// Whether it did not finish: then the next three are bounds.
    unfinished: Vec<bool>,
    /// Lower bounds of unfinished flows: the time that has passed, and no less than the ideal.
    fct_us: Vec<f64>,
    /// Likewise.
    slowdown: Vec<f64>,
    /// Upper bounds of unfinished flows.
    goodput_mbps: Vec<f64>,
}

#[derive(Debug, Clone, Default)]
struct BackgroundTally {
    all: Tally,
    delivered_bytes: u64,
    goodput_mbps: Vec<f64>,
}

impl Figures {
    /// Tally of no flow so far; there will be so many.
    pub fn new(flows: usize, ranges: &[SizeRange]) -> Self {
        let empty = |range| (range, Tally::default());
        Self {
            values: Values::new(flows),
            all: Tally::default(),
            groups: groups().map(|(_, range)| empty(range)),
            ranges: ranges.iter().cloned().map(empty).collect(),
            classes: Vec::new(),
            background: BackgroundTally::default(),
            finished: 0,
            unmeasured: None,
            waits_us: [0.0; 4],
        }
    }

    /// Tally of these flows.
    #[cfg(test)]
    pub fn of(rows: &[FlowRow], ranges: &[SizeRange]) -> Self {
        let mut figures = Self::new(rows.len(), ranges);
        for row in rows {
            figures.add(row, Time::ZERO + Span::from_us(100));
        }
        figures
    }

    /// Adds a flow, the next one in their order, of a run that ends at `end`.
    pub fn add(&mut self, row: &FlowRow, end: Time) {
        if row.background {
            return self.background.add(row);
        }
        self.finished += u64::from(row.fct_us.is_some());
        if let Some(measured) = row.measured {
            let unmeasured = self.unmeasured.get_or_insert_default();
            if !measured {
                unmeasured.flows += 1;
                unmeasured.unfinished += u64::from(row.is_unfinished());
                unmeasured.never_started += u64::from(row.start_us.is_none());
                return;
            }
        }
        let age_us = row.age_us(end);
        self.values.add(row, age_us);
        self.all.add(row, age_us);
        let ranges = self.groups.iter_mut().chain(&mut self.ranges);
        for (_, tally) in ranges.filter(|(range, _)| range.contains(row.size_bytes)) {
            tally.add(row, age_us);
        }
        let known = self.classes.iter().position(|(class, _)| *class == row.class);
        let place = known.unwrap_or_else(|| {
            self.classes.push((row.class, Tally::default()));
            self.classes.len() - 1
        });
        self.classes[place].1.add(row, age_us);
        self.values.class.push(place as u8);
        let waits = [row.wait_host_us, row.wait_leaf_us, row.wait_spine_us, row.wait_last_us];
        for (sum, wait) in self.waits_us.iter_mut().zip(waits) {
            *sum += wait;
        }
    }

    /// Whether any flow that is measured did not finish.
    pub const fn is_open(&self) -> bool {
        self.all.unfinished + self.all.never_started > 0
    }

    /// How many finished of all flows that can, measured or not.
    pub const fn finished(&self) -> u64 {
        self.finished
    }

    /// The sums over all flows.
    pub(super) const fn totals(&self) -> &Tally {
        &self.all
    }

    /// All flows.
    pub fn all(&self) -> Bin {
        self.all.bin(&self.values, |_| true)
    }

    /// Small, medium and large ones.
    pub fn groups(&self) -> [Bin; 3] {
        self.groups.each_ref().map(|(range, tally)| self.bin_of(range, tally))
    }

    fn bin_of(&self, range: &SizeRange, tally: &Tally) -> Bin {
        tally.bin(&self.values, |flow| range.contains(self.values.size_bytes[flow]))
    }

    /// Bins of each class; none if all flows are of one.
    pub fn classes(&self) -> Vec<ClassBin> {
        let of = |(place, (class, tally)): (u8, &(&'static str, Tally))| ClassBin {
            class,
            bin: tally.bin(&self.values, |flow| self.values.class[flow] == place),
        };
        if self.classes.len() < 2 { Vec::new() } else { (0..).zip(&self.classes).map(of).collect() }
    }

    /// Bins of the ranges that the spec requests.
    pub fn labelled(&self) -> Vec<LabelledBin> {
        let labelled = |(range, tally): &(SizeRange, Tally)| LabelledBin {
            label: range.label.clone(),
            from_bytes: range.from,
            up_to_bytes: (range.up_to < u64::MAX).then_some(range.up_to),
            bin: self.bin_of(range, tally),
        };
        self.ranges.iter().map(labelled).collect()
    }

    /// Those that never end; none if there are none.
    pub fn background(&self) -> Option<Background> {
        let BackgroundTally { all, delivered_bytes, goodput_mbps } = &self.background;
        (all.flows > 0).then(|| Background {
            flows: all.flows,
            never_started: all.never_started,
            delivered_bytes: *delivered_bytes,
            goodput_mbps: Statistics::of(goodput_mbps.clone()).mean,
            fairness: fairness(goodput_mbps),
            packets: all.packets(),
        })
    }

    /// Those outside the window of measurement; none if there is no window.
    pub const fn unmeasured(&self) -> Option<Unmeasured> {
        self.unmeasured
    }

    /// Mean waits of a data packet.
    pub fn waits(&self) -> Waits {
        let [host, leaf, spine, last] = self.waits_us.map(|sum| share(sum, self.all.data_packets));
        Waits { host, leaf, spine, last }
    }
}

impl BackgroundTally {
    fn add(&mut self, row: &FlowRow) {
        self.all.add(row, 0.0);
        self.delivered_bytes += row.delivered_bytes;
        self.goodput_mbps.extend(row.goodput_mbps);
    }
}

impl Values {
    fn new(flows: usize) -> Self {
        Self {
            size_bytes: Vec::with_capacity(flows),
            class: Vec::with_capacity(flows),
            unfinished: Vec::with_capacity(flows),
            fct_us: Vec::with_capacity(flows),
            slowdown: Vec::with_capacity(flows),
            goodput_mbps: Vec::with_capacity(flows),
        }
    }

    fn add(&mut self, row: &FlowRow, age_us: f64) {
        self.size_bytes.push(row.size_bytes);
        self.unfinished.push(row.fct_us.is_none());
        let least_us = row.least_fct_us(age_us);
        self.fct_us.push(row.fct_us.unwrap_or(least_us));
        let at_least = || row.ideal_fct_us.map(|ideal| least_us / ideal);
        let slowdown = if row.fct_us.is_some() { row.slowdown } else { at_least() };
        self.slowdown.push(slowdown.unwrap_or(f64::NAN));
        let at_most = || (least_us > 0.0).then(|| row.size_bytes as f64 * 8.0 / least_us);
        let goodput = if row.fct_us.is_some() { row.goodput_mbps } else { at_most() };
        self.goodput_mbps.push(goodput.unwrap_or(f64::NAN));
    }

    /// Known values in this column of the flows that belong, by their places, and the bounds of
    /// unfinished ones.
    fn split(&self, column: &[f64], belongs: impl Fn(usize) -> bool) -> (Vec<f64>, Vec<f64>) {
        let (mut known, mut bounds) = (Vec::new(), Vec::new());
        let mine = column.iter().enumerate().filter(|&(flow, value)| belongs(flow) && !value.is_nan());
        for (flow, value) in mine {
            if self.unfinished[flow] { bounds.push(*value) } else { known.push(*value) }
        }
        (known, bounds)
    }

    /// Statistics of a column of times.
    fn times(&self, column: &[f64], belongs: impl Fn(usize) -> bool) -> Statistics {
        let (known, bounds) = self.split(column, belongs);
        Statistics::between(&Sample::at_least(known, &bounds))
    }

    /// Goodputs, of which those of unfinished flows lie between zero and their bound.
    fn goodputs(&self, belongs: impl Fn(usize) -> bool) -> Sample {
        let (known, bounds) = self.split(&self.goodput_mbps, belongs);
        Sample::between(known, bounds.into_iter().map(|bound| (0.0, bound)))
    }

    /// Completion times that the flows that belong would have in an empty fabric; there are `flows`
    /// of them.
    fn ideals(&self, flows: u64, belongs: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut known = Vec::with_capacity(flows as usize);
        let mine = self.fct_us.iter().zip(&self.slowdown).enumerate().filter(|(flow, _)| belongs(*flow));
        known.extend(mine.map(|(_, (fct, slowdown))| fct / slowdown).filter(|ideal| !ideal.is_nan()));
        known
    }
}

impl Tally {
    fn add(&mut self, row: &FlowRow, age_us: f64) {
        self.flows += 1;
        self.unfinished += u64::from(row.is_unfinished());
        self.never_started += u64::from(row.start_us.is_none());
        let breakdown = [
            row.fct_transmission_us,
            row.fct_host_us,
            row.fct_leaf_us,
            row.fct_spine_us,
            row.fct_last_us,
            row.fct_reordering_us,
            row.fct_timeouts_us,
            row.fct_acknowledgement_us,
            row.fct_window_us,
            row.fct_pause_us,
        ];
        for ((sum, count), part) in self.fct_breakdown_us.iter_mut().zip(breakdown) {
            *sum += part.unwrap_or(0.0);
            *count += u64::from(part.is_some());
        }
        self.waited_us += row.wait_leaf_us + row.wait_spine_us + row.wait_last_us;
        self.data_packets += row.segments_received;
        self.out_of_order_packets += u64::from(row.out_of_order_packets);
        self.duplicate_segments += u64::from(row.duplicate_segments);
        self.timeouts += u64::from(row.timeouts);
        self.retransmissions += u64::from(row.retransmissions);
        self.segments_sent += row.segments_sent;
        self.after_loss += u64::from(row.retransmissions_after_loss);
        self.after_reordering += u64::from(row.retransmissions_after_reordering);
        self.after_timeout += u64::from(row.retransmissions_after_timeout);
        if let Some(duplicate_acks) = row.duplicate_acks {
            self.counts_duplicate_acks += 1;
            self.duplicate_acks += u64::from(duplicate_acks);
            for (count, least) in self.with_duplicate_acks.iter_mut().zip([1, 3]) {
                *count += u64::from(duplicate_acks >= least);
            }
        }
        self.has_deadlines |= row.deadline_us.is_some();
        if let Some(missed) = row.deadline_missed {
            self.deadlines[0] += 1;
            self.deadlines[1] += u64::from(missed);
        }
        if row.goodput_mbps.is_some() || row.fct_us.is_none() {
            if let Some(start_us) = row.start_us {
                self.first_us = Some(self.first_us.map_or(start_us, |first| first.min(start_us)));
                self.last_us = self.last_us.max(start_us + row.fct_us.unwrap_or(age_us));
            }
            let bytes = if row.fct_us.is_some() { row.delivered_bytes } else { row.size_bytes };
            self.bits += bytes as f64 * 8.0;
        }
    }

    /// The figures of the flows, whose sizes are those that belong.
    fn bin(&self, values: &Values, belongs: impl Fn(usize) -> bool) -> Bin {
        Bin {
            flows: self.flows,
            unfinished: self.unfinished,
            never_started: self.never_started,
            fct_us: values.times(&values.fct_us, &belongs),
            slowdown: values.times(&values.slowdown, &belongs),
            ideal_fct_us: Statistics::of(values.ideals(self.flows, &belongs)),
            goodput_mbps: self.goodput(&values.goodputs(&belongs)),
            fct_breakdown_us: self.breakdown(),
            queueing_us: share(self.waited_us, self.data_packets),
            resent: self.resent(),
            duplicate_acks: DuplicateAcks {
                total: (self.counts_duplicate_acks > 0).then_some(self.duplicate_acks),
                one_or_more: share(self.with_duplicate_acks[0] as f64, self.counts_duplicate_acks),
                three_or_more: share(self.with_duplicate_acks[1] as f64, self.counts_duplicate_acks),
            },
            deadlines: self.has_deadlines.then(|| {
                let [flows, missed] = self.deadlines;
                Deadlines { flows, missed, missed_share: share(missed as f64, flows) }
            }),
        }
    }

    /// A sum over the flows; none without flows: of nothing, nothing was counted.
    pub(super) fn counted(&self, sum: u64) -> Option<u64> {
        (self.flows > 0).then_some(sum)
    }

    /// Sums over the packets of the flows.
    pub(super) fn packets(&self) -> Packets {
        Packets {
            retransmissions: self.counted(self.retransmissions),
            timeouts: self.counted(self.timeouts),
            out_of_order_packets: self.counted(self.out_of_order_packets),
            data_packets: self.counted(self.data_packets),
            out_of_order_share: share(self.out_of_order_packets as f64, self.data_packets),
            duplicate_segments: self.counted(self.duplicate_segments),
        }
    }

    fn breakdown(&self) -> FctBreakdownMeans {
        let [transmission, host, leaf, spine, last, reordering, timeouts, acknowledgement, window, pause] =
            self.fct_breakdown_us.map(|(sum, count)| share(sum, count));
        FctBreakdownMeans {
            transmission,
            host,
            leaf,
            spine,
            last,
            reordering,
            timeouts,
            acknowledgement,
            window,
            pause,
        }
    }

    fn goodput(&self, sample: &Sample) -> Goodput {
        let known = |values: &[f64]| (!values.is_empty()).then(|| sum(values));
        let mean = sample.bounds(|values| known(values).map(|sum| sum / values.len() as f64));
        let sum = sample.bounds(known);
        let at = |q| sample.at(q).value;
        // Bits a microsecond are megabits a second.
        let together = self
            .first_us
            .filter(|first| self.last_us > *first)
            .map(|first| self.bits / (self.last_us - first));
        let is_open = self.unfinished + self.never_started > 0;
        let bound = |mark: Mark| mark.at_most;
        Goodput {
            mean: mean.value,
            min: at(0.0),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            max: at(1.0),
            sum: sum.value,
            together: together.filter(|_| !is_open),
            at_most: is_open.then(|| GoodputBounds { mean: bound(mean), sum: bound(sum), together }),
        }
    }

    fn resent(&self) -> Resent {
        Resent {
            after_loss: self.counted(self.after_loss),
            after_reordering: self.counted(self.after_reordering),
            after_timeout: self.counted(self.after_timeout),
            share: share(self.retransmissions as f64, self.segments_sent),
            reordering_share: share(self.after_reordering as f64, self.segments_sent),
        }
    }
}

/// Jain's index of fairness: the square of the sum over the number times the sum of squares (Jain,
/// Chiu and Hawe, 1984).
fn fairness(values: &[f64]) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let sum: f64 = values.iter().sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// `part` / `whole`, or none of nothing.
pub(super) fn share(part: f64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}
