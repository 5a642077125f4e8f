//! CSV (RFC 4180 with line feeds): one table as it stands, or a whole document in the long form.
//!
//! Values are raw, as in JSON; what was not measured is an empty field.

use crate::json::whole;
use crate::{Cell, Document, Table, Unit};

impl Table {
    /// The table with one line per row. The unit stands in the header: `wait_ns`, `share_percent`. A column whose cells have
    /// units of their own becomes two, `cfs` and `cfs_unit`.
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
    /// All tables in the long form, one line per value: `table,row,label,column,unit,value`. `row` counts from 1; `label` is
    /// the first cell of the row.
    pub fn to_csv(&self) -> String {
        let header = ["table", "row", "label", "column", "unit", "value"].map(str::to_owned);
        let mut lines = vec![header.to_vec()];
        for table in &self.tables {
            for (number, row) in table.rows.iter().enumerate() {
                let label = row.first().map(raw).unwrap_or_default();
                for (column, cell) in table.columns.iter().zip(row) {
                    lines.push(vec![
                        table.id.clone(),
                        (number + 1).to_string(),
                        label.clone(),
                        column.name.clone(),
                        column.unit_of(cell).unwrap_or_default().to_owned(),
                        raw(cell),
                    ]);
                }
            }
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
