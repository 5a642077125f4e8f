//! Findings: a table of all, and one with the evidence for each.

use fairground_analysis::diagnose::{Diagnosis, Fact, Finding, PAIRS_MAX, RECORDING, Rule};
use fairground_report::{Cell, Column, Document, Table};

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
    let columns = [
        Column::number("rank"),
        Column::text("rule"),
        Column::percent("cpu_time"),
        Column::text("finding"),
    ];
    let mut table = Table::new("findings", "Findings", columns);
    for (at, finding) in findings.iter().enumerate() {
        table.push([
            Cell::count(at as u64 + 1),
            Cell::text(finding.rule.name()),
            percent(finding.severity_ppm),
            Cell::text(&finding.title),
        ]);
    }
    if !findings.is_empty() {
        table.note(
            "cpu_time: time lost or given to the wrong task, in % of the CPU time of all CPUs; \
             docs/reference/diagnose.md says for each rule which.",
        );
    }
    table
}

fn evidence_table(rank: usize, finding: &Finding, recording: &str) -> Table {
    let columns = [Column::text("evidence"), Column::mixed("value")];
    let title = format!("{rank}. {}", finding.title);
    let mut table = Table::new("evidence", title, columns);
    for line in &finding.evidence {
        table.push([Cell::text(&line.what), cell(&line.fact)]);
    }
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

/// A word that a shell reads as it is.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./+:@%=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
