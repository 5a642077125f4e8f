//! Recorded runs: the recording contains marks and changes besides the kernel's events.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::rig::{is_root, library};
use fairground_realkernel::job::{Knob, RecordingJob, TRACE_FILE};
use fairground_testing::unavailable;
use fairground_trace::EventKind;

#[test]
fn marks_and_changes_are_in_the_recording() {
    if !is_root() {
        return unavailable("recording", "recording takes root");
    }
    let value = fs::read_to_string("/proc/sys/kernel/sched_rr_timeslice_ms").expect("the sysctl");
    let mut bench = library("slice:4,report=100ms").millis(1_000);
    bench.job.recording = Some(RecordingJob::default());
    bench.job.knobs = vec![Knob {
        name: "sched_rr_timeslice_ms".to_owned(),
        value: value.trim().to_owned(),
        at_ns: Some(200_000_000),
    }];
    let outcome = bench.run();
    assert_eq!(outcome.not_recorded, None);
    assert!(outcome.marks.is_empty(), "they stand in the recording");
    // Instances are called after their process; that of a run has ended.
    let instances = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    for name in instances.filter_map(|entry| entry.file_name().into_string().ok()) {
        let pid = name.strip_prefix("fairground-").and_then(|rest| rest.split('-').next());
        let is_alive = |pid| fs::exists(format!("/proc/{pid}")).unwrap_or(true);
        assert!(pid.is_none_or(is_alive), "{name} is left behind");
    }

    let bytes = fs::read(bench.folder.path().join(TRACE_FILE)).expect("a recording");
    let trace = fairground_trace::read(TRACE_FILE, &bytes[..]).expect("a whole recording");
    let names: BTreeMap<u32, &str> =
        outcome.tasks.iter().map(|task| (task.tid, task.name.as_str())).collect();
    let mut answers = BTreeMap::<u32, Vec<u64>>::new();
    let (mut params, mut ran) = (Vec::new(), BTreeSet::new());
    for event in trace.events() {
        match event.kind {
            EventKind::Mark { task, label, value } if trace.label(label) == "answer" => {
                answers.entry(trace.tasks()[task.0 as usize].pid).or_default().push(value);
            }
            EventKind::Param { label } => params.push((event.time_ns, trace.label(label))),
            EventKind::Switch { next, .. } => {
                ran.extend(names.get(&trace.tasks()[next.0 as usize].pid).copied());
            }
            _ => {}
        }
    }
    assert_eq!(answers.len(), 4, "{answers:?}");
    for (tid, values) in &answers {
        assert!(names[tid].starts_with("worker/"), "{}", names[tid]);
        assert!(values.iter().enumerate().all(|(nth, value)| nth as u64 == *value), "{values:?}");
    }
    assert_eq!(ran.len(), outcome.tasks.len(), "each was seen on a CPU: {ran:?}");
    let label = format!("sched_rr_timeslice_ms={}", value.trim());
    assert_eq!(params.len(), 1);
    let (time_ns, found) = params[0];
    assert_eq!((found, &outcome.changes[0].label), (label.as_str(), &label));
    // One clock: the mark was written after the change and before the end of the run.
    let made_ns = outcome.changes[0].time_ns;
    assert!((made_ns..=outcome.end_ns).contains(&time_ns), "{made_ns}, {time_ns}, {outcome:?}");
}
