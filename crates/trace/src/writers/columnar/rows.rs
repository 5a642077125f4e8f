//! Rows that become columns.

use std::sync::Arc;

use arrow_array::builder::{Int8Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Schema};

use super::row::{Detail, Row};
use crate::{Event, TaskId, Trace};

/// The columns so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    time_ns: UInt64Builder,
    cpu: UInt32Builder,
    kind: StringBuilder,
    task: TaskColumns,
    state: StringBuilder,
    other: TaskColumns,
    from_cpu: UInt32Builder,
    to_cpu: UInt32Builder,
    label: StringBuilder,
    detail: StringBuilder,
    value: UInt64Builder,
    nice: Int8Builder,
    insns: UInt32Builder,
    prio: Int8Builder,
}

/// A task's number in the trace, its pid, and its name.
#[derive(Debug, Default)]
struct TaskColumns {
    task: UInt32Builder,
    pid: UInt32Builder,
    comm: StringBuilder,
}

impl TaskColumns {
    fn push(&mut self, trace: &Trace, task: Option<TaskId>) {
        let info = task.and_then(|task| trace.tasks().get(task.index()));
        self.task.append_option(task.map(|task| task.0));
        self.pid.append_option(info.map(|info| info.pid));
        self.comm.append_option(info.map(|info| info.comm.as_str()));
    }

    fn finish(mut self) -> [ArrayRef; 3] {
        [Arc::new(self.task.finish()), Arc::new(self.pid.finish()), Arc::new(self.comm.finish())]
    }
}

impl Rows {
    pub(super) fn push(&mut self, trace: &Trace, event: &Event) {
        let row = Row::of(trace, event);
        self.time_ns.append_value(event.time_ns);
        self.cpu.append_value(event.cpu);
        self.kind.append_value(row.kind);
        self.task.push(trace, row.task);
        self.state.append_option(row.state);
        self.other.push(trace, row.other);
        self.from_cpu.append_option(row.from_cpu);
        self.to_cpu.append_option(row.to_cpu);
        self.label.append_option(row.label);
        match row.detail {
            Some(Detail::Path(path)) => self.detail.append_value(path),
            Some(Detail::Flags(flags)) => self.detail.append_value(flags.text()),
            None => self.detail.append_null(),
        }
        self.value.append_option(row.value);
        self.nice.append_option(row.nice);
        self.insns.append_option(Some(event.insns).filter(|_| trace.counts_insns));
        self.prio.append_option(row.prio.map(|prio| prio.prio() as i8));
    }

    /// In the order of the schema.
    pub(super) fn into_batch(mut self, schema: &Arc<Schema>) -> Result<RecordBatch, ArrowError> {
        let [task, pid, comm] = self.task.finish();
        let [other_task, other_pid, other_comm] = self.other.finish();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.time_ns.finish()),
            Arc::new(self.cpu.finish()),
            Arc::new(self.kind.finish()),
            task,
            pid,
            comm,
            Arc::new(self.state.finish()),
            other_task,
            other_pid,
            other_comm,
            Arc::new(self.from_cpu.finish()),
            Arc::new(self.to_cpu.finish()),
            Arc::new(self.label.finish()),
            Arc::new(self.detail.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.nice.finish()),
            Arc::new(self.insns.finish()),
            Arc::new(self.prio.finish()),
        ];
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}
