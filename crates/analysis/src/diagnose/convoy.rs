//! Tasks that queue at a lock.

use super::{Case, Fact, Finding, RECORDING, Rule, RuleOutcome, listed, ratio_ppm};
use crate::contention::{Contention, DEPTH, Site, WaitKind};
use fairground_trace::LockFlags;

/// Fewer waits for a lock are chance.
const WAITS_MIN: u64 = 100;

/// A convoy: on average so many tasks or more wait at the lock, in millionths. Below one there are times when it is
/// free.
const WAITING_MIN_PPM: u64 = 1_000_000;

/// And so much of all CPU time must be lost by it: a hundredth, ppm.
const LOST_MIN_PPM: u64 = 10_000;

/// A holder that waits for a CPU for so much of the others' wait is the scheduler's doing, ppm.
const HOLDER_WAITS_PPM: u64 = 200_000;

pub(super) fn look(case: &Case<'_>) -> RuleOutcome {
    // Without them the pass over all sleeps would be for nothing.
    if !case.facts.has_lock_waits {
        return RuleOutcome::NotJudged("the recording has no waits for locks (`record --stacks`)");
    }
    let contention = Contention::of(case.trace, DEPTH);
    let is_lock = |site: &&Site| matches!(site.kind, WaitKind::Lock(_));
    let window_ns = u128::from(case.analysis.window_ns());
    let waiting_ppm = |site: &Site| ratio_ppm(site.waits.sum_ns().into(), window_ns);
    let queues: Vec<&Site> = contention
        .sites
        .iter()
        .filter(is_lock)
        .filter(|site| site.waits.count() >= WAITS_MIN && waiting_ppm(site) >= WAITING_MIN_PPM)
        .collect();
    let Some(worst) = queues.first() else { return RuleOutcome::Nothing };
    let idle_ns: u64 = case.analysis.cpus.iter().map(|cpu| cpu.idle_ns).sum();
    let severity_ppm = case.share_ppm(lost_ns(&queues, idle_ns).into());
    if severity_ppm < LOST_MIN_PPM {
        return RuleOutcome::Nothing;
    }
    let name = format!("`{}`", worst.name);
    let mut finding = Finding::new(Rule::LockConvoy, format!("lock convoy: tasks queue at {name}"));
    finding.severity_ppm = severity_ppm;
    finding.add("kind", Fact::Text(worst.kind.name()));
    finding.add("waits", Fact::Count(worst.waits.count()));
    finding.add("waits, a second", case.rate(worst.waits.count()));
    finding.add("a wait, p50", Fact::Ns(worst.waits.p50_ns().unwrap_or(0)));
    finding.add("a wait, p99", Fact::Ns(worst.waits.p99_ns().unwrap_or(0)));
    finding.add(
        "time waited, of the recording (100 %: one task waits all the time)",
        Fact::Ppm(waiting_ppm(worst)),
    );
    let of_waits = |ns: u64| ratio_ppm(ns.into(), worst.waits.sum_ns().into());
    let runnable_ppm = of_waits(worst.holder.runnable_ns);
    finding.add("meanwhile the holder ran", Fact::Ppm(of_waits(worst.holder.running_ns)));
    finding.add("meanwhile the holder waited for a CPU", Fact::Ppm(runnable_ppm));
    finding.add("meanwhile the holder slept", Fact::Ppm(of_waits(worst.holder.sleeping_ns)));
    if let Some(pair) = worst.blockers.first() {
        let text = format!("{} waits for {}", pair.waiter, pair.blocker);
        finding.add("most of it", Fact::Text(text));
    }
    finding.add("idle time of the CPUs", Fact::Ppm(case.share_ppm(idle_ns.into())));
    if queues.len() > 1 {
        let others = queues[1..].iter().map(|site| site.name.clone());
        finding.add("other locks with a queue", Fact::Text(listed(others)));
    }
    finding.meaning = meaning(runnable_ppm).to_owned();
    finding.command = format!("contention {RECORDING}");
    RuleOutcome::Found(finding)
}

/// The cost of the queues: those that spin burn their CPU; those that sleep leave CPUs idle, at most as much as idles
/// at all.
fn lost_ns(queues: &[&Site], idle_ns: u64) -> u64 {
    let spins = |site: &&Site| match site.kind {
        WaitKind::Lock(flags) => LockFlags(flags).has(LockFlags::SPIN),
        _ => false,
    };
    let sum = |spinning: bool| -> u64 {
        let some = queues.iter().filter(|site| spins(site) == spinning);
        some.fold(0, |sum, site| sum.saturating_add(site.waits.sum_ns()))
    };
    sum(true).saturating_add(sum(false).min(idle_ns))
}

fn meaning(runnable_ppm: u64) -> &'static str {
    if runnable_ppm >= HOLDER_WAITS_PPM {
        "The lock is held by tasks that have no CPU: they were preempted, or not yet scheduled \
         after the lock was handed to them. Another scheduler or another kind of lock would change \
         that; less work under the lock helps more."
    } else {
        "The tasks do one after the other what the lock covers: more CPUs do not help, less work under the lock \
         does. Of those that sleep, at most the idle time of the CPUs is counted as lost."
    }
}
