//! A user's own scheduler, as docs/tutorial/own-scheduler.md shows it: one source file in a folder of his.

use crate::support::{Files, bootable, fairground, refusal, success};

/// The source in the page.
fn source() -> &'static str {
    let page = include_str!("../../../docs/tutorial/own-scheduler.md");
    let (_, rest) = page.split_once("```c\n").expect("the page has a source");
    rest.split_once("```").expect("which ends").0
}

/// The percentages of a metric of a group, in each column of a comparison as text.
fn percentages(text: &str, group: &str, metric: &str) -> Vec<f64> {
    let is_row = |line: &&str| line.split_whitespace().take(2).eq([group, metric]);
    let line = text.lines().find(is_row);
    let line = line.unwrap_or_else(|| panic!("no {metric} of {group} in:\n{text}"));
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn one_file_is_enough() {
    assert!(source().lines().count() < 100, "{} lines", source().lines().count());
    let files = Files::new();
    let his = files.write("his.bpf.c", source());
    let both = format!("{his},fifo");
    let text = success(&["compare", "hogs:1:0:5", "--cpus", "1", "--sched", &both, "--quiet"]);
    // CPU shares at nice 0 and nice 5: by weight under the one, equal under the other.
    let share = |group| percentages(&text, group, "cpu_share");
    let (first, second) = (share("hog-nice0"), share("hog-nice5"));
    assert!((first[0] - 75.0).abs() < 1.0 && (second[0] - 25.0).abs() < 1.0, "{text}");
    assert!((first[1] - 50.0).abs() < 1.0 && (second[1] - 50.0).abs() < 1.0, "{text}");
    let shown = success(&["sched", "show", "--cost", &his, "--format", "markdown"]);
    let table = "| slice\\_ns | 5000000 | ns |";
    assert!(shown.contains(table) && shown.contains("| context switch |"), "{shown}");
}

/// A slice that gets shorter while a task runs leaves more of it than a slice has: the source counts nothing then. The
/// obvious subtraction would wrap and send the task to the end of the queue for good, and the result says so.
#[test]
fn a_tunable_changes_while_tasks_run() {
    let files = Files::new();
    let his = files.write("his.bpf.c", source());
    let wraps = source().replace("left < slice_ns ? slice_ns - left : 0", "slice_ns - left");
    assert_ne!(wraps, source());
    let wraps = files.write("wraps.bpf.c", &wraps);
    let run = |file: &str, more: &[&str]| {
        let shorter = ["run", "sleepers:2 + hogs:2", "--cpus", "1", "--at", "1s:slice_ns=1000000"];
        let rest = ["--duration", "4s", "--quiet", "--sched", file];
        fairground(&[&shorter[..], &rest, more].concat())
    };
    let good = run(&his, &["--check"]);
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    assert!(!String::from_utf8_lossy(&good.stdout).contains("to the end of the run"));
    let bad = run(&wraps, &[]);
    let text = String::from_utf8_lossy(&bad.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default();
    for part in ["waited to the end of the run: ", "in dispatch queue 0x0"] {
        assert!(first.contains(part), "`{part}` is missing from:\n{text}");
    }
    assert_eq!(bad.status.code(), Some(0), "a warning");
    assert_eq!(run(&wraps, &["--check"]).status.code(), Some(1), "a failed check");
}

#[test]
fn what_does_not_compile_is_said() {
    let files = Files::new();
    let broken = files.write("broken.bpf.c", source().replace("queue_vtime;", "queue_vtime"));
    let said = refusal(&["run", "hogs:2", "--sched", &broken]);
    for part in ["broken.bpf.c:", "expected ';'", "did not compile"] {
        assert!(said.contains(part), "`{part}` is missing from:\n{said}");
    }
    let missing = refusal(&["run", "hogs:2", "--sched", "./nowhere/his.bpf.c"]);
    assert!(missing.contains("his.bpf.c") && missing.contains("No such file"), "{missing}");
}

#[test]
fn a_built_object_stays() {
    let files = Files::new();
    let his = files.write("his.bpf.c", source());
    let printed = success(&["sched", "build", &his]);
    let object = files.path("his.bpf.o");
    assert_eq!(printed.trim(), object.display().to_string());
    success(&["run", "hogs:2", "--duration", "100ms", "--sched", &object.display().to_string()]);
}

/// An object contains neither the path of its source nor that of the temporary headers, so that a sweep that runs
/// twice has the same scheduler both times.
#[test]
fn the_same_source_gives_the_same_object_anywhere() {
    let built = |files: &Files| {
        success(&["sched", "build", &files.write("his.bpf.c", source())]);
        std::fs::read(files.path("his.bpf.o")).expect("the object")
    };
    let (one, two) = (Files::new(), Files::new());
    assert!(built(&one) == built(&two), "the objects differ");
}

/// Puts tasks into a queue that does not exist once it has been attached for a few wake-ups: those of a guest's own
/// tasks, before any load.
const EJECTED: &str = r#"
#include "scx.bpf.h"
char _license[] SEC("license") = "GPL";
u64 nr_enqueued;
void BPF_STRUCT_OPS(stray_enqueue, struct task_struct *p, u64 enq_flags)
{
    u64 queue = __sync_fetch_and_add(&nr_enqueued, 1) < 8 ? SCX_DSQ_GLOBAL : 77;
    scx_bpf_dsq_insert(p, queue, 1000000, enq_flags);
}
SCX_OPS_DEFINE(stray_ops, .enqueue = (void *)stray_enqueue, .name = "stray");
"#;

#[test]
fn figures_of_the_kernels_own_scheduler_do_not_stand_under_another_name() {
    let Some(target) = bootable() else { return };
    let files = Files::new();
    let stray = files.write("stray.bpf.c", EJECTED);
    let asked = ["hogs:8", "--cpus", "4", "--duration", "500ms", "--on", target, "--sched"];
    let run = |command: &str, sched: &str| {
        let output = fairground(&[&[command], &asked[..], &[sched]].concat());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(43), "{text}");
        let first = text.lines().next().expect("a verdict").to_owned();
        assert!(first.contains("the kernel ejected the scheduler before the load began"), "{text}");
        text
    };
    assert!(!run("run", &stray).contains("cpu_share"));
    let compared = run("compare", &format!("{stray},fifo"));
    assert_eq!(percentages(&compared, "hog", "cpu_share").len(), 1, "{compared}");
}

/// The programs of an object that a kernel takes, and the verifier's message on one that it does not.
#[test]
fn a_kernels_verifier_is_asked() {
    let Some(on) = bootable() else { return };
    let files = Files::new();
    let his = files.write("his.bpf.c", source());
    let verify = format!("--verify={on}");
    let shown = success(&["sched", "show", &his, &verify, "--quiet", "--format", "csv"]);
    let row = shown.lines().find(|line| line.contains("verified") && line.contains("his_enqueue"));
    let row = row.unwrap_or_else(|| panic!("no `his_enqueue` in:\n{shown}"));
    assert!(row.split(',').any(|cell| cell.parse().is_ok_and(|insns: u32| insns > 5)), "{row}");

    let reads = "u64 pid = *(volatile u64 *)&p->pid; if (!pid) return;";
    let bad = source().replacen("u64 enq_flags)\n{", &format!("u64 enq_flags)\n{{ {reads}"), 1);
    assert_ne!(bad, source());
    let bad = files.write("bad.bpf.c", &bad);
    let said = refusal(&["sched", "show", &bad, &verify, "--quiet"]);
    for part in ["the kernel's verifier rejects the program `his_", "access beyond the end"] {
        assert!(said.contains(part), "`{part}` is missing from:\n{said}");
    }
    assert!(!said.contains("console"), "the message says it all:\n{said}");
}
