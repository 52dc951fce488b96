//! Result tables in Arrow form. They hold no wall-clock times: one spec and one seed give the same bytes.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};

use super::rows::{CounterRow, DeliveryRow, FlowRow, LinkRow, ObservationRow, PathRow, SampleRow, TraceRow};

/// The columns of a table, as they are collected.
#[derive(Default)]
struct Columns(Vec<(Field, ArrayRef)>);

impl Columns {
    fn add(&mut self, name: &str, nullable: bool, column: ArrayRef) {
        self.0.push((Field::new(name, column.data_type().clone(), nullable), column));
    }

    fn batch(self) -> Result<RecordBatch, ArrowError> {
        let (fields, columns): (Vec<_>, Vec<_>) = self.0.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

/// Adds one column a field, of numbers that cannot be missing: `numbers!(columns, rows, UInt32Array: id, timeouts)`.
macro_rules! numbers {
    ($columns:ident, $rows:ident, $Array:ident: $($field:ident),*) => {
        $($columns.add(
            stringify!($field),
            false,
            Arc::new($Array::from_iter_values($rows.iter().map(|row| row.$field))),
        );)*
    };
}

/// Adds one column a field, of texts.
macro_rules! texts {
    ($columns:ident, $rows:ident: $($field:ident),*) => {
        $($columns.add(
            stringify!($field),
            false,
            Arc::new(StringArray::from_iter_values($rows.iter().map(|row| &row.$field))),
        );)*
    };
}

/// Adds one column, of truth values.
macro_rules! flags {
    ($columns:ident, $rows:ident: $field:ident) => {
        $columns.add(
            stringify!($field),
            false,
            Arc::new($rows.iter().map(|row| Some(row.$field)).collect::<BooleanArray>()),
        );
    };
}

/// Adds one column a field, of numbers that may be missing.
macro_rules! optional {
    ($columns:ident, $rows:ident, $Array:ident: $($field:ident),*) => {
        $($columns.add(
            stringify!($field),
            true,
            Arc::new($rows.iter().map(|row| row.$field).collect::<$Array>()),
        );)*
    };
}

/// The table of flows.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn flows_table(rows: &[FlowRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    numbers!(columns, rows, UInt32Array: id);
    numbers!(columns, rows, UInt16Array: src, dst);
    numbers!(columns, rows, UInt64Array: size_bytes);
    texts!(columns, rows: class);
    flags!(columns, rows: background);
    numbers!(columns, rows, Float64Array: start_us);
    optional!(columns, rows, Float64Array: fct_us, sender_fct_us, ideal_fct_us, slowdown);
    numbers!(columns, rows, UInt64Array: segments_sent, segments_received);
    numbers!(columns, rows, UInt32Array: retransmissions, timeouts, fast_recoveries, out_of_order_packets);
    numbers!(columns, rows, UInt32Array: duplicate_segments, duplicate_acks, marked_acks, path_changes);
    numbers!(columns, rows, Float64Array: wait_host_us, wait_leaf_us, wait_spine_us, wait_last_us);
    numbers!(columns, rows, UInt32Array: retransmissions_after_loss, retransmissions_after_reordering);
    numbers!(columns, rows, UInt32Array: retransmissions_after_timeout, dropped_segments);
    numbers!(columns, rows, UInt64Array: delivered_bytes);
    optional!(columns, rows, Float64Array: goodput_mbps, deadline_us);
    columns.add(
        "deadline_missed",
        true,
        Arc::new(rows.iter().map(|row| row.deadline_missed).collect::<BooleanArray>()),
    );
    optional!(columns, rows, Float64Array: spent_transmission_us, spent_host_us, spent_leaf_us, spent_spine_us);
    optional!(columns, rows, Float64Array: spent_last_us, spent_reordering_us, spent_timeouts_us, spent_window_us);
    numbers!(columns, rows, Float64Array: stalled_by_reordering_us, stalled_by_loss_us, timed_out_us);
    columns.batch()
}

/// The table of links.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn links_table(rows: &[LinkRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    texts!(columns, rows: link, from, to, tier);
    numbers!(columns, rows, UInt64Array: rate_bps);
    numbers!(columns, rows, Float64Array: delay_us);
    optional!(columns, rows, UInt64Array: buffer_bytes);
    numbers!(columns, rows, UInt64Array: packets, bytes, dropped_packets, marked_packets);
    numbers!(columns, rows, Float64Array: utilisation);
    columns.batch()
}

/// The table of links over time.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn samples_table(rows: &[SampleRow<'_>]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    numbers!(columns, rows, Float64Array: time_us, interval_us);
    texts!(columns, rows: link, tier);
    numbers!(columns, rows, UInt64Array: rate_bps, sent_bytes);
    numbers!(columns, rows, Float64Array: utilisation);
    numbers!(columns, rows, UInt64Array: backlog_bytes, largest_backlog_bytes);
    numbers!(columns, rows, UInt32Array: dropped_packets, marked_packets);
    columns.batch()
}

/// The table of what receivers got over time.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn deliveries_table(rows: &[DeliveryRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    numbers!(columns, rows, Float64Array: time_us, interval_us);
    numbers!(columns, rows, UInt16Array: host);
    texts!(columns, rows: class);
    flags!(columns, rows: background);
    numbers!(columns, rows, UInt64Array: payload_bytes);
    columns.batch()
}

/// The table of ports over windows of time.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn observations_table(rows: &[ObservationRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    numbers!(columns, rows, Float64Array: time_us);
    texts!(columns, rows: link, tier);
    numbers!(columns, rows, UInt64Array: packets, bytes);
    numbers!(columns, rows, Float64Array: traffic);
    optional!(columns, rows, Float64Array: occupancy, mean_occupancy);
    numbers!(columns, rows, Float64Array: interval, mean_interval);
    columns.batch()
}

/// The table of paths.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn paths_table(rows: &[PathRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    numbers!(columns, rows, UInt16Array: src_rack, dst_rack);
    numbers!(columns, rows, UInt32Array: path);
    numbers!(columns, rows, UInt64Array: carried_bytes);
    numbers!(columns, rows, Float64Array: throughput_mbps);
    columns.batch()
}

/// The table of traced flows.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn traces_table(rows: &[TraceRow<'_>]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    numbers!(columns, rows, Float64Array: time_us, interval_us);
    numbers!(columns, rows, UInt32Array: flow);
    texts!(columns, rows: link);
    numbers!(columns, rows, UInt32Array: packets);
    columns.batch()
}

/// The table of the scheme's counters.
///
/// # Errors
/// None in practice: every column has a value for every row.
pub fn scheme_table(rows: &[CounterRow]) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    texts!(columns, rows: name);
    numbers!(columns, rows, UInt64Array: value);
    columns.batch()
}
