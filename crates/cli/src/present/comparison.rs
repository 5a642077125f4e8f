//! Several runs side by side: metrics down, runs across.

use fairground_analysis::{Analysis, compare};
use fairground_report::{Cell, Column, Layout, Table};

use super::tasks::shows_machine;
use super::values::cell;

/// The metrics of a group that are shown without `--all`.
const USUAL_GROUP: &[&str] = &[
    "cpu_share",
    "fluid_share",
    "fairness_error",
    "lag.max",
    "variation.run_time",
    "true_mean_slice",
    "wait_time.max",
    "involuntary_switches",
    "wakeup_latency.p50",
    "wakeup_latency.p99",
    "migrations",
];

/// One row for each metric of the machine and of each group.
pub(crate) fn comparison_table(runs: &[(&str, &Analysis)], all: bool) -> Table {
    let comparison = compare(runs);
    let mut columns = vec![Column::text("of"), Column::text("metric")];
    columns.extend(comparison.columns.iter().map(Column::mixed));
    let mut table =
        Table::new("comparison", "Comparison", columns).laid_out(Layout::Compared, "group");
    for row in &comparison.rows {
        let key = row.key();
        let shown = match row.group {
            None => shows_machine(&key, all),
            Some(_) => all || USUAL_GROUP.contains(&key.as_str()),
        };
        if !shown {
            continue;
        }
        let of = row.group.as_deref().unwrap_or("machine");
        let mut cells = vec![Cell::text(of), Cell::text(key)];
        cells.extend(row.values.iter().map(|value| cell(*value, row.unit)));
        table.push(cells);
    }
    table
}
