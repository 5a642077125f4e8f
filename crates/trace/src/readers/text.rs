//! Recordings as text: `perf sched script`, `perf script`, ftrace and `trace-cmd report`.
//!
//! The texts are relatives: a line is one event, the columns before the event differ a little, the fields are the
//! kernel's own. One reader takes them all, line by line, and decides per line.

use std::io::BufRead;

use super::ReadError;
use super::collect::{Collector, InputPosition};
use super::header::{self, Remark};
use super::lines::{self, End, Lines};
use super::stack_text::{Frame, StackText};
use super::{fields, line};
use crate::Trace;

/// The event whose frames follow.
const STACK: &str = "kernel_stack";

/// Reads a text.
pub(super) fn read(name: &str, input: impl BufRead) -> Result<Trace, ReadError> {
    let mut lines = Lines::new(input);
    let mut collector = Collector::new(None);
    let mut stack = StackText::default();
    let mut read: u64 = 0;
    loop {
        match lines.next() {
            Ok(Some((bytes, end))) => {
                read += 1;
                collector.position = InputPosition::Line(read);
                take_line(&mut collector, &mut stack, bytes, end);
            }
            Ok(None) => break,
            Err(source) if collector.is_empty() => {
                return Err(ReadError::Io { name: name.to_owned(), source });
            }
            Err(e) => {
                collector.truncated(|| format!("after line {read}: the input failed: {e}"));
                break;
            }
        }
    }
    stack.end(&mut collector);
    if read == 0 {
        return Err(ReadError::Empty { name: name.to_owned() });
    }
    collector.finish(name, read, "lines")
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
    if let Some(remark) = header::remark(text) {
        stack.end(collector);
        return take_remark(collector, remark);
    }
    // An event first: its task may be called like an address.
    let line = match line::parse(text) {
        Ok(line) => line,
        Err(why) => match stack.take(text) {
            Frame::Taken => return,
            Frame::OfNobody => return take_remark(collector, Remark::OtherRecord),
            Frame::None => {
                stack.end(collector);
                return collector.unreadable_text(why, text);
            }
        },
    };
    stack.end(collector);
    let Some(event) = fields::parse(line.event, line.fields) else {
        return collector.unreadable_text(&format!("{} without its fields", line.event), text);
    };
    stack.begin(&line);
    if line.event == STACK {
        return;
    }
    let running = line.pid.map(|pid| (pid, line.comm));
    collector.event(line.cpu, line.time_ns, event, running);
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
        Remark::Cgroup(info) => collector.cgroup(info),
        Remark::Label(text) => {
            collector.trace().intern(&text);
        }
    }
}
