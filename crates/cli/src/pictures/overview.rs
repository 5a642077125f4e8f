//! The first screen: which run treats the workload how.

use fairground_analysis::Analysis;
use fairground_report::page::Overview;
use fairground_report::{Cell, Column, Table, TimeUnit};

use super::Pictured;

/// What the first screen says of each run: a column.
struct Measure {
    column: fn() -> Column,
    read: fn(&Analysis) -> Option<f64>,
    cell: fn(f64) -> Cell,
    /// Whether less is better; `None`: neither is.
    less_is_better: bool,
}

const MEASURES: [Measure; 7] = [
    Measure {
        column: || Column::percent("worst_fairness_error"),
        read: |analysis| worst(analysis).map(|(_, percent)| percent.abs()),
        cell: |value| Cell::percent(value, 2),
        less_is_better: true,
    },
    Measure {
        column: || Column::duration("latency_p50", TimeUnit::Us),
        read: |analysis| analysis.machine.wakeup_latency.p50_ns().map(|ns| ns as f64),
        cell: |ns| Cell::Duration { ns },
        less_is_better: true,
    },
    Measure {
        column: || Column::duration("latency_p99", TimeUnit::Us),
        read: |analysis| analysis.machine.wakeup_latency.p99_ns().map(|ns| ns as f64),
        cell: |ns| Cell::Duration { ns },
        less_is_better: true,
    },
    Measure {
        column: || Column::duration("mean_turn", TimeUnit::Ms),
        read: |analysis| analysis.machine.slices.mean_ns(),
        cell: |ns| Cell::Duration { ns },
        less_is_better: false,
    },
    Measure {
        column: || Column::number_in("switches", "1/s"),
        read: |analysis| analysis.machine.switches_per_s(),
        cell: |value| Cell::float(value, 1),
        less_is_better: false,
    },
    Measure {
        column: || Column::percent("idle_while_waiting"),
        read: |analysis| {
            let machine = &analysis.machine;
            let all_ns = machine.window_ns as f64 * f64::from(machine.cpus);
            (all_ns > 0.0).then(|| machine.idle_while_waiting_ns as f64 * 100.0 / all_ns)
        },
        cell: |value| Cell::percent(value, 2),
        less_is_better: true,
    },
    Measure {
        column: || Column::number_in("switch", "insns"),
        read: |analysis| analysis.machine.policy.as_ref()?.switch.mean(),
        cell: |value| Cell::float(value, 1),
        less_is_better: true,
    },
];

/// The task that is furthest from its fair share, and by how many per cent. Not the group: what one of its tasks lacks another may
/// have.
fn worst(analysis: &Analysis) -> Option<(&str, f64)> {
    analysis
        .tasks
        .iter()
        .filter_map(|task| Some((task.name.as_str(), task.figures.fairness_error_percent()?)))
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// A row for each run.
pub(super) fn overview(runs: &[Pictured<'_>]) -> Option<Overview> {
    if runs.is_empty() {
        return None;
    }
    let columns = std::iter::once(Column::text("run")).chain(MEASURES.iter().map(|m| (m.column)()));
    let mut table = Table::new("overview", "At a glance", columns);
    for run in runs {
        let cell = |m: &Measure| Cell::known((m.read)(run.analysis), m.cell);
        table.push(std::iter::once(Cell::text(run.label)).chain(MEASURES.iter().map(cell)));
    }
    let mut best = Vec::new();
    for (column, measure) in MEASURES.iter().enumerate().filter(|(_, m)| m.less_is_better) {
        best.extend(leasts(runs, measure.read).into_iter().map(|row| (row, column + 1)));
    }
    Some(Overview { table, best })
}

/// The runs with the least value; none where all are equal, or only one was measured.
fn leasts(runs: &[Pictured<'_>], read: fn(&Analysis) -> Option<f64>) -> Vec<usize> {
    let values: Vec<(usize, f64)> =
        runs.iter().enumerate().filter_map(|(row, run)| Some((row, read(run.analysis)?))).collect();
    let Some(least) = values.iter().map(|(_, value)| *value).reduce(f64::min) else {
        return Vec::new();
    };
    let rows: Vec<usize> =
        values.iter().filter(|(_, value)| *value == least).map(|(row, _)| *row).collect();
    if rows.len() == values.len() { Vec::new() } else { rows }
}

/// What came out, in sentences.
pub(super) fn answers(runs: &[Pictured<'_>]) -> Vec<String> {
    [fairest(runs), promptest(runs), turns(runs)].into_iter().flatten().collect()
}

fn fairest(runs: &[Pictured<'_>]) -> Option<String> {
    let (first, last) = ends(runs, |analysis| worst(analysis).map(|(_, percent)| percent.abs()))?;
    let of = |run: &Pictured<'_>| {
        let (task, percent) = worst(run.analysis)?;
        let side = if percent < 0.0 { "too little" } else { "too much" };
        Some(format!("{task} gets {:.2} % {side}", percent.abs()))
    };
    let best = of(first)?;
    Some(match runs.len() {
        1 => format!("Furthest from its fair share: {best}."),
        _ => format!(
            "Fairest is {}: furthest from its fair share, {best}. Least fair is {}: {}.",
            first.label,
            last.label,
            of(last)?
        ),
    })
}

fn promptest(runs: &[Pictured<'_>]) -> Option<String> {
    let p99 = |analysis: &Analysis| analysis.machine.wakeup_latency.p99_ns().map(|ns| ns as f64);
    let (first, last) = ends(runs, p99)?;
    let of = |run: &Pictured<'_>| p99(run.analysis).map(micros);
    Some(match runs.len() {
        1 => format!("99 of 100 woken tasks run within {}.", of(first)?),
        _ => format!(
            "Woken tasks wait least under {}, 99 of 100 no longer than {}, and longest under {}, {}.",
            first.label,
            of(first)?,
            last.label,
            of(last)?
        ),
    })
}

fn turns(runs: &[Pictured<'_>]) -> Option<String> {
    let mean = |analysis: &Analysis| analysis.machine.slices.mean_ns();
    let (first, last) = ends(runs, mean)?;
    let of = |run: &Pictured<'_>| mean(run.analysis).map(micros);
    Some(match runs.len() {
        1 => format!("A turn lasts {} on average.", of(first)?),
        _ => format!(
            "Turns are shortest under {}, {} on average, and longest under {}, {}.",
            first.label,
            of(first)?,
            last.label,
            of(last)?
        ),
    })
}

/// The runs with the least and with the greatest value.
fn ends<'a, 'b>(
    runs: &'a [Pictured<'b>],
    read: impl Fn(&Analysis) -> Option<f64>,
) -> Option<(&'a Pictured<'b>, &'a Pictured<'b>)> {
    let mut measured: Vec<(f64, &Pictured<'_>)> =
        runs.iter().filter_map(|run| Some((read(run.analysis)?, run))).collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some((measured.first()?.1, measured.last()?.1))
}

fn micros(ns: f64) -> String {
    match ns {
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}
