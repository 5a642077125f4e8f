//! The scheduler's own numbers of each task over time: virtual time, lag.

use fairground_report::page::{Axis, Chart, Curve, Curves, Drawing, Shape};
use fairground_trace::{Counter, CounterOf, CounterUnit};

use super::Pictured;

/// Curves of one drawing: more cannot be distinguished.
const CURVES_MAX: usize = 8;
/// Points of one curve.
const POINTS_MAX: usize = 1_500;
/// The numbers that are drawn, those that say most first. A task's place in its queue (`dsq_vtime`) is of a unit that
/// only its scheduler knows, and says nothing to anybody else.
const NAMES: [&str; 4] = ["wait_runtime", "lag", "vlag", "vruntime"];

pub(super) fn virtual_time(runs: &[Pictured<'_>]) -> Option<Chart> {
    let drawings: Vec<Drawing> = runs.iter().flat_map(drawings_of).collect();
    if drawings.is_empty() {
        return None;
    }
    let points = |drawing: &Drawing| match &drawing.shape {
        Shape::Curves(curves) => curves.series.iter().map(|curve| curve.points.len()).sum(),
        _ => 0_usize,
    };
    let counts: Vec<String> = drawings
        .iter()
        .map(|drawing| format!("{}: {} values", drawing.of, points(drawing)))
        .collect();
    Some(Chart {
        id: "virtual-time".to_owned(),
        title: "What the scheduler thinks".to_owned(),
        definition: "The scheduler's own numbers of each task, read at every tick, in the unit \
                     that Linux has for numbers of this name; a virtual time is shown from the \
                     lowest one at the beginning on. What they mean, the head of the scheduler's \
                     source says. The first tasks of the workload are drawn."
            .to_owned(),
        samples: format!("{}.", counts.join("; ")),
        drawings,
        table: None,
    })
}

/// One drawing for each number that a scheduler keeps.
fn drawings_of(run: &Pictured<'_>) -> Vec<Drawing> {
    NAMES.iter().filter_map(|name| drawing(run, name)).collect()
}

fn drawing(run: &Pictured<'_>, name: &str) -> Option<Drawing> {
    // What is 0 at first was not set yet.
    let counters: Vec<(&Counter, &[(u64, i64)])> = run
        .numbers
        .iter()
        .filter(|counter| counter.name == name && counter.unit == CounterUnit::Ns)
        .map(|counter| {
            let unset = counter.points.iter().take_while(|(_, value)| *value == 0).count();
            (counter, &counter.points[unset..])
        })
        .filter(|(_, points)| points.len() > 1)
        .take(CURVES_MAX)
        .collect();
    let is_time = name.ends_with("vruntime");
    // Virtual times wrap: differences tell their order.
    let first = |(_, points): &(&Counter, &[(u64, i64)])| points[0].1;
    let base =
        counters.iter().map(first).reduce(|a, b| if b.wrapping_sub(a) < 0 { b } else { a })?;
    let base = if is_time { base } else { 0 };
    let series = counters.iter().map(|(counter, points)| Curve {
        name: name_of(run, counter),
        points: thinned(points, run.analysis.start_ns, base),
    });
    let shape = Shape::Curves(Curves {
        x: Axis::linear("time", "ns"),
        y: Axis::linear(name, "ns"),
        series: series.collect(),
        are_steps: false,
    });
    Some(Drawing { of: format!("{}, {name}", run.label), shape })
}

fn name_of(run: &Pictured<'_>, counter: &Counter) -> String {
    match counter.of {
        CounterOf::Task(task) => run
            .trace
            .tasks()
            .get(task.0 as usize)
            .map_or_else(|| format!("task {}", task.0), |t| format!("{} [{}]", t.comm, t.pid)),
        CounterOf::Cpu(cpu) => format!("CPU {cpu}"),
    }
}

/// At most [`POINTS_MAX`] of the points, at even distances.
fn thinned(points: &[(u64, i64)], start_ns: u64, base: i64) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX);
    let shown = points.iter().filter(|(time_ns, _)| *time_ns >= start_ns).step_by(step);
    shown.map(|(time_ns, value)| (*time_ns as f64, value.wrapping_sub(base) as f64)).collect()
}
