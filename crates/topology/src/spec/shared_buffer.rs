//! The memory that the ports of a switch share, and priority flow control, in the spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

use super::classes::ClassTable;
use super::error::FabricError;
use super::kinds::Common;
use super::queue::{MTU_BYTES, QueueTable};
use crate::plan::{PortQueues, Shared, check_delay};
use crate::{ClassSorting, PauseRules, SharedBufferRules, Xoff};

/// The memory that the ports of each switch share, with dynamic thresholds (Choudhury and Hahne,
/// IEEE/ACM Transactions on Networking, 1998). A packet takes of it from when it comes until its
/// transmission begins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SharedBufferTable {
    /// All of it, at each switch. Default: 16MB. Source: Broadcom's Tomahawk, as in the simulators
    /// of HPCC and `ConWeave`, which scale it with ports.
    pub size: Bytes,
    /// A class of a port may hold `alpha` times what is free of the shared part, beyond its
    /// reserve: above 0, at most 1024. Default:
    /// 1. Source: Choudhury and Hahne, §V, who find 1 and 2 best.
    pub alpha: f64,
    /// Bytes that each class of each port has for itself. Default: 0B. Source: Choudhury and Hahne
    /// have none.
    pub reserve: Bytes,
}

impl Default for SharedBufferTable {
    fn default() -> Self {
        Self { size: Bytes::new(16_000_000), alpha: 1.0, reserve: Bytes::ZERO }
    }
}

/// Priority flow control (IEEE 802.1Qbb): a switch that has much of one lossless class from one
/// port tells the port before to pause that class. A pause holds until it is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseTable {
    /// The port before is paused when more than this came from it in this class and waits. Default:
    /// absent, `alpha` decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xoff: Option<Bytes>,
    /// Likewise, when more than `alpha` times what is free of the shared buffer waits: above 0, at
    /// most 1024. Default: 1. Source: DCQCN (Zhu et al., SIGCOMM 2015), §4, with its beta of 8; the
    /// simulators of HPCC and `ConWeave` have 1/8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// It goes on when so many bytes less than that wait. Default: 3000B. Source: two packets,
    /// DCQCN, §4.
    pub hysteresis: Bytes,
    /// How long a port sends on that was told to pause. Default: what IEEE 802.3, annex 31B, allows
    /// at most at its rate: 60 quanta of 512 bits up to 10 Gbit/s, 80 at 25, 118 at 40, 394 at 100,
    /// 453 at 200 and 905 at 400; between two of these rates those of the lower one, and above 400
    /// those of 400, for want of a figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Span>,
    /// Memory for what still comes from each port in each lossless class after that. Default:
    /// exactly what may come, by delay, rate and `response`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
    /// How often the run looks whether paused ports wait for each other in a circle, which ends it;
    /// at least 1us. Default: 1ms. Source: a choice.
    pub look_every: Span,
}

impl Default for PauseTable {
    fn default() -> Self {
        Self {
            xoff: None,
            alpha: None,
            hysteresis: Bytes::new(2 * MTU_BYTES),
            response: None,
            headroom: None,
            look_every: Span::from_ms(1),
        }
    }
}

/// Shortest interval of looks at all pauses: shorter ones take longer than the run.
const LEAST_LOOK: Span = Span::from_us(1);

/// Refuses a share of the free memory that cannot be meant.
pub(super) fn check_alpha(key: &str, alpha: f64) -> Result<(), FabricError> {
    const MOST: f64 = 1_024.0;
    if alpha > 0.0 && alpha <= MOST {
        return Ok(());
    }
    Err(FabricError::bad(key, &alpha, format!("a number above 0 and up to {MOST}")))
}

impl SharedBufferTable {
    fn rules(&self, pause: Option<PauseRules>) -> Result<SharedBufferRules, FabricError> {
        check_alpha("fabric.shared_buffer.alpha", self.alpha)?;
        if self.size.as_u64() < MTU_BYTES {
            let allowed = format!("room for at least one packet of {MTU_BYTES} bytes");
            return Err(FabricError::bad("fabric.shared_buffer.size", &self.size, allowed));
        }
        let (bytes, reserve) = (self.size.as_u64(), self.reserve.as_u64());
        Ok(SharedBufferRules { bytes, alpha: self.alpha, reserve, pause })
    }
}

impl PauseTable {
    const ALPHA: f64 = 1.0;

    /// The defaults filled in.
    fn resolved(&self) -> Self {
        Self { alpha: self.alpha.or(self.xoff.is_none().then_some(Self::ALPHA)), ..*self }
    }

    fn rules(&self) -> Result<PauseRules, FabricError> {
        let xoff = match (self.xoff, self.resolved().alpha) {
            (Some(_), Some(_)) => {
                return Err(FabricError::Conflict {
                    key: "fabric.pause.xoff".to_owned(),
                    other: "fabric.pause.alpha".to_owned(),
                    reason: "one threshold decides".to_owned(),
                });
            }
            (Some(bytes), None) => Xoff::Bytes(bytes.as_u64()),
            (None, alpha) => {
                let alpha = alpha.unwrap_or(Self::ALPHA);
                check_alpha("fabric.pause.alpha", alpha)?;
                Xoff::Share(alpha)
            }
        };
        if let Some(response) = self.response {
            check_delay("fabric.pause.response", response)?;
        }
        if self.look_every < LEAST_LOOK {
            let allowed = format!("at least {LEAST_LOOK}");
            return Err(FabricError::bad("fabric.pause.look_every", &self.look_every, allowed));
        }
        Ok(PauseRules {
            xoff,
            hysteresis: self.hysteresis.as_u64(),
            response: self.response,
            headroom: self.headroom.map(Bytes::as_u64),
            look_every: self.look_every,
        })
    }
}

impl Common<'_> {
    fn is_lossless(&self) -> bool {
        let all = self.switch_queue.lossless == Some(true);
        let classes = &self.switch_queue.class;
        if classes.is_empty() { all } else { classes.iter().any(|class| class.lossless.unwrap_or(all)) }
    }

    /// The memory of a switch with its defaults, if its ports share it.
    pub(crate) fn resolved_shared_buffer(&self) -> Option<SharedBufferTable> {
        self.shared_buffer.copied().or_else(|| self.is_lossless().then(SharedBufferTable::default))
    }

    /// The rules of pauses with their defaults, if there are any.
    pub(crate) fn resolved_pause(&self) -> Option<PauseTable> {
        let pause = self.pause.copied().or_else(|| self.is_lossless().then(PauseTable::default));
        pause.map(|pause| pause.resolved())
    }

    /// The default queue of a switch's port.
    pub(crate) fn switch_default(&self) -> QueueTable {
        if self.resolved_shared_buffer().is_some() { QueueTable::SHARING } else { QueueTable::SWITCH }
    }

    /// The queues of a host's port: where classes are paused, those of a switch's port unless it
    /// says otherwise.
    pub(super) fn host_table(&self, switch: &QueueTable) -> Result<QueueTable, FabricError> {
        let mut table = self.host_queue.clone();
        Self::check_host_keys(&table)?;
        if self.is_lossless() && table.class.is_empty() && table.scheduler.is_none() {
            let own = |class: &ClassTable| ClassTable {
                holds: class.holds.clone(),
                weight: class.weight,
                ..ClassTable::default()
            };
            table.scheduler = switch.scheduler;
            table.class = switch.class.iter().map(own).collect();
        }
        Ok(table)
    }

    /// Rejects keys at hosts that only a switch has.
    fn check_host_keys(table: &QueueTable) -> Result<(), FabricError> {
        let refuse = |key: String, reason: &str| {
            let (other, reason) = ("fabric.switch_queue".to_owned(), reason.to_owned());
            Err(FabricError::Conflict { key, other, reason })
        };
        if table.lossless.is_some() {
            return refuse(
                "fabric.host_queue.lossless".to_owned(),
                "switches pause the ports before them, hosts do not",
            );
        }
        if table.trim.is_some() {
            return refuse("fabric.host_queue.trim".to_owned(), "switches cut packets, hosts do not");
        }
        let has_any = |class: &ClassTable| {
            class.lossless.is_some()
                || class.trim.is_some()
                || class.alpha.is_some()
                || class.reserve.is_some()
        };
        match table.class.iter().position(has_any) {
            Some(place) => {
                let key = format!("fabric.host_queue.class[{place}]");
                refuse(key, "lossless, trim, alpha and reserve are of switches' classes")
            }
            None => Ok(()),
        }
    }

    /// Shared buffer of the ports of a switch.
    pub(super) fn shared_buffer_rules(
        &self,
        shared: &Shared,
    ) -> Result<Option<SharedBufferRules>, FabricError> {
        if self.pause.is_some() && !self.is_lossless() {
            return Err(FabricError::Missing {
                key: "fabric.switch_queue.lossless".to_owned(),
                reason: "fabric.pause pauses lossless classes, and none is".to_owned(),
            });
        }
        let Some(memory) = self.resolved_shared_buffer() else { return self.check_no_shared_buffer() };
        if self.software_switch.is_some() {
            return Err(FabricError::Conflict {
                key: "fabric.shared_buffer".to_owned(),
                other: "fabric.software_switch".to_owned(),
                reason: "a switch that is a program keeps packets in queues of its own".to_owned(),
            });
        }
        let pause = if self.is_lossless() { self.resolved_pause() } else { None };
        check_alike(shared, pause.is_some())?;
        let pause = pause.as_ref().map(PauseTable::rules).transpose()?;
        memory.rules(pause).map(Some)
    }

    fn check_no_shared_buffer(&self) -> Result<Option<SharedBufferRules>, FabricError> {
        let shares = |class: &ClassTable| class.alpha.is_some() || class.reserve.is_some();
        match self.switch_queue.class.iter().position(shares) {
            Some(place) => Err(FabricError::Missing {
                key: "fabric.shared_buffer".to_owned(),
                reason: format!("fabric.switch_queue.class[{place}] has a share of it"),
            }),
            None => Ok(None),
        }
    }
}

/// A pause names a class by its number: so the ports of hosts and of switches have the same ones.
fn check_alike(shared: &Shared, pauses: bool) -> Result<(), FabricError> {
    let sorting = |queues: &PortQueues| queues.classes.as_ref().map(|classes| classes.sorting);
    let [switch, host] = [&shared.switch_queue, &shared.host_queue].map(sorting);
    if !pauses || switch == host || (host.is_none() && switch == Some(ClassSorting::default())) {
        return Ok(());
    }
    Err(FabricError::Conflict {
        key: "fabric.host_queue.class".to_owned(),
        other: "fabric.switch_queue.class".to_owned(),
        reason: "a switch pauses classes of the hosts' ports: both need the same ones, which hold the same"
            .to_owned(),
    })
}
