//! The packets that links send, one by one: what a capture at a host or a link would show, of any kind of host.

use std::num::NonZeroUsize;

use arrow_array::RecordBatch;
use weft_fabric::Captured;
use weft_packet::{Kind, PacketFlags};
use weft_topology::Topology;
use weft_units::Mistake;

use crate::cores::Cores;
use crate::results::rows::PacketRow;
use crate::results::table::Row;
use crate::run::{Observer, Prepared, RunError, Simulated, Watch};
use crate::spec::{SpecError, nearest};
use crate::warnings::has_credit_ports;

/// What stands for the cables of all hosts, in the direction away from them.
const ALL_HOSTS: &str = "hosts";

impl Prepared {
    /// Runs to the end and returns the first `most` packets that the links of `at` send, by time: links by their names; hosts and
    /// switches, which stand for all links from and to them; or "hosts", the cables of all hosts away from them.
    ///
    /// # Errors
    /// A name that none has, a port with several queues, or as [`Prepared::run`].
    pub fn packets(
        &self,
        observer: Observer<'_>,
        at: &[String],
        most: usize,
    ) -> Result<RecordBatch, RunError> {
        let topology = &self.fabric.topology;
        let mut links = Vec::new();
        for name in at {
            links.extend(links_named(topology, name)?);
        }
        let has_credits = has_credit_ports(&self.resolved.spec.transport);
        let has_several = |link: u32| has_credits || topology.links[link as usize].classes.is_some();
        if let Some(&link) = links.iter().find(|&&link| has_several(link)) {
            let name = topology.link_name(link);
            return Err(
                SpecError::new(format!("{name} has several queues: its packets cannot be listed")).into()
            );
        }
        let watch = Watch { capture: Some((&links, most)), ..Watch::default() };
        let Simulated { results, .. } =
            self.simulate(observer, None, watch, Cores::UpTo(NonZeroUsize::MIN))?;
        let (captured, _) = &results.captured;
        let rows: Vec<_> = captured.iter().map(|packet| row(topology, packet)).collect();
        Ok(PacketRow::table(&rows)?)
    }
}

/// The links that a name stands for.
fn links_named(topology: &Topology, name: &str) -> Result<Vec<u32>, SpecError> {
    let all = || 0..topology.links.len() as u32;
    if name == ALL_HOSTS {
        // A host has one cable, and hosts are the first nodes.
        return Ok((0..topology.hosts as u32).collect());
    }
    if let Some(link) = all().find(|&link| topology.link_name(link) == name) {
        return Ok(vec![link]);
    }
    if let Some(node) = topology.names.iter().position(|known| known == name) {
        let touches = |link: &u32| {
            let spec = &topology.links[*link as usize];
            [spec.from, spec.to].iter().any(|end| end.0 as usize == node)
        };
        return Ok(all().filter(touches).collect());
    }
    let names: Vec<String> =
        topology.names.iter().cloned().chain(all().map(|link| topology.link_name(link))).collect();
    let near = nearest(name, names.iter().map(String::as_str));
    let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let allowed =
        "a host, a switch or a link, as in host0, leaf0 or leaf0>spine1, or hosts for the cables of all";
    let sentence = format!("there is no node or link {name:?}: allowed is {allowed}{hint}");
    Err(SpecError::from(Mistake::new(sentence).found(name).allowed(allowed)))
}

fn row(topology: &Topology, packet: &Captured) -> PacketRow {
    PacketRow {
        time_us: packet.at.as_us(),
        link: topology.link_name(packet.link),
        flow: packet.flow.0,
        src: packet.src.0,
        dst: packet.dst.0,
        kind: kind_name(packet.kind),
        segment: packet.segment,
        bytes: packet.wire_bytes,
        ecn_capable: packet.flags.has(PacketFlags::ECT),
        marked: packet.flags.has(PacketFlags::CE),
        echo: packet.flags.has(PacketFlags::ECE),
        retransmission: packet.flags.has(PacketFlags::RETRANSMISSION),
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Data => "data",
        Kind::Ack => "ack",
        Kind::Syn => "syn",
        Kind::SynAck => "syn-ack",
        Kind::Credit => "credit",
        Kind::CreditRequest => "credit-request",
        Kind::CreditStop => "credit-stop",
        Kind::Control => "control",
        Kind::Message => "message",
    }
}
