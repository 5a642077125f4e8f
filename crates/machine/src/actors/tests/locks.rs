//! Locks between actors: the order in which they get them, and what is an error.

use fairground_workload::{Lock, LockKind, Op, TaskSpec, Workload};

use super::toy::{Toy, group, mark, run, sleep, workload};
use crate::actors::ActorError;

pub(super) fn lock(name: &str, kind: LockKind) -> Lock {
    Lock { name: name.to_owned(), kind, adaptive: false, steal: true }
}

fn with_locks(tasks: Vec<TaskSpec>, locks: &[Lock]) -> Workload {
    Workload { locks: locks.to_vec(), ..workload(tasks) }
}

fn lines(workload: &Workload, syscall_ns: u64, cpus: usize) -> Vec<String> {
    let mut toy = Toy::new(workload, syscall_ns, cpus);
    toy.until(10_000).unwrap();
    toy.lines()
}

/// Three tasks come one after the other while a fourth has the lock: they get it in that order, whatever the kind.
#[test]
fn waiters_get_a_lock_in_the_order_in_which_they_came() {
    for (kind, _) in LockKind::ALL {
        let comes = |name: &str, after: u64| {
            let section = vec![run(after), Op::Lock(0), run(50), mark("in"), Op::Unlock(0)];
            group(name, 1, section)
        };
        let tasks = vec![comes("a", 1), comes("b", 10), comes("c", 20), comes("d", 30)];
        let lines = lines(&with_locks(tasks, &[lock("l", kind)]), 0, 8);
        let order: Vec<&str> =
            lines.iter().filter_map(|line| line.split_once(": in").map(|(who, _)| who)).collect();
        assert_eq!(order, ["51 a", "101 b", "151 c", "201 d"], "{kind:?}");
        let waits = lines.iter().filter(|line| line.contains("waits for l of")).count();
        // Of an rwlock all are woken each time, and those that lose wait for the new owner.
        let expected = if kind == LockKind::RwLock { 6 } else { 3 };
        assert_eq!(waits, expected, "{kind:?} {lines:?}");
    }
}

/// A lock that no other wants costs no system call; one that others wait for costs one to wait and one to give back.
#[test]
fn only_contention_costs_system_calls() {
    let alone = vec![Op::Lock(0), run(10), Op::Unlock(0), mark("out")];
    for (kind, _) in LockKind::ALL {
        let one = with_locks(vec![group("a", 1, alone.clone())], &[lock("l", kind)]);
        assert_eq!(lines(&one, 7, 1)[0], "10 a: out 0", "{kind:?}");
    }
    let late = vec![run(1), Op::Lock(0), mark("in"), Op::Unlock(0)];
    let both = |kind| {
        let tasks = vec![group("a", 1, alone.clone()), group("b", 1, late.clone())];
        lines(&with_locks(tasks, &[lock("l", kind)]), 7, 2)
    };
    // Asked for at 1, a system call later at 8; free at 10, and the waiter is woken a system call later at 17.
    let mutex = both(LockKind::Mutex);
    assert_eq!(mutex[..3], ["8 b waits for l of a", "17 a: out 0", "17 b has l"]);
    let spin = both(LockKind::Spin);
    assert_eq!(spin[..3], ["1 b waits for l of a", "10 a: out 0", "10 b has l"]);
}

/// A mutex or rwlock that is free is taken by an actor that comes before the one that was woken, again and again.
#[test]
fn a_futex_is_never_handed_over() {
    let thief = vec![
        Op::Lock(0),
        run(10),
        Op::Unlock(0),
        Op::Lock(0),
        mark("stolen"),
        run(10),
        Op::Unlock(0),
        Op::Lock(0),
        mark("last"),
        Op::Unlock(0),
    ];
    let waiter = vec![Op::Lock(0), mark("got"), Op::Unlock(0)];
    let order = |kind| {
        let tasks = vec![group("t", 1, thief.clone()), group("w", 1, waiter.clone())];
        lines(&with_locks(tasks, &[lock("l", kind)]), 0, 2)
    };
    let stolen = [
        "0 w waits for l of t",
        "10 t: stolen 0",
        "20 t: last 0",
        "20 t ends",
        "20 w has l",
        "20 w: got 0",
        "20 w ends",
    ];
    assert_eq!(order(LockKind::Mutex), stolen);
    // With priority inheritance none overtakes one that waits; of the kernel's own locks on PREEMPT_RT equals do, again
    // and again.
    let rt = order(LockKind::RtMutex);
    assert_eq!(rt[1..4], ["10 t waits for l of ?", "10 w has l", "10 w: got 0"], "{rt:?}");
    let spin = order(LockKind::RtSpin);
    assert!(spin[1] == "10 t: stolen 0" && spin.contains(&"20 t: last 0".to_owned()), "{spin:?}");
}

#[test]
fn a_circle_of_locks_is_a_typed_error_that_names_it() {
    for (kind, _) in LockKind::ALL {
        let locks = [lock("a", kind), lock("b", kind), lock("c", kind)];
        let task = |name: &str, first, second| {
            let program = vec![
                Op::Lock(first),
                run(10),
                Op::Lock(second),
                Op::Unlock(second),
                Op::Unlock(first),
            ];
            group(name, 1, program)
        };
        let tasks = vec![task("x", 0, 1), task("y", 1, 2), task("z", 2, 0)];
        let error = Toy::new(&with_locks(tasks, &locks), 0, 3).until(100).unwrap_err();
        let ActorError::Deadlock { chain, time_ns: 10 } = &error else { panic!("{error}") };
        assert_eq!(
            chain,
            "`z` waits for the lock `a`, which `x` has; `x` waits for the lock `b`, which `y` has; \
             `y` waits for the lock `c`, which `z` has"
        );
    }
}

/// A workload that is meant to hang: the kernel refuses neither circle of mutexes, and the others go on.
#[test]
fn a_circle_of_mutexes_waits_where_that_is_meant() {
    let locks = [lock("a", LockKind::Mutex), lock("b", LockKind::Mutex)];
    let both = |first, second| vec![Op::Lock(first), run(10), Op::Lock(second), run(1)];
    let twice = vec![Op::Lock(0), run(10), Op::Lock(0), run(1)];
    let goes_on = || group("other", 1, vec![run(90), mark("on")]);
    for tasks in [
        vec![group("x", 1, both(0, 1)), group("y", 1, both(1, 0)), goes_on()],
        vec![group("x", 1, twice), goes_on()],
    ] {
        let cpus = tasks.len();
        let workload = with_locks(tasks, &locks);
        assert!(Toy::new(&workload, 0, cpus).until(100).is_err());
        let hangs = Workload { hangs: true, ..workload };
        Toy::new(&hangs, 0, cpus).until(100).expect("the others go on");
    }
}

#[test]
fn misuse_that_was_not_checked_before_is_a_typed_error() {
    let error = |program: Vec<Op>| {
        let one = with_locks(vec![group("a", 1, program)], &[lock("l", LockKind::Mutex)]);
        Toy::new(&one, 0, 1).until(100).unwrap_err().to_string()
    };
    let run = run(1);
    assert_eq!(
        error(vec![run.clone(), Op::Unlock(0)]),
        "task `a` releases the lock `l`, which it does not hold at 1 ns"
    );
    assert_eq!(
        error(vec![Op::Lock(0), run.clone(), Op::Lock(0)]),
        "task `a` takes the lock `l`, which it holds at 1 ns"
    );
    assert_eq!(error(vec![Op::Lock(0), run]), "task `a` exits while it holds the lock `l` at 1 ns");
}

/// A signal ends the wait for a mutex, and the task waits again behind the others; inside the kernel it is handled
/// afterwards.
#[test]
fn signals_and_waiting_for_locks() {
    let order = |kind| {
        let mut waiter =
            group("w", 1, vec![sleep(10), Op::Lock(0), mark("in"), Op::Unlock(0), run(1)]);
        waiter.on_signal = vec![mark("handled")];
        let tasks = vec![
            group("h", 1, vec![Op::Lock(0), run(100), Op::Unlock(0)]),
            waiter,
            group("v", 1, vec![sleep(20), Op::Lock(0), mark("in"), Op::Unlock(0)]),
            group("s", 1, vec![sleep(50), Op::Signal(fairground_workload::Role::All(1))]),
        ];
        let lines = lines(&with_locks(tasks, &[lock("l", kind)]), 0, 8);
        lines.into_iter().filter(|line| line.contains(": ")).collect::<Vec<_>>()
    };
    for kind in [LockKind::Mutex, LockKind::RtMutex] {
        assert_eq!(order(kind), ["50 w: handled 0", "100 v: in 0", "100 w: in 0"], "{kind:?}");
    }
    for kind in [LockKind::Spin, LockKind::RtSpin] {
        assert_eq!(order(kind), ["100 w: in 0", "100 w: handled 0", "100 v: in 0"], "{kind:?}");
    }
}
