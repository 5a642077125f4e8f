//! Text for a terminal.

use crate::cell::printable;
use crate::{Align, Document, NOT_MEASURED, Table};
use comfy_table::{Attribute, CellAlignment, ContentArrangement, LineStyle, TableStyle};
use std::io::IsTerminal;

/// Rules above, below and under the heading; none between rows, which would double the length.
const STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The columns of the terminal; longer rows are wrapped in their cells. `None`: rows are as long as they are.
    pub width: Option<u16>,
    /// Whether headings are bold and missing values dim.
    pub styled: bool,
}

impl TextOptions {
    /// No width, no style: for a file or a pipe.
    pub fn plain() -> Self {
        Self { width: None, styled: false }
    }

    /// What suits standard output: styled if it is a terminal and `NO_COLOR` is not set to anything (no-color.org), as wide
    /// as `COLUMNS` says or else as the terminal is.
    pub fn for_stdout() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::plain();
        }
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width = width.or_else(|| comfy_table::Table::new().width());
        Self { width, styled: !no_color }
    }
}

impl Table {
    /// The table as text, with its title above and its notes below; ends with a line break.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &bold(&printable(&self.title), options);
            text.push('\n');
        }
        let mut grid = comfy_table::Table::new();
        grid.load_style(STYLE);
        if let Some(width) = options.width {
            grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        if options.styled {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        let align = |align: Align| match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        };
        grid.set_header(self.columns.iter().map(|column| {
            let cell = comfy_table::Cell::new(column.heading()).set_alignment(align(column.align));
            if options.styled { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
        for row in &self.rows {
            grid.add_row(self.columns.iter().zip(row).map(|(column, value)| {
                let shown = column.show(value);
                let dim = options.styled && shown == NOT_MEASURED;
                let cell = comfy_table::Cell::new(shown).set_alignment(align(column.align));
                if dim { cell.add_attribute(Attribute::Dim) } else { cell }
            }));
        }
        for line in grid.lines() {
            text += line.trim_end();
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("  {}\n", printable(note));
        }
        text
    }
}

impl Document {
    /// The document as text: title, tables, then how it was made and the notes.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let mut parts = Vec::new();
        if !self.title.is_empty() {
            parts.push(format!("{}\n", bold(&printable(&self.title), options)));
        }
        parts.extend(self.tables.iter().map(|table| table.to_text(options)));
        let mut made = String::new();
        for section in &self.sections {
            let entries: Vec<String> = section
                .entries
                .iter()
                .map(|entry| format!("{} {}", printable(&entry.name), entry.value.with_unit()))
                .collect();
            made +=
                &format!("{}: {}\n", bold(&printable(&section.name), options), entries.join(", "));
        }
        if !made.is_empty() {
            parts.push(made);
        }
        if !self.notes.is_empty() {
            parts.push(self.notes.iter().map(|note| format!("{}\n", printable(note))).collect());
        }
        parts.join("\n")
    }
}

fn bold(text: &str, options: &TextOptions) -> String {
    if options.styled { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}
