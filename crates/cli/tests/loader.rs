//! `--loader`: a scheduler's own loader in the guest of a virtual machine. The program itself stands in for one
//! (`fairground load`).

use crate::support::{Files, bootable, fairground, refusal};

/// The program under test, as a loader of the built-in scheduler `cfs`.
fn load(arguments: &str) -> String {
    let binary = std::env::var("FAIRGROUND_RELEASE_BINARY")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_fairground").to_owned());
    format!("'{binary}' load cfs {arguments}")
}

/// Exit code, stdout and stderr of a run of a second with a loader; `None` where no kernel can be booted.
fn run_with(loader: &str) -> Option<(Option<i32>, String, String)> {
    let target = bootable()?;
    let workload = ["run", "hogs:2", "--cpus", "2", "--duration", "1s", "--on", target];
    let output = fairground(&[&workload[..], &["--wide", "--loader", loader]].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Some((output.status.code(), text(output.stdout), text(output.stderr)))
}

#[test]
fn a_loader_attaches_its_scheduler_and_is_stopped_after_the_run() {
    let Some((code, table, said)) = run_with(&load("--stats 1s")) else { return };
    assert_eq!(code, Some(0), "{table}\n{said}");
    assert!(table.contains("under fairground (its loader) on vm:newest"), "{table}");
    assert!(table.contains("exit code 0 after SIGINT"), "{table}");
    assert!(table.contains("its loader printed: fairground: cfs is in charge"), "{table}");
    let attached = table.lines().find(|line| line.contains("attached"));
    assert!(attached.is_some_and(|line| line.contains("cfs")), "{table}");
}

#[test]
fn a_loader_that_leaves_during_the_run_heads_the_result() {
    let Some((code, table, said)) = run_with(&load("--for 500ms")) else { return };
    assert_eq!(code, Some(41), "{table}\n{said}");
    assert!(table.contains("the scheduler left: its loader ended: exit code 0"), "{table}");
}

#[test]
fn a_loader_that_attaches_nothing_is_an_error_with_its_last_lines() {
    let Some((code, table, said)) = run_with("/bin/echo 'no scheduler' here") else { return };
    assert_eq!((code, table.as_str()), (Some(2), ""), "{said}");
    for words in ["echo (its loader)", "ended before the kernel had enabled", "no scheduler here"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_loader_needs_a_guest_and_is_the_only_scheduler_of_a_run() {
    let says = |arguments: &[&str], words: &[&str]| {
        let said = refusal(&[&["run", "hogs:2", "--loader", "/bin/echo"], arguments].concat());
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
    };
    says(&[], &["virtual machines only", "`vm:newest` to --on"]);
    says(&["--on", "host"], &["virtual machines only", "--on host --sched kernel"]);
    says(
        &["--on", "vm:7.2", "--sched", "cfs"],
        &["two schedulers", "leave out --sched", "compare"],
    );
    says(&["--on", "vm:7.2", "--set", "slice_us=1"], &["slice_us", "the loader's own option"]);
}

#[test]
fn what_is_no_loader_is_named() {
    let files = Files::new();
    let text = files.write("notes.txt", "no program");
    let refused = |loader: &str| refusal(&["run", "hogs:2", "--on", "vm:7.2", "--loader", loader]);
    let said = refused(&text);
    assert!(said.contains("notes.txt is not executable"), "{said}");
    let said = refused("./gone -v");
    assert!(said.contains("there is no program `./gone`"), "{said}");
}
