//! Values of a scheduler's variables at the end of a run.

use fairground_machine::Value;
use fairground_report::{Cell, Column, Table};
use fairground_session::Outcome;

/// One row for each value that is shown; `None` when none was asked for. `run`: the run's name, in a result of several.
pub fn variables_table(outcome: &Outcome, run: Option<&str>) -> Option<Table> {
    let shown = &outcome.variables;
    if shown.values.is_empty() {
        return None;
    }
    let title = "The scheduler's variables at the end";
    let title = run.map_or_else(|| title.to_owned(), |run| format!("{title}: {run}"));
    let mut table = Table::of("variables", title, &shown.values)
        .text("name", |value| &value.name)
        .column(Column::text("value"), |value| cell(&value.value))
        .table();
    table.run = run.map(str::to_owned);
    for (name, count) in &shown.cut {
        table.note(format!(
            "{name}: its first {count} values are shown; `--show-globals={name}` shows more"
        ));
    }
    Some(table)
}

/// A number where JSON has room for it, else a text.
fn cell(value: &Value) -> Cell {
    match value {
        Value::Number(number) => i64::try_from(*number).map(Cell::Int).ok(),
        _ => None,
    }
    .unwrap_or_else(|| Cell::text(value.to_string()))
}
