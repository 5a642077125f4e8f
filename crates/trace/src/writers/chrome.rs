//! The JSON of Chrome's trace viewer (`about:tracing`, "Trace Event Format"); opens in <https://ui.perfetto.dev> and in
//! <https://www.speedscope.app> too.
//!
//! Two processes: "CPUs", with a thread for each CPU that shows which task it ran, and "tasks", with a thread for each
//! task that shows where it ran; arrows lead from the waker of a task to the task's next slice. The format has no task
//! states: between slices a task sleeps or waits. A slice is drawn when both its ends are known; at the end of the
//! window all open slices end. Marks, and the counters given with the trace, are counters; the rest are instants. Times
//! are µs with three digits, exact.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::view::View;
use crate::{Counter, CounterOf, Event, EventKind, Label, TaskId, TaskState, Trace};

/// Text is written to the sink in blocks of about this size, bytes.
const CHUNK_BYTES: usize = 64 << 10;
const CPUS: u32 = 1;
const TASKS: u32 = 2;

/// Writes a trace with counters as JSON of Chrome's trace viewer.
///
/// # Errors
/// Those of the sink.
pub fn write_chrome(trace: &Trace, counters: &[Counter], mut sink: impl Write) -> io::Result<()> {
    let mut text = Text::new(trace);
    text.head();
    for event in trace.events() {
        text.event(&event);
        text.hand_on(&mut sink)?;
    }
    for cpu in 0..trace.cpus {
        text.end_slice(cpu, trace.end_ns, None);
    }
    for counter in counters {
        for (time_ns, value) in &counter.points {
            text.counter(counter, *time_ns, *value);
            text.hand_on(&mut sink)?;
        }
    }
    text.out.push_str("\n]}\n");
    sink.write_all(text.out.as_bytes())?;
    sink.flush()
}

/// The task that a CPU runs, and since when.
#[derive(Clone, Copy)]
struct Slice {
    task: TaskId,
    from_ns: u64,
}

/// The text so far. Writing to a `String` cannot fail, so the results of `write!` are dropped.
struct Text<'a> {
    view: View<'a>,
    out: String,
    running: Vec<Option<Slice>>,
    /// The number of the arrow that leads to a task's next slice.
    arrows: Vec<Option<u64>>,
    arrows_so_far: u64,
    /// The lock that a task waits for.
    contended: Vec<Option<Label>>,
}

impl<'a> Text<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self {
            view: View::new(trace),
            out: String::with_capacity(2 * CHUNK_BYTES),
            running: vec![None; trace.cpus as usize],
            arrows: vec![None; trace.tasks().len()],
            arrows_so_far: 0,
            contended: vec![None; trace.tasks().len()],
        }
    }

    fn hand_on(&mut self, sink: &mut impl Write) -> io::Result<()> {
        if self.out.len() >= CHUNK_BYTES {
            sink.write_all(self.out.as_bytes())?;
            self.out.clear();
        }
        Ok(())
    }

    fn head(&mut self) {
        self.out.push_str("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        let process = |pid, name| {
            format!(
                "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":0,\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            )
        };
        let _ = write!(self.out, "{},\n{}", process(CPUS, "CPUs"), process(TASKS, "tasks"));
        let trace = self.view.trace;
        for cpu in 0..trace.cpus {
            self.thread(CPUS, cpu, &format!("CPU {cpu}"));
        }
        for (number, task) in trace.tasks().iter().enumerate().skip(1) {
            self.thread(TASKS, number as u32, &format!("{} {}", task.comm, task.pid));
        }
    }

    fn thread(&mut self, pid: u32, tid: u32, name: &str) {
        let _ = write!(
            self.out,
            ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":"
        );
        string(&mut self.out, name);
        self.out.push_str("}}");
    }

    fn event(&mut self, event: &Event) {
        let (cpu, at_ns) = (event.cpu, event.time_ns);
        self.view.note(event);
        let trace = self.view.trace;
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                let known = self.slice(cpu).is_some_and(|slice| slice.task == prev);
                self.end_slice(cpu, at_ns, known.then_some(prev_state));
                if let Some(slice) = self.running.get_mut(cpu as usize) {
                    *slice = Some(Slice { task: next, from_ns: at_ns });
                }
                if let Some(arrow) = self.arrows.get_mut(next.index()).and_then(Option::take) {
                    self.arrow('f', TASKS, next.0, at_ns, arrow);
                }
            }
            EventKind::Waking { task, waker, .. } => {
                self.arrows_so_far += 1;
                let arrow = self.arrows_so_far;
                self.arrows[task.index()] = Some(arrow);
                let (pid, tid) = if waker.is_idle() { (CPUS, cpu) } else { (TASKS, waker.0) };
                self.arrow('s', pid, tid, at_ns, arrow);
            }
            EventKind::Mark { task, label, value } => {
                let name = format!("{} {}", self.view.pid(task), trace.label(label));
                self.value(TASKS, &name, at_ns, value);
            }
            EventKind::Lost { count } => {
                // What ran meanwhile is unknown.
                if let Some(slice) = self.running.get_mut(cpu as usize) {
                    *slice = None;
                }
                self.instant(CPUS, cpu, at_ns, &format!("{count} events lost"));
            }
            EventKind::ContentionBegin { task, lock, .. } => {
                // A second begin: the task still waits, and the owner has changed.
                if self.contended[task.index()].is_none() {
                    self.contended[task.index()] = Some(lock);
                    self.contention('b', task, lock, at_ns);
                }
            }
            EventKind::ContentionEnd { task, .. } => {
                if let Some(lock) = self.contended[task.index()].take() {
                    self.contention('e', task, lock, at_ns);
                }
            }
            _ => self.instant_of(event),
        }
    }

    /// Events without duration and value.
    fn instant_of(&mut self, event: &Event) {
        let (cpu, at_ns) = (event.cpu, event.time_ns);
        let trace = self.view.trace;
        match event.kind {
            EventKind::Migrate { task, from_cpu, to_cpu } => {
                let name = format!("migrated from CPU {from_cpu} to CPU {to_cpu}");
                self.instant(TASKS, task.0, at_ns, &name);
            }
            EventKind::Fork { parent, child } => {
                let name = format!("forked {}", self.view.pid(child));
                self.instant(TASKS, parent.0, at_ns, &name);
            }
            EventKind::Exit { task } => self.instant(TASKS, task.0, at_ns, "exit"),
            EventKind::Tick { .. } => self.instant(CPUS, cpu, at_ns, "tick"),
            EventKind::Callback { .. } | EventKind::Param { .. } | EventKind::Print { .. } => {
                self.instant(CPUS, cpu, at_ns, &event.kind.caption(trace));
            }
            EventKind::Stack { task, .. } | EventKind::CgroupMove { task, .. } => {
                self.instant(TASKS, task.0, at_ns, &event.kind.caption(trace));
            }
            // Arrows and slices show them.
            EventKind::Wakeup { .. } | EventKind::WakeupNew { .. } | EventKind::Charge { .. } => {}
            kind => {
                let (process, thread) = kind.subject().map_or((CPUS, cpu), |task| (TASKS, task.0));
                self.instant(process, thread, at_ns, &kind.caption(trace));
            }
        }
    }

    fn slice(&self, cpu: u32) -> Option<Slice> {
        self.running.get(cpu as usize).copied().flatten()
    }

    /// Ends a CPU's slice; `state` is the state in which the task left, if known. Draws nothing where the running task
    /// is unknown.
    fn end_slice(&mut self, cpu: u32, to_ns: u64, state: Option<TaskState>) {
        let Some(Slice { task, from_ns }) = self.slice(cpu) else { return };
        if task.is_idle() {
            return;
        }
        let comm = &self.view.trace.tasks()[task.index()].comm;
        let pid = self.view.pid(task);
        let (from, length) = (Micros(from_ns), Micros(to_ns.saturating_sub(from_ns)));
        for (process, thread) in [(CPUS, cpu), (TASKS, task.0)] {
            let _ = write!(
                self.out,
                ",\n{{\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{from},\
                 \"dur\":{length},\"cat\":\"sched\",\"name\":"
            );
            match process {
                CPUS => string(&mut self.out, comm),
                _ => {
                    let _ = write!(self.out, "\"CPU {cpu}\"");
                }
            }
            let _ = write!(self.out, ",\"args\":{{\"pid\":{pid},\"cpu\":{cpu}");
            if let Some(state) = state {
                let _ = write!(self.out, ",\"left\":\"{state:?}\"");
            }
            self.out.push_str("}}");
        }
    }

    /// One end of an arrow: `s`, or `f` in the slice that begins there.
    fn arrow(&mut self, end: char, pid: u32, tid: u32, at_ns: u64, number: u64) {
        let at = Micros(at_ns);
        let binding = if end == 'f' { ",\"bp\":\"e\"" } else { "" };
        let _ = write!(
            self.out,
            ",\n{{\"ph\":\"{end}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{at},\
             \"cat\":\"wakeup\",\"name\":\"wakeup\",\"id\":{number}{binding}}}"
        );
    }

    /// Begin or end of a wait for a lock: an event of its own beside the slices, which it may overlap.
    fn contention(&mut self, phase: char, task: TaskId, lock: Label, at_ns: u64) {
        let (at, tid) = (Micros(at_ns), task.0);
        let _ = write!(
            self.out,
            ",\n{{\"ph\":\"{phase}\",\"pid\":{TASKS},\"tid\":{tid},\"id\":{tid},\"ts\":{at},\"cat\":\"lock\",\"name\":"
        );
        string(&mut self.out, self.view.trace.label(lock));
        self.out.push('}');
    }

    fn instant(&mut self, pid: u32, tid: u32, at_ns: u64, name: &str) {
        let at = Micros(at_ns);
        let _ = write!(
            self.out,
            ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{pid},\"tid\":{tid},\"ts\":{at},\"name\":"
        );
        string(&mut self.out, name);
        self.out.push('}');
    }

    fn counter(&mut self, counter: &Counter, at_ns: u64, value: i64) {
        match counter.of {
            CounterOf::Cpu(cpu) => {
                self.value(CPUS, &format!("CPU {cpu} {}", counter.name), at_ns, value)
            }
            CounterOf::Task(task) => {
                let name = format!("{} {}", self.view.pid(task), counter.name);
                self.value(TASKS, &name, at_ns, value);
            }
        }
    }

    fn value(&mut self, pid: u32, name: &str, at_ns: u64, value: impl std::fmt::Display) {
        let at = Micros(at_ns);
        let _ = write!(self.out, ",\n{{\"ph\":\"C\",\"pid\":{pid},\"tid\":0,\"ts\":{at},\"name\":");
        string(&mut self.out, name);
        let _ = write!(self.out, ",\"args\":{{\"value\":{value}}}}}");
    }
}

/// A time in ns, shown as µs with three digits.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text as a string of JSON (RFC 8259, section 7).
fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
