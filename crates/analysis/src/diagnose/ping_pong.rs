//! A task that goes to and fro between CPUs.

use super::{Case, Fact, Finding, RECORDING, Rule, RuleOutcome, ratio_ppm};
use crate::diagnose::facts::TaskFacts;

/// A return to a CPU within this time of leaving it is a bounce:
/// what the task had in the cache is still there, so the way out was for nothing, ns.
pub(super) const BOUNCE_NS: u64 = 10_000_000;

/// So long after a move a task runs on a cold cache: `sysctl_sched_migration_cost` of Linux since 2.6.24, ns.
pub(super) const COLD_NS: u64 = 500_000;

/// So many bounces a second, in thousandths, are more than a balancer's or a wake-up's occasional change of mind.
const BOUNCES_MIN_MILLI: u128 = 50_000;

/// And so much of the task's arrivals on a CPU: a fifth, ppm.
const BOUNCE_SHARE_MIN_PPM: u64 = 200_000;

/// And so much of all CPU time may be run cold: a thousandth, ppm.
const COLD_MIN_PPM: u64 = 1_000;

pub(super) fn look(case: &Case<'_>) -> RuleOutcome {
    let facts = &case.facts.tasks;
    let window_ns = u128::from(case.analysis.window_ns());
    let is_one = |task: &TaskFacts| {
        u128::from(task.bounces) * 1_000_000_000_000 >= BOUNCES_MIN_MILLI * window_ns.max(1)
            && task.bounces > 1
            && ratio_ppm(task.bounces.into(), task.switch_ins.into()) >= BOUNCE_SHARE_MIN_PPM
    };
    let ids = case.ranked(|task| if is_one(task) { task.bounces } else { 0 });
    let Some(first) = ids.first().map(|id| &facts[id.index()]) else { return RuleOutcome::Nothing };
    let bounces = ids.iter().map(|id| facts[id.index()].bounces).sum();
    let cold_ns: u64 = ids.iter().map(|id| facts[id.index()].cold_ns).sum();
    let severity_ppm = case.share_ppm(cold_ns.into());
    if severity_ppm < COLD_MIN_PPM {
        return RuleOutcome::Nothing;
    }
    let mut finding =
        Finding::new(Rule::PingPong, format!("ping-pong migration: {}", case.names(&ids)));
    finding.severity_ppm = severity_ppm;
    finding.add("tasks", Fact::Count(ids.len() as u64));
    finding.add("returns to a CPU left within 10 ms", Fact::Count(bounces));
    finding.add("returns, a second", case.rate(bounces));
    finding.add("most often", Fact::Text(case.names(&ids[..1])));
    let share = ratio_ppm(first.bounces.into(), first.switch_ins.into());
    finding.add("of its arrivals on a CPU that are returns", Fact::Ppm(share));
    finding.add("run time in the first 500 µs after a move", Fact::Ns(cold_ns));
    finding.meaning =
        "A task that returns at once was moved for nothing. The run time after the moves is what \
        may run on a cold cache; what that costs is not in a recording."
            .to_owned();
    finding.tasks = ids;
    finding.command = format!("analyze {RECORDING} --per task");
    RuleOutcome::Found(finding)
}
