//! One table of events, as Apache Parquet and as an Arrow file (IPC): for databases and data frames.
//! `docs/reference/parquet.md` has the columns.
//!
//! Rows are gathered in batches of [`BATCH_ROWS`]; a Parquet row group has at most [`GROUP_ROWS`]. That
//! much is in memory beside the trace itself, of whatever length. A column that a kind of event does not have is null.

mod row;
mod rows;

use std::borrow::Borrow;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::Trace;
use rows::Rows;

/// The version of the table's columns, `fairground.schema_version` in the files. A new column does not
/// change it; any other change does.
pub const EVENTS_SCHEMA_VERSION: u32 = 1;
/// Events that are turned into columns at once.
const BATCH_ROWS: usize = 16 << 10;
/// Events of a row group, at most.
const GROUP_ROWS: usize = 128 << 10;

/// Writes a trace's events as Apache Parquet: one table, pages compressed with Snappy.
///
/// # Errors
/// Those of the sink.
pub fn write_parquet(trace: &Trace, sink: impl Write + Send) -> io::Result<()> {
    let mut sink = Sink::new(sink);
    let done = parquet_into(trace, &mut sink).map_err(io::Error::other);
    sink.end(done)
}

/// Writes a trace's events as an Arrow file (IPC, also called Feather): the same table, not compressed.
///
/// # Errors
/// Those of the sink.
pub fn write_arrow(trace: &Trace, sink: impl Write) -> io::Result<()> {
    let mut sink = Sink::new(sink);
    let done = arrow_into(trace, &mut sink).map_err(io::Error::other);
    sink.end(done)
}

fn parquet_into(trace: &Trace, sink: impl Write + Send) -> Result<(), ParquetError> {
    // Twice: for readers of Parquet, and for those that ask for the schema of Arrow.
    let pairs = metadata(trace).map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(format!("fairground {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(pairs.to_vec()))
        .build();
    let batches = EventBatches::new(trace);
    let mut writer = ArrowWriter::try_new(sink, batches.schema(), Some(properties))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

fn arrow_into(trace: &Trace, sink: impl Write) -> Result<(), ArrowError> {
    let batches = EventBatches::new(trace);
    let mut writer = FileWriter::try_new(sink, &batches.schema())?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.finish()
}

/// The columns, in their order.
fn fields() -> Vec<Field> {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::UInt32, true);
    vec![
        Field::new("time_ns", DataType::UInt64, false),
        Field::new("cpu", DataType::UInt32, false),
        Field::new("kind", DataType::Utf8, false),
        number("task"),
        number("pid"),
        text("comm"),
        text("state"),
        number("other_task"),
        number("other_pid"),
        text("other_comm"),
        number("from_cpu"),
        number("to_cpu"),
        text("label"),
        text("detail"),
        Field::new("value", DataType::UInt64, true),
        Field::new("nice", DataType::Int8, true),
        number("insns"),
        Field::new("prio", DataType::Int8, true),
    ]
}

/// The facts of the whole trace.
fn metadata(trace: &Trace) -> [(&'static str, String); 10] {
    let loss = &trace.loss;
    [
        ("fairground.schema", "events".to_owned()),
        ("fairground.schema_version", EVENTS_SCHEMA_VERSION.to_string()),
        ("fairground.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("fairground.cpus", trace.cpus.to_string()),
        ("fairground.start_ns", trace.start_ns.to_string()),
        ("fairground.end_ns", trace.end_ns.to_string()),
        ("fairground.events", trace.len().to_string()),
        ("fairground.lost_events", loss.lost_events.to_string()),
        ("fairground.unreadable", loss.unreadable.to_string()),
        ("fairground.truncated", loss.truncated.to_string()),
    ]
}

/// The table of a trace's events in batches of Arrow, made on demand: one is in memory beside the trace.
/// The trace is borrowed, or shared (`Arc<Trace>`).
#[derive(Debug)]
pub struct EventBatches<T> {
    trace: T,
    schema: SchemaRef,
    /// The first event of the next batch.
    next: usize,
}

impl<T: Borrow<Trace>> EventBatches<T> {
    /// From the first event on.
    pub fn new(trace: T) -> Self {
        let schema = Arc::new(Schema::new_with_metadata(fields(), metadata(trace.borrow())));
        Self { trace, schema, next: 0 }
    }
}

impl<T: Borrow<Trace>> Iterator for EventBatches<T> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let trace = self.trace.borrow();
        let end = (self.next + BATCH_ROWS).min(trace.len());
        if self.next == end {
            return None;
        }
        let mut rows = Rows::default();
        trace.events_in(self.next..end).for_each(|event| rows.push(trace, &event));
        self.next = end;
        Some(rows.into_batch(&self.schema))
    }
}

impl<T: Borrow<Trace>> RecordBatchReader for EventBatches<T> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Keeps the sink's own error, which the libraries' writers wrap in theirs or turn into text.
struct Sink<W> {
    inner: W,
    error: Option<io::Error>,
}

impl<W: Write> Sink<W> {
    fn new(inner: W) -> Self {
        Self { inner, error: None }
    }

    fn end(mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Ok(()) => self.inner.flush(),
            Err(error) => Err(self.error.unwrap_or(error)),
        }
    }

    fn keep<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.inner.write(bytes);
        self.keep(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.inner.flush();
        self.keep(done)
    }
}
