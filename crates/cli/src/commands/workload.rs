//! `workload list|show|check`.

use std::path::Path;
use std::process::ExitCode;

use fairground_report::{Cell, Column, Document, Table};
use fairground_workload::{describe, library, to_toml};

use crate::args::{Cli, WorkloadCommand};
use crate::failure::Failure;
use crate::input::find_workload;
use crate::present;

pub(super) fn workload(cli: &Cli, command: &WorkloadCommand) -> Result<ExitCode, Failure> {
    match command {
        WorkloadCommand::List => list(cli)?,
        WorkloadCommand::Show { workload } => {
            present::write_stdout(&to_toml(&find_workload(workload)?))?
        }
        WorkloadCommand::Check { file } => check(file)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let columns =
        [Column::text("workload"), Column::text("what_it_is"), Column::text("parameters")];
    let mut table = Table::new("workloads", "Workloads", columns);
    for entry in library::entries() {
        let form = if entry.arguments.is_empty() {
            entry.name.to_owned()
        } else {
            format!("{}:{}", entry.name, entry.arguments)
        };
        let keys = entry.parameters.iter().chain(library::COMMON_PARAMETERS);
        let keys: Vec<_> = keys.map(|p| format!("{}={} ({})", p.name, p.default, p.help)).collect();
        table.push([Cell::text(form), Cell::text(entry.summary), Cell::text(keys.join("; "))]);
    }
    table.note("Several are joined by `+`, as in `hogs:2,nice=5 + sleepers:3`.");
    let mut document = Document::default();
    document.tables.push(table);
    present::print(&document, cli.format)
}

/// A check always reads a file, whatever its name looks like.
fn check(file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let path = if name.contains('/') { name } else { format!("./{name}") };
    let workload = find_workload(&path)?;
    let mut text = format!("{path}: right\n");
    for line in describe(&workload) {
        text += &format!("{line}\n");
    }
    present::write_stdout(&text)
}
