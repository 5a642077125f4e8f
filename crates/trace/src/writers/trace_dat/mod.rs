//! `trace.dat`, the file of trace-cmd and KernelShark: version 6, which is not compressed (`trace-cmd.dat.v6(5)`).
//!
//! Names have as much room as the longest one needs. What the kernel's events cannot express stands in marks, and in
//! an option with the state of the recording, as the header of ftrace text has it; other programs skip it.
//!
//! The pages have no order of events of different CPUs at one time: where it is not that of the CPUs, the state has it.
//!
//! Reading it back with [`crate::read`] gives the same trace, but for what ftrace text loses too.

mod formats;
mod pages;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use formats::Value;
use pages::{CpuPages, HEAD_BYTES};

use super::own::{self, plain_name};
use super::view::View;
use crate::escape::{escape, escape_start};
use crate::{CgroupId, Event, EventKind, Label, StartState, TaskId, Trace};

/// Bytes of a task's name at least, as in the kernel (`TASK_COMM_LEN`), and at most.
const COMM_BYTES: std::ops::RangeInclusive<usize> = 16..=256;
/// Bytes of an event beyond its names and its text, at most.
const FIXED_BYTES_MAX: usize = 256;
/// `TRACE_FLAG_HARDIRQ` in the common flags.
const IN_INTERRUPT: u8 = 0x08;
/// The addresses of functions in the table of symbols: of the tick, of marks, and from there on those of stacks.
const TICK_AT: u64 = 0xffff_ffff_8100_0000;
const MARK_AT: u64 = TICK_AT + FUNCTION_BYTES;
const FUNCTION_BYTES: u64 = 64;
const OPTION_TRACECLOCK: u16 = 4;
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
    \tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";

/// Writes a trace as `trace.dat`.
///
/// # Errors
/// Those of the sink.
pub fn write_trace_dat(trace: &Trace, mut sink: impl Write) -> io::Result<()> {
    let mut file = File::new(trace);
    for event in trace.events() {
        file.event(&event);
        file.orders.note(&event);
    }
    file.orders.end_time();
    sink.write_all(&file.head())?;
    for cpu in std::mem::take(&mut file.cpus) {
        sink.write_all(&cpu.finish(file.page_bytes))?;
    }
    sink.flush()
}

/// The events so far.
struct File<'a> {
    view: View<'a>,
    names: Vec<String>,
    comm_bytes: usize,
    page_bytes: usize,
    cpus: Vec<CpuPages>,
    /// The addresses of functions in stacks.
    functions: BTreeMap<String, u64>,
    orders: Orders,
}

/// The order of events of different CPUs at one time, where it is not that of the CPUs.
#[derive(Default)]
struct Orders {
    time_ns: u64,
    /// CPUs with the number of their events, at that time.
    runs: Vec<(u32, u32)>,
    /// Lines of the state.
    lines: String,
}

impl Orders {
    fn note(&mut self, event: &Event) {
        if event.time_ns != self.time_ns {
            self.end_time();
            self.time_ns = event.time_ns;
        }
        match self.runs.last_mut() {
            Some((cpu, count)) if *cpu == event.cpu => *count += 1,
            _ => self.runs.push((event.cpu, 1)),
        }
    }

    fn end_time(&mut self) {
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_sorted() {
            let run = |(cpu, count)| match count {
                1 => format!("{cpu}"),
                count => format!("{cpu}*{count}"),
            };
            let cpus: Vec<String> = runs.into_iter().map(run).collect();
            let (time_ns, cpus) = (self.time_ns, cpus.join(","));
            let _ = writeln!(self.lines, "order time_ns={time_ns} cpus={cpus}");
        }
    }
}

impl<'a> File<'a> {
    fn new(trace: &'a Trace) -> Self {
        let names: Vec<String> = trace.tasks().iter().map(|task| plain_name(&task.comm)).collect();
        let longest = names.iter().map(|name| name.len() + 1).max().unwrap_or(0);
        let comm_bytes = longest.next_multiple_of(8).clamp(*COMM_BYTES.start(), *COMM_BYTES.end());
        let texts = trace.labels().iter().map(|label| label.len());
        let paths = trace.cgroups().iter().map(|cgroup| cgroup.path.len());
        let text_bytes = texts.chain(paths).max().unwrap_or(0);
        // Escaped, a character takes three bytes; of a stack, eight.
        let event_bytes = FIXED_BYTES_MAX + 2 * comm_bytes + 8 * text_bytes;
        Self {
            view: View::new(trace),
            names,
            comm_bytes,
            page_bytes: pages::page_bytes_for(event_bytes),
            cpus: vec![CpuPages::default(); trace.cpus as usize],
            functions: BTreeMap::new(),
            orders: Orders::default(),
        }
    }

    fn event(&mut self, event: &Event) {
        let view = &self.view;
        let pid = |task: TaskId| Value::Number(view.pid(task).into());
        let prio = |task: TaskId| Value::Number(view.prio(task) as u64);
        let comm = |task: TaskId| Value::Text(&self.names[task.index()]);
        let number = |number: u32| Value::Number(number.into());
        let woken = |task, cpu| vec![comm(task), pid(task), prio(task), number(cpu)];
        let idle = format!("swapper/{}", event.cpu);
        let on_cpu = |task: TaskId| if task.is_idle() { Value::Text(&idle) } else { comm(task) };
        let (name, values) = match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                let state = Value::Number(formats::state_bits(prev_state));
                let (prev, next) =
                    ([on_cpu(prev), pid(prev), prio(prev)], [on_cpu(next), pid(next), prio(next)]);
                ("sched_switch", [&prev[..], &[state], &next].concat())
            }
            EventKind::Waking { task, target_cpu, .. } => ("sched_waking", woken(task, target_cpu)),
            EventKind::Wakeup { task, target_cpu } => ("sched_wakeup", woken(task, target_cpu)),
            EventKind::WakeupNew { task, target_cpu } => {
                ("sched_wakeup_new", woken(task, target_cpu))
            }
            EventKind::Migrate { task, from_cpu, to_cpu } => (
                "sched_migrate_task",
                vec![comm(task), pid(task), prio(task), number(from_cpu), number(to_cpu)],
            ),
            EventKind::Fork { parent, child } => {
                ("sched_process_fork", vec![comm(parent), pid(parent), comm(child), pid(child)])
            }
            EventKind::Exit { task } => {
                ("sched_process_exit", vec![comm(task), pid(task), prio(task)])
            }
            EventKind::Charge { task, runtime_ns } => {
                ("sched_stat_runtime", vec![comm(task), pid(task), Value::Number(runtime_ns)])
            }
            EventKind::Tick { .. } => {
                let values = [0, event.time_ns, TICK_AT];
                ("hrtimer_expire_entry", values.map(Value::Number).to_vec())
            }
            _ => return self.text(event),
        };
        let flags = match event.kind {
            EventKind::Waking { waker: TaskId::IDLE, .. } => IN_INTERRUPT,
            _ => 0,
        };
        let data = self.bytes(name, event, flags, &values);
        self.push(event, &data);
    }

    /// An event with a text.
    fn text(&mut self, event: &Event) {
        let data = match event.kind {
            EventKind::Print { label } => {
                let text = escape_start(self.view.trace.label(label));
                self.bytes("bpf_trace_printk", event, 0, &[Value::Text(&text)])
            }
            EventKind::Stack { label, .. } => self.stack(event, label),
            EventKind::CgroupMove { task, to, .. } => self.cgroup_move(event, task, to),
            kind => {
                let mut text = String::new();
                own::mark(&mut text, &self.view, kind);
                text.push('\n');
                self.bytes("print", event, 0, &[Value::Number(MARK_AT), Value::Text(&text)])
            }
        };
        if let EventKind::Lost { count } = event.kind {
            self.cpu(event.cpu).lose(count);
        }
        self.push(event, &data);
    }

    /// The called before the caller.
    fn stack(&mut self, event: &Event, label: Label) -> Vec<u8> {
        let next = MARK_AT + FUNCTION_BYTES;
        let mut callers = Vec::new();
        for function in self.view.trace.label(label).rsplit(';') {
            let address = next + self.functions.len() as u64 * FUNCTION_BYTES;
            callers.push(*self.functions.entry(escape(function).into_owned()).or_insert(address));
        }
        let size = Value::Number(callers.len() as u64);
        self.bytes("kernel_stack", event, 0, &[size, Value::Numbers(&callers)])
    }

    /// The numbers of hierarchy and cgroup are those of the table; the kernel's own are not in the trace.
    fn cgroup_move(&self, event: &Event, task: TaskId, to: CgroupId) -> Vec<u8> {
        let path = self.view.cgroup_path(to).trim_start_matches('/');
        let level = path.split('/').filter(|name| !name.is_empty()).count();
        let [root, level, id, pid] =
            [1, level as u64, u64::from(to.0) + 1, self.view.pid(task).into()].map(Value::Number);
        let path = format!("/{}", escape(path));
        let values =
            [root, level, id, pid, Value::Text(&self.names[task.index()]), Value::Text(&path)];
        self.bytes("cgroup_attach_task", event, 0, &values)
    }

    fn bytes(&self, name: &str, event: &Event, flags: u8, values: &[Value<'_>]) -> Vec<u8> {
        let (id, format) = formats::of_name(name);
        let pid = self.view.pid(self.view.running(event));
        format.bytes(id, flags, pid, self.comm_bytes, values)
    }

    fn push(&mut self, event: &Event, data: &[u8]) {
        let page_bytes = self.page_bytes;
        self.cpu(event.cpu).push(event.time_ns, data, page_bytes);
        self.view.note(event);
    }

    /// The pages of a CPU, which may lie beyond the trace's count: that is damage, and is kept.
    fn cpu(&mut self, cpu: u32) -> &mut CpuPages {
        let index = cpu as usize;
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, CpuPages::default());
        }
        &mut self.cpus[index]
    }

    /// All before the pages, up to where they begin.
    fn head(&self) -> Vec<u8> {
        let mut head = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
        head.extend((self.page_bytes as u32).to_le_bytes());
        let data_bytes = self.page_bytes - HEAD_BYTES;
        let header_page = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:16;\tsize:{data_bytes};\tsigned:1;\n"
        );
        for (name, text) in [("header_page", header_page.as_str()), ("header_event", HEADER_EVENT)]
        {
            head.extend(name.bytes().chain([0]));
            long_sized(&mut head, text);
        }
        self.formats(&mut head);
        sized(&mut head, &self.kallsyms());
        sized(&mut head, "");
        let tasks = self.view.trace.tasks().iter().zip(&self.names);
        let cmdlines: String = tasks.map(|(task, name)| format!("{} {name}\n", task.pid)).collect();
        long_sized(&mut head, &cmdlines);
        head.extend((self.cpus.len() as u32).to_le_bytes());
        self.options(&mut head);
        head.extend(b"flyrecord\0");
        let mut at = (head.len() + 16 * self.cpus.len()).next_multiple_of(self.page_bytes);
        let begin = at;
        for cpu in &self.cpus {
            let size = cpu.bytes.len().next_multiple_of(self.page_bytes);
            head.extend([at as u64, size as u64].map(u64::to_le_bytes).concat());
            at += size;
        }
        head.resize(begin, 0);
        head
    }

    fn formats(&self, head: &mut Vec<u8>) {
        let ftrace = formats::described("ftrace", self.comm_bytes);
        head.extend((ftrace.len() as u32).to_le_bytes());
        ftrace.iter().for_each(|text| long_sized(head, text));
        let mut systems: Vec<&str> = formats::FORMATS.iter().map(|format| format.system).collect();
        systems.retain(|system| *system != "ftrace");
        systems.dedup();
        head.extend((systems.len() as u32).to_le_bytes());
        for system in systems {
            head.extend(system.bytes().chain([0]));
            let texts = formats::described(system, self.comm_bytes);
            head.extend((texts.len() as u32).to_le_bytes());
            texts.iter().for_each(|text| long_sized(head, text));
        }
    }

    /// `/proc/kallsyms` of the functions that events name.
    fn kallsyms(&self) -> String {
        let own = [("tick_nohz_handler", TICK_AT), ("tracing_mark_write", MARK_AT)];
        let of_stacks = self.functions.iter().map(|(name, address)| (name.as_str(), *address));
        own.into_iter().chain(of_stacks).map(|(name, at)| format!("{at:016x} t {name}\n")).collect()
    }

    fn options(&self, head: &mut Vec<u8>) {
        let mut state = String::new();
        own::header_lines(&mut state, "", self.view.trace);
        state.push_str(&self.orders.lines);
        head.extend(b"options  \0");
        for (number, text) in [(OPTION_TRACECLOCK, "[local]\0"), (StartState::OPTION, &state)] {
            head.extend(number.to_le_bytes());
            sized(head, text);
        }
        head.extend(0_u16.to_le_bytes());
    }
}

fn sized(into: &mut Vec<u8>, text: &str) {
    into.extend((text.len() as u32).to_le_bytes());
    into.extend(text.bytes());
}

fn long_sized(into: &mut Vec<u8>, text: &str) {
    into.extend((text.len() as u64).to_le_bytes());
    into.extend(text.bytes());
}
