//! What `diagnose` finds in a trace, as tables.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use fairground_analysis::diagnose::{Diagnosis, Evidence, Fact, Finding};
use fairground_analysis::metric::MetricValue;

use crate::figures::{self, large_numbers, table, texts};

/// The findings, the costliest first: one row each.
pub(crate) fn findings(diagnosis: &Diagnosis) -> Result<RecordBatch, ArrowError> {
    let all = &diagnosis.findings;
    let text = |read: fn(&Finding) -> &str| all.iter().map(move |finding| Some(read(finding)));
    let columns = vec![
        large_numbers("rank", (1..).take(all.len()).map(Some)),
        texts("rule", text(|finding| finding.rule.name())),
        large_numbers("cpu_time_ppm", all.iter().map(|finding| Some(finding.severity_ppm))),
        texts("finding", text(|finding| &finding.title)),
        texts("meaning", text(|finding| &finding.meaning)),
        texts("command", text(|finding| &finding.command)),
    ];
    table(columns, HashMap::new())
}

/// The evidence of all findings: one row for each figure.
pub(crate) fn evidence(diagnosis: &Diagnosis) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<(u64, &Evidence)> = (1..)
        .zip(&diagnosis.findings)
        .flat_map(|(rank, finding)| finding.evidence.iter().map(move |line| (rank, line)))
        .collect();
    let columns = vec![
        large_numbers("rank", rows.iter().map(|(rank, _)| Some(*rank))),
        texts("evidence", rows.iter().map(|(_, line)| Some(&line.what))),
        figures::values("value", rows.iter().map(|(_, line)| value(&line.fact))),
        texts("unit", rows.iter().map(|(_, line)| unit(&line.fact))),
        texts("text", rows.iter().map(|(_, line)| text(&line.fact))),
    ];
    table(columns, HashMap::new())
}

/// The rules that could not judge, and why.
pub(crate) fn not_judged(diagnosis: &Diagnosis) -> Vec<(String, String)> {
    let all = diagnosis.not_judged.iter();
    all.map(|(rule, why)| (rule.name().to_owned(), (*why).to_owned())).collect()
}

fn value(fact: &Fact) -> Option<MetricValue> {
    match fact {
        Fact::Ns(number) | Fact::Count(number) | Fact::Ppm(number) => {
            Some(MetricValue::Int((*number).try_into().unwrap_or(i64::MAX)))
        }
        Fact::MilliPerSecond(milli) => Some(MetricValue::Float(*milli as f64 / 1e3)),
        Fact::Text(_) => None,
    }
}

fn unit(fact: &Fact) -> Option<&'static str> {
    match fact {
        Fact::Ns(_) => Some("ns"),
        Fact::Ppm(_) => Some("ppm"),
        Fact::MilliPerSecond(_) => Some("1/s"),
        Fact::Count(_) | Fact::Text(_) => None,
    }
}

fn text(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::Text(text) => Some(text),
        _ => None,
    }
}
