//! A short name for the content of a table, to notice when a result moved.

use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, cast::AsArray};
use arrow_schema::DataType;
use sha2::{Digest, Sha256};

use crate::spec::hex;

/// 64 bits of a SHA-256 over types and values of all columns in their order, in hexadecimal; a
/// column may change its name. Equal fingerprints mean equal values; they do not mean right ones.
pub fn fingerprint(table: &RecordBatch) -> String {
    let mut hash = Sha256::new();
    for column in table.columns() {
        hash.update(format!("{}\n", column.data_type()));
        for row in 0..column.len() {
            hash.update([u8::from(column.is_valid(row))]);
            if column.is_valid(row) {
                update(&mut hash, column, row);
            }
        }
    }
    hex(&hash.finalize()[..8])
}

/// One fingerprint of several, in their order.
pub(crate) fn combined(fingerprints: impl IntoIterator<Item = String>) -> String {
    let mut hash = Sha256::new();
    fingerprints.into_iter().for_each(|fingerprint| hash.update(fingerprint));
    hex(&hash.finalize()[..8])
}

fn update(hash: &mut Sha256, column: &dyn Array, row: usize) {
    match column.data_type() {
        DataType::UInt16 => hash.update(column.as_primitive::<UInt16Type>().value(row).to_le_bytes()),
        DataType::UInt32 => hash.update(column.as_primitive::<UInt32Type>().value(row).to_le_bytes()),
        DataType::UInt64 => hash.update(column.as_primitive::<UInt64Type>().value(row).to_le_bytes()),
        DataType::Float64 => {
            hash.update(column.as_primitive::<Float64Type>().value(row).to_bits().to_le_bytes());
        }
        DataType::Boolean => hash.update([u8::from(column.as_boolean().value(row))]),
        DataType::Utf8 => {
            let text = column.as_string::<i32>().value(row);
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        other => unreachable!("no table of Weft has a column of type {other}"),
    }
}
