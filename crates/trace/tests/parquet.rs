//! Events as Parquet and as Arrow, read back with the readers of arrow-rs. Needs the feature `parquet`.

#![cfg(feature = "parquet")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use fairground_trace::{
    EVENTS_SCHEMA_VERSION, Event, EventKind, TaskId, TaskInfo, TaskState, Trace, write_arrow,
    write_parquet,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use proptest::prelude::*;

use crate::support::any_trace::traces;

/// Rows that the readers give at once: as many as are written at once.
const BATCH_ROWS: usize = 16 << 10;
/// Rows of a row group at most.
const GROUP_ROWS: i64 = 128 << 10;

fn parquet(trace: &Trace) -> (Vec<RecordBatch>, ParquetMetaData) {
    let mut file = tempfile::tempfile().unwrap();
    write_parquet(trace, &mut file).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let metadata = builder.metadata().as_ref().clone();
    let reader = builder.with_batch_size(BATCH_ROWS).build().unwrap();
    (reader.map(Result::unwrap).collect(), metadata)
}

fn arrow(trace: &Trace) -> (Vec<RecordBatch>, BTreeMap<String, String>) {
    let mut file = tempfile::tempfile().unwrap();
    write_arrow(trace, &mut file).unwrap();
    let reader = FileReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let metadata = schema.metadata().iter();
    let metadata = metadata.map(|(key, value)| (key.to_string(), value.to_string())).collect();
    (reader.map(Result::unwrap).collect(), metadata)
}

/// A number of a row.
fn number(batch: &RecordBatch, column: &str, row: usize) -> Option<u64> {
    let column = batch.column_by_name(column).unwrap();
    if column.is_null(row) {
        return None;
    }
    match column.as_primitive_opt::<UInt64Type>() {
        Some(column) => Some(column.value(row)),
        None => Some(u64::from(column.as_primitive::<UInt32Type>().value(row))),
    }
}

/// A text of a row.
fn text<'a>(batch: &'a RecordBatch, column: &str, row: usize) -> Option<&'a str> {
    let column = batch.column_by_name(column).unwrap().as_string::<i32>();
    column.is_valid(row).then(|| column.value(row))
}

/// What must stand in `kind`, `task`, `other_task` and `value`.
fn expected(kind: EventKind) -> (&'static str, Option<TaskId>, Option<TaskId>, Option<u64>) {
    let known = |task: TaskId| Some(task).filter(|task| !task.is_idle());
    match kind {
        EventKind::Switch { prev, next, .. } => ("switch", Some(prev), Some(next), None),
        EventKind::Waking { task, waker, .. } => ("waking", Some(task), Some(waker), None),
        EventKind::Wakeup { task, .. } => ("wakeup", Some(task), None, None),
        EventKind::WakeupNew { task, .. } => ("wakeup_new", Some(task), None, None),
        EventKind::Migrate { task, .. } => ("migrate", Some(task), None, None),
        EventKind::Fork { parent, child } => ("fork", Some(parent), Some(child), None),
        EventKind::Exit { task } => ("exit", Some(task), None, None),
        EventKind::Nice { task, .. } => ("nice", Some(task), None, None),
        EventKind::RtPrio { task, .. } => ("rt_prio", Some(task), None, None),
        EventKind::Slice { task, slice_ns } => ("slice", Some(task), None, Some(slice_ns)),
        EventKind::Affinity { task, .. } => ("affinity", Some(task), None, None),
        EventKind::WakeSync { task } => ("wake_sync", Some(task), None, None),
        EventKind::CallEnter { task, object, .. } => ("call_enter", Some(task), None, Some(object)),
        EventKind::CallExit { task, result } => {
            ("call_exit", Some(task), None, Some(result as u64))
        }
        EventKind::CgroupMove { task, .. } => ("cgroup_move", Some(task), None, None),
        EventKind::CgroupWeight { weight, .. } => {
            ("cgroup_weight", None, None, Some(u64::from(weight)))
        }
        EventKind::Tick { task } => ("tick", Some(task), None, None),
        EventKind::Charge { task, runtime_ns } => ("charge", Some(task), None, Some(runtime_ns)),
        EventKind::Callback { task, .. } => ("callback", known(task), None, None),
        EventKind::Mark { task, value, .. } => ("mark", Some(task), None, Some(value)),
        EventKind::ContentionBegin { task, holder, .. } => {
            ("contention_begin", Some(task), known(holder), None)
        }
        EventKind::ContentionEnd { task, .. } => ("contention_end", Some(task), None, None),
        EventKind::Param { .. } => ("param", None, None, None),
        EventKind::Print { .. } => ("print", None, None, None),
        EventKind::Stack { task, .. } => ("stack", Some(task), None, None),
        EventKind::Lost { count } => ("lost", None, None, Some(count)),
    }
}

fn check_row(trace: &Trace, event: &Event, batch: &RecordBatch, row: usize) {
    let (kind, task, other, value) = expected(event.kind);
    assert_eq!(number(batch, "time_ns", row), Some(event.time_ns));
    assert_eq!(number(batch, "cpu", row), Some(u64::from(event.cpu)));
    assert_eq!(text(batch, "kind", row), Some(kind));
    assert_eq!(number(batch, "value", row), value, "{kind}");
    for (task, [index, pid, comm]) in
        [(task, ["task", "pid", "comm"]), (other, ["other_task", "other_pid", "other_comm"])]
    {
        let info = task.map(|task| &trace.tasks()[task.index()]);
        assert_eq!(number(batch, index, row), task.map(|task| u64::from(task.0)), "{kind}");
        assert_eq!(number(batch, pid, row), info.map(|info| u64::from(info.pid)), "{kind}");
        assert_eq!(text(batch, comm, row), info.map(|info| info.comm.as_str()), "{kind}");
    }
    let label = match event.kind {
        EventKind::Mark { label, .. }
        | EventKind::Affinity { cpus: label, .. }
        | EventKind::Param { label }
        | EventKind::Print { label }
        | EventKind::Stack { label, .. } => Some(trace.label(label)),
        EventKind::ContentionBegin { lock, .. } | EventKind::ContentionEnd { lock, .. } => {
            Some(trace.label(lock))
        }
        EventKind::CgroupMove { to: cgroup, .. } | EventKind::CgroupWeight { cgroup, .. } => {
            Some(trace.cgroups()[cgroup.index()].path.as_str())
        }
        EventKind::Callback { kind, .. } => Some(kind.name()),
        EventKind::CallEnter { call, .. } => Some(call.name()),
        _ => None,
    };
    assert_eq!(text(batch, "label", row), label, "{kind}");
    let target = match event.kind {
        EventKind::Waking { target_cpu, .. }
        | EventKind::Wakeup { target_cpu, .. }
        | EventKind::WakeupNew { target_cpu, .. } => Some(target_cpu),
        EventKind::Migrate { to_cpu, .. } => Some(to_cpu),
        _ => None,
    };
    assert_eq!(number(batch, "to_cpu", row), target.map(u64::from), "{kind}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_event_is_a_row_and_both_files_hold_the_same(trace in traces()) {
        let (batches, _) = parquet(&trace);
        let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
        let rows: Vec<_> = rows.collect();
        prop_assert_eq!(rows.len(), trace.len());
        for (event, (batch, row)) in trace.events().zip(rows) {
            check_row(&trace, &event, batch, row);
        }
        let (others, _) = arrow(&trace);
        let columns = |batches: &[RecordBatch]| -> Vec<_> {
            batches.iter().map(|batch| batch.columns().to_vec()).collect()
        };
        prop_assert_eq!(columns(&batches), columns(&others));
    }
}

/// A trace of any length: one task that alternately sleeps and runs.
fn long(events: u64) -> Trace {
    let mut trace = Trace::new(2);
    let task = trace.add_task(TaskInfo::new(7, "hog"));
    for nth in 0..events {
        let (prev, next) = if nth % 2 == 0 { (TaskId::IDLE, task) } else { (task, TaskId::IDLE) };
        let kind = EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
        trace.push(Event { time_ns: 1_000 * nth, cpu: 1, insns: 3, kind });
    }
    trace.end_ns = 1_000 * events;
    trace
}

#[test]
fn row_groups_are_bounded() {
    let trace = long(300_000);
    let (batches, metadata) = parquet(&trace);
    let groups: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [GROUP_ROWS, GROUP_ROWS, 300_000 - 2 * GROUP_ROWS]);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 300_000);
    let (batches, _) = arrow(&trace);
    assert_eq!(batches.len(), 300_000_usize.div_ceil(BATCH_ROWS));
}

#[test]
fn what_was_not_measured_is_null_and_an_idle_cpu_has_no_state() {
    let mut trace = long(2);
    for counts in [false, true] {
        trace.counts_insns = counts;
        let (batches, _) = parquet(&trace);
        let insns = counts.then_some(3);
        assert_eq!(
            (number(&batches[0], "insns", 0), number(&batches[0], "insns", 1)),
            (insns, insns)
        );
        assert_eq!(text(&batches[0], "state", 0), None);
        assert_eq!(text(&batches[0], "state", 1), Some("S"));
    }
}

#[test]
fn the_files_say_what_holds_for_the_whole_trace() {
    let mut trace = long(10);
    trace.loss.lost_events = 4;
    let (_, of_parquet) = parquet(&trace);
    let of_parquet = of_parquet.file_metadata().key_value_metadata().unwrap().clone();
    let of_parquet: BTreeMap<String, String> =
        of_parquet.into_iter().map(|pair| (pair.key, pair.value.unwrap_or_default())).collect();
    let (_, of_arrow) = arrow(&trace);
    for metadata in [of_parquet, of_arrow] {
        let version = EVENTS_SCHEMA_VERSION.to_string();
        for (key, value) in [
            ("schema", "events"),
            ("schema_version", version.as_str()),
            ("cpus", "2"),
            ("end_ns", "10000"),
            ("events", "10"),
            ("lost_events", "4"),
        ] {
            let key = format!("fairground.{key}");
            assert_eq!(metadata.get(&key).map(String::as_str), Some(value), "{key}");
        }
    }
}

/// The table of docs/reference/parquet.md, column by column.
#[test]
fn the_columns_are_the_documented_ones() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/parquet.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split("## Events").nth(1).unwrap().split("| kind |").next().unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let rows = table.lines().filter(|line| line.starts_with("| `")).map(cells);
    let documented: Vec<(String, String)> =
        rows.map(|row| (row[1].clone(), row[2].clone())).collect();
    let (batches, _) = parquet(&long(1));
    let schema = batches[0].schema();
    let found: Vec<(String, String)> = schema
        .fields()
        .iter()
        .map(|field| {
            let null = if field.is_nullable() { ", or null" } else { "" };
            (field.name().clone(), format!("{}{null}", field.data_type()))
        })
        .collect();
    assert_eq!(documented, found);
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let trace = long(1_000);
    let bytes = || {
        let (mut parquet, mut arrow) = (Vec::new(), Vec::new());
        write_parquet(&trace, &mut parquet).unwrap();
        write_arrow(&trace, &mut arrow).unwrap();
        (parquet, arrow)
    };
    assert_eq!(bytes(), bytes());
}

/// A sink that takes nothing more.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_sinks_error_is_what_the_caller_gets() {
    let trace = long(10);
    let kinds = [write_parquet(&trace, Closed), write_arrow(&trace, Closed)]
        .map(|done| done.map_err(|error| error.kind()));
    assert_eq!(kinds, [Err(io::ErrorKind::BrokenPipe); 2]);
}

#[test]
fn an_empty_trace_is_a_table_without_rows() {
    let (batches, metadata) = parquet(&Trace::new(1));
    assert_eq!((batches.len(), metadata.file_metadata().num_rows()), (0, 0));
    assert_eq!(arrow(&Trace::new(1)).0.len(), 0);
}

/// The reader of arrow-rs takes a file as it lies on disk.
#[test]
fn a_file_by_its_name_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    write_parquet(&long(5), File::create(&path).unwrap()).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    assert_eq!(builder.metadata().file_metadata().num_rows(), 5);
}
