//! Recordings of this machine. Requires root and tracefs, else the tests are skipped.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fairground_realkernel::job::RecordingJob;
use fairground_realkernel::tracefs::{End, RecordError, Recorded, Recorder, Session};
use fairground_testing::unavailable;
use fairground_trace::{Call, Event, EventKind, Origin, OriginTarget, Policy, TaskId, Trace};

/// Starts a recording, or prints why this machine cannot.
fn recorder(job: &RecordingJob) -> Option<Recorder> {
    match Recorder::start(job) {
        Ok(recorder) => Some(recorder),
        Err(e @ (RecordError::NoTracefs { .. } | RecordError::NotPermitted { .. })) => {
            unavailable("recording", e);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// A load with known events: forks, a pipe, sleeps.
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
    trace_cmd_agrees(&file, recorded.events);
}

/// What no event says: of the tasks that were there, and of those that they forked.
#[test]
fn a_recording_describes_the_machine_and_its_tasks() {
    let Some(recorder) = recorder(&RecordingJob { details: true, ..job() }) else { return };
    load();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.dat");
    let recorded = recorder.stop(&file).expect("a recording");
    trace_cmd_agrees(&file, recorded.events);
    let bytes = fs::read(&file).expect("the recording");
    let trace = fairground_trace::read("trace.dat", &bytes[..]).expect("a recording");
    assert_eq!(trace.loss.unreadable, 0, "{:?}", trace.loss);
    let Origin { target, scheduler, kernel, hz, .. } = &trace.origin;
    assert_eq!(*target, Some(OriginTarget::Kernel));
    assert!(scheduler.is_some() && kernel.is_some() && hz.is_some(), "{:?}", trace.origin);
    let mut children = trace.tasks().iter().filter(|task| task.comm == "cat");
    let child = children.next().expect("the load has one");
    assert!(child.allowed_cpus.is_some() && child.cgroup.is_some(), "{child:?}");
    assert_eq!(child.policy, Some(Policy::Other));
    let known = trace.tasks().iter().filter(|task| task.policy.is_some()).count();
    assert!(known > 1 && known + 1 >= trace.tasks().len() / 2, "{known}");
    let is_charge = |kind: &EventKind| matches!(kind, EventKind::Charge { runtime_ns: 1.., .. });
    let is_tick = |kind: &EventKind| matches!(kind, EventKind::Tick { .. });
    for is in [is_charge, is_tick] {
        assert!(trace.events().any(|event| is(&event.kind)), "{:?}", trace.loss);
    }
    // Timers other than the tick's are left out.
    assert!(trace.loss.skipped * 20 < trace.len() as u64, "{:?}", trace.loss);
}

/// If trace-cmd is installed, its report has a line for each event.
fn trace_cmd_agrees(file: &Path, events: u64) {
    let output = Command::new("trace-cmd").arg("report").arg("-i").arg(file).output();
    let Ok(output) = output else { return println!("trace-cmd is not installed") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let is_event = |line: &str| {
        [": sched_", ": cgroup_", ": hrtimer_"].iter().any(|system| line.contains(system))
    };
    assert_eq!(text.lines().filter(|line| is_event(line)).count() as u64, events);
}

#[test]
fn a_missing_event_is_named() {
    let Some(_) = recorder(&job()) else { return };
    let asked = RecordingJob { events: vec!["sched:no_such_event".to_owned()], ..job() };
    let error = Recorder::start(&asked).expect_err("there is no such event");
    assert!(
        error.to_string().starts_with("this kernel has no event sched:no_such_event"),
        "{error}"
    );
}

/// The content on which both formats of a recording agree: text has µs, rounded to the nearest, and only the names
/// that the kernel saved.
fn common(trace: &Trace) -> Vec<(u64, u32, String)> {
    let named = |task: TaskId| {
        let info = &trace.tasks()[task.index()];
        format!("{}/{:?}/{:?}", info.pid, info.nice, info.cgroup)
    };
    let event = |event: fairground_trace::Event| {
        let kind = match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                format!("{} {prev_state:?} {}", named(prev), named(next))
            }
            EventKind::Waking { task, waker, target_cpu } => {
                format!("waking {} {} {target_cpu}", named(task), named(waker))
            }
            EventKind::Mark { task, label, value } => {
                format!("mark {} {} {value}", named(task), trace.label(label))
            }
            other => format!("{other:?}"),
        };
        ((event.time_ns + 500) / 1000, event.cpu, kind)
    };
    trace.events().map(event).collect()
}

#[test]
fn the_kernels_text_and_the_file_hold_the_same_events() {
    text_and_file_agree(&job());
}

/// The shell and its children wait for each other in pipes, and for their ends.
#[test]
fn calls_are_recorded_by_their_entries_and_exits() {
    let job = RecordingJob { calls: true, kib_per_cpu: 16 << 10, ..job() };
    let Some(trace) = text_and_file_agree(&job) else { return };
    let of = |wanted| {
        let entries = trace
            .events()
            .filter(|e| matches!(e.kind, EventKind::CallEnter { call, .. } if call == wanted));
        entries.count()
    };
    if of(Call::Read) == 0 {
        return unavailable("recording", "this kernel has no events of system calls");
    }
    for call in [Call::Write, Call::Sleep, Call::WaitChild] {
        assert!(of(call) > 0, "{call:?}");
    }
    let mut inside = vec![false; trace.tasks().len()];
    for event in trace.events() {
        match event.kind {
            EventKind::CallEnter { task, .. } => {
                assert!(!std::mem::replace(&mut inside[task.index()], true), "{event:?}");
            }
            EventKind::CallExit { task, .. } => inside[task.index()] = false,
            // A killed task does not leave its call.
            EventKind::Exit { task } => inside[task.index()] = false,
            _ => {}
        }
    }
}

fn text_and_file_agree(job: &RecordingJob) -> Option<Trace> {
    let recorder = recorder(job)?;
    let marker = recorder.marker().expect("trace_marker");
    let mark = format!("C|{}|answers|12\n", std::process::id());
    assert_eq!(nix::unistd::write(marker, mark.as_bytes()), Ok(mark.len()));
    load();
    recorder.pause().expect("a pause");
    let text = fs::read(recorder.folder().join("trace")).expect("the kernel's text");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.dat");
    let recorded = recorder.stop(&file).expect("a recording");
    let bytes = fs::read(&file).expect("the recording");
    let from_text = fairground_trace::read("trace", &text[..]).expect("text");
    let from_file = fairground_trace::read("trace.dat", &bytes[..]).expect("a recording");
    assert_eq!(from_file.loss, from_text.loss);
    assert_eq!(from_file.cpus, from_text.cpus);
    let (wanted, got) = (common(&from_text), common(&from_file));
    assert!(got.len() > 100 && got.iter().any(|(_, _, kind)| kind.contains("answers 12")));
    for (wanted, got) in wanted.iter().zip(&got) {
        assert_eq!(wanted, got);
    }
    assert_eq!(wanted.len(), got.len());
    let names = |trace: &Trace| -> Vec<String> {
        trace.tasks().iter().map(|task| task.comm.clone()).collect()
    };
    for (text, file) in names(&from_text).iter().zip(&names(&from_file)) {
        assert!(text == file || text == "<...>", "{text} and {file}");
    }
    // A change of a priority that is derived from other events has no record.
    let derived = |e: &Event| matches!(e.kind, EventKind::Nice { .. } | EventKind::RtPrio { .. });
    let records = from_file.len() - from_file.events().filter(derived).count()
        + from_file.loss.skipped as usize;
    assert_eq!(records as u64, recorded.events);
    Some(from_file)
}

/// The counts of events and lost events in the file are the kernel's.
fn holds(file: &Path, recorded: Recorded) {
    let bytes = fs::read(file).expect("the recording");
    let trace = fairground_trace::read("trace.dat", &bytes[..]).expect("a recording");
    assert_eq!((trace.loss.unreadable, trace.loss.truncated), (0, false), "{:?}", trace.loss);
    assert_eq!(trace.loss.lost_events, recorded.lost);
    let made_by_the_reader = |e: &fairground_trace::Event| {
        matches!(e.kind, EventKind::Nice { .. } | EventKind::RtPrio { .. } | EventKind::Lost { .. })
    };
    let records = trace.events().filter(|e| !made_by_the_reader(e)).count();
    assert_eq!(records as u64 + trace.loss.skipped, recorded.events);
}

#[test]
fn a_full_buffer_drops_events_and_counts_them() {
    let Some(recorder) = recorder(&RecordingJob { kib_per_cpu: 8, ..job() }) else { return };
    for _ in 0..3 {
        load();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.dat");
    let recorded = recorder.stop(&file).expect("a recording");
    assert!(recorded.lost > 0, "{recorded:?}");
    holds(&file, recorded);
}

fn session(words: &[&str], duration: Option<Duration>) -> Session {
    Session { command: words.iter().map(Into::into).collect(), duration }
}

#[test]
fn a_session_lasts_as_long_as_its_command() {
    let Some(_) = recorder(&job()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Small buffers, so that they are drained during the recording, and overwritten if that is too slow.
    let job = RecordingJob { kib_per_cpu: 64, ..job() };
    let script = "for i in 1 2 3 4 5 6 7 8 9; do seq 3000 | cat | wc -l >&2; done; exit 3";
    let (recorder, end) =
        session(&["sh", "-c", script], None).record(&job, folder.path(), None).expect("a session");
    let End::Command(status) = end else { panic!("{end:?}") };
    assert_eq!(status.code(), Some(3));
    let file = folder.path().join("trace.dat");
    let recorded = recorder.stop(&file).expect("a recording");
    assert!(recorded.events > 200, "{recorded:?}");
    holds(&file, recorded);
}

#[test]
fn a_session_ends_its_command_when_its_time_is_over() {
    let Some(_) = recorder(&job()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let short = Some(Duration::from_millis(100));
    let (recorder, end) =
        session(&["sleep", "1000"], short).record(&job(), folder.path(), None).expect("a session");
    let End::Duration(Some(status)) = end else { panic!("{end:?}") };
    assert_eq!(status.to_string(), "signal: 15 (SIGTERM)");
    drop(recorder);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left");
    let error = session(&["no-such-program"], None).record(&job(), folder.path(), None);
    let said = error.expect_err("there is no such program").to_string();
    assert!(said.starts_with("no-such-program: No such file"), "{said}");
}

#[test]
fn instances_of_dead_processes_are_removed() {
    let Some(first) = recorder(&job()) else { return };
    let mut child = Command::new("true").spawn().expect("a process");
    child.wait().expect("its end");
    let left =
        first.folder().parent().map(|folder| folder.join(format!("fairground-{}-1-0", child.id())));
    let left = left.expect("a folder of instances");
    fs::create_dir(&left).expect("an instance");
    drop(recorder(&job()));
    assert!(!left.exists(), "it is removed");
    assert!(first.folder().is_dir(), "that of a living process is not");
}
