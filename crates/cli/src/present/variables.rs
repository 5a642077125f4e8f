//! What a scheduler's variables hold at the end of a run.

use fairground_report::{Cell, Column, Table};
use fairground_session::Outcome;

/// One row for each value that is shown; `None` when none was asked for.
pub(crate) fn variables_table(outcome: &Outcome) -> Option<Table> {
    let shown = &outcome.variables;
    if shown.values.is_empty() {
        return None;
    }
    let mut table = Table::of("variables", "The scheduler's variables at the end", &shown.values)
        .text("name", |value| &value.name)
        .column(Column::text("value"), |value| Cell::text(value.value.to_string()))
        .table();
    for (name, count) in &shown.cut {
        table.note(format!(
            "{name}: its first {count} values are shown; `--show-globals={name}` shows more"
        ));
    }
    Some(table)
}
