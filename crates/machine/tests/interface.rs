//! Holds `docs/reference/sched-ext.md` against the table of the interface (`FAIRGROUND_DOCS=write` writes its tables),
//! and what objects find of it in each release.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use fairground_machine::{Engine, Feature, KernelAbi, Policy, RunResult, interface_parts};

use crate::support::{MS, free_machine, object, run, simulate, task, texts, workload};

const FROM: &str = "<!-- interface: written by a test from the table of the interface -->\n";
const TO: &str = "<!-- end of the interface -->\n";

/// The columns that several names may share.
fn row(feature: &Feature) -> String {
    let gone = feature.gone.map_or(String::new(), |gone| gone.to_string());
    format!("{} | {gone} | {}", feature.since, feature.state)
}

/// The tables: names of one part that have everything else in common share a row.
fn tables() -> String {
    let mut text = String::new();
    for part in interface_parts() {
        let _ = writeln!(text, "\n### {}\n", part.title);
        let mut rows: Vec<(String, String)> = Vec::new();
        for (feature, value) in &part.features {
            let value = value.map_or(String::new(), |value| format!(" = {value:#x}"));
            let (name, rest) = (format!("`{}{value}`", feature.name), row(feature));
            match rows.iter_mut().find(|(_, known)| *known == rest) {
                Some((names, _)) => *names += &format!(", {name}"),
                None => rows.push((name, rest)),
            }
        }
        text.push_str("| name | since | gone with | in the machine |\n|---|---|---|---|\n");
        rows.iter().for_each(|(names, rest)| text += &format!("| {names} | {rest} |\n"));
    }
    text
}

#[test]
fn the_page_of_the_interface_follows_from_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sched-ext.md");
    let page = fs::read_to_string(&path).expect("docs/reference/sched-ext.md");
    let (before, rest) = page.split_once(FROM).expect("the mark before the tables");
    let (_, after) = rest.split_once(TO).expect("the mark behind the tables");
    let right = format!("{before}{FROM}{}\n{TO}{after}", tables());
    if page == right {
        return;
    }
    if env::var("FAIRGROUND_DOCS").is_ok_and(|word| word == "write") {
        return fs::write(&path, right).expect("the page can be written");
    }
    panic!(
        "docs/reference/sched-ext.md is out of date: FAIRGROUND_DOCS=write cargo test -p fairground-machine interface"
    );
}

fn load(release: &str) -> Policy {
    let abi: KernelAbi = release.parse().expect("a release");
    Policy::load_for(&object("releases"), Engine::Jit, abi).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a short task under the kernel of a release.
fn run_once(release: &str, settings: &[(&str, &str)]) -> RunResult {
    let one = workload(vec![task("one", 1, vec![run(1_000)])]);
    simulate(&free_machine(1), &load(release), settings, &one, MS)
}

/// Which branches an object takes: `bpf_ksym_exists`, `bpf_core_field_exists`, `bpf_core_enum_value_exists`, values of
/// enumerations, `LINUX_KERNEL_VERSION`.
#[test]
fn an_object_takes_the_branches_of_its_kernel() {
    let branches = |release| texts(&run_once(release, &[]).log).join("; ");
    assert_eq!(
        branches("6.12"),
        "6.12 peek 0 nodes 0 cid 0; bandwidth 0 immed 0 args 0; enabled 300"
    );
    assert_eq!(
        branches("6.17"),
        "6.17 peek 0 nodes 1 cid 0; bandwidth 1 immed 0 args 0; enabled 300"
    );
    assert_eq!(
        branches("6.19"),
        "6.19 peek 1 nodes 1 cid 0; bandwidth 1 immed 0 args 1; enabled 300"
    );
    assert_eq!(
        branches("7.2"),
        "7.2 peek 1 nodes 1 cid 1; bandwidth 1 immed 1 args 1; enabled 400"
    );
}

/// The name, the release in which it came, and what to do.
#[test]
fn what_a_kernel_lacks_is_told_where_it_is_reached() {
    let settings = [("peeks", "on")];
    let old = run_once("6.18", &settings);
    let message = &old.exit.message;
    for part in ["`scx_bpf_dsq_peek___always`", "came with Linux 6.19", "--kernel-abi 6.19"] {
        assert!(message.contains(part), "{message}");
    }
    let new = run_once("6.19", &settings);
    assert!(!new.exit.kind.is_error(), "{}", new.exit);
    let obstacles = load("7.2").obstacles();
    assert!(obstacles.is_empty(), "{obstacles:?}");
}
