//! A document as Apache Parquet: the observations of its CSV, one a row, with types. `docs/reference/parquet.md` has
//! the columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::tidy::Observation;
use crate::{Cell, Document};

/// The version of the columns, as `fairground.schema_version` in the file says it.
pub const METRICS_SCHEMA_VERSION: u32 = 2;

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
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns())?;
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
        writer.write(&batch)?;
        writer.into_inner()
    }

    /// In the order of the schema.
    fn columns(&self) -> Vec<ArrayRef> {
        let all: Vec<Observation<'_>> = self.observations().collect();
        let names = |of: for<'x, 'a> fn(&'x Observation<'a>) -> &'x String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(all.iter().map(of)))
        };
        let value: Float64Array = all.iter().map(|seen| number_in(&seen.value)).collect();
        let text: StringArray = all.iter().map(|seen| text_in(&seen.value)).collect();
        let unit: StringArray = all.iter().map(|seen| seen.unit).collect();
        vec![
            names(|seen| &seen.run),
            names(|seen| &seen.of),
            names(|seen| &seen.task),
            names(|seen| &seen.metric),
            Arc::new(value),
            Arc::new(text),
            Arc::new(unit),
        ]
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
        for (number, verdict) in self.verdicts.iter().enumerate() {
            all.insert(format!("verdict.{}", number + 1), verdict.line());
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
        text("run", false),
        text("of", false),
        text("task", false),
        text("metric", false),
        Field::new("value", DataType::Float64, true),
        text("text", true),
        text("unit", true),
    ]
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
