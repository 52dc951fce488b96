//! The collectives that libraries have, whoever asks for them: a table of its own, a training job,
//! or a trace.

use std::sync::Arc;

use weft_packet::HostId;
use weft_units::Rate;

use super::all_to_all::AllToAll;
use super::binomial::Binomial;
use super::draft::Op;
use super::exchange::{Builder, Carriage, Name, part};
use super::halving::Halving;
use super::ring::Ring;
use super::spec::{AllReduceAlgorithm, GatherAlgorithm};
use super::tree::Tree;

/// An all-reduce.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllReduce {
    pub bytes: u64,
    pub algorithm: AllReduceAlgorithm,
    pub chunks: usize,
    pub reduction_rate: Option<Rate>,
}

/// An all-gather, or a reduce-scatter, which adds up: half of an all-reduce.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Half {
    pub bytes: u64,
    pub algorithm: GatherAlgorithm,
    pub chunks: usize,
    pub adds: bool,
    pub reduction_rate: Option<Rate>,
}

impl AllReduce {
    /// The algorithm, as specs write it.
    pub const fn name(&self) -> &'static str {
        match self.algorithm {
            AllReduceAlgorithm::Ring => "ring",
            AllReduceAlgorithm::Tree => "tree",
            AllReduceAlgorithm::DoubleTree => "double-tree",
            AllReduceAlgorithm::HalvingDoubling => "halving-doubling",
        }
    }

    /// Whether it can be with so many ranks.
    pub const fn fits(&self, ranks: usize) -> bool {
        !matches!(self.algorithm, AllReduceAlgorithm::HalvingDoubling) || ranks.is_power_of_two()
    }

    /// The least that it takes at so many ranks, in bytes: one for every message.
    pub const fn least_bytes(&self, ranks: usize) -> u64 {
        let parts = match self.algorithm {
            AllReduceAlgorithm::Tree => 1,
            AllReduceAlgorithm::DoubleTree => 2,
            AllReduceAlgorithm::Ring | AllReduceAlgorithm::HalvingDoubling => ranks,
        };
        parts as u64 * self.chunks as u64
    }
}

impl Half {
    /// The algorithm, as specs write it.
    pub const fn name(&self) -> &'static str {
        match self.algorithm {
            GatherAlgorithm::Ring => "ring",
            GatherAlgorithm::HalvingDoubling => "halving-doubling",
        }
    }
}

impl Builder<'_, '_> {
    /// Puts in an all-reduce. Bus bandwidth counts 2 (N - 1) / N of the bytes, as NCCL's tests do
    /// (`doc/PERFORMANCE.md`).
    pub fn all_reduce(
        &mut self,
        name: Name,
        what: AllReduce,
        carriage: Carriage,
        ranks: (&Arc<[HostId]>, &[Op]),
    ) -> Vec<Op> {
        let AllReduce { bytes, algorithm, chunks, reduction_rate } = what;
        let others = ranks.0.len() - 1;
        let factor = 2.0 * others as f64 / ranks.0.len() as f64;
        self.exchange(name, (Some(bytes), Some(factor)), carriage, ranks, |exchange| match algorithm {
            AllReduceAlgorithm::Ring => {
                Ring { bytes, chunks, reduces: others, steps: 2 * others, reduction_rate }.put(exchange);
            }
            AllReduceAlgorithm::Tree | AllReduceAlgorithm::DoubleTree => {
                let is_double = algorithm == AllReduceAlgorithm::DoubleTree;
                Tree { bytes, chunks, is_double, reduction_rate }.put(exchange);
            }
            AllReduceAlgorithm::HalvingDoubling => {
                Halving { bytes, chunks, halves: true, doubles: true, reduction_rate }.put(exchange);
            }
        })
    }

    /// Puts in an all-gather or a reduce-scatter, which count (N - 1) / N of the bytes on the bus.
    pub fn half(
        &mut self,
        name: Name,
        what: Half,
        carriage: Carriage,
        ranks: (&Arc<[HostId]>, &[Op]),
    ) -> Vec<Op> {
        let Half { bytes, algorithm, chunks, adds, reduction_rate } = what;
        let others = ranks.0.len() - 1;
        let factor = others as f64 / ranks.0.len() as f64;
        self.exchange(name, (Some(bytes), Some(factor)), carriage, ranks, |exchange| match algorithm {
            GatherAlgorithm::Ring => {
                let reduces = if adds { others } else { 0 };
                Ring { bytes, chunks, reduces, steps: others, reduction_rate }.put(exchange);
            }
            GatherAlgorithm::HalvingDoubling => {
                Halving { bytes, chunks, halves: adds, doubles: !adds, reduction_rate }.put(exchange);
            }
        })
    }

    /// Puts in a broadcast or a reduce, which count all of the bytes on the bus.
    pub fn binomial(
        &mut self,
        name: Name,
        what: Binomial,
        carriage: Carriage,
        ranks: (&Arc<[HostId]>, &[Op]),
    ) -> Vec<Op> {
        self.exchange(name, (Some(what.bytes), Some(1.0)), carriage, ranks, |exchange| what.put(exchange))
    }

    /// Puts in a barrier: an all-reduce of one byte on a tree, which is there for any number of
    /// ranks: no rank goes on before all have come. It has no bus bandwidth.
    pub fn barrier(&mut self, name: Name, carriage: Carriage, ranks: (&Arc<[HostId]>, &[Op])) -> Vec<Op> {
        self.exchange(name, (None, None), carriage, ranks, |exchange| {
            Tree { bytes: 1, chunks: 1, is_double: false, reduction_rate: None }.put(exchange);
        })
    }

    /// Puts in an all-to-all of even parts, which counts (N - 1) / N of the bytes on the bus.
    pub fn all_to_all(
        &mut self,
        name: Name,
        bytes: u64,
        parallel: Option<usize>,
        carriage: Carriage,
        ranks: (&Arc<[HostId]>, &[Op]),
    ) -> Vec<Op> {
        let count = ranks.0.len();
        let factor = (count - 1) as f64 / count as f64;
        self.exchange(name, (Some(bytes), Some(factor)), carriage, ranks, |exchange| {
            let even = |_: usize, to: usize| part(bytes, count, to);
            AllToAll { bytes: &even, parallel, first: None, step: 0 }.put(exchange);
        })
    }
}
