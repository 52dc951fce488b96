//! htsim's connection matrices (`.cm`), as its `connection_matrix.cpp` and `trigger.h` have them.
//!
//! A line is a connection, `src->dst id N start PS size BYTES` or, in place of `start`, `trigger
//! T`, with `send_done_trigger T` and `recv_done_trigger T`; or a trigger, `trigger id T oneshot |
//! multishot | barrier count N`. The unit of times is that of the program that a matrix is for, and
//! does not stand in it. A trigger that a source knows of starts what waits for it: all of it
//! (`oneshot`, `barrier`), or with each activation the next (`multishot`).
//!
//! In htsim a trigger acts on all nodes at once. Here a source knows of a connection at its own end
//! alone: where it ends, by what has come, and where it begins, by what is acknowledged, whichever
//! of the two the line says.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_packet::HostId;
use weft_units::{Span, Time};

use super::lines::{Line, Mistake, number, unknown};
use super::{Carried, Graph};
use crate::collective::draft::{Op, Point};
use crate::generate::LATEST_START;
use crate::{MAX_FLOW_BYTES, TrafficError};

const CONNECTION: &str =
    "id, start, size, trigger, send_done_trigger, recv_done_trigger or prio, each with a number, or msg";
const WORDS: [&str; 8] =
    ["id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "msg"];
const LINES: &str = "\"Nodes N\", \"Connections N\", \"Triggers N\", \"src->dst ...\", \"trigger id N ...\", or a comment that begins with #";

/// The unit of the starts in a connection matrix of htsim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartUnit {
    /// Microseconds: `htsim_uec`, `htsim_eqds` and `htsim_roce` of uet-htsim, and `htsim_swift`.
    Us,
    /// Picoseconds: the other programs of csg-htsim and of uet-htsim.
    Ps,
}

/// A connection, and the triggers that it waits for or activates.
#[derive(Debug, Default)]
struct Connection {
    line: usize,
    id: u64,
    src: usize,
    dst: usize,
    size: u64,
    start: Option<Time>,
    trigger: Option<u64>,
    send_done: Option<u64>,
    recv_done: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    OneShot,
    MultiShot,
    Barrier(u64),
}

#[derive(Debug)]
struct Trigger {
    line: usize,
    kind: Kind,
}

/// Content of a connection matrix file.
#[derive(Debug, Default)]
struct Matrix {
    unit: Option<StartUnit>,
    nodes: Option<usize>,
    connections: Vec<Connection>,
    triggers: BTreeMap<u64, Trigger>,
    counts: Vec<(&'static str, usize, usize)>,
    /// Ends of the connections that carry messages, by id.
    carrying: BTreeMap<u64, (usize, usize)>,
    /// Ids of connections that carry no messages.
    ids: BTreeSet<u64>,
}

impl Connection {
    /// Point by which a node learns that this connection is there, whose line says `point`: what
    /// comes to the node itself. A node that is at neither end is told by nothing.
    const fn known_at(&self, node: usize, point: Point) -> Point {
        if node == self.src {
            Point::Acknowledged
        } else if node == self.dst {
            Point::Received
        } else {
            point
        }
    }
}

/// Reads a matrix into a graph.
pub(crate) fn read(file: &str, text: &str, graph: &mut Graph<'_, '_, '_>) -> Result<(), TrafficError> {
    let bad = |line: usize, (found, allowed): Mistake| TrafficError::BadLine {
        file: file.to_owned(),
        line,
        found,
        allowed,
    };
    let mut matrix = Matrix { unit: graph.spec.start_unit, ..Matrix::default() };
    for line in Line::all(text, "#") {
        matrix.take(&line).map_err(|mistake| bad(line.number, mistake))?;
    }
    matrix.check_counts().map_err(|(line, mistake)| bad(line, mistake))?;
    if matrix.connections.is_empty() {
        return Err(TrafficError::BadFile {
            file: file.to_owned(),
            found: "no connection".to_owned(),
            allowed: "at least one line \"src->dst ...\"".to_owned(),
        });
    }
    graph.set_ranks(matrix.nodes.unwrap_or(0), file)?;
    matrix.put(graph).map_err(|(line, mistake)| bad(line, mistake))
}

/// A time of a matrix. Without a unit, 0 alone is one.
fn start(text: &str, unit: Option<StartUnit>) -> Result<Time, Mistake> {
    let parse = |allowed: &str| -> Result<Span, Mistake> {
        // A microsecond has as many decimal places as there are picoseconds in it.
        let span = format!("{text}us").parse::<Span>().ok().filter(|_| !text.contains([' ', '+']));
        span.ok_or_else(|| (format!("start {text:?}"), allowed.to_owned()))
    };
    let in_us =
        parse("a time from 0, in microseconds with at most six decimal places or in whole picoseconds");
    let in_ps = || {
        let whole = text.split_once('.').filter(|(_, rest)| rest.bytes().all(|digit| digit == b'0'));
        number("start", whole.map_or(text, |(whole, _)| whole), 0, u64::MAX / 4)
    };
    match unit {
        Some(StartUnit::Us) => Ok(Time::ZERO.saturating_add(in_us?)),
        Some(StartUnit::Ps) => Ok(Time::from_ps(in_ps()?)),
        None if in_us.as_ref().is_ok_and(|start| start.is_zero()) => Ok(Time::ZERO),
        None => {
            let picoseconds = in_ps().map(|ps| {
                format!(
                    " or \"ps\" ({} us: htsim_ndp, and the programs of csg-htsim)",
                    Span::from_ps(ps).as_us()
                )
            });
            let allowed = format!(
                "traffic.schedule.start_unit = \"us\" ({} us: htsim_uec, htsim_eqds and htsim_roce of uet-htsim){}",
                in_us?.as_us(),
                picoseconds.unwrap_or_default()
            );
            Err((format!("start {text}, whose unit no matrix states"), allowed))
        }
    }
}

impl Matrix {
    fn take(&mut self, line: &Line<'_>) -> Result<(), Mistake> {
        let first = line.words[0];
        let header = |name: &'static str| -> Result<usize, Mistake> {
            match line.words[1..] {
                [count] => Ok(number(name, count, 0, u64::from(u32::MAX))? as usize),
                _ => Err((line.text(), format!("\"{name} N\""))),
            }
        };
        let is_again = match first {
            "Nodes" => self.nodes.is_some(),
            name => self.counts.iter().any(|count| count.0 == name),
        };
        if is_again {
            return Err((format!("{first} again"), format!("\"{first} N\" once")));
        }
        match first {
            "Nodes" => self.nodes = Some(header("Nodes")?),
            "Connections" => self.counts.push(("Connections", header("Connections")?, line.number)),
            "Triggers" => self.counts.push(("Triggers", header("Triggers")?, line.number)),
            "Failures" if header("Failures")? == 0 => {}
            "Failures" | "failure" => {
                let allowed = "no failures here: [[fabric.fault]] has them";
                return Err((line.text(), allowed.to_owned()));
            }
            "trigger" => self.take_trigger(line)?,
            _ if first.contains("->") => self.take_connection(line)?,
            _ => {
                return Err(unknown(
                    format!("{first:?}"),
                    first,
                    LINES,
                    &["Nodes", "Connections", "Triggers", "trigger"],
                ));
            }
        }
        Ok(())
    }

    fn take_trigger(&mut self, line: &Line<'_>) -> Result<(), Mistake> {
        let (mut id, mut name, mut count) = (None, None, None);
        let mut words = line.words[1..].iter().copied();
        while let Some(word) = words.next() {
            let mut value = |least| {
                let value = words
                    .next()
                    .ok_or_else(|| (format!("{word} without a number"), "a number".to_owned()))?;
                number(word, value, least, u64::from(u32::MAX))
            };
            match word {
                "id" => id = Some(value(1)?),
                "count" => count = Some(value(1)?),
                "oneshot" | "multishot" | "barrier" if name.is_none() => name = Some(word),
                _ => {
                    let allowed = "id N, oneshot, multishot, or barrier with count N";
                    let known = ["id", "oneshot", "multishot", "barrier", "count"];
                    return Err(unknown(format!("{word:?}"), word, allowed, &known));
                }
            }
        }
        let kind = match (name, count) {
            (Some("oneshot"), None) => Kind::OneShot,
            (Some("multishot"), None) => Kind::MultiShot,
            (Some("barrier"), Some(count)) => Kind::Barrier(count),
            (Some(name), Some(_)) => {
                return Err((format!("{name} with a count"), "barrier count N".to_owned()));
            }
            (Some(_), None) => {
                return Err(("a barrier without a count".to_owned(), "barrier count N".to_owned()));
            }
            (None, _) => {
                return Err((
                    "a trigger without a type".to_owned(),
                    "oneshot, multishot or barrier".to_owned(),
                ));
            }
        };
        let Some(id) = id else {
            return Err(("a trigger without an id".to_owned(), "id N".to_owned()));
        };
        if self.triggers.insert(id, Trigger { line: line.number, kind }).is_some() {
            return Err((format!("trigger {id} again"), "each trigger once".to_owned()));
        }
        Ok(())
    }

    fn take_connection(&mut self, line: &Line<'_>) -> Result<(), Mistake> {
        let Some(nodes) = self.nodes else {
            return Err(("a connection before \"Nodes N\"".to_owned(), "\"Nodes N\" first".to_owned()));
        };
        let mut connection = Connection { line: line.number, ..Connection::default() };
        let most = (nodes as u64).saturating_sub(1);
        let (src, dst) = line.words[0].split_once("->").unwrap_or_default();
        connection.src = number("the source", src, 0, most)? as usize;
        connection.dst = number("the destination", dst, 0, most)? as usize;
        if connection.src == connection.dst {
            return Err((format!("{:?}", line.words[0]), "two different nodes".to_owned()));
        }
        let mut words = line.words[1..].iter().copied().peekable();
        let mut is_message = false;
        let mut seen: Vec<&str> = Vec::new();
        while let Some(word) = words.next() {
            if seen.contains(&word) {
                return Err((format!("{word} again"), "each of them once".to_owned()));
            }
            seen.push(word);
            if word == "msg" {
                is_message = true;
                // Its number may be left out.
                if let Some(number_of) =
                    words.next_if(|next| next.starts_with(|first: char| first.is_ascii_digit()))
                {
                    number("msg", number_of, 1, u64::from(u32::MAX))?;
                }
                continue;
            }
            let mut text =
                || words.next().ok_or_else(|| (format!("{word} without a number"), "a number".to_owned()));
            let mut value = |least, most| number(word, text()?, least, most);
            let any = u64::from(u32::MAX);
            match word {
                "id" => connection.id = value(1, any)?,
                "start" => {
                    let text = text()?;
                    let start = start(text, self.unit)?;
                    if start > LATEST_START {
                        return Err((format!("start {text}"), "a start within 100 days".to_owned()));
                    }
                    connection.start = Some(start);
                }
                "size" => connection.size = value(1, MAX_FLOW_BYTES)?,
                "trigger" => connection.trigger = Some(value(1, any)?),
                "send_done_trigger" => connection.send_done = Some(value(1, any)?),
                "recv_done_trigger" => connection.recv_done = Some(value(1, any)?),
                // The class of all flows is the spec's.
                "prio" => drop(value(0, u64::MAX)?),
                _ => return Err(unknown(format!("{word:?}"), word, CONNECTION, &WORDS)),
            }
        }
        if is_message {
            self.check_message(&connection)?;
        } else if connection.id > 0 && !self.ids.insert(connection.id) {
            return Err((format!("id {} again", connection.id), "an id of its own".to_owned()));
        }
        let found = match (connection.start, connection.trigger, connection.size) {
            (Some(_), Some(_), _) => "both start and trigger",
            (None, None, _) => "neither start nor trigger",
            (_, _, 0) => "no size",
            _ => {
                self.connections.push(connection);
                return Ok(());
            }
        };
        Err((found.to_owned(), "size N with either start N or trigger N".to_owned()))
    }

    /// Messages of one id are between the same two nodes.
    fn check_message(&mut self, message: &Connection) -> Result<(), Mistake> {
        let Connection { id, src, dst, .. } = *message;
        if id == 0 {
            return Err(("msg without an id".to_owned(), "id N, the connection that carries it".to_owned()));
        }
        let (first, last) = *self.carrying.entry(id).or_insert((src, dst));
        if (first, last) == (src, dst) {
            return Ok(());
        }
        Err((
            format!("msg of connection {id}, {src}->{dst}"),
            format!("{first}->{last}, as that connection goes"),
        ))
    }

    /// Checks the counts in the header against the contents.
    fn check_counts(&self) -> Result<(), (usize, Mistake)> {
        for &(name, count, line) in &self.counts {
            let there = if name == "Connections" { self.connections.len() } else { self.triggers.len() };
            if there != count {
                return Err((
                    line,
                    (format!("{name} {count}"), format!("{name} {there}, as many as there are")),
                ));
            }
        }
        Ok(())
    }

    /// Puts everything into the graph.
    fn put(&self, graph: &mut Graph<'_, '_, '_>) -> Result<(), (usize, Mistake)> {
        // By trigger: what activates it.
        let mut activators: BTreeMap<u64, Vec<(usize, Point)>> = BTreeMap::new();
        for (place, connection) in self.connections.iter().enumerate() {
            let known =
                [(connection.send_done, Point::Acknowledged), (connection.recv_done, Point::Received)];
            for (trigger, point) in known {
                if let Some(trigger) = trigger {
                    self.trigger(trigger, connection.line)?;
                    activators.entry(trigger).or_default().push((place, point));
                }
            }
        }
        let put = |connection: &Connection| {
            let carried = Carried {
                ends: (connection.src, connection.dst),
                bytes: connection.size,
                not_before: connection.start.unwrap_or(Time::ZERO),
                line: connection.line,
            };
            graph.flow(carried, Span::ZERO)
        };
        let ops: Vec<Op> = self.connections.iter().map(put).collect();
        // A trigger that many wait for is counted once at each source.
        let mut joins: BTreeMap<(u64, HostId), Op> = BTreeMap::new();
        let mut shots: BTreeMap<u64, u64> = BTreeMap::new();
        for (connection, &op) in self.connections.iter().zip(&ops) {
            let Some(id) = connection.trigger else { continue };
            let trigger = self.trigger(id, connection.line)?;
            let known = activators.get(&id).map_or(&[][..], Vec::as_slice);
            let needs = match trigger.kind {
                Kind::OneShot if known.len() > 1 => {
                    let found = format!("trigger {id}, a oneshot that {} connections activate", known.len());
                    let allowed = "one connection, or a multishot or barrier".to_owned();
                    return Err((trigger.line, (found, allowed)));
                }
                Kind::OneShot => 1,
                Kind::Barrier(count) => count,
                Kind::MultiShot => {
                    let shot = shots.entry(id).or_insert(0);
                    *shot += 1;
                    *shot
                }
            };
            if needs > known.len() as u64 {
                let found =
                    format!("trigger {id} after {needs} activations, of which there are {}", known.len());
                return Err((connection.line, (found, "as many connections that activate it".to_owned())));
            }
            let host = graph.host(connection.src);
            let join = *joins.entry((id, host)).or_insert_with(|| {
                let join = if trigger.kind == Kind::MultiShot {
                    op
                } else {
                    graph.computation(host, Span::ZERO, trigger.line)
                };
                for &(place, point) in known {
                    graph.after(join, ops[place], self.connections[place].known_at(connection.src, point));
                }
                graph.needs(join, needs as u32);
                join
            });
            if trigger.kind == Kind::MultiShot {
                joins.remove(&(id, host));
            } else {
                graph.after(op, join, Point::Done);
            }
        }
        Ok(())
    }

    fn trigger(&self, id: u64, line: usize) -> Result<&Trigger, (usize, Mistake)> {
        let missing = || {
            (
                line,
                (
                    format!("trigger {id}, which is nowhere"),
                    "a trigger with a line \"trigger id N ...\"".to_owned(),
                ),
            )
        };
        self.triggers.get(&id).ok_or_else(missing)
    }
}
