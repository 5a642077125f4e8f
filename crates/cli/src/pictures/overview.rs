//! The first screen: which run treats the workload how.

use fairground_analysis::Analysis;
use fairground_analysis::metric::{Metric, Unit, Value, machine};
use fairground_report::page::Overview;
use fairground_report::{Cell, Column, Table};

use super::Pictured;
use crate::present;

/// What the first screen says of each run: a column.
struct Measure {
    metric: &'static Metric<Analysis>,
    /// Whether less is better; otherwise neither is.
    less_is_better: bool,
}

/// How far the task furthest from its fair share is from it. The other columns are metrics of the machine.
static WORST_ERROR: Metric<Analysis> = Metric {
    name: "worst_fairness_error",
    figure: "",
    unit: Unit::Percent,
    read: |analysis| error(analysis).map(Value::Float),
};

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

fn measures() -> Vec<Measure> {
    let of_the_machine = OF_THE_MACHINE.iter().filter_map(|(key, less_is_better)| {
        Some(Measure { metric: machine(key)?, less_is_better: *less_is_better })
    });
    std::iter::once(Measure { metric: &WORST_ERROR, less_is_better: true })
        .chain(of_the_machine)
        .collect()
}

/// The task that is furthest from its fair share, and by how many per cent. Not the group: what one of its tasks
/// lacks another may have.
fn worst(analysis: &Analysis) -> Option<(&str, f64)> {
    analysis
        .tasks
        .iter()
        .filter_map(|task| Some((task.name.as_str(), task.figures.fairness_error_percent()?)))
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

fn error(analysis: &Analysis) -> Option<f64> {
    worst(analysis).map(|(_, percent)| percent.abs())
}

/// A row for each run.
pub(super) fn overview(runs: &[Pictured<'_>]) -> Option<Overview> {
    if runs.is_empty() {
        return None;
    }
    let measures = measures();
    let columns = measures.iter().map(|measure| Column::mixed(measure.metric.key()));
    let columns = std::iter::once(Column::text("run")).chain(columns);
    let mut table = Table::new("overview", "At a glance", columns);
    for run in runs {
        let cell = |m: &Measure| present::cell((m.metric.read)(run.analysis), m.metric.unit);
        table.push(std::iter::once(Cell::text(run.label)).chain(measures.iter().map(cell)));
    }
    let mut best = Vec::new();
    for (column, measure) in measures.iter().enumerate().filter(|(_, m)| m.less_is_better) {
        best.extend(leasts(runs, measure.metric).into_iter().map(|row| (row, column + 1)));
    }
    Some(Overview { table, best })
}

/// The runs with the least value, as far as it is shown; none where all show the same, or only one was measured.
fn leasts(runs: &[Pictured<'_>], metric: &Metric<Analysis>) -> Vec<usize> {
    let values: Vec<(usize, f64, String)> = runs
        .iter()
        .enumerate()
        .filter_map(|(row, run)| {
            let number = (metric.read)(run.analysis)?.as_f64();
            Some((row, number, value(metric, run.analysis)))
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
        ends(runs, Some(&WORST_ERROR), furthest).map(|ends| match ends {
            Ends::One(error) => format!("Furthest from its fair share: {error}."),
            Ends::Two([(first, least), (last, most)]) => format!(
                "Fairest is {first}: furthest from its fair share, {least}. Least fair is {last}: {most}."
            ),
        }),
        ends(runs, machine(LATENCY), value).map(|ends| match ends {
            Ends::One(p99) => format!("99 of 100 woken tasks run within {p99}."),
            Ends::Two([(first, least), (last, most)]) => format!(
                "Woken tasks wait least under {first}, 99 of 100 no longer than {least}, and \
                 longest under {last}, {most}."
            ),
        }),
        ends(runs, machine(SLICE), value).map(|ends| match ends {
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

/// The ends of a metric over all runs, in the words of `say`; `None` where it was not measured.
fn ends<'a>(
    runs: &[Pictured<'a>],
    metric: Option<&Metric<Analysis>>,
    say: impl Fn(&Metric<Analysis>, &Analysis) -> String,
) -> Option<Ends<'a>> {
    let metric = metric?;
    let read = |analysis: &Analysis| (metric.read)(analysis).map(Value::as_f64);
    let mut measured: Vec<_> =
        runs.iter().filter_map(|run| Some((read(run.analysis)?, run))).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((_, first), (_, last)) = (measured.first()?, measured.last()?);
    Some(match runs {
        [run] => Ends::One(say(metric, run.analysis)),
        _ => Ends::Two([first, last].map(|run| (run.label, say(metric, run.analysis)))),
    })
}

/// The value with its unit.
fn value(metric: &Metric<Analysis>, analysis: &Analysis) -> String {
    present::cell((metric.read)(analysis), metric.unit).with_unit()
}

/// Who is furthest from its fair share, and how far to which side.
fn furthest(metric: &Metric<Analysis>, analysis: &Analysis) -> String {
    let side = |(task, percent): (&str, f64)| {
        let side = if percent < 0.0 { "too little" } else { "too much" };
        format!("{task} gets {} {side}", value(metric, analysis))
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
