//! Task states as an observer sees them.

use crate::tape::{IDLE, MS, Tape};
use fairground_analysis::states::{Cause, Change, Observer, State, States, Task, TimeKind};
use fairground_trace::{Event, EventKind, LockFlags, TaskId, TaskState, Trace};

#[derive(Default)]
struct Log {
    now_ns: u64,
    changes: Vec<(u64, State, State, TimeKind)>,
    causes: Vec<Cause>,
    wakers: Vec<Option<TaskId>>,
}

impl Observer for Log {
    fn on_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn on_event(&mut self, _: &Trace, _: &States, _: &Event) {}

    fn on_change(&mut self, task: &Task, change: &Change) {
        // The first task alone.
        if task.id == TaskId(1) {
            self.changes.push((self.now_ns, change.from, task.state, change.time));
            self.causes.push(change.cause);
            self.wakers.push(task.waker);
        }
    }
}

fn logged(tape: Tape) -> (Log, States) {
    let trace = tape.end(100 * MS);
    let mut log = Log::default();
    let states = States::of(&trace, true).observe(&trace, &mut log);
    (log, states)
}

#[test]
fn a_life_is_a_chain_of_changes() {
    let mut tape = Tape::new(2);
    let (task, other) = (tape.task("task"), tape.task("other"));
    tape.start(1, task, 0).preempt(3, 0, IDLE, task).block(10, 0, task, IDLE);
    tape.event(20, 1, EventKind::Waking { task, waker: other, target_cpu: 0 });
    tape.wakeup(21, task, 1).preempt(26, 1, IDLE, task);
    tape.switch(30, 1, task, TaskState::Dead, IDLE);
    let (log, states) = logged(tape);
    use State::{Absent, Asleep, Initial, Running, Waiting, Waking};
    assert_eq!(
        log.changes,
        [
            (1, Initial, Waiting, TimeKind::Absent),
            (3, Waiting, Running, TimeKind::Queued),
            (10, Running, Asleep, TimeKind::Run),
            (20, Asleep, Waking, TimeKind::Sleep),
            (21, Waking, Waiting, TimeKind::Waking),
            (26, Waiting, Running, TimeKind::Queued),
            (30, Running, Absent, TimeKind::Run),
        ]
    );
    let second_run = Cause::SwitchIn {
        wait_ns: Some(6),
        latency_ns: Some(6),
        missed_wakeup: false,
        changed_cpu: true,
    };
    assert_eq!(log.causes[5], second_run);
    assert_eq!(log.wakers[3..], [Some(other); 4]);
    assert_eq!(states.task(task).state, Absent);
    assert_eq!(states.irregularities().broken_switches, 0);
}

#[test]
fn a_loss_ends_what_was_known_of_the_running_task() {
    let mut tape = Tape::new(1);
    let task = tape.task("task");
    tape.start(1, task, 0).preempt(3, 0, IDLE, task);
    tape.event(9, 0, EventKind::Lost { count: 1 });
    let (log, states) = logged(tape);
    let last = log.changes.last().copied();
    assert_eq!(last, Some((9, State::Running, State::Unknown, TimeKind::Run)));
    assert_eq!((log.causes.last(), states.cpus()[0].running), (Some(&Cause::Loss), None));
}

#[test]
fn a_task_waits_for_a_lock_until_it_has_it() {
    let mut tape = Tape::new(1);
    let (task, lock) = (tape.task("task"), tape.trace.intern("queue"));
    let begin = EventKind::ContentionBegin { task, lock, flags: LockFlags::MUTEX, holder: IDLE };
    tape.event(5, 0, begin);
    let at_lock = |tape: Tape| logged(tape).1.task(task).lock;
    let mut ended = Tape { trace: tape.trace.clone() };
    ended.event(9, 0, EventKind::ContentionEnd { task, lock });
    assert_eq!((at_lock(tape), at_lock(ended)), (Some(lock), None));
}
