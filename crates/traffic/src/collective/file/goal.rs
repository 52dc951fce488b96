//! Schedules in GOAL, and their text form, as `LogGOPSim` and ATLAHS read them: Hoefler, Siebert
//! and Lumsdaine, Group Operation Assembly Language, ICPP 2009; the grammar is that of
//! `txt2bin.re`.
//!
//! `num_ranks N`, and for each rank `rank R { ... }` with `L: send Bb to R tag T`, `L: recv Bb from
//! R tag T`, `L: calc N` (nanoseconds) and `L requires M`, `L irequires M`. A send that is required
//! has to be acknowledged, a recv to have come, a calc to be done; with `irequires` it has to have
//! begun. The n-th send to a rank with a tag is for the n-th recv there from this rank with this
//! tag. Calcs of one `cpu` of a rank (0 if none is said) take turns, in the order in which they
//! become ready. A send or recv takes the overhead `o` of its `cpu`, in turn with calcs, which is
//! nothing unless the spec says otherwise. `nic` means nothing: how many cards a host has is the
//! fabric's.
//!
//! Invariant: a text means what its binary form means. `txt2bin` keeps the lower 32 bits of a tag
//! and 8 of a `cpu`.

use std::collections::BTreeMap;

use weft_units::{Span, Time};

use super::lines::{Line, Mistake, number, unknown};
use super::{Carried, Graph};
use crate::collective::draft::{Op, Point};
use crate::{MAX_FLOW_BYTES, TrafficError};

/// Forms of GOAL that are read.
pub(crate) const FORMS: &str = "GOAL as text, or the binary form of it that txt2bin makes";

const LINES: &str = "num_ranks N, rank N {, }, [label:] send Bb to R, [label:] recv Bb from R, [label:] calc N, label requires label, or label irequires label";

/// An operation of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Send { bytes: u64, to: usize, tag: u32, cpu: u8 },
    Recv { bytes: u64, from: usize, tag: u32, cpu: u8 },
    Calc { ns: u64, cpu: u8 },
}

/// Operation of a rank, and its line in the file.
#[derive(Debug)]
pub(super) struct Operation {
    pub line: usize,
    pub rank: usize,
    pub what: What,
}

/// The second has to be there, or to have begun, before the first begins; by number.
#[derive(Debug)]
pub(super) struct Requirement {
    pub what: usize,
    pub requires: usize,
    pub begun: bool,
}

/// Contents of a schedule, in either form.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub operations: Vec<Operation>,
    pub requirements: Vec<Requirement>,
}

/// A schedule in text, as far as it is read.
#[derive(Debug, Default)]
struct Text<'t> {
    /// By rank: whether its block has been read. Empty before `num_ranks`.
    ranks: Vec<bool>,
    /// The rank whose block is open, and the labels in it.
    open: Option<(usize, BTreeMap<&'t str, usize>)>,
    program: Program,
}

/// Position of an operation in the graph.
#[derive(Debug, Clone, Copy)]
struct Placed {
    /// Node that waits for the operations that this one requires.
    begins: Op,
    /// Node and point that are there when the operation has begun.
    begun: (Op, Point),
    /// And when it is done.
    done: (Op, Point),
}

/// Reads a schedule into a graph.
pub(crate) fn read(file: &str, text: &str, graph: &mut Graph<'_, '_, '_>) -> Result<(), TrafficError> {
    let bad = |(line, (found, allowed)): (usize, Mistake)| TrafficError::BadLine {
        file: file.to_owned(),
        line,
        found,
        allowed,
    };
    let text = without_comments(text)
        .map_err(|line| bad((line, ("a comment without an end".to_owned(), "/* ... */".to_owned()))))?;
    let mut goal = Text::default();
    let mut last = 1;
    for line in Line::all(&text, "//") {
        last = line.number;
        goal.take(&line).map_err(|mistake| bad((line.number, mistake)))?;
    }
    if let Some((rank, _)) = goal.open {
        return Err(bad((last, (format!("the end of the file in rank {rank}"), "}".to_owned()))));
    }
    let whole = |found: String, allowed: &str| {
        let file = file.to_owned();
        Err(TrafficError::BadFile { file, found, allowed: allowed.to_owned() })
    };
    if goal.program.operations.is_empty() {
        return whole("no operation".to_owned(), LINES);
    }
    if let Some(missing) = goal.ranks.iter().position(|there| !there) {
        let count = goal.ranks.len();
        return whole(format!("no rank {missing} of {count}"), "a block \"rank N { ... }\" for every rank");
    }
    graph.set_ranks(goal.ranks.len(), file)?;
    goal.program.put(graph).map_err(bad)
}

/// The text without comments, line by line: from `//` to the end of a line, and from `/*` to `*/`.
/// An error if one of those never ends: its line.
fn without_comments(text: &str) -> Result<String, usize> {
    let mut clean = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find("//").into_iter().chain(left.find("/*")).min() {
        let (before, comment) = left.split_at(at);
        clean.push_str(before);
        let end = if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else {
            let line = clean.matches('\n').count() + 1;
            let end = 4 + comment[2..].find("*/").ok_or(line)?;
            clean.extend(comment[..end].chars().filter(|&character| character == '\n'));
            clean.push(' ');
            end
        };
        left = &comment[end..];
    }
    clean.push_str(left);
    Ok(clean)
}

impl<'t> Text<'t> {
    fn take(&mut self, line: &Line<'t>) -> Result<(), Mistake> {
        let words = line.words.as_slice();
        match (words, &self.open) {
            (["num_ranks", count], None) if self.ranks.is_empty() => {
                self.ranks = vec![false; number("num_ranks", count, 1, u64::from(u16::MAX) + 1)? as usize];
            }
            (["num_ranks", _], None) => {
                return Err((format!("{} again", line.text()), "num_ranks N once".to_owned()));
            }
            (["rank", rank, "{"], None) => self.begin(rank)?,
            (["rank", rank], None) if rank.ends_with('{') => self.begin(&rank[..rank.len() - 1])?,
            (["}"], Some(_)) => self.open = None,
            ([what, word @ ("requires" | "irequires"), other], Some((_, labels))) => {
                let of = |label: &str| {
                    let allowed = || "a label of this rank that stands before".to_owned();
                    labels.get(label).copied().ok_or_else(|| (format!("{label:?}"), allowed()))
                };
                let requirement =
                    Requirement { what: of(what)?, requires: of(other)?, begun: *word == "irequires" };
                self.program.requirements.push(requirement);
            }
            (_, Some(_)) => self.operation(line)?,
            _ => return Err(no_line(line)),
        }
        Ok(())
    }

    fn begin(&mut self, rank: &str) -> Result<(), Mistake> {
        if self.ranks.is_empty() {
            return Err(("a rank before num_ranks".to_owned(), "num_ranks N first".to_owned()));
        }
        let rank = number("rank", rank, 0, self.ranks.len() as u64 - 1)? as usize;
        if std::mem::replace(&mut self.ranks[rank], true) {
            return Err((format!("rank {rank} again"), "each rank once".to_owned()));
        }
        self.open = Some((rank, BTreeMap::new()));
        Ok(())
    }

    fn operation(&mut self, line: &Line<'t>) -> Result<(), Mistake> {
        let ranks = self.ranks.len();
        let bad = || no_line(line);
        let Some((rank, labels)) = &mut self.open else { return Err(bad()) };
        let (label, words) = match line.words.as_slice() {
            [label, rest @ ..] if label.ends_with(':') => (Some(&label[..label.len() - 1]), rest),
            [label, ":", rest @ ..] => (Some(*label), rest),
            all => (None, all),
        };
        let size = |text: &str| {
            let bytes = text
                .strip_suffix('b')
                .ok_or_else(|| (format!("{text:?}"), "bytes, as in 8192b".to_owned()))?;
            number("the size", bytes, 0, MAX_FLOW_BYTES)
        };
        let peer = |text: &str| {
            let peer = number("the rank", text, 0, ranks as u64 - 1)? as usize;
            if peer == *rank {
                Err((format!("rank {peer}"), "another rank than its own".to_owned()))
            } else {
                Ok(peer)
            }
        };
        // "10 b" is two words.
        let joined: Vec<String>;
        let words: Vec<&str> = match words {
            [what, bytes, "b", rest @ ..] => {
                joined = vec![format!("{bytes}b")];
                [*what, joined[0].as_str()].into_iter().chain(rest.iter().copied()).collect()
            }
            all => all.to_vec(),
        };
        let what = match words.as_slice() {
            ["send", bytes, "to", to, rest @ ..] => {
                let Options { tag, cpu } = Options::of(rest)?;
                What::Send { bytes: size(bytes)?, to: peer(to)?, tag, cpu }
            }
            ["recv", _, "from", "-1", ..] => {
                return Err(from_any());
            }
            ["recv", bytes, "from", from, rest @ ..] => {
                let Options { tag, cpu } = Options::of(rest)?;
                What::Recv { bytes: size(bytes)?, from: peer(from)?, tag, cpu }
            }
            ["calc", ns, rest @ ..] => {
                let ns = number("calc", ns, 0, u64::MAX / 1_000_000)?;
                What::Calc { ns, cpu: Options::of(rest)?.cpu }
            }
            _ => return Err(bad()),
        };
        let place = self.program.operations.len();
        self.program.operations.push(Operation { line: line.number, rank: *rank, what });
        if let Some(label) = label
            && labels.insert(label, place).is_some()
        {
            return Err((format!("label {label:?} again"), "each label once in a rank".to_owned()));
        }
        Ok(())
    }
}

impl Program {
    /// Puts everything into the graph.
    pub fn put(&self, graph: &mut Graph<'_, '_, '_>) -> Result<(), (usize, Mistake)> {
        let matched = self.matched()?;
        let mut flows: Vec<Option<Op>> = vec![None; self.operations.len()];
        for (place, operation) in self.operations.iter().enumerate() {
            if let What::Send { bytes, to, .. } = operation.what {
                let carried = Carried {
                    ends: (operation.rank, to),
                    // A message without payload is a byte: something has to arrive.
                    bytes: bytes.max(1),
                    not_before: Time::ZERO,
                    line: operation.line,
                };
                flows[place] = Some(graph.flow(carried, Span::ZERO));
            }
        }
        let mut placed = Vec::with_capacity(self.operations.len());
        for (place, operation) in self.operations.iter().enumerate() {
            let host = graph.host(operation.rank);
            let one = match (operation.what, flows[place]) {
                (What::Calc { ns, cpu }, _) => {
                    let calc = graph.turn(host, Span::from_ns(ns), operation.line, cpu.into());
                    Placed { begins: calc, begun: (calc, Point::Started), done: (calc, Point::Done) }
                }
                (What::Send { cpu, .. }, Some(flow)) => {
                    let overhead = graph.overhead(host, operation.line, cpu.into());
                    if let Some(overhead) = overhead {
                        graph.after(flow, overhead, Point::Done);
                        graph.end_with(operation.rank, overhead);
                    }
                    let begins = overhead.unwrap_or(flow);
                    Placed { begins, begun: (begins, Point::Started), done: (flow, Point::Acknowledged) }
                }
                (What::Recv { cpu, .. } | What::Send { cpu, .. }, _) => {
                    let begun = graph.computation(host, Span::ZERO, operation.line);
                    let done = graph.overhead(host, operation.line, cpu.into());
                    let done = done.unwrap_or_else(|| graph.computation(host, Span::ZERO, operation.line));
                    graph.after(done, begun, Point::Done);
                    if let Some(flow) = matched[place].and_then(|send| flows[send]) {
                        graph.after(done, flow, Point::Received);
                    }
                    Placed { begins: begun, begun: (begun, Point::Done), done: (done, Point::Done) }
                }
            };
            graph.after(one.begins, graph.begin(operation.rank), Point::Done);
            if !matches!(operation.what, What::Send { .. }) {
                graph.end_with(operation.rank, one.done.0);
            }
            placed.push(one);
        }
        for requirement in &self.requirements {
            let (what, requires) = (placed[requirement.what], placed[requirement.requires]);
            let (op, point) = if requirement.begun { requires.begun } else { requires.done };
            graph.after(what.begins, op, point);
        }
        Ok(())
    }

    /// By recv: its send. Every send has its recv.
    fn matched(&self) -> Result<Vec<Option<usize>>, (usize, Mistake)> {
        let mut sends: BTreeMap<(usize, usize, u32), std::collections::VecDeque<usize>> = BTreeMap::new();
        for (place, operation) in self.operations.iter().enumerate() {
            if let What::Send { to, tag, .. } = operation.what {
                sends.entry((operation.rank, to, tag)).or_default().push_back(place);
            }
        }
        let mut matched = vec![None; self.operations.len()];
        for (place, operation) in self.operations.iter().enumerate() {
            let What::Recv { bytes, from, tag, .. } = operation.what else { continue };
            let send =
                sends.get_mut(&(from, operation.rank, tag)).and_then(std::collections::VecDeque::pop_front);
            let Some(send) = send else {
                let found = format!("recv from rank {from} with tag {tag}, which nothing is sent for");
                let allowed = format!("a send in rank {from} to rank {} with tag {tag}", operation.rank);
                return Err((operation.line, (found, allowed)));
            };
            if let What::Send { bytes: sent, .. } = self.operations[send].what
                && sent > bytes
            {
                let found =
                    format!("recv of {bytes} B for a send of {sent} B (line {})", self.operations[send].line);
                return Err((operation.line, (found, format!("at least {sent} B"))));
            }
            matched[place] = Some(send);
        }
        match sends.into_iter().find_map(|(key, left)| left.front().map(|&send| (key, send))) {
            None => Ok(matched),
            Some(((from, to, tag), send)) => {
                let found = format!("send to rank {to} with tag {tag}, which nothing receives");
                let allowed = format!("a recv in rank {to} from rank {from} with tag {tag}");
                Err((self.operations[send].line, (found, allowed)))
            }
        }
    }
}

/// Mistake for a line that is none of GOAL: its first word that is none of these, behind a label,
/// may be meant as one.
fn no_line(line: &Line<'_>) -> Mistake {
    const WORDS: [&str; 9] =
        ["num_ranks", "rank", "send", "recv", "calc", "requires", "irequires", "to", "from"];
    let is_word = |word: &&&str| {
        !WORDS.contains(*word) && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
    };
    let word = line.words.iter().find(is_word).copied().unwrap_or_default();
    unknown(line.text(), word, LINES, &WORDS)
}

/// Mistake for a recv that takes what comes first.
pub(super) fn from_any() -> Mistake {
    let allowed = "a rank: a schedule whose recvs take what comes first, from any rank, is not read";
    ("recv from any rank".to_owned(), allowed.to_owned())
}

/// Mistake for an operation with any tag.
pub(super) fn any_tag() -> Mistake {
    let allowed = "a tag: a schedule whose recvs take what comes first, with any tag, is not read";
    ("any tag".to_owned(), allowed.to_owned())
}

/// The options behind an operation. One that is left out is 0.
#[derive(Debug, Default)]
struct Options {
    tag: u32,
    cpu: u8,
}

impl Options {
    fn of(words: &[&str]) -> Result<Self, Mistake> {
        let mut options = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for pair in words.chunks(2) {
            let &[name @ ("tag" | "cpu" | "nic"), value] = pair else {
                let found = format!("{:?}", pair.join(" "));
                return Err(unknown(found, pair[0], "tag N, cpu N or nic N", &["tag", "cpu", "nic"]));
            };
            if seen.contains(&name) {
                return Err((format!("{name} again"), "each of tag, cpu and nic once".to_owned()));
            }
            seen.push(name);
            match name {
                "tag" if value == "-1" => return Err(any_tag()),
                "tag" => options.tag = lower_bits(name, value)? as u32,
                "cpu" => options.cpu = lower_bits(name, value)? as u8,
                _ => drop(lower_bits(name, value)?),
            }
        }
        // The binary form writes "any" so.
        if options.tag == u32::MAX { Err(any_tag()) } else { Ok(options) }
    }
}

/// The lower 64 bits of a whole number of any length, as `txt2bin` adds up its digits.
fn lower_bits(name: &str, text: &str) -> Result<u64, Mistake> {
    if text.is_empty() || !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err((format!("{name} {text:?}"), "a whole number from 0".to_owned()));
    }
    let add = |sum: u64, digit: u8| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
    Ok(text.bytes().fold(0, add))
}
