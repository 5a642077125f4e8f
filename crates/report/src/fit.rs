//! How a table fits into a number of terminal columns: headings go on in further lines, long texts are wrapped in their
//! cells, and what still is too wide is printed as several blocks of columns, each with the columns that name the row.

use crate::{Align, Table};

/// Width of a column beside its text: the space around it and the rule between two columns.
const AROUND: usize = 3;
/// Texts that are longer may be wrapped in their cells, down to this.
const TEXT_MIN: usize = 24;

/// One block of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The columns, by their place in the table.
    pub(crate) columns: Vec<usize>,
    /// The heading of each of them, with line breaks.
    pub(crate) headings: Vec<String>,
    /// Whether each of them may be made narrower by wrapping.
    pub(crate) wraps: Vec<bool>,
}

/// Widths that a column needs.
struct Need {
    heading: String,
    /// The longest cell.
    cell: usize,
    /// The longest word of the heading.
    word: usize,
    /// It holds long texts.
    is_text: bool,
}

impl Need {
    fn natural(&self) -> usize {
        self.cell.max(length(&self.heading))
    }

    fn least(&self) -> usize {
        let cell = if self.is_text { self.cell.min(TEXT_MIN) } else { self.cell };
        cell.max(self.word)
    }
}

/// The blocks in which a table is printed; one where it fits, or where there is no width.
pub(crate) fn blocks(table: &Table, width: Option<u16>) -> Vec<Block> {
    let keys = keys(table, width);
    let columns = 0..table.columns.len();
    let needs: Vec<Need> = columns.map(|column| need(table, column, keys)).collect();
    let all: Vec<usize> = (0..needs.len()).collect();
    let Some(width) = width.map(usize::from) else { return vec![whole(&needs, all)] };
    if total(needs.iter().map(Need::natural)) <= width {
        return vec![whole(&needs, all)];
    }
    let groups = split(&needs, keys, width).into_iter();
    groups.map(|columns| narrow(&needs, columns, width)).collect()
}

/// The columns that every block repeats: those that tell the rows apart, unless they leave less than half of the width.
fn keys(table: &Table, width: Option<u16>) -> usize {
    let keys = table.keys();
    let takes = (0..keys).map(|column| need(table, column, keys).natural());
    match width {
        Some(width) if total(takes) > usize::from(width) / 2 => 1,
        _ => keys,
    }
}

/// Groups of columns that fit, each with the first `keys` columns.
fn split(needs: &[Need], keys: usize, width: usize) -> Vec<Vec<usize>> {
    let keys: Vec<usize> = (0..keys.min(needs.len())).collect();
    let mut groups = Vec::new();
    let mut group = keys.clone();
    for column in keys.len()..needs.len() {
        let with_it = total(group.iter().chain([&column]).map(|column| needs[*column].least()));
        if group.len() > keys.len() && with_it > width {
            groups.push(std::mem::replace(&mut group, keys.clone()));
        }
        group.push(column);
    }
    groups.push(group);
    groups
}

fn total(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + AROUND).sum::<usize>().saturating_sub(1)
}

fn whole(needs: &[Need], columns: Vec<usize>) -> Block {
    let headings = columns.iter().map(|column| needs[*column].heading.clone()).collect();
    let wraps = vec![true; columns.len()];
    Block { columns, headings, wraps }
}

/// A block whose headings take the room that its cells leave, from the left.
fn narrow(needs: &[Need], columns: Vec<usize>, width: usize) -> Block {
    let least = total(columns.iter().map(|column| needs[*column].least()));
    let mut spare = width.saturating_sub(least);
    let heading = |column: &usize| {
        let need = &needs[*column];
        let more = length(&need.heading).saturating_sub(need.least()).min(spare);
        let lines = wrap(&need.heading, need.least() + more);
        let taken = lines.iter().map(|line| length(line)).max().unwrap_or(0);
        spare -= taken.saturating_sub(need.least()).min(spare);
        lines.join("\n")
    };
    let headings = columns.iter().map(heading).collect();
    let wraps = columns.iter().map(|column| needs[*column].is_text).collect();
    Block { columns, headings, wraps }
}

fn need(table: &Table, number: usize, keys: usize) -> Need {
    let column = &table.columns[number];
    let heading = column.heading();
    let cells = table.rows.iter().filter_map(|row| row.get(number));
    let cell = cells.map(|cell| length(&column.show(cell))).max().unwrap_or(0);
    let word = heading.split(' ').map(length).max().unwrap_or(0);
    let is_text = column.align == Align::Left && cell > TEXT_MIN && number >= keys;
    Need { heading, cell, word, is_text }
}

/// Breaks a text at its spaces into lines of at most so many characters; a longer word is a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Column, TimeUnit};

    fn table(values: usize) -> Table {
        let mut columns = vec![Column::text("task")];
        columns.extend((0..values).map(|_| Column::duration("wakeup_latency_p99", TimeUnit::Us)));
        let mut table = Table::new("t", "T", columns);
        let mut row = vec![Cell::text("hog")];
        row.extend((0..values).map(|_| Cell::duration_ns(1)));
        table.push(row);
        table
    }

    #[test]
    fn what_fits_stays_whole() {
        let blocks = blocks(&table(2), Some(80));
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].headings[1], "wakeup latency p99 µs");
    }

    #[test]
    fn headings_are_wrapped_before_columns_are_stacked() {
        let narrow = blocks(&table(5), Some(80));
        assert_eq!(narrow.len(), 1);
        // The spare room goes to the headings from the left.
        assert_eq!(narrow[0].headings[1], "wakeup latency p99 µs");
        assert_eq!(narrow[0].headings[5], "wakeup\nlatency\np99 µs");
    }

    #[test]
    fn each_block_names_its_rows() {
        let stacked = blocks(&table(12), Some(80));
        assert_eq!(stacked.len(), 2);
        assert!(stacked.iter().all(|block| block.columns[0] == 0));
        let values: usize = stacked.iter().map(|block| block.columns.len() - 1).sum();
        assert_eq!(values, 12);
    }

    #[test]
    fn each_block_has_all_columns_that_tell_the_rows_apart() {
        let mut columns = vec![Column::text("decision"), Column::text("difference")];
        columns.extend((0..12).map(|_| Column::duration("latency_p99", TimeUnit::Us)));
        let mut table = Table::new("t", "T", columns);
        for difference in ["preempts", "stays"] {
            let cells = (0..12).map(|_| Cell::duration_ns(1));
            let names = ["pick", difference].map(Cell::text);
            table.push(names.into_iter().chain(cells));
        }
        let stacked = blocks(&table, Some(80));
        assert!(stacked.len() > 1);
        assert!(stacked.iter().all(|block| block.columns[..2] == [0, 1]), "{stacked:?}");
    }

    #[test]
    fn without_a_width_nothing_is_wrapped() {
        assert_eq!(blocks(&table(40), None).len(), 1);
    }
}
