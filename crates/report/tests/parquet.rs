//! A document as Parquet has the values of its CSV, with types. Needs the feature `parquet`.

#![cfg(feature = "parquet")]

use std::collections::BTreeMap;
use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use fairground_report::{Cell, Column, Document, Table, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn document() -> Document {
    let columns = [
        Column::text("task"),
        Column::number("switches"),
        Column::duration("wait", TimeUnit::Ms),
        Column::percent("share"),
        Column::mixed("cfs"),
    ];
    let mut table = Table::new("tasks", "Tasks", columns);
    table.push([
        Cell::text("hog, the first"),
        Cell::count(12_345),
        Cell::Duration { ns: 0.5 },
        Cell::NotMeasured,
        Cell::quantity(812.5, 1, "1/s"),
    ]);
    table.push([
        Cell::text("cat"),
        Cell::Int(0),
        Cell::duration_ns(7),
        Cell::percent(12.5, 1),
        Cell::float(f64::NAN, 1),
    ]);
    let mut document = Document::new("hogs");
    document.set("run", "seed", Cell::count(42));
    document.tables = vec![table];
    document.notes.push("One event was lost.".to_owned());
    document
}

fn read(document: &Document) -> (Vec<RecordBatch>, BTreeMap<String, String>) {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&document.to_parquet().expect("in memory")).expect("written");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let pairs = builder.metadata().file_metadata().key_value_metadata().cloned();
    let pairs = pairs.unwrap_or_default().into_iter();
    let metadata = pairs.map(|pair| (pair.key, pair.value.unwrap_or_default())).collect();
    (builder.build().expect("a reader").map(|batch| batch.expect("sound")).collect(), metadata)
}

/// The rows as lines of CSV: `run,of,task,metric,value,unit`.
fn lines(batch: &RecordBatch) -> Vec<Vec<String>> {
    let text = |column: &str, row: usize| {
        let column = batch.column_by_name(column).expect("a column").as_string::<i32>();
        if column.is_null(row) { String::new() } else { column.value(row).to_owned() }
    };
    let values = batch.column_by_name("value").expect("a column").as_primitive::<Float64Type>();
    let line = |row| {
        let value = match values.is_null(row) {
            true => text("text", row),
            false => values.value(row).to_string(),
        };
        let names = ["run", "of", "task", "metric"].map(|column| text(column, row));
        names.into_iter().chain([value, text("unit", row)]).collect()
    };
    (0..batch.num_rows()).map(line).collect()
}

#[test]
fn it_has_the_values_of_the_csv() {
    let document = document();
    let (batches, _) = read(&document);
    let csv = document.to_csv();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let records = reader.records().map(|record| record.expect("CSV"));
    let expected: Vec<Vec<String>> =
        records.map(|record| record.iter().map(str::to_owned).collect()).collect();
    assert_eq!(batches.iter().flat_map(lines).collect::<Vec<_>>(), expected);
}

#[test]
fn what_was_not_measured_is_null() {
    let (batches, _) = read(&document());
    let value = batches[0].column_by_name("value").expect("a column");
    let text = batches[0].column_by_name("text").expect("a column");
    let nulls = (0..8).filter(|row| value.is_null(*row) && text.is_null(*row));
    assert_eq!(nulls.collect::<Vec<_>>(), [2, 7]);
}

#[test]
fn how_it_was_made_stands_beside_it() {
    let (_, metadata) = read(&document());
    for (key, value) in [
        ("fairground.schema", "metrics"),
        ("fairground.schema_version", "2"),
        ("fairground.title", "hogs"),
        ("run.seed", "42"),
        ("note.1", "One event was lost."),
    ] {
        assert_eq!(metadata.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[test]
fn a_document_without_tables_is_a_table_without_rows() {
    let (batches, metadata) = read(&Document::new("nothing"));
    assert_eq!((batches.len(), metadata["fairground.title"].as_str()), (0, "nothing"));
}
