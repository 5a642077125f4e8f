//! The first screen: which run treats the workload how.

use fairground_analysis::metric::{Metric, MetricValue, Unit, machine};
use fairground_analysis::{Analysis, MachineMetrics};
use fairground_report::page::Overview;
use fairground_report::{Cell, Column, Table};

use super::Pictured;
use crate::present;

/// A column of the first screen's table of runs.
struct Measure {
    /// The metric of the machine; `None`: how much CPU time the task furthest from its fair share is from it.
    metric: Option<&'static Metric<MachineMetrics>>,
    /// Whether less is better; otherwise neither is.
    less_is_better: bool,
}

/// The task furthest from its fair share. The other columns are metrics of the machine.
const WORST_ERROR: Measure = Measure { metric: None, less_is_better: true };
/// By key: see `docs/reference/metrics`.
const OF_THE_MACHINE: [(&str, bool); 6] = [
    ("wakeup_latency.p50", true),
    (LATENCY, true),
    (SLICE, false),
    ("switches.rate", false),
    ("idle_while_waiting.share", true),
    ("policy_instructions.switch", true),
];
const LATENCY: &str = "wakeup_latency.p99";
const SLICE: &str = "slice.mean";

impl Measure {
    fn of(key: &str, less_is_better: bool) -> Option<Measure> {
        Some(Measure { metric: Some(machine(key)?), less_is_better })
    }

    fn key(&self) -> String {
        self.metric.map_or("worst_fairness_error".to_owned(), Metric::key)
    }

    fn read(&self, analysis: &Analysis) -> Option<MetricValue> {
        match self.metric {
            Some(metric) => (metric.read)(&analysis.machine),
            None => worst(analysis).map(|worst| MetricValue::Int(worst.error_ns.saturating_abs())),
        }
    }

    fn cell(&self, analysis: &Analysis) -> Cell {
        let unit = self.metric.map_or(Unit::Ns, |metric| metric.unit);
        present::cell(self.read(analysis), unit)
    }
}

fn measures() -> Vec<Measure> {
    let of_the_machine = OF_THE_MACHINE.iter().filter_map(|(key, less)| Measure::of(key, *less));
    std::iter::once(WORST_ERROR).chain(of_the_machine).collect()
}

/// Least CPU time that a task ran, or was due, for its share to be judged: a hundredth of one CPU. A share of almost nothing is wrong
/// by thousands of per cent and says nothing.
const LEAST_PART: u64 = 100;

/// A task and its share.
struct Worst<'a> {
    task: &'a str,
    /// CPU time less the fair share, ns.
    error_ns: i64,
    /// The same in % of the fair share.
    percent: f64,
}

/// The task that got, or lacks, most CPU time beside its fair share. Not the group: what one of its tasks lacks another
/// may have.
fn worst(analysis: &Analysis) -> Option<Worst<'_>> {
    let least_ns = analysis.window_ns() / LEAST_PART;
    analysis
        .tasks
        .iter()
        .filter(|task| task.figures.run_ns.max(task.figures.fluid_ns) >= least_ns)
        .filter_map(|task| {
            let percent = task.figures.fairness_error_percent()?;
            let error_ns = task.figures.fairness_error_ns();
            Some(Worst { task: task.name.as_str(), error_ns, percent })
        })
        .max_by_key(|worst| worst.error_ns.unsigned_abs())
}

/// A row for each run.
pub(super) fn overview(runs: &[Pictured<'_>]) -> Option<Overview> {
    if runs.is_empty() {
        return None;
    }
    let measures = measures();
    let columns = measures.iter().map(|measure| Column::mixed(measure.key()));
    let columns = std::iter::once(Column::text("run")).chain(columns);
    let mut table = Table::new("overview", "At a glance", columns);
    for run in runs {
        let cells = measures.iter().map(|measure| measure.cell(run.analysis));
        table.push(std::iter::once(Cell::text(run.label)).chain(cells));
    }
    let mut best = Vec::new();
    for (column, measure) in measures.iter().enumerate().filter(|(_, m)| m.less_is_better) {
        best.extend(leasts(runs, measure).into_iter().map(|row| (row, column + 1)));
    }
    Some(Overview { table, best })
}

/// The runs with the least value, as far as it is shown; none where all show the same, or only one was measured.
fn leasts(runs: &[Pictured<'_>], measure: &Measure) -> Vec<usize> {
    let values: Vec<(usize, f64, String)> = runs
        .iter()
        .enumerate()
        .filter_map(|(row, run)| {
            let number = measure.read(run.analysis)?.as_f64();
            Some((row, number, value(measure, run.analysis)))
        })
        .collect();
    let Some((_, _, least)) = values.iter().min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Vec::new();
    };
    let rows: Vec<usize> =
        values.iter().filter(|(_, _, shown)| shown == least).map(|(row, ..)| *row).collect();
    if rows.len() == values.len() { Vec::new() } else { rows }
}

/// The result in sentences.
pub(crate) fn summary(runs: &[Pictured<'_>]) -> Vec<String> {
    let sentences = [
        ("Distance from the fair share", Some(WORST_ERROR), furthest as Say),
        ("Wake-up latency, p99", Measure::of(LATENCY, true), value),
        ("Slice, mean", Measure::of(SLICE, false), value),
    ];
    let made = sentences.into_iter();
    made.filter_map(|(of, measure, say)| sentence(runs, of, &measure?, say)).collect()
}

/// A value of a measure in words.
type Say = fn(&Measure, &Analysis) -> String;

/// A measure over all runs: its ends where runs differ, else the one value; `None` where it was not measured.
fn sentence(runs: &[Pictured<'_>], of: &str, measure: &Measure, say: Say) -> Option<String> {
    let read = |analysis: &Analysis| measure.read(analysis).map(MetricValue::as_f64);
    let mut measured: Vec<_> =
        runs.iter().filter_map(|run| Some((read(run.analysis)?, run))).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((_, first), (_, last)) = (measured.first()?, measured.last()?);
    let [least, most] = [first, last].map(|run| say(measure, run.analysis));
    Some(match measured.len() {
        1 if runs.len() == 1 => format!("{of}: {least}."),
        1 => format!("{of}: {least} under {}; not measured elsewhere.", first.label),
        _ if least == most => format!("{of}: {least} in every run."),
        _ => {
            let (first, last) = (first.label, last.label);
            format!("{of}: least under {first}, {least}; most under {last}, {most}.")
        }
    })
}

fn value(measure: &Measure, analysis: &Analysis) -> String {
    measure.cell(analysis).with_unit()
}

/// The task furthest from its fair share, with its distance.
fn furthest(measure: &Measure, analysis: &Analysis) -> String {
    let side = |Worst { task, error_ns, percent }: Worst<'_>| {
        let side = if error_ns < 0 { "too little" } else { "too much" };
        format!("{} ({task} has {side}, {percent:+.2} %)", value(measure, analysis))
    };
    worst(analysis).map(side).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_a_metric_of_the_machine() {
        assert_eq!(measures().len(), OF_THE_MACHINE.len() + 1);
    }
}
