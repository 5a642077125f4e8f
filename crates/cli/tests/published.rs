//! Published schedulers by name: fetched, built, and run unmodified in the simulated machine and in a virtual one. They
//! need the network, curl and clang.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use fairground_testing::{thrice, unavailable};

use crate::support::registry::Registry;
use crate::support::{Files, bootable, fairground, refusal, success};

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
        let text = refusal(&["sched", "fetch", "scx_lavdd"]);
        assert!(text.contains("did you mean `scx_lavd`?"), "{text}");
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

/// Versions whose headers, arena library or variables differ from those that the entries describe, with the newest kernel
/// that they are for. What such a version lacks is left out and named.
#[test]
fn old_versions_run_as_far_as_they_go() {
    const OLD: [(&str, &str); 8] = [
        ("scx_bpfland@1.0.17", "7.2"),
        ("scx_cosmos@1.0.5", "7.2"),
        ("scx_flash@1.0.10", "7.2"),
        ("scx_lavd@1.0.19", "7.2"),
        ("scx_lavd@1.1.0", "7.2"),
        ("scx_layered@1.0.10", "7.2"),
        ("scx_p2dq@1.1.0", "7.2"),
        ("scx_rusty@1.0.5", "6.17"),
    ];
    if !fetched(&OLD.map(|(sched, _)| sched)) {
        return;
    }
    for (sched, kernel) in OLD {
        let fixed = ["run", LOAD, "--cpus", "4", "--duration", "300ms", "--quiet", "--check"];
        let of_it = ["--kernel-abi", kernel, "--sched", sched];
        let text = success(&[&fixed[..], &of_it].concat());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = [
            "which its entry describes for another version",
            "what its loader would set",
            "its loader may run",
        ];
        assert!(told.iter().any(|words| text.contains(words)), "{sched}: {text}");
    }
}

/// Tasks exist when such a scheduler is attached. As the very first thing that runs, tasks of one CPU beside forks would
/// wait under this one for good.
#[test]
fn bound_tasks_beside_forks_run_from_the_start() {
    if !fetched(&["scx_p2dq"]) {
        return;
    }
    let files = Files::new();
    let load = files.write("bound.toml", BOUND_BESIDE_FORKS);
    let run = ["run", &load, "--cpus", "4", "--duration", "1s", "--quiet", "--sched", "scx_p2dq"];
    let text = success(&run);
    assert!(!text.contains("never ran"), "{text}");
    let text = success(&[&run[..], &["--lead-in", "0s"]].concat());
    assert!(text.contains("4 tasks never ran"), "{text}");
}

const BOUND_BESIDE_FORKS: &str = r#"format = 1
name = "bound-beside-forks"
duration = "1s"

[[task]]
name = "bound"
count = 4
cpus = "1"
program = [{ run = "forever" }]

[[task]]
name = "forker"
count = 4
program = [{ loop = [{ fork = "child" }, "wait"] }]

[[task]]
name = "child"
program = [{ run = "200us" }]
"#;

/// A kernel of 6.12 has half of the flags that their loaders set now: the loaders leave the others out, too.
#[test]
fn flags_that_an_older_kernel_lacks_are_left_out() {
    let sched = ["scx_beerland", "scx_bpfland", "scx_tickless"];
    if !fetched(&sched) {
        return;
    }
    for sched in sched {
        let fixed = ["run", "hogs:2", "--cpus", "2", "--duration", "50ms", "--kernel-abi", "6.12"];
        let output = fairground(&[&fixed[..], &["--quiet", "--sched", sched]].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("`flags` of the `sched_ext_ops`"), "{sched}: {text}");
    }
}

/// Files below a folder, with their permissions.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let known = entry.metadata().expect("its metadata");
        found.push((entry.path(), known.permissions().mode()));
        if known.is_dir() {
            found.extend(files(&entry.path()));
        }
    }
    found
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_package_is_built_whether_or_not_an_entry_describes_it() {
    let registry = Registry::new();
    for name in ["scx_bpfland", "scx_unheard_of"] {
        registry.publish_scheduler(name, "");
    }
    let output = registry.fetch(&["scx_bpfland", "scx_unheard_of"]);
    assert!(output.status.success(), "{}", said(&output));
    let note = "no entry of the catalogue describes what the loader of scx_unheard_of sets";
    assert!(said(&output).contains(note), "{}", said(&output));
    let files = files(&registry.cache());
    let objects = files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "o"));
    assert_eq!(objects.count(), 2, "{files:?}");
    assert!(files.iter().all(|(_, mode)| mode & 0o7000 == 0), "a setuid file: {files:?}");
    // One that fails stops no other.
    let output = registry.fetch(&["scx_gone", "scx_bpfland"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("1 of 2 were not fetched: scx_gone"), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("scx_bpfland.bpf.o\n"));
}

#[test]
fn what_a_package_names_outside_of_its_folder_is_refused() {
    let registry = Registry::new();
    registry.publish_scheduler("scx_lavd", "ln -sf /dev/zero build.rs");
    registry.publish_scheduler("scx_flash", "sed -i 's,\"1.0.0\",\"x/../../../..\",' Cargo.lock");
    registry.publish_scheduler("scx_rusty", "");
    registry.pack(
        "scx_rusty",
        "mkdir links; ln -s \"$PWD/../outside\" links/scx_rusty-1.0.0\n\
         tar -cf ../a.tar -C links scx_rusty-1.0.0\n\
         tar -rf ../a.tar scx_rusty-1.0.0/build.rs scx_rusty-1.0.0/main.bpf.c\n\
         gzip -c ../a.tar > ../web/scx_rusty-1.0.0.crate",
    );
    for (name, message) in [
        ("scx_lavd", "the link `scx_lavd-1.0.0/build.rs` leads out of its folder"),
        ("scx_flash", "`x/../../../..` is no version"),
        ("scx_rusty", "the link `scx_rusty-1.0.0` leads out of its folder"),
    ] {
        let output = registry.fetch(&[name]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains(message), "{name}: {}", said(&output));
        assert_eq!(files(&registry.path("outside")), [], "{name}");
        assert_eq!(std::fs::read_dir(registry.path("in")).expect("a folder").count(), 1, "{name}");
        let cache = registry.cache().join("schedulers");
        assert!(!cache.join(name).exists(), "{name}: nothing of it is kept");
        let left = std::fs::read_dir(&cache).expect("a folder").flatten();
        assert!(left.into_iter().all(|entry| entry.file_name() == "shared"), "{name}");
    }
}

/// The source includes a header of the scx project, as published ones do.
#[test]
fn a_source_finds_the_headers_that_were_fetched() {
    let registry = Registry::new();
    let source = registry.path("own.bpf.c");
    std::fs::write(&source, "#include <scx/common.bpf.h>\nu32 x = 1;\n").expect("a source");
    let build = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fairground"));
        command.args(["sched", "build"]).arg(&source).env("FAIRGROUND_CACHE", registry.cache());
        command.output().expect("it runs")
    };
    let output = build();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("run `fairground sched fetch scx_cargo`"), "{}", said(&output));
    let output = registry.fetch(&["scx_cargo"]);
    assert!(output.status.success(), "{}", said(&output));
    let output = build();
    assert!(output.status.success(), "{}", said(&output));
    assert!(source.with_extension("o").is_file());
}
