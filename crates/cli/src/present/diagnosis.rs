//! Findings: a table of all, and one with the evidence for each.

use fairground_analysis::diagnose::{
    ChangedFinding, Diagnosis, Fact, Fate, Finding, PAIRS_MAX, RECORDING, Rule,
};
use fairground_report::{Cell, Column, Document, Table};

use crate::pictures::shell_word;

/// Adds the findings, or that there are none; `left_out` are about tasks that are not asked for. `unknown` says what
/// the recording does not show.
pub(crate) fn describe_diagnosis(
    document: &mut Document,
    diagnosis: &Diagnosis,
    recording: &str,
    left_out: usize,
    unknown: Option<&str>,
) {
    let judged = Rule::ALL.len() - diagnosis.not_judged.len();
    document.set("diagnosis", "rules", Cell::count(Rule::ALL.len() as u64));
    document.set("diagnosis", "judged", Cell::count(judged as u64));
    document.set("diagnosis", "findings", Cell::count(diagnosis.findings.len() as u64));
    if !diagnosis.scheduler.is_empty() {
        document.set("diagnosis", "scheduler", Cell::text(&diagnosis.scheduler));
    }
    document.summary.push(match (diagnosis.findings.as_slice(), judged) {
        ([finding], _) => format!("1 finding: {}.", finding.title),
        ([first, ..], _) => {
            format!("{} findings; the most costly: {}.", diagnosis.findings.len(), first.title)
        }
        ([], 0) => "No rule could judge this recording.".to_owned(),
        ([], _) if left_out > 0 => "Nothing found about the tasks that are asked for.".to_owned(),
        ([], _) => {
            let what = unknown.map_or_else(String::new, |what| format!("; {what}"));
            format!("Nothing found: {judged} rules looked, and nothing is above a threshold{what}.")
        }
    });
    if !diagnosis.findings.is_empty() {
        document.tables.push(findings_table(&diagnosis.findings));
    }
    for (rank, finding) in (1..).zip(&diagnosis.findings) {
        document.tables.push(evidence_table(&format!("{rank}. "), finding, recording));
    }
    if diagnosis.not_counted > 0 {
        document.notes.push(format!(
            "{} cuts and slow wake-ups were not counted: more than {PAIRS_MAX} pairs of groups are in them",
            diagnosis.not_counted
        ));
    }
    for (rule, why) in &diagnosis.not_judged {
        document.notes.push(format!("not judged: {}: {why}", rule.name()));
    }
}

/// The first line of a comparison: what is new or grown.
pub(crate) fn changes_headline(changed: &[ChangedFinding<'_>]) -> String {
    let worse = changed.iter().find(|one| matches!(one.fate, Fate::New | Fate::Grown));
    let count = |fate| changed.iter().filter(|one| one.fate == fate).count();
    match worse.and_then(|one| Some((one, one.after?))) {
        Some((one, finding)) => format!("{}: {}", one.fate.name(), finding.title),
        None if changed.is_empty() => "nothing found in either recording".to_owned(),
        None => {
            let (gone, shrunk) = (count(Fate::Gone), count(Fate::Shrunk));
            format!("nothing new: {gone} findings are gone, {shrunk} cost less")
        }
    }
}

/// Adds the findings of two recordings, with the evidence of those that are new or grown.
pub(crate) fn describe_changes(
    document: &mut Document,
    changed: &[ChangedFinding<'_>],
    [before, after]: [&str; 2],
) {
    let cost = |finding: Option<&Finding>| {
        Cell::known(finding.map(|finding| finding.severity_ppm), percent)
    };
    let mut table = Table::of("changes", "Findings of both recordings", changed)
        .text("is", |one| one.fate.name())
        .text("rule", |one| one.rule().map_or("", Rule::name))
        .column(Column::percent("before"), |one| cost(one.before))
        .column(Column::percent("after"), |one| cost(one.after))
        .text("finding", |one| {
            one.after.or(one.before).map_or("", |finding| finding.title.as_str())
        })
        .table();
    table.note(
        "before, after: time lost or given to the wrong task, in % of the CPU time of all CPUs; \
         not measured: not found there. Findings are the same if they have the rule and the \
         name of a task in common; grown or shrunk: by a fifth.",
    );
    if !changed.is_empty() {
        document.tables.push(table);
    }
    for one in changed {
        match (one.fate, one.before, one.after) {
            (Fate::New | Fate::NotJudged, None, Some(finding)) => {
                document.tables.push(evidence_table("new: ", finding, after));
            }
            (Fate::Grown, Some(old), Some(finding)) => {
                document.tables.push(evidence_table("grown, before: ", old, before));
                document.tables.push(evidence_table("grown, after: ", finding, after));
            }
            _ => {}
        }
    }
}

fn findings_table(findings: &[Finding]) -> Table {
    let mut table = Table::of("findings", "Findings", (1..).zip(findings))
        .count("rank", |(rank, _)| *rank)
        .text("rule", |(_, finding)| finding.rule.name())
        .column(Column::percent("cpu_time"), |(_, finding)| percent(finding.severity_ppm))
        .text("finding", |(_, finding)| finding.title.as_str())
        .table();
    table.note(
        "cpu_time: time lost or given to the wrong task, in % of the CPU time of all CPUs; \
         docs/reference/diagnose.md says for each rule which.",
    );
    table
}

fn evidence_table(rank: &str, finding: &Finding, recording: &str) -> Table {
    let title = format!("{rank}{}", finding.title);
    let mut table = Table::of("evidence", title, &finding.evidence)
        .text("evidence", |line| line.what.as_str())
        .column(Column::mixed("value"), |line| cell(&line.fact))
        .table();
    table.note(&finding.meaning);
    if !finding.advice.is_empty() {
        table.note(format!("To try: {}.", finding.advice));
    }
    let command = finding.command.replacen(RECORDING, &shell_word(recording), 1);
    table.note(format!("More: fairground {command}"));
    table
}

fn cell(fact: &Fact) -> Cell {
    match fact {
        Fact::Ns(ns) => Cell::duration_ns(*ns),
        Fact::Count(count) => Cell::count(*count),
        Fact::Ppm(ppm) => percent(*ppm),
        Fact::MilliPerSecond(milli) => Cell::quantity(*milli as f64 / 1e3, 1, "1/s"),
        Fact::Text(text) => Cell::text(text),
    }
}

fn percent(ppm: u64) -> Cell {
    Cell::percent(ppm as f64 / 1e4, 2)
}
