//! A table that is written while it is made: as Parquet, in memory while it is small, else in a
//! file without a name.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use tempfile::{SpooledData, SpooledTempFile};

use super::parquet::properties;

/// Up to this many bytes are kept in memory.
const IN_MEMORY: usize = 16 << 20;

/// Bytes that nobody else sees, in memory while they are few, else in a file in the system's
/// temporary directory (`TMPDIR`).
pub fn spool() -> SpooledTempFile {
    tempfile::spooled_tempfile(IN_MEMORY)
}

/// A table under way.
pub struct Writing {
    writer: ArrowWriter<SpooledTempFile>,
    rows: usize,
}

/// A table that was written.
#[derive(Debug, Clone)]
pub struct Stored {
    data: Arc<Data>,
    rows: usize,
}

#[derive(Debug)]
enum Data {
    Memory(Bytes),
    /// One reader at a time: they share a position.
    Disk(Mutex<File>),
}

impl Writing {
    /// A table without rows so far.
    ///
    /// # Errors
    /// None in practice: the tables of Weft hold only types that Parquet has.
    pub fn new(schema: SchemaRef) -> Result<Self, ParquetError> {
        Ok(Self { writer: ArrowWriter::try_new(spool(), schema, Some(properties()))?, rows: 0 })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// What the system says of the temporary file.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        self.rows += rows.num_rows();
        self.writer.write(rows)
    }

    /// The table, whole.
    ///
    /// # Errors
    /// What the system says of the temporary file.
    pub fn finish(self) -> Result<Stored, ParquetError> {
        let data = match self.writer.into_inner()?.into_inner() {
            SpooledData::InMemory(bytes) => Data::Memory(bytes.into_inner().into()),
            SpooledData::OnDisk(file) => Data::Disk(Mutex::new(file)),
        };
        Ok(Stored { data: Arc::new(data), rows: self.rows })
    }
}

impl Stored {
    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The table in memory.
    ///
    /// # Errors
    /// What the system says of the temporary file.
    pub fn read(&self) -> Result<RecordBatch, ParquetError> {
        match &*self.data {
            Data::Memory(bytes) => read(bytes.clone(), self.rows),
            Data::Disk(file) => {
                read(file.lock().unwrap_or_else(PoisonError::into_inner).try_clone()?, self.rows)
            }
        }
    }

    /// Writes the file into another.
    ///
    /// # Errors
    /// What the system says of either file.
    pub fn copy_to(&self, to: &mut impl Write) -> io::Result<()> {
        match &*self.data {
            Data::Memory(bytes) => to.write_all(bytes),
            Data::Disk(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.rewind()?;
                io::copy(&mut *file, to).map(drop)
            }
        }
    }
}

/// All rows as one batch.
fn read(from: impl ChunkReader + 'static, rows: usize) -> Result<RecordBatch, ParquetError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(from)?;
    let schema = Arc::clone(reader.schema());
    let mut batches = reader.with_batch_size(rows.max(1)).build()?;
    let table = batches.next().transpose()?.unwrap_or_else(|| RecordBatch::new_empty(schema));
    if table.num_rows() == rows {
        Ok(table)
    } else {
        Err(ParquetError::EOF(format!("{} rows of {rows}", table.num_rows())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::rows::FlowRow;
    use crate::results::table::Row;

    /// Rows that do not compress, so that many of them do not stay in memory.
    fn rows(count: u32) -> Vec<FlowRow> {
        let row = |id: u32| {
            let scattered = |salt: u64| weft_units::mix64(u64::from(id) ^ salt << 32);
            FlowRow {
                id,
                size_bytes: scattered(1),
                fct_us: (!id.is_multiple_of(3)).then(|| scattered(2) as f64),
                start_us: Some(scattered(3) as f64),
                delivered_bytes: scattered(4),
                segments_sent: scattered(5),
                segments_received: scattered(6),
                class: "short",
                ..FlowRow::default()
            }
        };
        (0..count).map(row).collect()
    }

    fn stored(rows: &[FlowRow]) -> Stored {
        let mut table = Writing::new(FlowRow::table(rows).unwrap().schema()).unwrap();
        rows.chunks(1_000).for_each(|some| table.write(&FlowRow::table(some).unwrap()).unwrap());
        table.finish().unwrap()
    }

    #[test]
    fn a_table_reads_as_it_was_written_in_memory_and_on_disk_and_its_copy_is_the_same_file() {
        for (count, is_small) in [(0, true), (10_000, true), (600_000, false)] {
            let (rows, whole) = (rows(count), FlowRow::table(&rows(count)).unwrap());
            let stored = stored(&rows);
            assert_eq!(matches!(*stored.data, Data::Memory(_)), is_small);
            for _ in 0..2 {
                assert_eq!(stored.read().unwrap(), whole);
                let mut copy = Vec::new();
                stored.copy_to(&mut copy).unwrap();
                assert_eq!(read(Bytes::from(copy), stored.rows()).unwrap(), whole);
            }
        }
    }
}
