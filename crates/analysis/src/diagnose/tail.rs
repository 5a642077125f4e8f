//! A tail of slow wake-ups.

use super::{Case, Fact, Finding, RECORDING, Rule, RuleOutcome};
use crate::GroupMetrics;

/// A wake-up that takes so long missed at least a tick at HZ 250, ns.
pub(super) const SLOW_NS: u64 = 4_000_000;

/// With fewer wake-ups the 99th percentile is only the worst of them.
const WAKEUPS_MIN: u64 = 100;

/// The 99th percentile must be so many times the median. Below it all wake-ups of the group are slow, which is a
/// property of the scheduler and no tail.
const TAIL_FACTOR: u64 = 10;

pub(super) fn look(case: &Case<'_>) -> RuleOutcome {
    if case.lacks_wakeups() {
        return RuleOutcome::NotJudged("the recording has no events of wake-ups");
    }
    let groups = case.analysis.groups.iter().enumerate().filter(|(_, group)| has_tail(group));
    let worst = groups.max_by_key(|(at, _)| (case.facts.slow_due_ns[*at], usize::MAX - at));
    worst.map_or(RuleOutcome::Nothing, |(at, group)| RuleOutcome::Found(finding(case, at, group)))
}

/// Whether some wake-ups of the group are slow, and most are not.
fn has_tail(group: &GroupMetrics) -> bool {
    let latency = &group.figures.wakeup_latency;
    let (Some(p50_ns), Some(p99_ns)) = (latency.p50_ns(), latency.p99_ns()) else { return false };
    latency.count() >= WAKEUPS_MIN
        && (p50_ns < SLOW_NS && p99_ns >= SLOW_NS)
        && p99_ns >= p50_ns.saturating_mul(TAIL_FACTOR)
}

fn finding(case: &Case<'_>, at: usize, group: &GroupMetrics) -> Finding {
    let latency = &group.figures.wakeup_latency;
    let mut finding = Finding::new(
        Rule::WakeupTail,
        format!("wake-up tail: some wake-ups of `{}` take very long", group.name),
    );
    let due_ns = case.facts.slow_due_ns[at];
    finding.severity_ppm = case.share_ppm(due_ns.into());
    finding.tasks = case.tasks_of(at);
    let slow = latency.values_ns().iter().filter(|ns| **ns >= SLOW_NS).count() as u64;
    finding.add("wake-ups", Fact::Count(latency.count()));
    finding.add("of them slower than 4 ms", Fact::Count(slow));
    for (what, ns) in [
        ("wake-up latency, median", latency.p50_ns()),
        ("wake-up latency, 99th percentile", latency.p99_ns()),
        ("wake-up latency, longest", latency.max_ns()),
    ] {
        if let Some(ns) = ns {
            finding.add(what, Fact::Ns(ns));
        }
    }
    let blockers = case.facts.slow.iter().filter(|((waits, _), _)| *waits == at);
    let worst = blockers.max_by_key(|((_, runs), count)| (**count, usize::MAX - runs));
    if let Some(((_, runs), count)) = worst {
        let runs = case.group_name(*runs);
        finding.add(
            format!("of the slow ones, those that waited for `{runs}` last"),
            Fact::Count(*count),
        );
    }
    finding.add("CPU time due in the slow ones' waits", Fact::Ns(due_ns));
    finding.meaning = "Most of its wake-ups are answered at once and some wait for a slice of \
                       another task: look at what differs between them, the CPU that was chosen \
                       above all."
        .to_owned();
    finding.command = format!("analyze {RECORDING} --per task --interval 100ms");
    finding
}
