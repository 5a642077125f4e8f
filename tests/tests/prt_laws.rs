//! The laws of sleeping locks as the -rt kernels of 2006 had them (docs/laws/locks.md): tasks that work and need one
//! lock, spinning or sleeping, in a machine that has the costs of the law and no others.

use crate::rig::{MS, bench};
use fairground_analysis::contention::{Contention, DEPTH};
use fairground_analysis::{Analysis, Options};
use fairground_trace::{EventKind, TaskId};
use fairground_workload::{LockModel, from_spec, parse, to_toml};

const WINDOW_MS: u64 = 60;

/// CPUs, tasks, and in ns: work without the lock, work with it, a switch, and the latency of a wake-up.
#[derive(Clone, Copy, Debug)]
struct Case {
    cpus: u32,
    tasks: u32,
    work: u32,
    hold: u32,
    csw: u32,
    wake: u32,
}

/// Sections a µs; the idle part of the CPUs, without the switches to the idle task (idle time in a trace, work in the
/// law); and the mean number of waiters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    per_us: f64,
    idle: f64,
    waiting: f64,
}

impl Case {
    fn run(self, model: LockModel) -> Seen {
        let Case { cpus, tasks, work, hold, csw, wake } = self;
        // Uniform from 0 to twice the mean, so that tasks do not fall into step.
        let spec = format!("critical:{tasks},work=0s..{}ns,hold=0s..{}ns", 2 * work, 2 * hold);
        let mut workload = from_spec(&spec).unwrap_or_else(|error| panic!("{error}"));
        workload.set_lock_model(model);
        let bench = bench("fifo").like_a_kernel("zero", 0).cpus(cpus).hz(1000);
        let bench = bench.cost("context_switch_ns", csw.into()).cost("ipi_ns", wake.into());
        let mut run = bench.run_workload(&workload);
        run.until(WINDOW_MS * MS);
        let trace = run.machine.trace();
        let analysis = Analysis::of(trace, &Options::simulated());
        let window_ns = (WINDOW_MS * MS) as f64;
        let rests = |kind: EventKind| matches!(kind, EventKind::Switch { next: TaskId::IDLE, .. });
        let rests = trace.events().filter(|event| rests(event.kind)).count() as f64;
        let idle_ns = analysis.machine.idle_ns as f64 - rests * f64::from(csw);
        Seen {
            per_us: analysis.machine.marks as f64 * 1e3 / window_ns,
            idle: idle_ns / (window_ns * f64::from(cpus)),
            waiting: Contention::of(trace, DEPTH).lock_wait_ns() as f64 / window_ns,
        }
    }

    fn both(self) -> [Seen; 2] {
        [LockModel::Spin, LockModel::Rt2006].map(|model| self.run(model))
    }

    /// Relative change of throughput by sleeping locks.
    fn change(self) -> f64 {
        let [spin, sleep] = self.both();
        sleep.per_us / spin.per_us - 1.0
    }

    /// The bounds by CPUs and by the lock, sections a µs: spinning, and sleeping.
    fn bounds(self) -> [[f64; 2]; 2] {
        let [work, hold, csw, wake] =
            [self.work, self.hold, self.csw, self.wake].map(|ns| f64::from(ns) / 1e3);
        let cpus = f64::from(self.cpus);
        [
            [cpus / (work + hold), 1.0 / hold],
            [cpus / (work + hold + 2.0 * csw), 1.0 / (hold + csw + wake)],
        ]
    }
}

const CHAT: Case = Case { cpus: 4, tasks: 128, work: 8_000, hold: 2_000, csw: 6_000, wake: 6_500 };
const JOBS: Case = Case { cpus: 4, tasks: 64, work: 20_000, hold: 4_000, csw: 5_000, wake: 500 };
const STREAM: Case = Case { cpus: 2, tasks: 2, work: 4_000, hold: 2_000, csw: 1_500, wake: 3_000 };

/// Law 3: with spin locks no CPU is idle where there is a task for each, and CPUs and lock bound the throughput.
#[test]
fn spinning_leaves_no_cpu_idle() {
    for case in [CHAT, JOBS, STREAM, Case { cpus: 16, ..CHAT }] {
        let seen = case.run(LockModel::Spin);
        let [by_cpus, by_lock] = case.bounds()[0];
        assert!(seen.idle < 0.01, "{case:?}: {seen:?}");
        assert!(seen.per_us <= by_cpus.min(by_lock) * 1.02, "{case:?}: {seen:?}");
    }
}

/// Law 4: with sleeping locks each hand-over costs a switch and a wake-up during which the lock is unused, and that
/// bounds the throughput; where this bound is far below that of the CPUs it is the throughput, within a tenth.
#[test]
fn a_hand_over_bounds_the_throughput_of_sleeping_locks() {
    for (case, is_met) in [(CHAT, true), (JOBS, false), (Case { tasks: 32, ..CHAT }, true)] {
        let seen = case.run(LockModel::Rt2006);
        let [by_cpus, by_lock] = case.bounds()[1];
        let bound = by_cpus.min(by_lock);
        assert_eq!(by_lock * 2.0 < by_cpus, is_met, "{case:?}");
        assert!(seen.per_us <= bound * 1.02, "{case:?}: {seen:?} above {bound}");
        assert!(!is_met || seen.per_us >= bound * 0.9, "{case:?}: {seen:?} below {bound}");
    }
}

/// Law 5: the three cases of the mail, with parameters solved for them: -40 %, -80 % with 60 % idle, -40 % with 20 %
/// idle.
#[test]
fn the_three_cases_of_the_mail() {
    for (case, change, idle) in
        [(STREAM, -0.4, None), (CHAT, -0.8, Some(0.6)), (JOBS, -0.4, Some(0.2))]
    {
        let seen = case.run(LockModel::Rt2006);
        assert!((case.change() - change).abs() < 0.05, "{case:?}: {}", case.change());
        assert!(idle.is_none_or(|idle: f64| (seen.idle - idle).abs() < 0.05), "{case:?}: {seen:?}");
    }
}

/// Law 6: idle time grows with the time of a wake-up; the loss grows with the cost of a wake-up or switch; without
/// costs both kinds of locks agree.
#[test]
fn what_is_lost_grows_with_switch_and_wake_up() {
    let waking = [0, 2_000, 6_000, 12_000].map(|wake| Case { wake, ..CHAT });
    let idle = waking.map(|case| case.run(LockModel::Rt2006).idle);
    assert!(idle.is_sorted(), "{idle:?}");
    let switching = [0, 2_000, 6_000, 12_000].map(|csw| Case { csw, ..CHAT });
    for changes in [waking.map(Case::change), switching.map(Case::change)] {
        assert!(changes.is_sorted_by(|a, b| a >= b), "{changes:?}");
    }
    for case in [CHAT, JOBS, STREAM] {
        let change = Case { csw: 0, wake: 0, ..case }.change();
        assert!(change.abs() < 0.02, "{case:?}: {change}");
    }
}

/// Law 7: a task alone loses nothing; from two to the number of CPUs the loss grows with the number of tasks.
#[test]
fn the_more_tasks_the_more_is_lost() {
    let case = Case { work: 20_000, hold: 2_000, csw: 3_000, wake: 4_000, ..CHAT };
    let changes = [1, 2, 3, 4].map(|tasks| Case { tasks, ..case }.change());
    assert_eq!(changes[0], 0.0);
    assert!(changes.is_sorted_by(|a, b| a > b), "{changes:?}");
}

/// The scaling curve of the mail: contention of spin locks grows with the CPUs and not with the tasks; that of
/// sleeping locks grows with the tasks, so that few CPUs show what many would.
#[test]
fn sleeping_locks_show_the_contention_of_more_cpus() {
    let case = Case { work: 20_000, hold: 2_000, csw: 3_000, wake: 4_000, ..CHAT };
    let waiting = |cpus, tasks, model| Case { cpus, tasks, ..case }.run(model).waiting;
    let spin_tasks = [8, 32, 128].map(|tasks| waiting(4, tasks, LockModel::Spin));
    assert!(spin_tasks.iter().all(|seen| *seen < 3.0), "{spin_tasks:?}");
    assert!((spin_tasks[2] - spin_tasks[0]).abs() < 0.05, "{spin_tasks:?}");
    let spin_cpus = [4, 32, 128].map(|cpus| waiting(cpus, 128, LockModel::Spin));
    let sleep_tasks = [4, 32, 128].map(|tasks| waiting(4, tasks, LockModel::Rt2006));
    for grows in [spin_cpus, sleep_tasks] {
        assert!(grows[1] > 5.0 * grows[0] && grows[2] > 3.0 * grows[1], "{grows:?}");
    }
    let ratio = sleep_tasks[2] / spin_cpus[2];
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

/// What the -rt kernels of 2008 changed: the first waiter spins while the owner runs, and a task that arrives
/// meanwhile may overtake it. Less is lost.
#[test]
fn spinning_on_a_running_owner_makes_good_part_of_it() {
    let [spin, sleep] = STREAM.both();
    let adaptive = STREAM.run(LockModel::Rt);
    assert!(adaptive.per_us > sleep.per_us * 1.2, "{adaptive:?} {sleep:?}");
    assert!(adaptive.per_us <= spin.per_us * 1.02, "{adaptive:?} {spin:?}");
}

/// Reader/writer locks of 2006 have one reader at a time; those of today do not.
#[test]
fn readers_exclude_each_other_in_2006_only() {
    let spec = "volano:1,users=6,connection=0s";
    let waits = |model| {
        let mut workload = from_spec(spec).unwrap_or_else(|error| panic!("{error}"));
        workload.set_lock_model(model);
        let again = parse("again.toml", &to_toml(&workload));
        assert_eq!(again.as_ref(), Ok(&workload), "a file says it all");
        let bench = bench("fifo").like_a_kernel("modern", 0).cpus(4).hz(1000);
        let mut run = bench.run_workload(&workload);
        run.until(100 * MS);
        let found = Contention::of(run.machine.trace(), DEPTH);
        let sites = found.sites.iter().filter(|site| site.name == "server-mm");
        sites.map(|site| site.waits.count()).sum::<u64>()
    };
    assert_eq!([LockModel::Spin, LockModel::Rt].map(waits), [0, 0]);
    assert!(waits(LockModel::Rt2006) > 100, "{}", waits(LockModel::Rt2006));
}
