//! What flows and computations of a host wait for: what it has yet to learn.

use weft_packet::{FlowId, HostId};
use weft_traffic::{Dependencies, Point};
use weft_units::Time;

/// A count for each flow that begins at a host, and each computation there: what is missing before it begins.
#[derive(Debug)]
pub struct Waiting(Box<[u32]>);

impl Waiting {
    /// At the beginning, of each host.
    pub fn at_hosts(
        dependencies: &Dependencies,
        flow_src: impl Fn(u32) -> HostId,
        hosts: usize,
    ) -> Vec<Self> {
        let count = |host| vec![0; dependencies.count(HostId(host as u16))].into_boxed_slice();
        let mut waiting: Vec<Self> = (0..hosts).map(|host| Self(count(host))).collect();
        for node in 0..dependencies.nodes() {
            let host = dependencies.host(node).unwrap_or_else(|| flow_src(node));
            waiting[host.index()].0[dependencies.number(node) as usize] = dependencies.needs(node);
        }
        waiting
    }

    /// A point of a flow or computation is there, and the host knows: calls with what begins by it, and when that is due.
    pub fn reach(
        &mut self,
        dependencies: &Dependencies,
        (node, point): (FlowId, Point),
        now: Time,
        mut begin: impl FnMut(Time, FlowId),
    ) {
        for next in dependencies.dependents(node.0, point) {
            let left = &mut self.0[dependencies.number(next) as usize];
            // One that needs fewer than lead to it has begun already.
            if *left == 1 {
                begin(dependencies.due(next, now), FlowId(next));
            }
            *left = left.saturating_sub(1);
        }
    }
}
