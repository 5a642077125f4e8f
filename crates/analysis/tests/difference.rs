//! Laws of the comparison of recordings, and what it says of small ones written by hand.

use fairground_analysis::difference::{
    Cause, CauseKind, Detail, Difference, Recorded, TimeShare, Work,
};
use fairground_analysis::{Analysis, Options};
use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace};
use proptest::prelude::*;

use crate::tape::{IDLE, MS, Tape};

fn side<'a>(traces: &[&'a Trace]) -> Vec<Recorded<'a>> {
    traces.iter().map(|trace| Recorded { trace, asked: None }).collect()
}

fn compared(before: &[&Trace], after: &[&Trace], detail: Detail) -> Difference {
    Difference::of(&side(before), &side(after), detail)
}

/// Sums of times as floats.
fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()))
}

/// Any events, also those that contradict each other.
fn events() -> impl Strategy<Value = Trace> {
    let event = (0..8u8, 0..3u32, 0..6u32, 0..6u32, 0..3u8, 1..5_000u64);
    prop::collection::vec(event, 1..200).prop_map(|events| {
        let mut trace = Trace::new(3);
        for (pid, name) in (10..).zip(["make", "cc1", "cc1", "worker-1", "ticker"]) {
            trace.add_task(TaskInfo::new(pid, name));
        }
        let mut now_ns = 1_000;
        for (kind, cpu, one, other, state, after_ns) in events {
            now_ns += after_ns;
            let (task, next) = (TaskId(one), TaskId(other));
            let prev_state = [TaskState::Runnable, TaskState::Sleeping, TaskState::Zombie];
            let kind = match kind {
                0..=3 => {
                    EventKind::Switch { prev: task, prev_state: prev_state[state as usize], next }
                }
                4 => EventKind::Waking { task, waker: next, target_cpu: cpu },
                5 => EventKind::Wakeup { task, target_cpu: cpu },
                6 => EventKind::Migrate { task, from_cpu: 0, to_cpu: cpu },
                _ => match state {
                    0 => EventKind::Fork { parent: next, child: task },
                    1 => EventKind::WakeupNew { task, target_cpu: cpu },
                    _ => EventKind::Lost { count: 1 },
                },
            };
            trace.push(Event { time_ns: now_ns, cpu, insns: 0, kind });
        }
        trace.end_ns = now_ns + 500;
        trace
    })
}

proptest! {
    /// The parts of a role's life add up to it, before, after and in their difference, whatever the events are.
    #[test]
    fn parts_add_up(before in prop::collection::vec(events(), 1..3), after in prop::collection::vec(events(), 1..3)) {
        let [before, after]: [Vec<&Trace>; 2] = [before.iter().collect(), after.iter().collect()];
        for detail in [Detail::Group, Detail::Task] {
            let difference = compared(&before, &after, detail);
            for role in &difference.roles {
                let sum = |of: &dyn Fn(&fairground_analysis::difference::Change) -> f64| {
                    role.parts.iter().map(|(_, change)| of(change)).sum::<f64>()
                };
                prop_assert!(is_near(sum(&|change| change.before), role.life.before));
                prop_assert!(is_near(sum(&|change| change.after), role.life.after));
                prop_assert!(is_near(sum(&|change| change.difference()), role.life.difference()));
                let unknown = role.part(TimeShare::Unknown).after;
                let parts = role.run.after + role.wait.after + role.sleep.after + unknown;
                prop_assert!(is_near(parts, role.life.after));
                // No task lives for longer than the recordings last.
                let window = difference.machine.window.after.max(difference.machine.window.before);
                let most = match role.work {
                    Some(Work::Tasks | Work::Pace) => f64::INFINITY,
                    _ => role.tasks.after.max(1.0) * window * 2.0,
                };
                prop_assert!(role.life.after <= most);
            }
            // What is lost by a cause is what its victims lose by it.
            for cause in &difference.causes {
                let victims: f64 = cause.victims.iter().map(|(_, lost)| lost.difference()).sum();
                prop_assert!(is_near(victims, cause.lost.difference()));
            }
        }
    }

    /// A recording that is compared with itself shows no difference.
    #[test]
    fn nothing_differs_from_itself(trace in events()) {
        let difference = compared(&[&trace], &[&trace], Detail::Task);
        prop_assert!(difference.roles.iter().all(|role| !role.is_one_sided()));
        prop_assert!(difference.causes.iter().all(|cause| is_near(cause.lost.difference(), 0.0)));
    }

    /// Running and waiting are the times that the metrics have, where events do not contradict each other.
    #[test]
    fn times_are_those_of_the_metrics(seed in any::<u64>()) {
        let trace = turns(seed, 300);
        let analysis = Analysis::of(&trace, &Options::default());
        let difference = compared(&[&trace], &[&trace], Detail::Group);
        for role in &difference.roles {
            let group = analysis.group(&difference.names[role.role]).expect("a group of that name");
            prop_assert!(is_near(role.cpu_time.after, group.figures.run_ns as f64));
            let tasks = if role.work == Some(Work::Tasks) { role.tasks.after } else { 1.0 };
            prop_assert!(tasks > 0.0 && is_near(role.wait.after, group.figures.wait_ns as f64));
        }
    }
}

/// Tasks of one CPU that run, are preempted, sleep and wake up in a drawn order.
fn turns(mut seed: u64, count: usize) -> Trace {
    let mut draw = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    let mut tape = Tape::new(1);
    let tasks: Vec<TaskId> = ["a", "b", "c"].map(|name| tape.task(name)).to_vec();
    let (mut queue, mut asleep, mut running) = (Vec::new(), Vec::new(), IDLE);
    for task in &tasks {
        tape.start(1_000, *task, 0);
        queue.push(*task);
    }
    let mut now_ns = 1_000;
    for _ in 0..count {
        now_ns += 1 + draw(2_000) as u64;
        if !asleep.is_empty() && draw(3) == 0 {
            let task: TaskId = asleep.swap_remove(draw(asleep.len()));
            tape.waking(now_ns, task, 0).wakeup(now_ns, task, 0);
            queue.push(task);
            continue;
        }
        let sleeps = draw(2) == 0;
        let next = if queue.is_empty() { IDLE } else { queue.swap_remove(draw(queue.len())) };
        if next == IDLE && (running == IDLE || !sleeps) {
            continue;
        }
        match sleeps {
            true => tape.block(now_ns, 0, running, next),
            false => tape.preempt(now_ns, 0, running, next),
        };
        if running != IDLE {
            if sleeps { asleep.push(running) } else { queue.push(running) }
        }
        running = next;
    }
    tape.end(now_ns + 1_000)
}

/// `cc1` runs for 100 ms; `ticker`, if it is there, takes the CPU from it for 1 ms after each 4 ms that it ran.
fn compile(ticker: bool) -> Trace {
    let mut tape = Tape::new(1);
    let make = tape.task("make");
    let cc1 = tape.task("cc1");
    let tick = ticker.then(|| tape.task("ticker"));
    tape.start(0, make, 0).switch(0, 0, IDLE, TaskState::Runnable, make);
    tape.event(MS, 0, EventKind::Fork { parent: make, child: cc1 });
    tape.start(MS, cc1, 0).block(MS, 0, make, cc1);
    let mut now_ns = MS;
    for _ in 0..25 {
        now_ns += 4 * MS;
        if let Some(tick) = tick {
            tape.waking(now_ns, tick, 0).wakeup(now_ns, tick, 0).preempt(now_ns, 0, cc1, tick);
            now_ns += MS;
            tape.block(now_ns, 0, tick, cc1);
        }
    }
    tape.event(now_ns, 0, EventKind::Waking { task: make, waker: cc1, target_cpu: 0 });
    tape.wakeup(now_ns, make, 0);
    tape.event(now_ns, 0, EventKind::Exit { task: cc1 });
    tape.switch(now_ns, 0, cc1, TaskState::Zombie, make);
    tape.switch(now_ns + MS, 0, make, TaskState::Zombie, IDLE);
    tape.end(now_ns + 2 * MS)
}

fn first(difference: &Difference) -> (&Cause, &str) {
    let cause = difference.causes.first().expect("a cause");
    (cause, &difference.names[cause.role])
}

#[test]
fn a_sleeper_that_preempts_is_the_cause() {
    let difference = compared(&[&compile(false)], &[&compile(true)], Detail::Group);
    let (cause, name) = first(&difference);
    assert_eq!((cause.kind, name), (CauseKind::TakesCpu, "ticker"));
    assert_eq!(cause.lost.difference(), 25e6);
    assert_eq!(cause.victims.len(), 1);
    let victim = difference.role(cause.victims[0].0).expect("it is compared");
    assert_eq!(difference.names[victim.role], "cc1");
    assert_eq!((victim.work, victim.life.difference()), (Some(Work::Tasks), 25e6));
    assert_eq!(victim.part(TimeShare::WaitsBehind(cause.role)).difference(), 25e6);
    // 25 preemptions in a life of 125 ms, all when it woke up.
    let preemptions = difference.preemptions(victim.role, cause.role);
    assert!(is_near(preemptions.after, 25.0 / 0.125), "{preemptions:?}");
    assert_eq!(difference.wakeup_preemptions(victim.role, cause.role).after, preemptions.after);
    // `make` sleeps longer for `cc1`, which is not another cause.
    assert!(difference.causes.iter().all(|cause| cause.kind != CauseKind::IsWaitedFor));
    let ticker = difference.role(cause.role).expect("it is compared");
    assert!(ticker.is_new() && ticker.cpu_time.after == 25e6);
    // The other way round the same time is gained.
    let back = compared(&[&compile(true)], &[&compile(false)], Detail::Group);
    assert!(back.causes.iter().all(|cause| cause.lost.difference() <= 0.0), "{:?}", back.causes);
}

#[test]
fn several_recordings_a_side_give_intervals() {
    let (quiet, loud) = (compile(false), compile(true));
    let difference = compared(&[&quiet, &quiet], &[&loud, &loud], Detail::Group);
    let (cause, _) = first(&difference);
    assert_eq!(cause.lost.interval, Some((25e6, 25e6)));
    assert_eq!(cause.lost.is_beyond_noise(), Some(true));
    let mixed = compared(&[&quiet, &loud], &[&loud, &quiet], Detail::Group);
    assert!(mixed.causes.iter().all(|cause| cause.lost.is_beyond_noise() != Some(true)));
    let single = compared(&[&quiet], &[&loud, &loud], Detail::Group);
    assert!(single.causes.iter().all(|cause| cause.lost.interval.is_none()));
}

/// `boss` wakes a worker of that name for each of ten jobs of 2 ms.
fn jobs(worker: &str, other: &str) -> Trace {
    let mut tape = Tape::new(1);
    let (boss, other, worker) = (tape.task("boss"), tape.task(other), tape.task(worker));
    let mut now_ns = 0;
    tape.switch(now_ns, 0, IDLE, TaskState::Runnable, boss);
    for _ in 0..10 {
        now_ns += MS;
        tape.event(now_ns, 0, EventKind::Waking { task: worker, waker: boss, target_cpu: 0 });
        tape.wakeup(now_ns, worker, 0).block(now_ns, 0, boss, worker);
        now_ns += 2 * MS;
        tape.event(now_ns, 0, EventKind::Waking { task: boss, waker: worker, target_cpu: 0 });
        tape.wakeup(now_ns, boss, 0).block(now_ns, 0, worker, boss);
    }
    tape.waking(now_ns, other, 0).wakeup(now_ns, other, 0).block(now_ns + MS, 0, boss, other);
    tape.block(now_ns + 2 * MS, 0, other, IDLE);
    tape.end(now_ns + 3 * MS)
}

#[test]
fn tasks_are_matched_by_number_and_by_place() {
    let names = |before: &Trace, after: &Trace| {
        let difference = compared(&[before], &[after], Detail::Group);
        let both = difference.roles.iter().filter(|role| !role.is_one_sided());
        let mut names: Vec<String> = both.map(|role| difference.names[role.role].clone()).collect();
        names.sort();
        (names, difference.renamed)
    };
    let own = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    let before = jobs("worker-12", "kswapd");
    assert_eq!(
        names(&before, &jobs("worker-77", "kswapd")),
        (own(["boss", "kswapd", "worker-#"]), vec![])
    );
    // Another name in the same place; the other task has no neighbour that both sides have.
    let renamed = vec![("worker-12".to_owned(), "server".to_owned())];
    let (both, found) = names(&before, &jobs("server", "kcompactd"));
    assert_eq!((both, found), (["boss", "server"].map(str::to_owned).to_vec(), renamed));
}

#[test]
fn tasks_of_one_name_are_matched_by_neighbours_and_order() {
    let trace = |swapped: bool| {
        let mut tape = Tape::new(1);
        let (boss, one, other) = (tape.task("boss"), tape.task("java"), tape.task("java"));
        let (woken, alone) = if swapped { (other, one) } else { (one, other) };
        tape.switch(0, 0, IDLE, TaskState::Runnable, boss);
        tape.event(MS, 0, EventKind::Waking { task: woken, waker: boss, target_cpu: 0 });
        tape.wakeup(MS, woken, 0).block(MS, 0, boss, woken);
        tape.waking(2 * MS, alone, 0).wakeup(2 * MS, alone, 0).block(2 * MS, 0, woken, alone);
        tape.block(7 * MS, 0, alone, IDLE);
        tape.end(8 * MS)
    };
    let difference = compared(&[&trace(false)], &[&trace(true)], Detail::Task);
    assert!(difference.names.iter().any(|name| name == "java #2"), "{:?}", difference.names);
    for role in &difference.roles {
        assert_eq!(role.cpu_time.difference(), 0.0, "{}", difference.names[role.role]);
    }
}
