//! Unfair split between CPUs, and its worst form, the frozen imbalance.

use super::{
    Case, Fact, Finding, RECORDING, Rule, RuleOutcome, SHARING_WINDOW_MIN_NS, cpu_list, ratio_ppm,
};
use crate::TaskMetrics;
use fairground_trace::TaskId;
use std::collections::BTreeMap;

/// A task that is runnable for so much of its life always wants a CPU, ppm.
const ALWAYS_RUNNABLE_PPM: u64 = 800_000;

/// So much less, or more, than the fluid share is unfair: a tenth. Ten hogs on eight CPUs of a real 2.6.24 come
/// within 4 % below it in 8 s, ppm.
const UNFAIR_PPM: u64 = 100_000;

/// A task gets what its own CPU has for it when it is within this of the share there: then the split between CPUs
/// is the cause, and not the order of its queue, ppm.
const LOCAL_PPM: u64 = 100_000;

/// So much CPU time must go to the wrong task: a hundredth, ppm.
const LOSS_MIN_PPM: u64 = 10_000;

/// The imbalance is frozen when the tasks that get too little stay on one CPU for at least this part of the trace, ppm.
const FROZEN_PPM: u64 = 500_000;

pub(super) fn look(case: &Case<'_>) -> RuleOutcome {
    if case.trace.cpus < 2 {
        return RuleOutcome::Nothing;
    }
    if case.analysis.window_ns() < SHARING_WINDOW_MIN_NS {
        return RuleOutcome::NotJudged("the recording is shorter than a second");
    }
    let steady: Vec<&TaskMetrics> =
        case.analysis.tasks.iter().filter(|task| is_steady(case, task)).collect();
    let short: Vec<&TaskMetrics> = steady
        .iter()
        .copied()
        .filter(|task| is_behind(task) && gets_share_of_its_cpu(task))
        .collect();
    let figures = |task: &&TaskMetrics| (task.figures.run_ns, task.figures.fluid_ns);
    let missing_ns = short.iter().map(figures).map(|(run, fluid)| u128::from(fluid - run)).sum();
    if case.share_ppm(missing_ns) < LOSS_MIN_PPM {
        return RuleOutcome::Nothing;
    }
    let ahead = steady.into_iter().filter(|task| {
        let (run_ns, fluid_ns) = (task.figures.run_ns, task.figures.fluid_ns);
        ratio_ppm(run_ns.saturating_sub(fluid_ns).into(), fluid_ns.into()) >= UNFAIR_PPM
    });
    RuleOutcome::Found(finding(case, &short, &ahead.collect::<Vec<_>>(), missing_ns))
}

/// It may run anywhere, always wants to, and has a fair share.
fn is_steady(case: &Case<'_>, task: &TaskMetrics) -> bool {
    let figures = &task.figures;
    let info = &case.trace.tasks()[task.task.index()];
    let last = case.trace.cpus.saturating_sub(1);
    let anywhere = info
        .allowed_cpus
        .as_ref()
        .is_none_or(|ranges| ranges.iter().any(|(first, end)| *first == 0 && *end >= last));
    let life_ns = case.analysis.window_ns().saturating_sub(figures.absent_ns);
    let runnable_ns = u128::from(figures.run_ns) + u128::from(figures.wait_ns);
    anywhere
        && figures.fluid_ns > 0
        && life_ns >= SHARING_WINDOW_MIN_NS
        && ratio_ppm(runnable_ns, life_ns.into()) >= ALWAYS_RUNNABLE_PPM
}

fn is_behind(task: &TaskMetrics) -> bool {
    let (run_ns, fluid_ns) = (task.figures.run_ns, task.figures.fluid_ns);
    ratio_ppm(fluid_ns.saturating_sub(run_ns).into(), fluid_ns.into()) >= UNFAIR_PPM
}

fn gets_share_of_its_cpu(task: &TaskMetrics) -> bool {
    let (run_ns, there_ns) = (task.figures.run_ns, task.figures.fluid_on_cpu_ns);
    ratio_ppm(run_ns.abs_diff(there_ns).into(), there_ns.into()) <= LOCAL_PPM
}

fn finding(
    case: &Case<'_>,
    short: &[&TaskMetrics],
    ahead: &[&TaskMetrics],
    missing_ns: u128,
) -> Finding {
    let stay = |task: &TaskMetrics| &case.facts.tasks[task.task.index()];
    let ids = |tasks: &[&TaskMetrics]| tasks.iter().map(|task| task.task).collect::<Vec<TaskId>>();
    let window_ns = case.analysis.window_ns();
    let stay_min_ns = short.iter().map(|task| stay(task).residence_ns).min().unwrap_or(0);
    let frozen = ratio_ppm(stay_min_ns.into(), window_ns.into()) >= FROZEN_PPM;
    let mut by_cpu: BTreeMap<u32, Vec<TaskId>> = BTreeMap::new();
    for task in short {
        by_cpu.entry(stay(task).residence_cpu).or_default().push(task.task);
    }
    let crowded: Vec<u32> = by_cpu.keys().copied().collect();
    let kind = if frozen { "frozen imbalance" } else { "unfair split between CPUs" };
    let mut finding = Finding::new(
        Rule::Imbalance,
        format!("{kind}: {} below their share", case.names(&ids(short))),
    );
    finding.severity_ppm = case.share_ppm(missing_ns);
    finding.tasks = ids(short);
    if frozen {
        for (cpu, tasks) in by_cpu {
            let what = format!("stay on CPU {cpu}");
            finding.add(what, Fact::Text(case.names(&tasks)));
        }
        finding.add("shortest of their stays on one CPU", Fact::Ns(stay_min_ns));
    }
    let part = |ns: u64| Fact::Ppm(ratio_ppm(ns.into(), window_ns.into()));
    let run = |tasks: &[&TaskMetrics]| tasks.iter().map(|task| task.figures.run_ns).collect();
    let (mut runs, mut ahead_runs): (Vec<u64>, Vec<u64>) = (run(short), run(ahead));
    runs.sort_unstable();
    ahead_runs.sort_unstable();
    if let (Some(least), Some(most)) = (runs.first(), runs.last()) {
        finding.add("share of a CPU, the least of them", part(*least));
        finding.add("share of a CPU, the most of them", part(*most));
    }
    let due_ns = short.iter().map(|task| task.figures.fluid_ns).max().unwrap_or(0);
    finding.add("fair share of a CPU", part(due_ns));
    if let Some(most) = ahead_runs.last() {
        finding.add("tasks that get more than theirs", Fact::Text(case.names(&ids(ahead))));
        finding.add("share of a CPU, the most of those", part(*most));
    }
    add_loads(case, &crowded, &mut finding);
    let missing_ns = u64::try_from(missing_ns).unwrap_or(u64::MAX);
    finding.add("CPU time that they are short of", Fact::Ns(missing_ns));
    finding.meaning =
        "On its own CPU each gets its share: the queues are fair, and their lengths are not. The \
        balancer does not see the difference, or finds it too small to move a task. \
        Pinned tasks look alike where the recording does not tell affinity."
            .to_owned();
    finding.cpus = crowded;
    finding.command = format!("analyze {RECORDING} --per task");
    finding
}

/// The lengths of the queues of the tasks that get too little, and of the others.
fn add_loads(case: &Case<'_>, crowded: &[u32], finding: &mut Finding) {
    let loads = case.facts.load_milli.iter().enumerate();
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        loads.partition(|(cpu, _)| crowded.contains(&(*cpu as u32)));
    let text = |milli: u64| Fact::Text(format!("{}.{:03}", milli / 1000, milli % 1000));
    if let Some(most) = here.into_iter().map(|(_, milli)| *milli).max() {
        let what = format!("runnable tasks on CPU {}, mean, at most", cpu_list(crowded));
        finding.add(what, text(most));
    }
    if let Some(least) = elsewhere.into_iter().map(|(_, milli)| *milli).min() {
        finding.add("runnable tasks on the other CPUs, mean, at least", text(least));
    }
}
