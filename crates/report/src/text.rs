//! Text for a terminal.

use crate::cell::printable;
use crate::fit::{self, Block};
use crate::{Align, Cell, Document, Layout, Level, NOT_MEASURED, Table, Verdict};
use comfy_table::{
    Attribute, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle,
};
use std::io::IsTerminal;

/// Rules above, below and under the heading; none between rows, which would double the length.
const STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// The columns of text where standard output is no terminal: as in a mail, a page, or a terminal of the usual size.
const WIDTH_DEFAULT: u16 = 80;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The columns that a line may take: tables are wrapped, and stacked where that is not enough. `None`: lines are
    /// as long as they are.
    pub width: Option<u16>,
    /// Whether headings are bold, missing values dim and verdicts coloured.
    pub styled: bool,
    /// Whether parameters that are what they usually are stand in the text.
    pub verbose: bool,
}

impl TextOptions {
    /// No width, no style: for a file or a pipe.
    pub fn plain() -> Self {
        Self { width: None, styled: false, verbose: false }
    }

    /// Options for standard output: styled if it is a terminal and `NO_COLOR` is not set to anything (no-color.org),
    /// as wide as `COLUMNS` says, or else as the terminal is, or 80 columns where it is none.
    pub fn for_stdout() -> Self {
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        if !std::io::stdout().is_terminal() {
            return Self { width: asked.or(Some(WIDTH_DEFAULT)), ..Self::plain() };
        }
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = asked.or_else(|| comfy_table::Table::new().width());
        Self { width, styled: !no_color, verbose: false }
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
        if self.of_program {
            text += &self.lines();
        } else if options.width.is_some() && !options.verbose && self.has_details() {
            let mut table = self.clone();
            let mut wanted = self.columns.iter().map(|column| !column.is_detail);
            table.retain_columns(|_| wanted.next() == Some(true));
            text += &table.fitted(options);
        } else {
            text += &self.fitted(options);
        }
        for note in &self.notes {
            text += &wrapped(&printable(note), "  ", "  ", options);
        }
        text
    }

    fn has_details(&self) -> bool {
        self.columns.iter().any(|column| column.is_detail)
    }

    /// The grid, in as few blocks as the width allows: metrics down and runs across, or the other way round.
    fn fitted(&self, options: &TextOptions) -> String {
        let blocks = fit::blocks(self, options.width);
        if blocks.len() > 1 && self.layout == Layout::Metrics {
            let turned = self.transposed();
            let others = fit::blocks(&turned, options.width);
            if others.len() < blocks.len() {
                return turned.blocks(&others, options);
            }
        }
        self.blocks(&blocks, options)
    }

    fn blocks(&self, blocks: &[Block], options: &TextOptions) -> String {
        let mut text = String::new();
        for (number, block) in blocks.iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            for line in self.grid(block, options).lines() {
                text += line.trim_end();
                text.push('\n');
            }
        }
        text
    }

    /// The heading and the rows, with a space between columns.
    fn lines(&self) -> String {
        let heading = self.columns.iter().map(|column| printable(&column.name)).collect();
        let show = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row);
            cells.map(|(column, cell)| printable(&column.show(cell))).collect::<Vec<String>>()
        };
        let rows: Vec<Vec<String>> =
            std::iter::once(heading).chain(self.rows.iter().map(show)).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|nth| rows.iter().map(|row| row[nth].chars().count()).max().unwrap_or(0))
            .collect();
        let line = |row: &Vec<String>| {
            let cells =
                self.columns.iter().zip(&widths).zip(row).map(
                    |((column, width), cell)| match column.align {
                        Align::Left => format!("{cell:<width$}"),
                        Align::Right => format!("{cell:>width$}"),
                    },
                );
            format!("{}\n", cells.collect::<Vec<_>>().join(" ").trim_end())
        };
        rows.iter().map(line).collect()
    }

    /// The columns of a block.
    fn grid(&self, block: &Block, options: &TextOptions) -> comfy_table::Table {
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
        grid.set_header(block.columns.iter().zip(&block.headings).map(|(column, heading)| {
            let align = align(self.columns[*column].align);
            let cell = comfy_table::Cell::new(heading).set_alignment(align);
            if options.styled { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
        for row in &self.rows {
            grid.add_row(block.columns.iter().map(|number| {
                let column = &self.columns[*number];
                let shown = column.show(&row[*number]);
                let dim = options.styled && shown == NOT_MEASURED;
                let cell = comfy_table::Cell::new(shown).set_alignment(align(column.align));
                if dim { cell.add_attribute(Attribute::Dim) } else { cell }
            }));
        }
        for (column, wraps) in grid.column_iter_mut().zip(&block.wraps) {
            if !wraps {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        grid
    }
}

impl Document {
    /// The document as text: verdicts, title, tables, then how it was made and the notes.
    pub fn to_text(&self, options: &TextOptions) -> String {
        let mut parts = Vec::new();
        if !self.verdicts.is_empty() {
            parts.push(self.verdicts.iter().map(|verdict| stated(verdict, options)).collect());
        }
        let mut head = String::new();
        if !self.title.is_empty() {
            head += &format!("{}\n", bold(&printable(&self.title), options));
        }
        head.extend(self.summary.iter().map(|text| wrapped(&printable(text), "", "  ", options)));
        if !head.is_empty() {
            parts.push(head);
        }
        let tables = self.tables.iter().filter(|table| options.verbose || !table.is_detail);
        parts.extend(tables.map(|table| table.to_text(options)));
        let made = self.made(options);
        if !made.is_empty() {
            parts.push(made);
        }
        let about = self.about.iter().filter(|_| options.verbose);
        let notes = about.chain(&self.notes);
        let notes: String =
            notes.map(|note| wrapped(&printable(note), "", "  ", options)).collect();
        if !notes.is_empty() {
            parts.push(notes);
        }
        parts.join("\n")
    }

    /// How the result was made: one paragraph of what is not as usual, or a line for each section with everything.
    fn made(&self, options: &TextOptions) -> String {
        let sections = self.sections.iter().filter_map(|section| {
            let shown = section.entries.iter().filter(|entry| options.verbose || !entry.is_usual);
            let entries: Vec<String> = shown
                .map(|entry| format!("{} {}", printable(&entry.name), entry.value.with_unit()))
                .collect();
            let name = printable(&section.name);
            (!entries.is_empty()).then(|| format!("{name}: {}", entries.join(", ")))
        });
        let sections: Vec<String> = sections.collect();
        match options.verbose {
            true => sections.iter().map(|line| wrapped(line, "", "  ", options)).collect(),
            false if sections.is_empty() => String::new(),
            false => wrapped(&sections.join("; "), "", "  ", options),
        }
    }
}

/// A verdict, and what explains it below.
fn stated(verdict: &Verdict, options: &TextOptions) -> String {
    let line = printable(&verdict.line());
    let line = match verdict.level {
        _ if !options.styled => line,
        Level::Failure => format!("\x1b[1;31m{line}\x1b[0m"),
        Level::Warning => format!("\x1b[1;33m{line}\x1b[0m"),
    };
    let details = verdict.details.iter().map(|detail| format!("  {}\n", printable(detail)));
    format!("{line}\n{}", details.collect::<String>())
}

/// A text in lines of the width that there is, the first one behind `first`, the others behind `others`.
fn wrapped(text: &str, first: &str, others: &str, options: &TextOptions) -> String {
    let Some(width) = options.width else { return format!("{first}{text}\n") };
    let width = usize::from(width).saturating_sub(others.len()).max(1);
    let lines = fit::wrap(text, width).into_iter().enumerate();
    lines.map(|(n, line)| format!("{}{line}\n", if n == 0 { first } else { others })).collect()
}

fn bold(text: &str, options: &TextOptions) -> String {
    if options.styled { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}
