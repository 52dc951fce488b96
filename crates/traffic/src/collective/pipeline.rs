//! Microbatches pass through stages, and their gradients back: `GPipe` (Huang et al., `NeurIPS`
//! 2019, §2.3) and one forward, one backward (Narayanan et al., `PipeDream-Flush`, SC 2021, §2.2).

use weft_units::Span;

use super::draft::{Op, Point};
use super::exchange::Exchange;
use super::spec::PipelineSchedule;

/// One thing that a stage computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// A microbatch on its way forward.
    Forward(usize),
    /// And on its way back.
    Backward(usize),
}

/// Computations of a stage, of so many, for so many microbatches, in its order.
pub(crate) fn order(
    schedule: PipelineSchedule,
    stage: usize,
    stages: usize,
    microbatches: usize,
) -> Vec<Task> {
    let ahead = match schedule {
        PipelineSchedule::Gpipe => microbatches,
        // So many are under way before the first comes back.
        PipelineSchedule::OneForwardOneBackward => (stages - 1 - stage).min(microbatches),
    };
    let mut tasks: Vec<Task> = (0..ahead).map(Task::Forward).collect();
    for microbatch in ahead..microbatches {
        tasks.extend([Task::Forward(microbatch), Task::Backward(microbatch - ahead)]);
    }
    tasks.extend((microbatches - ahead..microbatches).map(Task::Backward));
    tasks
}

/// A pipeline of stages that are equally wide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipeline {
    /// Bytes from a stage to the next for a microbatch, and back, at each rank.
    pub bytes: u64,
    pub stages: usize,
    pub microbatches: usize,
    pub forward: Span,
    pub backward: Span,
    pub schedule: PipelineSchedule,
}

impl Pipeline {
    /// Rank i of a stage is rank `stage x width + i`. It computes one thing at a time, in its
    /// order.
    pub fn put(&self, exchange: &mut Exchange<'_>) {
        let width = exchange.ranks() / self.stages;
        for lane in 0..width {
            self.put_lane(exchange, lane, width);
        }
    }

    fn put_lane(&self, exchange: &mut Exchange<'_>, lane: usize, width: usize) {
        let rank = |stage: usize| stage * width + lane;
        let mut send = |from: usize, to: usize| -> Vec<Op> {
            let one = |microbatch| exchange.send((rank(from), rank(to)), self.bytes, microbatch, Span::ZERO);
            (0..self.microbatches).map(one).collect()
        };
        let ahead: Vec<Vec<Op>> = (1..self.stages).map(|stage| send(stage - 1, stage)).collect();
        let back: Vec<Vec<Op>> = (1..self.stages).map(|stage| send(stage, stage - 1)).collect();
        for stage in 0..self.stages {
            let mut before = exchange.entry(rank(stage));
            for task in order(self.schedule, stage, self.stages, self.microbatches) {
                let (takes, comes, goes) = match task {
                    Task::Forward(microbatch) => (
                        self.forward,
                        stage.checked_sub(1).map(|before| ahead[before][microbatch]),
                        ahead.get(stage).map(|ahead| ahead[microbatch]),
                    ),
                    Task::Backward(microbatch) => (
                        self.backward,
                        back.get(stage).map(|back| back[microbatch]),
                        stage.checked_sub(1).map(|before| back[before][microbatch]),
                    ),
                };
                let comes = comes.map(|op| (op, Point::Received));
                let host = exchange.host(rank(stage));
                let done = exchange.draft.join(host, takes, [(before, Point::Done)].into_iter().chain(comes));
                if let Some(goes) = goes {
                    exchange.draft.after(goes, done, Point::Done);
                }
                before = done;
            }
            exchange.end_with(rank(stage), before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_computes_in_the_published_order() {
        use Task::{Backward as B, Forward as F};
        let one = PipelineSchedule::OneForwardOneBackward;
        assert_eq!(order(one, 0, 3, 4), [F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)]);
        assert_eq!(order(one, 2, 3, 2), [F(0), B(0), F(1), B(1)]);
        assert_eq!(order(PipelineSchedule::Gpipe, 1, 3, 2), [F(0), F(1), B(0), B(1)]);
        assert_eq!(order(one, 0, 9, 2), [F(0), F(1), B(0), B(1)], "fewer microbatches than stages");
    }
}
