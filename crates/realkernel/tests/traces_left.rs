//! A run leaves nothing behind: no process, control group, changed knob or incomplete outcome. Checked at the end,
//! after an error, after SIGKILL of the runner, and after SIGKILL of the program that started it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::rig::{
    Bench, RUNNER, cgroup_tree, cgroups, is_root, kill, library, parent, processes, toml, until,
};
use fairground_realkernel::job::{HOLD_NS_MAX, JOB_FILE, Knob, OUTCOME_FILE};
use fairground_testing::unavailable;

/// A sysctl that every kernel has and that does not affect other tests: the slice of SCHED_RR tasks.
const SYSCTL: &str = "sched_rr_timeslice_ms";

fn sysctl() -> String {
    fs::read_to_string(Path::new("/proc/sys/kernel").join(SYSCTL))
        .expect("the sysctl")
        .trim()
        .to_owned()
}

fn knob(value: &str, at_ns: Option<u64>) -> Knob {
    Knob { name: SYSCTL.to_owned(), value: value.to_owned(), at_ns }
}

/// A long run whose processes have unique names: a hog, and an orphaned grandchild.
fn long_run(name: &str) -> Bench {
    toml(&format!(
        r#"
        [[task]]
        name = "{name}"
        program = [{{ fork = "{name}b" }}, {{ run = "forever" }}]
        [[task]]
        name = "{name}b"
        program = [{{ fork = "{name}c" }}, {{ sleep = "10ms" }}]
        [[task]]
        name = "{name}c"
        program = [{{ sleep = "100s" }}]
        "#
    ))
    .millis(100_000)
}

fn left_of(name: &str) -> usize {
    ["", "b", "c"].iter().map(|suffix| processes(&format!("{name}{suffix}")).len()).sum()
}

/// Waits until all processes but the middle one exist; returns the runner's process number.
fn runner_of(name: &str) -> u32 {
    until("the tasks run", || {
        processes(name).len() == 1 && processes(&format!("{name}c")).len() == 1
    });
    let runner = parent(processes(name)[0]);
    until("the orphan is adopted", || parent(processes(&format!("{name}c"))[0]) == runner);
    runner
}

#[test]
fn no_process_remains_after_the_end() {
    let bench = library("hogs:3").millis(300);
    let outcome = bench.run();
    for task in &outcome.tasks {
        let exe = fs::read_link(format!("/proc/{}/exe", task.tid));
        assert!(exe.is_err() || exe.is_ok_and(|exe| exe != Path::new(RUNNER)), "{task:?}");
    }
    assert!(bench.folder.path().join(OUTCOME_FILE).is_file());
}

#[test]
fn killing_the_runner_kills_its_tasks() {
    let bench = long_run("fg-test-a");
    let mut shell = bench.start_below_shell();
    kill(runner_of("fg-test-a"));
    until("no process is left", || left_of("fg-test-a") == 0);
    assert_eq!(shell.wait().expect("the shell ends").code(), Some(3));
    assert!(!bench.folder.path().join(OUTCOME_FILE).exists());
}

#[test]
fn killing_the_program_kills_runner_and_tasks() {
    let bench = long_run("fg-test-b");
    let mut shell = bench.start_below_shell();
    let runner = runner_of("fg-test-b");
    shell.kill().expect("killed");
    shell.wait().expect("the shell ends");
    until("no process is left", || left_of("fg-test-b") == 0);
    until("the runner is gone", || fs::read_link(format!("/proc/{runner}/exe")).is_err());
}

#[test]
fn the_deadline_ends_everything() {
    let bench = long_run("fg-test-c");
    let error = bench.try_run(Duration::from_millis(1_500)).expect_err("too long");
    assert!(
        error.to_string().starts_with("the run did not end within 1 s and was killed"),
        "{error}"
    );
    until("no process is left", || left_of("fg-test-c") == 0);
}

#[test]
fn control_groups_share_by_weight_and_are_removed() {
    let Some(tree) = cgroup_tree().filter(|_| is_root()) else {
        return unavailable("control-groups", "no root, or no tree with the cpu controller");
    };
    let bench = library("containers:fgheavy=400:2 fglight=100:2").millis(1_500);
    let outcome = bench.run();
    assert!(outcome.notes.iter().all(|note| !note.contains(" times ")), "{:?}", outcome.notes);
    let used = |group: &str| -> u64 {
        let tasks = outcome.tasks.iter().filter(|task| task.name.starts_with(group));
        tasks.map(|task| task.utime_us).sum()
    };
    // Under any load: both groups are always runnable, and one has four times the weight.
    assert!(used("fgheavy") > 2 * used("fglight"), "{outcome:?}");
    assert!(cgroups(&tree).iter().all(|name| !name.contains("fgheavy")), "{:?}", cgroups(&tree));
}

#[test]
fn a_killed_runner_leaves_no_control_group() {
    let Some(tree) = cgroup_tree().filter(|_| is_root()) else {
        return unavailable("control-groups", "no root, or no tree with the cpu controller");
    };
    let bench = library("containers:fgkilled=300:2").millis(100_000);
    let mut shell = bench.start_below_shell();
    let there = || cgroups(&tree).iter().any(|name| name.contains("fgkilled"));
    until("the tasks run", || there() && processes("fgkilled/0").len() == 1);
    kill(parent(processes("fgkilled/0")[0]));
    until("the group is removed", || !there());
    shell.wait().expect("the shell ends");
}

#[test]
fn knobs_are_set_during_the_run_and_restored() {
    if !is_root() {
        return unavailable("root", "the kernel's tunables are root's");
    }
    let before = sysctl();
    let mut bench = long_run("fg-test-d").millis(700);
    bench.job.knobs = vec![knob("40", None), knob("60", Some(300_000_000))];
    let outcome = bench.run();
    let changes: Vec<&str> = outcome.changes.iter().map(|change| change.label.as_str()).collect();
    assert_eq!(changes, ["sched_rr_timeslice_ms=60"]);
    assert!(outcome.changes[0].time_ns - outcome.start_ns >= 300_000_000);
    assert_eq!(sysctl(), before);

    bench.job.duration_ns = 100_000_000_000;
    let mut shell = bench.start_below_shell();
    let runner = runner_of("fg-test-d");
    until("the second change", || sysctl() == "60");
    kill(runner);
    until("what was there before", || sysctl() == before);
    shell.wait().expect("the shell ends");

    bench.job.knobs =
        vec![knob("40", None), Knob { name: "sched_rr_timeslice".into(), ..knob("1", None) }];
    let error = bench.error();
    assert!(error.contains("no feature or tunable `sched_rr_timeslice`"), "{error}");
    assert!(error.contains("did you mean sched_rr_timeslice_ms"), "{error}");
    assert_eq!(sysctl(), before);
}

#[test]
fn jobs_that_cannot_run_are_rejected() {
    let absent =
        toml("[[task]]\nname = \"far\"\ncpus = \"8000\"\nprogram = [{ run = \"1ms\" }]\n").error();
    assert!(
        absent.starts_with("the tasks of `far` are pinned to CPUs that this machine does not have"),
        "{absent}"
    );
    let many = library("sleepers:40000").error();
    assert!(many.contains("the maximum is 30000 (TASKS_AT_START_MAX)"), "{many}");
    let huge =
        toml("[[task]]\nname = \"huge\"\ncount = 10000\nprogram = [{ touch = 1073741824 }]\n")
            .error();
    assert!(huge.contains("of memory for the tasks"), "{huge}");
    let mut wrong = library("hogs:1");
    wrong.job.workload =
        "format = 1\nname = \"x\"\n[[task]]\nname = \"t\"\nprogram = [{ fly = 1 }]\n".to_owned();
    assert!(wrong.error().contains("fly"), "{}", wrong.error());
    wrong.job.duration_ns = 0;
    assert!(wrong.error().contains("the duration is 0 ns"), "{}", wrong.error());
    (wrong.job.duration_ns, wrong.job.hold_ns) = (1, HOLD_NS_MAX + 1);
    assert!(wrong.error().contains("the maximum is 1000000000"), "{}", wrong.error());
    assert!(wrong.folder.path().join(JOB_FILE).is_file());
}
