//! `workload list|show|convert|check`.

use std::path::Path;
use std::process::ExitCode;

use fairground_report::Table;
use fairground_session::{CPUS_DEFAULT, Failure, find_workload_noted};
use fairground_workload::{describe, library, to_rt_app, to_toml};

use crate::args::{Cli, WorkloadCommand, WorkloadForm};
use crate::input::say;
use crate::present;

pub(super) fn workload(cli: &Cli, command: &WorkloadCommand) -> Result<ExitCode, Failure> {
    match command {
        WorkloadCommand::List => list(cli)?,
        WorkloadCommand::Show { workload } => show(workload)?,
        WorkloadCommand::Convert { workload, to } => convert(cli, workload, *to)?,
        WorkloadCommand::Check { file } => check(file)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A workload as a file. What the library says of its parts stands in front as comments; of a name alone that wants
/// arguments, only that.
fn show(workload: &str) -> Result<(), Failure> {
    let mut text = String::new();
    for part in workload.split('+') {
        let name = part.trim().split([':', ',', ' ']).next().unwrap_or_default();
        if let Some(entry) = library::entries().iter().find(|entry| entry.name == name) {
            text += &explained(entry);
        }
    }
    match find_workload_noted(workload) {
        Ok((found, notes)) => {
            for note in &notes {
                text += &format!("# {note}\n");
            }
            text += &to_toml(&found);
        }
        Err(_) if library::entries().iter().any(|entry| entry.name == workload) => {}
        Err(failure) => return Err(failure),
    }
    present::write_stdout(&text)
}

/// The file goes to stdout, what gets lost to stderr.
fn convert(cli: &Cli, workload: &str, to: WorkloadForm) -> Result<(), Failure> {
    let (found, mut notes) = find_workload_noted(workload)?;
    let text = match to {
        WorkloadForm::Toml => to_toml(&found),
        WorkloadForm::RtApp => {
            let written = to_rt_app(&found).map_err(Failure::new)?;
            notes.extend(written.notes);
            written.text
        }
    };
    if !cli.quiet {
        say(&notes);
    }
    present::write_stdout(&text)
}

fn explained(entry: &library::Entry) -> String {
    let mut text = format!("# {}: {}\n", form(entry), entry.summary);
    text += &format!("# Source: {}\n# Limits: {}\n", entry.source, entry.limits);
    for parameter in entry.parameters.iter().chain(library::COMMON_PARAMETERS) {
        text += &format!("#   {}={}  {}\n", parameter.name, parameter.default, parameter.help);
    }
    text + "\n"
}

/// How it is written.
fn form(entry: &library::Entry) -> String {
    match entry.arguments {
        "" => entry.name.to_owned(),
        arguments => format!("{}:{arguments}", entry.name),
    }
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let mut table = Table::of("workloads", "Workloads", library::entries())
        .text("workload", |entry| form(entry))
        .text("what_it_is", |entry| entry.summary)
        .text("parameters", |entry| {
            let keys = entry.parameters.iter().chain(library::COMMON_PARAMETERS);
            let keys = keys.map(|p| format!("{}={} ({})", p.name, p.default, p.help));
            keys.collect::<Vec<_>>().join("; ")
        })
        .table();
    table.note("Several are joined by `+`, as in `hogs:2,nice=5 + sleepers:3`.");
    present::print_tables([table], cli)
}

/// A check always reads a file, whatever its name looks like.
fn check(file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let path = if name.contains('/') { name } else { format!("./{name}") };
    let (workload, notes) = find_workload_noted(&path)?;
    let mut text = format!("{path}: right\n");
    for note in &notes {
        text += &format!("note: {note}\n");
    }
    let cpus = workload.cpus_named();
    if cpus > CPUS_DEFAULT {
        text += &format!("note: its tasks name {cpus} CPUs: run it with --cpus {cpus}\n");
    }
    for line in describe(&workload) {
        text += &format!("{line}\n");
    }
    present::write_stdout(&text)
}
