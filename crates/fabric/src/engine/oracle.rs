//! The oracle's choice of paths: the one place where a decision knows what no node knows.
//!
//! Where a switch has several next hops for a packet, the oracle finds the path by which the packet
//! reaches the last switch before its receiver first, and the packet follows it to there. It knows
//! every queue as it is, every cable that is down, and every packet that it sent towards a queue
//! and that is not there yet. It assumes that nothing else happens: no packet that starts later
//! gets in between. Between two tiers of switches that is exact where the ports have one queue:
//! what a packet finds at the second switch of its path depends on packets that were sent before
//! alone. With more tiers a later packet may come in between, and the time is an estimate. What a
//! lossy wire or a blackhole takes, it does not know.
//!
//! The privilege is [`Everything`]: all queues, to be read. Nothing but this module can make one,
//! and it gives it to nobody: schemes are in a crate that cannot name it, and get a view of their
//! own switch.

use std::collections::VecDeque;

use weft_packet::{Packet, PortId, Route};
use weft_topology::{RouteEntry, Routes};
use weft_units::Span;

use super::admission::Verdict;
use super::link::FarEnd;
use super::network::{Network, PortStates};
use super::pool::PacketIndex;

/// Memory of the oracle, and room for its search.
#[derive(Debug)]
pub struct Oracle {
    /// By link: the packets that it sent there and that are on their way to the queue, by arrival.
    coming: Vec<VecDeque<Coming>>,
    /// By switch: when and how this search reaches it first.
    reached: Vec<Reached>,
    /// The number of this search.
    search: u64,
    wave: Vec<u32>,
    path: Vec<Step>,
}

/// A packet on its way to a queue.
#[derive(Debug, Clone, Copy)]
struct Coming {
    at_ps: u64,
    service_ps: u64,
}

/// How a search reaches a switch.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// Which search it was.
    search: u64,
    at_ps: u64,
    /// The step that leads there.
    step: Step,
}

/// One hop of a path.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    from: u32,
    link: u32,
    /// Which of how many next hops it is.
    place: usize,
    choices: usize,
}

/// All of the fabric as it is now.
struct Everything<'n> {
    now_ps: u64,
    state: &'n PortStates,
    routes: &'n Routes,
}

impl Everything<'_> {
    /// When a packet that is at the near end of a link at `at_ps` is at the far end; none if the
    /// cable is down, or the queue would not take it. `coming` are those that come to the queue
    /// before.
    fn arrival_ps(&self, link: u32, packet: &Packet, at_ps: u64, coming: &VecDeque<Coming>) -> Option<u64> {
        if !self.state.local_up[link as usize] {
            return None;
        }
        let state = &self.state.links[link as usize];
        let profile = &self.state.profiles[state.profile];
        let scheduled = self.state.scheduled.get(link as usize).and_then(Option::as_ref);
        let mut free_ps = scheduled.map_or(state.busy_until, |port| {
            self.now_ps.saturating_add(port.wait_of_ps(packet, self.now_ps, profile))
        });
        // What has come by now is in the queue.
        let before = coming.iter().skip_while(|other| other.at_ps <= self.now_ps);
        for other in before.take_while(|other| other.at_ps <= at_ps) {
            free_ps = free_ps.max(other.at_ps) + other.service_ps;
        }
        let begin_ps = free_ps.max(at_ps);
        let service_ps = profile.service_ps(packet.wire_bytes);
        let verdict = profile.thresholds.judge(begin_ps - at_ps, service_ps);
        if scheduled.is_none() && verdict == Verdict::Drop {
            return None;
        }
        Some(begin_ps.saturating_add(service_ps + profile.delay_ps))
    }

    /// The ports of a switch that lead to a rack.
    fn next_hops(&self, switch: u32, rack: u16) -> Ports<'_> {
        match self.routes.entry(switch as usize, rack as usize) {
            RouteEntry::Port(port) => Ports::One(port),
            RouteEntry::Group(group) => Ports::Several(self.routes.group(group).0),
            RouteEntry::None => Ports::Several(&[]),
        }
    }
}

enum Ports<'n> {
    One(PortId),
    Several(&'n [PortId]),
}

impl Ports<'_> {
    fn as_slice(&self) -> &[PortId] {
        match self {
            Self::One(port) => std::slice::from_ref(port),
            Self::Several(ports) => ports,
        }
    }
}

impl Oracle {
    /// One that has sent nothing yet, for a fabric of so many links and switches.
    pub fn new(links: usize, switches: usize) -> Self {
        Self {
            coming: vec![VecDeque::new(); links],
            reached: vec![Reached::default(); switches],
            search: 0,
            wave: Vec::new(),
            path: Vec::new(),
        }
    }

    /// Finds the path by which the packet, at the switch `from` at `begin_ps`, is first at the
    /// switch `to`, the one of this rack. Says when that is; none if there is none.
    ///
    /// Queues are first come, first served, so to be somewhere earlier is never to be later behind
    /// it: of each switch on the way only the first arrival counts, and the switches are looked at
    /// hop by hop.
    fn find(
        &mut self,
        all: &Everything<'_>,
        first_port: impl Fn(u32) -> u32,
        packet: &Packet,
        (from, begin_ps): (u32, u64),
        (to, rack): (u32, u16),
    ) -> Option<u64> {
        self.search += 1;
        let mut wave = std::mem::take(&mut self.wave);
        wave.clear();
        wave.push(from);
        self.reached[from as usize] = Reached { search: self.search, at_ps: begin_ps, step: Step::default() };
        let mut next = 0;
        while let Some(&switch) = wave.get(next) {
            next += 1;
            if switch == to {
                continue;
            }
            let at_ps = self.reached[switch as usize].at_ps;
            let ports = all.next_hops(switch, rack);
            let ports = ports.as_slice();
            for (place, port) in ports.iter().enumerate() {
                let link = first_port(switch) + u32::from(port.0);
                let coming = &self.coming[link as usize];
                let Some(at_ps) = all.arrival_ps(link, packet, at_ps, coming) else { continue };
                let far = all.state.links[link as usize].far_end().switch;
                let Some(seen) = self.reached.get_mut(far as usize) else { continue };
                let is_new = seen.search != self.search;
                if is_new || at_ps < seen.at_ps {
                    let step = Step { from: switch, link, place, choices: ports.len() };
                    *seen = Reached { search: self.search, at_ps, step };
                }
                if is_new {
                    wave.push(far);
                }
            }
        }
        self.wave = wave;
        Some(self.reached[to as usize]).filter(|last| last.search == self.search).map(|last| last.at_ps)
    }

    /// Notes the path that was found, and that the packet comes to the queues on it but for the
    /// first one.
    fn take(&mut self, all: &Everything<'_>, packet: &Packet, from: u32, to: u32) {
        self.path.clear();
        let mut here = to;
        while here != from {
            let step = self.reached[here as usize].step;
            self.path.push(step);
            here = step.from;
        }
        self.path.reverse();
        for step in &self.path[1..] {
            let profile = &all.state.profiles[all.state.links[step.link as usize].profile];
            let own = Coming {
                at_ps: self.reached[step.from as usize].at_ps,
                service_ps: profile.service_ps(packet.wire_bytes),
            };
            let coming = &mut self.coming[step.link as usize];
            while coming.front().is_some_and(|first| first.at_ps <= all.now_ps) {
                coming.pop_front();
            }
            let place = coming.partition_point(|other| other.at_ps <= own.at_ps);
            coming.insert(place, own);
        }
    }

    /// Route for the packet's header, so that it follows the path behind its first hop. A path that
    /// does not fit is chosen again there.
    fn route(&self) -> Route {
        let (mut label, mut scale) = (0usize, 1usize);
        for step in &self.path[1..] {
            label += step.place * scale;
            scale *= step.choices;
            if scale > usize::from(u16::MAX) {
                return Route::ANY;
            }
        }
        if scale > 1 { Route::label(label as u16) } else { Route::ANY }
    }
}

/// The arrivals at the last switch, by port, in words; none if no port leads there.
fn told(ports: &[PortId], arrivals: &[Option<u64>], now_ps: u64, last: &str) -> Option<String> {
    let takes = |at_ps: u64| format!("{:.2} µs", Span::from_ps(at_ps - now_ps).as_us());
    let by_port = || ports.iter().zip(arrivals);
    let (first, soonest) =
        by_port().filter_map(|(port, at_ps)| Some((port, (*at_ps)?))).min_by_key(|&(_, at_ps)| at_ps)?;
    let others: Vec<String> = by_port()
        .filter(|&(port, _)| port != first)
        .map(|(port, at_ps)| match at_ps {
            Some(at_ps) => format!("port {} {}", port.0, takes(*at_ps)),
            None => format!("port {} has no room or is cut", port.0),
        })
        .collect();
    let by = format!("knows every queue: by port {} at {last} in {}", first.0, takes(soonest));
    Some(if others.is_empty() { by } else { format!("{by}; {}", others.join(", ")) })
}

impl Network<'_> {
    /// Lets the oracle choose from now on. Only a network that is all of a fabric has one: it looks
    /// at every queue.
    pub fn ask_oracle(&mut self) {
        debug_assert!(self.map.is_whole(), "the oracle sees the whole fabric");
        self.oracle = Some(Box::new(Oracle::new(self.state.links.len(), self.schemes.len())));
    }

    /// Which of its next hops a packet takes at a switch, if the oracle chooses and sees a way.
    pub(super) fn choose_as_oracle(&mut self, at: FarEnd, rack: u16, index: PacketIndex) -> Option<usize> {
        let mut oracle = self.oracle.take()?;
        let all = Everything { now_ps: self.now.as_ps(), state: &self.state, routes: &self.routes };
        let (from, to) = (at.switch, self.topology.switch_of_rack[rack as usize]);
        let first_port = |switch: u32| self.map.ports(switch as usize).start as u32;
        let packet = &self.pool[index];
        let found = oracle.find(&all, first_port, packet, (from, all.now_ps), (to, rack));
        let choice = found.map(|_| {
            oracle.take(&all, packet, from, to);
            oracle.path[0].place
        });
        if choice.is_some() {
            self.pool[index].route = oracle.route();
        }
        self.oracle = Some(oracle);
        choice
    }

    /// Why the oracle will choose as it does for this packet: when it would be at its last switch
    /// by each port. None if there is no oracle, or it sees no way. It changes nothing.
    pub(super) fn explain_oracle(&mut self, at: FarEnd, rack: u16, index: PacketIndex) -> Option<String> {
        let mut oracle = self.oracle.take()?;
        let all = Everything { now_ps: self.now.as_ps(), state: &self.state, routes: &self.routes };
        let to = self.topology.switch_of_rack[rack as usize];
        let first_port = |switch: u32| self.map.ports(switch as usize).start as u32;
        let packet = &self.pool[index];
        let ports = all.next_hops(at.switch, rack);
        let mut arrivals: Vec<Option<u64>> = Vec::new();
        for port in ports.as_slice() {
            let link = at.first_link + u32::from(port.0);
            let there = all.arrival_ps(link, packet, all.now_ps, &oracle.coming[link as usize]);
            let far = all.state.links[link as usize].far_end().switch;
            // A port to a host leads to no other switch.
            let there = there.filter(|_| (far as usize) < oracle.reached.len());
            let last =
                there.and_then(|at_ps| oracle.find(&all, first_port, packet, (far, at_ps), (to, rack)));
            arrivals.push(last);
        }
        self.oracle = Some(oracle);
        let name = &self.topology.names[self.map.node_of(to) as usize];
        told(ports.as_slice(), &arrivals, all.now_ps, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_told_by_port_the_first_one_first() {
        let ports = [PortId(4), PortId(5), PortId(7)];
        let at = |us: u64| Some(us * 1_000_000);
        assert_eq!(
            told(&ports, &[at(20), at(13), None], 10_000_000, "leaf3").as_deref(),
            Some(
                "knows every queue: by port 5 at leaf3 in 3.00 µs; port 4 10.00 µs, port 7 has no room or is cut"
            )
        );
        assert_eq!(
            told(&ports[..1], &[at(11)], 10_000_000, "leaf3").as_deref(),
            Some("knows every queue: by port 4 at leaf3 in 1.00 µs")
        );
        // Of two that are there at the same time it takes the one that it looked at first.
        let same = told(&ports, &[None, at(12), at(12)], 10_000_000, "leaf3").unwrap_or_default();
        assert!(same.starts_with("knows every queue: by port 5 "), "{same}");
        assert_eq!(told(&ports, &[None, None, None], 0, "leaf3"), None);
    }
}
