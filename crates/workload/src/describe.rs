//! A workload in words.

use crate::cgroups::Cgroup;
use crate::model::{Op, Program, TaskSpec, Workload};
use crate::operations::operand::counted;
use crate::units::{cpus_text, time_text};

/// Operations of a program that a summary lists; the rest is counted.
const OPERATIONS_SHOWN_MAX: usize = 8;

/// A summary: the workload on the first line, then a line for each group.
pub fn describe(workload: &Workload) -> Vec<String> {
    let tasks: u64 = workload.tasks.iter().map(|task| u64::from(task.count)).sum();
    let mut first = format!(
        "{}: {} in {} for {}",
        workload.name,
        counted(tasks, "task"),
        counted(workload.tasks.len() as u64, "group"),
        time_text(workload.duration_ns)
    );
    if !workload.description.is_empty() {
        first.push_str(&format!(" ({})", workload.description));
    }
    let groups = workload.tasks.iter().map(|task| {
        let mut line = format!("  {} × {}", task.count, task.name);
        let settings = settings(workload, task);
        if !settings.is_empty() {
            line.push_str(&format!(" ({})", settings.join(", ")));
        }
        line.push_str(&format!(": {}", program_words(workload, &task.program)));
        if !task.on_signal.is_empty() {
            line.push_str(&format!("; on a signal: {}", program_words(workload, &task.on_signal)));
        }
        line
    });
    let cgroups = workload
        .cgroups
        .iter()
        .skip(1)
        .map(|cgroup| format!("  cgroup {} ({})", cgroup.path, cgroup_words(cgroup)));
    std::iter::once(first).chain(cgroups).chain(groups).collect()
}

fn cgroup_words(cgroup: &Cgroup) -> String {
    let mut words = format!("weight {}", cgroup.weight);
    if cgroup.max.is_limited() {
        words.push_str(&format!(", at most {}", cgroup.max));
    }
    if cgroup.idle {
        words.push_str(", idle");
    }
    words
}

fn settings(workload: &Workload, task: &TaskSpec) -> Vec<String> {
    let mut settings = Vec::new();
    if task.policy.priority().is_some() {
        settings.push(task.policy.to_string());
    }
    if task.nice != 0 {
        settings.push(format!("nice {}", task.nice));
    }
    if let Some(cpus) = &task.cpus {
        settings.push(format!("CPUs {}", cpus_text(cpus)));
    }
    if let Some(cgroup) = task.cgroup {
        settings.push(format!("cgroup {}", workload.cgroups[cgroup].path));
    }
    match task.start_ns {
        None => settings.push("forked".to_owned()),
        Some(0) => {}
        Some(ns) => settings.push(format!("from {}", time_text(ns))),
    }
    settings
}

fn program_words(workload: &Workload, program: &Program) -> String {
    let shown = program.iter().take(OPERATIONS_SHOWN_MAX).map(|op| op_words(workload, op));
    let mut words = shown.collect::<Vec<_>>().join(", ");
    if program.len() > OPERATIONS_SHOWN_MAX {
        let rest = program.len() - OPERATIONS_SHOWN_MAX;
        words.push_str(&format!(" … and {}", counted(rest as u64, "more operation")));
    }
    words
}

fn op_words(workload: &Workload, op: &Op) -> String {
    match op {
        Op::Loop(None, body) => format!("for ever {{ {} }}", program_words(workload, body)),
        Op::Loop(Some(times), body) => {
            format!("{times} times {{ {} }}", program_words(workload, body))
        }
        op => op.words(workload).unwrap_or_default(),
    }
}
