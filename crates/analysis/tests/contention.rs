//! Waits, their sites and their blockers, on traces written by hand.

use crate::tape::{IDLE, MS, Tape};
use fairground_analysis::contention::{Contention, DEPTH, WaitKind};
use fairground_trace::{EventKind, LockFlags, TaskId, TaskState};

const READ: &str = "do_syscall_64;ksys_read;pipe_read;schedule;__schedule;__traceiter_sched_switch";
const MUTEX: &str =
    "do_syscall_64;do_work;mutex_lock;__mutex_lock_slowpath;__traceiter_contention_begin";

fn stack(tape: &mut Tape, time_ns: u64, cpu: u32, task: TaskId, text: &str) {
    let label = tape.trace.intern(text);
    tape.event(time_ns, cpu, EventKind::Stack { task, label });
}

fn waking(tape: &mut Tape, time_ns: u64, cpu: u32, task: TaskId, waker: TaskId) {
    tape.event(time_ns, cpu, EventKind::Waking { task, waker, target_cpu: cpu });
}

fn begin(tape: &mut Tape, time_ns: u64, cpu: u32, task: TaskId, holder: TaskId) {
    let lock = tape.trace.intern("queue");
    let flags = LockFlags::MUTEX;
    tape.event(time_ns, cpu, EventKind::ContentionBegin { task, lock, flags, holder });
}

fn end(tape: &mut Tape, time_ns: u64, cpu: u32, task: TaskId) {
    let lock = tape.trace.intern("queue");
    tape.event(time_ns, cpu, EventKind::ContentionEnd { task, lock });
}

/// A reader sleeps 10 ms at a pipe. The writer, on another CPU, runs 4 of them, waits 3 for its CPU, runs the last 3.
fn reader_and_writer() -> (Tape, TaskId, TaskId) {
    let mut tape = Tape::new(2);
    let (reader, writer) = (tape.task("reader/0"), tape.task("writer"));
    let other = tape.task("other");
    tape.preempt(0, 0, IDLE, reader).preempt(0, 1, IDLE, writer);
    tape.block(10 * MS, 0, reader, IDLE);
    stack(&mut tape, 10 * MS, 0, reader, READ);
    tape.preempt(14 * MS, 1, writer, other);
    stack(&mut tape, 14 * MS, 1, writer, "asm_timer;irqentry_exit;schedule;__schedule");
    tape.block(17 * MS, 1, other, writer);
    waking(&mut tape, 20 * MS, 1, reader, writer);
    tape.preempt(20 * MS, 0, IDLE, reader);
    tape.trace.end_ns = 30 * MS;
    (tape, reader, writer)
}

#[test]
fn a_wait_lasts_until_the_wake_up_and_tells_what_the_waker_did() {
    let (tape, ..) = reader_and_writer();
    let found = Contention::of(&tape.trace, DEPTH);
    let site = &found.sites[0];
    assert_eq!(site.name, "pipe_read()<-ksys_read()<-do_syscall_64()");
    assert_eq!((site.kind, site.waits.values_ns()), (WaitKind::Sleep, &[10 * MS][..]));
    let holder = site.holder;
    assert_eq!((holder.running_ns, holder.runnable_ns), (7 * MS, 3 * MS));
    assert_eq!((holder.sleeping_ns, holder.unknown_ns), (0, 0));
    let pair = &site.blockers[0];
    assert_eq!((pair.blocker.as_str(), pair.waiter.as_str()), ("writer", "reader"));
    assert_eq!((pair.count, pair.wait_ns), (1, 10 * MS));
}

/// `sched_blocked_reason`: the function alone, right before the switch, or at the wake-up by another task.
#[test]
fn the_function_of_an_uninterruptible_wait_is_its_site() {
    for is_before in [true, false] {
        let mut tape = Tape::new(2);
        let (reader, writer) = (tape.task("reader"), tape.task("writer"));
        tape.preempt(0, 0, IDLE, reader).preempt(0, 1, IDLE, writer);
        // A function that it is in when it goes on is of no wait.
        stack(&mut tape, MS, 0, reader, "unrelated");
        waking(&mut tape, 2 * MS, 0, writer, reader);
        if is_before {
            stack(&mut tape, 10 * MS, 0, reader, "folio_wait_bit_common");
        }
        let (prev_state, next) = (TaskState::Uninterruptible, IDLE);
        tape.event(10 * MS, 0, EventKind::Switch { prev: reader, prev_state, next });
        waking(&mut tape, 17 * MS, 1, reader, writer);
        if !is_before {
            stack(&mut tape, 17 * MS, 1, reader, "folio_wait_bit_common");
        }
        tape.preempt(18 * MS, 0, IDLE, reader);
        tape.block(20 * MS, 0, reader, IDLE);
        tape.trace.end_ns = 30 * MS;
        let found = Contention::of(&tape.trace, DEPTH);
        let site = &found.sites[0];
        assert_eq!(site.name, "folio_wait_bit_common()");
        assert_eq!((site.kind, site.waits.values_ns()), (WaitKind::Uninterruptible, &[7 * MS][..]));
        assert_eq!((found.with_stack, found.sites[1].name.as_str()), (1, "-"));
    }
}

#[test]
fn the_histogram_counts_every_stack_once_the_rarest_first() {
    let (tape, ..) = reader_and_writer();
    let found = Contention::of(&tape.trace, 3);
    let points: Vec<_> = found.points.iter().map(|p| (p.count, p.chain.text())).collect();
    assert_eq!(points[0], (1, "__schedule()<-schedule()<-irqentry_exit()".to_owned()));
    assert_eq!(points[1], (1, "__schedule()<-schedule()<-pipe_read()".to_owned()));
    let counted: u64 = found.points.iter().map(|point| point.count).sum();
    assert_eq!((counted, found.with_stack, found.switches), (2, 2, 3), "`other` had none");
    // Being preempted is no wait.
    assert_eq!(found.folded.len(), 1);
    assert_eq!(
        found.folded[0].stack,
        "reader;do_syscall_64;ksys_read;pipe_read;schedule;__schedule"
    );
    assert_eq!(found.folded[0].wait_ns, 10 * MS);
}

#[test]
fn a_stack_may_come_after_the_wake_up_by_another_cpu() {
    let mut tape = Tape::new(2);
    let (reader, writer) = (tape.task("reader"), tape.task("writer"));
    tape.preempt(0, 0, IDLE, reader).preempt(0, 1, IDLE, writer);
    tape.block(MS, 0, reader, IDLE);
    waking(&mut tape, MS + 10, 1, reader, writer);
    stack(&mut tape, MS + 20, 0, reader, READ);
    let found = Contention::of(&tape.trace, 1);
    assert_eq!(found.sites.len(), 1);
    assert_eq!(
        (found.sites[0].name.as_str(), found.sites[0].waits.values_ns()),
        ("pipe_read()", &[10][..])
    );
}

/// The waiter spins 1 ms, sleeps 5, and gets the lock; the first holder has it 2 ms of these and then goes to sleep
/// with it for 4.
fn at_a_lock(holder_is_known: bool) -> Tape {
    let mut tape = Tape::new(2);
    let (waiter, holder) = (tape.task("waiter"), tape.task("holder"));
    let known = if holder_is_known { holder } else { IDLE };
    tape.preempt(0, 0, IDLE, waiter).preempt(0, 1, IDLE, holder);
    begin(&mut tape, 10 * MS, 0, waiter, known);
    stack(&mut tape, 10 * MS, 0, waiter, MUTEX);
    tape.switch(11 * MS, 0, waiter, TaskState::Uninterruptible, IDLE);
    tape.block(12 * MS, 1, holder, IDLE).waking(15 * MS, holder, 1);
    tape.preempt(15 * MS, 1, IDLE, holder);
    waking(&mut tape, 16 * MS, 1, waiter, holder);
    tape.preempt(16 * MS, 0, IDLE, waiter);
    end(&mut tape, 16 * MS, 0, waiter);
    tape
}

#[test]
fn the_waits_of_the_chosen_tasks_count_with_their_blockers() {
    let tape = at_a_lock(true);
    let asked = |called: &str| {
        let infos = tape.trace.tasks().iter();
        Contention::of_tasks(&tape.trace, 2, &infos.map(|i| i.comm == called).collect::<Vec<_>>())
    };
    let waiter = asked("waiter");
    assert_eq!((waiter.lock_waits, waiter.switches), (1, 1));
    let [lock] = waiter.sites.as_slice() else { panic!("{:?}", waiter.sites) };
    assert_eq!(lock.blockers[0].blocker, "holder", "whose own sleep does not count");
    assert_eq!(lock.holder.sleeping_ns, 3 * MS);
    let holder = asked("holder");
    assert_eq!((holder.lock_waits, holder.lock_wait_ns(), holder.switches), (0, 0, 1));
    assert_eq!((holder.sites.len(), holder.sites[0].kind), (1, WaitKind::Sleep));
    let of_no_task = Contention::of_tasks(&tape.trace, 2, &[]);
    assert_eq!(of_no_task, Contention::default());
}

#[test]
fn plain_sleep_comes_last_however_long() {
    let mut tape = at_a_lock(true);
    let sleeper = tape.task("sleeper");
    tape.preempt(16 * MS, 1, IDLE, sleeper).block(17 * MS, 1, sleeper, IDLE);
    tape.waking(90 * MS, sleeper, 1).preempt(90 * MS, 1, IDLE, sleeper);
    let found = Contention::of(&tape.trace, 2);
    let order: Vec<_> = found.sites.iter().map(|s| (s.kind.name(), s.waits.sum_ns())).collect();
    assert_eq!(order, [("lock mutex".to_owned(), 6 * MS), ("sleep".to_owned(), 76 * MS)]);
}

#[test]
fn sleep_at_a_lock_is_a_part_of_that_wait() {
    let tape = at_a_lock(true);
    let found = Contention::of(&tape.trace, 2);
    assert_eq!(found.lock_waits, 1);
    let sites: Vec<_> = found.sites.iter().filter(|site| site.waits.count() > 0).collect();
    let [lock, asleep] = sites.as_slice() else { panic!("{:?}", found.sites) };
    assert_eq!(lock.name, "queue in __mutex_lock_slowpath()<-mutex_lock()");
    assert_eq!(lock.kind.name(), "lock mutex");
    assert_eq!(lock.waits.values_ns(), [6 * MS]);
    assert_eq!((lock.holder.running_ns, lock.holder.sleeping_ns), (3 * MS, 3 * MS));
    assert_eq!(asleep.waits.values_ns(), [3 * MS], "that of the holder");
}

#[test]
fn who_wakes_a_waiter_had_the_lock_where_the_kernel_does_not_tell() {
    let found = [true, false].map(|known| Contention::of(&at_a_lock(known).trace, 2));
    assert_eq!(found[0].sites[0], found[1].sites[0]);
}

#[test]
fn a_lock_that_changes_hands_is_told_of_each_holder() {
    let mut tape = Tape::new(3);
    let tasks = ["waiter", "first", "second"].map(|name| tape.task(name));
    for (cpu, task) in tasks.iter().enumerate() {
        tape.preempt(0, cpu as u32, IDLE, *task);
    }
    let [waiter, first, second] = tasks;
    begin(&mut tape, 10, 0, waiter, first);
    begin(&mut tape, 30, 0, waiter, second);
    end(&mut tape, 100, 0, waiter);
    let found = Contention::of(&tape.trace, 2);
    let pairs: Vec<_> =
        found.sites[0].blockers.iter().map(|pair| (pair.blocker.as_str(), pair.wait_ns)).collect();
    assert_eq!(pairs, [("second", 70), ("first", 20)]);
    assert_eq!(
        (found.sites[0].waits.values_ns(), found.sites[0].name.as_str()),
        (&[90][..], "queue")
    );
}

#[test]
fn what_the_trace_cuts_off_is_counted_and_not_measured() {
    let mut tape = Tape::new(1);
    let (sleeper, waiter) = (tape.task("sleeper"), tape.task("waiter"));
    tape.preempt(0, 0, IDLE, sleeper);
    tape.block(MS, 0, sleeper, waiter);
    stack(&mut tape, MS, 0, sleeper, READ);
    begin(&mut tape, 2 * MS, 0, waiter, sleeper);
    tape.trace.end_ns = 9 * MS;
    let found = Contention::of(&tape.trace, 1);
    for site in &found.sites {
        assert_eq!((site.waits.count(), site.waits.censored), (0, 1), "{site:?}");
    }
    assert_eq!(found.sites.len(), 2);
}

/// It is asked to wake on its way to sleep: what follows the switch is the scheduler's delay.
#[test]
fn a_task_that_is_woken_before_it_leaves_its_cpu_does_not_sleep() {
    let mut tape = Tape::new(2);
    let (task, other) = (tape.task("task"), tape.task("other"));
    tape.preempt(0, 0, IDLE, task).preempt(0, 1, IDLE, other);
    waking(&mut tape, MS, 0, task, other);
    tape.block(2 * MS, 0, task, IDLE);
    stack(&mut tape, 2 * MS, 0, task, READ);
    tape.wakeup(3 * MS, task, 0).preempt(9 * MS, 0, IDLE, task);
    let found = Contention::of(&tape.trace, 1);
    assert_eq!((found.switches, found.with_stack), (1, 1));
    assert!(found.sites.is_empty(), "{:?}", found.sites);
}
