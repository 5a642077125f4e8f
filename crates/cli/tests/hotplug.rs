//! CPUs that a run takes offline and brings back.

use crate::support::{fairground, refusal, success};

/// Eight hogs on four CPUs, one of which is away for a half of the run: the others are busy, and its time is not idle.
#[test]
fn a_run_goes_on_without_a_cpu() {
    for scheduler in ["fifo", "o1", "cfs", "cfs_2_6_23", "eevdf", "rfs", "sd"] {
        let printed = success(&[
            "run",
            "hogs:8",
            "--cpus",
            "4",
            "--duration",
            "2s",
            "--sched",
            scheduler,
            "--check",
            "--quiet",
            "--at",
            "500ms:cpu.3.online=off",
            "--at",
            "1500ms:cpu.3.online=on",
            "--format",
            "json",
        ]);
        let document: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let verdicts = document["verdicts"].as_array();
        assert!(verdicts.is_none_or(Vec::is_empty), "{scheduler}: {verdicts:?}");
        let tables = document["tables"].as_array().expect("tables");
        let machine = tables.iter().find(|table| table["id"] == "machine").expect("a table");
        let rows = machine["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row[0] == "idle_time.share").expect("a metric");
        let idle = row[1]["value"].as_f64().expect("a number");
        assert!(idle < 2.0, "{scheduler}: {idle} % idle");
    }
}

/// A scheduler without the callbacks leaves; the exit code and the statement say so, and what a loader would do.
#[test]
fn a_scheduler_without_the_callbacks_leaves() {
    let scheduler = format!("{}/tests/schedulers/forgets.bpf.c", env!("CARGO_MANIFEST_DIR"));
    let output = fairground(&[
        "run",
        "hogs:2",
        "--cpus",
        "2",
        "--duration",
        "1s",
        "--quiet",
        "--at",
        "100ms:cpu.1.online=off",
        "--sched",
        &scheduler,
    ]);
    let printed = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(41), "{printed}");
    let first = printed.lines().next().unwrap_or_default();
    assert!(first.contains("cpu 1 going offline, exiting scheduler"), "{first}");
    assert!(printed.contains("a loader attaches the scheduler again"), "{printed}");
}

#[test]
fn cpu_0_stays() {
    let said = refusal(&["run", "hogs:2", "--cpus", "2", "--at", "100ms:cpu.0.online=off"]);
    assert!(said.contains("CPU 0 cannot go offline, as on x86"), "{said}");
    let said = refusal(&["run", "hogs:2", "--cpus", "2", "--at", "100ms:cpu.2.online=off"]);
    assert!(said.contains("has no CPU `2`"), "{said}");
}
