//! Ports with several classes in the spec.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Mark;
use super::error::FabricError;
use super::queue::{QueueTable, RedTable};
use crate::plan::PortQueues;
use crate::{ClassSpec, ClassesSpec, Limit, Scheduling};

/// What sends next at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// The packet that came first: the port has one queue.
    Fifo,
    /// The first packet of the first class, in the order of the spec, that has one: strict priority.
    Strict,
    /// Each class in its turn, up to `weight` packets of full size: deficit round robin (Shreedhar and Varghese, 1996).
    Weighted,
}

/// Packets that a class may hold: those of flows of a class, acknowledgements and credits with them, or those of schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// Of flows of no class.
    Unknown,
    /// Of short flows.
    Short,
    /// Of long flows.
    Long,
    /// Of best-effort flows.
    BestEffort,
    /// Of schemes: probes, and messages between hosts.
    Schemes,
}

impl Held {
    /// In the order of [`ClassesSpec::class_of`].
    const ALL: [Self; 5] = [Self::Unknown, Self::Short, Self::Long, Self::BestEffort, Self::Schemes];

    const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Short => "short",
            Self::Long => "long",
            Self::BestEffort => "best-effort",
            Self::Schemes => "schemes",
        }
    }
}

/// One class of a port: a queue of its own.
// `buffer`, `mark` and `red` stand here and in `QueueTable`: with `#[serde(flatten)]` a table no longer refuses unknown keys, and
// errors below it lose their path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    /// The packets that it holds. Every class of flows is in one class of the port; packets of schemes are with those of
    /// flows of no class, if nothing else is said.
    pub holds: Vec<Held>,
    /// Its share of the port with `scheduler = "weighted"`: packets of full size in its turn, 1 to 1000. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// As `buffer` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Limit>,
    /// As `mark` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// As `red` of the port, for this class alone. Default: that of the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub red: Option<RedTable>,
}

impl ClassTable {
    /// The most that a class may weigh.
    const MOST_WEIGHT: u32 = 1_000;

    /// The defaults of its port filled in.
    pub(super) fn resolved(&self, port: &QueueTable) -> Self {
        let marks = self.mark.is_some() || self.red.is_some();
        let weight = (port.scheduler == Some(SchedulerName::Weighted)).then_some(1);
        Self {
            holds: self.holds.clone(),
            weight: self.weight.or(weight),
            buffer: self.buffer.or(port.buffer),
            mark: if marks { self.mark } else { port.mark },
            red: if marks { self.red } else { port.red },
        }
    }

    fn class(&self, key: &str, overhead_bytes: u64) -> Result<ClassSpec, FabricError> {
        if self.holds.is_empty() {
            let allowed = "at least one of unknown, short, long, best-effort and schemes";
            return Err(FabricError::bad(format!("{key}.holds"), &"[]", allowed));
        }
        let weight = self.weight.unwrap_or(1);
        if !(1..=Self::MOST_WEIGHT).contains(&weight) {
            let allowed = format!("1 to {}", Self::MOST_WEIGHT);
            return Err(FabricError::bad(format!("{key}.weight"), &weight, allowed));
        }
        let queue = QueueTable {
            buffer: self.buffer,
            mark: self.mark,
            red: self.red,
            scheduler: None,
            class: Vec::new(),
        };
        Ok(ClassSpec { queue: queue.queue(key, overhead_bytes)?, weight })
    }
}

/// The queues of the port that a resolved table describes.
pub(super) fn port(table: &QueueTable, key: &str, overhead_bytes: u64) -> Result<PortQueues, FabricError> {
    let queue = table.queue(key, overhead_bytes)?;
    let scheduling = match table.scheduler {
        None | Some(SchedulerName::Fifo) if table.class.is_empty() => {
            return Ok(PortQueues { queue, classes: None });
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
    let class_of = class_of(&table.class, key)?;
    Ok(PortQueues { queue, classes: Some(Arc::new(ClassesSpec { scheduling, classes, class_of })) })
}

/// Which class holds what.
fn class_of(classes: &[ClassTable], key: &str) -> Result<[u8; 5], FabricError> {
    let mut class_of: [Option<u8>; 5] = [None; 5];
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
    let missing = |held: Held| FabricError::Missing {
        key: format!("{key}.class"),
        reason: format!("no class holds the packets of {:?} flows", held.name()),
    };
    let [flows @ .., schemes] = class_of;
    let mut found = [0; 5];
    for (place, held) in flows.into_iter().zip(Held::ALL) {
        found[held as usize] = place.ok_or_else(|| missing(held))?;
    }
    found[Held::Schemes as usize] = schemes.unwrap_or(found[Held::Unknown as usize]);
    Ok(found)
}
