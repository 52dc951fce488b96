//! Tables as Parquet, the same bytes every time.

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};

/// Rows of a row group: what a writer holds in memory, and a reader, too.
const ROWS: usize = 131_072;

/// How tables are written: Snappy, no time stamps, so that equal tables are equal bytes.
pub(super) fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_max_row_group_row_count(Some(ROWS))
        .set_created_by(format!("weft {}", crate::VERSION))
        .build()
}

/// A table as a Parquet file.
///
/// # Errors
/// None in practice: the tables of Weft hold only types that Parquet has.
pub fn to_parquet(table: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties()))?;
    writer.write(table)?;
    writer.close()?;
    Ok(bytes)
}
