//! Dependencies of flows and computations of a host: the data that it lacks yet.

use weft_packet::{FlowId, HostId};
use weft_traffic::{Dependencies, Point, ProcessorQueue, Turn};
use weft_units::Time;

/// Dependencies of flows and computations of a host.
#[derive(Debug)]
pub struct Waiting {
    /// A count for each flow that begins at the host, and each computation there: what is missing
    /// before it begins.
    missing: Box<[u32]>,
    /// Processors of the host, on which computations take turns.
    processors: Box<[ProcessorQueue]>,
}

impl Waiting {
    /// At the beginning, of each host.
    pub fn at_hosts(
        dependencies: &Dependencies,
        flow_src: impl Fn(u32) -> HostId,
        hosts: usize,
    ) -> Vec<Self> {
        let of = |host: usize| {
            let host = HostId(host as u16);
            let missing = vec![0; dependencies.count(host)].into_boxed_slice();
            Self {
                missing,
                processors: vec![ProcessorQueue::default(); dependencies.processors(host)].into_boxed_slice(),
            }
        };
        let mut waiting: Vec<Self> = (0..hosts).map(of).collect();
        for node in 0..dependencies.nodes() {
            let host = dependencies.host(node).unwrap_or_else(|| flow_src(node));
            waiting[host.index()].missing[dependencies.number(node) as usize] = dependencies.needs(node);
        }
        waiting
    }

    /// An event of one of the computations: one that takes no turns is done.
    pub fn turn(&mut self, dependencies: &Dependencies, node: FlowId) -> Turn {
        let processor = dependencies.processor(node.0);
        processor.map_or(Turn::Done(None), |number| self.processors[number as usize].take(node.0))
    }

    /// A point of a flow or computation is there, and the host knows: calls with what begins by it,
    /// and when its first event is.
    pub fn reach(
        &mut self,
        dependencies: &Dependencies,
        (node, point): (FlowId, Point),
        now: Time,
        mut begin: impl FnMut(Time, FlowId),
    ) {
        for next in dependencies.dependents(node.0, point) {
            let left = &mut self.missing[dependencies.number(next) as usize];
            // One that needs fewer than lead to it has begun already.
            if *left == 1 {
                begin(dependencies.first_event(next, now), FlowId(next));
            }
            *left = left.saturating_sub(1);
        }
    }
}
