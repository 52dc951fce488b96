//! Ports with several classes in the spec.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::Class;
use weft_units::Bytes;

use super::amount::Mark;
use super::error::FabricError;
use super::queue::{MarkAt, QueueTable, RedTable};
use super::shared_buffer::check_alpha;
use crate::plan::PortQueues;
use crate::{ClassSorting, ClassSpec, ClassesSpec, Limit, Scheduling};

/// Scheduler of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// The packet that came first: the port has one queue.
    Fifo,
    /// The first packet of the first class, in the order of the spec, that has one: strict
    /// priority.
    Strict,
    /// Each class in its turn, up to `weight` packets of full size: deficit round robin (Shreedhar
    /// and Varghese, 1996).
    Weighted,
}

/// Packets that a class may hold: those of flows of a class, acknowledgements and credits with them
/// unless another class holds these, or those of schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClassMember {
    /// Packets of flows of no class.
    Unknown,
    /// Packets of short flows.
    Short,
    /// Packets of long flows.
    Long,
    /// Packets of best-effort flows.
    BestEffort,
    /// Packets of flows of traffic class 4.
    Tc4,
    /// Packets of flows of traffic class 5.
    Tc5,
    /// Packets of flows of traffic class 6.
    Tc6,
    /// Packets of flows of traffic class 7.
    Tc7,
    /// Packets of schemes: probes, and messages between hosts.
    Schemes,
    /// Acknowledgements of any flow, good or bad.
    Acks,
    /// Congestion notifications (CNPs) to the senders of any flow.
    Notifications,
    /// The headers of packets that a full queue has cut: see `trim`.
    Trimmed,
}

impl ClassMember {
    /// In the order of [`ClassSorting::of_flows`] and, behind those of flows, of the fields beside
    /// it.
    const ALL: [Self; Class::COUNT + 4] = [
        Self::Unknown,
        Self::Short,
        Self::Long,
        Self::BestEffort,
        Self::Tc4,
        Self::Tc5,
        Self::Tc6,
        Self::Tc7,
        Self::Schemes,
        Self::Acks,
        Self::Notifications,
        Self::Trimmed,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Unknown => Class::Unknown.name(),
            Self::Short => Class::Short.name(),
            Self::Long => Class::Long.name(),
            Self::BestEffort => Class::BestEffort.name(),
            Self::Tc4 => Class::Tc4.name(),
            Self::Tc5 => Class::Tc5.name(),
            Self::Tc6 => Class::Tc6.name(),
            Self::Tc7 => Class::Tc7.name(),
            Self::Schemes => "schemes",
            Self::Acks => "acks",
            Self::Notifications => "notifications",
            Self::Trimmed => "trimmed",
        }
    }
}

/// One class of a port: a queue of its own.
// `buffer`, `mark` and `red` stand here and in `QueueTable`: with `#[serde(flatten)]` a table no
// longer refuses unknown keys, and errors below it lose their path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    /// The packets that it holds. Every class of flows is in one class of the port, but `tc4` to
    /// `tc7` only if there are such flows; packets of schemes are with those of flows of no class,
    /// if nothing else is said.
    pub holds: Vec<ClassMember>,
    /// Share of the port with `scheduler = "weighted"`: packets of full size in its turn, 1 to
    /// 1000. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// As `buffer` of the port, for this class alone. Default: that of the port; unlimited where
    /// the class is lossless, which takes no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Limit>,
    /// As `mark` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// As `red` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub red: Option<RedTable>,
    /// As `mark_at` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<MarkAt>,
    /// As `alpha` of `fabric.shared_buffer`, for this class alone. Default: that of the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// As `reserve` of `fabric.shared_buffer`, for this class alone. Default: that of the memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Bytes>,
    /// As `lossless` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless: Option<bool>,
    /// As `trim` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Bytes>,
}

impl ClassTable {
    /// The most that a class may weigh.
    const MOST_WEIGHT: u32 = 1_000;

    /// The defaults of its port filled in.
    pub(super) fn resolved(&self, port: &QueueTable) -> Self {
        let marks = self.mark.is_some() || self.red.is_some();
        let weight = (port.scheduler == Some(SchedulerName::Weighted)).then_some(1);
        let lossless = self.lossless.or(port.lossless);
        // A limit of the port is for its other classes.
        let buffer = if lossless == Some(true) { Some(Limit::Unlimited) } else { port.buffer };
        Self {
            holds: self.holds.clone(),
            weight: self.weight.or(weight),
            buffer: self.buffer.or(buffer),
            mark: if marks { self.mark } else { port.mark },
            red: if marks { self.red } else { port.red },
            mark_at: self.mark_at.or(port.mark_at),
            alpha: self.alpha,
            reserve: self.reserve,
            lossless,
            trim: self.trim.or(port.trim),
        }
    }

    fn class(&self, key: &str, overhead_bytes: u64) -> Result<ClassSpec, FabricError> {
        if self.holds.is_empty() {
            let allowed = format!("at least one of {}", ClassMember::ALL.map(ClassMember::name).join(", "));
            return Err(FabricError::bad(format!("{key}.holds"), &"[]", allowed));
        }
        let weight = self.weight.unwrap_or(1);
        if !(1..=Self::MOST_WEIGHT).contains(&weight) {
            let allowed = format!("1 to {}", Self::MOST_WEIGHT);
            return Err(FabricError::bad(format!("{key}.weight"), &weight, allowed));
        }
        if let Some(alpha) = self.alpha {
            check_alpha(&format!("{key}.alpha"), alpha)?;
        }
        let queue = QueueTable::of_class(self.buffer, self.mark, self.red, self.mark_at);
        let lossless = self.lossless.unwrap_or(false);
        let trim_bytes = self.trim.map(|bytes| trim(&format!("{key}.trim"), bytes)).transpose()?;
        if lossless && trim_bytes.is_some() {
            return Err(FabricError::Conflict {
                key: format!("{key}.trim"),
                other: format!("{key}.lossless"),
                reason: "a lossless queue is never full".to_owned(),
            });
        }
        if lossless {
            check_no_limit(key, self.buffer)?;
        }
        Ok(ClassSpec {
            queue: queue.queue(key, overhead_bytes)?,
            weight,
            alpha: self.alpha,
            reserve: self.reserve,
            lossless,
            trim_bytes,
        })
    }
}

/// Refuses a limit of a lossless queue, which would drop what does not fit.
fn check_no_limit(key: &str, buffer: Option<Limit>) -> Result<(), FabricError> {
    match buffer {
        Some(limit @ Limit::AtMost(_)) => Err(FabricError::Conflict {
            key: format!("{key}.buffer"),
            other: format!("{key}.lossless"),
            reason: format!(
                "with a limit of {limit} it would drop packets; fabric.shared_buffer.size and fabric.pause bound what waits"
            ),
        }),
        _ => Ok(()),
    }
}

/// The bytes that are left of a packet that is cut.
fn trim(key: &str, bytes: Bytes) -> Result<u16, FabricError> {
    /// The least frame of Ethernet, and more than any headers take.
    const ALLOWED: std::ops::RangeInclusive<u64> = 64..=512;
    let found = u16::try_from(bytes.as_u64()).ok().filter(|&bytes| ALLOWED.contains(&u64::from(bytes)));
    found.ok_or_else(|| {
        let allowed = format!("{}B to {}B, the bytes that are left", ALLOWED.start(), ALLOWED.end());
        FabricError::bad(key, &bytes, allowed)
    })
}

/// The most classes of a port: IEEE 802.1Q has eight priorities.
const MOST_CLASSES: usize = 8;

/// The queues of the port that a resolved table describes.
pub(super) fn port(table: &QueueTable, key: &str, overhead_bytes: u64) -> Result<PortQueues, FabricError> {
    let queue = table.queue(key, overhead_bytes)?;
    let scheduling = match table.scheduler {
        None | Some(SchedulerName::Fifo) if table.class.is_empty() => {
            let classes = one_class(table, key, overhead_bytes)?;
            if classes.is_none() && table.mark_at == Some(MarkAt::Departure) {
                return Err(FabricError::Missing {
                    key: format!("{key}.class"),
                    reason: format!("{key}.mark_at = \"departure\" needs classes, or fabric.shared_buffer"),
                });
            }
            return Ok(PortQueues { queue, classes });
        }
        None | Some(SchedulerName::Fifo) => {
            return Err(FabricError::Conflict {
                key: format!("{key}.class"),
                other: format!("{key}.scheduler = \"fifo\""),
                reason: "one queue holds every packet; classes need \"strict\" or \"weighted\"".to_owned(),
            });
        }
        Some(SchedulerName::Strict) => Scheduling::Strict,
        Some(SchedulerName::Weighted) => Scheduling::Weighted,
    };
    if table.class.len() > MOST_CLASSES {
        let (key, found) = (format!("{key}.class"), table.class.len());
        return Err(FabricError::bad(key, &found, format!("up to {MOST_CLASSES} classes")));
    }
    let weighs = |class: &super::ClassTable| class.weight.is_some();
    if let Some(place) = table.class.iter().position(weighs).filter(|_| scheduling == Scheduling::Strict) {
        return Err(FabricError::Conflict {
            key: format!("{key}.class[{place}].weight"),
            other: format!("{key}.scheduler = \"strict\""),
            reason: "the order of classes decides".to_owned(),
        });
    }
    let classes = table.class.iter().enumerate();
    let classes = classes.map(|(place, class)| class.class(&format!("{key}.class[{place}]"), overhead_bytes));
    let classes = classes.collect::<Result<Vec<_>, _>>()?;
    let sorting = sorting(&table.class, key)?;
    if let Some(place) = sorting.trimmed.filter(|&place| classes[usize::from(place)].lossless) {
        return Err(FabricError::Conflict {
            key: format!("{key}.class[{place}].holds"),
            other: format!("{key}.class[{place}].lossless"),
            reason: "its pauses do not stop \"trimmed\" headers, which may find no headroom".to_owned(),
        });
    }
    if let (Some(place), None) =
        (classes.iter().position(|class| class.trim_bytes.is_some()), sorting.trimmed)
    {
        return Err(FabricError::Missing {
            key: format!("{key}.class"),
            reason: format!("{key}.class[{place}].trim needs a class that holds \"trimmed\" packets"),
        });
    }
    Ok(PortQueues { queue, classes: Some(Arc::new(ClassesSpec { scheduling, classes, sorting })) })
}

/// The one class of a port whose one queue does more than hold packets; none if it does not.
fn one_class(
    table: &QueueTable,
    key: &str,
    overhead_bytes: u64,
) -> Result<Option<Arc<ClassesSpec>>, FabricError> {
    if table.trim.is_some() {
        return Err(FabricError::Missing {
            key: format!("{key}.class"),
            reason: format!("{key}.trim needs a class that holds \"trimmed\" packets"),
        });
    }
    let lossless = table.lossless.unwrap_or(false);
    if !lossless && !table.in_shared_buffer {
        return Ok(None);
    }
    if lossless {
        check_no_limit(key, table.buffer)?;
    }
    let all = ClassTable { holds: ClassMember::ALL.to_vec(), ..ClassTable::default() };
    let class = all.resolved(table).class(key, overhead_bytes)?;
    let sorting = ClassSorting::default();
    Ok(Some(Arc::new(ClassesSpec { scheduling: Scheduling::Strict, classes: vec![class], sorting })))
}

/// Which class holds what.
fn sorting(classes: &[ClassTable], key: &str) -> Result<ClassSorting, FabricError> {
    let mut class_of: [Option<u8>; ClassMember::ALL.len()] = [None; _];
    for (place, class) in (0u8..).zip(classes) {
        for held in &class.holds {
            if let Some(earlier) = class_of[*held as usize].replace(place) {
                return Err(FabricError::Conflict {
                    key: format!("{key}.class[{earlier}].holds"),
                    other: format!("{key}.class[{place}].holds"),
                    reason: format!("both name {:?}", held.name()),
                });
            }
        }
    }
    let [flows @ .., schemes, acks, notifications, trimmed] = class_of;
    let unknown = flows[Class::Unknown as usize].ok_or_else(|| unheld(key, Class::Unknown, ""))?;
    let mut of_flows = [unknown; Class::COUNT];
    for (class, place) in Class::ALL.into_iter().zip(flows) {
        match place {
            Some(place) => of_flows[class as usize] = place,
            // There are none, or [`check_held`] says so.
            None if class > Class::BestEffort => {}
            None => return Err(unheld(key, class, "")),
        }
    }
    Ok(ClassSorting { of_flows, schemes: schemes.unwrap_or(unknown), acks, notifications, trimmed })
}

/// Flows of this class have no place at a port.
fn unheld(key: &str, class: Class, why: &str) -> FabricError {
    FabricError::Missing {
        key: format!("{key}.class"),
        reason: format!("no class holds the packets of {:?} flows{why}", class.name()),
    }
}

/// Checks that a port, if it has classes, has one for flows of each of these classes.
pub(super) fn check_held(table: &QueueTable, key: &str, flows: &[Class]) -> Result<(), FabricError> {
    let names = |class: Class| {
        let mut held = table.class.iter().flat_map(|own| &own.holds);
        held.any(|held| held.name() == class.name())
    };
    match flows.iter().find(|&&class| !table.class.is_empty() && !names(class)) {
        Some(&class) => Err(unheld(key, class, ", and the traffic has such flows")),
        None => Ok(()),
    }
}
