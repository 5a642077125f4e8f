//! The findings of two recordings: which are new, gone, or grown.

use super::{Diagnosis, Finding, Rule};
use crate::GroupMetrics;
use fairground_trace::Trace;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A severity that is at least this much larger or smaller, in per cent of what it was, has changed: a fifth. The
/// severities of two recordings of the same load differ by a few per cent.
const CHANGED_MIN_PERCENT: u64 = 20;

/// The change of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Only the second recording has it.
    New,
    /// It costs more in the second recording.
    Grown,
    /// It costs about as much.
    Same,
    /// It costs less in the second recording.
    Shrunk,
    /// Only the first recording has it.
    Gone,
    /// Only one recording has it, and the rule could not judge the other one.
    NotJudged,
}

impl Fate {
    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Fate::New => "new",
            Fate::Grown => "grown",
            Fate::Same => "same",
            Fate::Shrunk => "shrunk",
            Fate::Gone => "gone",
            Fate::NotJudged => "not judged",
        }
    }
}

/// A finding of one or of both recordings.
#[derive(Clone, Debug)]
pub struct ChangedFinding<'a> {
    /// Its change.
    pub fate: Fate,
    /// In the first recording.
    pub before: Option<&'a Finding>,
    /// In the second recording.
    pub after: Option<&'a Finding>,
}

impl ChangedFinding<'_> {
    /// Which rule found it.
    pub fn rule(&self) -> Option<Rule> {
        self.after.or(self.before).map(|finding| finding.rule)
    }

    /// How much more it costs in the second recording, ppm.
    pub fn growth_ppm(&self) -> i64 {
        let severity = |finding: Option<&Finding>| {
            finding.map_or(0, |finding| i64::try_from(finding.severity_ppm).unwrap_or(i64::MAX))
        };
        severity(self.after) - severity(self.before)
    }
}

/// Sets the findings of two recordings side by side: of one rule, about tasks of which one name at least is the same.
/// Those that grew most come first.
pub fn compare_findings<'a>(
    before: (&Trace, &'a Diagnosis),
    after: (&Trace, &'a Diagnosis),
) -> Vec<ChangedFinding<'a>> {
    let judged = |diagnosis: &Diagnosis, rule: Rule| {
        diagnosis.not_judged.iter().all(|(not, _)| *not != rule)
    };
    let mut all = Vec::new();
    for rule in Rule::ALL {
        let find = |diagnosis: &'a Diagnosis| diagnosis.findings.iter().find(|f| f.rule == rule);
        let found = (find(before.1), find(after.1));
        let alone =
            |other: &Diagnosis, fate| if judged(other, rule) { fate } else { Fate::NotJudged };
        let new = |one| ChangedFinding {
            fate: alone(before.1, Fate::New),
            before: None,
            after: Some(one),
        };
        let gone = |one| ChangedFinding {
            fate: alone(after.1, Fate::Gone),
            before: Some(one),
            after: None,
        };
        match found {
            (None, None) => {}
            (None, Some(one)) => all.push(new(one)),
            (Some(one), None) => all.push(gone(one)),
            (Some(old), Some(one)) if names(before.0, old).is_disjoint(&names(after.0, one)) => {
                all.extend([new(one), gone(old)]);
            }
            (Some(old), Some(one)) => all.push(ChangedFinding {
                fate: fate(old.severity_ppm, one.severity_ppm),
                before: Some(old),
                after: Some(one),
            }),
        }
    }
    all.sort_by_key(|one| (Reverse(one.growth_ppm()), one.rule()));
    all
}

fn fate(before_ppm: u64, after_ppm: u64) -> Fate {
    let changed = |from: u64, to: u64| {
        to > from && (to - from).saturating_mul(100) >= from.saturating_mul(CHANGED_MIN_PERCENT)
    };
    match (changed(before_ppm, after_ppm), changed(after_ppm, before_ppm)) {
        (true, _) => Fate::Grown,
        (_, true) => Fate::Shrunk,
        _ => Fate::Same,
    }
}

fn names<'t>(trace: &'t Trace, finding: &Finding) -> BTreeSet<&'t str> {
    let infos = finding.tasks.iter().filter_map(|task| trace.tasks().get(task.index()));
    infos.map(|info| GroupMetrics::name_of(&info.comm)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{TaskId, TaskInfo};

    /// The idle task, and these.
    fn trace(comms: &[&str]) -> Trace {
        let mut trace = Trace::new(1);
        for (nth, comm) in comms.iter().enumerate() {
            trace.add_task(TaskInfo::new(100 + nth as u32, comm));
        }
        trace
    }

    fn found(findings: &[(Rule, u64, &[u32])]) -> Diagnosis {
        let finding = |(rule, severity_ppm, tasks): &(Rule, u64, &[u32])| Finding {
            severity_ppm: *severity_ppm,
            tasks: tasks.iter().map(|task| TaskId(*task)).collect(),
            ..Finding::new(*rule, String::new())
        };
        Diagnosis { findings: findings.iter().map(finding).collect(), ..Diagnosis::default() }
    }

    /// The change of each finding.
    fn fates(changed: &[ChangedFinding<'_>]) -> Vec<(Fate, Option<Rule>)> {
        changed.iter().map(|one| (one.fate, one.rule())).collect()
    }

    #[test]
    fn a_fifth_more_or_less_is_a_change() {
        let known = [
            (100, 100, Fate::Same),
            (100, 119, Fate::Same),
            (100, 120, Fate::Grown),
            (119, 100, Fate::Same),
            (120, 100, Fate::Shrunk),
            (0, 0, Fate::Same),
            (0, 1, Fate::Grown),
            (1, 0, Fate::Shrunk),
            (u64::MAX - 1, u64::MAX, Fate::Same),
        ];
        for (before, after, expected) in known {
            assert_eq!(fate(before, after), expected, "{before} {after}");
        }
    }

    #[test]
    fn those_that_grew_most_come_first() {
        let trace = trace(&["a"]);
        let before = found(&[(Rule::Hog, 500, &[1]), (Rule::Starved, 100, &[1])]);
        let after = found(&[(Rule::Starved, 900, &[1]), (Rule::PingPong, 300, &[1])]);
        let changed = compare_findings((&trace, &before), (&trace, &after));
        let expected = [
            (Fate::Grown, Some(Rule::Starved)),
            (Fate::New, Some(Rule::PingPong)),
            (Fate::Gone, Some(Rule::Hog)),
        ];
        assert_eq!(fates(&changed), expected);
        let growths: Vec<i64> = changed.iter().map(ChangedFinding::growth_ppm).collect();
        assert_eq!(growths, [800, 300, -500]);
    }

    #[test]
    fn one_rule_about_other_tasks_is_one_gone_and_one_new() {
        let (one, other) = (trace(&["worker/0", "cc"]), trace(&["worker/7", "ld"]));
        let compare = |before: &[u32], after: &[u32]| {
            let (before, after) =
                (found(&[(Rule::Hog, 10, before)]), found(&[(Rule::Hog, 10, after)]));
            fates(&compare_findings((&one, &before), (&other, &after)))
        };
        // Members of one group, whatever their pids, and any name in common.
        assert_eq!(compare(&[1], &[1]), [(Fate::Same, Some(Rule::Hog))]);
        assert_eq!(compare(&[1, 2], &[1]), [(Fate::Same, Some(Rule::Hog))]);
        let apart = [(Fate::New, Some(Rule::Hog)), (Fate::Gone, Some(Rule::Hog))];
        assert_eq!(compare(&[2], &[2]), apart);
    }

    #[test]
    fn what_the_other_recording_could_not_show_is_neither_new_nor_gone() {
        let trace = trace(&["a"]);
        let seen = found(&[(Rule::LockConvoy, 10, &[1])]);
        let blind = Diagnosis {
            not_judged: vec![(Rule::LockConvoy, "no waits for locks")],
            ..Diagnosis::default()
        };
        for (before, after) in [(&seen, &blind), (&blind, &seen)] {
            let changed = compare_findings((&trace, before), (&trace, after));
            assert_eq!(fates(&changed), [(Fate::NotJudged, Some(Rule::LockConvoy))]);
        }
        assert!(compare_findings((&trace, &blind), (&trace, &blind)).is_empty());
    }
}
