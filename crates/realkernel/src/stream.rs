//! A run on a real kernel as an event stream, as of a simulated run.
//!
//! A recording truncates the names of tasks to 15 bytes and contains every task of the machine. This module restores
//! the names of the workload's tasks, groups the other tasks under [`OTHERS`], and makes the clock start with the
//! recording. A run without a recording gives a stream of the tasks' marks only.

use std::collections::BTreeMap;

use fairground_trace::{Event, EventKind, TaskInfo, Trace};

use crate::Outcome;

/// The group of tasks outside of the workload: kernel threads, the runner.
pub const OTHERS: &str = "other";

/// A recording of a run, and the run's window in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The events. Time 0 is the recording's first event, or the start of the run.
    pub trace: Trace,
    /// Start and end of the run, ns of the trace's clock.
    pub window: (u64, u64),
}

impl Stream {
    /// Joins the recording of a run with its outcome.
    pub fn of(outcome: &Outcome, recording: &Trace) -> Stream {
        let first_ns = recording.get(0).map_or(outcome.start_ns, |event| event.time_ns);
        let origin_ns = first_ns.min(outcome.start_ns);
        let window =
            (outcome.start_ns - origin_ns, outcome.end_ns.max(outcome.start_ns) - origin_ns);
        let mut trace = Trace::new(recording.cpus.max(outcome.kernel.cpus));
        (trace.loss, trace.origin) = (recording.loss.clone(), recording.origin.clone());
        trace.start_ns = 0;
        trace.end_ns = window.1;
        let names: BTreeMap<u32, &str> =
            outcome.tasks.iter().map(|task| (task.tid, task.name.as_str())).collect();
        for task in recording.tasks().iter().skip(1) {
            let mut task = task.clone();
            task.comm = match names.get(&task.pid) {
                Some(name) => (*name).to_owned(),
                None => format!("{OTHERS}/{}", task.comm),
            };
            trace.add_task(task);
        }
        for cgroup in recording.cgroups() {
            trace.add_cgroup(cgroup.clone());
        }
        for label in recording.labels() {
            trace.intern(label);
        }
        trace.reserve(recording.len());
        for event in recording.events() {
            let time_ns = event.time_ns.saturating_sub(origin_ns);
            trace.push(Event { time_ns, ..event });
            trace.end_ns = trace.end_ns.max(time_ns);
        }
        if recording.is_empty() {
            add_marks(&mut trace, outcome, origin_ns);
        }
        Stream { trace, window }
    }
}

/// The tasks' marks. Their CPU is unknown: all are on CPU 0.
fn add_marks(trace: &mut Trace, outcome: &Outcome, origin_ns: u64) {
    if outcome.marks.is_empty() {
        return;
    }
    let mut tasks = BTreeMap::new();
    for task in &outcome.tasks {
        let id = trace.add_task(TaskInfo::new(task.tid, &task.name));
        tasks.insert(task.tid, id);
    }
    trace.reserve(outcome.marks.len());
    for mark in &outcome.marks {
        let Some(&task) = tasks.get(&mark.tid) else { continue };
        let label = trace.intern(&mark.label);
        let kind = EventKind::Mark { task, label, value: mark.value };
        let time_ns = mark.time_ns.saturating_sub(origin_ns);
        trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
        trace.end_ns = trace.end_ns.max(time_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{KernelInfo, Mark, TaskUsage};
    use fairground_trace::{TaskId, TaskState};

    fn outcome() -> Outcome {
        let hog = TaskUsage { name: "worker/3".to_owned(), tid: 7, ..TaskUsage::default() };
        Outcome {
            kernel: KernelInfo { cpus: 2, ..KernelInfo::default() },
            start_ns: 1_500,
            end_ns: 9_000,
            tasks: vec![hog],
            marks: Vec::new(),
            changes: Vec::new(),
            exit: None,
            programs: Vec::new(),
            charge: None,
            loader: None,
            not_recorded: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn tasks_get_their_names_back_and_the_clock_starts_with_the_recording() {
        let mut recording = Trace::new(1);
        let worker = recording.add_task(TaskInfo::new(7, "worker"));
        let thread = recording.add_task(TaskInfo::new(9, "kworker/0:1"));
        for (time_ns, prev, next) in [(1_000, TaskId::IDLE, thread), (2_000, thread, worker)] {
            let kind = EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
            recording.push(Event { time_ns, cpu: 0, insns: 0, kind });
        }
        let stream = Stream::of(&outcome(), &recording);
        let names: Vec<_> = stream.trace.tasks().iter().map(|task| task.comm.as_str()).collect();
        assert_eq!(names, ["swapper", "worker/3", "other/kworker/0:1"]);
        assert_eq!(stream.window, (500, 8_000));
        let times: Vec<_> = stream.trace.events().map(|event| event.time_ns).collect();
        assert_eq!((times, stream.trace.end_ns, stream.trace.cpus), (vec![0, 1_000], 8_000, 2));
    }

    #[test]
    fn a_run_without_a_recording_gives_what_its_tasks_said() {
        let mark = |time_ns, tid| Mark { time_ns, tid, label: "round".to_owned(), value: time_ns };
        let output =
            Outcome { marks: vec![mark(2_500, 7), mark(4_000, 7), mark(5_000, 8)], ..outcome() };
        let stream = Stream::of(&output, &Trace::new(2));
        let marks: Vec<_> = stream
            .trace
            .events()
            .map(|event| match event.kind {
                EventKind::Mark { task, label, value } => {
                    (event.time_ns, task.index(), stream.trace.label(label).to_owned(), value)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let round = "round".to_owned();
        assert_eq!(marks, [(1_000, 1, round.clone(), 2_500), (2_500, 1, round, 4_000)]);
        assert_eq!(stream.trace.tasks()[1].comm, "worker/3");
        let mut recording = Trace::new(1);
        let worker = recording.add_task(TaskInfo::new(7, "worker"));
        let kind = EventKind::Exit { task: worker };
        recording.push(Event { time_ns: 2_000, cpu: 0, insns: 0, kind });
        assert_eq!(
            Stream::of(&output, &recording).trace.len(),
            1,
            "a recording has the marks itself"
        );
    }

    #[test]
    fn a_run_that_started_before_the_first_event_keeps_its_window() {
        let stream = Stream::of(&outcome(), &Trace::new(2));
        assert_eq!((stream.window, stream.trace.end_ns), ((0, 7_500), 7_500));
    }
}
