//! Same inputs, same bytes: in two processes, and in a debug and a release build.

use std::path::Path;

use crate::support::{release, run, success};

/// Between them: a scheduler with and one without nice values, marks, signals, random draws, tunables in mid-run.
const RUNS: [&[&str]; 3] = [
    &[
        "run",
        "slice:16",
        "--sched",
        "cfs@2.6.27-sle11",
        "--duration",
        "4s",
        "--at",
        "2s:NEW_FAIR_SLEEPERS=off",
        "--format",
        "json",
        "--all",
    ],
    &[
        "compare",
        "hogs:3,nice=5 + sleepers:5,run=50us..300us,sleep=1ms",
        "--sched",
        "fifo,rfs",
        "--duration",
        "1s",
        "--format",
        "json",
    ],
    &["run", "hogs:3", "--sched", "cfs", "--duration", "300ms", "--trace", "-"],
];

#[test]
fn two_processes_print_the_same() {
    for arguments in RUNS {
        let first = success(arguments);
        assert!(first.len() > 1_000, "{arguments:?} printed only {} bytes", first.len());
        assert!(
            first == success(arguments),
            "{arguments:?} printed something else the second time"
        );
    }
}

#[test]
fn debug_and_release_builds_print_the_same() {
    let Some(release) = release() else { return };
    for arguments in RUNS {
        let output = run(Path::new(&release), arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            success(arguments).as_bytes() == output.stdout,
            "{arguments:?} differs between the builds"
        );
    }
}
