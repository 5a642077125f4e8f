//! Recordings as text: `perf sched script`, `perf script`, ftrace, `trace-cmd report`, simpleperf and babeltrace.
//!
//! In all of them a line is one event, with the kernel's fields; the columns before the event differ. One reader parses
//! them all, and decides line by line.

use std::io::BufRead;

use super::babeltrace::LttngText;
use super::collect::Collector;
use super::differences::{Clock, Offer};
use super::error::{Machines, ReadError};
use super::expand::Expands;
use super::header::{self, Remark};
use super::interner::Named;
use super::lines::{self, End, Lines};
use super::page::Page;
use super::prefix;
use super::reports::Reports;
use super::simpleperf::{Sample, SampleText};
use super::stack_text::{Frame, StackText};
use super::stated::Tasks;
use super::{babeltrace, fields, line, no_machine};
use crate::Trace;

/// The event whose frames follow.
const STACK: &str = "kernel_stack";

/// The events that decide what a CPU runs and which tasks wait.
const SCHEDULING: [&str; 7] = [
    SWITCH,
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exit",
];
const SWITCH: &str = "sched_switch";

/// The state of reading a text.
#[derive(Debug, Default)]
struct State {
    stack: StackText,
    sample: SampleText,
    lttng: LttngText,
    clock: Clock,
    page: Page,
    reports: Reports,
    /// The present line stands behind the stamp of a console or logger, which other programs write to, too.
    is_logged: bool,
}

/// Reads a text, or the lines of one of its files.
pub(super) fn read(
    name: &str,
    input: impl BufRead,
    machine: Option<&str>,
) -> Result<Trace, ReadError> {
    let mut lines = Lines::new(input);
    let mut collector = Collector::new(None);
    collector.chosen_file = machine.map(str::to_owned);
    let mut state = State::default();
    loop {
        match lines.next() {
            Ok(Some((bytes, end))) => {
                collector.read += 1;
                collector.position = ("line", collector.read);
                take_line(&mut collector, &mut state, bytes, end);
            }
            Ok(None) => break,
            Err(e) if Expands::is_cause(&e) => return Err(Expands::refuse(name)),
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
    release(&mut collector, &mut state);
    end(&mut collector, &mut state);
    if collector.read == 0 {
        return Err(ReadError::Empty { name: name.to_owned() });
    }
    if let Some(machine) = machine.filter(|machine| !collector.files.iter().any(|f| f == machine)) {
        return Err(no_machine(name, machine, Machines(collector.files)));
    }
    match collector.finish(name) {
        Err(ReadError::NoEvents { .. }) if let Some(report) = state.reports.found => {
            Err(report.refuse(name))
        }
        done => done,
    }
}

fn take_line(collector: &mut Collector, state: &mut State, bytes: &[u8], end: End) {
    // Checking a text is much faster than looking for what to replace in it.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes),
    };
    match end {
        End::Newline => take_text(collector, state, &text),
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

fn take_text(collector: &mut Collector, state: &mut State, text: &str) {
    match state.clock.offer(collector.position.1, text) {
        Offer::Take => take_dated(collector, state, text),
        Offer::Hold => {}
        Offer::Release => release(collector, state),
    }
}

/// Takes the lines that were held until it was known how they count time.
fn release(collector: &mut Collector, state: &mut State) {
    let (unit, number) = collector.position;
    for (number, text) in state.clock.release() {
        collector.position = (unit, number);
        take_dated(collector, state, &text);
    }
    collector.position = (unit, number);
}

fn take_dated(collector: &mut Collector, state: &mut State, text: &str) {
    if babeltrace::is_event(text) {
        return state.lttng.take(collector, text);
    }
    let behind = prefix::strip(text);
    state.is_logged = behind.is_some();
    let text = behind.unwrap_or(text);
    if collector.is_empty() {
        state.reports.look(text);
    }
    if let Some(count) = babeltrace::discarded(text) {
        collector.lost_somewhere(count);
        return collector.first(|| format!("the tracer discarded {count} events"));
    }
    let is_around = state.page.is_around(collector.position.1, text);
    // Old systrace pages have the text as a string of JavaScript, over many lines.
    let text = text.strip_suffix("\\n\\").unwrap_or(text);
    let (source, text) = line::split_source(text);
    if !collector.reads_source(source, text) {
        return end(collector, state);
    }
    if state.sample.take(text) {
        return;
    }
    if let Some(remark) = header::remark(text) {
        end(collector, state);
        return take_remark(collector, remark);
    }
    // An event first: its task may be called like an address.
    let line = match line::parse(text) {
        Ok(line) => line,
        Err(why) => match state.stack.take(text) {
            Frame::Taken => return,
            Frame::Orphan => return take_remark(collector, Remark::OtherRecord),
            Frame::None => {
                end(collector, state);
                let is_event = SCHEDULING.iter().any(|event| text.contains(event));
                if is_around || (state.is_logged && !is_event) {
                    return take_remark(collector, Remark::OtherRecord);
                }
                collector.unreadable_text(why, text);
                if is_event {
                    // Of which CPU it is, is not known.
                    collector.lost_somewhere(1);
                }
                return;
            }
        },
    };
    end(collector, state);
    let time_ns = state.clock.time_ns(line.time_ns);
    if state.sample.hold(collector.position.1, time_ns, &line) {
        return state.stack.begin(&line);
    }
    let running = line.pid.map(|pid| Named { pid, comm: line.comm, prio: None });
    let in_interrupt = line.in_interrupt;
    let mut tasks = Tasks { interner: &mut collector.interner, running, in_interrupt };
    let Some(stated) = fields::parse(line.event, line.fields, &mut tasks) else {
        collector.unreadable_text(&format!("{} without its fields", line.event), text);
        return miss(collector, line.event, line.cpu);
    };
    state.stack.begin(&line);
    if line.event != STACK {
        collector.add(line.cpu, time_ns, stated);
    }
}

/// Counts an event that could not be read as missing. Behind a switch it is not known what its CPU runs.
fn miss(collector: &mut Collector, event: &str, cpu: u32) {
    match event {
        SWITCH => collector.lost(cpu, 1),
        _ if SCHEDULING.contains(&event) => collector.lost_somewhere(1),
        _ => {}
    }
}

/// Ends the event of the lines before: its fields, then its stack.
fn end(collector: &mut Collector, state: &mut State) {
    if let Some(sample) = state.sample.end() {
        take_sample(collector, &sample);
    }
    state.stack.end(collector);
}

fn take_sample(collector: &mut Collector, sample: &Sample) {
    let here = collector.position;
    collector.position.1 = sample.at;
    let running = sample.pid.map(|pid| Named { pid, comm: &sample.comm, prio: None });
    let in_interrupt = sample.in_interrupt;
    let mut tasks = Tasks { interner: &mut collector.interner, running, in_interrupt };
    match fields::parse(&sample.event, &sample.fields, &mut tasks) {
        Some(stated) => collector.add(sample.cpu, sample.time_ns, stated),
        None => {
            collector.unreadable(&format!(
                "{} without its fields (print with `perf script`, or `report_sample.py \
                 --show_tracing_data` of simpleperf)",
                sample.event
            ));
            miss(collector, &sample.event, sample.cpu);
        }
    }
    collector.position = here;
}

/// Takes over what a line that is no event says.
pub(super) fn take_remark(collector: &mut Collector, remark: Remark) {
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
        Remark::Order { time_ns, runs } => collector.order.state(time_ns, runs),
        Remark::Task(info) => collector.listed.push(info),
        Remark::Origin { key, value } => collector.origin(&key, &value),
        Remark::Cgroup(info) => collector.cgroup(info),
        Remark::Label(text) => {
            collector.trace().intern(&text);
        }
    }
}
