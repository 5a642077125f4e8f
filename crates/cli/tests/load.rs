//! `load`, as the program of a virtual machine whose kernel takes schedulers.

use std::path::Path;

use crate::support::run;

/// Slow as a guest's verifier may be, what `--for` and `--stats` count begins when the scheduler is in charge: the
/// guest's clock counts instructions, so its seconds are the same on any machine.
#[test]
fn times_count_from_when_it_is_in_charge() {
    if crate::support::bootable().is_none() {
        return;
    }
    let binary = std::env::var("FAIRGROUND_RELEASE_BINARY")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_fairground").to_owned());
    let load = ["load", "cfs", "--for", "2500ms", "--stats", "1s", "--format", "csv"];
    let output =
        run(Path::new(&binary), &[&["kernels", "boot", "newest", "--"], &load[..]].concat());
    let (table, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with(",seconds,"))
        .map(|l| l.split(',').nth(2).unwrap())
        .collect();
    rows.dedup();
    assert_eq!(rows.len(), 2, "a row each second:\n{table}\n{said}");
    assert!(table.contains("enabled") && table.contains("cfs"), "{table}");
}
