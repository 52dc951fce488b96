//! How a result table is declared: once, as the struct of its rows. The Arrow schema, the guide and
//! every list of tables or columns are read from here.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
    new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// A table of a run.
#[derive(Debug)]
pub struct Table {
    /// Name of the table: that of its file without the ending.
    pub name: &'static str,
    /// Meaning of a row; Markdown.
    pub row: &'static str,
    /// The key of the spec that asks for it; none if it always has rows.
    pub asked_by: Option<&'static str>,
    /// Columns of the table, in order.
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Kind of the column's values.
    pub kind: Kind,
    /// Unit of the column; empty if it has none.
    pub unit: &'static str,
    /// When it has no value; none if it always has one.
    pub null: Option<&'static str>,
    /// With what the table has it, behind the word "only"; none if it always has it. A table has
    /// such a column if any row has a value there.
    pub only: Option<&'static str>,
    doc: &'static str,
}

/// The types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers of 16 bits.
    U16,
    /// Whole numbers of 32 bits.
    U32,
    /// Whole numbers of 64 bits.
    U64,
    /// Numbers of double precision.
    F64,
    /// Truth values.
    Bool,
    /// Texts.
    Text,
}

impl Column {
    /// A column; `doc` is what `#[doc]` has of it, its lines one after the other.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        unit: &'static str,
        null: Option<&'static str>,
        only: Option<&'static str>,
        doc: &'static str,
    ) -> Self {
        Self { name, kind, unit, null, only, doc }
    }

    /// Meaning of the column; Markdown.
    pub const fn doc(&self) -> &'static str {
        self.doc.trim_ascii()
    }
}

impl Kind {
    /// As the guide writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Text => "text",
        }
    }

    /// The type in Arrow.
    pub const fn arrow(self) -> DataType {
        match self {
            Self::U16 => DataType::UInt16,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::F64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Utf8,
        }
    }
}

impl Table {
    /// The table of these columns of values, without those that it has only sometimes and that are
    /// empty here.
    ///
    /// # Errors
    /// Columns of another number, type or length than the declared ones: a defect of Weft.
    pub(super) fn batch(&self, values: Vec<ArrayRef>) -> Result<RecordBatch, ArrowError> {
        let is_here = |(column, values): &(&Column, ArrayRef)| {
            column.only.is_none() || values.null_count() < values.len()
        };
        let field = |column: &Column| Field::new(column.name, column.kind.arrow(), column.null.is_some());
        let (fields, values): (Vec<Field>, Vec<ArrayRef>) = self
            .columns
            .iter()
            .zip(values)
            .filter(is_here)
            .map(|(column, values)| (field(column), values))
            .unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), values)
    }
}

/// Adds to the table all columns of `schema`, which has those that it has: the further ones are
/// empty.
///
/// # Errors
/// A further column that is never empty: a defect of Weft.
pub(crate) fn with_columns(table: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| match table.column_by_name(field.name()) {
        Some(values) => Arc::clone(values),
        None => new_null_array(field.data_type(), table.num_rows()),
    };
    RecordBatch::try_new(Arc::clone(schema), schema.fields().iter().map(column).collect())
}

/// A row of a table.
pub trait Row: Sized {
    /// Declaration of the table.
    const TABLE: &'static Table;

    /// The table of these rows.
    ///
    /// # Errors
    /// None in practice: every column has a value for every row.
    fn table(rows: &[Self]) -> Result<RecordBatch, ArrowError>;
}

/// A value of a column.
pub(super) trait Cell {
    /// Kind of the column's values.
    const KIND: Kind;

    /// The column of these values.
    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef
    where
        Self: 'r;
}

/// Columns of numbers, and of numbers that may be missing.
macro_rules! numbers {
    ($($number:ty => $kind:ident $Array:ident),*) => {$(
        impl Cell for $number {
            const KIND: Kind = Kind::$kind;

            fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
                Arc::new($Array::from_iter_values(values.copied()))
            }
        }

        impl Cell for Option<$number> {
            const KIND: Kind = Kind::$kind;

            fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
                Arc::new(values.copied().collect::<$Array>())
            }
        }
    )*};
}

numbers!(u16 => U16 UInt16Array, u32 => U32 UInt32Array, u64 => U64 UInt64Array, f64 => F64 Float64Array);

impl Cell for bool {
    const KIND: Kind = Kind::Bool;

    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
        Arc::new(values.map(|value| Some(*value)).collect::<BooleanArray>())
    }
}

impl Cell for Option<bool> {
    const KIND: Kind = Kind::Bool;

    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
        Arc::new(values.copied().collect::<BooleanArray>())
    }
}

impl Cell for String {
    const KIND: Kind = Kind::Text;

    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(values))
    }
}

impl Cell for Option<String> {
    const KIND: Kind = Kind::Text;

    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
        Arc::new(values.map(Option::as_deref).collect::<StringArray>())
    }
}

impl Cell for Option<&'static str> {
    const KIND: Kind = Kind::Text;

    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef {
        Arc::new(values.copied().collect::<StringArray>())
    }
}

impl Cell for &str {
    const KIND: Kind = Kind::Text;

    fn column<'r>(values: impl Iterator<Item = &'r Self>) -> ArrayRef
    where
        Self: 'r,
    {
        Arc::new(StringArray::from_iter_values(values))
    }
}

/// Declares the rows of a table.
///
/// The name of the table stands behind that of the struct, then what a row stands for, then the key
/// of the spec that asks for it, if any. Each field is a column: its doc comment is what the guide
/// says, behind its type stands its unit, and then when it has no value, if that can be, or with
/// what the table has it, if it is not always there.
macro_rules! table {
    (
        $(#[$doc:meta])+
        $Row:ident $(<$life:lifetime>)? is $name:literal, $row:literal $(, asked by $key:literal)?;
        $(
            $(#[doc = $text:literal])+
            $field:ident: $type:ty, $unit:literal $(, null $null:literal)? $(, only $only:literal)?;
        )+
    ) => {
        $(#[$doc])+
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $Row $(<$life>)? {
            $(
                $(#[doc = $text])+
                pub $field: $type,
            )+
        }

        impl $(<$life>)? Row for $Row $(<$life>)? {
            const TABLE: &'static Table = &Table {
                name: $name,
                row: $row,
                asked_by: table!(@optional $($key)?),
                columns: &[$(Column::new(
                    stringify!($field),
                    <$type as Cell>::KIND,
                    $unit,
                    table!(@optional $($null)?),
                    table!(@optional $($only)?),
                    concat!($($text),+),
                )),+],
            };

            fn table(rows: &[Self]) -> Result<RecordBatch, ArrowError> {
                Self::TABLE.batch(vec![$(
                    <$type as Cell>::column(rows.iter().map(|row| &row.$field))
                ),+])
            }
        }
    };
    (@optional) => { None };
    (@optional $text:literal) => { Some($text) };
}

pub(super) use table;
