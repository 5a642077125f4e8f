//! Output of the scheduler.

use std::fmt;

/// A line that the scheduler printed (`bpf_printk`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedLine {
    /// When, ns of simulated time.
    pub time_ns: u64,
    /// The CPU that executed the call.
    pub cpu: u32,
    /// The line.
    pub text: String,
}

impl fmt::Display for PrintedLine {
    /// As in `trace_pipe`: the CPU, the time in seconds, the line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.time_ns / 1_000;
        write!(f, "[{:03}] {}.{:06}: {}", self.cpu, us / 1_000_000, us % 1_000_000, self.text)
    }
}

/// The first lines that the scheduler has printed.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Vec<PrintedLine>,
    lines_max: usize,
}

impl Log {
    /// Keeps so many lines.
    pub(crate) fn new(lines_max: usize) -> Log {
        Log { lines: Vec::new(), lines_max }
    }

    /// Keeps a line, if there is room. False: it is dropped.
    pub(crate) fn push(&mut self, time_ns: u64, cpu: u32, line: &str) -> bool {
        let has_room = self.lines.len() < self.lines_max;
        if has_room {
            self.lines.push(PrintedLine { time_ns, cpu, text: line.to_owned() });
        }
        has_room
    }

    /// The lines that were kept.
    pub(crate) fn lines(&self) -> &[PrintedLine] {
        &self.lines
    }

    /// The lines that were kept, for good.
    pub(crate) fn into_lines(self) -> Vec<PrintedLine> {
        self.lines
    }
}
