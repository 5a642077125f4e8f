//! A scheduler that follows its own simulated trace decides what was decided in it; what differs is counted once.

use fairground_session::{
    Decision, DifferenceKind, FollowPlan, Followed, MachineSpec, Plan, RunSpec, Scheduler,
    TargetSpec, Unwatched, find_workload, read_recording,
};
use fairground_trace::{Event, EventKind, TaskId, TaskState, Trace};

/// A run under a scheduler, with its callbacks in the trace, and the machine that it ran on.
fn recorded(
    scheduler: &Scheduler,
    words: &str,
    cpus: u32,
    of: (&str, &str),
) -> (Trace, fairground_machine::MachineConfig) {
    recorded_with(scheduler, words, cpus, of, TargetSpec::default())
}

fn recorded_with(
    scheduler: &Scheduler,
    words: &str,
    cpus: u32,
    (costs, duration): (&str, &str),
    target: TargetSpec,
) -> (Trace, fairground_machine::MachineConfig) {
    let workload = find_workload(words).expect("a workload of the library");
    let machine = MachineSpec {
        cpus: Some(cpus),
        costs: Some(costs.to_owned()),
        duration: Some(duration.to_owned()),
        ..MachineSpec::default()
    };
    let spec = RunSpec { machine, target, ..RunSpec::default() };
    let run = spec.resolve(&workload, true).expect("a machine");
    let plan = Plan::new(scheduler, &workload, run.machine.clone(), run.duration_ns);
    (plan.run(&Unwatched).expect("a run").trace, run.machine)
}

fn follow(
    scheduler: &Scheduler,
    trace: &Trace,
    machine: &fairground_machine::MachineConfig,
) -> Followed {
    let plan = FollowPlan { trace, scheduler, settings: Vec::new(), machine: machine.clone() };
    plan.run(&Unwatched).expect("it follows")
}

fn load(name: &str) -> Scheduler {
    Scheduler::load(name, None, Default::default()).expect("a scheduler")
}

fn compared(followed: &Followed) -> u64 {
    followed.agreement.iter().map(|(_, agreement)| agreement.total()).sum()
}

/// The law: its own trace, 100 %.
fn agrees(name: &str, words: &str, cpus: u32, costs: (&str, &str)) {
    let scheduler = load(name);
    let (trace, machine) = recorded(&scheduler, words, cpus, costs);
    let followed = follow(&scheduler, &trace, &machine);
    let what = format!("{name} {words} on {cpus} CPUs, costs {}", costs.0);
    assert!(followed.exit.is_none(), "{what}: {:?}", followed.exit);
    assert!(followed.first.is_none(), "{what}: {:#?}", followed.kinds);
    assert!(compared(&followed) > 10, "{what}: {:?}", followed.agreement);
}

#[test]
fn a_scheduler_agrees_with_its_own_trace() {
    for name in ["cfs@6.1", "eevdf@6.18", "eevdf@7.2", "o1", "rfs", "sd", "fifo"] {
        for cpus in [1, 2, 8] {
            agrees(name, "sleepers:12", cpus, ("modern", "60ms"));
            agrees(name, "forkstorm:3", cpus, ("modern", "20ms"));
        }
    }
}

#[test]
fn it_does_so_where_wakers_preempt_and_balancing_moves_tasks() {
    for name in ["cfs@6.1", "eevdf@6.18", "eevdf@7.2", "o1", "rfs"] {
        for cpus in [1, 2, 8] {
            agrees(name, "hackbench:1", cpus, ("modern", "5ms"));
            agrees(name, "hogs:11", cpus, ("modern", "60ms"));
        }
        agrees(name, "yieldpair:2", 1, ("modern", "8ms"));
    }
}

/// A yield is a call and a callback: it takes place once.
#[test]
fn it_does_so_where_calls_show_yields_too() {
    let scheduler = load("eevdf@6.18");
    let target = TargetSpec { calls: true, ..TargetSpec::default() };
    let (trace, machine) = recorded_with(&scheduler, "yieldpair:2", 1, ("modern", "8ms"), target);
    let followed = follow(&scheduler, &trace, &machine);
    assert!(followed.first.is_none(), "{:#?}", followed.kinds);
    assert!(compared(&followed) > 10, "{:?}", followed.agreement);
}

#[test]
fn it_does_so_where_the_kernel_takes_no_time() {
    for name in ["cfs@6.1", "eevdf@6.18", "o1", "rfs", "sd", "fifo"] {
        for cpus in [1, 2] {
            agrees(name, "sleepers:12", cpus, ("zero", "60ms"));
            agrees(name, "hogs:5", cpus, ("zero", "100ms"));
        }
    }
}

/// The events of a trace, changed.
fn changed(trace: &Trace, mut change: impl FnMut(&mut EventKind)) -> Trace {
    let mut copy = trace.begun();
    trace.tasks().iter().skip(1).for_each(|task| {
        copy.add_task(task.clone());
    });
    for mut event in trace.events() {
        if !matches!(event.kind, EventKind::Callback { .. }) {
            change(&mut event.kind);
            copy.push(event);
        }
    }
    copy.end_ns = trace.end_ns;
    copy
}

#[test]
fn after_one_false_decision_the_next_ones_agree_again() {
    // One hog after the other; from one switch on two of them change places. In a queue they stay so; by virtual
    // times, the one that did not run is the next.
    for (name, for_ever) in [("fifo", true), ("cfs@6.1", false), ("eevdf@6.18", false)] {
        let scheduler = load(name);
        let (trace, machine) = recorded(&scheduler, "hogs:3", 1, ("zero", "400ms"));
        let next = |kind: &EventKind| match kind {
            EventKind::Switch { next, .. } => Some(*next),
            _ => None,
        };
        let order: Vec<_> = trace.events().filter_map(|event| next(&event.kind)).collect();
        let at = 7;
        let (one, other) = (order[at], order[at + 1]);
        let swap = |task| match task {
            task if task == one => other,
            task if task == other => one,
            task => task,
        };
        let last = if for_ever { usize::MAX - 1 } else { at + 1 };
        let mut switches = 0;
        let falsified = changed(&trace, |kind| {
            let EventKind::Switch { prev, next, .. } = kind else { return };
            if (at + 1..=last + 1).contains(&switches) {
                *prev = swap(*prev);
            }
            if (at..=last).contains(&switches) {
                *next = swap(*next);
            }
            switches += 1;
        });
        let followed = follow(&scheduler, &falsified, &machine);
        let different: u64 = followed.agreement.iter().map(|(_, a)| a.different).sum();
        let ties: u64 = followed.agreement.iter().map(|(_, a)| a.ties).sum();
        let Some(first) = &followed.first else {
            // The deadlines of equal hogs are equal: out of turn and back.
            assert_eq!((name, ties), ("eevdf@6.18", 2));
            continue;
        };
        assert_eq!((different, ties), (1, 0), "{name}: {:#?}", followed.kinds);
        assert_eq!((first.decision, first.kind), (Decision::Pick, DifferenceKind::OtherTask));
        let known: Vec<_> = first.candidates.iter().map(|candidate| candidate.task).collect();
        assert_eq!(known, [other, one], "{name}: the recorded one first");
    }
}

/// A trace of one CPU without its callbacks, whose events are stamped later than they were decided, by up to 3 µs,
/// those of one instant alike. With `charges`: with what a kernel would have charged.
fn stamped_late(trace: &Trace, charges: bool) -> Trace {
    let mut copy = trace.begun();
    trace.tasks().iter().skip(1).for_each(|task| {
        copy.add_task(task.clone());
    });
    let (mut running, mut since_ns, mut stamp_ns) = (TaskId::IDLE, 0, 0);
    for mut event in trace.events() {
        let decides = matches!(
            event.kind,
            EventKind::Switch { .. }
                | EventKind::Wakeup { .. }
                | EventKind::WakeupNew { .. }
                | EventKind::Tick { .. }
        );
        if matches!(event.kind, EventKind::Callback { .. }) {
            continue;
        }
        let runtime_ns = event.time_ns - since_ns;
        stamp_ns = stamp_ns.max(event.time_ns + event.time_ns * 7919 % 3000);
        event.time_ns = stamp_ns;
        let charge = EventKind::Charge { task: running, runtime_ns };
        let charge = Event { kind: charge, ..event };
        let is_charged = charges && decides && runtime_ns > 0 && !running.is_idle();
        let ticks = matches!(event.kind, EventKind::Tick { .. });
        if is_charged && !ticks {
            copy.push(charge);
        }
        copy.push(event);
        if is_charged && ticks {
            copy.push(charge);
        }
        if decides {
            since_ns += runtime_ns;
        }
        if let EventKind::Switch { next, .. } = event.kind {
            running = next;
        }
    }
    copy.end_ns = trace.end_ns.max(stamp_ns);
    copy
}

/// Tasks whose virtual times do not coincide.
const UNEQUAL: &str =
    "sleepers:5,run=131us,sleep=1709us + sleepers:4,run=413us,sleep=2903us + hogs:2";

#[test]
fn charges_say_what_late_stamps_do_not() {
    for name in ["cfs@6.1", "eevdf@6.18"] {
        let scheduler = load(name);
        let (trace, machine) = recorded(&scheduler, UNEQUAL, 1, ("zero", "400ms"));
        let different = |charges| {
            let followed = follow(&scheduler, &stamped_late(&trace, charges), &machine);
            let (of, pick) = followed.agreement[0];
            assert!(of == Decision::Pick && pick.total() > 500, "{name}: {pick:?}");
            (pick.different, pick.ties)
        };
        assert_eq!(different(true), (0, 0), "{name}: with charges");
        let (without, ties) = different(false);
        assert!(without == 0 && ties > 0, "{name}: {without} without charges, {ties} ties");
    }
}

/// Three tasks on one CPU; `fifo` would run b before c.
const BY_HAND: &str = "\
          <idle>-0       [000] d.h..     1.000000000: sched_waking: comm=a pid=10 prio=120 target_cpu=000
          <idle>-0       [000] d.h..     1.000001000: sched_wakeup: comm=a pid=10 prio=120 target_cpu=000
          <idle>-0       [000] d....     1.000003000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120
               a-10      [000] d.h..     1.001000000: sched_waking: comm=b pid=11 prio=120 target_cpu=000
               a-10      [000] d.h..     1.001001000: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000
               a-10      [000] d.h..     1.002000000: sched_waking: comm=c pid=12 prio=120 target_cpu=000
               a-10      [000] d.h..     1.002001000: sched_wakeup: comm=c pid=12 prio=120 target_cpu=000
               a-10      [000] d....     1.003000000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=c next_pid=12 next_prio=120
               c-12      [000] d....     1.003500000: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=R ==> next_comm=migration/0 next_pid=18 next_prio=0
     migration/0-18      [000] d....     1.003600000: sched_switch: prev_comm=migration/0 prev_pid=18 prev_prio=0 prev_state=S ==> next_comm=c next_pid=12 next_prio=120
               c-12      [000] d....     1.004000000: sched_switch: prev_comm=c prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=b next_pid=11 next_prio=120
               b-11      [000] d....     1.005000000: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

fn follow_text(text: &str) -> Result<Followed, fairground_session::Failure> {
    follow_text_under("fifo", text)
}

fn follow_text_under(scheduler: &str, text: &str) -> Result<Followed, fairground_session::Failure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("by-hand.txt");
    std::fs::write(&path, text).expect("a file");
    let recording = read_recording(path.to_str().expect("its name")).expect("a recording");
    let scheduler = load(scheduler);
    let machine = fairground_machine::MachineConfig::new(1);
    let plan = FollowPlan {
        trace: &recording.trace,
        scheduler: &scheduler,
        settings: Vec::new(),
        machine,
    };
    plan.run(&Unwatched)
}

#[test]
fn a_recording_by_hand() {
    let followed = follow_text(BY_HAND).expect("it follows");
    let agreement = |decision: Decision| {
        let found = followed.agreement.iter().find(|(of, _)| *of == decision);
        found.map(|(_, a)| (a.same, a.ties, a.different)).expect("every kind is there")
    };
    // migration/0 is of another class: that it runs is no decision, and c is picked again after it.
    assert_eq!(agreement(Decision::Pick), (4, 0, 1), "{:#?}", followed.kinds);
    assert_eq!(agreement(Decision::PreemptAtWakeup), (2, 0, 0));
    assert_eq!(agreement(Decision::PreemptAtTick), (0, 0, 0));
    let first = followed.first.as_ref().expect("a difference");
    assert_eq!((first.time_ns, first.kind), (1_003_000_000, DifferenceKind::OtherTask));
    assert_eq!(followed.clock_ns, 1000);
    assert_eq!(followed.notes.len(), 2, "{:?}", followed.notes);
}

#[test]
fn a_recording_without_switches_is_refused_with_what_to_record() {
    let wakings: String =
        BY_HAND.lines().filter(|l| !l.contains("sched_switch")).map(|l| format!("{l}\n")).collect();
    let failure = follow_text(&wakings).expect_err("nothing to compare").to_string();
    assert!(failure.contains("sched_switch"), "{failure}");
    let switches: String =
        BY_HAND.lines().filter(|l| l.contains("sched_switch")).map(|l| format!("{l}\n")).collect();
    let followed = follow_text(&switches).expect("picks can be compared");
    assert!(followed.notes.iter().any(|note| note.contains("sched_waking")));
}

/// Without wake-ups, a task that ends the idling of a CPU was not runnable while that idled.
#[test]
fn a_cpu_that_idles_has_no_waiting_task() {
    let text = "\
 x-0 [000] d..2 1.000000: sched_switch: swapper/0:0 [120] R ==> a:11 [120]
 a-11 [000] d..2 1.500000: sched_switch: a:11 [120] S ==> swapper/0:0 [120]
 x-0 [000] d..2 2.000000: sched_switch: swapper/0:0 [120] R ==> b:12 [120]
 b-12 [000] d..2 2.500000: sched_switch: b:12 [120] S ==> swapper/0:0 [120]
";
    let followed = follow_text(text).expect("it follows");
    assert_eq!(followed.first, None);
}

/// A recording without wake-ups, ticks or both says nothing of preemptions by them, whatever the scheduler wants.
#[test]
fn preemptions_by_what_is_not_recorded_are_not_compared() {
    let switch = |ms: u32, (prev, state, next): (u32, &str, u32)| {
        format!(
            " x-{prev} [000] d..2 1.{ms:03}000: sched_switch: prev_comm=t{prev} prev_pid={prev} prev_prio=120 \
             prev_state={state} ==> next_comm=t{next} next_pid={next} next_prio=120\n"
        )
    };
    let waking =
        " x-10 [000] d..2 1.001000: sched_waking: comm=t11 pid=11 prio=120 target_cpu=000\n";
    let ran = [switch(0, (12, "S", 10)), switch(500, (10, "S", 11)), switch(900, (11, "S", 10))];
    let preemptions = |text: &str| {
        let followed = follow_text_under("cfs", text).expect("it follows");
        let of = [Decision::PreemptAtWakeup, Decision::PreemptAtTick];
        of.map(|of| {
            followed
                .agreement
                .iter()
                .find(|(decision, _)| *decision == of)
                .map(|(_, a)| a.different)
        })
    };
    assert_eq!(preemptions(&ran.concat()), [Some(0); 2]);
    let with_waking = format!("{}{waking}{}{}", ran[0], ran[1], ran[2]);
    let [at_wakeup, at_tick] = preemptions(&with_waking);
    assert!(at_wakeup <= Some(1) && at_tick == Some(0), "{at_wakeup:?}");
}

#[test]
fn unmatched_events_end_nothing() {
    let scheduler = load("eevdf@6.18");
    let (trace, machine) = recorded(&scheduler, "hackbench:1", 2, ("modern", "3ms"));
    // Each third event is missing; states contradict each other.
    let mut nth = 0;
    let mut torn = trace.begun();
    trace.tasks().iter().skip(1).for_each(|task| {
        torn.add_task(task.clone());
    });
    for mut event in trace.events() {
        nth += 1;
        if let EventKind::Switch { prev_state, .. } = &mut event.kind
            && nth % 5 == 0
        {
            *prev_state = TaskState::Dead;
        }
        if nth % 3 != 0 {
            torn.push(event);
        }
    }
    torn.end_ns = trace.end_ns;
    let followed = follow(&scheduler, &torn, &machine);
    assert!(compared(&followed) > 0);
}
