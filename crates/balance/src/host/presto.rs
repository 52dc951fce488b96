//! Presto: flowcells of 64 KB in turn over all paths, and a receiving host that puts them in order
//! again (He et al., SIGCOMM 2015).
//!
//! **Sending** (Presto §3.1). A flow's payload is cut into flowcells. A packet that would make the
//! cell longer than `flowcell` begins the next one, which takes the next route; the first route is
//! random. Retransmissions count like any packet and follow the current cell. The cell's number
//! travels in the header (`packet.scheme`, 32 bits; the paper puts it in the source MAC address).
//! Acknowledgements have no payload, so they stay on one route.
//!
//! **Receiving** (Presto §3.2). Packets of one cell took one path, so inside a cell a gap is a loss
//! and is passed up at once, for the transport to repair. A new cell that begins beyond the next
//! expected segment may have overtaken the end of the cell before: its packets are held until the
//! gap is filled, or until a timeout says it was lost:
//!
//! ```text
//! timeout = alpha x E        E: smoothed time to fill a gap, from hold_min to hold_max
//! ```
//!
//! A gap that is filling (a packet of it came less than E / beta ago) is given E / beta more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Kind, Packet, Route};
use weft_units::{Bytes, Span, Time};

use crate::registry::Parameters;
use crate::{HostContext, HostHooks, HostInfo, HostScheme, ParameterError};

/// Parameters of Presto.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Most payload bytes of a flow that take one path before the next one's turn (size). Source:
    /// 64 KB, the largest TSO segment, as MEET and TR cite Presto; 65,536 bytes in a public testbed
    /// module.
    pub flowcell: Bytes,
    /// Whether the receiving host puts flowcells in order before the transport sees them. Source:
    /// Presto §3.2; false is the sender alone.
    pub reorder: bool,
    /// How long to hold before the first gap of a flow was measured (time). Source: the
    /// out-of-order timer of a public ns-3 driver; open in the paper.
    pub hold: Span,
    /// The shortest timeout (time). Source: the out-of-order timer that the same ns-3 port has by
    /// default; open in the paper.
    pub hold_min: Span,
    /// The longest timeout (time). Source: the out-of-order timer in the README of the same ns-3
    /// port; open in the paper.
    pub hold_max: Span,
    /// Timeout in units of the smoothed time that gaps took to fill: 1 to 64. Source: Presto §3.2
    /// (recalled, not checked).
    pub alpha: u32,
    /// A gap of which a packet came within this part (1/beta) of the smoothed time is still
    /// filling: 1 to 64. Source: Presto §3.2 (recalled, not checked).
    pub beta: u32,
    /// Most packets of a flow that are held; one more gives up the first gap: 1 to 65,536. Source:
    /// open in the paper, and no limit in a public ns-3 port; at 10 Gbit/s, 100 us of full packets
    /// are 83.
    pub hold_packets: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            flowcell: Bytes::new(65_536),
            reorder: true,
            hold: Span::from_us(100),
            hold_min: Span::from_us(50),
            hold_max: Span::from_us(500),
            alpha: 2,
            beta: 2,
            hold_packets: 1_024,
        }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        let refuse = |key, found: &dyn ToString, allowed| {
            Err(ParameterError { key, found: found.to_string(), allowed })
        };
        if self.flowcell.is_zero() {
            return refuse("flowcell", &self.flowcell, "at least 1B");
        }
        if self.hold_min.is_zero() {
            return refuse(
                "hold_min",
                &self.hold_min,
                "longer than nothing (reorder = false holds no packet)",
            );
        }
        if self.hold < self.hold_min || self.hold > self.hold_max {
            return refuse("hold", &self.hold, "from hold_min to hold_max");
        }
        for (key, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(1..=64).contains(&value) {
                return refuse(key, &value, "1 to 64");
            }
        }
        if !(1..=65_536).contains(&self.hold_packets) {
            return refuse("hold_packets", &self.hold_packets, "1 to 65536");
        }
        Ok(())
    }
}

/// Presto at one host.
#[derive(Debug)]
pub struct Presto {
    params: Params,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    cells: u64,
    held: u64,
    gaps_filled: u64,
    timeouts: u64,
    overflows: u64,
}

/// One flow at one end.
#[derive(Debug, Default)]
pub struct Flow {
    cell_bytes: u64,
    cell: u32,
    route: Option<u16>,
    arriving: Arriving,
}

/// State of a flow at the receiving host.
#[derive(Debug, Default)]
struct Arriving {
    /// The segment after the last one that was passed up in order, or that was given up.
    expected: u32,
    /// The newest cell that was passed up.
    cell: u32,
    /// Packets of newer cells behind a gap, by segment number.
    held: Vec<Packet>,
    /// Since when the first gap is known.
    gap_since: Time,
    /// When a packet of it last came; at first, the same.
    filling: Time,
    /// Smoothed time that gaps took to fill, once there was one.
    smoothed: Option<Span>,
}

impl Arriving {
    /// Whether a packet can be passed up now: of a cell that is known to have begun (a gap in it is
    /// a loss), or with no gap in front of it.
    #[inline]
    fn in_turn(&self, packet: &Packet) -> bool {
        packet.scheme <= self.cell || packet.seq <= self.expected
    }

    /// Notes that a packet is passed up. A segment from before the gap says nothing about newer
    /// cells: it was sent again, in whatever cell was current.
    #[inline]
    fn pass(&mut self, packet: &Packet) {
        if packet.seq >= self.expected {
            self.expected = packet.seq.saturating_add(1);
            self.cell = self.cell.max(packet.scheme);
        }
    }

    /// Passes up what is held and in turn now, and says whether there was any.
    fn release<C: HostContext + ?Sized>(&mut self, cx: &mut C) -> bool {
        let mut ready = 0;
        while let Some(&head) = self.held.get(ready).filter(|head| self.in_turn(head)) {
            self.pass(&head);
            ready += 1;
        }
        self.held.drain(..ready).for_each(|packet| cx.deliver(packet));
        ready > 0
    }

    /// A gap took this long to fill: an exponentially weighted mean with gain 1/8, as a round-trip
    /// time has in TCP (RFC 6298 §2.3); the paper leaves the gain open.
    fn measure(&mut self, took: Span) {
        self.smoothed = Some(self.smoothed.map_or(took, |mean| (mean * 7 + took) / 8));
    }
}

impl Presto {
    fn timeout(&self, arriving: &Arriving) -> Span {
        let measured = |mean: Span| mean.saturating_mul(u64::from(self.params.alpha));
        let timeout = arriving.smoothed.map_or(self.params.hold, measured);
        timeout.clamp(self.params.hold_min, self.params.hold_max)
    }

    /// Time for the first gap in front of what is held begins now.
    fn begin_gap<C: HostContext + ?Sized>(&self, cx: &mut C, arriving: &mut Arriving) {
        arriving.gap_since = cx.now();
        arriving.filling = cx.now();
        cx.set_flow_timer(self.timeout(arriving));
    }

    /// Takes the first gap for a loss, and passes up what is behind it, to the next one.
    fn give_up_gap<C: HostContext + ?Sized>(&self, cx: &mut C, arriving: &mut Arriving) {
        if let Some(head) = arriving.held.first() {
            arriving.expected = head.seq;
        }
        arriving.release(cx);
        if !arriving.held.is_empty() {
            self.begin_gap(cx, arriving);
        }
    }

    fn hold<C: HostContext + ?Sized>(&mut self, cx: &mut C, arriving: &mut Arriving, packet: Packet) {
        self.counts.held += 1;
        let place = arriving.held.partition_point(|held| held.seq <= packet.seq);
        arriving.held.insert(place, packet);
        if arriving.held.len() == 1 {
            self.begin_gap(cx, arriving);
        } else if arriving.held.len() > self.params.hold_packets as usize {
            self.counts.overflows += 1;
            self.give_up_gap(cx, arriving);
        }
    }
}

impl HostScheme for Presto {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo<'_>) -> Self {
        Self { params: params.clone(), counts: Counts::default() }
    }

    fn hooks(params: &Params) -> HostHooks {
        HostHooks { on_send: true, on_receive: params.reorder, ..HostHooks::default() }
    }

    #[inline]
    fn on_send<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let routes = cx.routes_to(packet.dst);
        if routes < 2 {
            return;
        }
        let payload = u64::from(packet.wire_bytes.saturating_sub(cx.header_bytes()));
        let mut route = flow.route.unwrap_or_else(|| cx.random().below(u32::from(routes)) as u16);
        flow.cell_bytes += payload;
        if flow.cell_bytes > self.params.flowcell.as_u64() {
            flow.cell_bytes = payload;
            flow.cell += 1;
            route += 1;
            self.counts.cells += 1;
        }
        // Past the last one, and also when there are fewer routes than before.
        if route >= routes {
            route = 0;
        }
        flow.route = Some(route);
        packet.route = Route::label(route);
        packet.scheme = flow.cell;
    }

    #[inline]
    fn on_receive<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: Packet) {
        let arriving = &mut flow.arriving;
        if packet.kind != Kind::Data {
            return cx.deliver(packet);
        }
        if !arriving.in_turn(&packet) {
            return self.hold(cx, arriving, packet);
        }
        arriving.pass(&packet);
        cx.deliver(packet);
        if arriving.held.is_empty() {
            return;
        }
        arriving.filling = cx.now();
        if arriving.release(cx) {
            self.counts.gaps_filled += 1;
            arriving.measure(cx.now().since(arriving.gap_since));
            if !arriving.held.is_empty() {
                self.begin_gap(cx, arriving);
            }
        }
    }

    fn flow_timer<C: HostContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow) {
        let arriving = &mut flow.arriving;
        if arriving.held.is_empty() {
            return;
        }
        let timeout = self.timeout(arriving);
        let smoothed = arriving.smoothed.unwrap_or(self.params.hold);
        let patience = timeout.min(smoothed / u64::from(self.params.beta));
        let due = (arriving.gap_since + timeout).max(arriving.filling + patience);
        if cx.now() < due {
            return cx.set_flow_timer(due.since(cx.now()));
        }
        self.counts.timeouts += 1;
        self.give_up_gap(cx, arriving);
    }

    fn held(flow: &Flow) -> usize {
        flow.arriving.held.len()
    }

    fn state_bytes(&self) -> u64 {
        0
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("cells", self.counts.cells);
        count("held", self.counts.held);
        count("gaps_filled", self.counts.gaps_filled);
        count("timeouts", self.counts.timeouts);
        count("overflows", self.counts.overflows);
    }
}

#[cfg(test)]
mod tests;
