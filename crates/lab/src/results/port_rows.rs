//! The tables of ports with classes, of pauses, and of shared buffer, column by column, as those in
//! [`super::rows`]; empty where there are none.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use weft_fabric::Results;
use weft_topology::Topology;

use super::table::{Cell, Column, Row, Table, table};

table! {
    /// A class of the port of a link.
    ClassRow is "classes", "a link whose port has classes, and one of these";

    /// `from>to`, as in `links.parquet`
    link: String, "";
    /// its place at the port, from 0
    class: u16, "";
    /// packets that it took
    packets: u64, "";
    /// their bytes
    bytes: u64, "B";
    /// packets that it dropped
    dropped: u64, "";
    /// packets that got a congestion mark in it
    marked: u64, "";
    /// data packets that it cut to their headers
    trimmed: u64, "";
    /// the most that was ever queued in it, with what was left of the packet in service
    largest_backlog_bytes: u64, "B";
}

table! {
    /// The pauses of one class of a link because of one link behind it.
    PauseRow is "pauses", "a link that was paused, a class, and the link behind it for which most of what had come by it waited";

    /// the link whose port was told to pause, as in `links.parquet`
    link: String, "";
    /// the class, by its place at the port
    class: u16, "";
    /// the switch that told it
    by: String, "";
    /// the link of that switch for which most of what had come by `link` waited. Where it is paused
    /// itself, its rows say why; where it is not, the congestion begins there
    because_of: String, "";
    /// how often
    pauses: u64, "";
    /// how long together
    paused_us: f64, "µs";
    /// the longest one
    longest_us: f64, "µs";
    /// when the first one began
    first_us: f64, "µs";
    /// when the last one ended
    last_us: f64, "µs";
}

table! {
    /// The memory of a switch in an interval.
    SharedBufferRow is "shared_buffers", "a switch and an interval in which something waited in its memory", asked by "run.sample_every";

    /// the end of the interval
    time_us: f64, "µs";
    /// its name
    switch: String, "";
    /// bytes that wait at the end of the interval
    held_bytes: u64, "B";
    /// the most that waited at any instant of it
    largest_bytes: u64, "B";
}

/// A row a class of a link.
pub(crate) fn class_rows(names: &[String], results: &Results) -> Vec<ClassRow> {
    let row = |of: &weft_fabric::ClassOfLink| ClassRow {
        link: names[of.link as usize].clone(),
        class: of.class.into(),
        packets: of.totals.packets,
        bytes: of.totals.bytes,
        dropped: of.totals.dropped,
        marked: of.totals.marked,
        trimmed: of.totals.trimmed,
        largest_backlog_bytes: of.totals.largest_backlog_bytes,
    };
    results.classes.iter().map(row).collect()
}

/// A row a paused link, class and blame.
pub(crate) fn pause_rows(topology: &Topology, names: &[String], results: &Results) -> Vec<PauseRow> {
    let row = |of: &weft_fabric::PauseOfLink| PauseRow {
        link: names[of.link as usize].clone(),
        class: of.class.into(),
        by: topology.names[topology.links[of.link as usize].to.0 as usize].clone(),
        because_of: names[of.blamed as usize].clone(),
        pauses: of.totals.pauses,
        paused_us: of.totals.paused.as_us(),
        longest_us: of.totals.longest.as_us(),
        first_us: of.totals.first.as_us(),
        last_us: of.totals.last.as_us(),
    };
    results.pauses.iter().map(row).collect()
}

/// A row a switch and interval.
pub(crate) fn shared_buffer_rows(topology: &Topology, results: &Results) -> Vec<SharedBufferRow> {
    let row = |sample: &weft_fabric::SharedBufferSample| SharedBufferRow {
        time_us: sample.at.as_us(),
        switch: topology.names[topology.hosts + sample.switch as usize].clone(),
        held_bytes: sample.held_bytes,
        largest_bytes: sample.largest_bytes,
    };
    results.samples.shared_buffers.iter().map(row).collect()
}
