//! The table of formats in `docs/reference/recordings.md`: each row names samples, and each sample is read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fairground_trace::{EventKind, read_file};

use crate::support::samples;

fn tests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The rows of the table, each with its samples.
fn rows() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(tests().join("../../../docs/reference/recordings.md")).unwrap();
    let (_, table) = page.split_once("| format | made by | notes | sample |").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").collect();
        let samples = cells[cells.len() - 1].split('`').skip(1).step_by(2);
        (cells[0].trim().to_owned(), samples.map(str::to_owned).collect())
    };
    rows.map(row).collect()
}

/// The files below a folder, by their paths from the tests on.
fn files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_recording = |file: &str| path.join(file).exists();
        if path.is_file() || is_recording("metadata") || is_recording("data") {
            found.insert(path.strip_prefix(tests()).unwrap().to_str().unwrap().to_owned());
        } else {
            files(&path, found);
        }
    }
}

#[test]
fn each_row_names_samples_that_are_read() {
    let rows = rows();
    assert!(rows.len() >= 8, "{rows:?}");
    let mut named = BTreeSet::new();
    for (format, samples) in rows {
        assert!(!samples.is_empty(), "{format} has no sample");
        for sample in samples {
            let file = fs::File::open(tests().join(&sample)).expect(&sample);
            let trace =
                read_file(&sample, file).unwrap_or_else(|error| panic!("{format}: {error}"));
            let switches =
                trace.events().filter(|event| matches!(event.kind, EventKind::Switch { .. }));
            assert!(switches.count() >= 1, "{format}: {sample}");
            assert_eq!(trace.loss.unreadable, 0, "{sample}: {:?}", trace.loss.first);
            named.insert(sample);
        }
    }
    let mut all = BTreeSet::new();
    files(&tests().join("samples"), &mut all);
    let missing: Vec<_> = all.difference(&named).collect();
    assert!(missing.is_empty(), "samples that no row names: {missing:?}");
}

/// Binary samples are the bytes of the tests' own writers: `FAIRGROUND_DOCS=write` makes them anew.
#[test]
fn binary_samples_are_what_the_writers_write() {
    for (name, bytes) in samples::all() {
        let path = tests().join("samples").join(&name);
        if std::env::var_os("FAIRGROUND_DOCS").is_some_and(|what| what == "write") {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|found| found == bytes), "{name} is not up to date");
    }
}
