//! A document as Apache Parquet: the long form of its CSV, one row per value, with types. `docs/reference/parquet.md` has the columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::csv_text::raw;
use crate::{Cell, Document};

/// The version of the columns, as `fairground.schema_version` in the file says it.
pub const METRICS_SCHEMA_VERSION: u32 = 1;

/// The columns so far.
#[derive(Default)]
struct Columns {
    table: StringBuilder,
    row: UInt32Builder,
    label: StringBuilder,
    column: StringBuilder,
    unit: StringBuilder,
    value: Float64Builder,
    text: StringBuilder,
}

impl Document {
    /// The document as a Parquet file. How the result was made stands in the file's metadata.
    ///
    /// # Errors
    /// None that comes from outside: the file is made in memory.
    pub fn to_parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let metadata = self.metadata();
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("fairground {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(pairs.collect()))
            .build();
        // Twice: for readers of Parquet, and for those that ask for the schema of Arrow.
        let schema = Arc::new(Schema::new_with_metadata(fields(), metadata));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns().finish())?;
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
        writer.write(&batch)?;
        writer.into_inner()
    }

    fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        for table in &self.tables {
            for (number, row) in (1..).zip(&table.rows) {
                let label = row.first().map(raw).unwrap_or_default();
                for (column, cell) in table.columns.iter().zip(row) {
                    columns.table.append_value(&table.id);
                    columns.row.append_value(number);
                    columns.label.append_value(&label);
                    columns.column.append_value(&column.name);
                    columns.unit.append_option(column.unit_of(cell));
                    columns.value.append_option(number_in(cell));
                    columns.text.append_option(text_in(cell));
                }
            }
        }
        columns
    }

    fn metadata(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            ("fairground.schema".to_owned(), "metrics".to_owned()),
            ("fairground.schema_version".to_owned(), METRICS_SCHEMA_VERSION.to_string()),
            ("fairground.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("fairground.title".to_owned(), self.title.clone()),
        ]);
        for section in &self.sections {
            for known in &section.entries {
                let key = format!("{}.{}", section.name, known.name);
                all.insert(key, known.value.with_unit());
            }
        }
        let of_tables = self.tables.iter().flat_map(|table| &table.notes);
        for (number, note) in of_tables.chain(&self.notes).enumerate() {
            all.insert(format!("note.{}", number + 1), note.clone());
        }
        all
    }
}

/// The columns, in their order.
fn fields() -> Vec<Field> {
    let text = |name: &str, null: bool| Field::new(name, DataType::Utf8, null);
    vec![
        text("table", false),
        Field::new("row", DataType::UInt32, false),
        text("label", false),
        text("column", false),
        text("unit", true),
        Field::new("value", DataType::Float64, true),
        text("text", true),
    ]
}

impl Columns {
    /// In the order of the schema.
    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.table.finish()),
            Arc::new(self.row.finish()),
            Arc::new(self.label.finish()),
            Arc::new(self.column.finish()),
            Arc::new(self.unit.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.text.finish()),
        ]
    }
}

/// The raw number; `None` for a text, and for what was not measured.
fn number_in(cell: &Cell) -> Option<f64> {
    match cell {
        _ if cell.is_missing() => None,
        Cell::Int(value) => Some(*value as f64),
        Cell::Float { value, .. }
        | Cell::Percent { value, .. }
        | Cell::Quantity { value, .. }
        | Cell::Duration { ns: value } => Some(*value),
        Cell::Text(_) | Cell::NotMeasured => None,
    }
}

fn text_in(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}
