//! Slices cut by a sleeper.

use super::facts::Cuts;
use super::{Case, Fact, Family, Finding, RECORDING, Rule, RuleOutcome, ratio_ppm};

/// A task that comes on the CPU later than this after its wake-up did not preempt: it was picked at a tick, or at
/// the end of a slice. A quarter of the shortest tick (1 ms at HZ 1000), and far more than an interrupt needs, ns.
pub(super) const CUT_DELAY_MAX_NS: u64 = 250_000;

/// Fewer cuts than this in a trace are chance.
const CUTS_MIN: u64 = 100;

/// From this share of a group's involuntary switches on, cuts decide how long its slices are: a half.
const CUT_SHARE_MIN_PPM: u64 = 500_000;

/// A slice of this length was worth having: the minimal granularity of `cfs@2.6.27-sle11`, and a tick at HZ 250, ns.
const SHORT_SLICE_NS: u64 = 4_000_000;

/// From this share of the cuts on, the CPU goes to another task afterwards: the slice is lost and not only interrupted.
const PASSED_ON_MIN_PPM: u64 = 500_000;

/// Fewer slices than this have no mean that is worth a line.
const SLICES_MIN: u64 = 10;

pub(super) fn look(case: &Case<'_>) -> RuleOutcome {
    if case.lacks_wakeups() {
        return RuleOutcome::NotJudged("the recording has no events of wake-ups");
    }
    // The group whose slices are cut most, by all that cut it.
    let groups = 0..case.analysis.groups.len();
    let hit = groups.filter_map(|victim| Some((victim, against(case, victim)?)));
    let worst = hit.max_by_key(|(victim, cuts)| (cuts.count, usize::MAX - victim));
    worst.map_or(RuleOutcome::Nothing, |(victim, all)| {
        RuleOutcome::Found(finding(case, victim, all))
    })
}

/// The cuts against a group, if they are what the rule means.
fn against(case: &Case<'_>, victim: usize) -> Option<Cuts> {
    let mut all = Cuts::default();
    for (_, cuts) in cutters(case, victim) {
        all.count += cuts.count;
        all.slices_ns = all.slices_ns.saturating_add(cuts.slices_ns);
        all.taken_ns = all.taken_ns.saturating_add(cuts.taken_ns);
        all.resumed += cuts.resumed;
        all.passed_on += cuts.passed_on;
    }
    let ends = case.analysis.groups[victim].figures.involuntary_switches;
    let after = all.passed_on + all.resumed;
    let matters = all.count >= CUTS_MIN
        && ratio_ppm(all.count.into(), ends.into()) >= CUT_SHARE_MIN_PPM
        && all.slices_ns / all.count < SHORT_SLICE_NS
        && ratio_ppm(all.passed_on.into(), after.into()) >= PASSED_ON_MIN_PPM;
    matters.then_some(all)
}

/// The groups that cut the slices of a group: most cuts first.
fn cutters(case: &Case<'_>, victim: usize) -> Vec<(usize, Cuts)> {
    let pairs = case.facts.cuts.iter().filter(|((_, cut), _)| *cut == victim);
    let mut cutters: Vec<_> = pairs.map(|((by, _), cuts)| (*by, *cuts)).collect();
    cutters.sort_by_key(|(by, cuts)| (u64::MAX - cuts.count, *by));
    cutters
}

fn finding(case: &Case<'_>, victim: usize, all: Cuts) -> Finding {
    let cutters = cutters(case, victim);
    let (first, firsts) = cutters[0];
    let (by, victim_name) = (case.group_name(first), case.group_name(victim));
    let cut_ns = all.slices_ns / all.count;
    let mut finding = Finding::new(
        Rule::CutSlices,
        format!("slices cut by a sleeper: `{by}` wakes up and ends the slices of `{victim_name}`"),
    );
    finding.severity_ppm = case.share_ppm(all.taken_ns.into());
    finding.tasks = case.tasks_of(first);
    if first != victim {
        finding.tasks.extend(case.tasks_of(victim));
    }
    finding.add("sleeper", Fact::Text(by.to_owned()));
    finding.add("feature", Fact::Text("wake-up preemption".to_owned()));
    finding.add("cuts by it", Fact::Count(firsts.count));
    finding.add("cuts by it, a second", case.rate(firsts.count));
    let wakeups = case.facts.wakeups[first];
    let of_wakeups = ratio_ppm(firsts.count.into(), wakeups.into());
    finding.add("of its wake-ups that cut a slice", Fact::Ppm(of_wakeups));
    if all.count > firsts.count {
        finding.add("cuts by others", Fact::Count(all.count - firsts.count));
    }
    let ends = case.analysis.groups[victim].figures.involuntary_switches;
    let of_ends = ratio_ppm(all.count.into(), ends.into());
    finding.add(format!("of the slices of `{victim_name}` that a wake-up cut"), Fact::Ppm(of_ends));
    finding.add("length of a slice that was cut, mean", Fact::Ns(cut_ns));
    add_effect(case, victim, cut_ns, &mut finding);
    let after = all.passed_on + all.resumed;
    let lost = ratio_ppm(all.passed_on.into(), after.into());
    finding.add("cuts after which the CPU went to another task", Fact::Ppm(lost));
    finding.add("switches for the cuts, a second", case.rate(all.count * 2));
    finding.add("loss: CPU time from cut to the next slice", Fact::Ns(all.taken_ns));
    finding.add("loss, of all CPU time", Fact::Ppm(finding.severity_ppm));
    finding.meaning =
        "The loss holds the sleepers' own work and the switches to and from them; caches that go \
        cold are not in a recording."
            .to_owned();
    finding.command = match Family::of(&case.trace.origin) {
        Family::Eevdf { .. } => {
            format!("replay {RECORDING} --sched eevdf --set RUN_TO_PARITY=on,off")
        }
        _ => format!("replay {RECORDING} --sched cfs@2.6.27-sle11 --set NEW_FAIR_SLEEPERS=on,off"),
    };
    finding
}

/// The slices without cuts: measured where the trace has slices without a cut, or a change of tunables.
fn add_effect(case: &Case<'_>, victim: usize, cut_ns: u64, finding: &mut Finding) {
    let whole = case.facts.whole[victim];
    match whole.mean_ns().filter(|_| whole.count >= SLICES_MIN) {
        Some(whole_ns) => {
            finding.add("slices that no wake-up cut", Fact::Count(whole.count));
            finding.add("length of a slice that no wake-up cut, mean", Fact::Ns(whole_ns));
            finding.add(
                "effect: a cut slice, of one without a cut",
                Fact::Ppm(ratio_ppm(cut_ns.into(), whole_ns.into())),
            );
        }
        None => finding.add(
            "effect on the slice",
            Fact::Text(
                "not in this recording, which has no slices without a cut; the command measures it"
                    .into(),
            ),
        ),
    }
    let phases = &case.facts.phases;
    if phases.len() < 2 {
        return;
    }
    for phase in phases {
        let slices = phase.slices[victim];
        let Some(mean_ns) = slices.mean_ns().filter(|_| slices.count >= SLICES_MIN) else {
            continue;
        };
        let what = match phase.change.as_str() {
            "" => "mean slice before any tunable changed".to_owned(),
            change => format!("effect: mean slice after {change}"),
        };
        finding.add(what, Fact::Ns(mean_ns));
    }
}
