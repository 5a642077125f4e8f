//! A document as observations, one value each: what CSV and Parquet hold.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::table::Layout;
use crate::{Cell, Document, Table};

/// One observation.
#[derive(Clone, Debug)]
pub(crate) struct Observation<'a> {
    /// The run; empty where the result is of none.
    pub(crate) run: String,
    /// Kind of thing that is observed: `machine`, `task`, `group`, or the name of a table.
    pub(crate) of: String,
    /// Which one: the name of the task or group, or what names the row; empty for the machine.
    pub(crate) task: String,
    /// Name of the quantity.
    pub(crate) metric: String,
    /// The value.
    pub(crate) value: Cow<'a, Cell>,
    /// Its unit; `None` for texts and plain numbers.
    pub(crate) unit: Option<&'a str>,
}

impl Document {
    /// The verdicts, and every value of the tables, in their order.
    pub(crate) fn observations(&self) -> impl Iterator<Item = Observation<'_>> {
        let stated = self.verdicts.iter().map(|verdict| Observation {
            run: verdict.run.clone(),
            of: "run".to_owned(),
            task: String::new(),
            metric: "verdict".to_owned(),
            value: Cow::Owned(Cell::text(&verdict.text)),
            unit: None,
        });
        stated.chain(self.tables.iter().flat_map(|table| table.observations(&self.run)))
    }
}

impl Table {
    /// The columns that tell the rows apart, from the first.
    pub(crate) fn keys(&self) -> usize {
        self.row_names().columns
    }

    fn observations<'a>(&'a self, run: &'a str) -> Vec<Observation<'a>> {
        let run = self.run.as_deref().unwrap_or(run);
        let names = self.row_names();
        let mut all = Vec::new();
        for (row, name) in self.rows.iter().zip(&names.texts) {
            for (column, cell) in self.columns.iter().zip(row).skip(names.columns) {
                let unit = column.unit_of(cell);
                let of_run = match (self.layout, column.name.as_str()) {
                    (Layout::Records, _) | (_, "value") => run,
                    (_, named) => named,
                };
                let (of, task, metric) = match self.layout {
                    Layout::Records => (self.of.as_str(), name.as_str(), column.name.as_str()),
                    Layout::Metrics => (self.of.as_str(), "", name.as_str()),
                    Layout::Compared => compared(row, self, name),
                };
                all.push(Observation {
                    run: of_run.to_owned(),
                    of: of.to_owned(),
                    task: task.to_owned(),
                    metric: metric.to_owned(),
                    value: Cow::Borrowed(cell),
                    unit,
                });
            }
        }
        all
    }

    /// Name of each row, and from how many columns: as many as tell the rows apart.
    fn row_names(&self) -> RowNames {
        if self.layout == Layout::Compared {
            let texts =
                self.rows.iter().map(|row| row.get(1).map(Cell::raw_text).unwrap_or_default());
            return RowNames { columns: 2, texts: texts.collect() };
        }
        let most = self.columns.len().saturating_sub(1).max(1);
        for columns in 1..=most {
            let texts = self.names_of(columns);
            if texts.iter().collect::<BTreeSet<_>>().len() == texts.len() {
                return RowNames { columns, texts };
            }
        }
        let numbered = self.names_of(1).into_iter().enumerate();
        let texts = numbered.map(|(row, name)| format!("{name} #{}", row + 1)).collect();
        RowNames { columns: 1, texts }
    }

    fn names_of(&self, columns: usize) -> Vec<String> {
        let name =
            |row: &Vec<Cell>| row.iter().take(columns).map(Cell::raw_text).collect::<Vec<_>>();
        self.rows.iter().map(|row| name(row).join(" / ")).collect()
    }
}

struct RowNames {
    columns: usize,
    texts: Vec<String>,
}

/// A row of a comparison: `machine` and a metric of it, or the name of a group and a metric of that.
fn compared<'a>(row: &'a [Cell], table: &'a Table, metric: &'a str) -> (&'a str, &'a str, &'a str) {
    match row.first() {
        Some(Cell::Text(of)) if of == "machine" => ("machine", "", metric),
        Some(Cell::Text(of)) => (table.of.as_str(), of.as_str(), metric),
        _ => (table.of.as_str(), "", metric),
    }
}
