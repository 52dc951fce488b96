//! Which of several transports carried a flow.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use weft_traffic::Flow;

/// The table of flows with a last column `transport`, the label of each flow's transport, if there are several. A run with one
/// has no such column: its tables are those of any such run, whatever carries its flows.
///
/// # Errors
/// None in practice: the table has a row a flow.
pub(crate) fn name_transports(
    table: RecordBatch,
    flows: &[Flow],
    labels: &[String],
) -> Result<RecordBatch, ArrowError> {
    if labels.is_empty() {
        return Ok(table);
    }
    let label = |flow: &Flow| labels.get(usize::from(flow.transport)).map(String::as_str);
    let column: StringArray = flows.iter().map(label).collect();
    let mut fields = table.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("transport", DataType::Utf8, false)));
    let mut columns = table.columns().to_vec();
    columns.push(Arc::new(column));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}
