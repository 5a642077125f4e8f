//! The text of ftrace, as the kernel's `trace` file shows it; opens in Perfetto and in everything that reads ftrace
//! text.
//!
//! Reading it back with [`crate::read`] gives the same trace, but for:
//!
//! * instructions ([`Event::insns`], [`Trace::counts_insns`]): the format has no field for them;
//! * what was lost on the way in ([`Trace::loss`]): the reader counts what it finds itself;
//! * with [`Precision::Micros`], the last three digits of each time stamp;
//! * two living tasks with one pid: the lines name pids.
//!
//! Marks (`tracing_mark_write`) and comments of the header hold what the kernel's events cannot express: the
//! window, the origin, the tasks in order with nice value or priority, allowed CPUs and cgroup, the tree of cgroups,
//! the labels. In the lines of events, a name's control characters, `[` and `=` are shown as `?`; the header has the
//! name itself.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::own::{self, plain_name};
use super::view::View;
use crate::escape::{escape, escape_start};
use crate::event::FieldValue;
use crate::{CgroupId, Event, EventKind, Label, TaskId, TaskState, Trace};

/// Digits of the time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Six digits, as the kernel writes; times are rounded down.
    Micros,
    /// Nine digits: nothing is lost.
    #[default]
    Nanos,
}

/// Text is written to the sink in blocks of about this size, bytes.
const CHUNK_BYTES: usize = 64 << 10;

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1_000;

/// Writes a trace as ftrace text with nanoseconds.
///
/// # Errors
/// Those of the sink.
pub fn write_ftrace(trace: &Trace, sink: impl Write) -> io::Result<()> {
    write_ftrace_with(trace, Precision::Nanos, sink)
}

/// Writes a trace as ftrace text.
///
/// # Errors
/// Those of the sink.
pub fn write_ftrace_with(
    trace: &Trace,
    precision: Precision,
    mut sink: impl Write,
) -> io::Result<()> {
    let mut text = Text::new(trace, precision);
    text.header();
    for event in trace.events() {
        text.event(&event);
        if text.out.len() >= CHUNK_BYTES {
            sink.write_all(text.out.as_bytes())?;
            text.out.clear();
        }
    }
    sink.write_all(text.out.as_bytes())?;
    sink.flush()
}

/// The text so far, and the state of tasks and CPUs after the events so far. Writing to a `String` cannot fail, so the
/// results of `write!` are dropped.
struct Text<'a> {
    trace: &'a Trace,
    view: View<'a>,
    precision: Precision,
    out: String,
    names: Vec<String>,
}

impl<'a> Text<'a> {
    fn new(trace: &'a Trace, precision: Precision) -> Self {
        let tasks = trace.tasks();
        Self {
            trace,
            view: View::new(trace),
            precision,
            out: String::with_capacity(2 * CHUNK_BYTES),
            names: tasks.iter().map(|task| plain_name(&task.comm)).collect(),
        }
    }

    fn header(&mut self) {
        let Trace { cpus, .. } = self.trace;
        let events = self.trace.len();
        let out = &mut self.out;
        let _ = write!(
            out,
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: {events}/{events}   #P:{cpus}\n#\n"
        );
        own::header_lines(out, "# fairground: ", self.trace);
        out.push_str(
            "#\n#           TASK-PID     CPU#  FLAGS  TIMESTAMP  FUNCTION\n\
             #              | |         |     |       |         |\n",
        );
    }

    fn event(&mut self, event: &Event) {
        if let EventKind::Lost { count } = event.kind {
            let _ = writeln!(self.out, "CPU:{} [LOST {count} EVENTS]", event.cpu);
        }
        self.columns(event);
        self.view.note(event);
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.switch(event.cpu, prev, prev_state, next);
            }
            EventKind::Waking { task, target_cpu, .. } => {
                self.wake("sched_waking", task, target_cpu);
            }
            EventKind::Wakeup { task, target_cpu } => {
                self.wake("sched_wakeup", task, target_cpu);
            }
            EventKind::WakeupNew { task, target_cpu } => {
                self.wake("sched_wakeup_new", task, target_cpu);
            }
            EventKind::Fork { parent, child } => {
                let (comm, pid) = (self.name(parent), self.pid(parent));
                let (child_comm, child_pid) = (self.name(child), self.pid(child));
                let fields =
                    format!("comm={comm} pid={pid} child_comm={child_comm} child_pid={child_pid}");
                let _ = write!(self.out, "sched_process_fork: {fields}");
            }
            EventKind::Tick { .. } => {
                let now = event.time_ns;
                let _ = write!(
                    self.out,
                    "hrtimer_expire_entry: hrtimer=0000000000000000 function=tick_nohz_handler now={now}"
                );
            }
            EventKind::Charge { task, runtime_ns } => {
                let (comm, pid) = (&self.names[task.index()], self.view.pid(task));
                let _ = write!(
                    self.out,
                    "sched_stat_runtime: comm={comm} pid={pid} runtime={runtime_ns} [ns]"
                );
            }
            EventKind::Print { label } => {
                let text = self.trace.label(label);
                let _ = write!(self.out, "bpf_trace_printk: {}", escape_start(text));
            }
            EventKind::Stack { label, .. } => self.stack(label),
            EventKind::CgroupMove { task, to, .. } => self.cgroup_move(task, to),
            kind => match kind.tracepoint() {
                Some(tracepoint) => self.tracepoint(tracepoint, kind),
                None => self.marked(kind),
            },
        }
        self.out.push('\n');
    }

    /// As the kernel prints it: the called before the caller, a line each.
    fn stack(&mut self, label: Label) {
        self.out.push_str("<stack trace>");
        for function in self.trace.label(label).rsplit(';') {
            let _ = write!(self.out, "\n => {}", escape(function));
        }
    }

    /// The numbers of hierarchy and cgroup are those of the table; the kernel's own are not in the trace.
    fn cgroup_move(&mut self, task: TaskId, to: CgroupId) {
        let path = self.view.cgroup_path(to);
        let plain = path.trim_start_matches('/');
        let level = plain.split('/').filter(|name| !name.is_empty()).count();
        let (id, pid) = (to.0 + 1, self.pid(task));
        let comm = &self.names[task.index()];
        let _ = write!(
            self.out,
            "cgroup_attach_task: dst_root=1 dst_id={id} dst_level={level} dst_path=/{} pid={pid} comm={comm}",
            escape(plain)
        );
    }

    /// An event with the fields of a tracepoint.
    fn tracepoint(&mut self, tracepoint: &str, kind: EventKind) {
        let Self { out, view, trace, names, .. } = self;
        let _ = write!(out, "{tracepoint}:");
        kind.each_field(|_, source, value| {
            let _ = match value {
                FieldValue::Task(task) => {
                    let (comm, pid, prio) = (&names[task.index()], view.pid(task), view.prio(task));
                    write!(out, " {source}comm={comm} {source}pid={pid} {source}prio={prio}")
                }
                value => write!(out, " {source}={}", value.text(trace, |task| view.pid(task))),
            };
        });
    }

    /// Events that the kernel has no tracepoint for.
    fn marked(&mut self, kind: EventKind) {
        self.out.push_str("tracing_mark_write: ");
        own::mark(&mut self.out, &self.view, kind);
    }

    /// `comm-pid [cpu] flags time: `.
    fn columns(&mut self, event: &Event) {
        let running = self.view.running(event);
        let (pid, cpu) = (self.pid(running), event.cpu);
        let name = if running.is_idle() { "<idle>" } else { &self.names[running.index()] };
        let (seconds, rest) = (event.time_ns / NS_PER_S, event.time_ns % NS_PER_S);
        let by_interrupt = matches!(event.kind, EventKind::Waking { waker: TaskId::IDLE, .. });
        let flags = if by_interrupt { "d.h.." } else { "....." };
        let _ = write!(self.out, " {name:>15}-{pid:<7} [{cpu:03}] {flags} ");
        let _ = match self.precision {
            Precision::Micros => write!(self.out, "{seconds:>5}.{:06}: ", rest / NS_PER_US),
            Precision::Nanos => write!(self.out, "{seconds:>5}.{rest:09}: "),
        };
    }

    fn switch(&mut self, cpu: u32, prev: TaskId, prev_state: TaskState, next: TaskId) {
        self.out.push_str("sched_switch: prev_comm=");
        self.name_on(prev, cpu);
        let (pid, prio) = (self.pid(prev), self.prio(prev));
        let state = prev_state.text();
        let _ =
            write!(self.out, " prev_pid={pid} prev_prio={prio} prev_state={state} ==> next_comm=");
        self.name_on(next, cpu);
        let _ = write!(self.out, " next_pid={} next_prio={}", self.pid(next), self.prio(next));
    }

    /// A name; the idle task is called after its CPU.
    fn name_on(&mut self, task: TaskId, cpu: u32) {
        if task.is_idle() {
            let _ = write!(self.out, "swapper/{cpu}");
        } else {
            self.out.push_str(&self.names[task.index()]);
        }
    }

    fn wake(&mut self, event: &str, task: TaskId, target_cpu: u32) {
        self.one_task(event, task);
        let _ = write!(self.out, " target_cpu={target_cpu:03}");
    }

    fn one_task(&mut self, event: &str, task: TaskId) {
        let (pid, prio) = (self.pid(task), self.prio(task));
        let comm = &self.names[task.index()];
        let _ = write!(self.out, "{event}: comm={comm} pid={pid} prio={prio}");
    }

    fn name(&self, task: TaskId) -> &str {
        &self.names[task.index()]
    }

    fn pid(&self, task: TaskId) -> u32 {
        self.view.pid(task)
    }

    fn prio(&self, task: TaskId) -> i32 {
        self.view.prio(task)
    }
}
