//! Statistics of the kernel itself on a flow.

use weft_linux_hosts::{Connection, TcpInfo};
use weft_packet::FlowId;
use weft_units::Time;

use crate::results::rows::{FlowRow, SubflowRow};

/// Statistics on one flow from inside, by the kernel's own clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFlow {
    /// Port of the flow at the sender.
    pub port: u16,
    /// When the connection was there.
    pub connected: Option<Time>,
    /// When the application at the receiver read the last byte.
    pub read: Option<Time>,
    /// When the sender's end was done.
    pub closed: Option<Time>,
    /// Counters of the sender's kernel, for TCP.
    pub info: Option<Box<TcpInfo>>,
    /// For MPTCP: whether it was TCP after all.
    pub fell_back: Option<bool>,
    /// Counters of the sender's kernel for each subflow that it had at its end.
    pub subflows: Vec<Connection>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

/// Counters of a kernel for a flow at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelWindow {
    /// When.
    pub at: Time,
    /// The flow.
    pub flow: FlowId,
    /// Counters of the sender's kernel.
    pub info: Box<TcpInfo>,
}

impl KernelFlow {
    /// One of which everything is known.
    pub fn whole(is_multipath: bool) -> Self {
        let at = Some(Time::ZERO);
        let fell_back = is_multipath.then_some(false);
        Self { connected: at, read: at, closed: at, info: Some(Box::default()), fell_back, ..Self::default() }
    }

    /// Writes it into the row of its flow, which started then.
    pub fn fill(&self, start: Time, row: &mut FlowRow) {
        let since_start = |time: Option<Time>| time.map(|time| time.since(start).as_us());
        row.kernel_port = Some(self.port);
        row.kernel_connected_us = since_start(self.connected);
        row.kernel_fct_us = since_start(self.read);
        row.kernel_closed_us = since_start(self.closed);
        row.kernel_subflows = self.fell_back.map(|_| self.subflows.len() as u32);
        row.kernel_fell_back = self.fell_back;
        let infos = || self.info.iter().chain(self.subflows.iter().map(|subflow| &subflow.info));
        let sum = |count: fn(&TcpInfo) -> u64| infos().map(|info| count(info)).reduce(u64::saturating_add);
        row.kernel_retransmissions = sum(|info| info.retransmits);
        row.kernel_marked = sum(|info| info.delivered_ce);
        row.kernel_dsacks = sum(|info| info.dsack_dups);
        row.kernel_reorderings = sum(|info| info.reord_seen);
        row.kernel_cwnd = sum(|info| info.cwnd);
        row.kernel_rtt_min_us = infos().map(|info| info.rtt_min_us).min();
        // What is no sum of several.
        let mut infos = infos();
        let (Some(info), None) = (infos.next(), infos.next()) else { return };
        row.kernel_rtt_us = Some(info.rtt_us);
        row.kernel_rto_us = Some(info.rto_us);
        row.kernel_ssthresh = Some(info.ssthresh);
        row.kernel_mss_bytes = Some(info.mss);
    }
}

/// Row of the kernel's counters for a subflow of a flow.
pub(super) fn subflow_row(
    flow: u32,
    subflow: u16,
    Connection { port, to_port, info, .. }: &Connection,
) -> SubflowRow {
    SubflowRow {
        flow,
        subflow,
        src_port: *port,
        dst_port: *to_port,
        segments_sent: info.segments_out,
        sent_bytes: info.bytes_sent,
        acknowledged_bytes: info.bytes_acked,
        retransmissions: info.retransmits,
        marked: info.delivered_ce,
        dsacks: info.dsack_dups,
        reorderings: info.reord_seen,
        rtt_us: info.rtt_us,
        rtt_min_us: info.rtt_min_us,
        rto_us: info.rto_us,
        cwnd: info.cwnd,
        ssthresh: info.ssthresh,
        mss_bytes: info.mss,
    }
}

/// Warnings on the kernel's flows.
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
