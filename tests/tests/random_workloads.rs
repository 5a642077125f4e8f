//! Every scheduler under random workloads on random machines, with the invariants checked after each event; and
//! planted faults, which must be found.
//!
//! `FAIRGROUND_SEED` sets the first seed, `FAIRGROUND_CASES` the number of cases. A failure is printed with its seed,
//! as the smallest workload that still fails, and with the command line that repeats it.

use std::path::Path;
use std::process::Command;

use crate::rig::MS;
use crate::rig::random::{Case, KINDS, Kind, Random};
use fairground_bpf::Object;
use fairground_machine::{
    CostModel, Engine, Exit, ExitKind, Invariant, Machine, MachineConfig, MachineError, Policy,
    Setting, Violation,
};

/// The seed of the first case.
const SEED: u64 = 1;
/// CPUs of the machines.
const SIZES: [u32; 5] = [1, 2, 8, 64, 256];
/// Runs that shrinking a failing case may take.
const SHRINKING_RUNS: usize = 200;

fn from_environment(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

/// A scheduler with a parameter set, and what it promises.
#[derive(Debug)]
struct Subject {
    name: String,
    policy: Policy,
    settings: Vec<Setting>,
    picks_in_order: bool,
    idle_bound_ns: Option<u64>,
    watchdog_ns: u64,
}

impl Subject {
    fn new(name: &str, object: &Object, settings: Vec<Setting>) -> Subject {
        let policy = Policy::load(object, Engine::Jit).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (picks_in_order, idle_bound_ns) = (false, None);
        let name = name.to_owned();
        Subject { name, policy, settings, picks_in_order, idle_bound_ns, watchdog_ns: 20_000 * MS }
    }

    fn config(&self, case: &Case) -> MachineConfig {
        MachineConfig {
            topology: case.topology.parse().expect("a topology"),
            hz: case.hz,
            seed: case.seed,
            cost: CostModel::preset("modern").expect("a preset"),
            check: true,
            picks_in_order: self.picks_in_order,
            idle_bound_ns: self.idle_bound_ns,
            watchdog_ns: self.watchdog_ns,
            ..MachineConfig::new(case.cpus)
        }
    }
}

/// How a case failed.
#[derive(Debug)]
#[allow(dead_code, reason = "printed")]
enum Fault {
    Broken(Violation),
    Ejected(Box<Exit>),
    /// These tasks had not ended in time.
    Unfinished {
        tasks: String,
    },
    Other {
        error: String,
    },
}

impl From<MachineError> for Fault {
    fn from(error: MachineError) -> Fault {
        match error {
            MachineError::Invariant(violation) => Fault::Broken(*violation),
            other => Fault::Other { error: other.to_string() },
        }
    }
}

fn run(subject: &Subject, case: &Case) -> Result<(), Fault> {
    let workload = case.workload();
    let mut machine =
        Machine::new(&subject.config(case), &subject.policy, &subject.settings, &workload)?;
    let mut now_ns = case.chaos_ns();
    loop {
        machine.run_until(now_ns)?;
        if let Some(exit) = machine.exit() {
            return Err(Fault::Ejected(Box::new(exit.clone())));
        }
        let living = machine.living_tasks();
        if living.is_empty() {
            break;
        }
        if now_ns >= case.end_ns() {
            return Err(Fault::Unfinished { tasks: living.join(", ") });
        }
        now_ns = (2 * now_ns).min(case.end_ns());
    }
    let result = machine.finish()?;
    match result.exit.kind {
        ExitKind::Unregistered => Ok(()),
        _ => Err(Fault::Ejected(Box::new(result.exit))),
    }
}

/// Shrinks a failing case and prints everything that is needed to reproduce it.
fn report(subject: &Subject, case: Case, fault: &Fault) -> String {
    let seed = case.seed;
    let small = case.shrink(SHRINKING_RUNS, |case| run(subject, case).is_err());
    let last = run(subject, &small).expect_err("it failed a moment ago");
    let bound = subject.idle_bound_ns.map_or(String::new(), |ns| format!(" --idle-bound {ns}ns"));
    let change = |setting: &Setting| {
        Some(format!(" --at {}ns:{}={}", setting.at_ns?, setting.name, setting.value))
    };
    let changes: String = subject.settings.iter().filter_map(change).collect();
    format!(
        "{}: seed {seed}: {fault:?}\n\nthe smallest workload that still fails ({last:?}):\n\n{small}\n\
         fairground run case.toml --sched {} --topology {} --hz {} --seed {seed} --check{bound}{changes} --duration {}ms\n",
        subject.name,
        subject.name,
        small.topology,
        small.hz,
        small.end_ns().div_ceil(MS),
    )
}

/// The parameter sets of an object: none, and each by name.
fn parameter_sets(object: &Object) -> Vec<(String, Vec<Setting>)> {
    let mut sets: Vec<(String, Vec<Setting>)> = vec![(String::new(), Vec::new())];
    for global in object.globals() {
        for tag in global.tags.iter().filter_map(|tag| tag.strip_prefix("set:")) {
            let Some((set, value)) = tag.split_once('=') else { continue };
            let setting = Setting::initial(&global.name, value);
            match sets.iter_mut().find(|(name, _)| name == set) {
                Some((_, settings)) => settings.push(setting),
                None => sets.push((set.to_owned(), vec![setting])),
            }
        }
    }
    sets
}

/// Every built-in scheduler with every parameter set.
fn all_subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for builtin in fairground_policies::all() {
        let object = Object::parse(builtin.name, builtin.object).expect("it parses");
        for (set, settings) in parameter_sets(&object) {
            let at = if set.is_empty() { "" } else { "@" };
            subjects.push(Subject::new(&format!("{}{at}{set}", builtin.name), &object, settings));
        }
    }
    subjects
}

/// Conservation, affinity, order of callbacks, no lost wake-up, and the exit of every task, under every scheduler with
/// each of its parameter sets on each size of machine.
#[test]
fn every_scheduler_holds_under_random_workloads() {
    let subjects = all_subjects();
    let each_once = (subjects.len() * SIZES.len()) as u64;
    let seed = from_environment("FAIRGROUND_SEED", SEED);
    let cases = from_environment("FAIRGROUND_CASES", each_once);
    println!("FAIRGROUND_SEED={seed} FAIRGROUND_CASES={cases}");
    for number in 0..cases {
        let (round, which) = (number as usize / subjects.len(), number as usize % subjects.len());
        let size = SIZES[(round + which) % SIZES.len()];
        let case = Case::new(seed + number, &[size], &KINDS).with_real_time();
        if let Err(fault) = run(&subjects[which], &case) {
            panic!("{}", report(&subjects[which], case, &fault));
        }
    }
}

/// Work is conserved, within 600 ms, where every task may run everywhere. The bound is that of the slowest balancer:
/// 512 ms, the longest interval of those of 2.6.2x (`MAX_PINNED_INTERVAL`), and a few ticks. Nothing is promised where
/// tasks are pinned: these balancers compare loads of groups of CPUs without affinities.
#[test]
fn work_is_conserved_where_no_task_is_pinned() {
    let first = from_environment("FAIRGROUND_SEED", SEED) + 1000;
    for (number, mut subject) in all_subjects().into_iter().enumerate() {
        subject.idle_bound_ns = Some(600 * MS);
        for size in [8, 64] {
            let case = Case::new(first + number as u64, &[size], &KINDS).unpinned();
            if let Err(fault) = run(&subject, &case) {
                panic!("{}", report(&subject, case, &fault));
            }
        }
    }
}

/// CPUs that come and go at random times of a case, often the same one several times.
fn comings_and_goings(case: &Case) -> Vec<Setting> {
    const CHANGES: u64 = 24;
    let mut random = Random(case.seed ^ 0xc9);
    let change = |_| {
        let cpu = random.within(1, u64::from(case.cpus.min(8)) - 1);
        let at_ns = random.within(0, case.chaos_ns());
        let value = if random.one_in(2) { "on" } else { "off" };
        Setting::at(at_ns, &format!("cpu.{cpu}.online"), value)
    };
    (0..CHANGES).map(change).collect()
}

/// The same while CPUs come and go, at random times: nothing runs on a CPU that is offline, no task is lost, and every
/// task ends.
#[test]
fn every_scheduler_holds_while_cpus_come_and_go() {
    let mut subjects = all_subjects();
    let seed = from_environment("FAIRGROUND_SEED", SEED) + 2000;
    let cases = from_environment("FAIRGROUND_CASES", 2 * subjects.len() as u64);
    for number in 0..cases {
        let (round, which) = (number as usize / subjects.len(), number as usize % subjects.len());
        let size = SIZES[1 + (round + which) % (SIZES.len() - 1)];
        let case = Case::new(seed + number, &[size], &KINDS).with_real_time();
        let subject = &mut subjects[which];
        let own = subject.settings.len();
        subject.settings.extend(comings_and_goings(&case));
        if let Err(fault) = run(subject, &case) {
            panic!("{}", report(subject, case, &fault));
        }
        subject.settings.truncate(own);
    }
}

/// The workload that a failure prints reads back as the same workload.
#[test]
fn a_case_is_its_text() {
    for seed in 100..150 {
        let case = Case::new(seed, &[1, 2, 8, 64, 256], &KINDS);
        let text = case.to_string();
        let again = fairground_workload::parse("case.toml", &text);
        let again = again.unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        assert_eq!(again, case.workload(), "seed {seed}");
    }
    assert_eq!(Random(1).next(), Random(1).next());
}

/// Compiles a test scheduler.
fn compiled(name: &str, source: &Path, arguments: &[&str]) -> Object {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{name}.bpf.o"));
    let clang = fairground_policies::find_clang().unwrap_or_else(|e| panic!("{e}"));
    let done = Command::new(clang)
        .args(fairground_policies::CLANG_FLAGS)
        .arg("-I")
        .arg(dir.join("../policies/include"))
        .args(arguments)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&out)
        .output()
        .expect("clang runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(&out).expect("clang wrote the object");
    Object::parse(name, &bytes).unwrap_or_else(|e| panic!("{e}"))
}

/// A seed under which a scheduler with a fault fails and the same one without it does not.
fn found(
    faulty: &Subject,
    honest: &Subject,
    (seeds, kinds, sizes): (u64, &[Kind], &[u32]),
) -> Option<(u64, Case, Fault)> {
    let first = from_environment("FAIRGROUND_SEED", SEED);
    (0..seeds).find_map(|number| {
        let case = Case::new(first + number, sizes, kinds);
        let fault = run(faulty, &case).err()?;
        run(honest, &case).ok().map(|()| (number + 1, case, fault))
    })
}

/// Kinds with which `cfs` of 2.6.24 may leave the leftmost task where it is: none of these.
const NO_YIELD: [Kind; 5] = [Kind::Hog, Kind::Sleeper, Kind::Periodic, Kind::Pipe, Kind::Queue];
/// Seeds within which a planted fault is found.
const SEEDS_FOR_SECOND_BEST: u64 = 200;
const SEEDS_FOR_FAULTY: u64 = 100;
/// Seeds under which a scheduler without a fault keeps its promise.
const HONEST_SEEDS: u64 = 30;
/// Runs that shrinking the planted fault may take.
const PLANTED_SHRINKING_RUNS: usize = 40;

/// `cfs` that takes the second best task once in 10,000 picks: found by the order of its queues, which `cfs` itself
/// keeps under the same seeds.
#[test]
fn a_second_best_pick_in_ten_thousand_is_found() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let planted = dir.join("tests/fixtures/second_best.bpf.h");
    let source = dir.join("../policies/cfs.bpf.c");
    let include = planted.to_string_lossy().into_owned();
    let subject = |name: &str, arguments: &[&str]| {
        let object = compiled(name, &source, arguments);
        let settings = parameter_sets(&object).into_iter().find(|(set, _)| set == "2.6.24");
        let settings = settings.expect("cfs has that set").1;
        Subject { picks_in_order: true, ..Subject::new(name, &object, settings) }
    };
    let faulty = subject("cfs-second-best", &["-include", &include]);
    let honest = subject("cfs-honest", &[]);
    let (seeds, case, fault) =
        found(&faulty, &honest, (SEEDS_FOR_SECOND_BEST, &NO_YIELD, &[1, 2, 8]))
            .expect("the planted fault shows itself");
    println!("second best: found with seed {seeds}: {fault:?}");
    assert!(matches!(&fault, Fault::Broken(v) if v.invariant == Invariant::PickOrder), "{fault:?}");
    let size = case.parts.len();
    let small = case.shrink(PLANTED_SHRINKING_RUNS, |case| run(&faulty, case).is_err());
    assert!(small.parts.len() <= size, "shrinking makes a case smaller");
    assert!(run(&faulty, &small).is_err(), "and it still fails");
}

/// Test schedulers: without a fault, and with one.
fn simple(name: &str, fault: u32) -> Subject {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/faulty.bpf.c");
    let object = compiled(name, &source, &[&format!("-DFAULT={fault}")]);
    Subject { watchdog_ns: 400 * MS, ..Subject::new(name, &object, Vec::new()) }
}

/// A scheduler that forgets a task, one that starves some, one that ignores affinity: each is ejected as by the
/// kernel.
#[test]
fn schedulers_that_forget_starve_or_trespass_are_found() {
    let honest = simple("honest", 0);
    for (fault, name, kind) in [
        (1, "forgets", ExitKind::ErrorStall),
        (2, "starves", ExitKind::ErrorStall),
        (3, "trespasses", ExitKind::Error),
    ] {
        let faulty = simple(name, fault);
        let (seeds, _, fault) = found(&faulty, &honest, (SEEDS_FOR_FAULTY, &KINDS, &[1, 2, 8]))
            .unwrap_or_else(|| panic!("{name} shows itself"));
        println!("{name}: found with seed {seeds}: {fault:?}");
        assert!(matches!(&fault, Fault::Ejected(exit) if exit.kind == kind), "{name}: {fault:?}");
    }
}

/// A scheduler that wakes an idle CPU for each task in its queue keeps all CPUs busy within two of the slowest ticks;
/// without that the promise is broken.
#[test]
fn a_cpu_left_idle_is_found() {
    let bound = |subject: Subject| Subject { idle_bound_ns: Some(20 * MS), ..subject };
    let (honest, faulty) = (bound(simple("wakes-idle", 0)), bound(simple("leaves-idle", 4)));
    let (seeds, _, fault) = found(&faulty, &honest, (SEEDS_FOR_FAULTY, &KINDS, &[2, 8]))
        .expect("the idle CPU shows itself");
    println!("leaves idle: found with seed {seeds}: {fault:?}");
    let idle = |v: &Violation| v.invariant == Invariant::WorkConservation;
    assert!(matches!(&fault, Fault::Broken(v) if idle(v)), "{fault:?}");
    for seed in 0..HONEST_SEEDS {
        let case = Case::new(SEED + seed, &[2, 8], &KINDS);
        let kept = run(&honest, &case);
        let stalled =
            matches!(&kept, Err(Fault::Ejected(exit)) if exit.kind == ExitKind::ErrorStall);
        assert!(kept.is_ok() || stalled, "seed {seed}: {kept:?}");
    }
}
