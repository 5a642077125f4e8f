//! Writes a workload as the text that [`crate::parse()`] reads.

use std::fmt::{self, Write as _};

use crate::model::{Carrier, Op, Program, Role, TaskSpec, Workload};
use crate::parse::{FORMAT, PIPE_CAPACITY_DEFAULT, SOCKET_BUFFER_DEFAULT, mark_forked};
use crate::units::{cpus_text, duration_text, time_text};

/// Columns after which a program is broken into lines.
const LINE_COLUMNS: usize = 100;

/// The workload as a file; parsing it returns an equal workload.
pub fn to_toml(workload: &Workload) -> String {
    let mut text = String::new();
    match write_workload(&mut text, workload) {
        Ok(()) => text,
        Err(_) => unreachable!("writing into a String cannot fail"),
    }
}

fn write_workload(out: &mut String, workload: &Workload) -> fmt::Result {
    writeln!(out, "format = {FORMAT}")?;
    writeln!(out, "name = {}", quoted(&workload.name))?;
    if !workload.description.is_empty() {
        writeln!(out, "description = {}", quoted(&workload.description))?;
    }
    writeln!(out, "duration = \"{}\"", time_text(workload.duration_ns))?;
    for pipe in &workload.pipes {
        writeln!(out, "\n[[pipe]]\nname = {}", quoted(&pipe.name))?;
        let (socket, usual) = match pipe.carrier {
            Carrier::Pipe => (false, PIPE_CAPACITY_DEFAULT),
            Carrier::Socket => (true, SOCKET_BUFFER_DEFAULT),
        };
        if socket {
            writeln!(out, "socket = true")?;
        }
        if pipe.capacity != usual {
            writeln!(out, "capacity = {}", pipe.capacity)?;
        }
    }
    for queue in &workload.queues {
        writeln!(out, "\n[[queue]]\nname = {}", quoted(&queue.name))?;
        if let Some(capacity) = queue.capacity {
            writeln!(out, "capacity = {capacity}")?;
        }
        if queue.initial != 0 {
            writeln!(out, "initial = {}", queue.initial)?;
        }
    }
    for lock in &workload.locks {
        writeln!(out, "\n[locks.{}]\nkind = \"{}\"", quoted(&lock.name), lock.kind.word())?;
        if !lock.adaptive {
            writeln!(out, "adaptive = false")?;
        }
        if !lock.steal {
            writeln!(out, "steal = false")?;
        }
    }
    for condition in &workload.conditions {
        writeln!(out, "\n[[condition]]\nname = {}", quoted(&condition.name))?;
    }
    for barrier in &workload.barriers {
        let (name, count) = (quoted(&barrier.name), barrier.count);
        writeln!(out, "\n[[barrier]]\nname = {name}\ncount = {count}")?;
    }
    for timer in &workload.timers {
        writeln!(out, "\n[[timer]]\nname = {}", quoted(&timer.name))?;
        writeln!(out, "period = \"{}\"", time_text(timer.period_ns))?;
        if timer.relative {
            writeln!(out, "mode = \"relative\"")?;
        }
        if timer.shared {
            writeln!(out, "shared = true")?;
        }
    }
    for cgroup in workload.cgroups.iter().skip(1) {
        writeln!(out, "\n[cgroups.{}]\nweight = {}", quoted(&cgroup.path), cgroup.weight)?;
    }
    let mut forked = vec![false; workload.tasks.len()];
    for task in &workload.tasks {
        mark_forked(&task.program, &mut forked);
        mark_forked(&task.on_signal, &mut forked);
    }
    for (task, forked) in workload.tasks.iter().zip(forked) {
        write_task(out, workload, task, forked)?;
    }
    Ok(())
}

fn write_task(out: &mut String, workload: &Workload, task: &TaskSpec, forked: bool) -> fmt::Result {
    writeln!(out, "\n[[task]]\nname = {}", quoted(&task.name))?;
    if task.count != 1 {
        writeln!(out, "count = {}", task.count)?;
    }
    if task.nice != 0 {
        writeln!(out, "nice = {}", task.nice)?;
    }
    if let Some(cpus) = &task.cpus {
        writeln!(out, "cpus = \"{}\"", cpus_text(cpus))?;
    }
    if let Some(cgroup) = task.cgroup {
        writeln!(out, "cgroup = {}", quoted(&workload.cgroups[cgroup].path))?;
    }
    if let Some(start_ns) = task.start_ns
        && (start_ns != 0 || forked)
    {
        writeln!(out, "start = \"{}\"", time_text(start_ns))?;
    }
    write_program(out, workload, "program", &task.program)?;
    if !task.on_signal.is_empty() {
        write_program(out, workload, "on_signal", &task.on_signal)?;
    }
    Ok(())
}

fn write_program(
    out: &mut String,
    workload: &Workload,
    key: &str,
    program: &Program,
) -> fmt::Result {
    write!(out, "{key} = ")?;
    write_list(out, workload, program, 0, key.len() + 3)?;
    writeln!(out)
}

/// A list of operations: on one line when it fits, otherwise one operation per line. `used` columns precede it.
fn write_list(
    out: &mut String,
    workload: &Workload,
    program: &Program,
    depth: usize,
    used: usize,
) -> fmt::Result {
    if program.len() <= LINE_COLUMNS / 4 {
        let mut line = String::from("[");
        for (index, op) in program.iter().enumerate() {
            if index > 0 {
                line.push_str(", ");
            }
            write_op(&mut line, workload, op, None)?;
        }
        line.push(']');
        if used + line.chars().count() <= LINE_COLUMNS {
            out.push_str(&line);
            return Ok(());
        }
    }
    let indent = "  ".repeat(depth + 1);
    out.push_str("[\n");
    for op in program {
        out.push_str(&indent);
        write_op(out, workload, op, Some(depth + 1))?;
        out.push_str(",\n");
    }
    write!(out, "{}]", "  ".repeat(depth))
}

/// One operation; `depth` is given where a loop's body may be broken into lines.
fn write_op(out: &mut String, workload: &Workload, op: &Op, depth: Option<usize>) -> fmt::Result {
    let pipe = |index: usize| quoted(&workload.pipes[index].name);
    let queue = |index: usize| quoted(&workload.queues[index].name);
    let cgroup = |index: usize| quoted(&workload.cgroups[index].path);
    let task = |index: usize| &workload.tasks[index].name;
    match op {
        Op::Run(duration) => write!(out, "{{ run = \"{}\" }}", duration_text(*duration)),
        Op::RunForever => write!(out, "{{ run = \"forever\" }}"),
        Op::Touch(bytes) => write!(out, "{{ touch = {bytes} }}"),
        Op::Sleep(duration) => write!(out, "{{ sleep = \"{}\" }}", duration_text(*duration)),
        Op::Io(duration) => write!(out, "{{ io = \"{}\" }}", duration_text(*duration)),
        Op::Busy(duration) => write!(out, "{{ busy = \"{}\" }}", duration_text(*duration)),
        Op::TimerWait(..) | Op::TimerStart(_) => write_timer(out, workload, op),
        Op::PipeWrite(index, 1) => write!(out, "{{ write = {} }}", pipe(*index)),
        Op::PipeRead(index, 1) => write!(out, "{{ read = {} }}", pipe(*index)),
        Op::PipeWrite(index, bytes) => {
            write!(out, "{{ write = {{ pipe = {}, bytes = {bytes} }} }}", pipe(*index))
        }
        Op::PipeRead(index, bytes) => {
            write!(out, "{{ read = {{ pipe = {}, bytes = {bytes} }} }}", pipe(*index))
        }
        Op::Send(index) => write!(out, "{{ send = {} }}", queue(*index)),
        Op::Receive(index, 1) => write!(out, "{{ receive = {} }}", queue(*index)),
        Op::Receive(index, count) => {
            write!(out, "{{ receive = {{ queue = {}, count = {count} }} }}", queue(*index))
        }
        Op::Signal(Role::All(group)) => write!(out, "{{ signal = {} }}", quoted(task(*group))),
        Op::Signal(Role::One(group, number)) => {
            write!(out, "{{ signal = {} }}", quoted(&format!("{}/{number}", task(*group))))
        }
        Op::Signal(Role::Parent) => write!(out, "{{ signal = \"parent\" }}"),
        Op::Fork(group) => write!(out, "{{ fork = {} }}", quoted(task(*group))),
        Op::WaitChildren => write!(out, "\"wait\""),
        Op::Yield => write!(out, "\"yield\""),
        Op::Exit => write!(out, "\"exit\""),
        Op::SetNice(nice) => write!(out, "{{ nice = {nice} }}"),
        Op::SetSlice(ns) => write!(out, "{{ slice = \"{}\" }}", time_text(*ns)),
        Op::SetAffinity(cpus) => write!(out, "{{ cpus = \"{}\" }}", cpus_text(cpus)),
        Op::SetCgroup(index) => write!(out, "{{ cgroup = {} }}", cgroup(*index)),
        Op::SetCgroupWeight(index, weight) => {
            write!(out, "{{ weight = {{ cgroup = {}, weight = {weight} }} }}", cgroup(*index))
        }
        Op::Mark(text) => write!(out, "{{ mark = {} }}", quoted(text)),
        Op::Loop(times, body) => {
            write!(out, "{{ loop = ")?;
            match depth {
                Some(depth) => write_list(out, workload, body, depth, 2 * depth + 24)?,
                None => write_list(out, workload, body, 0, 0)?,
            }
            if let Some(times) = times {
                write!(out, ", times = {times}")?;
            }
            write!(out, " }}")
        }
        _ => write_meeting(out, workload, op),
    }
}

/// An operation of a timer.
fn write_timer(out: &mut String, workload: &Workload, op: &Op) -> fmt::Result {
    match op {
        Op::TimerWait(timer, period_ns) => {
            let timer = &workload.timers[*timer];
            let name = quoted(&timer.name);
            if *period_ns == timer.period_ns {
                return write!(out, "{{ timer = {name} }}");
            }
            let period = time_text(*period_ns);
            write!(out, "{{ timer = {{ name = {name}, period = \"{period}\" }} }}")
        }
        Op::TimerStart(timer) => {
            write!(out, "{{ timer_start = {} }}", quoted(&workload.timers[*timer].name))
        }
        _ => Err(fmt::Error),
    }
}

/// One of the operations by which tasks wait for each other.
fn write_meeting(out: &mut String, workload: &Workload, op: &Op) -> fmt::Result {
    let lock = |index: usize| quoted(&workload.locks[index].name);
    let condition = |index: usize| quoted(&workload.conditions[index].name);
    match op {
        Op::Lock(index) => write!(out, "{{ lock = {} }}", lock(*index)),
        Op::ReadLock(index) => write!(out, "{{ read_lock = {} }}", lock(*index)),
        Op::WriteLock(index) => write!(out, "{{ write_lock = {} }}", lock(*index)),
        Op::ConditionWait(index, held) => {
            let (cond, lock) = (condition(*index), lock(*held));
            write!(out, "{{ wait = {{ cond = {cond}, lock = {lock} }} }}")
        }
        Op::Notify(index) => write!(out, "{{ notify = {} }}", condition(*index)),
        Op::NotifyAll(index) => write!(out, "{{ notify_all = {} }}", condition(*index)),
        Op::Barrier(index) => {
            write!(out, "{{ barrier = {} }}", quoted(&workload.barriers[*index].name))
        }
        Op::Unlock(index) => write!(out, "{{ unlock = {} }}", lock(*index)),
        _ => Err(fmt::Error),
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                // The format writes control characters as four hexadecimal digits.
                quoted.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
