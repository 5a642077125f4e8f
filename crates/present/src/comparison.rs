//! Several runs side by side: metrics down, runs across.

use fairground_analysis::metric::Shown;
use fairground_analysis::{Analysis, ComparisonRow, compare};
use fairground_report::{Column, Layout, Table};

use super::selection::{MACHINE_NAME, Selection};
use super::values::cell;

/// One row for each metric of the machine and of each group; `None` where none is chosen.
pub fn comparison_table(runs: &[(&str, &Analysis)], selection: &Selection) -> Option<Table> {
    let comparison = compare(runs);
    let of = |row: &ComparisonRow| row.group.as_deref().unwrap_or(MACHINE_NAME).to_owned();
    let shown = comparison.rows.iter().filter(|row| {
        let least = if row.group.is_none() { Shown::Usual } else { Shown::Compared };
        selection.has_key(&row.key(), row.shown, least) && selection.has_task(&of(row))
    });
    let mut rows = Table::of("comparison", "Comparison", shown)
        .text("of", |row| of(row))
        .text("metric", |row| row.key());
    for (run, label) in comparison.columns.iter().enumerate() {
        rows = rows.column(Column::mixed(label), |row| cell(row.values[run], row.unit));
    }
    let table = rows.table().laid_out(Layout::Compared, "group");
    (!table.rows.is_empty()).then_some(table)
}
