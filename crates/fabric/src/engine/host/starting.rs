//! The beginning of a flow at its sender, what its application writes, and what its host computes.

use weft_packet::FlowId;
use weft_traffic::{Point, Turn};
use weft_transport::{Multipath, Protocol, Transports, Written};

use crate::engine::event_set::EventKind;

use super::{Host, HostCall, HostOutbox, RunPlan, Sender, Side};

impl<T: Transports> Host<T> {
    /// One of its flows starts; `written`: how much of it is there, if not all.
    pub fn start_flow(
        &mut self,
        plan: &RunPlan<'_, T>,
        flow: FlowId,
        written: Option<Written>,
        here: &mut HostCall<'_, '_, '_>,
    ) {
        let mut end = plan.end(flow, Side::Sender, &self.rest.virtual_switch.scheme);
        if let Some(entropies) = plan.entropies(flow, here) {
            end.set_entropies(&entropies);
        }
        let protocol = plan.transport(plan.traffic(flow));
        let mut state = protocol.sender(plan.size(flow));
        if let Some(written) = written {
            protocol.limit(&mut state, written);
        }
        if protocol.is_rnic_scheduled() {
            end.pair.is_rnic_scheduled = true;
            end.pair.lane = here.nic.lane_of(end.first.class());
        }
        let number = plan.directory.number(Side::Sender, flow);
        let place = self.senders.open(number, |_| Sender { state, end });
        let sender = self.senders.at(place);
        let protocol = plan.of(&sender.end);
        let mut out = HostOutbox { end: &mut sender.end, rest: &mut self.rest, here };
        protocol.start(&mut sender.state, &mut out);
        if protocol.is_rnic_scheduled() {
            self.take_turn(plan, number, here);
        }
        if let Some(dependencies) = plan.dependencies {
            if dependencies.waits(flow.0) {
                self.rest.log.started.push((flow, here.nic.now()));
            }
            self.reach(plan, flow, Point::Started, here);
        }
    }

    /// A point of one of its flows or computations is there: what waited for nothing else begins.
    #[cold]
    pub fn reach(
        &mut self,
        plan: &RunPlan<'_, T>,
        node: FlowId,
        point: Point,
        here: &mut HostCall<'_, '_, '_>,
    ) {
        let (Some(dependencies), Some(waiting)) = (plan.dependencies, &mut self.rest.waiting) else { return };
        let now = here.nic.now();
        waiting.reach(dependencies, (node, point), now, |due, next| {
            here.nic.set_flow_timer(due, EventKind::Ready, next);
        });
    }

    /// An event of one of its computations.
    #[cold]
    pub fn compute(&mut self, plan: &RunPlan<'_, T>, node: FlowId, here: &mut HostCall<'_, '_, '_>) {
        let (Some(dependencies), Some(waiting)) = (plan.dependencies, &mut self.rest.waiting) else { return };
        let begins = match waiting.turn(dependencies, node) {
            Turn::Waits => None,
            Turn::Begins => Some(node),
            Turn::Done(next) => {
                self.reach(plan, node, Point::Done, here);
                next.map(FlowId)
            }
        };
        if let Some(next) = begins {
            let done = here.nic.now().saturating_add(dependencies.takes(next.0));
            here.nic.set_flow_timer(done, EventKind::Ready, next);
            self.reach(plan, next, Point::Started, here);
        }
    }

    /// The application of one of its flows has written so much by now.
    pub fn write(
        &mut self,
        plan: &RunPlan<'_, T>,
        flow: FlowId,
        written: Written,
        here: &mut HostCall<'_, '_, '_>,
    ) {
        let number = plan.directory.number(Side::Sender, flow);
        let Some(sender) = self.senders.get(number) else { return };
        let protocol = plan.of(&sender.end);
        let mut out = HostOutbox { end: &mut sender.end, rest: &mut self.rest, here };
        protocol.sender_writes(&mut sender.state, written, &mut out);
        if protocol.is_rnic_scheduled() {
            self.take_turn(plan, number, here);
        }
    }
}
