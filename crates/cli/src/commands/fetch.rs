//! `sched fetch`: published schedulers, built into the cache; and their table in `sched list`.

use fairground_catalogue::{ENTRIES, HEADERS, find};
use fairground_report::Table;
use fairground_session::{Failure, scheduler_store, split_set};

use super::kernels::saying;
use crate::args::Cli;
use crate::{present, talk};

/// Builds each of `NAME[@VERSION]`; prints the paths of the objects. One that fails does not stop the others.
pub(super) fn fetch(cli: &Cli, specs: &[String]) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for spec in specs {
        match fetch_one(cli, spec) {
            Err(failure) if specs.len() == 1 || failure.is_broken_pipe() => return Err(failure),
            Err(failure) => {
                talk::say(format!("fairground: {failure}"));
                failed.push(spec.as_str());
            }
            Ok(()) => {}
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let (count, all) = (failed.len(), specs.len());
    Err(Failure::new(format_args!("{count} of {all} were not fetched: {}", failed.join(", "))))
}

fn fetch_one(cli: &Cli, spec: &str) -> Result<(), Failure> {
    let (store, mut say) = (scheduler_store()?, saying(cli));
    let (name, version) = split_set(spec);
    if name == HEADERS {
        let folders = store.fetch_headers(version, &mut say).map_err(Failure::new)?;
        let lines = folders.iter().map(|folder| format!("{}\n", folder.display()));
        return present::write_stdout(&lines.collect::<String>());
    }
    let built = store.fetch(name, version, &mut say).map_err(Failure::new)?;
    say(&format!("{name} {} is here", built.version));
    if find(name).is_none() {
        say(&format!(
            "no entry of the catalogue describes what the loader of {name} sets: see `fairground sched show {name}`"
        ));
    }
    present::write_stdout(&format!("{}\n", built.object.display()))
}

/// A row of the table: name, described version, what it is, limits.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The schedulers of the catalogue, and those that are built without an entry, with the versions that are built.
pub(super) fn published_table() -> Table {
    // Without a folder for a cache nothing is here.
    let store = scheduler_store().ok();
    let here = |name: &str| {
        let built = store.iter().flat_map(|store| store.built(name));
        let versions: Vec<_> = built.map(|built| built.version).collect();
        if versions.is_empty() { "-".to_owned() } else { versions.join(" ") }
    };
    let others = store.iter().flat_map(|store| store.names()).filter(|name| find(name).is_none());
    let others: Vec<String> = others.collect();
    let described = ENTRIES
        .iter()
        .map(|entry| (entry.name, entry.version(), entry.summary(), entry.limits().unwrap_or("-")));
    let others =
        others.iter().map(|name| (name.as_str(), "-", "not described", "its loader's settings"));
    let rows: Vec<Row<'_>> = described.chain(others).collect();
    let mut table = Table::of("published", "Schedulers that others publish", rows)
        .text("scheduler", |row| row.0)
        .text("version", |row| row.1)
        .text("built", |row| here(row.0))
        .text("what_it_is", |row| row.2)
        .text("limits", |row| row.3)
        .table();
    table.note("`fairground sched fetch NAME` builds one; `NAME@VERSION` names a version of it.");
    table.note(
        "version: the one that its entry describes; limits: what the simulated machine leaves out.",
    );
    table
}
