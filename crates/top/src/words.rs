//! An event as a line.

use fairground_trace::{Event, EventKind, Label, TaskId, TaskState, Trace};

/// Time, CPU and event.
pub(crate) fn words(trace: &Trace, event: &Event) -> String {
    let seconds = event.time_ns / 1_000_000_000;
    let rest = event.time_ns % 1_000_000_000;
    format!("{seconds}.{rest:09}  CPU {:<3} {}", event.cpu, what(trace, event.kind))
}

fn what(trace: &Trace, kind: EventKind) -> String {
    let task = |id: TaskId| match trace.tasks().get(id.index()) {
        _ if id.is_idle() => "idle".to_owned(),
        Some(info) => info.comm.clone(),
        None => "?".to_owned(),
    };
    let label = |label: Label| trace.labels().get(label.0 as usize).map_or("?", String::as_str);
    match kind {
        EventKind::Switch { prev, prev_state, next } => {
            format!("{} {} → {}", task(prev), left(prev, prev_state), task(next))
        }
        EventKind::Waking { task: woken, waker, .. } => {
            format!("{} is asked to wake by {}", task(woken), task(waker))
        }
        EventKind::Wakeup { task: woken, target_cpu } => {
            format!("{} is runnable on CPU {target_cpu}", task(woken))
        }
        EventKind::WakeupNew { task: woken, target_cpu } => {
            format!("{} is new on CPU {target_cpu}", task(woken))
        }
        EventKind::Migrate { task: moved, from_cpu, to_cpu } => {
            format!("{} goes from CPU {from_cpu} to {to_cpu}", task(moved))
        }
        EventKind::Fork { parent, child } => format!("{} makes {}", task(parent), task(child)),
        EventKind::Exit { task: ended } => format!("{} ends", task(ended)),
        EventKind::Tick { task: running } => format!("tick in {}", task(running)),
        EventKind::Charge { task: charged, runtime_ns } => {
            format!("{} is charged {runtime_ns} ns", task(charged))
        }
        EventKind::Callback { kind, task: of } => format!("{}({})", kind.name(), task(of)),
        EventKind::Mark { task: of, label: text, value } => {
            format!("{} says {} {value}", task(of), label(text))
        }
        EventKind::ContentionBegin { task: of, lock, holder, .. } => {
            format!("{} waits for {} of {}", task(of), label(lock), task(holder))
        }
        EventKind::ContentionEnd { task: of, lock } => {
            format!("{} has {}", task(of), label(lock))
        }
        EventKind::Param { label: text } => format!("set {}", label(text)),
        EventKind::Print { label: text } => format!("the scheduler prints: {}", label(text)),
        EventKind::Stack { task: of, label: text } => format!("{} is in {}", task(of), label(text)),
        EventKind::Lost { count } => format!("{count} events were lost"),
        _ => match kind.subject() {
            Some(id) => format!("{}: {}", task(id), kind.caption(trace)),
            None => kind.caption(trace),
        },
    }
}

/// The reason why a task left the CPU.
fn left(prev: TaskId, state: TaskState) -> &'static str {
    match state {
        _ if prev.is_idle() => "",
        TaskState::Runnable | TaskState::Preempted => "(preempted)",
        TaskState::Sleeping => "(sleeps)",
        TaskState::Uninterruptible => "(blocks)",
        TaskState::Stopped => "(stopped)",
        TaskState::Traced => "(traced)",
        TaskState::Idle => "(idles)",
        TaskState::Dead | TaskState::Zombie => "(ended)",
        TaskState::Parked => "(parked)",
    }
}
