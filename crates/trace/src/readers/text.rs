//! Recordings as text: `perf sched script`, `perf script`, ftrace and `trace-cmd report`.
//!
//! In all of them a line is one event, with the kernel's fields; the columns before the event differ. One reader parses
//! them all, and decides line by line.

use std::io::BufRead;

use super::collect::Collector;
use super::error::ReadError;
use super::header::{self, Remark};
use super::interner::Named;
use super::lines::{self, End, Lines};
use super::stack_text::{Frame, StackText};
use super::stated::Tasks;
use super::{fields, line};
use crate::Trace;

/// The event whose frames follow.
const STACK: &str = "kernel_stack";

/// Reads a text.
pub(super) fn read(name: &str, input: impl BufRead) -> Result<Trace, ReadError> {
    let mut lines = Lines::new(input);
    let mut collector = Collector::new(None);
    let mut stack = StackText::default();
    loop {
        match lines.next() {
            Ok(Some((bytes, end))) => {
                collector.read += 1;
                collector.position = ("line", collector.read);
                take_line(&mut collector, &mut stack, bytes, end);
            }
            Ok(None) => break,
            Err(source) if collector.is_empty() => {
                return Err(ReadError::Io { name: name.to_owned(), source });
            }
            Err(e) => {
                let read = collector.read;
                collector.truncated(|| format!("after line {read}: the input failed: {e}"));
                break;
            }
        }
    }
    stack.end(&mut collector);
    if collector.read == 0 {
        return Err(ReadError::Empty { name: name.to_owned() });
    }
    collector.finish(name)
}

fn take_line(collector: &mut Collector, stack: &mut StackText, bytes: &[u8], end: End) {
    let text = String::from_utf8_lossy(bytes);
    match end {
        End::Newline => take_text(collector, stack, &text),
        End::TooLong => {
            let why = format!("longer than {} bytes", lines::LINE_BYTES_MAX);
            collector.unreadable_text(&why, &text);
        }
        End::Input => {
            collector.trace().loss.truncated = true;
            collector.first(|| {
                "the last line has no end, and was left out: the input is cut off".into()
            });
        }
    }
}

fn take_text(collector: &mut Collector, stack: &mut StackText, text: &str) {
    // Old systrace pages have the text as a string of JavaScript, over many lines.
    let text = text.strip_suffix("\\n\\").unwrap_or(text);
    let (source, text) = line::split_source(text);
    if !collector.reads_source(source, text) {
        return;
    }
    if let Some(remark) = header::remark(text) {
        stack.end(collector);
        return take_remark(collector, remark);
    }
    // An event first: its task may be called like an address.
    let line = match line::parse(text) {
        Ok(line) => line,
        Err(why) => match stack.take(text) {
            Frame::Taken => return,
            Frame::Orphan => return take_remark(collector, Remark::OtherRecord),
            Frame::None => {
                stack.end(collector);
                return collector.unreadable_text(why, text);
            }
        },
    };
    stack.end(collector);
    let running = line.pid.map(|pid| Named { pid, comm: line.comm, prio: None });
    let in_interrupt = line.in_interrupt;
    let mut tasks = Tasks { interner: &mut collector.interner, running, in_interrupt };
    let Some(stated) = fields::parse(line.event, line.fields, &mut tasks) else {
        return collector.unreadable_text(&format!("{} without its fields", line.event), text);
    };
    stack.begin(&line);
    if line.event != STACK {
        collector.add(line.cpu, line.time_ns, stated);
    }
}

fn take_remark(collector: &mut Collector, remark: Remark) {
    match remark {
        Remark::Nothing => {}
        Remark::OtherRecord => collector.trace().loss.skipped += 1,
        Remark::Cpus(cpus) => collector.trace().cpus = cpus,
        Remark::Entries { overwritten, cpus } => {
            let trace = collector.trace();
            trace.cpus = cpus.unwrap_or(trace.cpus);
            collector.overwritten(overwritten);
        }
        Remark::Lost { cpu, count } => collector.lost(cpu, count),
        Remark::Window { start_ns, end_ns } => collector.window = Some((start_ns, end_ns)),
        Remark::Task(info) => collector.listed.push(info),
        Remark::Origin { key, value } => collector.origin(&key, &value),
        Remark::Cgroup(info) => collector.cgroup(info),
        Remark::Label(text) => {
            collector.trace().intern(&text);
        }
    }
}
