//! CSV (RFC 4180 with line feeds): one table as it stands, or a whole document, one observation a line.
//!
//! Values are raw, as in JSON; what was not measured is an empty field.

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
        writer.write_record(line).expect("a record of the header's length fits into a Vec");
    }
    let bytes = writer.into_inner().expect("a Vec takes all bytes");
    String::from_utf8(bytes).expect("strings stay UTF-8 when they are quoted")
}
