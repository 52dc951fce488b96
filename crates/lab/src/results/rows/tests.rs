//! Tests that the declarations of tables hold for their rows.

use super::*;

/// Endings of names and the units that they stand for.
const UNITS: [(&str, &str); 4] = [("_us", "µs"), ("_bytes", "B"), ("_mbps", "Mbit/s"), ("_bps", "bit/s")];

fn columns() -> impl Iterator<Item = (String, &'static Column)> {
    let tables = TABLES.into_iter().chain([ObservationRow::TABLE]);
    tables.flat_map(|table| {
        table.columns.iter().map(|column| (format!("{}.{}", table.name, column.name), column))
    })
}

#[test]
fn the_unit_of_a_column_is_the_one_in_its_name() {
    for (name, column) in columns() {
        let named = UNITS.iter().find(|(ending, _)| name.ends_with(ending)).map_or("", |(_, unit)| unit);
        let named = if column.name == "bytes" { "B" } else { named };
        assert_eq!(column.unit, named, "{name}");
    }
}

#[test]
fn the_schema_of_a_table_is_the_declared_one() {
    fn check<R: Row + Default>() {
        let (none, one) = (R::table(&[]).unwrap(), R::table(&[R::default()]).unwrap());
        assert_eq!((none.num_rows(), one.num_rows(), none.schema()), (0, 1, one.schema()));
        let always = R::TABLE.columns.iter().filter(|column| column.only.is_none());
        assert_eq!(always.clone().count(), one.num_columns());
        for (column, (field, values)) in always.zip(one.schema().fields().iter().zip(one.columns())) {
            assert_eq!((column.name, &column.kind.arrow()), (field.name().as_str(), field.data_type()));
            assert_eq!(column.null.is_some(), values.null_count() == 1, "{}", column.name);
        }
    }
    check::<FlowRow>();
    check::<LinkRow>();
    check::<SampleRow<'_>>();
    check::<DeliveryRow>();
    check::<PathRow>();
    check::<TraceRow<'_>>();
    check::<CounterRow>();
    check::<FaultRow>();
    check::<PhaseRow>();
    check::<DropRow>();
    check::<ClassRow>();
    check::<PauseRow>();
    check::<SharedBufferRow>();
    check::<CollectiveRow>();
    check::<CriticalRow>();
    check::<ObservationRow>();
}

#[test]
fn flows_have_a_column_of_transports_if_there_are_several() {
    let row =
        |transport: Option<&str>| FlowRow { transport: transport.map(str::to_owned), ..FlowRow::default() };
    let name = |table: &RecordBatch| table.schema().fields().last().unwrap().name().clone();
    let alone = FlowRow::table(&[row(None), row(None)]).unwrap();
    let several = FlowRow::table(&[row(Some("web")), row(Some("bulk"))]).unwrap();
    assert_eq!((name(&alone), name(&several)), ("timed_out_us".to_owned(), "transport".to_owned()));
    assert_eq!(several.num_columns(), alone.num_columns() + 1);
    assert!(!several.schema().fields().last().unwrap().is_nullable());
}

#[test]
fn names_are_unique_and_everything_is_described() {
    let mut names: Vec<String> = columns().map(|(name, _)| name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(columns().all(|(_, column)| !column.doc().is_empty()));
}
