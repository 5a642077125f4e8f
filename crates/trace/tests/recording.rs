//! The repository's recording of a real machine is read without loss, with the figures that perf prints of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use fairground_trace::{EventKind, TaskId, Trace, read, write_ftrace};
use flate2::read::MultiGzDecoder;

fn recordings() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments/recordings")
}

fn recording(name: &str) -> Trace {
    let file = File::open(recordings().join(format!("{name}.perf-sched.txt.gz"))).unwrap();
    read(name, BufReader::new(MultiGzDecoder::new(file))).unwrap()
}

fn whole() -> Trace {
    recording("mixed-2cpu-whole")
}

#[test]
fn the_recording_is_read_without_loss() {
    let trace = whole();
    let loss = &trace.loss;
    assert_eq!(
        (loss.unreadable, loss.lost_events, loss.clock_jumps, loss.broken_switches),
        (0, 0, 0, 0),
        "{:?}",
        loss.first
    );
    assert_eq!((loss.pid_reuses, loss.truncated, &loss.first), (0, false, &None));
    // 19,316 lines.
    let is_charge = |kind: EventKind| matches!(kind, EventKind::Charge { .. });
    let charges = trace.events().filter(|event| is_charge(event.kind)).count();
    assert_eq!((trace.len(), charges, loss.skipped), (19_316, 6_775, 0));
    assert_eq!(
        (trace.cpus, trace.start_ns, trace.end_ns),
        (2, 2_022_238_105_151, 2_022_736_149_516)
    );
}

#[test]
fn missing_switches_are_counted() {
    let trace = recording("mixed-2cpu");
    // The number of "context switch bugs" that `perf sched latency` finds.
    assert_eq!(trace.loss.broken_switches, 8);
    assert_eq!((trace.loss.unreadable, trace.loss.clock_jumps, trace.loss.skipped), (0, 0, 0));
}

#[test]
fn nice_values_come_from_priorities() {
    let trace = whole();
    let nice = |comm: &str| trace.tasks().iter().find(|t| t.comm == comm).unwrap().nice;
    assert_eq!(nice("md5sum"), Some(0));
    assert_eq!(nice("sha256sum"), Some(5));
    assert_eq!(nice("gzip"), Some(-5));
    assert_eq!(nice("migration/0"), None);
}

/// Switches and run time of each task as `perf sched timehist` counts them (see the README beside the recording).
#[test]
fn switches_and_run_time_are_perfs() {
    let trace = whole();
    let mut last_switch_ns = BTreeMap::new();
    let mut ours: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for event in trace.events() {
        let EventKind::Switch { prev, .. } = event.kind else { continue };
        let since = last_switch_ns.insert(event.cpu, event.time_ns);
        if prev != TaskId::IDLE {
            let entry = ours.entry(trace.tasks()[prev.index()].pid).or_default();
            entry.0 += 1;
            entry.1 += since.map_or(0, |since| event.time_ns - since);
        }
    }
    let figures =
        std::fs::read_to_string(recordings().join("mixed-2cpu-whole.perf-figures.tsv")).unwrap();
    let mut tasks = 0;
    for row in figures.lines().skip(1) {
        let row: Vec<&str> = row.split('\t').collect();
        let (switches, run_ns) = ours[&row[0].parse::<u32>().unwrap()];
        let (whole, fraction) = row[3].split_once('.').unwrap();
        let perf_us = whole.parse::<u64>().unwrap() * 1000 + fraction.parse::<u64>().unwrap();
        assert_eq!(switches.to_string(), row[2], "switches of {}", row[1]);
        assert!((run_ns / 1000).abs_diff(perf_us) <= 1, "{}: {run_ns} ns, {perf_us} us", row[1]);
        tasks += 1;
    }
    assert_eq!(tasks, ours.len());
}

#[test]
fn the_recording_survives_ftrace_text() {
    let trace = whole();
    let mut text = Vec::new();
    write_ftrace(&trace, &mut text).unwrap();
    let back = read("written", &text[..]).unwrap();
    assert_eq!(back.loss, fairground_trace::Loss::default());
    assert_eq!(back.digest(), trace.digest());
}
