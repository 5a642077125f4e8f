//! The kernel's own tests of sched_ext (`tools/testing/selftests/sched_ext`): their schedulers run in the simulated
//! machine, on a workload that stands for the test's own program, and what the test asserts is asserted here. `make
//! third-party` builds the objects into the cache; without them these tests say so and pass.

mod list;
mod runs;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fairground_testing::unavailable;
use serde_json::Value;

use crate::support::pages::root;
use crate::support::{Files, fairground};
use list::SELFTESTS;
use runs::{Here, Run, Selftest};

/// The page with the table.
const PAGE: &str = "docs/reference/sched-ext-selftests.md";
const FROM: &str = "<!-- selftests: written by a test from its own list -->\n";
const TO: &str = "<!-- end of selftests -->\n";

/// The folder of the kernel's tests below the sources in the cache.
const SOURCES: &str = "source/tools/testing/selftests/sched_ext";

/// The cache of third-party objects; `None` where the tests were not built.
fn cache() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let cache = base.join("fairground/third-party");
    if cache.join("selftests").is_dir() {
        return Some(cache);
    }
    let reason = format!("{} has no tests of sched_ext; run `make third-party`", cache.display());
    unavailable("third-party", reason);
    None
}

/// What is wrong with a run; nothing when it does as the test asserts.
fn faults(cache: &Path, run: &Run) -> Vec<String> {
    let files = Files::new();
    let object = cache.join(format!("selftests/{}.bpf.o", run.object)).display().to_string();
    let workload =
        files.write("workload.toml", format!("format = 1\nname = \"user half\"\n{}", run.workload));
    let mut words =
        vec!["run", &workload, "--sched", &object, "--check", "--quiet", "--format", "json"];
    let profile = run
        .profile
        .map(|text| files.write("profile.toml", format!("object = \"{}\"\n{text}", run.object)));
    if let Some(profile) = &profile {
        words.extend(["--profile", profile]);
    }
    words.extend(run.words.split_whitespace());
    words.extend(run.expect.iter().flat_map(|expect| ["--expect", *expect]));
    let equal = format!("--show-globals={}", run.equal.join(","));
    words.extend((!run.equal.is_empty()).then_some(equal.as_str()));
    let output = fairground(&words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut faults = Vec::new();
    if output.status.code() != Some(run.code) {
        faults.push(format!(
            "exit code {:?} instead of {}: {said}",
            output.status.code(),
            run.code
        ));
    }
    if run.code == 2 {
        let named = said.contains(run.says);
        faults.extend((!named).then(|| format!("`{}` is missing from: {said}", run.says)));
        return faults;
    }
    match serde_json::from_slice(&output.stdout) {
        Ok(document) => faults.extend(judge(run, &document)),
        Err(error) => faults.push(format!("no document: {error}")),
    }
    faults
}

/// What a document says that the test does not assert.
fn judge(run: &Run, document: &Value) -> Vec<String> {
    let texts = document["verdicts"].as_array().into_iter().flatten();
    let verdicts: Vec<&str> = texts.filter_map(|verdict| verdict["text"].as_str()).collect();
    let mut faults = Vec::new();
    let is_expected = |text: &&&str| !run.says.is_empty() && text.contains(run.says);
    let others =
        verdicts.iter().filter(|text| !is_expected(text) || text.starts_with("not as expected"));
    faults.extend(others.map(|text| (*text).to_owned()));
    if !run.says.is_empty() && !verdicts.iter().any(|text| text.contains(run.says)) {
        faults.push(format!("`{}` is missing from {verdicts:?}", run.says));
    }
    let value = |name: &&str| {
        let row = rows(document, "variables").find(|row| row[0] == *name)?;
        Some(row[1].to_string())
    };
    let values: BTreeSet<Option<String>> = run.equal.iter().map(value).collect();
    if values.len() > 1 || values.contains(&None) {
        faults.push(format!("{:?} are not equal: {values:?}", run.equal));
    }
    if let Some((group, percent)) = run.share {
        let share = rows(document, "groups").find(|row| row[0] == group);
        let share = share.and_then(|row| row[2].as_f64()).unwrap_or(0.0);
        if share < percent {
            faults.push(format!("`{group}` has {share} % of a CPU, not {percent}"));
        }
    }
    faults
}

/// The rows of a table.
fn rows<'d>(document: &'d Value, id: &str) -> impl Iterator<Item = &'d Value> {
    let tables = document["tables"].as_array().into_iter().flatten();
    let id = id.to_owned();
    tables
        .filter(move |table| table["id"] == id.as_str())
        .flat_map(|table| table["rows"].as_array().into_iter().flatten())
}

/// Each test behaves as it asserts, or fails as the table says.
#[test]
fn the_kernels_tests_of_sched_ext_hold() {
    let Some(cache) = cache() else { return };
    let mut wrong = Vec::new();
    let mut holding = 0;
    for Selftest { name, here, .. } in SELFTESTS {
        let (runs, holds) = match here {
            Here::Holds(runs, _) => (*runs, true),
            Here::Fails(runs, _) => (*runs, false),
            Here::Without(_) => continue,
        };
        let found: Vec<String> = runs.iter().flat_map(|run| faults(&cache, run)).collect();
        holding += usize::from(holds);
        match (holds, found.as_slice()) {
            (true, []) => {}
            (true, faults) => wrong.push(format!("{name}:\n  {}", faults.join("\n  "))),
            (false, []) => wrong.push(format!("{name} holds: the table says that it does not")),
            (false, _) => {}
        }
    }
    println!("{holding} of {} tests hold", SELFTESTS.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table has every test that the kernel's sources have.
#[test]
fn the_table_names_every_test_of_the_kernel() {
    let Some(cache) = cache() else { return };
    let makefile = fs::read_to_string(cache.join(SOURCES).join("Makefile")).expect("the sources");
    let list = makefile.split("auto-test-targets :=").nth(1).expect("the list of tests");
    let list = list.split("\n\n").next().unwrap_or_default();
    let there: BTreeSet<&str> = list.split_whitespace().filter(|word| *word != "\\").collect();
    let ours: BTreeSet<&str> = SELFTESTS.iter().map(|test| test.name).collect();
    assert_eq!(ours, there);
}

/// The page shows the table.
#[test]
fn the_page_has_the_table() {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(FROM).expect("the marker before the table");
    let (_, after) = rest.split_once(TO).expect("the marker behind the table");
    let mut text =
        "| test | what it asserts | in the simulated machine |\n|---|---|---|\n".to_owned();
    for Selftest { name, asserts, here } in SELFTESTS {
        let here = match here {
            Here::Holds(_, "") => "holds".to_owned(),
            Here::Holds(_, how) => format!("holds: {how}"),
            Here::Fails(_, why) => format!("does not hold: {why}"),
            Here::Without(why) => format!("not run: {why}"),
        };
        text += &format!("| `{name}` | {asserts} | {here} |\n");
    }
    let right = format!("{before}{FROM}\n{text}\n{TO}{after}");
    if env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write") {
        fs::write(&path, right).expect("the page is written");
        return;
    }
    assert!(
        page == right,
        "{PAGE} is stale\nFAIRGROUND_DOCS=write cargo test -p fairground the_page_has_the_table"
    );
}
