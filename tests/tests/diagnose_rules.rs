//! Each rule of `diagnose` on a simulated trace that must trigger it and on one that must not.

use crate::rig::{Bench, MS, bench, workload};
use fairground_analysis::diagnose::{Diagnosis, Fact, Finding, Rule};
use fairground_analysis::{Analysis, Options};
use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, Machine, MachineConfig, Policy, Topology};
use fairground_trace::{Event, EventKind, LockFlags, TaskId, TaskInfo, TaskState, Trace};

fn diagnose(bench: Bench, workload: &str, duration_ms: u64) -> Diagnosis {
    let mut run = bench.run(workload);
    run.until(duration_ms * MS);
    let trace = run.machine.trace();
    let diagnosis = Diagnosis::of(trace);
    assert_eq!(diagnosis, Diagnosis::of(trace), "the same trace, another diagnosis");
    diagnosis
}

/// The same under a test scheduler.
fn diagnose_object(object: &Object, cpus: u32, workload: &str, duration_ms: u64) -> Diagnosis {
    let mut config = MachineConfig::new(1);
    config.cost = CostModel::preset("zero").expect("a preset of that name");
    config.topology = Topology::flat(cpus);
    let policy = Policy::load(object, Engine::Jit).expect("it loads");
    let mut machine =
        Machine::new(&config, &policy, &[], &self::workload(workload)).expect("a machine");
    machine.run_until(duration_ms * MS).unwrap_or_else(|e| panic!("{e}"));
    assert!(machine.exit().is_none(), "{:?}", machine.exit());
    let trace = machine.trace();
    // A CPU without a single event idles here; in a recording that is not known.
    Diagnosis::with(trace, &Analysis::of(trace, &Options::simulated()))
}

fn rules(diagnosis: &Diagnosis) -> Vec<Rule> {
    diagnosis.findings.iter().map(|finding| finding.rule).collect()
}

/// The rules that need locks or wake-ups.
const NO_LOCKS: [Rule; 1] = [Rule::LockConvoy];

fn unjudged(diagnosis: &Diagnosis) -> Vec<Rule> {
    diagnosis.not_judged.iter().map(|(rule, _)| *rule).collect()
}

fn found(diagnosis: &Diagnosis, rule: Rule) -> &Finding {
    let finding = diagnosis.findings.iter().find(|finding| finding.rule == rule);
    finding.unwrap_or_else(|| panic!("no {}: {diagnosis:#?}", rule.name()))
}

fn absent(diagnosis: &Diagnosis, rule: Rule) {
    assert!(!rules(diagnosis).contains(&rule), "{}: {diagnosis:#?}", rule.name());
    let judged = diagnosis.not_judged.iter().all(|(not, _)| *not != rule);
    assert!(judged, "{} was not judged", rule.name());
}

/// The figure of an evidence line, by the beginning of its name.
fn fact<'f>(finding: &'f Finding, what: &str) -> &'f Fact {
    let line = finding.evidence.iter().find(|line| line.what.starts_with(what));
    &line.unwrap_or_else(|| panic!("no {what:?} in {finding:#?}")).fact
}

fn ns(finding: &Finding, what: &str) -> u64 {
    match fact(finding, what) {
        Fact::Ns(ns) => *ns,
        other => panic!("{what}: {other:?}"),
    }
}

fn ppm(finding: &Finding, what: &str) -> u64 {
    match fact(finding, what) {
        Fact::Ppm(ppm) => *ppm,
        other => panic!("{what}: {other:?}"),
    }
}

fn slice(fair_sleepers: bool) -> Bench {
    bench("cfs@2.6.27-sle11").cpus(2).hz(250).set("NEW_FAIR_SLEEPERS", fair_sleepers)
}

#[test]
fn fair_sleepers_cut_slices() {
    let diagnosis = diagnose(slice(true), "slice:16,sleepers=spread", 3000);
    let finding = found(&diagnosis, Rule::CutSlices);
    assert!(
        finding.title.contains("`sleeper") && finding.title.contains("`worker`"),
        "{}",
        finding.title
    );
    assert!(ppm(finding, "of its wake-ups that cut") > 950_000, "{finding:#?}");
    let cut_ns = ns(finding, "length of a slice that was cut");
    assert!((MS * 9 / 10..MS * 11 / 10).contains(&cut_ns), "{cut_ns}");
    assert!(ns(finding, "length of a slice that no wake-up cut") > 8 * MS);
    // A sleeper runs for 2 µs where switches cost nothing, and there are about a thousand a second on each CPU.
    assert!((1_500..=2_500).contains(&finding.severity_ppm), "{finding:#?}");
}

#[test]
fn without_fair_sleepers_nothing_is_cut() {
    absent(&diagnose(slice(false), "slice:16", 3000), Rule::CutSlices);
}

/// LAST_BUDDY gives the CPU back: the slice is interrupted, and continues.
#[test]
fn a_slice_that_goes_on_is_not_cut() {
    absent(&diagnose(bench("cfs@2.6.30").cpus(2).hz(250), "slice:16", 3000), Rule::CutSlices);
}

#[test]
fn a_change_of_the_feature_shows_its_effect() {
    let diagnosis =
        diagnose(slice(true).at(2000 * MS, "NEW_FAIR_SLEEPERS", false), "slice:16", 4000);
    let finding = found(&diagnosis, Rule::CutSlices);
    assert!(ns(finding, "mean slice before any tunable changed") < 2 * MS, "{finding:#?}");
    assert!(ns(finding, "effect: mean slice after FAIR_SLEEPERS=") > 8 * MS, "{finding:#?}");
}

fn frozen(fuzz: u64) -> Bench {
    bench("cfs_2_6_23@2.6.23-rc1")
        .topology("8x1x1,nodes=1")
        .hz(1000)
        .set("sched_load_scale_fuzz", fuzz)
}

#[test]
fn ten_hogs_on_eight_cpus_are_frozen_before_the_cure() {
    let diagnosis = diagnose(frozen(32), "hogs:10", 4000);
    let finding = found(&diagnosis, Rule::Imbalance);
    assert!(finding.title.starts_with("frozen imbalance: "), "{}", finding.title);
    assert_eq!((finding.tasks.len(), finding.cpus.len()), (4, 2));
    // Four hogs of eight CPUs get a half instead of eight tenths.
    assert!((140_000..=160_000).contains(&finding.severity_ppm), "{finding:#?}");
}

#[test]
fn ten_hogs_on_eight_cpus_are_fair_after_it() {
    let diagnosis = diagnose(frozen(512), "hogs:10", 4000);
    assert_eq!((rules(&diagnosis), unjudged(&diagnosis)), (vec![], NO_LOCKS.to_vec()));
}

/// Pinned tasks are no finding, if the trace contains the affinities.
#[test]
fn pinned_tasks_are_no_imbalance() {
    let pinned = "hogs:3,cpus=0-0 + hogs:1,cpus=1-1";
    absent(&diagnose(bench("cfs@6.1").cpus(2).hz(250), pinned, 2000), Rule::Imbalance);
}

#[test]
fn a_task_that_runs_only_when_no_other_is_runnable_starves() {
    let starves = crate::rig::fixture::object("faulty", &["-DFAULT=2"]);
    let diagnosis = diagnose_object(&starves, 1, "hogs:4 + hogs:6", 3000);
    let finding = found(&diagnosis, Rule::Starved);
    // Two of ten tasks never run, and a tenth of three seconds is due to each.
    assert_eq!((finding.tasks.len(), ns(finding, "CPU time due to it")), (2, 300 * MS));
    assert!(ns(finding, "its worst wait") > 2900 * MS);
    let faultless = crate::rig::fixture::object("faulty", &["-DFAULT=0"]);
    assert_eq!(rules(&diagnose_object(&faultless, 1, "hogs:4 + hogs:6", 3000)), vec![]);
}

/// Two seconds in a queue are no starvation where a hundred tasks wait.
#[test]
fn a_long_wait_in_a_long_queue_is_no_starvation() {
    absent(&diagnose(bench("fifo").cpus(1), "hogs:100", 5000), Rule::Starved);
}

#[test]
fn a_burst_makes_a_tail_without_preemption() {
    let load = "mix:2 1:0:20000:60000 4:0:100:900";
    let diagnosis = diagnose(bench("fifo").cpus(1), load, 3000);
    let finding = found(&diagnosis, Rule::WakeupTail);
    assert_eq!(ns(finding, "wake-up latency, 99th"), 20 * MS);
    assert!(ns(finding, "wake-up latency, median") < MS);
    absent(&diagnose(bench("cfs@6.1").cpus(1).hz(250), load, 3000), Rule::WakeupTail);
}

/// All of them slow is no tail: that is how long the slices are.
#[test]
fn slow_wakeups_throughout_are_no_tail() {
    absent(&diagnose(slice(false), "slice:16", 3000), Rule::WakeupTail);
}

#[test]
fn one_queue_for_all_cpus_plays_ping_pong() {
    let diagnosis = diagnose(bench("fifo").cpus(2).set("slice_ns", MS), "hogs:3", 2000);
    let finding = found(&diagnosis, Rule::PingPong);
    assert_eq!(finding.tasks.len(), 3);
    assert!(ppm(finding, "of its arrivals on a CPU") > 900_000, "{finding:#?}");
    absent(&diagnose(bench("cfs@6.1").cpus(2).hz(250), "hogs:3", 2000), Rule::PingPong);
}

#[test]
fn cpus_that_hear_of_nothing_idle() {
    let load = "sleepers:6,run=4ms,sleep=4ms";
    let deaf = crate::rig::fixture::object("faulty", &["-DFAULT=4"]);
    let diagnosis = diagnose_object(&deaf, 4, load, 2000);
    let finding = found(&diagnosis, Rule::IdleWhileWaiting);
    assert!(ns(finding, "idle CPU time while a task waited") > 100 * MS, "{finding:#?}");
    let faultless = crate::rig::fixture::object("faulty", &["-DFAULT=0"]);
    absent(&diagnose_object(&faultless, 4, load, 2000), Rule::IdleWhileWaiting);
}

#[test]
fn a_slice_of_a_second_makes_hogs() {
    let diagnosis = diagnose(bench("fifo").cpus(1).set("slice_ns", 1000 * MS), "hogs:2", 4000);
    let finding = found(&diagnosis, Rule::Hog);
    assert_eq!(ns(finding, "longest time without a break"), 1000 * MS);
    // The longest slice at nice 0 in any of the histories here is 100 ms.
    absent(&diagnose(bench("o1").cpus(1).hz(250), "hogs:2", 4000), Rule::Hog);
    // No task waits: it may run without limit.
    absent(&diagnose(bench("fifo").cpus(2).set("slice_ns", 1000 * MS), "hogs:2", 4000), Rule::Hog);
}

/// Tasks on four CPUs, with their times without and with the lock.
fn at_a_lock(kind: &str, tasks: u32, work: &str, hold: &str) -> Diagnosis {
    let text = format!(
        r#"
        format = 1
        name = "table"
        duration = "1s"
        [locks.table]
        kind = "{kind}"
        [[task]]
        name = "worker"
        count = {tasks}
        program = [{{ loop = [{{ run = "{work}" }}, {{ lock = "table" }}, {{ run = "{hold}" }},
          {{ unlock = "table" }}] }}]
        "#
    );
    let workload = fairground_workload::parse("table", &text).unwrap_or_else(|e| panic!("{e}"));
    let mut run = bench("cfs@6.1").like_a_kernel("modern", 0).cpus(4).run_workload(&workload);
    run.until(1000 * MS);
    let trace = run.machine.trace();
    Diagnosis::with(trace, &Analysis::of(trace, &Options::simulated()))
}

/// Half of the work is under the lock, so that two CPUs of four have work: the others idle while tasks sleep, or spin.
#[test]
fn tasks_that_queue_at_a_lock_are_a_convoy() {
    for kind in ["mutex", "spin", "rt_mutex"] {
        let diagnosis = at_a_lock(kind, 6, "80us..120us", "100us");
        let finding = found(&diagnosis, Rule::LockConvoy);
        assert!(finding.title.ends_with("`table`"), "{}", finding.title);
        assert!(finding.severity_ppm > 300_000, "{kind}: {finding:#?}");
        // Two tasks at a time at least: spinning on the two CPUs without work, or asleep.
        assert!(ppm(finding, "time waited, of the recording") > 1_990_000, "{kind}: {finding:#?}");
        assert!(ppm(finding, "meanwhile the holder ran") > 800_000, "{kind}: {finding:#?}");
        assert!(finding.command.starts_with("contention "));
    }
}

/// A lock with little contention has waiters now and then, if each task has a CPU. (With six tasks a mutex that is
/// handed to a waiter that waits for a CPU makes a queue nevertheless.)
#[test]
fn a_lock_that_is_free_at_times_is_none() {
    for kind in ["mutex", "spin", "rt_mutex"] {
        absent(&at_a_lock(kind, 4, "0.5ms..1.5ms", "20us"), Rule::LockConvoy);
    }
}

/// `cfs@6.5`: the 6.1 of today searches at random when a CPU becomes idle (NI_RANDOM), so that tasks wait beside idle
/// CPUs.
#[test]
fn healthy_runs_have_no_findings() {
    for scheduler in ["cfs@6.5", "eevdf@6.12", "rfs", "sd"] {
        for load in ["hogs:8", "periodic:8,period=10ms,load=30"] {
            let diagnosis = diagnose(bench(scheduler).cpus(4).hz(250), load, 2000);
            let none = (vec![], NO_LOCKS.to_vec());
            assert_eq!((rules(&diagnosis), unjudged(&diagnosis)), none, "{scheduler}, {load}");
        }
    }
}

/// Without wake-ups in the recording their rules do not report success; nor does anything fail without events, or with
/// lost and contradictory ones.
#[test]
fn what_is_not_recorded_is_not_judged() {
    let empty = Diagnosis::of(&Trace::new(2));
    assert_eq!((empty.findings.len(), empty.not_judged.len()), (0, Rule::ALL.len()));
    let mut run = slice(true).run("slice:4");
    run.until(200 * MS);
    let full = run.machine.trace();
    let mut poor = Trace::new(2);
    for info in full.tasks().iter().skip(1) {
        poor.add_task(info.clone());
    }
    for (at, event) in full.events().enumerate() {
        match event.kind {
            EventKind::Switch { .. } if at % 5 != 0 => poor.push(event),
            EventKind::Tick { .. } if at % 7 == 0 => {
                poor.push(Event { kind: EventKind::Lost { count: 3 }, ..event });
                let (prev, next) = (TaskId(77), TaskId(1));
                let kind = EventKind::Switch { prev, prev_state: TaskState::Runnable, next };
                poor.push(Event { kind, ..event });
            }
            _ => {}
        }
    }
    let diagnosis = Diagnosis::of(&poor);
    let not = unjudged(&diagnosis);
    assert_eq!(not, [Rule::CutSlices, Rule::Imbalance, Rule::WakeupTail, Rule::LockConvoy]);
}

#[test]
fn each_rule_is_explained() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/diagnose.md");
    let page = std::fs::read_to_string(page).expect("docs/reference/diagnose.md is UTF-8");
    for rule in Rule::ALL {
        assert!(page.contains(&format!("\n## {}\n", rule.name())), "no section on {}", rule.name());
    }
}

/// Events in random order, of existing and missing tasks and CPUs: no panic, and the same result again.
#[test]
fn a_soup_of_events_is_survived() {
    for seed in 1..=200_u64 {
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut trace = Trace::new(3);
        for pid in 1..6 {
            trace.add_task(TaskInfo::new(pid, ["a", "b/0", "b/1", "c", ""][pid as usize - 1]));
        }
        let label = trace.intern("x=1");
        let mut time_ns = draw(1 << 40);
        for _ in 0..1000 {
            time_ns += [0, draw(1000), draw(1_000_000), draw(1 << 33)][draw(4) as usize];
            let (task, other) = (TaskId(draw(7) as u32), TaskId(draw(7) as u32));
            let (cpu, target_cpu) = (draw(4) as u32, draw(4) as u32);
            let state =
                [TaskState::Runnable, TaskState::Sleeping, TaskState::Dead][draw(3) as usize];
            let kind = match draw(16) {
                0 => EventKind::Waking { task, waker: other, target_cpu },
                1 | 2 => EventKind::Wakeup { task, target_cpu },
                3 => EventKind::WakeupNew { task, target_cpu },
                4 => EventKind::Migrate { task, from_cpu: cpu, to_cpu: target_cpu },
                5 => EventKind::Exit { task },
                6 => EventKind::Nice { task, nice: draw(256) as u8 as i8 },
                7 => EventKind::Param { label },
                12 => {
                    let flags = LockFlags(draw(64) as u8);
                    EventKind::ContentionBegin { task, lock: label, flags, holder: other }
                }
                13 => EventKind::ContentionEnd { task, lock: label },
                14 => EventKind::Stack { task, label },
                8 if draw(4) == 0 => EventKind::Lost { count: draw(9) },
                _ => EventKind::Switch { prev: task, prev_state: state, next: other },
            };
            trace.push(Event { time_ns, cpu, insns: 0, kind });
        }
        let diagnosis = Diagnosis::of(&trace);
        assert_eq!(diagnosis, Diagnosis::of(&trace));
        let sorted = diagnosis.findings.is_sorted_by_key(|found| u64::MAX - found.severity_ppm);
        assert!(sorted, "{diagnosis:#?}");
    }
}
