//! Findings: a table of all, and one with the evidence for each.

use fairground_analysis::diagnose::{Diagnosis, Fact, Finding, PAIRS_MAX, RECORDING, Rule};
use fairground_report::{Cell, Column, Document, Table};

use crate::pictures::shell_word;

/// Adds the findings, or that there are none.
pub(crate) fn describe_diagnosis(document: &mut Document, diagnosis: &Diagnosis, recording: &str) {
    let judged = Rule::ALL.len() - diagnosis.not_judged.len();
    document.set("diagnosis", "rules", Cell::count(Rule::ALL.len() as u64));
    document.set("diagnosis", "judged", Cell::count(judged as u64));
    document.set("diagnosis", "findings", Cell::count(diagnosis.findings.len() as u64));
    let mut findings = findings_table(&diagnosis.findings);
    if diagnosis.findings.is_empty() {
        findings.note(match judged {
            0 => "No rule could judge this recording.".to_owned(),
            _ => format!("Nothing found: {judged} rules looked, and nothing is above a threshold."),
        });
    }
    document.tables.push(findings);
    for (at, finding) in diagnosis.findings.iter().enumerate() {
        document.tables.push(evidence_table(at + 1, finding, recording));
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

fn findings_table(findings: &[Finding]) -> Table {
    let mut table = Table::of("findings", "Findings", (1..).zip(findings))
        .count("rank", |(rank, _)| *rank)
        .text("rule", |(_, finding)| finding.rule.name())
        .column(Column::percent("cpu_time"), |(_, finding)| percent(finding.severity_ppm))
        .text("finding", |(_, finding)| finding.title.as_str())
        .table();
    if !findings.is_empty() {
        table.note(
            "cpu_time: time lost or given to the wrong task, in % of the CPU time of all CPUs; \
             docs/reference/diagnose.md says for each rule which.",
        );
    }
    table
}

fn evidence_table(rank: usize, finding: &Finding, recording: &str) -> Table {
    let title = format!("{rank}. {}", finding.title);
    let mut table = Table::of("evidence", title, &finding.evidence)
        .text("evidence", |line| line.what.as_str())
        .column(Column::mixed("value"), |line| cell(&line.fact))
        .table();
    table.note(&finding.meaning);
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
