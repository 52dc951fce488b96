//! Output queues in the spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Bytes;

use super::amount::Mark;
use super::classes::{ClassTable, SchedulerName};
use super::error::FabricError;
use crate::{Limit, Marking, QueueSpec, Threshold};

/// The largest packet of an Ethernet fabric without jumbo frames: what every buffer must hold.
pub(crate) const MTU_BYTES: u64 = 1_500;
/// 65 packets of 1,500 bytes: DCTCP, §4.1.
const DCTCP_MARK: Mark = Mark::Above(Threshold::Bytes(97_500));

/// The output queue of a port: how much it holds and when it marks.
///
/// At a switch, by default 250 packets of 1,500 bytes, with DCTCP's threshold of 65 packets at 10
/// Gbit/s (Alizadeh et al., SIGCOMM 2010, §4.1: K = 65 packets at 10 Gbit/s, 20 at 1 Gbit/s). At a
/// host, by default unlimited, with the same threshold: a sender learns of its own queue as it
/// learns of a switch's. Without marks there the windows of long flows grow until all other flows
/// of the host wait behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    /// Limit of the queue, the packet in service included: bytes on the wire or packets. A packet
    /// that does not fit is dropped; a lossless queue takes no limit. Default: 375KB (250 packets
    /// of 1,500 bytes) at switches, unlimited at hosts. Source: 250 packets in the ns-2 simulator
    /// of ExpressPass; other public ones have 200 to 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Limit>,
    /// A packet that finds a larger backlog than this gets CE, if its transport understands ECN.
    /// Default: 97500B (65 packets of 1,500 bytes) at switches and hosts. Source: DCTCP, §4.1; the
    /// ns-3 simulator of the Hermes authors marks at hosts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// Random early detection, instead of `mark`. Default: absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub red: Option<RedTable>,
    /// When a packet is marked: on `arrival`, by what it finds; or at `departure`, by what waits
    /// behind it when its transmission begins, which tells of a queue that grows as long as that
    /// queue is earlier. Needs classes or `fabric.shared_buffer`. Default: arrival. Source: DCTCP
    /// §3.1; switches that mark at their egress, as in the simulators of HPCC, ConWeave and Ultra
    /// Ethernet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<MarkAt>,
    /// Scheduler of the port: `fifo` (one queue), `strict` or `weighted`, which need `class`.
    /// Default: fifo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerName>,
    /// Whether packets are never dropped for want of room: the port before is paused instead (IEEE
    /// 802.1Qbb), by the rules of `fabric.pause`. Of switches' ports only; then the queue has no
    /// limit but the memory of its switch, and takes no `buffer`. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless: Option<bool>,
    /// A data packet that finds no room is cut to so many bytes, 64B to 512B, and its header queued
    /// with the class that holds `trimmed` packets. Default: absent, it is dropped. Source: 64
    /// bytes in NDP (Handley et al., SIGCOMM 2017).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Bytes>,
    /// Whether its switch has `fabric.shared_buffer`.
    #[serde(skip)]
    pub(crate) in_shared_buffer: bool,
    /// The classes of a port that has several, each with a queue of its own, the first one first.
    /// `buffer`, `mark` and `red` are then the defaults of each class. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<ClassTable>,
}

/// When a packet is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkAt {
    /// When it comes, by what it finds.
    Arrival,
    /// When its transmission begins, by what waits behind it.
    Departure,
}

/// Random early detection on the instantaneous backlog (Floyd and Jacobson, 1993, with a queue
/// weight of 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedTable {
    /// Up to this backlog nothing is marked.
    pub min: Bytes,
    /// Beyond this backlog everything is marked.
    pub max: Bytes,
    /// Probability of a mark at a backlog of `max`, above 0 and up to 1.
    pub probability: f64,
}

impl QueueTable {
    /// One queue with this buffer and these marks, and nothing else.
    const fn one(
        buffer: Option<Limit>,
        mark: Option<Mark>,
        red: Option<RedTable>,
        in_shared_buffer: bool,
    ) -> Self {
        Self {
            buffer,
            mark,
            red,
            mark_at: None,
            scheduler: None,
            lossless: None,
            trim: None,
            in_shared_buffer,
            class: Vec::new(),
        }
    }

    /// The default at a switch.
    pub(crate) const SWITCH: Self =
        Self::one(Some(Limit::AtMost(Threshold::Bytes(375_000))), Some(DCTCP_MARK), None, false);

    /// The default at a switch whose ports share its memory.
    pub(crate) const SHARING: Self = Self::one(Some(Limit::Unlimited), Some(DCTCP_MARK), None, true);

    /// The default at a host.
    pub(crate) const HOST: Self = Self::one(Some(Limit::Unlimited), Some(DCTCP_MARK), None, false);

    /// The queue of a class, whose port says the rest.
    pub(super) fn of_class(
        buffer: Option<Limit>,
        mark: Option<Mark>,
        red: Option<RedTable>,
        mark_at: Option<MarkAt>,
    ) -> Self {
        Self { mark_at, ..Self::one(buffer, mark, red, false) }
    }

    /// The defaults filled in.
    pub(crate) fn resolved(&self, defaults: &Self) -> Self {
        let mark = if self.red.is_some() { self.mark } else { self.mark.or(defaults.mark) };
        let port = Self {
            buffer: self.buffer.or(defaults.buffer),
            mark,
            red: self.red,
            mark_at: self.mark_at,
            scheduler: self.scheduler,
            lossless: self.lossless,
            trim: self.trim,
            in_shared_buffer: defaults.in_shared_buffer,
            class: Vec::new(),
        };
        Self { class: self.class.iter().map(|class| class.resolved(&port)).collect(), ..port }
    }

    /// The queue that a resolved table describes.
    pub(crate) fn queue(&self, key: &str, overhead_bytes: u64) -> Result<QueueSpec, FabricError> {
        let limit = self.buffer.unwrap_or(Limit::Unlimited);
        let least = MTU_BYTES + overhead_bytes;
        let holds_one = match limit {
            Limit::Unlimited => true,
            Limit::AtMost(Threshold::Bytes(bytes)) => bytes >= least,
            Limit::AtMost(Threshold::Packets(packets)) => packets >= 1,
        };
        if !holds_one {
            let allowed = format!("room for at least one packet of {least} bytes");
            return Err(FabricError::bad(format!("{key}.buffer"), &limit, allowed));
        }
        Ok(QueueSpec { limit, marking: self.marking_at(key)? })
    }

    fn marking(&self, key: &str) -> Result<Marking, FabricError> {
        match (self.mark, self.red) {
            (Some(_), Some(_)) => Err(FabricError::Conflict {
                key: format!("{key}.mark"),
                other: format!("{key}.red"),
                reason: "a queue marks by one rule".to_owned(),
            }),
            (None | Some(Mark::Never), None) => Ok(Marking::Never),
            (Some(Mark::Above(threshold)), None) => Ok(Marking::Step(threshold)),
            (None, Some(red)) => red.marking(key),
        }
    }

    /// Marking of packets, on departure if they are marked then.
    fn marking_at(&self, key: &str) -> Result<Marking, FabricError> {
        let marking = self.marking(key)?;
        if self.mark_at != Some(MarkAt::Departure) {
            return Ok(marking);
        }
        match marking {
            Marking::Step(Threshold::Packets(packets)) => {
                let allowed = format!("bytes, where {key}.mark_at is \"departure\"");
                Err(FabricError::bad(format!("{key}.mark"), &Threshold::Packets(packets), allowed))
            }
            Marking::Step(Threshold::Bytes(bytes)) => {
                let above = bytes.saturating_add(1);
                Ok(Marking::Leaving { min: above, max: above, probability: 1.0 })
            }
            Marking::Red { min, max, probability } => Ok(Marking::Leaving { min, max, probability }),
            other => Ok(other),
        }
    }
}

impl RedTable {
    fn marking(self, key: &str) -> Result<Marking, FabricError> {
        if self.min >= self.max {
            let allowed = format!("less than {key}.red.max, which is {}", self.max);
            return Err(FabricError::bad(format!("{key}.red.min"), &self.min, allowed));
        }
        if !(self.probability > 0.0 && self.probability <= 1.0) {
            let key = format!("{key}.red.probability");
            return Err(FabricError::bad(key, &self.probability, "a number above 0 and up to 1"));
        }
        let (min, max) = (self.min.as_u64(), self.max.as_u64());
        Ok(Marking::Red { min, max, probability: self.probability })
    }
}
