//! Laws of waiting, for random programs: no wake-up is lost, owners exclude others, and nothing is lost or doubled.

use fairground_workload::{Barrier, LockKind, Op, Program, Workload};
use proptest::prelude::*;

use super::locks::lock;
use super::toy::{Toy, costs, group, mark, run, sleep, workload};
use crate::actors::{Actors, Effect, Need};

const END_NS: u64 = 1_000_000;

/// A section under the lock, with marks where it begins and ends.
fn section(kind: LockKind, shared: bool, inside: Op) -> Program {
    let take = match (kind, shared) {
        (LockKind::RwLock, true) => Op::ReadLock(0),
        (LockKind::RwLock, false) => Op::WriteLock(0),
        _ => Op::Lock(0),
    };
    let (begin, end) =
        if matches!(take, Op::ReadLock(_)) { ("reads", "read") } else { ("in", "out") };
    vec![take, mark(begin), inside, mark(end), Op::Unlock(0)]
}

/// Tasks that take the lock `times` times each, with so much between and inside.
fn sections(kind: LockKind, tasks: &[(u64, u64, bool, bool)], times: u64) -> Workload {
    let groups = tasks.iter().enumerate().map(|(nth, (outside, inside, sleeps, shared))| {
        let inside = if *sleeps && !kind.is_atomic() { sleep(*inside) } else { run(*inside) };
        let mut body = vec![run(*outside)];
        body.extend(section(kind, *shared, inside));
        group(&format!("t{nth}"), 1, vec![Op::Loop(Some(times), body)])
    });
    Workload { locks: vec![lock("l", kind)], ..workload(groups.collect()) }
}

fn finished(w: &Workload, syscall_ns: u64, cpus: usize) -> Vec<String> {
    let mut toy = Toy::new(w, syscall_ns, cpus);
    toy.until(END_NS).unwrap();
    let ends = toy.log.iter().filter(|(_, text)| text.ends_with(" ends")).count();
    assert_eq!(ends, toy.states.len(), "a task never came to its end: {:?}", toy.lines());
    toy.log.into_iter().map(|(_, text)| text).collect()
}

fn task() -> impl Strategy<Value = (u64, u64, bool, bool)> {
    (1_u64..30, 1_u64..30, any::<bool>(), any::<bool>())
}

proptest! {
    #[test]
    fn owners_exclude_others_and_all_get_the_lock(
        kind in 0_usize..LockKind::ALL.len(),
        tasks in proptest::collection::vec(task(), 1..6),
        cpus in 1_usize..4,
        syscall_ns in 0_u64..9,
    ) {
        let (kind, _) = LockKind::ALL[kind];
        let (mut owners, mut readers) = (0, 0);
        for line in finished(&sections(kind, &tasks, 8), syscall_ns, cpus) {
            match line.split(": ").nth(1).and_then(|text| text.split(' ').next()) {
                Some("in") => owners += 1,
                Some("out") => owners -= 1,
                Some("reads") => readers += 1,
                Some("read") => readers -= 1,
                _ => {}
            }
            prop_assert!(owners == 0 || (owners == 1 && readers == 0), "{}", line);
        }
    }

    /// As many messages are received as are sent, whichever way tasks overtake each other, with room for a few.
    #[test]
    fn messages_are_neither_lost_nor_doubled(
        senders in proptest::collection::vec((1_u64..20, 1_u64..5), 1..5),
        receivers in 1_u64..5,
        batch in 1_u32..4,
        capacity in proptest::option::of(0_u64..5),
        cpus in 1_usize..4,
        syscall_ns in 0_u64..9,
    ) {
        let each = receivers * u64::from(batch);
        let mut groups = Vec::new();
        for (nth, (pause, burst)) in senders.iter().enumerate() {
            let mut body = vec![run(*pause)];
            body.extend((0..*burst * each).map(|_| Op::Send(0)));
            groups.push(group(&format!("s{nth}"), 1, vec![Op::Loop(Some(3), body)]));
        }
        let sent: u64 = senders.iter().map(|(_, burst)| 3 * burst * each).sum();
        let body = vec![Op::Receive(0, batch), mark("got"), run(3)];
        let rounds = sent / each;
        groups.push(group("r", receivers as u32, vec![Op::Loop(Some(rounds), body)]));
        let mut w = workload(groups);
        w.queues[0].capacity = capacity;
        let got = finished(&w, syscall_ns, cpus);
        let got = got.iter().filter(|line| line.contains(": got")).count() as u64;
        prop_assert_eq!(got * u64::from(batch), sent);
    }

    /// No task leaves a barrier before the last has come.
    #[test]
    fn barriers_hold_until_the_last_has_come(
        work in proptest::collection::vec(1_u64..40, 1..6),
        cpus in 1_usize..4,
        syscall_ns in 0_u64..9,
    ) {
        let count = work.len();
        let groups = work.iter().enumerate().map(|(nth, ns)| {
            let body = vec![run(*ns), mark("comes"), Op::Barrier(0), mark("goes")];
            group(&format!("t{nth}"), 1, vec![Op::Loop(Some(6), body)])
        });
        let mut w = workload(groups.collect());
        w.barriers = vec![Barrier { name: "b".to_owned(), count: count as u32 }];
        let (mut come, mut gone) = (0, 0);
        for line in finished(&w, syscall_ns, cpus) {
            come += usize::from(line.contains("comes"));
            gone += usize::from(line.contains("goes"));
            prop_assert!(gone == 0 || come >= gone.div_ceil(count) * count, "{} {} {}", line, come, gone);
        }
    }
}

/// The kernel's work and a preemption come between a wake-up and what its waker does next in user mode: the second
/// message is sent after the receiver could take the first.
#[test]
fn what_follows_a_wake_up_waits_for_the_kernel() {
    let w = workload(vec![
        group("r", 1, vec![Op::Receive(0, 2)]),
        group("s", 1, vec![Op::Send(0), Op::Send(0)]),
    ]);
    let mut actors = Actors::new(&w, 1, &costs(0)).unwrap();
    let [receiver, sender] = [0, 1].map(|spec| actors.spawn(spec, None));
    let mut effects = Vec::new();
    assert_eq!(actors.advance(receiver, 0, &mut effects).unwrap(), Need::Block);
    for (turn, (sends, receives)) in
        [(Need::Return, Need::Block), (Need::Exit, Need::Exit)].into_iter().enumerate()
    {
        effects.clear();
        assert_eq!(actors.advance(sender, 0, &mut effects).unwrap(), sends, "{turn}");
        let woken = effects.first();
        assert_eq!(woken, Some(&Effect::Wake { actor: receiver, sync: false }), "{turn}");
        assert_eq!(effects.len(), 1 + usize::from(sends == Need::Exit), "and it exits: {turn}");
        assert_eq!(actors.advance(receiver, 0, &mut effects).unwrap(), receives, "{turn}");
    }
}

/// A call that wakes several tasks wakes the next when the kernel's work for the one before is done, and only those
/// that waited when it began.
#[test]
fn a_call_wakes_one_task_after_the_other() {
    let mut w = workload(vec![group("b", 3, vec![Op::Loop(None, vec![Op::Barrier(0)])])]);
    w.barriers = vec![Barrier { name: "b".to_owned(), count: 3 }];
    let mut actors = Actors::new(&w, 1, &costs(0)).unwrap();
    let [first, second, last] = [0; 3].map(|spec| actors.spawn(spec, None));
    let mut effects = Vec::new();
    for waiter in [first, second] {
        assert_eq!(actors.advance(waiter, 0, &mut effects).unwrap(), Need::Block);
    }
    assert_eq!(actors.advance(last, 0, &mut effects).unwrap(), Need::InCall);
    assert_eq!(effects, [Effect::Wake { actor: first, sync: false }]);
    // It comes to the next round meanwhile.
    assert_eq!(actors.advance(first, 0, &mut effects).unwrap(), Need::Block);
    effects.clear();
    assert_eq!(actors.advance(last, 0, &mut effects).unwrap(), Need::Return);
    assert_eq!(effects, [Effect::Wake { actor: second, sync: false }]);
}
