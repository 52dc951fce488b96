//! DRILL(d, m): each packet takes the shortest queue of d sampled and m remembered ones (Ghorbani
//! et al., SIGCOMM 2017).
//!
//! For every packet: draw `d` different next hops at random, add the `m` that were least loaded
//! last time, send the packet to the one with the fewest bytes queued, and remember the `m` least
//! loaded of them all.
//!
//! Ties: a remembered port wins over a sampled one, and among the sampled ones the first drawn
//! wins, which makes the draw decide. A remembered port that is no next hop (it failed, or belongs
//! to another group) is left out of this choice and drops out of the memory. Loads are compared in
//! bytes, not in time to drain: a slow port counts as a fast one, as with queue lengths in the
//! paper.
//!
//! On a switch that sees its queues only by clone and recirculation, loads are as old as
//! [`Params::age`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Packet;
use weft_units::{Span, Stream};

use super::past::{self, Past, Queue};
use crate::acknowledgements::{Acknowledgements, Aside};
use crate::registry::Parameters;
use crate::{
    NextHops, ParameterError, PortId, Ports, Queued, SwitchContext, SwitchHooks, SwitchInfo, SwitchScheme,
};

#[cfg(test)]
mod tests;

/// Parameters of DRILL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Next hops sampled for each packet, all different: 1 to 16. Source: DRILL(2, 1) as cited by
    /// TR and LBT; public ports default to 2.
    pub d: u8,
    /// Least loaded ports remembered from one packet to the next: 0 to 8. Source: DRILL(2, 1) as
    /// cited by TR and LBT.
    pub m: u8,
    /// Who shares a memory: `switch`, one for all packets of a switch; `rack`, one for each
    /// destination rack; `host`, one for each destination host. Source: MEET and TR speak of one
    /// recorded port at a switch; public ports to ns-3 keep one for each destination address.
    pub memory: Memory,
    /// Length of a queue: `all`, with what is left of the packet in service; `waiting`, without it,
    /// unless `age` says otherwise. Source: a choice; public ports to ns-3 have what waits above
    /// the device, where the packet in service is no more.
    pub length: Length,
    /// How old the queue lengths are that decisions go by (time): 0 for what they are now, at most
    /// 100ms. Source: 0 as in DRILL, whose switch sees its queues; 621 us on `BMv2` in QALL, Table
    /// II.
    pub age: Span,
    /// Which way acknowledgements, NACKs and CNPs take: `balanced`, as the scheme chooses for every
    /// packet; `ecmp`, by the hash of their five-tuple. Source: a choice; the authors' ns-3 code of
    /// ConWeave has all its load balancers steer data only, and hashes the rest.
    pub acknowledgements: Acknowledgements,
}

/// Who shares a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// All packets of a switch.
    #[default]
    Switch,
    /// All packets of a switch to one rack.
    Rack,
    /// All packets of a switch to one host.
    Host,
}

/// Length of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// All that is queued, with what is left of the packet in service.
    #[default]
    All,
    /// The waiting packets, without the one in service.
    Waiting,
}

const MAX_SAMPLES: usize = 16;
const MAX_REMEMBERED: usize = 8;

impl Default for Params {
    fn default() -> Self {
        Self {
            d: 2,
            m: 1,
            memory: Memory::Switch,
            length: Length::All,
            age: Span::ZERO,
            acknowledgements: Acknowledgements::Balanced,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if !(1..=MAX_SAMPLES).contains(&self.d.into()) {
            return Err(ParameterError { key: "d", found: self.d.to_string(), allowed: "1 to 16" });
        }
        if usize::from(self.m) > MAX_REMEMBERED {
            return Err(ParameterError { key: "m", found: self.m.to_string(), allowed: "0 to 8" });
        }
        past::validate(self.age)
    }
}

/// The least loaded candidates so far, least first.
struct Best {
    load: [u64; MAX_REMEMBERED],
    index: [u16; MAX_REMEMBERED],
    len: usize,
    keep: usize,
}

impl Best {
    #[inline]
    fn new(keep: usize) -> Self {
        Self { load: [u64::MAX; MAX_REMEMBERED], index: [0; MAX_REMEMBERED], len: 0, keep }
    }

    /// Puts a candidate behind those that are no more loaded than it. A port enters once.
    #[inline]
    fn offer(&mut self, index: u16, load: u64) {
        if self.index[..self.len].contains(&index) {
            return;
        }
        let mut at = self.len;
        while at > 0 && self.load[at - 1] > load {
            at -= 1;
        }
        if at == self.keep {
            return;
        }
        self.len = (self.len + 1).min(self.keep);
        for slot in (at + 1..self.len).rev() {
            (self.load[slot], self.index[slot]) = (self.load[slot - 1], self.index[slot - 1]);
        }
        (self.load[at], self.index[at]) = (load, index);
    }
}

/// Draws numbers below a bound, none of them twice, every order equally likely.
struct Draws {
    taken: [u16; MAX_SAMPLES],
    len: usize,
}

impl Draws {
    #[inline]
    fn new() -> Self {
        Self { taken: [0; MAX_SAMPLES], len: 0 }
    }

    /// The next number; fewer than `bound` must have been drawn.
    #[inline]
    fn next(&mut self, random: &mut Stream, bound: usize) -> u16 {
        // A number among those that are left; each one that is taken and not above it moves it up
        // by one.
        let mut draw = random.below((bound - self.len) as u32) as u16;
        let mut below = 0;
        for &taken in &self.taken[..self.len] {
            let passed = taken <= draw;
            draw += u16::from(passed);
            below += usize::from(passed);
        }
        if self.len < MAX_SAMPLES {
            for slot in (below..self.len).rev() {
                self.taken[slot + 1] = self.taken[slot];
            }
            self.taken[below] = draw;
            self.len += 1;
        }
        draw
    }
}

/// The first two of [`Draws`], from the same random numbers. `bound` must be at least 2.
#[inline]
fn draw_two(random: &mut Stream, bound: u32) -> [usize; 2] {
    let first = random.below(bound);
    let second = random.below(bound - 1);
    [first as usize, (second + u32::from(first <= second)) as usize]
}

/// DRILL at one switch.
#[derive(Debug, Clone)]
pub struct Drill {
    aside: Aside,
    samples: usize,
    remembered: usize,
    shared_by: Memory,
    only_waiting: bool,
    /// `remembered` ports for each memory; [`Drill::NOTHING`] where there is none. Those of hosts
    /// are added as packets come for them.
    memory: Vec<u16>,
    /// Past queues, if decisions use them.
    past: Option<Box<Past<Queue>>>,
}

impl Drill {
    /// Not a port: fabrics have fewer.
    const NOTHING: u16 = u16::MAX;

    /// Where the memory of a packet begins.
    #[inline]
    fn first_of(&self, packet: &Packet, hops: &NextHops<'_>) -> usize {
        let memory = match self.shared_by {
            Memory::Switch => return 0,
            Memory::Rack => usize::from(hops.rack),
            Memory::Host => packet.dst.index(),
        };
        memory * self.remembered
    }

    /// How long a port's queue is for a packet, in bytes.
    fn load(&self, cx: &dyn SwitchContext, port: PortId, packet: &Packet) -> u64 {
        if self.only_waiting {
            cx.waiting_bytes_for(port, packet)
        } else {
            cx.backlog_bytes_for(port, packet)
        }
    }
}

/// The index of the shortest queue of `samples` next hops and a remembered one. `load` says how
/// long a port's queue is.
#[inline]
fn shortest<C: SwitchContext + ?Sized>(
    cx: &mut C,
    hops: &NextHops<'_>,
    samples: usize,
    remembered: Option<PortId>,
    mut load: impl FnMut(&C, PortId) -> u64,
) -> usize {
    let mut shorter = |cx: &C, best: (usize, u64), index: usize| {
        let load = load(cx, hops.ports[index]);
        if load < best.1 { (index, load) } else { best }
    };
    let known = remembered.and_then(|port| hops.index_of(port));
    let mut best = known.map_or((0, u64::MAX), |index| shorter(cx, (index, u64::MAX), index));
    let choices = hops.ports.len();
    if samples == 2 && choices >= 2 {
        // The default, without a list of what is taken: a third of the time.
        let [first, second] = draw_two(cx.random(), choices as u32);
        best = shorter(cx, best, first);
        return shorter(cx, best, second).0;
    }
    let mut draws = Draws::new();
    for _ in 0..samples.min(choices) {
        let index = draws.next(cx.random(), choices);
        best = shorter(cx, best, usize::from(index));
    }
    best.0
}

/// As [`shortest`], with several remembered ports, which are replaced.
fn shortest_of_many<C: SwitchContext + ?Sized>(
    cx: &mut C,
    hops: &NextHops<'_>,
    samples: usize,
    memory: &mut [u16],
    mut load: impl FnMut(&C, PortId) -> u64,
) -> usize {
    let mut best = Best::new(memory.len());
    for &port in memory.iter() {
        if let Some(index) = hops.index_of(PortId(port)) {
            best.offer(index as u16, load(cx, PortId(port)));
        }
    }
    let mut draws = Draws::new();
    for _ in 0..samples.min(hops.ports.len()) {
        let index = draws.next(cx.random(), hops.ports.len());
        best.offer(index, load(cx, hops.ports[usize::from(index)]));
    }
    memory.fill(Drill::NOTHING);
    for (slot, &index) in memory.iter_mut().zip(&best.index[..best.len]) {
        *slot = hops.ports[usize::from(index)].0;
    }
    usize::from(best.index[0])
}

/// The index of the shortest queue of `samples` next hops and those in `memory`, which is brought
/// up to date.
#[inline]
fn decide<C: SwitchContext + ?Sized>(
    cx: &mut C,
    hops: &NextHops<'_>,
    samples: usize,
    memory: &mut [u16],
    load: impl FnMut(&C, PortId) -> u64,
) -> usize {
    match memory {
        [] => shortest(cx, hops, samples, None, load),
        [port] => {
            let index = shortest(cx, hops, samples, Some(PortId(*port)), load);
            *port = hops.ports[index].0;
            index
        }
        ports => shortest_of_many(cx, hops, samples, ports, load),
    }
}

/// [`decide`] by what queues were a while ago: all that was queued, whatever the class.
#[cold]
#[inline(never)]
fn decide_late<C: SwitchContext + ?Sized>(
    cx: &mut C,
    hops: &NextHops<'_>,
    samples: usize,
    memory: &mut [u16],
    past: &mut Past<Queue>,
) -> usize {
    decide(cx, hops, samples, memory, |cx, port| past.bytes(port, cx.now()))
}

/// [`decide`] by what waits behind packets in service.
#[cold]
#[inline(never)]
fn decide_by_waiting<C: SwitchContext + ?Sized>(
    cx: &mut C,
    packet: &Packet,
    hops: &NextHops<'_>,
    samples: usize,
    memory: &mut [u16],
) -> usize {
    decide(cx, hops, samples, memory, |cx, port| cx.waiting_bytes_for(port, packet))
}

impl SwitchScheme for Drill {
    type Params = Params;

    fn hooks(params: &Params) -> SwitchHooks {
        if params.age.is_zero() {
            return SwitchHooks::NONE;
        }
        SwitchHooks { on_enqueued: Ports::ToSwitches, ..SwitchHooks::NONE }
    }

    fn new(params: &Params, info: &SwitchInfo<'_>) -> Self {
        let remembered = usize::from(params.m);
        let memories = if params.memory == Memory::Rack { usize::from(info.racks) } else { 1 };
        Self {
            aside: Aside::new(params.acknowledgements, info),
            samples: usize::from(params.d),
            remembered,
            shared_by: params.memory,
            only_waiting: params.length == Length::Waiting && params.age.is_zero(),
            memory: vec![Self::NOTHING; memories * remembered],
            past: Past::new(params.age, info.port_rates.len()),
        }
    }

    #[inline(never)]
    fn choose<C: SwitchContext + ?Sized>(
        &mut self,
        cx: &mut C,
        packet: &mut Packet,
        hops: &NextHops<'_>,
    ) -> usize {
        if let Some(hop) = self.aside.hop(packet, hops) {
            return hop;
        }
        let first = self.first_of(packet, hops);
        if self.shared_by == Memory::Host && first + self.remembered > self.memory.len() {
            self.memory.resize(first + self.remembered, Self::NOTHING);
        }
        let memory = &mut self.memory[first..first + self.remembered];
        if let Some(past) = &mut self.past {
            return decide_late(cx, hops, self.samples, memory, past);
        }
        if self.only_waiting {
            return decide_by_waiting(cx, packet, hops, self.samples, memory);
        }
        decide(cx, hops, self.samples, memory, |cx, port| cx.backlog_bytes_for(port, packet))
    }

    fn needs_waiting_bytes(&self) -> bool {
        self.only_waiting
    }

    fn on_enqueued<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, _: &mut Packet, queued: Queued) {
        if let Some(past) = &mut self.past {
            past.note(queued.port, cx.now(), Queue::of(cx, queued.port));
        }
    }

    fn on_port_change<C: SwitchContext + ?Sized>(&mut self, cx: &mut C, port: PortId) {
        if let Some(past) = &mut self.past {
            past.note(port, cx.now(), Queue::of(cx, port));
        }
    }

    fn explain(&self, cx: &dyn SwitchContext, packet: &Packet, hops: &NextHops<'_>) -> Option<String> {
        if let Some(reason) = self.aside.explain(cx, packet, hops) {
            return Some(reason);
        }
        let first = self.first_of(packet, hops);
        let remembered = self.memory.get(first..first + self.remembered).unwrap_or_default();
        let known: Vec<String> = (remembered.iter().map(|&port| PortId(port)))
            .filter(|&port| hops.index_of(port).is_some())
            .map(|port| format!("port {} with {} B", port.0, self.load(cx, port, packet)))
            .collect();
        let samples = self.samples.min(hops.ports.len());
        let sampled = format!("the shortest of {samples} sampled queues of {}", hops.ports.len());
        Some(if known.is_empty() {
            sampled
        } else {
            format!("{sampled}, and remembered {}", known.join(", "))
        })
    }

    fn registers(&self, set: &mut dyn FnMut(&'static str, u32, u64)) {
        set("samples", 0, self.samples as u64);
        set("remembered", 0, self.remembered as u64);
        set("is_per_rack", 0, u64::from(self.shared_by == Memory::Rack));
        set("is_per_host", 0, u64::from(self.shared_by == Memory::Host));
        set("only_waiting", 0, u64::from(self.only_waiting));
        set("is_late", 0, u64::from(self.past.is_some()));
        self.aside.registers(set);
    }

    /// Two bytes a remembered port; four a port for the length that was brought from its queue, if
    /// that is needed.
    fn state_bytes(&self) -> u64 {
        self.memory.len() as u64 * 2 + self.past.as_ref().map_or(0, |past| past.ports() as u64 * 4)
    }
}
