//! Which task woke another where only `sched_wakeup` was recorded.

use fairground_trace::{EventKind, TaskId, Trace, read};

fn trace(text: &str) -> Trace {
    read("sample", text.as_bytes()).expect("a recording")
}

/// The requests to wake a task: by whom, and whom.
fn wakings(trace: &Trace) -> Vec<(&str, &str)> {
    let name = |task: TaskId| trace.tasks()[task.index()].comm.as_str();
    let waking = |event: fairground_trace::Event| match event.kind {
        EventKind::Waking { task, waker, .. } => Some((name(waker), name(task))),
        _ => None,
    };
    trace.events().filter_map(waking).collect()
}

const WAKEUPS: &str = "\
          <idle>-0     [000] d..2 100.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=A next_pid=10 next_prio=120
               A-10    [000] d..2 100.001000: sched_wakeup: comm=B pid=11 prio=120 target_cpu=000
               A-10    [000] d.h2 100.001500: sched_wakeup: comm=C pid=12 prio=120 target_cpu=000
               A-10    [000] d..2 100.002000: sched_wakeup: comm=D pid=13 prio=120 success=0 target_cpu=000
";

#[test]
fn the_task_that_ran_there_unless_it_was_an_interrupt() {
    let trace = trace(WAKEUPS);
    assert_eq!(wakings(&trace), [("A", "B"), ("swapper", "C")]);
    let wakeups = trace.events().filter(|event| matches!(event.kind, EventKind::Wakeup { .. }));
    assert_eq!((wakeups.count(), trace.loss.skipped), (2, 1));
}

/// Where requests were recorded, they say it.
#[test]
fn with_sched_waking_nothing_is_added() {
    let waking = "               A-10    [000] d..2 100.003000: sched_waking: comm=B pid=11 prio=120 \
                  target_cpu=000\n";
    assert_eq!(wakings(&trace(&format!("{WAKEUPS}{waking}"))), [("A", "B")]);
}
