//! One destination: the paths that are known, and when to look again.

use weft_packet::HostId;
use weft_units::{Span, Stream};

use super::discovery::{DiscoveredPath, Discovery, Probe};
use super::params::{Params, Spread};
use super::paths::{CutRule, Paths};

/// A rack or host that packets go to.
#[derive(Debug)]
pub struct Destination {
    /// Rack of the destination.
    pub rack: u16,
    /// The host that traces go to: one that a flow goes to.
    pub peer: HostId,
    /// The paths there.
    pub paths: Paths,
    /// The discovery that goes on.
    pub discovery: Option<Discovery>,
    /// The pause that ends a flowlet.
    pub gap: Span,
    /// Change of the weights by a mark.
    pub rule: CutRule,
    /// No discovery goes on and no timer counts: the next packet begins one.
    asleep: bool,
    /// Whether packets went there since the last discovery began.
    used: bool,
    /// Which of the timers counts.
    epoch: u16,
    /// How many discoveries there were.
    rounds: u16,
    /// How many of the last ones lost traces.
    losing: u32,
}

/// Purpose of a timer.
#[derive(Debug, PartialEq, Eq)]
pub enum Tick {
    /// Nothing: another one was set since, or nobody needs the paths.
    Void,
    /// It is time to look again.
    Rediscover,
    /// Answers are missing.
    AskAgain(Vec<Probe>),
    /// Answers are missing that were asked for often enough.
    Over,
}

impl Destination {
    /// Nothing is known of it.
    pub fn new(rack: u16, base_rtt: Span, params: &Params) -> Self {
        let uncongested_only = params.spread == Spread::Uncongested;
        Self {
            rack,
            peer: HostId::default(),
            paths: Paths::default(),
            discovery: None,
            gap: params.gap(base_rtt),
            rule: CutRule::new(params.cut, uncongested_only, params.relay_interval(base_rtt)),
            asleep: true,
            used: false,
            epoch: 0,
            rounds: 0,
            losing: 0,
        }
    }

    /// There are so many explicit routes, and nothing has to be looked for. Where there is one,
    /// there is no choice.
    pub fn know_routes(&mut self, routes: u32) {
        self.asleep = false;
        if routes > 1 {
            self.paths.adopt((0..routes).map(DiscoveredPath::route).collect());
        }
    }

    /// A packet goes there. True if a discovery must begin.
    #[inline]
    pub fn note_packet(&mut self) -> bool {
        self.used = true;
        self.asleep
    }

    /// Whether the next packet begins a discovery, if it may.
    #[inline]
    pub const fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Nothing is to be looked for until the next packet.
    pub fn sleep(&mut self) {
        self.asleep = true;
    }

    /// Begins a discovery: the entropies in use, to see whether they still lead over the same
    /// paths, and random ones.
    pub fn begin_discovery(&mut self, stream: &mut Stream, params: &Params) -> Vec<Probe> {
        (self.asleep, self.used) = (false, false);
        self.rounds = self.rounds.wrapping_add(1);
        let known = self.paths.list().iter().map(|path| path.entropy);
        let fresh = std::iter::repeat_with(|| stream.next_u64() as u32);
        let discovery = Discovery::new(self.rounds, known.chain(fresh).take(params.candidates as usize));
        let probes = discovery.probes();
        self.discovery = Some(discovery);
        probes
    }

    /// Takes over what the discovery found: how many traces were lost, and how long until the next
    /// discovery. After losses that is soon, for something may have failed, but each time in a row
    /// twice as long.
    pub fn end_discovery(&mut self, params: &Params) -> Option<(usize, Span)> {
        let discovery = self.discovery.take()?;
        let lost = discovery.lost();
        self.paths.adopt(discovery.choose(params.paths as usize));
        if lost == 0 {
            self.losing = 0;
            return Some((0, params.rediscover));
        }
        let patience = params.trace_timeout.saturating_mul(1 << self.losing.min(32));
        self.losing += 1;
        Some((lost, patience.min(params.rediscover)))
    }

    /// The number of a new timer: it makes those before it void.
    pub fn next_epoch(&mut self) -> u16 {
        self.epoch = self.epoch.wrapping_add(1);
        self.epoch
    }

    /// A timer is due.
    pub fn tick(&mut self, epoch: u16) -> Tick {
        if epoch != self.epoch {
            return Tick::Void;
        }
        let Some(discovery) = &mut self.discovery else {
            // What nobody uses is not looked for again.
            self.asleep = !self.used;
            return if self.used { Tick::Rediscover } else { Tick::Void };
        };
        discovery.time_out();
        if discovery.is_over() { Tick::Over } else { Tick::AskAgain(discovery.probes()) }
    }

    /// Bytes that a virtual switch would keep for it between discoveries.
    pub fn state_bytes(&self) -> u64 {
        16 + self.paths.state_bytes()
    }
}
