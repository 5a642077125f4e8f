//! Charts as files for papers (`--plots`).

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Files, fairground, refusal, release, run, success};

const COMPARE: [&str; 9] =
    ["compare", "hogs:3", "--cpus", "2", "--sched", "o1,cfs", "--duration", "500ms", "--quiet"];

/// The files in a folder.
fn files_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read(path).expect("it can be read"))
    };
    std::fs::read_dir(folder).expect("the folder was made").map(read).collect()
}

/// What a command draws.
fn drawn(files: &Files, arguments: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let folder = files.path("made/for/it");
    success(&[arguments, &["--plots", folder.to_str().expect("UTF-8")]].concat());
    files_in(&folder)
}

#[test]
fn each_chart_becomes_two_files_and_other_files_stay() {
    let files = Files::new();
    let folder = files.path("made/for/it");
    std::fs::create_dir_all(&folder).expect("it is made");
    std::fs::write(folder.join("notes.txt"), "mine").expect("it is written");
    std::fs::write(folder.join("shares.svg"), "of yesterday").expect("it is written");
    let found = drawn(&files, &COMPARE);
    assert_eq!(found["notes.txt"], b"mine");
    let names: Vec<&str> =
        found.keys().map(String::as_str).filter(|n| n.ends_with(".svg")).collect();
    assert_eq!(
        names,
        [
            "errors.svg",
            "policy-instructions.svg",
            "shares.svg",
            "slices.svg",
            "timeline-cfs.svg",
            "timeline-o1.svg",
        ]
    );
    for name in names {
        let svg = String::from_utf8(found[name].clone()).expect("UTF-8");
        assert!(svg.contains("compare hogs:3 --cpus 2"), "{name} says by what it was made");
        let png = &found[&name.replace(".svg", ".png")];
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{name} as PNG");
    }
    assert_eq!(found.len(), 1 + 2 * 6, "and no half file is left");
}

#[test]
fn they_are_the_same_each_time_and_in_every_build() {
    let (files, again) = (Files::new(), Files::new());
    let first = drawn(&files, &COMPARE);
    // The name of the folder stands in the pictures.
    let named = |found: BTreeMap<String, Vec<u8>>, folder: &Files| -> BTreeMap<String, Vec<u8>> {
        let folder = folder.path("made/for/it").display().to_string();
        let svgs = found.into_iter().filter(|(name, _)| name.ends_with(".svg"));
        svgs.map(|(name, svg)| {
            (name, String::from_utf8_lossy(&svg).replace(&folder, "").into_bytes())
        })
        .collect()
    };
    assert!(named(first.clone(), &files) == named(drawn(&again, &COMPARE), &again), "each time");
    assert!(first == drawn(&files, &COMPARE), "and PNG to the last bit");
    let Some(release) = release() else { return };
    let folder = files.path("made/for/it");
    let output = run(
        Path::new(&release),
        &[&COMPARE[..], &["--plots", folder.to_str().expect("UTF-8")]].concat(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(first == files_in(&folder), "a release build draws the same");
}

#[test]
fn a_folder_that_cannot_be_written_is_said_before_anything_runs() {
    let files = Files::new();
    let taken = files.write("taken", "a file");
    // An hour of simulated time would be lost otherwise.
    for folder in [taken.as_str(), "/proc/plots"] {
        let said = refusal(&[
            "run",
            "hogs:64",
            "--cpus",
            "8",
            "--duration",
            "3600s",
            "--quiet",
            "--plots",
            folder,
        ]);
        assert!(said.contains(folder) && said.contains("--plots takes a folder"), "{said}");
    }
}

#[test]
fn what_was_measured_is_shown_though_a_picture_cannot_be_written() {
    let files = Files::new();
    let folder = files.path("plots");
    std::fs::create_dir_all(folder.join("shares.svg/taken")).expect("a folder in the way");
    let folder = folder.display().to_string();
    let output = fairground(&[&COMPARE[..], &["--plots", &folder]].concat());
    let (shown, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("shares.svg"), "{said}");
    assert!(shown.contains("cpu_share"), "the table is lost:\n{shown}");
}

#[test]
fn experiments_and_waits_are_drawn() {
    let files = Files::new();
    let found = drawn(&files, &["reproduce", "slice-2009", "--quiet"]);
    let figures =
        found.keys().filter(|name| name.starts_with("figures-0-") && name.ends_with(".png"));
    assert!(figures.count() > 3, "{:?}", found.keys());

    let files = Files::new();
    let locks = ["netperf-stream", "--locks", "rt", "--duration", "100ms", "--quiet"];
    let found = drawn(&files, &[&["run"], &locks[..]].concat());
    let svg = String::from_utf8_lossy(&found["contention.svg"]).into_owned();
    assert!(svg.contains("holder waits for a CPU") && svg.contains("(lock rt)"), "{svg}");

    let files = Files::new();
    let found = drawn(&files, &[&["contention"], &locks[..]].concat());
    for end in ["svg", "png"] {
        let name = format!("waits-locks-and-uninterruptible-sleep.{end}");
        assert!(found.contains_key(name.as_str()), "{:?}", found.keys());
    }
}
