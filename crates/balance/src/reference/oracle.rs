//! The oracle: a perfect per-packet choice, as a reference.
//!
//! `kind = "path"`: where routing leaves a choice, a packet takes the path by which it reaches the
//! last switch before its receiver first, by all queues of the fabric as they are at that moment
//! and by all packets that are on their way to them. The engine makes this choice (`oracle.rs` in
//! `crates/fabric/src/engine`), since no node could. Here is the receiving host: a segment that
//! overtook another waits for it, so that the transport sees segments in order. Such a segment
//! waits for `hold` at most: what is missing for longer was lost, and the transport has to repair
//! it.
//!
//! `kind = "pooled"`: there is no choice. The fabric between the racks becomes one queue: one link
//! from each rack with the rates of its uplinks taken together, one link back, and one switch
//! between. The topology is changed for this variant (`Fabric::pooled`), so that nothing of it is
//! here.
//!
//! What is proven of either, and what is not, stands in docs/schemes/oracle.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet};
use weft_units::Span;

use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

/// Parameters of the oracle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Kind of the reference: `"path"`, the best path for each packet; or `"pooled"`, one queue for
    /// the whole fabric. Source: none, a reference of this project.
    pub kind: OracleKind,
    /// With `"path"`: how long the receiver's edge holds a segment that overtook another; 0s for no
    /// holding (time). Source: none; longer than the differences of paths that the choice leaves,
    /// and short against a retransmission timeout.
    pub hold: Span,
}

/// The mode of the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OracleKind {
    /// Every packet takes the path that brings it to its last switch first.
    Path,
    /// The fabric between racks is one queue.
    Pooled,
}

impl Default for Params {
    fn default() -> Self {
        Self { kind: OracleKind::Path, hold: Span::from_us(50) }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if self.hold > Span::from_s(1) {
            return Err(ParameterError { key: "hold", found: self.hold.to_string(), allowed: "0s to 1s" });
        }
        Ok(())
    }
}

/// Work of hosts for the oracle.
#[derive(Debug)]
pub struct Oracle {
    hold: Span,
    held: u64,
    given_up: u64,
}

/// One flow at its receiver.
#[derive(Debug, Default)]
pub struct Flow {
    /// The segment behind the last one that was passed up in order, or that was given up.
    expected: u32,
    /// Segments behind a gap, by number.
    held: Vec<Packet>,
}

impl Flow {
    /// Passes up what is held and in turn now, and says whether there was any.
    fn release<C: HostContext + ?Sized>(&mut self, cx: &mut C) -> bool {
        let mut ready = 0;
        while let Some(head) = self.held.get(ready).filter(|head| head.seq <= self.expected) {
            self.expected = self.expected.max(head.seq.saturating_add(1));
            ready += 1;
        }
        self.held.drain(..ready).for_each(|packet| cx.deliver(packet));
        ready > 0
    }
}

impl HostScheme for Oracle {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo<'_>) -> Self {
        Self { hold: params.hold, held: 0, given_up: 0 }
    }

    fn hooks(params: &Params) -> HostHooks {
        let holds = params.kind == OracleKind::Path && !params.hold.is_zero();
        // Whether there are several paths, an edge knows that sends.
        HostHooks { on_send: holds, on_receive: holds, ..HostHooks::default() }
    }

    fn on_send<C: HostContext + ?Sized>(&mut self, _: &mut C, _: &mut Flow, _: &mut Packet) {}

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        // Over one path nothing is overtaken: what is missing there was lost.
        if packet.kind != Kind::Data || cx.routes_to(packet.src) < 2 {
            return cx.deliver(packet);
        }
        if packet.seq > flow.expected {
            self.held += 1;
            let place = flow.held.partition_point(|held| held.seq <= packet.seq);
            flow.held.insert(place, packet);
            if flow.held.len() == 1 {
                cx.set_flow_timer(self.hold);
            }
            return;
        }
        flow.expected = flow.expected.max(packet.seq.saturating_add(1));
        cx.deliver(packet);
        if flow.release(cx) && !flow.held.is_empty() {
            cx.set_flow_timer(self.hold);
        }
    }

    /// The first gap was there for too long: what is behind it goes up, to the next gap.
    fn flow_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        let Some(head) = flow.held.first() else { return };
        self.given_up += 1;
        flow.expected = head.seq;
        flow.release(cx);
        if !flow.held.is_empty() {
            cx.set_flow_timer(self.hold);
        }
    }

    fn held(flow: &Flow) -> usize {
        flow.held.len()
    }

    fn state_bytes(&self) -> u64 {
        0
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("held", self.held);
        count("gaps_given_up", self.given_up);
    }
}

#[cfg(test)]
mod tests {
    use weft_packet::HostId;

    use super::*;
    use crate::testing::{FakeHost, HOSTS_PER_RACK, packet, with};

    /// The order in which these segments go up that come at these microseconds; timers that are due
    /// until the end go off.
    fn passed(arrivals: &[(u64, u32)]) -> Vec<u32> {
        let mut host = FakeHost::new(4, 1);
        let (mut oracle, mut flow) = (Oracle::new(&Params::default(), &FakeHost::info(1)), Flow::default());
        let begin = host.now;
        for &(us, seq) in arrivals {
            let at = begin + Span::from_us(us);
            while host.timer.is_some_and(|due| due <= at) && host.advance_to_timer() {
                oracle.flow_timer(&mut host, &mut flow);
            }
            host.now = at;
            oracle.on_receive(
                &mut host,
                &mut flow,
                with(packet(1), |sent| {
                    sent.src = HostId(HOSTS_PER_RACK);
                    sent.seq = seq;
                }),
            );
        }
        while host.advance_to_timer() {
            oracle.flow_timer(&mut host, &mut flow);
        }
        assert_eq!(Oracle::held(&flow), 0);
        host.delivered_seqs()
    }

    #[test]
    fn segments_that_overtook_others_go_up_behind_them() {
        assert_eq!(passed(&[(0, 0), (1, 2), (2, 4), (3, 3), (9, 1), (9, 5)]), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn what_is_missing_for_longer_was_lost_and_holds_nothing_up_any_more() {
        // Segment 1 never came in time: after 50 us the rest goes up, and the repair goes up when
        // it comes.
        assert_eq!(passed(&[(0, 0), (10, 2), (20, 3), (70, 4), (80, 1), (81, 5)]), [0, 2, 3, 4, 1, 5]);
    }

    #[test]
    fn only_choosing_paths_needs_an_edge() {
        let hooks = |params: &Params| Oracle::hooks(params);
        assert!(hooks(&Params::default()).on_receive);
        let pooled = Params { kind: OracleKind::Pooled, ..Params::default() };
        let free = Params { hold: Span::ZERO, ..Params::default() };
        assert_eq!([hooks(&pooled), hooks(&free)], [HostHooks::default(); 2]);
    }
}
