//! `schema`: the formats that are fairground's own, and the JSON Schema of one.

use std::process::ExitCode;

use fairground_report::{Cell, Column, Document, Table};
use fairground_session::Failure;

use crate::args::{Cli, SchemaArgs};
use crate::formats::FORMATS;
use crate::present;

pub(super) fn schema(cli: &Cli, args: &SchemaArgs) -> Result<ExitCode, Failure> {
    let named = |name: &String| FORMATS.iter().find(|format| format.name == *name);
    match args.format_name.as_ref().and_then(named).and_then(|format| format.json_schema) {
        Some(make) => present::write_stdout(&format!("{:#}", make()))?,
        None => present::print(&list(), cli)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Document {
    let columns = [
        Column::text("format"),
        Column::number("version"),
        Column::text("stated_in"),
        Column::text("what_it_is"),
        Column::text("described_in"),
        Column::text("json_schema"),
    ];
    let mut table = Table::new("formats", "Formats", columns);
    for format in FORMATS {
        let command = match format.json_schema {
            Some(_) => format!("fairground schema {}", format.name),
            None => String::new(),
        };
        table.push([
            Cell::text(format.name),
            Cell::Int(format.version),
            Cell::text(format.mark),
            Cell::text(format.what),
            Cell::text(format.page),
            Cell::text(command),
        ]);
    }
    let mut document = Document::default();
    document.tables.push(table);
    document
}
