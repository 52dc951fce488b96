//! A load balancer that is written in Python: called for every packet with more than one next hop.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use weft_balance::{ExternalSwitch, NextHops, SwitchContext, SwitchInfo};
use weft_packet::{Kind, Packet};

use crate::progress::Failure;

/// The packet in hand. Read-only.
#[pyclass(frozen, get_all, module = "weft._core")]
struct PacketView {
    /// Number of the source host.
    src: u16,
    /// Number of the destination host.
    dst: u16,
    /// Number of the flow.
    flow: u32,
    /// Hash of the five-tuple, which an ECMP hash mixes in.
    entropy: u32,
    /// Size on the wire, in bytes.
    size_bytes: u16,
    /// Number of the segment in its flow, from 0; on an acknowledgement, of the segment that is waited for.
    seq: u32,
    /// Whether the packet is an acknowledgement without payload.
    is_ack: bool,
}

/// One port that leads to the destination, as its own switch sees it. Read-only.
#[pyclass(frozen, get_all, module = "weft._core")]
struct PortView {
    /// Number of the port at its switch.
    index: u16,
    /// Bytes queued or in service.
    backlog_bytes: u64,
    /// Rate of the link now, in bits per second.
    rate_bps: u64,
    /// Capacity behind the port towards the destination, in Mbit/s.
    weight: u32,
}

/// The Python object at one switch.
pub struct PythonSwitch {
    switch: u32,
    choose: Py<PyAny>,
    failure: Failure,
}

impl PythonSwitch {
    /// The object with the method `choose` at the switch of `info`. Its exceptions go to `failure`.
    pub fn new(choose: Py<PyAny>, failure: Failure, info: &SwitchInfo<'_>) -> Self {
        Self { switch: info.switch, choose, failure }
    }

    fn ask(
        &self,
        py: Python<'_>,
        cx: &mut dyn SwitchContext,
        packet: &Packet,
        hops: &NextHops<'_>,
    ) -> PyResult<usize> {
        let ports = hops.ports.iter().zip(hops.weights).map(|(&port, &weight)| PortView {
            index: port.0,
            backlog_bytes: cx.backlog_bytes(port),
            rate_bps: cx.rate(port).as_bps(),
            weight,
        });
        let ports: Vec<PortView> = ports.collect();
        let answer = self.choose.bind(py).call1((self.switch, PacketView::from(packet), ports))?;
        let allowed = hops.ports.len();
        let Ok(index) = answer.extract::<i64>() else {
            let message = format!(
                "choose() returned {}: allowed is the position of a port, 0 to {}",
                answer.repr()?,
                allowed - 1
            );
            return Err(PyTypeError::new_err(message));
        };
        usize::try_from(index).ok().filter(|&index| index < allowed).ok_or_else(|| {
            let message =
                format!("choose() returned {index}: allowed is 0 to {}, one of {allowed} ports", allowed - 1);
            PyValueError::new_err(message)
        })
    }
}

impl From<&Packet> for PacketView {
    fn from(packet: &Packet) -> Self {
        Self {
            src: packet.src.0,
            dst: packet.dst.0,
            flow: packet.flow.0,
            entropy: packet.entropy,
            size_bytes: packet.wire_bytes,
            seq: packet.seq,
            is_ack: packet.kind == Kind::Ack,
        }
    }
}

impl ExternalSwitch for PythonSwitch {
    fn choose(&mut self, cx: &mut dyn SwitchContext, packet: &mut Packet, hops: &NextHops<'_>) -> usize {
        if self.failure.is_set() {
            // The run is about to end: any port will do.
            return 0;
        }
        Python::attach(|py| self.ask(py, cx, packet, hops)).unwrap_or_else(|error| {
            self.failure.set(error);
            0
        })
    }
}
