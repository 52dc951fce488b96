//! Graphs of flows from files.

mod chakra;
mod chakra_json;
mod chakra_node;
mod chakra_protobuf;
mod cm;
mod goal;
mod goal_binary;
mod lines;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::HostId;
use weft_units::{Span, Time};

use super::draft::{Kind, Op, Point, Role, WrittenIn};
use super::exchange::{Builder, Carriage, CollectiveDraft, Name};
use super::make::World;
use super::ranks::{Asked, ranks};
use super::spec::{AllReduceAlgorithm, Placement};
use super::{CollectiveKind, draft::FlowDraft};
use crate::trace::{read_file, read_file_bytes};
use crate::{ClassName, HostRange, TrafficError};

pub use cm::StartUnit;

/// Flows that wait for each other, from a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSpec {
    /// The file (relative to the spec): a connection matrix of htsim (its name ends in `.cm`), a
    /// schedule in GOAL, as text or as `txt2bin` makes it of that (`.goal` or `.bin`), or the
    /// execution traces of Chakra (`MLCommons`), as protobuf (`.et`) or JSON (`.json`), of which
    /// there is one for each rank: `{rank}` in the name stands for 0, 1, and so on, as in
    /// `"step.{rank}.et"`.
    pub file: String,
    /// The hosts that ranks are placed on, as in `[0, "8-15"]`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<HostRange>>,
    /// Which host becomes which rank. Default `"in-order"`.
    #[serde(default)]
    pub placement: Placement,
    /// When everything begins. Default 0.
    #[serde(default)]
    pub start: Span,
    /// A factor on the times that hosts compute, 0 to 1000. Default 1.
    #[serde(default = "one")]
    pub compute_scale: f64,
    /// Whether computations of one processor take turns: those of one `cpu` of a rank in GOAL, and
    /// in Chakra those of a rank, of which the operations of its CPU (`is_cpu_op`) and those on its
    /// memory are apart. Without it they go on side by side. Default true.
    #[serde(default = "yes")]
    pub turns: bool,
    /// CPU time of a message of GOAL at either end: a send before it goes out, a recv when it has
    /// come, each in its turn on the `cpu` that it names. Not scaled. Default 0. Source: `o` of
    /// `LogGOPS` (Hoefler et al., LSAP 2010), for which `LogGOPSim` has 1500 ns unless told
    /// otherwise.
    #[serde(default)]
    pub overhead: Span,
    /// The unit of the starts in a connection matrix of htsim: `"us"` (`htsim_uec`, `htsim_eqds`
    /// and `htsim_roce` of uet-htsim, and `htsim_swift`) or `"ps"` (the other programs, and those
    /// of csg-htsim). Required if a start is not 0, since no matrix states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_unit: Option<StartUnit>,
    /// How the all-reduces of Chakra's traces go. Default `"ring"`.
    #[serde(default)]
    pub algorithm: AllReduceAlgorithm,
    /// The class of the flows. Default: by size, if `traffic.classes.short_below` is given, else
    /// `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// The label of the transport that carries the flows. Default: as `traffic.classes.transport`
    /// says for their class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

/// The files that `traffic.schedule.file` stands for, as far as they are there.
pub fn schedule_files(file: &Path) -> Vec<PathBuf> {
    let Some(name) = file.to_str().filter(|name| name.contains(chakra::RANK)) else {
        return vec![file.to_owned()];
    };
    chakra::ranks_of(file).into_iter().map(|rank| chakra::file_of(name, rank).into()).collect()
}

/// The name of a file without its folder.
fn label_of(file: &str) -> String {
    Path::new(file).file_name().map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned())
}

const fn one() -> f64 {
    1.0
}

const fn yes() -> bool {
    true
}

/// A flow of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    /// The ranks that send and receive.
    pub ends: (usize, usize),
    pub bytes: u64,
    pub not_before: Time,
    pub line: usize,
}

/// Graph that a reader fills.
pub(crate) struct Graph<'g, 'b, 'c> {
    builder: &'g mut Builder<'b, 'c>,
    spec: &'g ScheduleSpec,
    world: World<'g>,
    carriage: Carriage,
    /// The row of the file among the collectives.
    number: u32,
    hosts: Arc<[HostId]>,
    /// By rank: the beginning.
    begins: Vec<Op>,
    /// By rank: what it ends with.
    ends: Vec<Vec<(Op, Point)>>,
}

impl Builder<'_, '_> {
    /// Puts in what the file says.
    pub fn schedule(
        &mut self,
        spec: &ScheduleSpec,
        world: World<'_>,
        base_dir: &Path,
    ) -> Result<(), TrafficError> {
        let key = |name: &str| format!("traffic.schedule.{name}");
        if !(0.0..=1_000.0).contains(&spec.compute_scale) {
            return Err(TrafficError::bad_value(key("compute_scale"), spec.compute_scale, "0 to 1000"));
        }
        let carriage = self.carriage(spec.class, spec.transport.as_deref(), &key)?;
        // A row for all of it; what is in it is of it, but for collectives of their own.
        let number = self.collectives.len() as u32;
        self.collectives.push(CollectiveDraft {
            name: Name {
                label: label_of(&spec.file),
                kind: CollectiveKind::File,
                algorithm: "",
                iteration: 0,
                step: None,
            },
            size_bytes: None,
            bus_factor: None,
            hosts: Arc::default(),
            entries: Vec::new(),
            exits: Vec::new(),
        });
        let mut graph = Graph {
            builder: self,
            spec,
            world,
            carriage,
            number,
            hosts: Arc::default(),
            begins: Vec::new(),
            ends: Vec::new(),
        };
        let extension =
            Path::new(&spec.file).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let text = |name: &str| read_file("traffic.schedule.file", name, base_dir);
        match extension.to_ascii_lowercase().as_str() {
            "goal" | "bin" | "json" | "et" if spec.start_unit.is_some() => {
                let form = if matches!(extension.to_ascii_lowercase().as_str(), "goal" | "bin") {
                    "a schedule in GOAL has no starts, and its calcs are in nanoseconds"
                } else {
                    "no start of a trace of Chakra is read, and its durations are in microseconds"
                };
                let reason = format!("{form}; start_unit is of a connection matrix of htsim (.cm)");
                return Err(TrafficError::conflict(key("start_unit"), key("file"), reason));
            }
            "cm" | "et" | "json" if !spec.overhead.is_zero() => {
                let allowed = "0s, or a schedule in GOAL (.goal), whose sends and recvs name a cpu";
                return Err(TrafficError::bad_value(key("overhead"), spec.overhead, allowed));
            }
            "cm" => cm::read(&spec.file, &text(&spec.file)?, &mut graph)?,
            "goal" | "bin" => {
                let bytes = read_file_bytes("traffic.schedule.file", &spec.file, base_dir)?;
                if goal_binary::is_binary(&bytes) {
                    graph.builder.draft.written_in = WrittenIn::Operations;
                    goal_binary::read(&spec.file, &bytes, &mut graph)?;
                } else {
                    let text = String::from_utf8(bytes).map_err(|_| TrafficError::BadFile {
                        file: spec.file.clone(),
                        found: "bytes that are neither".to_owned(),
                        allowed: goal::FORMS.to_owned(),
                    })?;
                    goal::read(&spec.file, &text, &mut graph)?;
                }
            }
            "json" => {
                let nodes = |name: &str| chakra_json::nodes(name, &text(name)?);
                chakra::read(&spec.file, base_dir, &nodes, &mut graph)?;
            }
            "et" => {
                graph.builder.draft.written_in = WrittenIn::Messages;
                let bytes = |name: &str| read_file_bytes("traffic.schedule.file", name, base_dir);
                let nodes = |name: &str| chakra_protobuf::nodes(name, &bytes(name)?);
                chakra::read(&spec.file, base_dir, &nodes, &mut graph)?;
            }
            _ => {
                let allowed =
                    "a file whose name ends in .cm (htsim), .goal or .bin (GOAL), or .et or .json (Chakra)";
                return Err(TrafficError::bad_value(key("file"), format!("{:?}", spec.file), allowed));
            }
        }
        graph.finish();
        Ok(())
    }
}

impl Graph<'_, '_, '_> {
    /// There are so many ranks: each gets its host.
    pub fn set_ranks(&mut self, count: usize, file: &str) -> Result<(), TrafficError> {
        let Self { spec, world, .. } = self;
        let key = |name: &str| format!("traffic.schedule.{name}");
        let asked = Asked { hosts: spec.hosts.as_deref(), count: None, placement: spec.placement };
        let all = world.shape.all_hosts();
        let hosts = ranks(asked, &all, world.shape, &key, (world.seed, 1 << 32))?;
        if !(2..=hosts.len()).contains(&count) {
            let found = format!("{count} ranks");
            let allowed = format!("2 to {}, the hosts that there are for them", hosts.len());
            return Err(TrafficError::BadFile { file: file.to_owned(), found, allowed });
        }
        let begin = Time::ZERO.saturating_add(spec.start);
        self.hosts = hosts[..count].into();
        self.begins = self.hosts.iter().map(|&host| self.builder.draft.at(host, begin)).collect();
        self.ends = vec![Vec::new(); count];
        Ok(())
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> HostId {
        self.hosts[rank]
    }

    /// First operation of a rank.
    pub fn begin(&self, rank: usize) -> Op {
        self.begins[rank]
    }

    /// Puts in a flow between two different ranks, which begins no earlier than the file does.
    pub fn flow(&mut self, flow: Carried, takes: Span) -> Op {
        let (from, to) = flow.ends;
        let class = self.carriage.class.unwrap_or_else(|| self.builder.classes.by_size(flow.bytes));
        let draft = FlowDraft {
            src: self.hosts[from],
            dst: self.hosts[to],
            size_bytes: flow.bytes,
            class,
            transport: self.carriage.transport.unwrap_or_else(|| self.builder.carriers.of_class(class)),
            role: Role { collective: Some(self.number), step: 0 },
        };
        let start = flow.not_before.saturating_add(self.spec.start);
        let op = self.builder.draft.put(Kind::Flow(draft), start, takes);
        self.builder.draft.nodes[op.index()].line = flow.line as u32;
        self.ends[to].push((op, Point::Received));
        op
    }

    /// Puts in a computation of so long, which the spec may scale.
    pub fn computation(&mut self, host: HostId, takes: Span, line: usize) -> Op {
        let scaled = (takes.as_ps() as f64 * self.spec.compute_scale).round();
        let op = self.builder.draft.computation(host, Span::from_ps(scaled as u64));
        self.builder.draft.nodes[op.index()].line = line as u32;
        op
    }

    /// Puts in the same, which takes its turn on this processor of the host.
    pub fn turn(&mut self, host: HostId, takes: Span, line: usize, processor: u32) -> Op {
        let op = self.computation(host, takes, line);
        // One that is alone on its processor waits for none.
        let processor = if self.spec.turns { processor } else { op.0 };
        self.builder.draft.nodes[op.index()].processor = Some(processor);
        op
    }

    /// Puts in what a message costs a processor of a host; `None` if that is nothing.
    pub fn overhead(&mut self, host: HostId, line: usize, processor: u32) -> Option<Op> {
        let takes = self.spec.overhead;
        (!takes.is_zero()).then(|| {
            let op = self.turn(host, Span::ZERO, line, processor);
            self.builder.draft.nodes[op.index()].takes = takes;
            op
        })
    }

    /// Who waits for what.
    pub fn after(&mut self, op: Op, waits_for: Op, point: Point) {
        self.builder.draft.after(op, waits_for, point);
    }

    /// It begins with so many of those that it waits for.
    pub fn needs(&mut self, op: Op, needs: u32) {
        self.builder.draft.nodes[op.index()].needs = Some(needs);
    }

    /// A rank ends with this, too.
    pub fn end_with(&mut self, rank: usize, op: Op) {
        self.ends[rank].push((op, Point::Done));
    }

    fn finish(self) {
        let Self { builder, hosts, begins, ends, number, .. } = self;
        let exit = |((&host, &begin), all): ((&HostId, &Op), Vec<(Op, Point)>)| {
            builder.draft.join(host, Span::ZERO, all.into_iter().chain([(begin, Point::Done)]))
        };
        let exits = hosts.iter().zip(&begins).zip(ends).map(exit).collect();
        let row = &mut builder.collectives[number as usize];
        (row.hosts, row.entries, row.exits) = (hosts, begins, exits);
    }
}
