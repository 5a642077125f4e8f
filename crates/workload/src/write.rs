//! Writes a workload as the text that [`crate::parse()`] reads.

use std::fmt::Display;

use crate::bandwidth::Bandwidth;
use crate::model::{
    Carrier, Op, PIPE_CAPACITY_DEFAULT, Program, SOCKET_BUFFER_DEFAULT, TaskSpec, Workload,
};
use crate::parse::FORMAT;
use crate::units::{cpus_text, quoted, time_text};
use crate::walk::forked;

/// Columns after which a program is broken into lines.
const LINE_COLUMNS: usize = 100;

/// The workload as a file; parsing it returns an equal workload.
pub fn to_toml(workload: &Workload) -> String {
    let mut text = format!("format = {FORMAT}\n");
    value(&mut text, "name", quoted(&workload.name));
    if !workload.description.is_empty() {
        value(&mut text, "description", quoted(&workload.description));
    }
    value(&mut text, "duration", time_value(workload.duration_ns));
    unusual(&mut text, "recorded", workload.recorded, false);
    unusual(&mut text, "hangs", workload.hangs, false);
    shared_objects(&mut text, workload);
    for cgroup in workload.cgroups.iter().skip(1) {
        text += &format!("\n[cgroups.{}]\n", quoted(&cgroup.path));
        value(&mut text, "weight", cgroup.weight);
        if cgroup.max != Bandwidth::NO_LIMIT {
            value(&mut text, "max", quoted(&cgroup.max.to_string()));
        }
        unusual(&mut text, "idle", cgroup.idle, false);
    }
    for (task, forked) in workload.tasks.iter().zip(forked(workload)) {
        self::task(&mut text, workload, task, forked);
    }
    text
}

fn value(text: &mut String, key: &str, value: impl Display) {
    *text += &format!("{key} = {value}\n");
}

/// A value that is left out where it is the usual one.
fn unusual<T: Display + PartialEq>(text: &mut String, key: &str, given: T, usual: T) {
    if given != usual {
        value(text, key, given);
    }
}

fn head(text: &mut String, kind: &str, name: &str) {
    *text += &format!("\n[[{kind}]]\nname = {}\n", quoted(name));
}

fn time_value(ns: u64) -> String {
    format!("\"{}\"", time_text(ns))
}

fn shared_objects(text: &mut String, workload: &Workload) {
    for pipe in &workload.pipes {
        head(text, "pipe", &pipe.name);
        unusual(text, "socket", pipe.carrier == Carrier::Socket, false);
        let usual = match pipe.carrier {
            Carrier::Pipe => PIPE_CAPACITY_DEFAULT,
            Carrier::Socket => SOCKET_BUFFER_DEFAULT,
        };
        unusual(text, "capacity", pipe.capacity, usual);
    }
    for queue in &workload.queues {
        head(text, "queue", &queue.name);
        if let Some(capacity) = queue.capacity {
            value(text, "capacity", capacity);
        }
        unusual(text, "initial", queue.initial, 0);
        unusual(text, "sync", queue.sync, false);
    }
    for lock in &workload.locks {
        *text += &format!("\n[locks.{}]\n", quoted(&lock.name));
        value(text, "kind", format!("\"{}\"", lock.kind.word()));
        unusual(text, "adaptive", lock.adaptive, true);
        unusual(text, "steal", lock.steal, true);
    }
    for condition in &workload.conditions {
        head(text, "condition", &condition.name);
    }
    for barrier in &workload.barriers {
        head(text, "barrier", &barrier.name);
        value(text, "count", barrier.count);
    }
    for timer in &workload.timers {
        head(text, "timer", &timer.name);
        value(text, "period", time_value(timer.period_ns));
        if timer.relative {
            value(text, "mode", "\"relative\"");
        }
        unusual(text, "shared", timer.shared, false);
    }
}

fn task(text: &mut String, workload: &Workload, task: &TaskSpec, forked: bool) {
    head(text, "task", &task.name);
    unusual(text, "count", task.count, 1);
    if let Some(priority) = task.policy.priority() {
        value(text, "policy", format!("\"{}\"", task.policy.word()));
        value(text, "priority", priority);
    }
    unusual(text, "nice", task.nice, 0);
    if let Some(cpus) = &task.cpus {
        value(text, "cpus", format!("\"{}\"", cpus_text(cpus)));
    }
    if let Some(cgroup) = task.cgroup {
        value(text, "cgroup", quoted(&workload.cgroups[cgroup].path));
    }
    if let Some(start_ns) = task.start_ns
        && (start_ns != 0 || forked)
    {
        value(text, "start", time_value(start_ns));
    }
    for (key, program) in [("program", &task.program), ("on_signal", &task.on_signal)] {
        if key == "program" || !program.is_empty() {
            value(text, key, program_text(workload, program, 0, key.len() + 3));
        }
    }
}

/// A list of operations: on one line when it fits, otherwise one operation per line. `used` columns precede it.
fn program_text(workload: &Workload, program: &Program, depth: usize, used: usize) -> String {
    if program.len() <= LINE_COLUMNS / 4 {
        let ops = program.iter().map(|op| op_text(workload, op, None));
        let line = format!("[{}]", ops.collect::<Vec<_>>().join(", "));
        if used + line.chars().count() <= LINE_COLUMNS {
            return line;
        }
    }
    let mut text = String::from("[\n");
    for op in program {
        text += &"  ".repeat(depth + 1);
        text += &op_text(workload, op, Some(depth + 1));
        text += ",\n";
    }
    text + &"  ".repeat(depth) + "]"
}

/// One operation; `depth` is given where a loop's body may be broken into lines.
fn op_text(workload: &Workload, op: &Op, depth: Option<usize>) -> String {
    match op {
        Op::Loop(times, body) => {
            let body = match depth {
                Some(depth) => program_text(workload, body, depth, 2 * depth + 24),
                None => program_text(workload, body, 0, 0),
            };
            let times = times.map_or(String::new(), |times| format!(", times = {times}"));
            format!("{{ loop = {body}{times} }}")
        }
        op => match (op.word(), op.value_text(workload)) {
            (word, None) => format!("\"{word}\""),
            (word, Some(value)) => format!("{{ {word} = {value} }}"),
        },
    }
}
