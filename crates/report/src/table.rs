//! A table: columns with units, rows of cells, notes.

use crate::{Cell, TimeUnit};

/// On which side a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// Quantity of a column's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Texts, counts and ratios.
    None,
    /// [`Cell::Duration`]s: ns for programs, this unit for people.
    Duration(TimeUnit),
    /// [`Cell::Percent`]s.
    Percent,
    /// Numbers in this unit, for people and programs alike.
    Other(String),
    /// Each cell has its own unit, as where rows are metrics and columns are runs.
    Mixed,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: lower case with underscores, so that programs can use it as it is.
    pub name: String,
    /// Quantity of its numbers.
    pub unit: Unit,
    /// On which side its cells stand.
    pub align: Align,
    /// Whether text leaves it out unless all is asked for, or lines may be as long as they are.
    pub is_detail: bool,
}

impl Column {
    fn new(name: impl Into<String>, unit: Unit, align: Align) -> Self {
        Self { name: name.into(), unit, align, is_detail: false }
    }

    /// A column of texts.
    pub fn text(name: impl Into<String>) -> Self {
        Self::new(name, Unit::None, Align::Left)
    }

    /// The same column, which text leaves out unless all is asked for.
    pub fn as_detail(self) -> Self {
        Self { is_detail: true, ..self }
    }

    /// A column of counts or ratios.
    pub fn number(name: impl Into<String>) -> Self {
        Self::new(name, Unit::None, Align::Right)
    }

    /// A column of numbers with a unit.
    pub fn number_in(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(name, Unit::Other(unit.into()), Align::Right)
    }

    /// A column of durations, which people see in this unit.
    pub fn duration(name: impl Into<String>, unit: TimeUnit) -> Self {
        Self::new(name, Unit::Duration(unit), Align::Right)
    }

    /// A column of percentages.
    pub fn percent(name: impl Into<String>) -> Self {
        Self::new(name, Unit::Percent, Align::Right)
    }

    /// A column whose cells have units of their own.
    pub fn mixed(name: impl Into<String>) -> Self {
        Self::new(name, Unit::Mixed, Align::Right)
    }

    /// The column's unit behind its name, for people.
    pub(crate) fn heading(&self) -> String {
        let printable = crate::cell::printable(&self.name);
        let name = printable.replace('_', " ");
        match &self.unit {
            Unit::None => name,
            // The name of a run or of a scheduler, as it was typed.
            Unit::Mixed => printable,
            Unit::Duration(unit) => format!("{name} {}", unit.symbol()),
            Unit::Percent => format!("{name} %"),
            Unit::Other(unit) => format!("{name} {unit}"),
        }
    }

    /// The unit of the raw values.
    pub(crate) fn raw_unit(&self) -> Option<&str> {
        match &self.unit {
            Unit::None => None,
            Unit::Duration(_) => Some("ns"),
            Unit::Percent => Some("percent"),
            Unit::Other(unit) => Some(unit),
            Unit::Mixed => Some("mixed"),
        }
    }

    /// Whether the raw value of a cell is in the column's unit, so that it needs none of its own.
    pub(crate) fn explains(&self, cell: &Cell) -> bool {
        match &self.unit {
            _ if cell.is_missing() => true,
            Unit::Mixed => false,
            Unit::None => cell.raw_unit().is_none(),
            Unit::Duration(_) | Unit::Percent => cell.raw_unit() == self.raw_unit(),
            Unit::Other(_) => matches!(cell, Cell::Int(_) | Cell::Float { .. }),
        }
    }

    /// The unit of the raw value of a cell of this column; `None` for texts and plain numbers.
    pub(crate) fn unit_of<'a>(&'a self, cell: &'a Cell) -> Option<&'a str> {
        let own = cell.raw_unit().filter(|_| !self.explains(cell));
        match self.unit {
            Unit::Mixed => own,
            _ => own.or(self.raw_unit()),
        }
    }

    /// A cell of this column for people.
    pub(crate) fn show(&self, cell: &Cell) -> String {
        match self.unit {
            Unit::Duration(unit) if self.explains(cell) => cell.for_people(Some(unit)),
            _ if self.explains(cell) => cell.for_people(None),
            _ => cell.with_unit(),
        }
    }
}

/// How the rows and columns of a table are to be read as observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A row is a thing, named by its first cell; each other column is something observed of it.
    Records,
    /// A row is a metric; a column `value`, or one for each run, holds it.
    Metrics,
    /// The first cell is `machine` or the name of a group, the second a metric of it; each other column is a run.
    Compared,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// A short name that does not change, for programs.
    pub id: String,
    /// The heading for people.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; each has a cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Sentences below the table: what a reader must know to read it right.
    pub notes: Vec<String>,
    /// How it is read as observations.
    pub layout: Layout,
    /// Kind of its rows in observations: `task`, `group`; its `id` at first.
    pub of: String,
    /// The run that it is about, where that is not the document's.
    pub run: Option<String>,
    /// Whether its rows are the lines of another program: as text they have a space between columns, and no rules.
    pub of_program: bool,
    /// Whether text leaves it out unless all is asked for.
    pub is_detail: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        columns: impl IntoIterator<Item = Column>,
    ) -> Self {
        let id = id.into();
        Self {
            of: id.clone(),
            id,
            title: title.into(),
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
            notes: Vec::new(),
            layout: Layout::Records,
            run: None,
            of_program: false,
            is_detail: false,
        }
    }

    /// The same table, which text leaves out unless all is asked for.
    pub fn as_detail(self) -> Self {
        Self { is_detail: true, ..self }
    }

    /// Rows as columns and columns as rows; cells keep their units.
    pub(crate) fn transposed(&self) -> Table {
        let shown = |row: &Vec<Cell>| row.first().map(Cell::raw_text).unwrap_or_default();
        let first = self.columns.first().map_or("", |column| column.name.as_str());
        let columns = self.rows.iter().map(|row| Column::mixed(shown(row)));
        let mut table =
            Table { columns: vec![Column::text(first)], rows: Vec::new(), ..self.clone() };
        table.columns.extend(columns);
        for (nth, column) in self.columns.iter().enumerate().skip(1) {
            let cells = self.rows.iter().map(|row| row[nth].clone());
            table.rows.push(std::iter::once(Cell::text(&column.name)).chain(cells).collect());
        }
        table
    }

    /// The same table, as the lines of another program.
    pub fn as_program(mut self) -> Self {
        self.of_program = true;
        self
    }

    /// A table with a row for each of these things; [`Rows`] adds its columns.
    pub fn of<T>(
        id: impl Into<String>,
        title: impl Into<String>,
        things: impl IntoIterator<Item = T>,
    ) -> Rows<T> {
        let things = Vec::from_iter(things);
        let mut table = Table::new(id, title, []);
        table.rows.resize_with(things.len(), Vec::new);
        Rows { table, things }
    }

    /// The same table with another layout, of rows that are `of`.
    pub fn laid_out(mut self, layout: Layout, of: impl Into<String>) -> Self {
        (self.layout, self.of) = (layout, of.into());
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When the row has not exactly one cell per column: values would stand under a wrong heading.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = row.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "table {}: one cell per column", self.id);
        self.rows.push(row);
    }

    /// Leaves out the columns whose name is not wanted.
    pub fn retain_columns(&mut self, mut is_wanted: impl FnMut(&str) -> bool) {
        let wanted: Vec<bool> = self.columns.iter().map(|c| is_wanted(&c.name)).collect();
        let mut of_columns = wanted.iter();
        self.columns.retain(|_| of_columns.next() == Some(&true));
        for row in &mut self.rows {
            let mut of_cells = wanted.iter();
            row.retain(|_| of_cells.next() == Some(&true));
        }
    }

    /// Appends a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

/// A table that grows by columns: each with what it shows of the things that its rows are.
#[derive(Debug)]
pub struct Rows<T> {
    table: Table,
    things: Vec<T>,
}

impl<T> Rows<T> {
    /// Appends a column.
    pub fn column(mut self, column: Column, cell: impl Fn(&T) -> Cell) -> Self {
        self.table.columns.push(column);
        for (row, thing) in self.table.rows.iter_mut().zip(&self.things) {
            row.push(cell(thing));
        }
        self
    }

    /// Appends a column of texts.
    pub fn text<S: Into<String>>(self, name: impl Into<String>, text: impl Fn(&T) -> S) -> Self {
        self.column(Column::text(name), |thing| Cell::text(text(thing)))
    }

    /// Appends a column of counts.
    pub fn count(self, name: impl Into<String>, count: impl Fn(&T) -> u64) -> Self {
        self.column(Column::number(name), |thing| Cell::count(count(thing)))
    }

    /// Appends a column of durations in ns, which people see in this unit; `None` was not measured.
    pub fn duration(
        self,
        name: impl Into<String>,
        unit: TimeUnit,
        ns: impl Fn(&T) -> Option<u64>,
    ) -> Self {
        self.column(Column::duration(name, unit), |thing| Cell::known(ns(thing), Cell::duration_ns))
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }
}
