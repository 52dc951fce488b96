//! Generated traffic: flows.

use weft_packet::{Class, HostId};
use weft_units::{Span, Time};

use crate::{Application, OfferedLoad, Schedule};

/// One flow: `size_bytes` of payload from `src` to `dst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// When the source has the first byte to send. Of a flow that waits for others
    /// ([`crate::Dependencies`]), the earliest time at which that can be: it starts when what it
    /// waits for is there.
    pub start: Time,
    /// Payload bytes, 1 to [`crate::MAX_FLOW_BYTES`]; 0 for a background flow, which has no end.
    pub size_bytes: u64,
    /// The host that sends.
    pub src: HostId,
    /// The host that receives; never `src`.
    pub dst: HostId,
    /// Class of the flow, as the application states it.
    pub class: Class,
    /// Long-lived: it never finishes, and has no completion time.
    pub background: bool,
    /// The transport that carries it, by its number in the run; 0 if there is one alone.
    pub transport: u8,
}

/// The flows of one run, and what they amount to.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// Sorted by start. Flows of one instant stand in this order: long-lived ones, incasts, then
    /// random ones or the trace's, then those of collectives; among each of these, in the order of
    /// the spec's tables, of the senders drawn, of arrival, of the trace's rows. The flows of a
    /// trace alone therefore keep their order.
    pub flows: Vec<Flow>,
    /// By when each flow should be done, from its start; empty if the spec asks for no deadlines.
    pub deadlines: Vec<Option<Span>>,
    /// How the applications of flows write, if not all at once.
    pub application: Option<Application>,
    /// Load that the random flows offer; `None` if there are none.
    pub offered_load: Option<OfferedLoad>,
    /// Where the sizes of the random flows come from; `None` if there are none.
    pub workload: Option<WorkloadUsed>,
    /// Collectives, and what their flows wait for; `None` if there are none.
    pub schedule: Option<Schedule>,
}

/// The flow-size distribution that was drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadUsed {
    /// Name of the distribution, its file, or "fixed 64KB".
    pub name: String,
    /// The mean that turned load into an arrival rate, in bytes: that of scaled sizes.
    pub mean_bytes: f64,
}
