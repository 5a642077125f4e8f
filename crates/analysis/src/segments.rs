//! A recording that is analysed while it is read, so that its events need not be kept.

use std::fs::File;

use crate::pass::Pass;
use crate::{Analysis, Options};
use fairground_trace::{ReadError, Segment, TakeSegments, Trace, read_file, read_file_in_segments};

/// A recording and its analysis.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// The recording; its events may be missing.
    pub trace: Trace,
    /// The number of its events.
    pub events: u64,
    /// The figures, the same as those of [`Analysis::of`].
    pub analysis: Analysis,
}

impl Analysis {
    /// Reads a recording from a file ([`read_file`]) and analyses it meanwhile. The events of most `perf.data` are
    /// not kept.
    ///
    /// # Errors
    /// As [`fairground_trace::read`].
    pub fn of_file(name: &str, file: File, options: &Options) -> Result<Analysed, ReadError> {
        let again = file.try_clone().ok();
        // Within a window the pass ends early, and intervals ask for the groups of tasks as it goes.
        let is_whole = options.window.is_none() && options.interval_ns.is_none();
        let Some(again) = again.filter(|_| is_whole) else {
            return Ok(analysed(read_file(name, file)?, options));
        };
        let mut stream = SegmentAnalysis::new(options);
        let trace = read_file_in_segments(name, file, &mut stream)?;
        match stream.progress {
            Progress::NotBegun => Ok(analysed(trace, options)),
            Progress::Begun { pass, events, .. } => {
                let analysis = Analysis::of_stream(&trace, *pass);
                Ok(Analysed { trace, events, analysis })
            }
            Progress::TooLate => Ok(analysed(read_file(name, again)?, options)),
        }
    }

    fn of_stream(trace: &Trace, mut pass: Pass) -> Analysis {
        pass.end_window(trace.end_ns);
        Analysis::from_stream(trace, pass.finish())
    }
}

fn analysed(trace: Trace, options: &Options) -> Analysed {
    let analysis = Analysis::of(&trace, options);
    Analysed { events: trace.len() as u64, analysis, trace }
}

/// Analyses the parts of a recording as they are read.
struct SegmentAnalysis<'o> {
    options: &'o Options,
    progress: Progress,
}

/// How far the analysis has come.
enum Progress {
    /// No part came: the trace that is read has its events.
    NotBegun,
    Begun {
        trace: Box<Trace>,
        events: u64,
        pass: Box<Pass>,
    },
    /// A nice value came after the weight of its task had been used: the whole trace must be seen at once.
    TooLate,
}

impl<'o> SegmentAnalysis<'o> {
    fn new(options: &'o Options) -> Self {
        Self { options, progress: Progress::NotBegun }
    }
}

impl TakeSegments for SegmentAnalysis<'_> {
    fn begin(&mut self, header: &Trace, has_wakeups: bool) {
        let mut trace = Box::new(header.clone());
        trace.end_ns = u64::MAX;
        let mut pass = Box::new(Pass::new(&trace, self.options, &[0], 1));
        pass.set_has_wakeups(has_wakeups);
        self.progress = Progress::Begun { trace, events: 0, pass };
    }

    fn take(&mut self, mut part: Segment) -> Segment {
        if let Progress::Begun { trace, events, pass } = &mut self.progress {
            *events += part.events().len() as u64;
            if take_segment(pass, trace, &mut part).is_none() {
                self.progress = Progress::TooLate;
            }
        }
        part.clear();
        part
    }
}

/// Takes a part over; `None` when a nice value comes too late.
fn take_segment(pass: &mut Pass, trace: &mut Trace, part: &mut Segment) -> Option<()> {
    for (task, nice) in &part.nices {
        pass.set_first_nice(*task, *nice)?;
    }
    for info in part.tasks.drain(..) {
        trace.add_task(info);
    }
    pass.add_tasks(trace, trace.start_ns);
    part.events().for_each(|event| pass.take(trace, &event));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState};
    use proptest::prelude::*;

    const TASKS: u32 = 6;
    const CPUS: u32 = 3;

    /// What happens next: the time since the last event, the kind, and what it speaks of.
    type Step = (u64, u32, u32, u32, u32);

    fn event(time_ns: u64, (_, kind, a, b, cpu): Step) -> Event {
        let (one, other) = (TaskId(a), TaskId(b));
        let kind = match kind {
            0..4 => EventKind::Switch {
                prev: one,
                prev_state: [TaskState::Sleeping, TaskState::Runnable, TaskState::Dead]
                    [b as usize % 3],
                next: other,
            },
            4..6 => EventKind::Waking { task: one, waker: other, target_cpu: b % CPUS },
            6 => EventKind::Wakeup { task: one, target_cpu: b % CPUS },
            7 => EventKind::Migrate { task: one, from_cpu: 0, to_cpu: b % CPUS },
            8 => EventKind::Fork { parent: one, child: other },
            9 => EventKind::Exit { task: one },
            10 => EventKind::Lost { count: 3 },
            _ => EventKind::Nice { task: one, nice: b as i8 },
        };
        Event { time_ns, cpu, insns: 0, kind }
    }

    fn trace(steps: &[Step], nices: &[Option<i8>]) -> Trace {
        let mut trace = Trace::new(CPUS);
        for (id, nice) in nices.iter().enumerate() {
            let info = TaskInfo::new(id as u32 + 10, &format!("t{}/{id}", id % 2));
            trace.add_task(TaskInfo { nice: *nice, ..info });
        }
        (trace.start_ns, trace.end_ns) = (95, 100);
        for step in steps {
            trace.end_ns += step.0;
            trace.push(event(trace.end_ns, *step));
        }
        trace
    }

    /// The tasks that an event names.
    fn named(kind: EventKind) -> [TaskId; 2] {
        match kind {
            EventKind::Switch { prev: a, next: b, .. }
            | EventKind::Waking { task: a, waker: b, .. }
            | EventKind::Fork { parent: a, child: b } => [a, b],
            EventKind::Wakeup { task, .. }
            | EventKind::Migrate { task, .. }
            | EventKind::Exit { task }
            | EventKind::Nice { task, .. } => [task, task],
            _ => [TaskId::IDLE; 2],
        }
    }

    /// Parts of so many events; each task comes with the part that names it or a later one first. The nice value of
    /// `late` comes only with the part after that.
    fn parts(trace: &Trace, size: usize, late: Option<TaskId>) -> Vec<Segment> {
        let events: Vec<Event> = trace.events().collect();
        let mut known = 1;
        let mut parts: Vec<Segment> = Vec::new();
        let mut untold = None;
        for events in events.chunks(size) {
            let mut part = Segment::default();
            events.iter().for_each(|event| part.push(*event));
            part.nices.extend(untold.take());
            let most = events.iter().flat_map(|event| named(event.kind)).max();
            while known <= most.map_or(0, TaskId::index) {
                let mut info = trace.tasks()[known].clone();
                if late == Some(TaskId(known as u32)) {
                    untold = info.nice.take().map(|nice| (TaskId(known as u32), nice));
                }
                part.tasks.push(info);
                known += 1;
            }
            parts.push(part);
        }
        let tasks = trace.tasks()[known..].to_vec();
        let mut last = Segment::default();
        (last.tasks, last.nices) = (tasks, untold.into_iter().collect());
        parts.push(last);
        parts
    }

    fn followed(trace: &Trace, parts: Vec<Segment>) -> Option<Analysis> {
        let mut header = Trace::new(trace.cpus);
        (header.start_ns, header.end_ns) = (trace.start_ns, u64::MAX);
        let has_wakeups =
            trace.events().any(|event| matches!(event.kind, EventKind::Wakeup { .. }));
        let options = Options::default();
        let mut stream = SegmentAnalysis::new(&options);
        // What was begun before is void.
        stream.begin(&header, !has_wakeups);
        parts.iter().take(2).for_each(|part| drop(stream.take(part.clone())));
        stream.begin(&header, has_wakeups);
        parts.into_iter().for_each(|part| drop(stream.take(part)));
        match stream.progress {
            Progress::Begun { events, pass, .. } => {
                assert_eq!(events, trace.len() as u64);
                Some(Analysis::of_stream(trace, *pass))
            }
            Progress::TooLate => None,
            Progress::NotBegun => panic!("it has begun"),
        }
    }

    proptest! {
        #[test]
        fn parts_give_the_figures_of_the_whole(
            steps in prop::collection::vec((0..50_u64, 0..12_u32, 0..=TASKS, 0..=TASKS, 0..CPUS), 1..200),
            nices in prop::collection::vec(prop::option::of(-20..20_i8), TASKS as usize),
            size in 1..60_usize,
            late in prop::option::of(1..=TASKS),
        ) {
            let trace = trace(&steps, &nices);
            let late = late.map(TaskId);
            let found = followed(&trace, parts(&trace, size, late));
            prop_assert!(found.is_some() || late.is_some());
            if let Some(found) = found {
                prop_assert_eq!(found, Analysis::of(&trace, &Options::default()));
            }
        }
    }

    #[test]
    fn a_nice_value_may_come_before_the_task_waits() {
        // Task 2 wakes the others, and is known better when it is woken.
        let steps = [(5, 4, 1, 2, 0), (5, 0, 0, 1, 0), (5, 4, 2, 1, 1), (5, 0, 0, 2, 1)];
        let trace = trace(&steps, &[Some(0), Some(5)]);
        let whole = Analysis::of(&trace, &Options::default());
        let late = |size| followed(&trace, parts(&trace, size, Some(TaskId(2))));
        assert_eq!(late(2), Some(whole));
        assert_eq!(late(3), None, "it waits already");
    }
}
