//! Every benchmark of the library makes progress as real processes, all in one run: on this machine's kernel, and on
//! one in a deterministic virtual machine. The latter test is skipped if no kernel has been fetched.

use std::collections::BTreeMap;

use crate::rig::{RUNNER, library};
use fairground_realkernel::Outcome;
use fairground_realkernel::packages::Cache;
use fairground_realkernel::vm::{VmConfig, run_in_vm};
use fairground_testing::unavailable;
use fairground_workload::from_spec;

/// Each benchmark with small parameters, and whether its progress is counted in marks.
const BENCHMARKS: [(&str, bool); 15] = [
    ("slice:2,report=50ms", true),
    ("loop:2", false),
    ("fairtest:1", false),
    ("massive_intr:3,start=5ms", true),
    ("lat_ctx:2", true),
    ("hackbench:1,fds=3,loops=3", true),
    ("hackbench:1,fds=3,loops=3,over=sockets", true),
    ("pipe-chain:dd", true),
    ("netperf-stream,hold=0s", true),
    ("volano:1,users=3,connection=0s,mm=0s", true),
    ("aim7:2,hold=0s", true),
    ("dbench:2", true),
    ("schbench:2", true),
    ("audio:2,buffer=3", true),
    ("drag", true),
];

/// All benchmarks in one workload.
fn all() -> String {
    BENCHMARKS.map(|(spec, _)| spec).join(" + ")
}

/// The tasks of the joined workload are in the order of its parts.
fn each_made_headway(outcome: &Outcome) {
    let joined = from_spec(&all()).expect("good specifications");
    let mut groups = joined.tasks.iter().map(|task| task.name.as_str());
    let mut part_of = BTreeMap::new();
    for (part, (spec, _)) in BENCHMARKS.iter().enumerate() {
        let tasks = from_spec(spec).expect("a good specification").tasks.len();
        part_of.extend(groups.by_ref().take(tasks).map(|name| (name, part)));
    }
    let mut part_of_tid = BTreeMap::new();
    let mut ops = [0; BENCHMARKS.len()];
    let mut busy = [0; BENCHMARKS.len()];
    for task in &outcome.tasks {
        // `worker/3` belongs to the group `worker`, unless a group has the whole name.
        let group = task.name.rsplit_once('/').map_or(task.name.as_str(), |(group, _)| group);
        let part = part_of.get(task.name.as_str()).or(part_of.get(group));
        let part = *part.unwrap_or_else(|| panic!("{} is of no benchmark", task.name));
        part_of_tid.insert(task.tid, part);
        ops[part] += task.ops;
        busy[part] += task.utime_us + task.stime_us + task.run_ns.unwrap_or(0) / 1_000;
    }
    let mut marks = [0; BENCHMARKS.len()];
    for mark in &outcome.marks {
        marks[part_of_tid[&mark.tid]] += 1;
    }
    for (part, (spec, has_marks)) in BENCHMARKS.iter().enumerate() {
        let figures = (ops[part], busy[part], marks[part]);
        assert!(busy[part] > 0, "{spec} had no CPU: {figures:?}");
        assert!(!has_marks || (marks[part] > 0 && ops[part] > 0), "{spec} stands: {figures:?}");
    }
}

#[test]
fn every_benchmark_runs_on_this_kernel() {
    each_made_headway(&library(&all()).millis(1_500).run());
}

#[test]
fn every_benchmark_runs_in_one_guest() {
    let bench = library(&all()).millis(1_500);
    for kernel in ["7.2", "7.2-rt"] {
        let found = Cache::open()
            .and_then(|cache| Ok((cache.cached_qemu()?, cache.cached_kernel(kernel)?)));
        let (qemu, found) = match found {
            Ok(found) => found,
            Err(error) => {
                unavailable("kernel", error);
                continue;
            }
        };
        let mut config = VmConfig::new(qemu, found, 2);
        config.program = Some(RUNNER.into());
        let folder = tempfile::tempdir().expect("a folder");
        let outcome = run_in_vm(&bench.job, None, &config, folder.path(), &mut |_| true);
        each_made_headway(&outcome.unwrap_or_else(|error| panic!("{kernel}: {error}")));
    }
}
