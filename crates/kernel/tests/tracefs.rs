//! Recording this machine: needs root and tracefs; says so and stops where they are missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use fairground_kernel::job::RecordingJob;
use fairground_kernel::tracefs::{RecordError, Recorder};

/// Starts a recording, or says why this machine cannot.
fn recorder(job: &RecordingJob) -> Option<Recorder> {
    match Recorder::start(job) {
        Ok(recorder) => Some(recorder),
        Err(e @ (RecordError::NoTracefs { .. } | RecordError::NotPermitted { .. })) => {
            println!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// A load whose events are known by name: forks, a pipe, sleeps.
fn load() {
    let script = "for i in 1 2 3 4 5 6; do sleep 0.01; echo $i | cat; done | wc -l";
    let output = Command::new("sh").args(["-c", script]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "6");
}

fn job() -> RecordingJob {
    RecordingJob { kib_per_cpu: 4 << 10, ..RecordingJob::default() }
}

#[test]
fn a_recording_of_this_machine() {
    let Some(recorder) = recorder(&job()) else { return };
    load();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.dat");
    let instance = recorder.folder();
    assert!(instance.is_dir());
    let recorded = recorder.stop(&file).expect("a recording");
    assert!(recorded.events > 100, "{recorded:?}");
    assert_eq!(recorded.lost, 0);
    assert!(!instance.exists(), "the instance is gone");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1, "nothing but the recording: {names:?}");
    if let Ok(path) = std::env::var("FAIRGROUND_KEEP_RECORDING") {
        fs::copy(&file, Path::new(&path)).expect("a copy");
    }
}

#[test]
fn an_event_that_is_not_there_is_named() {
    let Some(_) = recorder(&job()) else { return };
    let asked = RecordingJob { events: vec!["sched:no_such_event".to_owned()], ..job() };
    let error = Recorder::start(&asked).expect_err("there is no such event");
    assert!(
        error.to_string().starts_with("this kernel has no event sched:no_such_event"),
        "{error}"
    );
}
