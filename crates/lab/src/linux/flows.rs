//! What the kernel itself says of a flow.

use weft_linux_hosts::TcpInfo;
use weft_packet::FlowId;
use weft_units::Time;

use crate::results::rows::FlowRow;

/// What is known of one flow from inside, by the kernel's own clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFlow {
    /// Its port at the sender.
    pub port: u16,
    /// When the connection was there.
    pub connected: Option<Time>,
    /// When the application at the receiver read the last byte.
    pub read: Option<Time>,
    /// When the sender's end was done.
    pub closed: Option<Time>,
    /// What the sender's kernel counted.
    pub info: Option<Box<TcpInfo>>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// What a kernel had counted of a flow at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelWindow {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: FlowId,
    /// What the sender's kernel had counted.
    pub info: Box<TcpInfo>,
}

impl KernelFlow {
    /// One of which everything is known.
    pub fn whole() -> Self {
        let at = Some(Time::ZERO);
        Self { connected: at, read: at, closed: at, info: Some(Box::default()), ..Self::default() }
    }

    /// Writes it into the row of its flow, which started then.
    pub fn fill(&self, start: Time, row: &mut FlowRow) {
        let since_start = |time: Option<Time>| time.map(|time| time.since(start).as_us());
        row.kernel_port = Some(self.port);
        row.kernel_connected_us = since_start(self.connected);
        row.kernel_fct_us = since_start(self.read);
        row.kernel_closed_us = since_start(self.closed);
        let Some(info) = self.info.as_deref() else { return };
        row.kernel_retransmissions = Some(info.retransmits);
        row.kernel_marked = Some(info.delivered_ce);
        row.kernel_dsacks = Some(info.dsack_dups);
        row.kernel_reorderings = Some(info.reord_seen);
        row.kernel_rtt_us = Some(info.rtt_us);
        row.kernel_rtt_min_us = Some(info.rtt_min_us);
        row.kernel_rto_us = Some(info.rto_us);
        row.kernel_cwnd = Some(info.cwnd);
        row.kernel_ssthresh = Some(info.ssthresh);
        row.kernel_mss_bytes = Some(info.mss);
    }
}

/// What a user should know of the kernel's flows.
pub(crate) fn kernel_warnings(flows: &[Option<KernelFlow>], foreign: u64) -> Vec<String> {
    let failed: Vec<(usize, &String)> = flows
        .iter()
        .enumerate()
        .filter_map(|(number, flow)| Some((number, flow.as_ref()?.failed.as_ref()?)))
        .collect();
    let mut warnings = Vec::new();
    if let Some((number, what)) = failed.first() {
        let count = failed.len();
        warnings.push(format!("hosts: {count} flows failed inside the kernel; flow {number}: {what}"));
    }
    if foreign > 0 {
        warnings.push(format!(
            "hosts: the kernel sent {foreign} packets to addresses that no host has; they went nowhere"
        ));
    }
    warnings
}
