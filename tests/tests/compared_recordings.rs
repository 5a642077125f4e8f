//! The cause that the comparison of two recordings names, for changes of a workload whose cause is known.

use crate::rig::{Bench, MS, bench};
use fairground_analysis::difference::{
    Cause, CauseKind, Detail, Difference, Recorded, TimeShare, Work,
};
use fairground_trace::Trace;

/// A build of twenty files, one after the other.
fn build(file: &str, others: &str) -> String {
    format!(
        r#"
format = 1
name = "build"
duration = "3s"

[[task]]
name = "make"
program = [{{ loop = [{{ fork = "cc1" }}, "wait"], times = 20 }}]

[[task]]
name = "cc1"
program = [{file}]
{others}"#
    )
}

const FILE: &str = r#"{ run = "50ms" }"#;

/// A task that computes `run` in each `period`.
fn ticker(period: &str, run: &str) -> String {
    format!(
        r#"
[[timer]]
name = "tick"
period = "{period}"

[[task]]
name = "ticker"
program = [{{ loop = [{{ timer = "tick" }}, {{ run = "{run}" }}] }}]
"#
    )
}

fn recorded(bench: Bench, workload: &str) -> Trace {
    let mut run = bench.run_toml(workload);
    run.until(3_000 * MS);
    run.machine.trace().clone()
}

fn one_cpu(workload: &str) -> Trace {
    recorded(bench("eevdf").cpus(1), workload)
}

fn compared(before: &Trace, after: &Trace) -> Difference {
    Difference::of(&[Recorded::from(before)], &[Recorded::from(after)], Detail::Group)
}

fn first(difference: &Difference) -> (CauseKind, &str, &Cause) {
    let cause = difference.causes.first().expect("a cause");
    (cause.kind, &difference.names[cause.role], cause)
}

fn victim<'d>(difference: &'d Difference, cause: &Cause) -> &'d str {
    &difference.names[cause.victims[0].0]
}

#[test]
fn a_new_task_that_wakes_up_often_takes_the_cpu() {
    let before = one_cpu(&build(FILE, ""));
    for scheduler in ["eevdf", "cfs", "rfs", "o1"] {
        let alone = recorded(bench(scheduler).cpus(1), &build(FILE, ""));
        let beside = build(FILE, &ticker("1ms", "300us"));
        let difference = compared(&alone, &recorded(bench(scheduler).cpus(1), &beside));
        let (kind, name, cause) = first(&difference);
        assert_eq!((kind, name), (CauseKind::TakesCpu, "ticker"), "{scheduler}");
        assert_eq!(victim(&difference, cause), "cc1", "{scheduler}");
        let lost_ms = cause.lost.difference() / 1e6;
        assert!((250.0..600.0).contains(&lost_ms), "{scheduler}: {lost_ms}");
    }
    // 10 times as often as before: grown, not new.
    let seldom = one_cpu(&build(FILE, &ticker("10ms", "300us")));
    let often = one_cpu(&build(FILE, &ticker("1ms", "300us")));
    let difference = compared(&seldom, &often);
    let (kind, name, cause) = first(&difference);
    assert_eq!((kind, name), (CauseKind::TakesCpu, "ticker"));
    let ticker = difference.role(cause.role).expect("it is compared");
    assert!(!ticker.is_new() && ticker.wakeups.after > 5.0 * ticker.wakeups.before);
    // Without it, time is gained and none lost.
    let difference = compared(&often, &before);
    assert!(difference.causes.iter().all(|cause| cause.lost.difference() < 2e6));
}

#[test]
fn more_own_cpu_time_is_told_from_waiting() {
    let (before, after) = (one_cpu(&build(FILE, "")), one_cpu(&build(r#"{ run = "70ms" }"#, "")));
    let difference = compared(&before, &after);
    let (kind, name, cause) = first(&difference);
    assert_eq!((kind, name), (CauseKind::Runs, "cc1"));
    assert!((cause.lost.difference() / 1e6 - 400.0).abs() < 5.0, "{cause:?}");
    // `make` lost as much, asleep for `cc1`: that is the same time.
    let make = difference.roles.iter().find(|role| difference.names[role.role] == "make");
    let make = make.expect("it is compared");
    assert!((make.part(TimeShare::SleepsFor(cause.role)).difference() / 1e6 - 400.0).abs() < 5.0);
    assert!(difference.causes.iter().all(|cause| cause.kind != CauseKind::IsWaitedFor));
}

#[test]
fn a_longer_sleep_in_the_work_is_the_task_s_own() {
    let slow = r#"{ run = "25ms" }, { sleep = "20ms" }, { run = "25ms" }"#;
    let difference = compared(&one_cpu(&build(FILE, "")), &one_cpu(&build(slow, "")));
    let (kind, name, cause) = first(&difference);
    assert_eq!((kind, name), (CauseKind::Sleeps, "cc1"));
    assert!((cause.lost.difference() / 1e6 - 400.0).abs() < 20.0, "{cause:?}");
}

/// Workers that share a lock with a keeper, which sleeps while it holds it.
fn locked(hold: &str) -> String {
    format!(
        r#"
format = 1
name = "locked"
duration = "3s"

[locks.table]
kind = "mutex"

[[task]]
name = "worker"
count = 2
program = [{{ loop = [{{ run = "200us" }}, {{ lock = "table" }}, {{ run = "50us" }}, {{ unlock = "table" }}], times = 3000 }}]

[[task]]
name = "keeper"
program = [{{ loop = [{{ sleep = "2ms" }}, {{ lock = "table" }}, {{ sleep = "{hold}" }}, {{ unlock = "table" }}] }}]
"#
    )
}

#[test]
fn a_lock_that_is_held_for_longer_is_blamed_on_its_holder() {
    let run = |hold: &str| recorded(bench("eevdf").cpus(2), &locked(hold));
    let difference = compared(&run("50us"), &run("1500us"));
    let (kind, name, cause) = first(&difference);
    assert_eq!((kind, name), (CauseKind::IsWaitedFor, "keeper"));
    assert_eq!(victim(&difference, cause), "worker");
}

#[test]
fn another_scheduler_is_a_condition_and_no_task_is_new() {
    let workload = "slice:4";
    let run = |scheduler: &'static str| {
        let mut run = bench(scheduler).cpus(1).hz(250).run(workload);
        run.until(2_000 * MS);
        run.machine.trace().clone()
    };
    // Under fifo a hog keeps the CPU until it blocks or its slice ends.
    let difference = compared(&run("eevdf"), &run("fifo"));
    let (kind, _, cause) = first(&difference);
    assert_eq!(kind, CauseKind::TakesCpu);
    assert!(difference.roles.iter().all(|role| !role.is_one_sided()));
    assert!(cause.lost.difference() > 0.0);
}

/// Two more hogs on a CPU: each of the four gets a quarter instead of a half.
#[test]
fn more_of_the_same_wait_for_each_other() {
    let run = |workload: &str| {
        let mut run = bench("eevdf").cpus(1).run(workload);
        run.until(2_000 * MS);
        run.machine.trace().clone()
    };
    let difference = compared(&run("hogs:2"), &run("hogs:4"));
    let (kind, name, cause) = first(&difference);
    assert_eq!((kind, name, victim(&difference, cause)), (CauseKind::TakesCpu, "hog", "hog"));
    let hog = difference.role(cause.role).expect("it is compared");
    assert_eq!((hog.work, hog.tasks.before, hog.tasks.after), (Some(Work::CpuTime), 2.0, 4.0));
}
