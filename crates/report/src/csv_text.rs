//! CSV (RFC 4180 with line feeds): one table as it stands, or a whole document, one observation a line.
//!
//! Values are raw, as in JSON; what was not measured is an empty field. A text that a spreadsheet would take for a
//! formula gets an apostrophe in front, which spreadsheets do not show (OWASP, "CSV Injection"); numbers stay as they
//! are.

use std::borrow::Cow;

use crate::{Document, Table, Unit};

/// The names of the columns of an observation.
const HEADER: [&str; 6] = ["run", "of", "task", "metric", "value", "unit"];

impl Table {
    /// The table with one line per row. The unit stands in the header: `wait_ns`, `share_percent`. A column whose
    /// cells have units of their own becomes two, `cfs` and `cfs_unit`.
    pub fn to_csv(&self) -> String {
        let mut header = Vec::new();
        for column in &self.columns {
            match (&column.unit, column.raw_unit()) {
                (Unit::Mixed, _) => {
                    header.push(column.name.clone());
                    header.push(format!("{}_unit", column.name));
                }
                (_, Some(unit)) => header.push(format!("{}_{unit}", column.name)),
                (_, None) => header.push(column.name.clone()),
            }
        }
        let mut lines = vec![header];
        for row in &self.rows {
            let mut line = Vec::new();
            for (column, cell) in self.columns.iter().zip(row) {
                line.push(cell.raw_text());
                if column.unit == Unit::Mixed {
                    line.push(cell.raw_unit().unwrap_or_default().to_owned());
                }
            }
            lines.push(line);
        }
        write(&lines)
    }
}

impl Document {
    /// All values, one observation a line: `run,of,task,metric,value,unit`.
    pub fn to_csv(&self) -> String {
        let mut lines = vec![HEADER.map(str::to_owned).to_vec()];
        for seen in self.observations() {
            let unit = seen.unit.unwrap_or_default().to_owned();
            let value = seen.value.raw_text();
            lines.push(vec![seen.run, seen.of, seen.task, seen.metric, value, unit]);
        }
        write(&lines)
    }
}

fn write(lines: &[Vec<String>]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer
            .write_record(line.iter().map(|text| inert(text).into_owned()))
            .expect("a record of the header's length fits into a Vec");
    }
    let bytes = writer.into_inner().expect("a Vec takes all bytes");
    String::from_utf8(bytes).expect("strings stay UTF-8 when they are quoted")
}

/// A text that no spreadsheet runs as a formula.
fn inert(text: &str) -> Cow<'_, str> {
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    // A number, `-` alone and `-5 %` are what they look like.
    let is_number = text.parse::<f64>().is_ok();
    match begins && !is_number && text != "-" {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Column};

    #[test]
    fn no_text_is_a_formula_and_numbers_are_numbers() {
        let mut table = Table::new("t", "T", [Column::text("name"), Column::number("value")]);
        for name in [
            "=1+2",
            "+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "hog",
            "-",
            "-7",
            "a=b",
        ] {
            table.push([Cell::text(name), Cell::float(-1.5, 1)]);
        }
        let csv = table.to_csv();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let cells: Vec<String> =
            reader.records().map(|record| record.expect("a record")[0].to_owned()).collect();
        let inert = [
            "'=1+2",
            "'+cmd|' /C calc'!A0",
            "'-2+3",
            "'@SUM(A1)",
            "'\t=1",
            "'\r=1",
            "hog",
            "-",
            "-7",
            "a=b",
        ];
        assert_eq!(cells, inert);
        assert_eq!(csv.matches(",-1.5\n").count(), inert.len(), "numbers stay: {csv}");
    }
}
