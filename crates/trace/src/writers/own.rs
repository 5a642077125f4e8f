//! What the kernel's events cannot express, in the forms of ftrace that the project reads back: lines about the whole
//! recording, and marks (`tracing_mark_write`) for single events.

use std::fmt::Write as _;

use super::view::View;
use crate::escape::escape;
use crate::event::mark_key;
use crate::start_state::{cgroup_line, task_line};
use crate::{EventKind, Trace};

/// Writes the lines about the whole recording, each behind `prefix`: the window, the origin, the tasks in order, the
/// tree of cgroups, the labels.
pub(super) fn header_lines(out: &mut String, prefix: &str, trace: &Trace) {
    let Trace { cpus, start_ns, end_ns, .. } = trace;
    let _ = writeln!(out, "{prefix}cpus {cpus}");
    let _ = writeln!(out, "{prefix}window start_ns={start_ns} end_ns={end_ns}");
    for (key, value) in trace.origin.lines() {
        let _ = writeln!(out, "{prefix}origin {key} {}", escape(&value));
    }
    for task in trace.tasks() {
        task_line(out, prefix, task);
    }
    for cgroup in trace.cgroups() {
        cgroup_line(out, prefix, cgroup);
    }
    for label in trace.labels() {
        let _ = writeln!(out, "{prefix}label {}", escape(label));
    }
}

/// Writes the text of the mark that stands for an event without a tracepoint.
pub(super) fn mark(out: &mut String, view: &View<'_>, kind: EventKind) {
    if let EventKind::Mark { task, label, value } = kind {
        let _ = write!(out, "C|{}|{}|{value}", view.pid(task), escape(view.trace.label(label)));
        return;
    }
    let _ = write!(out, "fairground:{}", kind.mark().unwrap_or(kind.name()));
    if kind.mark().is_some() {
        kind.each_field(|field, _, value| {
            let text = value.text(view.trace, |task| view.pid(task));
            let _ = match mark_key(field, value.role()) {
                Some(key) => write!(out, " {key}={text}"),
                None => write!(out, " {text}"),
            };
        });
    }
}

/// A name as lines of text show it: control characters, `[` and `=` as `?`.
pub(super) fn plain_name(comm: &str) -> String {
    comm.chars().map(|c| if c.is_control() || matches!(c, '[' | '=') { '?' } else { c }).collect()
}
