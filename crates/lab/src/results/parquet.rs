//! Tables as Parquet, the same bytes every time.

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};

/// A table as a Parquet file: Snappy, one row group per million rows, no time stamps, so that equal tables are equal
/// bytes.
///
/// # Errors
/// None in practice: the tables of Weft hold only types that Parquet has.
pub fn to_parquet(table: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_max_row_group_row_count(Some(1_000_000))
        .set_created_by(format!("weft {}", crate::VERSION))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties))?;
    writer.write(table)?;
    writer.close()?;
    Ok(bytes)
}
