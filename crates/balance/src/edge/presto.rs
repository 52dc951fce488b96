//! Presto: flowcells of 64 KB, in turn over all paths, from the edge (He et al., SIGCOMM 2015).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::{Packet, Route};
use weft_units::Bytes;

use crate::registry::Parameters;
use crate::{EdgeBalancer, EdgeContext, EdgeHooks, HostInfo, ParameterError};

/// Parameters of Presto.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Bytes of a flow that stay on one path. Source: Presto section 3.1 (the largest TSO segment).
    pub flowcell: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        Self { flowcell: Bytes::new(65_536) }
    }
}

impl Parameters for Params {
    fn validate(&self) -> Result<(), ParameterError> {
        if self.flowcell.is_zero() {
            return Err(ParameterError {
                key: "flowcell",
                found: self.flowcell.to_string(),
                allowed: "at least 1B",
            });
        }
        Ok(())
    }
}

/// Presto at one host.
#[derive(Debug)]
pub struct Presto {
    flowcell_bytes: u64,
}

/// One flow at one end.
#[derive(Debug, Default)]
pub struct Flow {
    sent_in_cell: u64,
    route: Option<u16>,
}

impl EdgeBalancer for Presto {
    type Params = Params;
    type Flow = Flow;

    fn new(params: &Params, _: &HostInfo) -> Self {
        Self { flowcell_bytes: params.flowcell.as_u64() }
    }

    fn hooks(_: &Params) -> EdgeHooks {
        EdgeHooks { sending: true, receiving: false }
    }

    fn sending<C: EdgeContext + ?Sized>(&mut self, cx: &mut C, flow: &mut Flow, packet: &mut Packet) {
        let routes = cx.routes_to(packet.dst);
        if routes < 2 {
            return;
        }
        let mut route = flow.route.unwrap_or_else(|| cx.random().below(u32::from(routes)) as u16);
        if flow.sent_in_cell >= self.flowcell_bytes {
            flow.sent_in_cell = 0;
            route = (route + 1) % routes;
        }
        flow.sent_in_cell += u64::from(packet.wire_bytes);
        flow.route = Some(route);
        packet.route = Route::label(route);
    }

    fn state_bytes(&self) -> u64 {
        0
    }
}
