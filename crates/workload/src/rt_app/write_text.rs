//! The text of a file: objects with one member per line.

use super::write::{Pair, Thread};
use crate::model::CpuList;

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// CPUs, each by its number.
pub(super) fn number_list(cpus: &CpuList) -> String {
    let numbers = cpus.0.iter().flat_map(|&(first, last)| first..=last);
    format!("[ {} ]", numbers.map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(", "))
}

/// The whole file.
pub(super) fn file(threads: &[Thread], global: &[Pair]) -> String {
    let tasks = threads.iter().map(|thread| (thread.name.clone(), self::thread(thread)));
    let members = [
        ("tasks".to_owned(), object(&tasks.collect::<Vec<_>>(), 1)),
        ("global".to_owned(), object(global, 1)),
    ];
    object(&members, 0) + "\n"
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
