//! The text of a file: objects with one member per line.

use crate::policy::SchedPolicy;
use crate::units::{CpuList, quoted};

/// A member of an object: its key, and its value as text.
pub(super) type Pair = (String, String);

/// A thread that is ready to be written.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) name: String,
    /// Its settings, `loop` included.
    pub(super) head: Vec<Pair>,
    /// Its events, if it has no phases.
    pub(super) events: Vec<Pair>,
    pub(super) phases: Vec<Vec<Pair>>,
}

/// CPUs, each by its number.
pub(super) fn number_list(cpus: &CpuList) -> String {
    let numbers = cpus.0.iter().flat_map(|&(first, last)| first..=last);
    format!("[ {} ]", numbers.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(", "))
}

/// The name of a policy.
pub(super) fn policy_text(policy: SchedPolicy) -> String {
    quoted(match policy {
        SchedPolicy::Other => "SCHED_OTHER",
        SchedPolicy::Fifo(_) => "SCHED_FIFO",
        SchedPolicy::Rr(_) => "SCHED_RR",
    })
}

/// A number of iterations as rt-app writes it.
pub(super) fn iterations_text(iterations: Option<u64>) -> String {
    iterations.map_or("-1".to_owned(), |iterations| iterations.min(i32::MAX as u64).to_string())
}

/// The whole file.
pub(super) fn file(threads: &[Thread], global: &[Pair]) -> String {
    let tasks = threads.iter().map(|thread| (thread.name.clone(), self::thread(thread)));
    let tasks = object(&tasks.collect::<Vec<_>>(), 1);
    object(&[("tasks".to_owned(), tasks), ("global".to_owned(), object(global, 1))], 0) + "\n"
}

fn thread(thread: &Thread) -> String {
    let mut members = thread.head.clone();
    members.extend(thread.events.iter().cloned());
    if !thread.phases.is_empty() {
        let phases = thread.phases.iter().enumerate();
        let phases = phases.map(|(number, phase)| (format!("phase{number}"), object(phase, 4)));
        members.push(("phases".to_owned(), object(&phases.collect::<Vec<_>>(), 3)));
    }
    object(&members, 2)
}

fn object(members: &[Pair], depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let lines: Vec<String> =
        members.iter().map(|(key, value)| format!("{indent}{} : {value}", quoted(key))).collect();
    format!("{{\n{}\n{}}}", lines.join(",\n"), "  ".repeat(depth))
}
