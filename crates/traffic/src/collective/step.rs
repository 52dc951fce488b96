//! One step of a training job.

use std::sync::Arc;

use weft_packet::HostId;
use weft_units::{Purpose, Span, Stream};

use super::CollectiveKind;
use super::all_to_all::AllToAll;
use super::draft::{FlowDraft, Op, Point, Role};
use super::exchange::{Builder, CollectiveDraft, Name, part};
use super::job::Job;
use super::pipeline::{Task, order};

/// A step while it is put in.
pub(crate) struct Step<'j, 's> {
    job: &'j Job<'s>,
    number: u32,
    /// Row of the step among the collectives.
    row: u32,
    /// By rank: what it does last, so far.
    at: Vec<Op>,
    /// By rank: the last of its buckets.
    reduced: Vec<Option<Op>>,
    /// By stage, but for the last, then microbatch, then lane: what goes on, and what comes back.
    ahead: Vec<Vec<Vec<Op>>>,
    back: Vec<Vec<Vec<Op>>>,
}

impl<'j, 's> Step<'j, 's> {
    /// Step `number` of a job.
    pub const fn new(job: &'j Job<'s>, number: u32) -> Self {
        Self { job, number, row: 0, at: Vec::new(), reduced: Vec::new(), ahead: Vec::new(), back: Vec::new() }
    }

    /// Ranks of a stage.
    fn lanes(&self) -> usize {
        self.job.data * self.tensor()
    }

    const fn tensor(&self) -> usize {
        self.job.spec.tensor as usize
    }

    const fn stages(&self) -> usize {
        self.job.spec.pipeline as usize
    }

    fn rank(&self, stage: usize, lane: usize) -> usize {
        stage * (self.job.hosts.len() / self.stages()) + lane
    }

    fn name(&self, what: &str, kind: CollectiveKind, algorithm: &'static str) -> Name {
        let label = format!("{}.{what}", self.job.label);
        Name { label, kind, algorithm, iteration: self.number, step: Some(self.row) }
    }

    /// Puts it in: it begins with these, by rank. Returns its end.
    pub fn put(mut self, builder: &mut Builder<'_, '_>, entries: Vec<Op>) -> Vec<Op> {
        self.row = builder.collectives.len() as u32;
        builder.collectives.push(CollectiveDraft {
            name: Name {
                label: self.job.label.clone(),
                kind: CollectiveKind::Step,
                algorithm: "",
                iteration: self.number,
                step: None,
            },
            size_bytes: None,
            bus_factor: None,
            hosts: Arc::clone(&self.job.hosts),
            entries: entries.clone(),
            exits: Vec::new(),
        });
        self.at = entries;
        self.reduced = vec![None; self.job.hosts.len()];
        self.put_between_stages(builder);
        let (schedule, microbatches) = (self.job.spec.schedule, self.job.spec.microbatches as usize);
        for stage in 0..self.stages() {
            for task in order(schedule, stage, self.stages(), microbatches) {
                self.put_task(builder, stage, task, microbatches);
            }
        }
        let end = |rank: usize| {
            let last = [Some(self.at[rank]), self.reduced[rank]].into_iter().flatten();
            let all: Vec<(Op, Point)> = last.map(|op| (op, Point::Done)).collect();
            builder.draft.join(self.job.hosts[rank], self.job.spec.optimizer, all)
        };
        let exits: Vec<Op> = (0..self.job.hosts.len()).map(end).collect();
        builder.collectives[self.row as usize].exits.clone_from(&exits);
        exits
    }

    /// Adds the flows between stages: they wait for nothing so far.
    fn put_between_stages(&mut self, builder: &mut Builder<'_, '_>) {
        let Some(bytes) = self.job.spec.activation.map(weft_units::Bytes::as_u64) else { return };
        let microbatches = self.job.spec.microbatches as usize;
        let carriage = self.job.carriage;
        let class = carriage.class.unwrap_or_else(|| builder.classes.by_size(bytes));
        let transport = carriage.transport.unwrap_or_else(|| builder.carriers.of_class(class));
        let mut send = |from: usize, to: usize, microbatch: usize, lane: usize| {
            let flow = FlowDraft {
                src: self.job.hosts[self.rank(from, lane)],
                dst: self.job.hosts[self.rank(to, lane)],
                size_bytes: bytes,
                class,
                transport,
                role: Role { collective: Some(self.row), step: microbatch as u32 },
            };
            builder.draft.flow(flow, Span::ZERO)
        };
        let mut all = |from: usize, to: usize| -> Vec<Vec<Op>> {
            let of = |microbatch| (0..self.lanes()).map(|lane| send(from, to, microbatch, lane)).collect();
            (0..microbatches).map(of).collect()
        };
        let ahead = (1..self.stages()).map(|stage| all(stage - 1, stage)).collect();
        let back = (1..self.stages()).map(|stage| all(stage, stage - 1)).collect();
        (self.ahead, self.back) = (ahead, back);
    }

    /// Every rank of a stage computes a microbatch, and what belongs to that.
    fn put_task(&mut self, builder: &mut Builder<'_, '_>, stage: usize, task: Task, microbatches: usize) {
        let spec = self.job.spec;
        let (takes, comes, goes) = match task {
            Task::Forward(microbatch) => (
                spec.forward,
                stage.checked_sub(1).and_then(|before| Some(self.ahead.get(before)?[microbatch].clone())),
                self.ahead.get(stage).map(|ahead| ahead[microbatch].clone()),
            ),
            Task::Backward(microbatch) => (
                spec.backward,
                self.back.get(stage).map(|back| back[microbatch].clone()),
                stage.checked_sub(1).and_then(|before| Some(self.back.get(before)?[microbatch].clone())),
            ),
        };
        let is_last = task == Task::Backward(microbatches - 1);
        let pieces = if is_last && spec.gradient.is_some() { spec.buckets as usize } else { 1 };
        for piece in 0..pieces {
            let takes = Span::from_ps(part(takes.as_ps(), pieces, piece));
            for lane in 0..self.lanes() {
                let rank = self.rank(stage, lane);
                let came = comes.as_ref().filter(|_| piece == 0).map(|comes| (comes[lane], Point::Received));
                let before = [(self.at[rank], Point::Done)];
                self.at[rank] =
                    builder.draft.join(self.job.hosts[rank], takes, before.into_iter().chain(came));
            }
            if is_last {
                self.put_bucket(builder, stage, piece, pieces);
            }
        }
        self.put_tensors(builder, stage);
        self.put_experts(builder, stage, task);
        if let Some(goes) = goes {
            for (lane, &flow) in goes.iter().enumerate() {
                builder.draft.after(flow, self.at[self.rank(stage, lane)], Point::Done);
            }
        }
    }

    /// The ranks of these numbers, with their hosts and what they do last.
    fn group(&self, ranks: &[usize]) -> (Arc<[HostId]>, Vec<Op>) {
        (
            ranks.iter().map(|&rank| self.job.hosts[rank]).collect(),
            ranks.iter().map(|&rank| self.at[rank]).collect(),
        )
    }

    /// Tensor groups add up what they computed.
    fn put_tensors(&mut self, builder: &mut Builder<'_, '_>, stage: usize) {
        let Some(bytes) = self.job.spec.tensor_size else { return };
        for data in 0..self.job.data {
            let ranks: Vec<usize> =
                (0..self.tensor()).map(|tensor| self.rank(stage, data * self.tensor() + tensor)).collect();
            let (hosts, entries) = self.group(&ranks);
            let what = self.job.spec.all_reduce(bytes.as_u64());
            let name = self.name("tensor", CollectiveKind::AllReduce, what.name());
            let exits = builder.all_reduce(name, what, self.job.carriage, (&hosts, &entries));
            ranks.iter().zip(exits).for_each(|(&rank, exit)| self.at[rank] = exit);
        }
    }

    /// The ranks of a stage that are parallel by data, for each place in a tensor group.
    fn data_groups(&self, stage: usize) -> Vec<Vec<usize>> {
        let lane = |data, tensor| self.rank(stage, data * self.tensor() + tensor);
        let group = |tensor| (0..self.job.data).map(|data| lane(data, tensor)).collect();
        (0..self.tensor()).map(group).collect()
    }

    /// Tokens go to experts, and come back.
    fn put_experts(&mut self, builder: &mut Builder<'_, '_>, stage: usize, task: Task) {
        let Some(bytes) = self.job.spec.expert_size.map(weft_units::Bytes::as_u64) else { return };
        let carriage = self.job.carriage;
        let parts = self.uneven_parts(bytes, stage, task);
        for ranks in self.data_groups(stage) {
            for what in ["dispatch", "combine"] {
                let (hosts, entries) = self.group(&ranks);
                let name = self.name(what, CollectiveKind::AllToAll, "");
                let exits = match &parts {
                    None => builder.all_to_all(name, bytes, None, carriage, (&hosts, &entries)),
                    Some(parts) => {
                        // What comes back from a rank is what went there.
                        let there = |_: usize, to: usize| parts[to];
                        let back = |from: usize, _: usize| parts[from];
                        let bytes_of: &dyn Fn(usize, usize) -> u64 =
                            if what == "dispatch" { &there } else { &back };
                        let all = AllToAll { bytes: bytes_of, parallel: None, first: None, step: 0 };
                        builder.exchange(
                            name,
                            (Some(bytes), None),
                            carriage,
                            (&hosts, &entries),
                            |exchange| {
                                all.put(exchange);
                            },
                        )
                    }
                };
                ranks.iter().zip(exits).for_each(|(&rank, exit)| self.at[rank] = exit);
            }
        }
    }

    /// Bytes that each of the data-parallel ranks gets from each, if that is not even. A microbatch
    /// goes to the same experts forward and backward, and so do all of a tensor group.
    fn uneven_parts(&self, bytes: u64, stage: usize, task: Task) -> Option<Vec<u64>> {
        let popularity = self.job.popularity?;
        let (Task::Forward(microbatch) | Task::Backward(microbatch)) = task;
        let layer = self.number as usize * self.stages() + stage;
        let layer = (layer * self.job.spec.microbatches as usize + microbatch) as u64;
        // The upper half begins with a one: those of collectives begin with a zero.
        let entity = 1 << 63 | (self.job.index as u64) << 32 | layer;
        let mut random = Stream::new(self.job.seed, Purpose::Experts, entity);
        Some(popularity.parts(bytes, self.job.data, &mut random))
    }

    /// Data-parallel ranks add up a bucket of gradients, once they have computed it and are through
    /// with the one before.
    fn put_bucket(&mut self, builder: &mut Builder<'_, '_>, stage: usize, bucket: usize, buckets: usize) {
        let Some(gradient) = self.job.spec.gradient else { return };
        let what = self.job.spec.all_reduce(part(gradient.as_u64(), buckets, bucket));
        for ranks in self.data_groups(stage) {
            let (hosts, computed) = self.group(&ranks);
            let entry = |(&rank, &computed): (&usize, &Op)| {
                let before = self.reduced[rank].map(|before| (before, Point::Done));
                let all = [(computed, Point::Done)].into_iter().chain(before);
                builder.draft.join(self.job.hosts[rank], Span::ZERO, all)
            };
            let entries: Vec<Op> = ranks.iter().zip(&computed).map(entry).collect();
            let name = self.name("gradient", CollectiveKind::AllReduce, what.name());
            let exits = builder.all_reduce(name, what, self.job.carriage, (&hosts, &entries));
            ranks.iter().zip(exits).for_each(|(&rank, exit)| self.reduced[rank] = Some(exit));
        }
    }
}
