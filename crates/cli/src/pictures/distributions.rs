//! Distributions: how long wake-ups took, how long slices were.

use fairground_analysis::Samples;
use fairground_report::page::{Axis, Chart, Curve, Curves, Drawing, Shape};
use fairground_report::{Cell, Column, Table};

use super::{Pictured, grouped};

/// Points of a curve: a step of a quarter of a per cent.
const POINTS: u32 = 400;

/// How long it took from a wake-up to the CPU.
pub(super) fn wakeup_latency(runs: &[Pictured<'_>]) -> Option<Chart> {
    distribution(
        runs,
        |run| &run.analysis.machine.wakeup_latency,
        ("wakeup-latency", "How long a woken task waits", "wake-ups"),
        "Time from the wake-up of a task to its first instruction on a CPU \
         (docs/reference/metrics/wakeup_latency.md), of all tasks. A point (x, y): y % of all \
         wake-ups took no longer than x.",
    )
}

/// How long a task ran in one go.
pub(super) fn slices(runs: &[Pictured<'_>]) -> Option<Chart> {
    distribution(
        runs,
        |run| &run.analysis.machine.slices,
        ("slices", "How long a slice lasts", "slices"),
        "Uninterrupted time of a task on a CPU, whatever ended it \
         (docs/reference/metrics/slice.md), of all tasks. A point (x, y): y % of all slices were no \
         longer than x.",
    )
}

fn distribution(
    runs: &[Pictured<'_>],
    samples: for<'a> fn(&Pictured<'a>) -> &'a Samples,
    (id, title, things): (&str, &str, &str),
    definition: &str,
) -> Option<Chart> {
    if runs.iter().all(|run| samples(run).count() == 0) {
        return None;
    }
    let series =
        runs.iter().map(|run| Curve { name: run.label.to_owned(), points: curve(samples(run)) });
    let shape = Shape::Curves(Curves {
        x: Axis::log("time", "ns"),
        y: Axis::linear(format!("{things} no longer than that"), "%"),
        series: series.collect(),
        are_steps: true,
    });
    let quantiles = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("longest", 1000)];
    let mut table = Table::of("chart-rows", "", quantiles).text("quantile", |(name, _)| *name);
    for run in runs {
        table = table.column(Column::mixed(run.label), |(_, per_mille)| {
            Cell::known(samples(run).quantile_ns(*per_mille), Cell::duration_ns)
        });
    }
    let counts: Vec<String> = runs
        .iter()
        .map(|run| {
            let Samples { censored, .. } = samples(run);
            let cut = match censored {
                0 => String::new(),
                n => format!(" and {} cut off by the ends of the run", grouped(*n)),
            };
            format!("{}: {} {things}{cut}", run.label, grouped(samples(run).count()))
        })
        .collect();
    Some(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        definition: definition.to_owned(),
        samples: format!("{}.", counts.join("; ")),
        drawings: vec![Drawing::alone(shape)],
        table: Some(table.table()),
    })
}

/// The quantiles, closer to each other in the last per cent; equal values once. On an axis of powers of ten 0 has no
/// place: 1 ns.
fn curve(samples: &Samples) -> Vec<(f64, f64)> {
    let usual = (0..=POINTS).map(|i| i * 1000 / POINTS);
    let tail = 991..1000;
    let mut per_mille: Vec<u32> = usual.chain(tail).collect();
    per_mille.sort_unstable();
    per_mille.dedup();
    let mut points: Vec<(f64, f64)> = Vec::new();
    for at in per_mille {
        let Some(ns) = samples.quantile_ns(at) else { continue };
        let (x, y) = (ns.max(1) as f64, f64::from(at) / 10.0);
        match points.last_mut() {
            Some(last) if last.0 == x => last.1 = y,
            _ => points.push((x, y)),
        }
    }
    points
}
