//! `sched fetch`: published schedulers, built into the cache; and their table in `sched list`.

use fairground_catalogue::ENTRIES;
use fairground_report::Table;
use fairground_session::{Failure, scheduler_store, split_set};

use super::kernels::saying;
use crate::args::Cli;
use crate::present;

/// Builds each of `NAME[@VERSION]`; prints the paths of the objects.
pub(super) fn fetch(cli: &Cli, specs: &[String]) -> Result<(), Failure> {
    let store = scheduler_store()?;
    let mut say = saying(cli);
    for spec in specs {
        let (name, version) = split_set(spec);
        let built = store.fetch(name, version, &mut say).map_err(Failure::new)?;
        say(&format!("{name} {} is here", built.version));
        present::write_stdout(&format!("{}\n", built.object.display()))?;
    }
    Ok(())
}

/// The schedulers of the catalogue, with the versions that are built.
pub(super) fn published_table() -> Table {
    // Without a folder for a cache nothing is here.
    let store = scheduler_store().ok();
    let here = |name: &str| {
        let built = store.iter().flat_map(|store| store.built(name));
        let versions: Vec<_> = built.map(|built| built.version).collect();
        if versions.is_empty() { "-".to_owned() } else { versions.join(" ") }
    };
    let mut table = Table::of("published", "Schedulers that others publish", ENTRIES)
        .text("scheduler", |entry| entry.name)
        .text("version", |entry| entry.version())
        .text("built", |entry| here(entry.name))
        .text("what_it_is", |entry| entry.summary())
        .text("limits", |entry| entry.limits().unwrap_or("-"))
        .table();
    table.note("`fairground sched fetch NAME` builds one; `NAME@VERSION` names a version of it.");
    table.note(
        "version: the one that its entry describes; limits: what the simulated machine leaves out.",
    );
    table
}
