//! CSV (RFC 4180 with line feeds): one table as it stands, or a whole document, one observation a line.
//!
//! Values are raw, as in JSON; what was not measured is an empty field.

use crate::json::whole;
use crate::tidy::HEADER;
use crate::{Cell, Document, Table, Unit};

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
                line.push(raw(cell));
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
        for verdict in &self.verdicts {
            let run = [verdict.run.as_str(), "run", "", "verdict", verdict.text.as_str(), ""];
            lines.push(run.map(str::to_owned).to_vec());
        }
        for seen in self.observations() {
            let unit = seen.unit.unwrap_or_default().to_owned();
            lines.push(vec![seen.run, seen.of, seen.task, seen.metric, raw(seen.value), unit]);
        }
        write(&lines)
    }
}

/// The raw value as a text; empty where there is none.
pub(crate) fn raw(cell: &Cell) -> String {
    match cell {
        _ if cell.is_missing() => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Int(value) => value.to_string(),
        Cell::Float { value, .. }
        | Cell::Percent { value, .. }
        | Cell::Quantity { value, .. }
        | Cell::Duration { ns: value } => {
            whole(*value).map_or_else(|| value.to_string(), |value| value.to_string())
        }
        Cell::NotMeasured => String::new(),
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
