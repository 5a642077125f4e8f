//! Workloads from recordings: the recorded behaviour is reproduced.

use std::collections::BTreeMap;

use fairground_session::replay_workload;
use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace};
use fairground_workload::{
    CpuList, Duration, Op, ReplayNotes, Workload, WorkloadError, parse, to_toml,
};
use proptest::prelude::*;

/// A recording in the making. Tasks have numbers of the test's; 0 is the idle task.
struct Recording {
    trace: Trace,
    ids: BTreeMap<u32, TaskId>,
    window_ns: Option<(u64, u64)>,
    now_ns: u64,
}

impl Recording {
    fn new(cpus: u32) -> Self {
        Self { trace: Trace::new(cpus), ids: BTreeMap::new(), window_ns: None, now_ns: 0 }
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
        replay_workload(name, &self.trace)
    }
}

fn finished(recording: Recording) -> (Workload, ReplayNotes) {
    recording.finish("by hand").unwrap_or_else(|error| panic!("{error}"))
}

fn run_ns(workload: &Workload, group: usize) -> u64 {
    let runs = workload.tasks[group].program.iter().map(|op| match op {
        Op::Run(Duration::Fixed(ns)) => *ns,
        _ => 0,
    });
    runs.sum()
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
    let (workload, notes) = replay_workload("irq", &trace).expect("a workload");
    assert_eq!((notes.sleeps, notes.messages), (3, 1));
    let disk = workload.tasks.iter().find(|task| task.name == "disk-11").expect("the task");
    let sleeps = disk.program.iter().filter(|op| **op == Op::Sleep(Duration::Fixed(890_000)));
    assert_eq!(sleeps.count(), 3, "{:?}", disk.program);
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
    assert_eq!(hog.program, [run(2_000), nice(-5), run(3_000), nice(7), run(1_000)]);
    assert!(!notes.has_gaps());
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
    assert_eq!(
        workload.tasks[0].program,
        [run(2_000), Op::Receive(0, 1), run(2_000 + 2_000 + 1_000)]
    );
    assert_eq!(workload.tasks[1].program, [run(1_000), Op::Send(0), run(9_000)]);
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
    assert_eq!(workload.tasks[0].program[..3], [run(2_000), Op::Send(0), run(1_000)]);
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
    assert_eq!(workload.tasks[1].program[0], sleep, "{:?}", workload.tasks[1].program);
    assert_eq!(workload.tasks[1].program.iter().filter(|op| **op == sleep).count(), 50);
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
    assert_eq!(workload.tasks[1].program[0], Op::Run(Duration::Fixed(3_000)));
}

#[test]
fn an_empty_recording_is_an_error() {
    let error = Recording::new(4).finish("replay").expect_err("nothing was recorded");
    insta::assert_snapshot!(error.to_string());
}

/// The action of a task of the small machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Runnable,
    On(usize),
    Blocked,
    Dead,
}

/// A small machine that makes consistent recordings, with its own accounting: CPU time per task.
struct Machine {
    now_ns: u64,
    cpus: Vec<Option<usize>>,
    states: Vec<State>,
    since_ns: Vec<u64>,
    run_ns: Vec<u64>,
    replay: Recording,
}

impl Machine {
    fn new(cpus: usize, tasks: usize) -> Self {
        let mut replay = Recording::new(cpus as u32);
        replay.window(0, 0);
        Self {
            now_ns: 0,
            cpus: vec![None; cpus],
            states: vec![State::Runnable; tasks],
            since_ns: vec![0; tasks],
            run_ns: vec![0; tasks],
            replay,
        }
    }

    fn id(task: Option<usize>) -> u32 {
        task.map_or(0, |task| task as u32 + 1)
    }

    /// The CPU switches to a runnable task (or idles); the previous one blocks, exits, or is preempted.
    fn switch(&mut self, cpu: usize, choice: usize, how: u8) {
        let runnable: Vec<usize> =
            (0..self.states.len()).filter(|&t| self.states[t] == State::Runnable).collect();
        let next = if runnable.is_empty() { None } else { Some(runnable[choice % runnable.len()]) };
        let prev = self.cpus[cpu];
        if prev.is_none() && next.is_none() {
            return;
        }
        let (blocked, dead) = (how < 6, how == 6);
        if let Some(prev) = prev {
            self.run_ns[prev] += self.now_ns - self.since_ns[prev];
            self.states[prev] = match (blocked, dead) {
                (true, _) => State::Blocked,
                (_, true) => State::Dead,
                _ => State::Runnable,
            };
        }
        if let Some(next) = next {
            self.states[next] = State::On(cpu);
            self.since_ns[next] = self.now_ns;
        }
        let (from, to) = (Self::id(prev), Self::id(next));
        let real = prev.is_some();
        self.replay.switch(self.now_ns, cpu as u32, from, blocked && real, dead && real, to);
        self.cpus[cpu] = next;
    }

    /// A task is woken by the running task or an interrupt.
    fn wake(&mut self, cpu: usize, choice: usize, interrupt: bool) {
        let target = choice % self.states.len();
        if matches!(self.states[target], State::Dead) {
            return;
        }
        let waker = if interrupt { None } else { self.cpus[cpu] };
        self.replay.waking(
            self.now_ns,
            cpu as u32,
            waker.map(|waker| waker as u32 + 1),
            target as u32 + 1,
        );
        if self.states[target] == State::Blocked {
            self.states[target] = State::Runnable;
        }
    }

    fn fork(&mut self, cpu: usize) {
        if let Some(parent) = self.cpus[cpu] {
            self.states.push(State::Runnable);
            self.since_ns.push(0);
            self.run_ns.push(0);
            self.replay.fork(self.now_ns, parent as u32 + 1, self.states.len() as u32);
        }
    }

    fn finish(mut self) -> (BTreeMap<String, u64>, Recording) {
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.cpus[cpu] {
                self.run_ns[task] += self.now_ns - self.since_ns[task];
            }
        }
        self.replay.window(0, self.now_ns);
        let named = |(task, ns): (usize, &u64)| (format!("task-{}", task + 1), *ns);
        (self.run_ns.iter().enumerate().map(named).collect(), self.replay)
    }
}

proptest! {
    #[test]
    fn every_replay_holds_the_run_time_that_was_seen_and_cannot_lock_up(
        cpus in 1_usize..5,
        tasks in 1_usize..12,
        steps in prop::collection::vec((0_u64..5_000, 0_u8..12, 0_usize..64, 0_u8..9), 0..400),
    ) {
        let mut machine = Machine::new(cpus, tasks);
        for (ns, what, choice, how) in steps {
            machine.now_ns += ns;
            let cpu = choice % cpus;
            match what {
                0..6 => machine.switch(cpu, choice / cpus, how),
                6..11 => machine.wake(cpu, choice / cpus, how < 3),
                _ => machine.fork(cpu),
            }
        }
        let (seen, replay) = machine.finish();
        let total: u64 = seen.values().sum();
        match replay.finish("replay") {
            Ok((workload, notes)) => {
                prop_assert!(!notes.has_gaps(), "{notes}");
                prop_assert_eq!(notes.run_ns, total);
                for (group, task) in workload.tasks.iter().enumerate() {
                    prop_assert_eq!(run_ns(&workload, group), seen[&task.name], "{}", &task.name);
                }
                prop_assert_eq!(parse("replay.toml", &to_toml(&workload)), Ok(workload));
            }
            Err(error) => {
                prop_assert_eq!(total, 0, "{}", error);
                prop_assert!(error.to_string().contains("holds no task"), "{}", error);
            }
        }
    }

    #[test]
    fn no_recording_panics(
        events in prop::collection::vec((0_u8..4, 0_u64..1_000, 0_u32..4, 0_u32..6, 0_u32..6, any::<u8>()), 0..200)
    ) {
        let mut replay = Recording::new(2);
        for (what, time_ns, cpu, a, b, flags) in events {
            match what {
                0 => replay.switch(time_ns, cpu, a, flags & 1 > 0, flags & 2 > 0, b),
                1 => replay.waking(time_ns, cpu, (flags & 1 > 0).then_some(a), b),
                2 => replay.fork(time_ns, a, b),
                _ => replay.exit(time_ns, a),
            };
        }
        if let Err(error) = replay.finish("replay") {
            prop_assert!(error.to_string().contains("holds no task"), "{}", error);
        }
    }
}
