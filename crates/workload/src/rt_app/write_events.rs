//! Operations as events.

use super::constants::IORUN_NS_PER_BYTE;
use super::names::UNIQUE;
use super::write_text::Pair;
use super::writer::{Item, What, Writer};
use crate::model::{Op, Workload};
use crate::objects::ObjectKind;
use crate::units::{Duration, quoted};
use crate::walk::each_op;

/// Limit of the messages of one receive that are written one by one.
const RECEIVED_MAX: u32 = 64;
/// Limit of the tasks of one fork that are written one by one.
const FORKED_MAX: u32 = 1_024;

/// The events of a list without loops, each with a unique key.
pub(super) fn events(writer: &mut Writer<'_>, list: &[Item<'_>], task: usize) -> Vec<Pair> {
    let mut events = Vec::with_capacity(list.len());
    let mut at = 0;
    while let Some(item) = list.get(at) {
        writer.at(item);
        let length = sequence(writer, &list[at..], task, &mut events);
        if length == 0 {
            event(writer, item, &mut events);
        }
        at += length.max(1);
    }
    let mut used: Vec<(String, usize)> = Vec::new();
    for (key, _) in &mut events {
        let number = match used.iter_mut().find(|(known, _)| known == key) {
            Some((_, number)) => {
                *number += 1;
                *number
            }
            None => {
                used.push((key.clone(), 0));
                0
            }
        };
        if number > 0 {
            *key = format!("{key}{number}");
        }
    }
    events
}

fn op<'i>(item: Option<&'i Item<'_>>) -> Option<&'i Op> {
    match item?.what {
        What::Op(op) => Some(op),
        _ => None,
    }
}

/// An event of several operations (`suspend`, `resume`, `sync`), and their number.
fn sequence(writer: &Writer<'_>, list: &[Item<'_>], task: usize, events: &mut Vec<Pair>) -> usize {
    let workload = writer.workload;
    let name = |condition: usize, lock: usize| {
        let name = &workload.conditions[condition].name;
        (*name == workload.locks[lock].name).then_some(name)
    };
    let three = [op(list.first()), op(list.get(1)), op(list.get(2))];
    match three {
        [Some(Op::Lock(a)), Some(Op::ConditionWait(condition, b)), Some(Op::Unlock(c))]
            if a == b && b == c && name(*condition, *a) == Some(&workload.tasks[task].name) =>
        {
            events.push(("suspend".to_owned(), "\"\"".to_owned()));
            3
        }
        [Some(Op::Lock(a)), Some(Op::NotifyAll(condition)), Some(Op::Unlock(b))] if a == b => {
            let Some(name) = name(*condition, *a) else { return 0 };
            events.push(("resume".to_owned(), quoted(name)));
            3
        }
        [Some(Op::Notify(a)), Some(Op::ConditionWait(b, lock)), _] if a == b => {
            events.push(("sync".to_owned(), waiting(workload, *a, *lock)));
            2
        }
        _ => 0,
    }
}

fn waiting(workload: &Workload, condition: usize, lock: usize) -> String {
    let (name, lock) = (&workload.conditions[condition].name, &workload.locks[lock].name);
    format!("{{ \"ref\" : {}, \"mutex\" : {} }}", quoted(name), quoted(lock))
}

fn event(writer: &mut Writer<'_>, item: &Item<'_>, events: &mut Vec<Pair>) {
    let workload = writer.workload;
    let op = match item.what {
        What::Op(op) => op,
        What::Run(ns) => {
            events.extend(writer.us(ns).map(|us| ("run".to_owned(), us)));
            return;
        }
        _ => return,
    };
    let name = |kind, index| Some(quoted(workload.name_of(kind, index)));
    let (word, value) = match op {
        Op::Run(duration) => ("run", time(writer, *duration)),
        Op::Busy(duration) => ("runtime", time(writer, *duration)),
        Op::Sleep(duration) => ("sleep", time(writer, *duration)),
        Op::TimerWait(timer, period_ns) => ("timer", self::timer(writer, *timer, *period_ns)),
        Op::Touch(bytes) => ("mem", bytes_text(writer, *bytes)),
        Op::Loop(Some(iterations), body) => {
            if let [Op::Touch(bytes)] = body[..] {
                events.extend(writer.buffer.again(*iterations, bytes));
            }
            return;
        }
        Op::Io(duration) => ("iorun", io(writer, *duration)),
        Op::Lock(lock) => ("lock", name(ObjectKind::Lock, *lock)),
        Op::Unlock(lock) => ("unlock", name(ObjectKind::Lock, *lock)),
        Op::ConditionWait(condition, lock) => ("wait", Some(waiting(workload, *condition, *lock))),
        Op::Notify(condition) => ("signal", name(ObjectKind::Condition, *condition)),
        Op::NotifyAll(condition) => ("broad", name(ObjectKind::Condition, *condition)),
        Op::Barrier(barrier) => ("barrier", self::barrier(writer, *barrier)),
        Op::Send(queue) => ("sem_post", semaphore(writer, *queue)),
        Op::Receive(queue, count) => {
            if *count > RECEIVED_MAX {
                writer.problem("so many messages at once", "receive fewer, in a loop");
            }
            let value = semaphore(writer, *queue);
            let more = value.iter().cycle().take((*count).min(RECEIVED_MAX) as usize - 1);
            events.extend(more.map(|value| ("sem_wait".to_owned(), value.clone())));
            ("sem_wait", value)
        }
        Op::Yield => ("yield", Some("\"\"".to_owned())),
        Op::Fork(group) => {
            let spec = &workload.tasks[*group];
            if spec.count > FORKED_MAX {
                writer.problem("so many forks at once", "make the group smaller");
            }
            let fork = ("fork".to_owned(), quoted(&spec.name));
            let more = spec.count.min(FORKED_MAX) as usize - 1;
            events.extend(std::iter::repeat_n(fork, more));
            ("fork", Some(quoted(&spec.name)))
        }
        other => {
            writer.problem(
                format!("rt-app has no {}", lacking(other)),
                "write it another way, or keep the TOML file",
            );
            return;
        }
    };
    events.extend(value.map(|value| (word.to_owned(), value)));
}

/// An operation that rt-app lacks, in words.
fn lacking(op: &Op) -> &'static str {
    match op {
        Op::PipeWrite(..) | Op::PipeRead(..) => "pipes and sockets",
        Op::Signal(_) => "signals",
        Op::WaitChildren => "way to wait for the threads that one forked",
        Op::ReadLock(_) | Op::WriteLock(_) => "rwlocks",
        Op::SetCgroupWeight(..) => "weights of groups",
        Op::TimerStart(_) => "timer that begins later than its thread",
        Op::Exit => "end of a thread but the end of its phases",
        _ => "such operation",
    }
}

fn time(writer: &mut Writer<'_>, duration: Duration) -> Option<String> {
    let ns = writer.fixed(duration)?;
    writer.us(ns)
}

fn timer(writer: &mut Writer<'_>, timer: usize, period_ns: u64) -> Option<String> {
    let timer = &writer.workload.timers[timer];
    let name = match (timer.shared, timer.name.starts_with(UNIQUE)) {
        (true, true) => {
            let message =
                format!("the shared timer `{}` has the name of one of a thread's own", timer.name);
            writer.problem(message, "give it a name that does not begin with `unique`");
            return None;
        }
        (true, false) | (false, true) => timer.name.clone(),
        (false, false) => format!("{UNIQUE}-{}", timer.name),
    };
    let mode = if timer.relative { "relative" } else { "absolute" };
    let period = writer.us(period_ns)?;
    Some(format!("{{ \"ref\" : {}, \"period\" : {period}, \"mode\" : \"{mode}\" }}", quoted(&name)))
}

fn bytes_text(writer: &mut Writer<'_>, bytes: u64) -> Option<String> {
    let text = i32::try_from(bytes).ok().map(|bytes| bytes.to_string());
    if text.is_none() {
        writer.problem(
            format!("{bytes} bytes are more than rt-app counts"),
            "write fewer, in a loop",
        );
    }
    text
}

fn io(writer: &mut Writer<'_>, duration: Duration) -> Option<String> {
    let ns = writer.fixed(duration)?;
    let bytes = ns / IORUN_NS_PER_BYTE;
    if bytes == 0 || bytes * IORUN_NS_PER_BYTE != ns {
        let message = format!("{ns} ns of the device are not a whole number of bytes");
        writer.problem(message, "a byte of `iorun` takes 2 ns: write an even number");
        return None;
    }
    bytes_text(writer, bytes)
}

fn semaphore(writer: &mut Writer<'_>, queue: usize) -> Option<String> {
    let queue = &writer.workload.queues[queue];
    if queue.capacity.is_some() || queue.initial != 0 {
        let message = format!("the queue `{}` has a capacity or messages at the start", queue.name);
        writer.problem(message, "a semaphore of rt-app begins at 0 and has no limit");
        return None;
    }
    Some(quoted(&queue.name))
}

/// rt-app derives the count of a barrier from the events that name it.
fn barrier(writer: &mut Writer<'_>, barrier: usize) -> Option<String> {
    let workload = writer.workload;
    let mut come = 0_u64;
    each_op(workload, |path, op| {
        let task = &workload.tasks[path.task];
        if *op == Op::Barrier(barrier) && task.start_ns.is_some() {
            come += u64::from(task.count);
        }
    });
    let barrier = &workload.barriers[barrier];
    if come != u64::from(barrier.count) {
        let message = format!("the barrier `{}` is for {} tasks", barrier.name, barrier.count);
        let help = format!("in rt-app it would be for {come}: every event that names it counts");
        writer.problem(message, &help);
        return None;
    }
    Some(quoted(&barrier.name))
}
