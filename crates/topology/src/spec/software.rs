//! Switches that are programs, in the spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_units::Span;

use super::amount::PacketRate;
use super::error::FabricError;
use crate::SoftwareSwitch;

/// The largest time a byte: a frame of 1,500 bytes would take 1.5 ms.
const MOST_PER_BYTE: Span = Span::from_us(1);
/// The longest input queue.
const MOST_QUEUED: u32 = 1 << 20;

/// A switch that is a program, as `BMv2` is: one process takes packets from all ports and decides
/// for each where it goes; then each port sends on its own. The table alone, without a key, changes
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SoftwareSwitchTable {
    /// Packets that the process of a switch forwards per second, those of all its ports together.
    /// Default: as many as come. Source: the papers that measure on `BMv2` do not say it; a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarding_rate: Option<PacketRate>,
    /// Time of the process for each byte of a packet beyond that, at most 1us. Default: 0s. Source:
    /// a choice.
    pub forwarding_per_byte: Span,
    /// Packets that wait for the process or are forwarded by it, 1 to 1048576; more are dropped.
    /// Default: 1024. Source: the input buffer of `BMv2`'s `simple_switch`, which blocks where it
    /// is full, so that packets are lost one queue before.
    pub input_queue: u32,
    /// Packets that a port sends per second at most, whatever their size. Default: as its rate has
    /// it. Source: `set_queue_rate` of `BMv2`'s `simple_switch`, where no port has a limit unless
    /// one is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_rate: Option<PacketRate>,
}

impl Default for SoftwareSwitchTable {
    fn default() -> Self {
        Self { forwarding_rate: None, forwarding_per_byte: Span::ZERO, input_queue: 1_024, port_rate: None }
    }
}

impl SoftwareSwitchTable {
    /// Rules of a software switch from the table.
    ///
    /// # Errors
    /// A number beyond its range.
    pub(crate) fn rules(&self) -> Result<SoftwareSwitch, FabricError> {
        let key = |key: &str| format!("fabric.software_switch.{key}");
        if self.forwarding_per_byte > MOST_PER_BYTE {
            let allowed = format!("at most {MOST_PER_BYTE}");
            return Err(FabricError::bad(key("forwarding_per_byte"), &self.forwarding_per_byte, allowed));
        }
        if !(1..=MOST_QUEUED).contains(&self.input_queue) {
            let allowed = format!("1 to {MOST_QUEUED}");
            return Err(FabricError::bad(key("input_queue"), &self.input_queue, allowed));
        }
        let per_packet = |rate: Option<PacketRate>| rate.map_or(Span::ZERO, PacketRate::per_packet);
        Ok(SoftwareSwitch {
            per_packet: per_packet(self.forwarding_rate),
            per_byte: self.forwarding_per_byte,
            input_queue: self.input_queue,
            per_port: per_packet(self.port_rate),
        })
    }
}
