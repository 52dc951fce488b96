//! Bitmap: packets take entropies in turn, and pass over those that lately met marks or losses
//! (`UecMpBitmap` of `uet-htsim`, the simulator of the Ultra Ethernet consortium; STrack, Le et
//! al., 2024, keeps a bit for each path likewise).
//!
//! Each entropy has points against it: some for a mark that an acknowledgement brings back, more
//! for a trimmed packet, most for a timeout. Turns go round all entropies in an order that is drawn
//! for each round. A packet passes over entropies with points and takes the first one without; of
//! those that it passed over, the first loses a point, so that it is tried again some rounds later.
//! If all have points, it takes the one at which it began.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet, PacketFlags};

use super::entropy::{self, Entropies, EntropyFeedback, EntropyNote, Permutation, Returned};
use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

#[cfg(test)]
mod tests;

/// Parameters of the bitmap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How many entropies a flow has: a power of two, 1 to 4,096, for there are points for each.
    /// Source: `uet-htsim`, 64 unless told otherwise (`-paths`).
    pub entropies: u32,
    /// Points for a packet that was marked: 0 to 255. Source: `uet-htsim`, `PATH_ECN` = 1.
    pub mark: u8,
    /// Points for a packet that was trimmed: 0 to 255. Source: `uet-htsim`, `PATH_NACK` = 4.
    pub trim: u8,
    /// Points for a segment whose timeout expired, against the entropy that it had: 0 to 255; with
    /// 0 the host need not remember which it was. Source: `uet-htsim`, `PATH_TIMEOUT` = 15, though
    /// it books all of them on one entropy, as a timeout does not name any.
    pub timeout: u8,
    /// The most points that an entropy has: 1 to 255. Source: `uet-htsim`, `_max_penalty` = 15.
    pub most: u8,
}

impl Default for Params {
    fn default() -> Self {
        Self { entropies: 64, mark: 1, trim: 4, timeout: 15, most: 15 }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        entropy::check(self.entropies, 1 << 12, "a power of two, 1 to 4096")?;
        if self.most == 0 {
            return Err(ParameterError { key: "most", found: "0".to_owned(), allowed: "1 to 255" });
        }
        Ok(())
    }
}

/// Bitmap at one host.
#[derive(Debug, Clone)]
pub struct Bitmap {
    params: Params,
    entropies: Entropies,
    counts: Counts,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    marks: u64,
    trims: u64,
    timeouts: u64,
    passed_over: u64,
}

/// One flow at one end.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    returned: Returned,
    /// State of the end that sends data.
    sender: Option<Box<Sender>>,
}

/// State of a flow's sender.
#[derive(Debug, Clone)]
struct Sender {
    turns: Permutation,
    /// The points of each entropy.
    points: Box<[u8]>,
    outstanding: Outstanding,
    /// Whether a timeout expired whose segment is about to be sent again.
    timed_out: bool,
}

impl Sender {
    fn new(entropies: Entropies) -> Self {
        Self {
            turns: Permutation::default(),
            points: vec![0; entropies.count() as usize].into_boxed_slice(),
            outstanding: Outstanding::default(),
            timed_out: false,
        }
    }

    fn penalise(&mut self, entropy: u16, points: u8, most: u8) {
        if let Some(sum) = self.points.get_mut(usize::from(entropy)) {
            *sum = sum.saturating_add(points).min(most);
        }
    }

    /// The entropy of the next packet, and how many were passed over.
    fn next<C: HostContext + ?Sized>(&mut self, cx: &mut C, entropies: Entropies) -> (u16, u32) {
        let first = self.turns.next(cx, entropies);
        if self.points[usize::from(first)] == 0 {
            return (first, 0);
        }
        self.points[usize::from(first)] -= 1;
        for passed in 1..entropies.count() {
            let entropy = self.turns.next(cx, entropies);
            if self.points[usize::from(entropy)] == 0 {
                return (entropy, passed);
            }
        }
        (first, 0)
    }
}

/// By which entropy each segment was last sent, as far as it is not acknowledged.
#[derive(Debug, Clone, Default)]
struct Outstanding {
    /// The segment of the first entry.
    first: u32,
    entropies: VecDeque<u16>,
}

impl Outstanding {
    /// Segments that are remembered at most: more than any window.
    const MOST: usize = 1 << 16;

    fn sent(&mut self, segment: u32, entropy: u16) {
        if self.entropies.is_empty() {
            self.first = segment;
        }
        let Some(place) = segment.checked_sub(self.first).map(|place| place as usize) else { return };
        if place >= Self::MOST {
            return;
        }
        if place >= self.entropies.len() {
            // Segments in between that were never seen had none of its own.
            self.entropies.resize(place + 1, entropy);
        }
        self.entropies[place] = entropy;
    }

    /// All segments before this one are acknowledged.
    fn acknowledged(&mut self, next: u32) {
        let over = (next.saturating_sub(self.first) as usize).min(self.entropies.len());
        self.entropies.drain(..over);
        self.first += over as u32;
    }

    fn entropy_of(&self, segment: u32) -> Option<u16> {
        self.entropies.get(segment.checked_sub(self.first)? as usize).copied()
    }
}

impl HostScheme for Bitmap {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo<'_>) -> Self {
        Self {
            params: params.clone(),
            entropies: Entropies::new(params.entropies),
            counts: Counts::default(),
        }
    }

    fn hooks(_: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: true, ..HostHooks::default() }
    }

    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        if packet.kind != Kind::Data {
            return flow.returned.stamp(packet);
        }
        let sender = flow.sender.get_or_insert_with(|| Box::new(Sender::new(self.entropies)));
        if sender.timed_out && packet.flags.has(PacketFlags::RETRANSMISSION) {
            sender.timed_out = false;
            if let Some(entropy) = sender.outstanding.entropy_of(packet.seq) {
                self.counts.timeouts += 1;
                sender.penalise(entropy, self.params.timeout, self.params.most);
            }
        }
        let (entropy, passed) = sender.next(cx, self.entropies);
        self.counts.passed_over += u64::from(passed);
        if self.params.timeout > 0 {
            sender.outstanding.sent(packet.seq, entropy);
        }
        EntropyNote { entropy, fate: EntropyFeedback::Good }.write(packet);
    }

    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        flow.returned.note(&packet);
        if entropy::is_acknowledgement(packet.kind)
            && let Some(sender) = &mut flow.sender
        {
            // What a negative one names is a segment that is missing.
            if packet.kind == Kind::Ack {
                sender.outstanding.acknowledged(packet.seq);
            }
            if let Some(note) = EntropyNote::read(&packet) {
                let points = match note.fate {
                    EntropyFeedback::Good => 0,
                    EntropyFeedback::Marked => {
                        self.counts.marks += 1;
                        self.params.mark
                    }
                    EntropyFeedback::Trimmed => {
                        self.counts.trims += 1;
                        self.params.trim
                    }
                };
                sender.penalise(note.entropy, points, self.params.most);
            }
        }
        cx.deliver(packet);
    }

    fn timed_out<C: HostContext + ?Sized>(&mut self, _: &mut C, flow: &mut Flow) {
        if let Some(sender) = &mut flow.sender {
            sender.timed_out = self.params.timeout > 0;
        }
    }

    /// Nothing beside the flows.
    fn state_bytes(&self) -> u64 {
        0
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("marks", self.counts.marks);
        count("trims", self.counts.trims);
        count("timeouts", self.counts.timeouts);
        count("passed_over", self.counts.passed_over);
    }
}
