//! A document as Apache Parquet: the observations of its CSV, one a row, with types. `docs/reference/parquet.md` has
//! the columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::{Cell, Document};

/// The version of the columns, as `fairground.schema_version` in the file says it.
pub const METRICS_SCHEMA_VERSION: u32 = 2;

/// The columns so far.
#[derive(Default)]
struct Columns {
    run: StringBuilder,
    of: StringBuilder,
    task: StringBuilder,
    metric: StringBuilder,
    value: Float64Builder,
    text: StringBuilder,
    unit: StringBuilder,
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
        for verdict in &self.verdicts {
            columns.push((&verdict.run, "run", "", "verdict"), (None, Some(&verdict.text)), None);
        }
        for seen in self.observations() {
            let names = (seen.run.as_str(), seen.of.as_str(), seen.task.as_str(), &*seen.metric);
            columns.push(names, (number_in(seen.value), text_in(seen.value)), seen.unit);
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

impl Columns {
    /// Appends a row: run, of, task, metric; the value as a number or as a text; its unit.
    fn push(
        &mut self,
        (run, of, task, metric): (&str, &str, &str, &str),
        (value, text): (Option<f64>, Option<&str>),
        unit: Option<&str>,
    ) {
        self.run.append_value(run);
        self.of.append_value(of);
        self.task.append_value(task);
        self.metric.append_value(metric);
        self.value.append_option(value);
        self.text.append_option(text);
        self.unit.append_option(unit);
    }

    /// In the order of the schema.
    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.run.finish()),
            Arc::new(self.of.finish()),
            Arc::new(self.task.finish()),
            Arc::new(self.metric.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.text.finish()),
            Arc::new(self.unit.finish()),
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
