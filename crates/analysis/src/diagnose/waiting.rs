//! A waiter that starves, and a hog that never yields.

use super::{Case, Fact, Finding, RECORDING, Rule, RuleOutcome};

/// A wait in which so much CPU time was due to the waiter starves it: two of the longest slices that a time-sharing
/// scheduler of Linux gives at nice 0 (100 ms under O(1)). However many tasks share a CPU and whatever their
/// weights, a fair queue owes a waiter no more than a slice or two, so a long wait alone is no starvation, ns.
pub(super) const STARVED_DUE_NS: u64 = 200_000_000;

/// The time that others wait behind a running task from which on it is reported: two of the longest slices at nice 0,
/// ns.
pub(super) const HELD_NS: u64 = 200_000_000;

/// A hog must hold CPUs from others for so much of all CPU time: a hundredth, ppm.
const HELD_MIN_PPM: u64 = 10_000;

pub(super) fn starved(case: &Case<'_>) -> RuleOutcome {
    let facts = &case.facts.tasks;
    let ids = case.ranked(|task| task.starved_due_ns);
    let Some(first) = ids.first().map(|id| &facts[id.index()]) else { return RuleOutcome::Nothing };
    let worst = first.starved_worst;
    let due_ns: u128 = facts.iter().map(|task| u128::from(task.starved_due_ns)).sum();
    let mut finding =
        Finding::new(Rule::Starved, format!("a waiter starves: {}", case.names(&ids)));
    finding.severity_ppm = case.share_ppm(due_ns);
    finding.cpus = vec![worst.cpu];
    finding.add("hit most", Fact::Text(case.names(&ids[..1])));
    finding.add("its worst wait", Fact::Ns(worst.wait_ns));
    finding.add("the wait began, after the start", Fact::Ns(since_start(case, worst.from_ns)));
    finding.add("CPU time due to it in that wait", Fact::Ns(worst.due_ns));
    finding.add("such waits of it", Fact::Count(first.starved_count));
    finding.add("starved tasks", Fact::Count(ids.len() as u64));
    let due_ns = u64::try_from(due_ns).unwrap_or(u64::MAX);
    finding.add("CPU time due in all such waits", Fact::Ns(due_ns));
    finding.meaning =
        "Due is what the queues in which it stood had for it by weight while it waited. A fair \
        scheduler owes a waiter a slice or two, however long the queue."
            .to_owned();
    finding.tasks = ids;
    finding.command = format!("analyze {RECORDING} --per task");
    RuleOutcome::Found(finding)
}

pub(super) fn hog(case: &Case<'_>) -> RuleOutcome {
    let facts = &case.facts.tasks;
    let held_ns: u128 = facts.iter().map(|task| u128::from(task.held_ns)).sum();
    if case.share_ppm(held_ns) < HELD_MIN_PPM {
        return RuleOutcome::Nothing;
    }
    let ids = case.ranked(|task| task.held_ns);
    let Some(worst) = ids.first().map(|id| &facts[id.index()]) else { return RuleOutcome::Nothing };
    let mut finding = Finding::new(
        Rule::Hog,
        format!("a hog that never yields: {} while others wait", case.names(&ids)),
    );
    finding.severity_ppm = case.share_ppm(held_ns);
    finding.cpus = vec![worst.held_cpu];
    finding.add("holds longest", Fact::Text(case.names(&ids[..1])));
    finding.add("longest time without a break while others waited", Fact::Ns(worst.held_max_ns));
    finding.add("such stretches of it", Fact::Count(worst.held_count));
    if let Some(task) = case.analysis.task(ids[0]) {
        finding.add("times that it blocked", Fact::Count(task.figures.voluntary_switches));
    }
    let held_ns = u64::try_from(held_ns).unwrap_or(u64::MAX);
    finding.add("time of all such stretches", Fact::Ns(held_ns));
    finding.meaning = "Nothing took the CPU away from it in that time: a scheduler without a slice or with a very \
        long one, a task of a real-time class, or kernel code without a preemption point."
        .to_owned();
    finding.tasks = ids;
    finding.command = format!("analyze {RECORDING} --per task --all");
    RuleOutcome::Found(finding)
}

fn since_start(case: &Case<'_>, time_ns: u64) -> u64 {
    time_ns.saturating_sub(case.analysis.start_ns)
}
