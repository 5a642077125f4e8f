//! "Where to change what" in ARCHITECTURE.md: the files, folders and identifiers that its rows name exist.

use std::fs;
use std::path::Path;

use crate::house::{has_word, root, verdict};

/// Where files of the page lie.
const FOLDERS: [&str; 12] = [
    "benches",
    "catalogue",
    "crates",
    "docs",
    "experiments",
    "fuzz",
    "packaging",
    "policies",
    "python",
    "tests",
    "setup.sh",
    "third-party.sh",
];
/// Fewer rows than this, and the table was not found.
const ROWS_MIN: usize = 30;

/// A row: the change, and the words in backquotes of the cell with the files.
struct Row<'p> {
    change: &'p str,
    words: Vec<&'p str>,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let (_, behind) = page.split_once("## Where to change what").expect("the table's heading");
    let table = behind.split("\n## ").next().expect("the table");
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows = cells.skip(1).map(|(change, files)| {
        let words = files.split('`').skip(1).step_by(2).filter(|word| !word.contains(' '));
        Row { change, words: words.collect() }
    });
    rows.collect()
}

/// Every file and folder of the repository, as paths from its root.
fn tree() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut open: Vec<_> = FOLDERS.iter().map(|name| root.join(name)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() && !path.ends_with("target") {
            open.extend(fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        }
        let below = path.strip_prefix(&root).expect("below the root");
        found.push(below.display().to_string());
    }
    found
}

/// The ends of the names of files that people write here; `trace.dat` in a row is a format.
const WRITTEN: [&str; 7] = ["rs", "md", "toml", "h", "js", "py", "sh"];

/// Whether a word is a path: with a folder or the end of a file's name.
fn is_path(word: &str) -> bool {
    let end = Path::new(word).extension().and_then(|end| end.to_str());
    word.contains('/') || end.is_some_and(|end| WRITTEN.contains(&end))
}

/// Whether a word is a name of code that nothing else is written like.
fn is_identifier(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && word.chars().any(|c| c.is_ascii_uppercase() || c == '_')
}

/// The files and folders that a word may mean: one with this path, or with this end of its path in a crate that the
/// row names, or in the book. `NAME` and `*` stand for anything.
fn meant<'t>(word: &str, crates: &[&str], tree: &'t [String]) -> Vec<&'t String> {
    let word = word.trim_end_matches('/');
    let open = word.find('*').or_else(|| word.find("NAME"));
    let (word, is_whole) = open.map_or((word, true), |at| (&word[..at], false));
    let of_row = |path: &str| {
        crates.is_empty() || crates.iter().chain([&"docs/"]).any(|name| path.starts_with(name))
    };
    let fits = |path: &str| match is_whole {
        true if path == word => true,
        true => of_row(path) && path.strip_suffix(word).is_some_and(|before| before.ends_with('/')),
        false => path.contains(word),
    };
    tree.iter().filter(|path| fits(path)).collect()
}

/// What a row names that is not there.
fn missing(row: &Row<'_>, tree: &[String]) -> Vec<String> {
    let (paths, names): (Vec<&str>, Vec<&str>) = row.words.iter().partition(|word| is_path(word));
    let crates: Vec<&str> = paths
        .iter()
        .filter(|path| path.starts_with("crates/"))
        .filter_map(|path| path.match_indices('/').nth(1).map(|(at, _)| &path[..=at]))
        .collect();
    let mut files = Vec::new();
    let mut missing = Vec::new();
    for path in paths {
        let found = meant(path, &crates, tree);
        if found.is_empty() {
            missing.push(format!("{}: there is no `{path}`", row.change));
        }
        let below = |file: &&String| {
            found.iter().any(|path| file.as_str() == *path || file.starts_with(&format!("{path}/")))
        };
        files.extend(tree.iter().filter(below));
    }
    let is_in = |name: &str, file: &String| {
        fs::read_to_string(root().join(file))
            .is_ok_and(|text| text.lines().any(|line| has_word(line, name)))
    };
    for name in names.into_iter().filter(|name| is_identifier(name)) {
        if !files.iter().any(|file| is_in(name, file)) {
            missing.push(format!("{}: no file of the row has `{name}`", row.change));
        }
    }
    missing
}

#[test]
fn rows_name_what_is_there() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let (rows, tree) = (rows(&page), tree());
    assert!(rows.len() >= ROWS_MIN, "only {} rows", rows.len());
    let broken: Vec<String> = rows.iter().flat_map(|row| missing(row, &tree)).collect();
    verdict("ARCHITECTURE.md, \"Where to change what\", names what is not there:", &broken);
}

#[test]
fn a_stale_row_is_found() {
    let tree = tree();
    let of = |cell: &str| {
        let page =
            format!("## Where to change what\n\n| change | files |\n|---|---|\n| x | {cell} |\n");
        rows(&page).iter().flat_map(|row| missing(row, &tree)).collect::<Vec<_>>()
    };
    assert_eq!(of("`COSTS` in `crates/machine/src/cost/table.rs`, `cost/presets/`"), [""; 0]);
    assert_eq!(
        of("`crates/machine/src/cost/tables.rs`"),
        ["x: there is no `crates/machine/src/cost/tables.rs`"]
    );
    assert_eq!(of("`crates/trace/src/`, `cost/table.rs`"), ["x: there is no `cost/table.rs`"]);
    let gone = of("`PRICES` in `crates/machine/src/cost/table.rs`");
    assert_eq!(gone, ["x: no file of the row has `PRICES`"]);
}
