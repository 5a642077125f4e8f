//! `schema`: the formats that are fairground's own, and the JSON Schema of one.

use std::process::ExitCode;

use fairground_report::{Cell, Column, Table};
use fairground_session::Failure;

use crate::args::{Cli, SchemaArgs};
use crate::formats::FORMATS;
use crate::present;

pub(super) fn schema(cli: &Cli, args: &SchemaArgs) -> Result<ExitCode, Failure> {
    let named = |name: &String| FORMATS.iter().find(|format| format.name == *name);
    match args.format_name.as_ref().and_then(named).and_then(|format| format.json_schema) {
        Some(make) => present::write_stdout(&format!("{:#}", make()))?,
        None => present::print_tables([list()], cli)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Table {
    Table::of("formats", "Formats", FORMATS)
        .text("format", |format| format.name)
        .column(Column::number("version"), |format| Cell::Int(format.version))
        .text("stated_in", |format| format.mark)
        .text("what_it_is", |format| format.what)
        .text("described_in", |format| format.page)
        .text("json_schema", |format| match format.json_schema {
            Some(_) => format!("fairground schema {}", format.name),
            None => String::new(),
        })
        .table()
}
