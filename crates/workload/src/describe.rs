//! A workload in words.

use crate::cgroups::Cgroup;
use crate::model::{Duration, Op, Program, Role, TaskSpec, Workload};
use crate::objects::ObjectKind;
use crate::units::{cpus_text, time_text};

/// Operations of a program that a summary lists; the rest is counted.
const OPERATIONS_SHOWN_MAX: usize = 8;

/// A summary: the workload on the first line, then a line for each group.
pub fn describe(workload: &Workload) -> Vec<String> {
    let tasks: u64 = workload.tasks.iter().map(|task| u64::from(task.count)).sum();
    let mut first = format!(
        "{}: {} in {} for {}",
        workload.name,
        counted(tasks, "task"),
        counted(workload.tasks.len() as u64, "group"),
        time_text(workload.duration_ns)
    );
    if !workload.description.is_empty() {
        first.push_str(&format!(" ({})", workload.description));
    }
    let groups = workload.tasks.iter().map(|task| {
        let mut line = format!("  {} × {}", task.count, task.name);
        let settings = settings(workload, task);
        if !settings.is_empty() {
            line.push_str(&format!(" ({})", settings.join(", ")));
        }
        line.push_str(&format!(": {}", program_words(workload, &task.program)));
        if !task.on_signal.is_empty() {
            line.push_str(&format!("; on a signal: {}", program_words(workload, &task.on_signal)));
        }
        line
    });
    let cgroups = workload
        .cgroups
        .iter()
        .skip(1)
        .map(|cgroup| format!("  cgroup {} ({})", cgroup.path, cgroup_words(cgroup)));
    std::iter::once(first).chain(cgroups).chain(groups).collect()
}

fn cgroup_words(cgroup: &Cgroup) -> String {
    let mut words = format!("weight {}", cgroup.weight);
    if cgroup.max.is_limited() {
        words.push_str(&format!(", at most {}", cgroup.max));
    }
    if cgroup.idle {
        words.push_str(", idle");
    }
    words
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn settings(workload: &Workload, task: &TaskSpec) -> Vec<String> {
    let mut settings = Vec::new();
    if task.policy.priority().is_some() {
        settings.push(task.policy.to_string());
    }
    if task.nice != 0 {
        settings.push(format!("nice {}", task.nice));
    }
    if let Some(cpus) = &task.cpus {
        settings.push(format!("CPUs {}", cpus_text(cpus)));
    }
    if let Some(cgroup) = task.cgroup {
        settings.push(format!("cgroup {}", workload.cgroups[cgroup].path));
    }
    match task.start_ns {
        None => settings.push("forked".to_owned()),
        Some(0) => {}
        Some(ns) => settings.push(format!("from {}", time_text(ns))),
    }
    settings
}

fn program_words(workload: &Workload, program: &Program) -> String {
    let shown = program.iter().take(OPERATIONS_SHOWN_MAX).map(|op| op_words(workload, op));
    let mut words = shown.collect::<Vec<_>>().join(", ");
    if program.len() > OPERATIONS_SHOWN_MAX {
        let rest = program.len() - OPERATIONS_SHOWN_MAX;
        words.push_str(&format!(" … and {}", counted(rest as u64, "more operation")));
    }
    words
}

fn op_words(workload: &Workload, op: &Op) -> String {
    let time = |duration: &Duration| match *duration {
        Duration::Fixed(ns) => time_text(ns),
        Duration::Uniform { low, high } => format!("{} to {}", time_text(low), time_text(high)),
    };
    let name = |kind, index: &usize| workload.name_of(kind, *index);
    let task = |index| name(ObjectKind::Task, index);
    let cgroup = |index| name(ObjectKind::Cgroup, index);
    let lock = |index| name(ObjectKind::Lock, index);
    let condition = |index| name(ObjectKind::Condition, index);
    match op {
        Op::Run(duration) => format!("run {}", time(duration)),
        Op::RunForever => "run for ever".to_owned(),
        Op::Touch(bytes) => format!("touch {}", counted(*bytes, "byte")),
        Op::Sleep(duration) => format!("sleep {}", time(duration)),
        Op::Io(duration) => format!("wait for the device for {}", time(duration)),
        Op::Busy(duration) => format!("compute until {} have passed", time(duration)),
        Op::TimerWait(timer, period_ns) => {
            let timer = name(ObjectKind::Timer, timer);
            format!("wait for timer {timer} ({})", time_text(*period_ns))
        }
        Op::TimerStart(timer) => format!("start timer {}", name(ObjectKind::Timer, timer)),
        Op::PipeWrite(pipe, bytes) => {
            format!("write {} into {}", counted(*bytes, "byte"), name(ObjectKind::Pipe, pipe))
        }
        Op::PipeRead(pipe, bytes) => {
            format!("read {} from {}", counted(*bytes, "byte"), name(ObjectKind::Pipe, pipe))
        }
        Op::Send(queue) => format!("send to {}", name(ObjectKind::Queue, queue)),
        Op::Receive(queue, 1) => format!("receive from {}", name(ObjectKind::Queue, queue)),
        Op::Receive(queue, count) => {
            format!("receive {count} from {}", name(ObjectKind::Queue, queue))
        }
        Op::Signal(Role::All(group)) => format!("signal {}", task(group)),
        Op::Signal(Role::One(group, number)) => format!("signal {}/{number}", task(group)),
        Op::Signal(Role::Parent) => "signal the parent".to_owned(),
        Op::Fork(group) => format!("fork {}", task(group)),
        Op::WaitChildren => "wait for the children".to_owned(),
        Op::Yield => "yield".to_owned(),
        Op::SetNice(nice) => format!("set nice {nice}"),
        Op::SetPolicy(policy) => format!("set policy {policy}"),
        Op::SetSlice(ns) => format!("ask for slices of {}", time_text(*ns)),
        Op::SetAffinity(cpus) => format!("move to CPUs {}", cpus_text(cpus)),
        Op::SetCgroup(index) => format!("move to cgroup {}", cgroup(index)),
        Op::SetCgroupWeight(index, weight) => {
            format!("set the weight of cgroup {} to {weight}", cgroup(index))
        }
        Op::Mark(text) => format!("mark {text:?}"),
        Op::Lock(index) => {
            format!("lock {} ({})", lock(index), workload.locks[*index].kind.word())
        }
        Op::ReadLock(index) => format!("lock {} to read", lock(index)),
        Op::WriteLock(index) => format!("lock {} to write", lock(index)),
        Op::ConditionWait(index, held) => {
            format!("wait for {} without {}", condition(index), lock(held))
        }
        Op::Notify(index) => format!("notify {}", condition(index)),
        Op::NotifyAll(index) => format!("notify all at {}", condition(index)),
        Op::Barrier(index) => {
            let barrier = &workload.barriers[*index];
            format!("meet {} at {}", barrier.count, barrier.name)
        }
        Op::Unlock(index) => format!("unlock {}", lock(index)),
        Op::Loop(None, body) => format!("for ever {{ {} }}", program_words(workload, body)),
        Op::Loop(Some(times), body) => {
            format!("{times} times {{ {} }}", program_words(workload, body))
        }
        Op::Exit => "exit".to_owned(),
    }
}
