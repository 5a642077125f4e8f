//! `doctor` on the machine of the tests: its statements are compared with the facts.

use std::path::Path;
use std::process::Command;

use crate::support::{bootable, fairground, success};

/// The program with another `PATH` and an empty cache: code and stdout.
fn with_path(path: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let cache = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_fairground"))
        .args(arguments)
        .env_clear()
        .env("PATH", path)
        .env("FAIRGROUND_CACHE", cache.path())
        .output()
        .expect("the binary starts");
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn what_the_tests_themselves_need_is_ready() {
    // They were built with that compiler, and simulate.
    let said = success(&["doctor", "simulate", "build"]);
    assert!(said.contains("fifo.bpf.c") && said.contains("cfs, cfs_2_6_23, eevdf"), "{said}");
    assert!(!said.contains("missing"), "{said}");
}

#[test]
fn an_ability_that_is_asked_for_and_missing_is_a_negative_verdict() {
    let (code, said) = with_path("/nowhere", &["doctor", "build", "--quiet"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no clang 16 or newer"), "{said}");
    let (code, said) = with_path("/nowhere", &["doctor", "simulate", "--quiet"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fairground(&["doctor", "fly"]).status.code(), Some(2));
}

#[test]
fn without_a_question_it_says_everything_and_is_content() {
    let (code, said) = with_path("/nowhere", &["doctor", "--format", "json", "--quiet"]);
    assert_eq!(code, Some(0), "{said}");
    let document: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let rows = document["tables"][0]["rows"].as_array().expect("rows");
    let verdict =
        |ability: &str| rows.iter().find(|r| r[0] == ability).expect("it is there")[1].clone();
    assert_eq!(verdict("simulate"), "ready");
    assert_eq!(verdict("vm"), "missing");
    assert_eq!(verdict("build"), "missing");
    let has_sched_ext = Path::new("/sys/kernel/sched_ext").is_dir();
    assert!(has_sched_ext || verdict("load") == "missing", "{said}");
}

#[test]
fn a_virtual_machine_is_ready_where_the_tests_boot_one() {
    let code = fairground(&["doctor", "vm", "vm-load", "--quiet"]).status.code();
    assert_eq!(code, Some(if bootable().is_some() { 0 } else { 1 }));
}
