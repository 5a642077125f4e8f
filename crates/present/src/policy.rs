//! Instructions and sizes of the schedulers of a comparison.

use fairground_machine::{Path, PathCost};
use fairground_report::{Cell, Column, Layout, Table};
use fairground_session::{Outcome, Sizes};

/// The name of a path in tables.
pub fn path_name(path: Path) -> &'static str {
    match path {
        Path::Switch => "context switch",
        Path::Repick => "decision without switch",
        Path::Wakeup => "wake-up",
        Path::Tick => "tick",
        Path::Yield => "sched_yield",
    }
}

/// One column for each run: instructions and divisions on each path, and the sizes of the object.
pub fn policy_table(outcomes: &[Outcome]) -> Table {
    type Figure = Box<dyn Fn(&Outcome) -> Cell>;
    let mean = |path: Path, sum: fn(&PathCost) -> u64| -> Figure {
        Box::new(move |outcome| match outcome.path_cost(path) {
            Some(cost) if cost.times > 0 => Cell::float(sum(&cost) as f64 / cost.times as f64, 1),
            _ => Cell::NotMeasured,
        })
    };
    let size = |bytes: fn(&Sizes) -> u64| -> Figure {
        Box::new(move |outcome| Cell::known(outcome.sizes, |sizes| Cell::count(bytes(&sizes))))
    };
    let mut figures = Vec::new();
    for path in Path::ALL {
        figures.push((path_name(path), "instructions", mean(path, |cost| cost.insns)));
        figures.push((path_name(path), "divisions", mean(path, |cost| cost.divisions)));
    }
    figures.push(("object", "code, bytes", size(|sizes| sizes.code_bytes)));
    figures.push(("object", "data, bytes", size(|sizes| sizes.data_bytes)));
    let mut rows = Table::of("policy", "Cost and size of the scheduler's program", figures)
        .text("of", |(of, ..)| *of)
        .text("figure", |(_, figure, _)| *figure);
    for outcome in outcomes {
        rows = rows.column(Column::mixed(&outcome.label), |(.., figure)| figure(outcome));
    }
    let mut table = rows.table().laid_out(Layout::Compared, "policy");
    table.note(
        "Means over the run, counted in the scheduler's own program; a call into the kernel is one instruction.",
    );
    table
}
