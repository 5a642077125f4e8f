//! A point of a sweep as a Parquet file: its metrics, each row with the point's parameters. The same point gives the same bytes.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use fairground_analysis::metric::{self, Value};
use fairground_session::Outcome;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;
use crate::figures::{self, Column, booleans, large_numbers, numbers, symbol, texts, values};
use crate::made;
use crate::run::carry_out;
use crate::words::{Checked, Digests, Scheduler, Words};

/// The version of the columns, as `fairground.schema_version` in the files says it. A new column does not change it.
const SCHEMA_VERSION: u32 = 1;
/// Whom the machine's own metrics are of.
const MACHINE: &str = "machine";

/// One measured value.
struct Row {
    of: Option<String>,
    metric: Option<String>,
    unit: Option<&'static str>,
    value: Option<Value>,
}

/// Every metric of the machine and of each group.
fn rows(outcome: &Outcome) -> Vec<Row> {
    let analysis = &outcome.analysis;
    let of_machine = metric::MACHINE.iter().map(|metric| Row {
        of: Some(MACHINE.to_owned()),
        metric: Some(metric.key()),
        unit: symbol(metric.unit),
        value: (metric.read)(analysis),
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
    words: &'a Words,
    /// The same, checked; nothing where that failed.
    checked: Option<&'a Checked>,
    digests: &'a Digests,
}

/// The parameters, the same in every row. What could not be read of them is null. Whatever tells two points apart is among them.
fn parameters(asked: &Asked<'_>, rows: usize) -> Vec<Column> {
    let Asked { words, checked, digests } = asked;
    let text = |name: &str, value: Option<&str>| texts(name, std::iter::repeat_n(value, rows));
    let number = |name: &str, value: Option<u32>| numbers(name, std::iter::repeat_n(value, rows));
    let large =
        |name: &str, value: Option<u64>| large_numbers(name, std::iter::repeat_n(value, rows));
    let machine = checked.map(|checked| &checked.machine);
    let check = vec![words.check; rows];
    let topology = machine.map(|machine| machine.topology.to_string());
    let at = (!words.at.is_empty()).then(|| words.at.join(" "));
    let mut columns = vec![
        text("workload", Some(&words.workload)),
        text("sched", Some(&words.sched)),
        number("cpus", machine.map(|machine| machine.cpus())),
        text("topology", topology.as_deref()),
        large("duration_ns", checked.map(|checked| checked.duration_ns)),
        large("seed", Some(words.seed)),
        number("hz", machine.map(|machine| machine.hz)),
        text("timers", machine.map(|machine| made::timers(machine.timers))),
        text("costs", Some(&words.costs)),
        text("locks", words.locks.as_deref()),
        large("lead_in_ns", machine.map(|machine| machine.lead_in_ns)),
        text("profile", words.profile.as_ref().and_then(|path| path.to_str())),
        text("at", at.as_deref()),
        text("engine", Some(&words.engine)),
        text("null_loads", Some(&words.null_loads)),
        booleans("check", check),
        large("idle_bound_ns", machine.and_then(|machine| machine.idle_bound_ns)),
        text("sched_sha256", digests.scheduler.as_deref()),
        text("workload_sha256", digests.workload.as_deref()),
        text("topology_sha256", digests.topology.as_deref()),
        text("profile_sha256", digests.profile.as_deref()),
        text("fairground", Some(env!("CARGO_PKG_VERSION"))),
        text("fairground_sha256", Some(env!("FAIRGROUND_SOURCES_SHA256"))),
    ];
    let settings = words.settings.iter();
    columns.extend(settings.map(|(name, value)| text(&format!("set.{name}"), Some(value))));
    let costs = words.cost.iter();
    columns.extend(costs.map(|(name, value)| large(&format!("cost.{name}"), Some(*value))));
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
    point: Words,
    scheduler: &Scheduler,
    digests: Digests,
) -> PyResult<Bound<'py, PyBytes>> {
    let checked = py.detach(|| point.check(false)).map_err(error)?;
    let outcome = carry_out(py, &checked, &scheduler.loaded)?;
    let asked = Asked { words: &point, checked: Some(&checked), digests: &digests };
    let made = py.detach(|| file(&asked, &rows(&outcome), outcome.ejection().as_deref(), None));
    Ok(PyBytes::new(py, &made.map_err(error)?))
}

/// The file of a point that could not be run: one row that says why.
#[pyfunction]
pub(crate) fn error_file<'py>(
    py: Python<'py>,
    point: Words,
    digests: Digests,
    why: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let made = py.detach(|| {
        let checked = point.check(false).ok();
        let asked = Asked { words: &point, checked: checked.as_ref(), digests: &digests };
        let row = Row { of: None, metric: None, unit: None, value: None };
        file(&asked, &[row], None, Some(why))
    });
    Ok(PyBytes::new(py, &made.map_err(error)?))
}
