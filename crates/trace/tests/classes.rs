//! Classes, priorities and states of tasks: what a kernel prints is kept, and printed again.

use fairground_trace::{Event, EventKind, RtPrio, TaskId, TaskState, Trace, read, write_ftrace};

/// A thread of an interrupt, a stop task and a deadline task; the first changes its priority and falls to the normal
/// class.
const CLASSES: &str = "
          <idle>-0     [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=irq/40 next_pid=101 next_prio=49
          irq/40-101   [000] d..2 1.030000: sched_switch: prev_comm=irq/40 prev_pid=101 prev_prio=49 prev_state=R+ ==> next_comm=mig next_pid=18 next_prio=0
             mig-18    [000] d..2 1.040000: sched_switch: prev_comm=mig prev_pid=18 prev_prio=0 prev_state=S ==> next_comm=dl next_pid=19 next_prio=-1
              dl-19    [000] d..2 1.050000: sched_switch: prev_comm=dl prev_pid=19 prev_prio=-1 prev_state=I ==> next_comm=irq/40 next_pid=101 next_prio=98
          irq/40-101   [000] d..2 1.060000: sched_switch: prev_comm=irq/40 prev_pid=101 prev_prio=125 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

const STATES: &str = "
     rcu_preempt-16    [000] d..2. 7.000000: sched_switch: prev_comm=rcu_preempt prev_pid=16 prev_prio=120 prev_state=I ==> next_comm=gdb next_pid=30 next_prio=120
             gdb-30    [000] d..2. 7.001000: sched_switch: prev_comm=gdb prev_pid=30 prev_prio=120 prev_state=t ==> next_comm=stp next_pid=31 next_prio=120
             stp-31    [000] d..2. 7.002000: sched_switch: prev_comm=stp prev_pid=31 prev_prio=120 prev_state=T ==> next_comm=zmb next_pid=32 next_prio=120
             zmb-32    [000] d..2. 7.003000: sched_switch: prev_comm=zmb prev_pid=32 prev_prio=120 prev_state=Z ==> next_comm=pre next_pid=33 next_prio=120
             pre-33    [000] d..2. 7.004000: sched_switch: prev_comm=pre prev_pid=33 prev_prio=120 prev_state=R+ ==> next_comm=ded next_pid=34 next_prio=120
             ded-34    [000] d..2. 7.005000: sched_switch: prev_comm=ded prev_pid=34 prev_prio=120 prev_state=X ==> next_comm=prk next_pid=35 next_prio=120
             prk-35    [000] d..2. 7.006000: sched_switch: prev_comm=prk prev_pid=35 prev_prio=120 prev_state=P ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

fn parse(text: &str) -> Trace {
    read("text", text.as_bytes()).expect("a recording")
}

fn written(trace: &Trace) -> String {
    let mut text = Vec::new();
    write_ftrace(trace, &mut text).expect("memory takes it");
    String::from_utf8(text).expect("text")
}

/// The fields of each switch.
fn switches(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| Some(line.split_once("sched_switch: ")?.1)).collect()
}

#[test]
fn priorities_and_states_are_printed_as_they_were_read() {
    for text in [CLASSES, STATES] {
        let trace = parse(text);
        let again = written(&trace);
        // A change lies before the event that shows it: the switch to a lower priority has the one at its end.
        assert_eq!(switches(&again), switches(text));
        let back = parse(&again);
        assert_eq!((back.tasks(), back.len()), (trace.tasks(), trace.len()));
        assert_eq!(back.digest(), trace.digest());
    }
}

#[test]
fn a_class_is_known_from_the_start_and_at_each_change() {
    let trace = parse(CLASSES);
    let classes: Vec<_> = trace.tasks()[1..].iter().map(|task| (task.nice, task.rt_prio)).collect();
    let prio = |prio| RtPrio::new(prio);
    assert_eq!(classes, [(None, prio(49)), (None, prio(0)), (None, prio(-1))]);
    let irq = TaskId(1);
    let changes: Vec<_> = trace
        .events()
        .filter(|event| !matches!(event.kind, EventKind::Switch { .. }))
        .map(|Event { time_ns, kind, .. }| (time_ns, kind))
        .collect();
    let to_98 = EventKind::RtPrio { task: irq, prio: prio(98).expect("a priority") };
    assert_eq!(
        changes,
        [(1_050_000_000, to_98), (1_060_000_000, EventKind::Nice { task: irq, nice: 5 })]
    );
}

#[test]
fn every_state_has_its_own_letter() {
    let mut texts: Vec<_> = TaskState::ALL.iter().map(|state| state.text()).collect();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), TaskState::ALL.len());
    let read: Vec<_> = parse(STATES)
        .events()
        .filter_map(|event| match event.kind {
            EventKind::Switch { prev_state, .. } => Some(prev_state.text()),
            _ => None,
        })
        .collect();
    assert_eq!(read, ["I", "t", "T", "Z", "R+", "X", "P"]);
}
