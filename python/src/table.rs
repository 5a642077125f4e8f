//! Tables for the Arrow PyCapsule interface: libraries that implement it (pyarrow, polars, pandas, DuckDB) take them without a copy.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use fairground_trace::{EventBatches, Trace};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// A table: its rows exist, or are made from a trace when they are read.
#[pyclass(frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    rows: Rows,
}

enum Rows {
    Made(RecordBatch),
    Events(Arc<Trace>),
}

impl Table {
    /// Of rows that are there.
    pub(crate) fn made(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), rows: Rows::Made(batch) }
    }

    /// The events of a trace.
    pub(crate) fn events(trace: Arc<Trace>) -> Self {
        let schema = EventBatches::new(Arc::clone(&trace)).schema();
        Self { schema, rows: Rows::Events(trace) }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        match &self.rows {
            Rows::Made(batch) => batch.num_rows(),
            Rows::Events(trace) => trace.len(),
        }
    }

    /// Names of the columns, in order, with their units; an empty text where there is none.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let unit = |field: &Arc<arrow_schema::Field>| field.metadata().get("unit").cloned();
        let fields = self.schema.fields().iter();
        fields.map(|field| (field.name().clone(), unit(field).unwrap_or_default())).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(error)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// The requested schema is a wish, which the interface allows not to be granted.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let reader: Box<dyn RecordBatchReader + Send> = match &self.rows {
            Rows::Made(batch) => {
                let schema = Arc::clone(&self.schema);
                Box::new(RecordBatchIterator::new([Ok(batch.clone())], schema))
            }
            Rows::Events(trace) => Box::new(EventBatches::new(Arc::clone(trace))),
        };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
    }
}
