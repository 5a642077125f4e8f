//! A point of a sweep as a Parquet file: its metrics, each row with the point's parameters. The same point gives the
//! same bytes.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use fairground_analysis::metric::{self, MetricValue};
use fairground_session::{Outcome, RunSpec};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value as Json;

use crate::error;
use crate::figures::{self, Column, booleans, large_numbers, numbers, symbol, texts, values};
use crate::run::carry_out;
use crate::words::{Checked, Digests, Scheduler, spec_of};

/// The version of the columns, as `fairground.schema_version` in the files says it. A new column does not change it.
const SCHEMA_VERSION: u32 = 1;
/// What the machine's own metrics are of.
const MACHINE: &str = "machine";

/// One measured value.
struct Row {
    of: Option<String>,
    metric: Option<String>,
    unit: Option<&'static str>,
    value: Option<MetricValue>,
}

/// Every metric of the machine and of each group.
fn rows(outcome: &Outcome) -> Vec<Row> {
    let analysis = &outcome.analysis;
    let of_machine = metric::MACHINE.iter().map(|metric| Row {
        of: Some(MACHINE.to_owned()),
        metric: Some(metric.key()),
        unit: symbol(metric.unit),
        value: (metric.read)(&analysis.machine),
    });
    let of_groups = analysis.groups.iter().flat_map(|group| {
        metric::GROUP.iter().map(|metric| Row {
            of: Some(group.name.clone()),
            metric: Some(metric.key()),
            unit: symbol(metric.unit),
            value: (metric.read)(&group.figures),
        })
    });
    of_machine.chain(of_groups).collect()
}

/// What a file is of.
struct Asked<'a> {
    spec: &'a RunSpec,
    /// The same, checked; `None` where that failed.
    checked: Option<&'a Checked>,
    digests: &'a Digests,
}

/// The parameters, the same in every row. What could not be read of them is null. Whatever tells two points apart is
/// among them.
fn parameters(asked: &Asked<'_>, rows: usize) -> Vec<Column> {
    let Asked { spec, checked, digests } = asked;
    let words = spec.words();
    let text = |name: &str, value: Option<&str>| texts(name, std::iter::repeat_n(value, rows));
    let number = |name: &str, value: Option<u32>| numbers(name, std::iter::repeat_n(value, rows));
    let large =
        |name: &str, value: Option<u64>| large_numbers(name, std::iter::repeat_n(value, rows));
    let word = |name: &str| text(name, words.get(name).and_then(Json::as_str));
    let list = |name: &str| {
        let items = words.get(name).and_then(Json::as_array).into_iter().flatten();
        let items: Vec<&str> = items.filter_map(Json::as_str).collect();
        text(name, (!items.is_empty()).then(|| items.join(" ")).as_deref())
    };
    let machine = checked.map(|checked| &checked.machine);
    let topology = machine.map(|machine| machine.topology.to_string());
    let mut columns = vec![
        word("workload"),
        list("sched"),
        number("cpus", machine.map(|machine| machine.cpus())),
        text("topology", topology.as_deref()),
        large("duration_ns", checked.map(|checked| checked.duration_ns)),
        large("seed", Some(spec.machine.seed)),
        number("hz", machine.map(|machine| machine.hz)),
        word("timers"),
        text("costs", machine.map(|machine| machine.cost.preset_name())),
        word("locks"),
        large("lead_in_ns", machine.map(|machine| machine.lead_in_ns)),
        list("profile"),
        list("at"),
        word("engine"),
        word("null_loads"),
        word("kernel_abi"),
        booleans("check", vec![spec.machine.check; rows]),
        large("idle_bound_ns", machine.and_then(|machine| machine.idle_bound_ns)),
        text("sched_sha256", digests.scheduler.as_deref()),
        text("workload_sha256", digests.workload.as_deref()),
        text("topology_sha256", digests.topology.as_deref()),
        text("profile_sha256", digests.profile.as_deref()),
        text("fairground", Some(env!("CARGO_PKG_VERSION"))),
        text("fairground_sha256", Some(env!("FAIRGROUND_SOURCES_SHA256"))),
    ];
    // `set` and `cost` have a column for each name.
    let has_column = |word: &str| {
        let of_word = |(field, _): &Column| field.name().trim_end_matches("_ns") == word;
        ["set", "cost"].contains(&word) || columns.iter().any(of_word)
    };
    let others = spec.stated().into_iter().filter(|(name, _)| !has_column(name));
    let others: Vec<Column> =
        others.map(|(name, value)| text(&name, Some(&value.to_string()))).collect();
    columns.extend(others);
    let settings = spec.scheduler.set.iter().filter_map(|set| set.split_once('='));
    columns.extend(settings.map(|(name, value)| text(&format!("set.{name}"), Some(value))));
    let costs = spec.machine.cost.iter().filter_map(|cost| cost.split_once('='));
    columns.extend(costs.map(|(name, value)| large(&format!("cost.{name}"), value.parse().ok())));
    columns
}

/// The file of a point.
fn file(
    asked: &Asked<'_>,
    rows: &[Row],
    ejection: Option<&str>,
    error: Option<&str>,
) -> Result<Vec<u8>, ParquetError> {
    let mut columns = parameters(asked, rows.len());
    columns.extend([
        texts("of", rows.iter().map(|row| row.of.as_ref())),
        texts("metric", rows.iter().map(|row| row.metric.as_ref())),
        texts("unit", rows.iter().map(|row| row.unit)),
        values("value", rows.iter().map(|row| row.value)),
        texts("ejection", rows.iter().map(|_| ejection)),
        texts("error", rows.iter().map(|_| error)),
    ]);
    // One entry: with several, their order in the file would be that of a hash table.
    let about = format!(
        "{{\"schema\":\"sweep\",\"schema_version\":{SCHEMA_VERSION},\"version\":\"{}\"}}",
        env!("CARGO_PKG_VERSION")
    );
    let metadata = HashMap::from([("fairground".to_owned(), about)]);
    write(&figures::table(columns, metadata)?)
}

fn write(batch: &RecordBatch) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("fairground {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.into_inner()
}

/// Runs a point and gives its file.
#[pyfunction]
pub(crate) fn point_file<'py>(
    py: Python<'py>,
    point: &Bound<'py, PyAny>,
    scheduler: &Scheduler,
    digests: Digests,
) -> PyResult<Bound<'py, PyBytes>> {
    let spec = spec_of(point)?;
    let checked = py.detach(|| Checked::of(&spec, false)).map_err(error)?;
    let outcome = carry_out(py, &checked, &scheduler.loaded)?;
    let asked = Asked { spec: &spec, checked: Some(&checked), digests: &digests };
    let made = py.detach(|| file(&asked, &rows(&outcome), outcome.ejection().as_deref(), None));
    Ok(PyBytes::new(py, &made.map_err(error)?))
}

/// The file of a point that could not be run: one row that says why.
#[pyfunction]
pub(crate) fn error_file<'py>(
    py: Python<'py>,
    point: &Bound<'py, PyAny>,
    digests: Digests,
    why: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let spec = spec_of(point)?;
    let made = py.detach(|| {
        let checked = Checked::of(&spec, false).ok();
        let asked = Asked { spec: &spec, checked: checked.as_ref(), digests: &digests };
        let row = Row { of: None, metric: None, unit: None, value: None };
        file(&asked, &[row], None, Some(why))
    });
    Ok(PyBytes::new(py, &made.map_err(error)?))
}
