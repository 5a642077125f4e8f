//! Several runs side by side: metrics down, runs across.

use fairground_analysis::{Analysis, compare};
use fairground_report::{Column, Layout, Table};

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
    let shown = comparison.rows.iter().filter(|row| match row.group {
        None => shows_machine(&row.key(), all),
        Some(_) => all || USUAL_GROUP.contains(&row.key().as_str()),
    });
    let mut rows = Table::of("comparison", "Comparison", shown)
        .text("of", |row| row.group.as_deref().unwrap_or("machine"))
        .text("metric", |row| row.key());
    for (run, label) in comparison.columns.iter().enumerate() {
        rows = rows.column(Column::mixed(label), |row| cell(row.values[run], row.unit));
    }
    rows.table().laid_out(Layout::Compared, "group")
}
