//! How near a simulated scheduler comes to a real kernel on workloads that are drawn at random, so that nothing can be
//! tuned to them: its decisions one by one, and on one CPU the figures of whole runs.
//!
//! `FAIRGROUND_SEED=7 cargo test --release -p fairground-tests --test all drawn_workloads:: -- --ignored --nocapture`
//! prints the tables of a report, as Markdown, for kernels that are in the cache. `FAIRGROUND_POINTS` says how many
//! workloads are drawn (24).

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;

use fairground_analysis::Options;
use fairground_analysis::metric;
use fairground_session::{
    Agreement, Decision, Failure, FollowPlan, MachineSpec, Outcome, RunPlan, RunSpec, Scheduler,
    SchedulerSpec, TargetSpec, Unwatched, recorded_machine,
};
use fairground_workload::drawn_cpus;

/// Workloads that are drawn unless `FAIRGROUND_POINTS` says otherwise.
const POINTS: u32 = 24;
/// The group of a kernel's own threads, which are no part of a workload.
const OTHERS: &str = "others";

/// A kernel, and the model of its scheduler.
#[derive(Clone, Copy)]
struct Pair {
    target: &'static str,
    /// What runs there; `kernel` is its own scheduler.
    sched: &'static str,
    model: &'static str,
    costs: &'static str,
}

const PAIRS: [Pair; 2] = [
    Pair { target: "vm:6.1", sched: "kernel", model: "cfs@6.1", costs: "linux-6.1" },
    Pair { target: "vm:7.2", sched: "kernel", model: "eevdf@7.2", costs: "linux-7.2" },
];

/// Figures that are compared, by key, and how far apart two of them may be, percent.
const TOLERANCES: [(&str, f64); 4] = [
    ("cpu_share", 5.0),
    ("true_mean_slice", 5.0),
    ("voluntary_switches", 5.0),
    ("wakeup_latency.p50", 15.0),
];

/// One run of a drawn workload.
fn run(point: &str, cpus: u32, (on, sched): (&str, &str), costs: &str) -> Result<Outcome, Failure> {
    let spec = RunSpec {
        workload: point.to_owned(),
        target: TargetSpec { on: vec![on.to_owned()], calls: true, ..TargetSpec::default() },
        scheduler: SchedulerSpec { sched: vec![sched.to_owned()], ..SchedulerSpec::default() },
        machine: MachineSpec {
            cpus: Some(cpus),
            costs: Some(costs.to_owned()),
            ..MachineSpec::default()
        },
        ..RunSpec::default()
    };
    let (workload, _) = spec.find_workload()?;
    let is_simulated = on == "sim";
    let options = if is_simulated { Options::simulated() } else { Options::default() };
    let plan = RunPlan {
        callbacks: is_simulated,
        fetch: false,
        ..RunPlan::new(&spec, &workload, options)
    };
    plan.run_alone(point, &Unwatched)
}

/// How many decisions of a scheduler are those of a recorded run, by kind.
fn follow(outcome: &Outcome, model: &str) -> Result<Vec<(Decision, Agreement)>, Failure> {
    let trace = &outcome.trace;
    let machine = recorded_machine(&MachineSpec::default(), trace);
    let machine = RunSpec { machine, ..RunSpec::default() }.simulated_machine()?;
    let scheduler = Scheduler::load(model, None, Default::default())?;
    let plan = FollowPlan { trace, scheduler: &scheduler, settings: Vec::new(), machine };
    Ok(plan.run(&Unwatched)?.agreement)
}

/// The figures of each group that are compared.
fn figures(outcome: &Outcome) -> BTreeMap<(String, &'static str), f64> {
    let groups = outcome.analysis.groups.iter().filter(|group| group.name != OTHERS);
    let of_group = |group: &fairground_analysis::GroupMetrics| {
        let name = group.name.clone();
        let read = |(key, _): (&'static str, f64)| {
            let value = (metric::group(key).expect("a metric").read)(&group.figures)?;
            Some(((name.clone(), key), value.as_f64()))
        };
        TOLERANCES.into_iter().filter_map(read).collect::<Vec<_>>()
    };
    groups.flat_map(of_group).collect()
}

/// What a pair has shown.
#[derive(Default)]
struct Tally {
    /// Decisions by the number of CPUs and kind.
    decisions: BTreeMap<(u32, &'static str), Agreement>,
    /// Figures on one CPU: within the tolerance, and all.
    figures: BTreeMap<&'static str, (u32, u32)>,
    failures: Vec<String>,
}

impl Tally {
    fn of(pair: Pair, seed: u64, points: u32) -> Tally {
        let mut tally = Tally::default();
        for index in 0..points {
            let (point, cpus) = (format!("drawn:{seed}.{index}"), drawn_cpus(index));
            if let Err(failure) = tally.add(pair, &point, cpus) {
                tally.failures.push(format!("{point} on {}: {failure}", pair.target));
            }
        }
        tally
    }

    fn add(&mut self, pair: Pair, point: &str, cpus: u32) -> Result<(), Failure> {
        let real = run(point, cpus, (pair.target, pair.sched), pair.costs)?;
        for (decision, of_point) in follow(&real, pair.model)? {
            let all = self.decisions.entry((cpus, decision.name())).or_default();
            all.same += of_point.same;
            all.ties += of_point.ties;
            all.different += of_point.different;
        }
        if cpus > 1 {
            return Ok(());
        }
        let simulated = figures(&run(point, cpus, ("sim", pair.model), pair.costs)?);
        let real = figures(&real);
        for ((group, key), value) in simulated {
            let Some(measured) = real.get(&(group, key)) else { continue };
            let (_, percent) = TOLERANCES.into_iter().find(|(known, _)| *known == key).expect("it");
            let (within, all) = self.figures.entry(key).or_default();
            *within += u32::from((value - measured).abs() <= measured.abs() * percent / 100.0);
            *all += 1;
        }
        Ok(())
    }

    fn markdown(&self, pair: Pair) -> String {
        let mut text = format!("\n## {} and {}\n\n", pair.target, pair.model);
        text += "| CPUs | decision | compared | same | ties | different |\n|---|---|---:|---:|---:|---:|\n";
        for ((cpus, decision), all) in &self.decisions {
            let Agreement { same, ties, different, .. } = all;
            let total = all.total();
            let _ =
                writeln!(text, "| {cpus} | {decision} | {total} | {same} | {ties} | {different} |");
        }
        text += "\n| figure on one CPU | cells | within the tolerance |\n|---|---:|---:|\n";
        for (key, (within, all)) in &self.figures {
            let _ = writeln!(text, "| {key} | {all} | {within} |");
        }
        self.failures.iter().for_each(|failure| text += &format!("\nnot measured: {failure}\n"));
        text
    }
}

#[test]
fn a_simulation_makes_its_own_decisions_and_has_its_own_figures() {
    let same = Pair { target: "sim", sched: "fifo", model: "fifo", costs: "modern" };
    let tally = Tally::of(same, 5, 2);
    assert!(tally.failures.is_empty(), "{:?}", tally.failures);
    let picks = &tally.decisions[&(1, "pick")];
    assert!(picks.same > 100 && picks.different == 0, "{picks:?}");
    assert!(tally.figures.values().all(|(within, all)| within == all && *all > 0));
    let other = Tally::of(Pair { model: "rfs", ..same }, 5, 1);
    assert!(other.decisions[&(1, "pick")].different > 0, "another scheduler decides otherwise");
    assert!(other.markdown(same).contains("| 1 | pick |"));
}

#[test]
#[ignore = "boots a kernel for each workload: minutes"]
fn real_kernels_on_drawn_workloads() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seed = number("FAIRGROUND_SEED").expect("FAIRGROUND_SEED: one that was not used before");
    let points = number("FAIRGROUND_POINTS").map_or(POINTS, |points| points as u32);
    println!("# Drawn workloads: seed {seed}, {points} points");
    for pair in PAIRS {
        println!("{}", Tally::of(pair, seed, points).markdown(pair));
    }
}
