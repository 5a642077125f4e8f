//! Charts of bars: CPU time by task, fairness errors, the costs of the scheduler's program.

use std::cmp::Reverse;

use fairground_analysis::{Analysis, Figures, Instructions, PolicyCost};
use fairground_report::page::{Arrangement, Axis, BarSeries, Bars, Chart, Drawing, Marks, Shape};
use fairground_report::{Cell, Column, Table};

use super::{Pictured, grouped};

/// With more tasks than this a bar represents a group of equal tasks; of so many groups those with the most CPU time
/// are drawn.
const TASKS_MAX: usize = 24;

/// The rows of a chart of tasks: name, and figures in each run, where it has such a task.
struct Row<'a> {
    name: &'a str,
    /// The name, with the pid where the first run with such a task has several of that name.
    label: String,
    figures: Vec<Option<&'a Figures>>,
}

/// Tasks where they are few, else groups; those with the most CPU time in any run come first.
fn rows<'a>(runs: &[Pictured<'a>]) -> Vec<Row<'a>> {
    let few = runs.iter().all(|run| run.analysis.tasks.len() <= TASKS_MAX);
    let of = |analysis: &'a Analysis| -> Vec<(&'a str, String, &'a Figures)> {
        if few {
            let tasks = analysis.tasks.iter().zip(analysis.task_labels());
            return tasks.map(|(t, label)| (t.name.as_str(), label, &t.figures)).collect();
        }
        let groups = analysis.groups.iter();
        groups.map(|g| (g.name.as_str(), g.name.clone(), &g.figures)).collect()
    };
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (column, run) in runs.iter().enumerate() {
        for (name, label, figures) in of(run.analysis) {
            let known = rows.iter().position(|r| r.name == name && r.figures[column].is_none());
            let row = known.unwrap_or_else(|| {
                rows.push(Row { name, label, figures: vec![None; runs.len()] });
                rows.len() - 1
            });
            rows[row].figures[column] = Some(figures);
        }
    }
    rows.sort_by_key(|row| Reverse(row.figures.iter().flatten().map(|f| f.run_ns).max()));
    rows
}

type Figure = fn(&Figures) -> Option<f64>;

/// A chart with a bar for each row and run.
fn chart_of(
    runs: &[Pictured<'_>],
    (id, title, definition): (&str, &str, &str),
    axis: Axis,
    (value, cell): (Figure, fn(f64) -> Cell),
    reference: Option<(&str, Figure)>,
) -> Chart {
    let mut rows = rows(runs);
    let left_out = rows.len().saturating_sub(TASKS_MAX);
    rows.truncate(TASKS_MAX);
    let mut series = Vec::new();
    let mut table = Table::of("chart-rows", "", &rows).text("task", |row| row.label.as_str());
    for (column, run) in runs.iter().enumerate() {
        let of = |row: &Row<'_>| row.figures[column].and_then(value);
        let marks = reference.map(|(name, reference)| {
            let of = |row: &Row<'_>| row.figures[column].and_then(reference);
            Marks { name: name.to_owned(), values: rows.iter().map(of).collect() }
        });
        series
            .push(BarSeries { marks, ..BarSeries::new(run.label, rows.iter().map(of).collect()) });
        table = table.column(Column::mixed(run.label), |row| Cell::known(of(row), cell));
    }
    let categories = rows.iter().map(|row| row.label.clone()).collect();
    let bars = Bars { axis, categories, series, arrangement: Arrangement::Beside };
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        definition: definition.to_owned(),
        samples: match left_out {
            0 => tasks_and_time(runs),
            _ => format!(
                "{} {left_out} groups with less CPU time are left out.",
                tasks_and_time(runs)
            ),
        },
        drawings: vec![Drawing::alone(Shape::Bars(bars))],
        table: Some(table.table()),
    }
}

fn tasks_and_time(runs: &[Pictured<'_>]) -> String {
    let tasks: Vec<String> = runs
        .iter()
        .map(|run| {
            let seconds = run.analysis.window_ns() as f64 / 1e9;
            format!("{}: {} tasks over {seconds:.3} s", run.label, run.analysis.tasks.len())
        })
        .collect();
    format!("{}.", tasks.join("; "))
}

/// CPU share of each task beside its fair share.
pub(super) fn shares(runs: &[Pictured<'_>]) -> Option<Chart> {
    let definition = "CPU time in % of one CPU (docs/reference/metrics/cpu_share.md). The mark \
                      across each bar is the fair share: what an ideal machine gives that divides its time \
                      by weight at every instant among those who want it \
                      (docs/reference/metrics/fluid_share.md), in the same run.";
    Some(chart_of(
        runs,
        ("shares", "Who got the CPU", definition),
        Axis::linear("share of one CPU", "%"),
        (Figures::cpu_share_percent, |percent| Cell::percent(percent, 2)),
        Some(("fair share", Figures::fluid_share_percent)),
    ))
}

/// How far each was from its fair share.
pub(super) fn errors(runs: &[Pictured<'_>]) -> Option<Chart> {
    let definition = "CPU time less the fair share of the same run \
                      (docs/reference/metrics/fairness_error.md, `fairness_error.time`). Below zero: got too little.";
    Some(chart_of(
        runs,
        ("errors", "How far from fair", definition),
        Axis::linear("CPU time less the fair share", "ns"),
        (|f| f.of_switches(f.fairness_error_ns() as f64), |ns| Cell::Duration { ns }),
        None,
    ))
}

/// Instructions that the scheduler's program executed; `None` where no run counted.
pub(super) fn policy_instructions(runs: &[Pictured<'_>]) -> Option<Chart> {
    type CostOf = fn(&PolicyCost) -> Instructions;
    const PARTS: [(&str, CostOf); 3] = [
        ("a switch", |cost| cost.switch),
        ("a wake-up", |cost| cost.wakeup),
        ("a tick", |cost| cost.tick),
    ];
    let costs: Vec<Option<&PolicyCost>> =
        runs.iter().map(|run| run.analysis.machine.policy.as_ref()).collect();
    if costs.iter().all(Option::is_none) {
        return None;
    }
    let mean = |cost: &Option<&PolicyCost>, part: CostOf| cost.and_then(|cost| part(cost).mean());
    let mut series = Vec::new();
    let mut table = Table::of("chart-rows", "", PARTS).text("on", |(name, _)| *name);
    for (run, cost) in runs.iter().zip(&costs) {
        let values = PARTS.iter().map(|(_, part)| mean(cost, *part)).collect();
        series.push(BarSeries::new(run.label, values));
        table = table.column(Column::mixed(run.label), |(_, part)| {
            Cell::known(mean(cost, *part), |insns| Cell::quantity(insns, 1, "insns"))
        });
    }
    let counted = runs.iter().zip(&costs).filter_map(|(run, cost)| {
        let [switches, wakeups, ticks] = PARTS.map(|(_, part)| cost.map(|c| part(c).events));
        let (switches, wakeups, ticks) = (grouped(switches?), grouped(wakeups?), grouped(ticks?));
        Some(format!("{}: {switches} switches, {wakeups} wake-ups, {ticks} ticks", run.label))
    });
    Some(Chart {
        id: "policy-instructions".to_owned(),
        title: "What the scheduler's program costs".to_owned(),
        definition: "Instructions of the scheduler's own BPF program for each event, the mean \
                     (docs/reference/metrics/policy_instructions.md). What the kernel around it executes is not in it."
            .to_owned(),
        samples: format!("{}.", counted.collect::<Vec<_>>().join("; ")),
        drawings: vec![Drawing::alone(Shape::Bars(Bars {
            axis: Axis::linear("instructions", ""),
            categories: PARTS.iter().map(|(name, _)| (*name).to_owned()).collect(),
            series,
            arrangement: Arrangement::Beside,
        }))],
        table: Some(table.table()),
    })
}
