//! What the schedulers of a comparison cost and weigh.

use fairground_machine::{Path, PathCost};
use fairground_report::{Cell, Column, Layout, Table};
use fairground_session::Outcome;

/// The name of a path in tables.
pub(crate) fn path_name(path: Path) -> &'static str {
    match path {
        Path::Switch => "context switch",
        Path::Repick => "decision without switch",
        Path::Wakeup => "wake-up",
        Path::Tick => "tick",
        Path::Yield => "sched_yield",
    }
}

/// One column for each run: instructions and divisions on each path, and the sizes of the object.
pub(crate) fn policy_table(outcomes: &[Outcome]) -> Table {
    let mut columns = vec![Column::text("of"), Column::text("figure")];
    columns.extend(outcomes.iter().map(|outcome| Column::mixed(&outcome.label)));
    let mut table = Table::new("policy", "Cost and size of the scheduler's program", columns)
        .laid_out(Layout::Compared, "policy");
    let mut row = |of: &str, figure: &str, value: &dyn Fn(&Outcome) -> Cell| {
        let mut cells = vec![Cell::text(of), Cell::text(figure)];
        cells.extend(outcomes.iter().map(value));
        table.push(cells);
    };
    for path in Path::ALL {
        let of = path_name(path);
        let mean = |outcome: &Outcome, sum: fn(&PathCost) -> u64| match outcome.path_cost(path) {
            Some(cost) if cost.times > 0 => Cell::float(sum(&cost) as f64 / cost.times as f64, 1),
            _ => Cell::NotMeasured,
        };
        row(of, "instructions", &|outcome| mean(outcome, |cost| cost.insns));
        row(of, "divisions", &|outcome| mean(outcome, |cost| cost.divisions));
    }
    row("object", "code, bytes", &|outcome| {
        Cell::known(outcome.sizes, |sizes| Cell::count(sizes.code_bytes))
    });
    row("object", "data, bytes", &|outcome| {
        Cell::known(outcome.sizes, |sizes| Cell::count(sizes.data_bytes))
    });
    table.note(
        "Means over the run, counted in the scheduler's own program; a call into the kernel is one instruction.",
    );
    table
}
