//! MEET: the hosts of a rack pool what round trips tell them of paths, and probe (Dong et al., IEEE
//! TPDS 2022).
//!
//! Every acknowledgement votes for the congestion of the path that its packet took
//! ([`congestion`]). Each `update` a host sends what is new to the rack's proxy, which works out
//! the mean of all votes and tells it to the rack ([`rack`], [`pool`], [`wire`]). Each `probe`, a
//! host probes three paths to every rack that its flows go to: the least congested by that view,
//! the best of the last round, and a random one ([`probing`]). A new flowlet takes the best answer;
//! without one, the least congested path by the view. A probe that was lost marks its path as
//! failed ([`knowledge`]). A proxy that falls silent is replaced ([`term`]).
//!
//! The far edge sends acknowledgements and answers back by the route with the number of the one
//! that the packet came by: in a leaf-spine fabric through the same spine. So a round trip belongs
//! to one way there and back.

mod congestion;
mod knowledge;
mod params;
mod pool;
mod probing;
mod rack;
mod term;
mod wire;

use weft_packet::{HostId, Kind as PacketKind, Packet, Route};
use weft_units::{Span, Time};

use super::echo::{Echo, PathNote};
use crate::flowlet::FlowletClock;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, Message};

use congestion::congestion;
use knowledge::{Knowledge, Paths, is_fresh, least};
pub use params::{NoData, OwnQueue, Params, Prober};
use pool::Pool;
use probing::{Destination, Labels, PROBES, Round};
use term::Term;
use wire::{Kind, PROBE_BYTES};

/// Timers of a host.
const UPDATE: u32 = 0;
const PROBE: u32 = 1;

/// MEET at one host.
#[derive(Debug)]
pub struct Meet {
    params: Params,
    /// The hosts of the rack.
    members: Box<[HostId]>,
    paths: Paths,
    /// K by destination rack.
    thresholds: Box<[Span]>,
    first_hosts: Box<[HostId]>,
    knowledge: Knowledge,
    /// By rack.
    destinations: Box<[Destination]>,
    /// With [`Prober::Proxy`], by rack: when another host last reported paths to it.
    reported_at: Box<[Option<Time>]>,
    pool: Pool,
    term: Term,
    /// Number of the last report or view that was sent.
    sent: u32,
    /// The term that the last report was sent in.
    reported: u32,
    /// Proxy and number of the last view that came.
    view: (HostId, u32),
    /// Number of the last round of probes.
    round: u32,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    probes: u64,
    probe_bytes: u64,
    failures: u64,
    reports: u64,
    report_bytes: u64,
    report_path_bytes: u64,
    views: u64,
    view_bytes: u64,
    flowlets: u64,
    reroutes: u64,
    proxy_changes: u64,
    proxy_gap_ps: u64,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    flowlets: FlowletClock,
    /// The path of the flowlet, once there is one.
    label: Option<u16>,
    /// The destination rack where the flow counts as live.
    counted: Option<u16>,
    echo: Echo,
}

impl Meet {
    /// The path for a new flowlet: the best answer to probes, else the least congested by the view.
    fn choose<C: HostContext + ?Sized>(&self, cx: &mut C, rack: u16, choices: u16) -> u16 {
        let (now, paths) = (cx.now(), self.paths.to(rack));
        let failed =
            |label: u16| label >= choices || self.knowledge.has_failed(paths.start + usize::from(label));
        let destination = &self.destinations[usize::from(rack)];
        let probed = destination.best(cx.random(), now, self.answers_hold(), failed);
        let by_view = |cx: &mut C| {
            let unknown = self.knowledge.worth_without_data(paths.clone(), self.params.no_data);
            let worth = |label: u16| self.knowledge.worth(paths.start + usize::from(label), unknown);
            least(cx.random(), (0..choices).map(|label| (label, worth(label))))
        };
        probed.or_else(|| by_view(cx)).unwrap_or_default()
    }

    /// Answers to probes are renewed each `probe`, and come a round trip later: twice that is long
    /// enough.
    const fn answers_hold(&self) -> Span {
        self.params.probe.saturating_mul(2)
    }

    /// A packet came back by a path, after this long. Its congestion value (MEET Alg. 1).
    #[inline]
    fn learn(&mut self, rack: u16, label: u16, rtt: Span) -> Option<f64> {
        let path = self.paths.index(rack, label)?;
        let congestion = congestion(rtt, self.thresholds[usize::from(rack)]);
        self.knowledge.learn(path, congestion);
        Some(congestion)
    }

    /// Whether paths to a rack are to be probed: flows go there.
    fn is_wanted(&self, rack: u16, now: Time) -> bool {
        let rack = usize::from(rack);
        let own = self.destinations[rack].live > 0;
        match self.params.prober {
            Prober::Host => own,
            Prober::Proxy if self.term.is_mine() => {
                own || self.reported_at[rack].is_some_and(|at| is_fresh(at, now, self.params.window))
            }
            Prober::Proxy => false,
        }
    }

    /// Three paths to probe (MEET §3.3): the least congested by the view, the best of the last
    /// round, and a random one, uncovered ones first. Where they coincide, more random ones fill
    /// up.
    fn probed_paths<C: HostContext + ?Sized>(&self, cx: &mut C, rack: u16) -> Labels {
        let (now, paths) = (cx.now(), self.paths.to(rack));
        let known = |label: u16| paths.start + usize::from(label);
        let labels = 0..paths.len() as u16;
        let mut chosen = Labels::default();
        let unknown = self.knowledge.worth_without_data(paths.clone(), self.params.no_data);
        let worth = |label: u16| self.knowledge.worth(known(label), unknown);
        chosen.add(least(cx.random(), labels.clone().map(|label| (label, worth(label)))));
        let failed = |label| self.knowledge.has_failed(known(label));
        chosen.add(self.destinations[usize::from(rack)].best(cx.random(), now, self.answers_hold(), failed));
        for _ in chosen.as_slice().len()..PROBES {
            let others = labels.clone().filter(|label| !chosen.as_slice().contains(label));
            let covered =
                others.map(|label| (label, f32::from(u8::from(self.knowledge.is_covered(known(label))))));
            let random = least(cx.random(), covered);
            chosen.add(random);
        }
        chosen
    }

    /// Ends the round of every rack, and begins the next one where flows go.
    fn probe<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        self.round += 1;
        for rack in 0..self.destinations.len() as u16 {
            let paths = self.paths.to(rack);
            if paths.is_empty() {
                continue;
            }
            let stand_in = self.first_hosts[usize::from(rack)];
            for &label in self.destinations[usize::from(rack)].end(stand_in).as_slice() {
                self.counts.failures += u64::from(self.knowledge.lose(paths.start + usize::from(label)));
            }
            if self.is_wanted(rack, cx.now()) {
                self.probe_rack(cx, rack);
            }
        }
    }

    fn probe_rack<C: HostContext + ?Sized>(&mut self, cx: &mut C, rack: u16) {
        let labels = self.probed_paths(cx, rack);
        let destination = &mut self.destinations[usize::from(rack)];
        destination.begin(Round::new(self.round, cx.now(), &labels));
        for &label in labels.as_slice() {
            self.counts.probes += 1;
            self.counts.probe_bytes += u64::from(PROBE_BYTES);
            // What ECMP would hash is drawn anew: a hole that swallows some five-tuples is met
            // sooner or later.
            let entropy = cx.random().next_u64() as u32;
            let own_wait = match self.params.own_queue {
                OwnQueue::Counts => Span::ZERO,
                OwnQueue::LeftOut => cx.own_wait(),
            };
            cx.send(Message {
                peer: destination.peer,
                wire_bytes: PROBE_BYTES,
                route: Route::label(label),
                entropy,
                tag: Kind::Probe.tag(u32::from(label)),
                number: self.round,
                stamp: cx.now().saturating_add(own_wait),
                ..Message::default()
            });
        }
    }

    /// Sends a probe back by the route with its number.
    fn answer<C: HostContext + ?Sized>(&mut self, cx: &mut C, probe: Message, label: u16) {
        let returns = label < cx.routes_to(probe.peer);
        self.counts.probe_bytes += u64::from(PROBE_BYTES);
        cx.send(Message {
            wire_bytes: PROBE_BYTES,
            route: if returns { Route::label(label) } else { Route::ANY },
            tag: Kind::Answer.tag(u32::from(label)),
            ..probe
        });
    }

    /// A probe came back: its round trip is a vote like any packet's. Also when it is late: then
    /// the path has not failed.
    fn answered<C: HostContext + ?Sized>(&mut self, cx: &mut C, answer: &Message, label: u16) {
        let rack = cx.rack_of(answer.peer);
        if let Some(congestion) = self.learn(rack, label, cx.now().since(answer.stamp)) {
            self.destinations[usize::from(rack)].answer(answer.number, label, congestion as f32);
        }
    }

    /// The path of a packet that is sent now: a new flowlet takes the best that is known (MEET
    /// §3.4).
    #[inline]
    fn steer<C: HostContext + ?Sized>(
        &mut self,
        cx: &mut C,
        flow: &mut Flow,
        rack: u16,
        choices: u16,
    ) -> u16 {
        let begins = flow.flowlets.begins(cx.now(), self.params.gap);
        if let Some(label) = flow.label.filter(|&label| !begins && label < choices) {
            return label;
        }
        let label = self.choose(cx, rack, choices);
        self.counts.flowlets += 1;
        self.counts.reroutes += u64::from(flow.label.is_some_and(|before| before != label));
        flow.label = Some(label);
        label
    }

    /// A flow's first packet: it is live.
    fn begin(&mut self, flow: &mut Flow, packet: &Packet, rack: u16) {
        let destination = &mut self.destinations[usize::from(rack)];
        destination.live += 1;
        destination.peer = packet.dst;
        flow.counted = Some(rack);
    }
}

impl HostScheme for Meet {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, info: &HostInfo<'_>) -> Self {
        let paths = Paths::new(info.routes);
        let me = info.rack_hosts.binary_search(&info.host).unwrap_or_default();
        Self {
            knowledge: Knowledge::new(paths.len()),
            pool: Pool::new(info.rack_hosts.len(), paths.len(), params.window),
            term: Term::new(me, info.rack_hosts.len()),
            paths,
            members: info.rack_hosts.into(),
            thresholds: info.base_rtts.iter().map(|&base| params.k_for(base)).collect(),
            first_hosts: info.first_hosts.into(),
            destinations: info.first_hosts.iter().map(|&peer| Destination::new(peer)).collect(),
            reported_at: vec![None; info.first_hosts.len()].into(),
            sent: 0,
            reported: 0,
            view: (info.host, 0),
            round: 0,
            counts: Counts::default(),
            params: params.clone(),
        }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, pinned: true, traces: false }
    }

    /// Each host has a phase of its own, so that reports do not meet in the proxy's queue, nor
    /// probes in the fabric's. Where no rack can be reached by two paths, nothing begins.
    fn start<C: HostContext + ?Sized>(&mut self, cx: &mut C) {
        if self.paths.len() == 0 {
            return;
        }
        let phase = cx.random().unit();
        for (token, interval) in [(UPDATE, self.params.update), (PROBE, self.params.probe)] {
            cx.set_host_timer(Span::from_ps((interval.as_ps() as f64 * phase) as u64), token);
        }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let rack = cx.rack_of(packet.dst);
        let choices = cx.routes_to_rack(rack).min(self.paths.to(rack).len() as u16);
        if choices < 2 {
            return;
        }
        if !matches!(packet.kind, PacketKind::Data | PacketKind::Syn) {
            flow.echo.stamp(packet);
            if let Some(note) = PathNote::read(packet).filter(|note| note.path < choices) {
                packet.route = Route::label(note.path);
            }
            return;
        }
        if flow.counted.is_none() {
            self.begin(flow, packet, rack);
        }
        let label = self.steer(cx, flow, rack, choices);
        packet.route = Route::label(label);
        let waited = match self.params.own_queue {
            OwnQueue::Counts => 0,
            OwnQueue::LeftOut => PathNote::ticks(cx.own_wait()),
        };
        PathNote { path: label, marked: false, waited }.write(packet);
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        let now = cx.now();
        self.term.hear(now);
        if matches!(packet.kind, PacketKind::Data | PacketKind::Syn) {
            flow.echo.note(&packet);
        } else if let Some(note) = PathNote::read(&packet) {
            let rtt = now.since(packet.sent).saturating_sub(note.wait());
            self.learn(cx.rack_of(packet.src), note.path, rtt);
        }
        cx.deliver(packet);
    }

    fn finished<C: HostContext + ?Sized>(&mut self, _cx: &mut C, flow: &mut Flow) {
        if let Some(rack) = flow.counted.take() {
            let live = &mut self.destinations[usize::from(rack)].live;
            *live = live.saturating_sub(1);
        }
    }

    fn message<C: HostContext + ?Sized>(&mut self, cx: &mut C, message: Message) {
        let now = cx.now();
        self.term.hear(now);
        match Kind::read(message.tag) {
            Some((Kind::Probe, label)) => self.answer(cx, message, label as u16),
            Some((Kind::Answer, label)) => self.answered(cx, &message, label as u16),
            Some((Kind::Report, term)) => self.reported(now, message, term),
            Some((Kind::View, term)) => self.told(now, &message, term),
            None => {}
        }
    }

    fn host_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, token: u32) {
        if token == UPDATE {
            cx.set_host_timer(self.params.update, UPDATE);
            self.update(cx);
        } else {
            cx.set_host_timer(self.params.probe, PROBE);
            self.probe(cx);
        }
    }

    /// Bytes of the knowledge of each path and of each rack, and of the rack's reports, which any
    /// host may have to keep one day.
    fn state_bytes(&self) -> u64 {
        self.table_bytes() + self.pool.state_bytes()
    }

    fn table_bytes(&self) -> u64 {
        let racks = self.destinations.len()
            * (size_of::<Destination>() + size_of::<Option<Time>>() + size_of::<Span>());
        self.knowledge.state_bytes() + racks as u64
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("probes", self.counts.probes);
        count("probe_bytes", self.counts.probe_bytes);
        count("failures", self.counts.failures);
        count("reports", self.counts.reports);
        count("report_bytes", self.counts.report_bytes);
        count("report_path_bytes", self.counts.report_path_bytes);
        count("views", self.counts.views);
        count("view_bytes", self.counts.view_bytes);
        count("flowlets", self.counts.flowlets);
        count("reroutes", self.counts.reroutes);
        count("proxy_changes", self.counts.proxy_changes);
        count("proxy_gap_ns", self.counts.proxy_gap_ps / 1_000);
    }
}

#[cfg(test)]
mod tests;
