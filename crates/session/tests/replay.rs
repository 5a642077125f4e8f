//! Workloads from recordings: the recorded behaviour is reproduced.

use std::collections::BTreeMap;

mod idling;
mod random;

use fairground_machine::CostModel;
use fairground_session::{Charges, replay_workload};
use fairground_trace::{
    Call, CgroupInfo, Event, EventKind, Policy, RtPrio, TaskId, TaskInfo, TaskState, Trace,
};
use fairground_workload::{
    CpuList, Duration, Op, ReplayNotes, SchedPolicy, Workload, WorkloadError, to_toml,
};

/// A recording in the making. Tasks have numbers of the test's; 0 is the idle task.
struct Recording {
    trace: Trace,
    ids: BTreeMap<u32, TaskId>,
    window_ns: Option<(u64, u64)>,
    now_ns: u64,
    charges: Charges,
}

impl Recording {
    fn new(cpus: u32) -> Self {
        let (trace, charges) = (Trace::new(cpus), Charges::default());
        Self { trace, ids: BTreeMap::new(), window_ns: None, now_ns: 0, charges }
    }

    fn window(&mut self, start_ns: u64, end_ns: u64) {
        self.window_ns = Some((start_ns, end_ns));
    }

    fn task(&mut self, number: u32, pid: u32, comm: &str, nice: i8) -> &mut Self {
        let info = TaskInfo { nice: Some(nice), ..TaskInfo::new(pid, comm) };
        self.ids.insert(number, self.trace.add_task(info));
        self
    }

    fn id(&mut self, number: u32) -> TaskId {
        if number == 0 {
            return TaskId::IDLE;
        }
        let trace = &mut self.trace;
        *self.ids.entry(number).or_insert_with(|| trace.add_task(TaskInfo::new(number, "")))
    }

    /// An event that lies before the last one is counted and moved, as readers do.
    fn event(&mut self, time_ns: u64, cpu: u32, kind: EventKind) -> &mut Self {
        self.trace.loss.clock_jumps += u64::from(time_ns < self.now_ns);
        self.now_ns = self.now_ns.max(time_ns);
        self.trace.push(Event { time_ns: self.now_ns, cpu, insns: 0, kind });
        self
    }

    fn switch(
        &mut self,
        time_ns: u64,
        cpu: u32,
        prev: u32,
        blocked: bool,
        dead: bool,
        next: u32,
    ) -> &mut Self {
        let prev_state = match (blocked, dead) {
            (_, true) => TaskState::Dead,
            (true, _) => TaskState::Sleeping,
            _ => TaskState::Runnable,
        };
        let (prev, next) = (self.id(prev), self.id(next));
        self.event(time_ns, cpu, EventKind::Switch { prev, prev_state, next })
    }

    fn waking(&mut self, time_ns: u64, cpu: u32, waker: Option<u32>, wakee: u32) -> &mut Self {
        let (waker, task) = (self.id(waker.unwrap_or(0)), self.id(wakee));
        self.event(time_ns, cpu, EventKind::Waking { task, waker, target_cpu: cpu })
    }

    fn fork(&mut self, time_ns: u64, parent: u32, child: u32) -> &mut Self {
        let (parent, child) = (self.id(parent), self.id(child));
        self.event(time_ns, 0, EventKind::Fork { parent, child })
    }

    fn exit(&mut self, time_ns: u64, number: u32) -> &mut Self {
        let task = self.id(number);
        self.event(time_ns, 0, EventKind::Exit { task })
    }

    fn lost(&mut self, count: u64) -> &mut Self {
        self.event(self.now_ns, 0, EventKind::Lost { count })
    }

    fn finish(mut self, name: &str) -> Result<(Workload, ReplayNotes), WorkloadError> {
        let first_ns = self.trace.get(0).map_or(0, |event| event.time_ns);
        let window_ns = self.window_ns.unwrap_or((first_ns, self.now_ns));
        (self.trace.start_ns, self.trace.end_ns) = window_ns;
        replay_workload(name, &self.trace, self.charges)
    }
}

fn finished(recording: Recording) -> (Workload, ReplayNotes) {
    recording.finish("by hand").unwrap_or_else(|error| panic!("{error}"))
}

/// What a task does once.
fn lap(workload: &Workload, group: usize) -> &[Op] {
    match &workload.tasks[group].program[..] {
        [Op::Loop(None, body)] => body,
        [once @ .., Op::Loop(None, _)] => once,
        once => once,
    }
}

fn run_ns(workload: &Workload, group: usize) -> u64 {
    let runs = lap(workload, group).iter().map(|op| match op {
        Op::Run(Duration::Fixed(ns)) => *ns,
        _ => 0,
    });
    runs.sum()
}

/// The first request finds the task on its CPU; the second one, of a timer, ends its sleep.
#[test]
fn a_request_that_is_repeated_ended_no_sleep() {
    for repeated in [true, false] {
        let mut recording = Recording::new(2);
        recording.task(1, 11, "front", 0).task(2, 12, "tick", 0);
        recording.switch(0, 1, 0, false, false, 1).switch(1_000, 0, 0, false, false, 2);
        recording.waking(1_100, 1, Some(1), 2).switch(1_300, 0, 2, true, false, 0);
        if repeated {
            recording.waking(17_300, 0, None, 2);
        }
        recording.switch(17_340, 0, 0, false, false, 2).switch(18_000, 0, 2, true, false, 0);
        let (_, notes) = finished(recording);
        let (messages, sleeps) = if repeated { (0, 1) } else { (1, 0) };
        assert_eq!((notes.messages, notes.sleeps), (messages, sleeps), "{repeated}");
    }
}

/// As ftrace prints it: the device's interrupts come while the hog runs.
#[test]
fn an_interrupt_is_not_the_task_that_it_interrupts() {
    let mut text = String::from(
        "<idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
         prev_state=R ==> next_comm=disk next_pid=11 next_prio=120\n",
    );
    let switch = |from: &str, state: char, to: &str, us: u32| {
        let (prev, next) = (from.rsplit_once('-'), to.rsplit_once('-'));
        let ((prev, pid), (next, next_pid)) = (prev.expect("a pid"), next.expect("a pid"));
        format!(
            "{from} [000] d..2. 1.{us:06}: sched_switch: prev_comm={prev} prev_pid={pid} prev_prio=120 \
             prev_state={state} ==> next_comm={next} next_pid={next_pid} next_prio=120\n"
        )
    };
    let wake = |flags: &str, event: &str, us: u32| {
        format!(
            "hog-10 [000] {flags} 1.{us:06}: {event}: comm=disk pid=11 prio=120 target_cpu=000\n"
        )
    };
    for (round, flags) in ["d.h2.", "d.s3.", "dNH2.", "d..2."].into_iter().enumerate() {
        let us = round as u32 * 1_000;
        text += &switch("disk-11", 'D', "hog-10", us + 100);
        text += &wake(flags, "sched_waking", us + 990);
        text += &wake(flags, "sched_wakeup", us + 991);
        text += &switch("hog-10", 'R', "disk-11", us + 1_000);
    }
    let trace = fairground_trace::read("irq.txt", text.as_bytes()).expect("a recording");
    let (workload, notes) = replay_workload("irq", &trace, Charges::default()).expect("a workload");
    assert_eq!((notes.sleeps, notes.messages), (3, 1));
    let disk = workload.tasks.iter().position(|task| task.name == "disk-11").expect("the task");
    let disk = lap(&workload, disk);
    let sleeps = disk.iter().filter(|op| **op == Op::Sleep(Duration::Fixed(890_000)));
    assert_eq!(sleeps.count(), 3, "{disk:?}");
}

#[test]
fn affinities_and_changes_of_nice_are_kept() {
    let mut replay = Recording::new(2);
    replay.task(1, 10, "hog", 0).task(2, 11, "other", 3);
    let hog = replay.id(1);
    replay.trace.task_mut(hog).allowed_cpus = Some(vec![(1, 1)]);
    let set = |nice| EventKind::Nice { task: hog, nice };
    replay.switch(0, 1, 0, false, false, 1).event(2_000, 1, set(-5));
    replay.switch(5_000, 1, 1, false, false, 2).event(6_000, 1, set(7));
    replay.switch(8_000, 1, 2, false, false, 1).switch(9_000, 1, 1, false, true, 0);
    let (workload, notes) = finished(replay);
    let (run, nice) = (|ns| Op::Run(Duration::Fixed(ns)), Op::SetNice);
    let [hog, other] = &workload.tasks[..] else { panic!("{:?}", workload.tasks) };
    assert_eq!((hog.cpus.clone(), other.cpus.clone()), (Some(CpuList(vec![(1, 1)])), None));
    assert_eq!((hog.nice, other.nice), (0, 3));
    let once = [run(2_000), nice(-5), run(3_000), nice(7), run(1_000)];
    assert_eq!(hog.program, once);
    assert!(!notes.has_gaps());
}

/// Two tasks wake a third in turns; one of them blocks after each wake-up.
#[test]
fn each_pair_of_tasks_meets_for_itself() {
    let mut replay = Recording::new(2);
    replay.switch(0, 0, 0, false, false, 1).switch(0, 1, 0, false, false, 3);
    for from_ns in [0, 10_000, 20_000] {
        replay.switch(from_ns + 1_000, 1, 3, true, false, 0);
        replay.waking(from_ns + 2_000, 0, Some(1), 3).switch(
            from_ns + 2_500,
            1,
            0,
            false,
            false,
            3,
        );
        replay.switch(from_ns + 3_000, 0, 1, true, false, 2).switch(
            from_ns + 3_000,
            1,
            3,
            true,
            false,
            0,
        );
        replay.waking(from_ns + 4_000, 0, Some(2), 3).switch(
            from_ns + 4_500,
            1,
            0,
            false,
            false,
            3,
        );
        replay.switch(from_ns + 6_000, 0, 2, false, false, 1);
    }
    let (workload, notes) = finished(replay);
    assert_eq!(notes.messages, 6);
    let places = workload.queues.iter().map(|queue| (queue.capacity, queue.sync));
    assert_eq!(places.collect::<Vec<_>>(), [(Some(0), true), (Some(0), false)]);
    let received = lap(&workload, 1).iter().filter_map(|op| match op {
        Op::Receive(queue, 1) => Some(*queue),
        _ => None,
    });
    assert_eq!(received.collect::<Vec<_>>(), [0, 1, 0, 1, 0, 1]);
}

/// A hog, one that waits for it, one that waits for a task that ends, and that task.
#[test]
fn a_task_that_was_there_all_the_time_starts_over() {
    let mut replay = Recording::new(1);
    replay.switch(0, 0, 0, false, false, 1).waking(1_000, 0, Some(1), 2);
    replay.switch(2_000, 0, 1, false, false, 2).switch(3_000, 0, 2, true, false, 4);
    replay.waking(4_000, 0, Some(4), 3).exit(5_000, 4).switch(5_000, 0, 4, false, true, 3);
    let hog = replay.id(1);
    replay.switch(6_000, 0, 3, true, false, 1);
    replay.event(7_000, 0, EventKind::Nice { task: hog, nice: 5 });
    replay.switch(9_000, 0, 1, false, false, 0);
    let (workload, _) = finished(replay);
    // It starts over as it began.
    let Some(Op::Loop(None, lap)) = workload.tasks[0].program.last() else { panic!("it ends") };
    assert_eq!(lap[0], Op::SetNice(0));
    let again = |name: &str| {
        let task = workload.tasks.iter().find(|task| task.name.starts_with(name)).expect("it");
        matches!(task.program.last(), Some(Op::Loop(None, _)))
    };
    let names = ["task-1", "task-2", "task-3", "task-4"];
    assert_eq!(names.map(again), [true, true, false, false]);
}

/// Switches of 800 ns, wake-ups of 500: short bursts leave something for the next.
#[test]
fn what_the_machine_charges_is_taken_out_of_the_bursts_once() {
    let mut replay = Recording::new(1);
    replay.charges = Charges::of(&CostModel::default());
    replay.switch(0, 0, 0, false, false, 1).switch(300, 0, 1, false, false, 2);
    replay.switch(5_300, 0, 2, false, false, 1).waking(5_800, 0, Some(1), 3);
    replay.switch(9_300, 0, 1, false, true, 3).switch(11_300, 0, 3, true, false, 2);
    let (workload, notes) = finished(replay);
    let run = |ns| Op::Run(Duration::Fixed(ns));
    // Of 300 and 500 ns nothing is left; 800 + 800 - 800 + 500 come out of the 3,500 behind them.
    assert_eq!(lap(&workload, 0), [Op::Send(0), run(2_200)]);
    assert_eq!(notes.charged_ns, 3 * 800 + 500 + 800);
    assert_eq!(notes.run_ns + notes.charged_ns, 11_300);
}

#[test]
fn nothing_happens_before_the_first_event() {
    let mut replay = Recording::new(1);
    replay.window(1_000, 9_000);
    replay.waking(4_000, 0, Some(1), 3).fork(5_000, 1, 2).switch(6_000, 0, 1, false, false, 2);
    replay.switch(7_000, 0, 2, false, true, 1).switch(9_000, 0, 1, false, false, 0);
    let (workload, notes) = finished(replay);
    assert_eq!(workload.duration_ns, 8_000);
    let starts = workload.tasks.iter().map(|task| task.start_ns);
    assert_eq!(starts.collect::<Vec<_>>(), [Some(3_000), Some(3_000), None]);
    assert_eq!((notes.run_ns, notes.forks), (2_000 + 1_000 + 2_000, 1));
}

#[test]
fn control_groups_and_real_time_tasks_are_kept() {
    let mut replay = Recording::new(1);
    let mut add = |path: &str, parent, weight| {
        replay.trace.add_cgroup(CgroupInfo { path: path.to_owned(), parent, weight })
    };
    let root = add("/", None, None);
    let web = add("web", Some(root), Some(300));
    let front = add("web/front", Some(web), None);
    let [hog, timer, other] = [1, 2, 3].map(|number| replay.id(number));
    replay.trace.task_mut(hog).cgroup = Some(front);
    replay.trace.task_mut(timer).rt_prio = RtPrio::new(49);
    replay.trace.task_mut(other).nice = Some(3);
    replay.switch(0, 0, 0, false, false, 1).switch(1_000, 0, 1, false, false, 2);
    replay.switch(2_000, 0, 2, false, false, 3).switch(3_000, 0, 3, false, false, 0);
    let (workload, notes) = finished(replay);
    let [hog, timer, other] = &workload.tasks[..] else { panic!("{:?}", workload.tasks) };
    assert_eq!((hog.nice, timer.nice, other.nice), (0, 0, 3));
    assert_eq!((hog.policy, timer.policy), (SchedPolicy::Other, SchedPolicy::Fifo(50)));
    assert_eq!((hog.cgroup, other.cgroup), (workload.cgroup("web/front"), None));
    let weights = workload.cgroups.iter().map(|cgroup| cgroup.weight);
    assert_eq!(weights.collect::<Vec<_>>(), [100, 300, 100]);
    assert_eq!((notes.deadlines, notes.unplaced_cgroups), (0, 0));
}

#[test]
fn changes_of_the_class_are_kept() {
    let mut replay = Recording::new(1);
    let [boosted, deadline] = [1, 2].map(|number| replay.id(number));
    replay.trace.task_mut(boosted).nice = Some(3);
    replay.trace.task_mut(boosted).policy = Some(Policy::Rr);
    replay.trace.task_mut(deadline).rt_prio = RtPrio::new(-1);
    let prio = RtPrio::new(89).expect("a priority");
    replay.switch(0, 0, 0, false, false, 1);
    replay.event(1_000, 0, EventKind::RtPrio { task: boosted, prio });
    replay.event(3_000, 0, EventKind::Nice { task: boosted, nice: 4 });
    replay.switch(4_000, 0, 1, false, false, 2).switch(5_000, 0, 2, false, false, 0);
    let (workload, notes) = finished(replay);
    let [boosted, deadline] = &workload.tasks[..] else { panic!("{:?}", workload.tasks) };
    let run = |ns| Op::Run(Duration::Fixed(ns));
    let changes = [
        run(1_000),
        Op::SetPolicy(SchedPolicy::Rr(10)),
        run(2_000),
        Op::SetPolicy(SchedPolicy::Other),
        Op::SetNice(4),
        run(1_000),
    ];
    assert_eq!((boosted.policy, boosted.nice), (SchedPolicy::Other, 3));
    let Some((Op::Loop(None, lap), first)) = boosted.program.split_last() else {
        panic!("{:?}", boosted.program)
    };
    assert_eq!(first, changes);
    assert_eq!(lap[..2], [Op::SetPolicy(SchedPolicy::Other), Op::SetNice(3)]);
    assert_eq!(lap[2..], changes);
    assert_eq!((deadline.policy, notes.deadlines), (SchedPolicy::Fifo(99), 1));
}

#[test]
fn yields_are_kept_where_calls_were_recorded() {
    let mut replay = Recording::new(1);
    replay.switch(0, 0, 0, false, false, 1).switch(3_000, 0, 1, false, false, 2);
    let task = replay.id(2);
    replay.event(5_000, 0, EventKind::CallEnter { task, call: Call::Yield, object: 0 });
    replay.switch(5_500, 0, 2, false, false, 1).switch(9_000, 0, 1, false, true, 2);
    replay.event(9_500, 0, EventKind::CallExit { task, result: 0 });
    replay.switch(10_000, 0, 2, false, true, 0);
    let (workload, notes) = finished(replay);
    let run = |ns| Op::Run(Duration::Fixed(ns));
    assert_eq!(workload.tasks[1].program, [run(2_000), Op::Yield, run(1_500)]);
    assert_eq!(notes.run_ns, 10_000);
}

/// Two CPUs: a reader that a writer wakes, a sleeper with a timer, a forked child, and a hog that existed before.
#[test]
fn a_recording_by_hand() {
    let mut replay = Recording::new(2);
    replay.task(1, 10, "writer", 0).task(2, 11, "reader", 5);
    replay.task(3, 12, "hog", 0).task(4, 13, "child", 0).task(5, 7, "kworker/0:1", 0);
    replay.switch(1_000, 0, 0, false, false, 1);
    // The reader was blocked from the start. The writer runs 4 us before it wakes it, and 1 us behind that.
    replay.waking(5_000, 0, Some(1), 2);
    replay.switch(6_000, 0, 1, true, false, 2);
    // The first event of CPU 1: the hog ran there since 1,000.
    replay.switch(9_000, 1, 3, false, false, 5);
    replay.switch(9_500, 1, 5, true, false, 3);
    // An interrupt ends the writer's sleep of 4 us; it runs 3 us later.
    replay.waking(10_000, 0, None, 1);
    replay.switch(13_000, 0, 2, true, false, 1);
    replay.fork(14_000, 1, 4);
    replay.switch(15_000, 0, 1, false, true, 4);
    replay.exit(15_500, 4);
    replay.switch(16_000, 0, 4, false, true, 0);
    replay.switch(20_000, 1, 3, false, false, 0);
    let (workload, notes) = finished(replay);
    insta::assert_snapshot!(format!("{}\n{notes}", to_toml(&workload)));
    assert!(!notes.has_gaps());
}

#[test]
fn a_wake_up_before_the_block_is_a_message_or_nothing() {
    let mut replay = Recording::new(2);
    replay.switch(0, 0, 0, false, false, 1).switch(0, 1, 0, false, false, 2);
    // 2 wakes 1 while 1 still runs, on its way to sleep.
    replay.waking(1_000, 1, Some(2), 1);
    replay.switch(2_000, 0, 1, true, false, 0).switch(3_000, 0, 0, false, false, 1);
    // The same by an interrupt, and once more where it does not block at all.
    replay.waking(4_000, 0, None, 1);
    replay.switch(5_000, 0, 1, true, false, 0).switch(6_000, 0, 0, false, false, 1);
    replay.waking(7_000, 1, Some(2), 1);
    replay.switch(8_000, 0, 1, false, false, 0).switch(9_000, 0, 0, false, false, 1);
    replay.switch(10_000, 0, 1, true, false, 0).switch(10_000, 1, 2, false, false, 0);
    let (workload, notes) = finished(replay);
    let run = |ns| Op::Run(Duration::Fixed(ns));
    assert_eq!(lap(&workload, 0), [run(2_000), Op::Receive(0, 1), run(2_000 + 2_000 + 1_000)]);
    assert_eq!(lap(&workload, 1), [run(1_000), Op::Send(0), run(9_000)]);
    // Its waker did not wait for it.
    assert_eq!(workload.queues[0].capacity, None);
    assert_eq!((notes.messages, notes.missing_wakes), (1, 0));
}

#[test]
fn what_is_missing_is_counted() {
    let mut replay = Recording::new(2);
    replay.lost(7).switch(0, 0, 0, false, false, 1);
    replay.switch(1_000, 0, 1, true, false, 0);
    // No event woke it.
    replay.switch(5_000, 0, 0, false, false, 1);
    // Another task leaves the CPU.
    replay.switch(6_000, 0, 2, true, false, 0);
    // The waker does not run; time goes back.
    replay.waking(5_500, 1, Some(1), 2);
    replay.fork(7_000, 1, 3).switch(8_000, 0, 0, false, false, 3);
    replay.switch(9_000, 0, 3, true, false, 0);
    let (workload, notes) = finished(replay);
    assert!(notes.has_gaps());
    assert_eq!(notes.lost_events, 7);
    assert_eq!(notes.missing_wakes, 1);
    assert_eq!(notes.unmatched_switches, 2);
    assert_eq!(notes.wakers_not_running, 1);
    assert_eq!(notes.clock_jumps, 1);
    assert_eq!(notes.unplaced_forks, 1);
    assert_eq!(workload.tasks.last().map(|task| task.start_ns), Some(Some(7_000)));
    insta::assert_snapshot!(notes.to_string());
}

/// Its first event shows it awake: it ran from the start.
#[test]
fn a_task_that_ran_before_its_fork_is_not_forked() {
    let mut replay = Recording::new(2);
    replay.waking(0, 0, Some(3), 1).fork(5, 3, 3);
    let (workload, notes) = finished(replay);
    assert_eq!((notes.forks, notes.unplaced_forks), (0, 1));
    assert!(workload.tasks.iter().all(|task| task.start_ns == Some(0)));
}

/// The recording begins between the request to wake a task and its wake-up.
#[test]
fn a_task_that_wakes_another_where_nothing_ran_yet_has_run_since_it_was_queued() {
    let mut replay = Recording::new(2);
    let task = replay.id(1);
    replay.event(1_000, 0, EventKind::Wakeup { task, target_cpu: 1 });
    replay.waking(3_000, 1, Some(1), 2).switch(4_000, 1, 1, true, false, 2);
    replay.switch(5_000, 1, 2, true, false, 0);
    let (workload, notes) = finished(replay);
    let run = |ns| Op::Run(Duration::Fixed(ns));
    assert_eq!(lap(&workload, 0)[..3], [run(2_000), Op::Send(0), run(1_000)]);
    assert_eq!((notes.messages, notes.unmatched_switches), (1, 0));
}

/// Nothing tells when a wake-up was asked for: the first one ends a block since the start, too.
#[test]
fn a_recording_with_wakeups_alone_has_a_sleep_for_each_of_them() {
    const US: u64 = 1_000;
    let mut replay = Recording::new(1);
    replay.task(1, 10, "waker", 0).task(2, 11, "woken", 0);
    let woken = replay.id(2);
    replay.switch(0, 0, 0, false, false, 1);
    for from_ns in (0..50).map(|n| n * 2_500 * US) {
        let wakeup = EventKind::Wakeup { task: woken, target_cpu: 0 };
        replay.event(from_ns + 1_000 * US, 0, wakeup);
        replay.switch(from_ns + 2_000 * US, 0, 1, false, false, 2);
        replay.switch(from_ns + 2_500 * US, 0, 2, true, false, 1);
    }
    let (workload, notes) = finished(replay);
    assert_eq!((notes.sleeps, notes.missing_wakes), (50, 0));
    let sleep = Op::Sleep(Duration::Fixed(1_000 * US));
    let woken = lap(&workload, 1);
    assert_eq!(woken[0], sleep, "{woken:?}");
    assert_eq!(woken.iter().filter(|op| **op == sleep).count(), 50);
}

#[test]
fn a_new_task_was_not_blocked_before_its_first_wake_up() {
    let mut replay = Recording::new(1);
    replay.switch(0, 0, 0, false, false, 1);
    let child = replay.id(2);
    replay.event(1_000, 0, EventKind::WakeupNew { task: child, target_cpu: 0 });
    replay.switch(2_000, 0, 1, true, false, 2).switch(5_000, 0, 2, false, true, 0);
    let (workload, notes) = finished(replay);
    assert_eq!(notes.sleeps, 0);
    assert_eq!(lap(&workload, 1)[0], Op::Run(Duration::Fixed(3_000)));
}

#[test]
fn wake_ups_without_switches_are_an_error() {
    let mut replay = Recording::new(1);
    replay.waking(1_000, 0, None, 1);
    let task = replay.id(1);
    replay.event(1_100, 0, EventKind::Wakeup { task, target_cpu: 0 });
    replay.waking(2_000, 0, None, 1);
    let error = replay.finish("by hand").expect_err("nothing ran");
    assert!(error.to_string().contains("record sched_switch"), "{error}");
}

#[test]
fn an_empty_recording_is_an_error() {
    let error = Recording::new(4).finish("replay").expect_err("nothing was recorded");
    insta::assert_snapshot!(error.to_string());
}
