//! The first screen: which run treats the workload how.

use fairground_analysis::metric::{Metric, MetricValue, Unit, machine};
use fairground_analysis::{Analysis, MachineMetrics};
use fairground_report::page::Overview;
use fairground_report::{Cell, Column, Table};

use super::Pictured;
use crate::present;

/// What the first screen says of each run: a column.
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

/// What a task ran, or was due, for its share to be judged: a hundredth of one CPU. A share of almost nothing is wrong
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

/// What came out, in sentences.
pub(super) fn answers(runs: &[Pictured<'_>]) -> Vec<String> {
    let sentences = [
        ends(runs, Some(WORST_ERROR), furthest).map(|ends| match ends {
            Ends::One(error) => format!("Furthest from its fair share: {error}."),
            Ends::Two([(first, least), (last, most)]) => format!(
                "Fairest is {first}: furthest from its fair share, {least}. Least fair is {last}: {most}."
            ),
        }),
        ends(runs, Measure::of(LATENCY, true), value).map(|ends| match ends {
            Ends::One(p99) => format!("99 of 100 woken tasks run within {p99}."),
            Ends::Two([(first, least), (last, most)]) => format!(
                "Woken tasks wait least under {first}, 99 of 100 no longer than {least}, and \
                 longest under {last}, {most}."
            ),
        }),
        ends(runs, Measure::of(SLICE, false), value).map(|ends| match ends {
            Ends::One(mean) => format!("A slice lasts {mean} on average."),
            Ends::Two([(first, least), (last, most)]) => format!(
                "Slices are shortest under {first}, {least} on average, and longest under {last}, {most}."
            ),
        }),
    ];
    sentences.into_iter().flatten().collect()
}

/// What is said of a measure.
enum Ends<'a> {
    /// Of the only run.
    One(String),
    /// Of the runs with the least and with the greatest value, each with its name.
    Two([(&'a str, String); 2]),
}

/// The ends of a measure over all runs, in the words of `say`; `None` where it was not measured.
fn ends<'a>(
    runs: &[Pictured<'a>],
    measure: Option<Measure>,
    say: impl Fn(&Measure, &Analysis) -> String,
) -> Option<Ends<'a>> {
    let measure = &measure?;
    let read = |analysis: &Analysis| measure.read(analysis).map(MetricValue::as_f64);
    let mut measured: Vec<_> =
        runs.iter().filter_map(|run| Some((read(run.analysis)?, run))).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((_, first), (_, last)) = (measured.first()?, measured.last()?);
    Some(match runs {
        [run] => Ends::One(say(measure, run.analysis)),
        _ => Ends::Two([first, last].map(|run| (run.label, say(measure, run.analysis)))),
    })
}

fn value(measure: &Measure, analysis: &Analysis) -> String {
    measure.cell(analysis).with_unit()
}

/// The task furthest from its fair share, with its error.
fn furthest(measure: &Measure, analysis: &Analysis) -> String {
    let side = |Worst { task, error_ns, percent }: Worst<'_>| {
        let side = if error_ns < 0 { "too little" } else { "too much" };
        format!("{task} gets {} {side} ({percent:+.2} %)", value(measure, analysis))
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
