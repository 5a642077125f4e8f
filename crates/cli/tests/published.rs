//! Published schedulers by name: fetched, built, and run unmodified in the simulated machine and in a virtual one. They
//! need the network, curl and clang.

use std::process::Command;

use fairground_testing::{thrice, unavailable};

use crate::support::{bootable, refusal, success};

/// Those that run on any machine with what their entries set.
const SCHEDULERS: [&str; 9] = [
    "scx_beerland",
    "scx_bpfland",
    "scx_cosmos",
    "scx_flash",
    "scx_lavd",
    "scx_layered",
    "scx_p2dq",
    "scx_rusty",
    "scx_tickless",
];
const LOAD: &str = "hogs:8 + sleepers:4";

/// Fetches schedulers into the cache; false where there is no network.
fn fetched(names: &[&str]) -> bool {
    let mut fetch = Command::new(env!("CARGO_BIN_EXE_fairground"));
    let output = thrice(fetch.args(["sched", "fetch"]).args(names));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && message.contains("could not be downloaded") {
        unavailable("network", message);
        return false;
    }
    assert!(output.status.success(), "{message}");
    true
}

/// Every task gets on, on machines of several sizes, and no rule of the kernel is broken.
#[test]
fn published_schedulers_run_as_they_are() {
    if !fetched(&SCHEDULERS) || !fetched(&["scx_cake"]) {
        return;
    }
    success(&[
        "run",
        LOAD,
        "--cpus",
        "64",
        "--duration",
        "500ms",
        "--check",
        "--sched",
        "scx_cake",
    ]);
    let list = SCHEDULERS.join(",");
    for machine in [["--cpus", "4"], ["--topology", "2x16x2"], ["--cpus", "256"]] {
        let fixed = ["compare", LOAD, "--duration", "500ms", "--check", "--quiet"];
        success(&[&fixed[..], &machine[..], &["--sched", &list]].concat());
    }
}

/// The kernel takes the same bytes with the same settings. (`scx_lavd` and `scx_p2dq` fill an arena, which a loader of
/// their own does there.)
#[test]
fn a_kernel_runs_published_schedulers_with_what_their_entries_set() {
    let names = ["scx_bpfland", "scx_cosmos", "scx_rusty"];
    let Some(kernel) = bootable() else { return };
    if !fetched(&names) {
        return;
    }
    let fixed = ["compare", LOAD, "--cpus", "4", "--duration", "500ms", "--quiet"];
    success(&[&fixed[..], &["--on", kernel, "--sched", &names.join(",")]].concat());
}

/// Without a network a message says what is needed, and the cache is as it was.
#[test]
fn without_a_network_nothing_is_fetched() {
    let empty = tempfile::tempdir().expect("a folder");
    let cache = empty.path().join("cache");
    let output = Command::new(env!("CARGO_BIN_EXE_fairground"))
        .args(["sched", "fetch", "scx_lavd"])
        .env("FAIRGROUND_CACHE", &cache)
        // Nothing listens there.
        .envs(["https_proxy", "HTTPS_PROXY", "all_proxy"].map(|name| (name, "http://127.0.0.1:9")))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("could not be downloaded") && text.contains("network"), "{text}");
    assert!(!cache.join("schedulers/scx_lavd").exists(), "{text}");
}

#[test]
fn what_is_not_there_is_named() {
    let text = refusal(&["sched", "fetch", "scx_lavdd"]);
    assert!(text.contains("did you mean `scx_lavd`?"), "{text}");
    let empty = tempfile::tempdir().expect("a folder");
    let cache = empty.path().display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_fairground"))
        .args(["run", "hogs:2", "--sched", "scx_lavd"])
        .env("FAIRGROUND_CACHE", cache)
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("run `fairground sched fetch scx_lavd`"), "{text}");
    if fetched(&["scx_bpfland"]) {
        let text = refusal(&["sched", "fetch", "scx_bpfland@9.9.9"]);
        assert!(text.contains("published are") && text.contains("1.1.4"), "{text}");
    }
}

/// A line for each: the version that its entry describes, those that are built, and what is left out.
#[test]
fn the_list_has_the_state_of_each_entry_in_a_line() {
    let cache = tempfile::tempdir().expect("a folder");
    for version in ["1.1.3", "1.1.4"] {
        let built = cache.path().join("schedulers/scx_lavd").join(version);
        std::fs::create_dir_all(&built).expect("a folder");
        let note =
            format!(r#"{{"package":"scx_lavd","version":"{version}","sha256":"","clang":""}}"#);
        std::fs::write(built.join("source.json"), note).expect("a note");
    }
    let list = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fairground"))
            .args(["sched", "list"])
            .args(arguments)
            .env("FAIRGROUND_CACHE", cache.path())
            .env("COLUMNS", "100")
            .output()
            .expect("it runs");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("text")
    };
    let text = list(&[]);
    let published = text.split("Schedulers that others publish").nth(1).expect("the table");
    let rows = published.split_inclusive('\n').filter(|line| !line.starts_with('─')).skip(2);
    let rows: Vec<_> = rows.take(SCHEDULERS.len() + 1).map(str::trim_start).collect();
    assert!(rows.iter().all(|row| row.starts_with("scx_")), "one line each:\n{published}");
    let row = |name: &str| *rows.iter().find(|row| row.starts_with(name)).expect("its row");
    let lavd = row("scx_lavd");
    assert!(lavd.contains(" 1.1.4 1.1.3 ") && lavd.contains("caches equally far"), "{lavd}");
    assert!(row("scx_bpfland").contains("   1.1.4     -  "), "{}", row("scx_bpfland"));
    let json = list(&["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let cells = json["tables"][1]["rows"].as_array().expect("rows").iter();
    let rusty = cells.map(|row| row.to_string()).find(|row| row.contains("scx_rusty"));
    assert!(rusty.is_some_and(|row| row.contains("no user-space balancer")));
}
