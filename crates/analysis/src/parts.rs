//! A recording that is analysed while it is still put in order, on another thread: nobody keeps its events.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle, scope};

use crate::analysis::group_tasks;
use crate::scan::Scan;
use crate::services::{Change, Services};
use crate::{Analysis, Options};
use fairground_trace::{Part, ReadError, TakeParts, TaskId, Trace, read_file, read_file_in_parts};

/// Parts that wait for the analysis.
const PARTS_MAX: usize = 2;

/// What was made of a recording.
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
    /// Reads a recording from a file ([`read_file`]) and analyses it meanwhile. Of most `perf.data` nobody keeps the events then.
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
        let (trace, scanned) = scope(|scope| {
            let mut following = Following { scope, options, events: 0, scan: None };
            let trace = read_file_in_parts(name, file, &mut following)?;
            Ok((trace, following.finish()))
        })?;
        match scanned {
            Followed::Whole { events, scan } => {
                let analysis = Analysis::from_parts(&trace, *scan);
                Ok(Analysed { trace, events, analysis })
            }
            Followed::NotBegun => Ok(analysed(trace, options)),
            Followed::TooLate => Ok(analysed(read_file(name, again)?, options)),
        }
    }

    fn from_parts(trace: &Trace, mut scan: Scan) -> Analysis {
        scan.end_window(trace.end_ns);
        let mut scanned = scan.finish();
        let (names, groups) = group_tasks(trace);
        for (task, group) in scanned.tasks.iter_mut().zip(groups) {
            task.group = group;
        }
        scanned.irregularities.loss = trace.loss.clone();
        Analysis::from_scan(trace, &names, scanned)
    }
}

fn analysed(trace: Trace, options: &Options) -> Analysed {
    let analysis = Analysis::of(&trace, options);
    Analysed { events: trace.len() as u64, analysis, trace }
}

/// How it ended.
enum Followed {
    Whole {
        events: u64,
        scan: Box<Scan>,
    },
    /// The trace has its events.
    NotBegun,
    /// Something came too late: the whole trace must be seen at once.
    TooLate,
}

/// The end of a pass on another thread, before it is joined.
struct Following<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    options: &'env Options,
    events: u64,
    scan: Option<Passing<'scope>>,
}

struct Passing<'scope> {
    to: SyncSender<Part>,
    back: Receiver<Part>,
    pass: ScopedJoinHandle<'scope, Option<Box<Scan>>>,
}

impl Following<'_, '_> {
    fn finish(self) -> Followed {
        let Some(Passing { to, pass, .. }) = self.scan else { return Followed::NotBegun };
        drop(to);
        match pass.join() {
            Ok(Some(scan)) => Followed::Whole { events: self.events, scan },
            Ok(None) => Followed::TooLate,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl TakeParts for Following<'_, '_> {
    fn begin(&mut self, header: &Trace, has_wakeups: bool) {
        let (to, parts) = sync_channel(PARTS_MAX);
        let (give_back, back) = sync_channel(PARTS_MAX + 2);
        let (mut header, options) = (header.clone(), self.options);
        header.end_ns = u64::MAX;
        // A pass that was begun before ends without its parts.
        self.events = 0;
        let pass =
            self.scope.spawn(move || follow(header, has_wakeups, options, &parts, &give_back));
        self.scan = Some(Passing { to, back, pass });
    }

    fn take(&mut self, part: Part) -> Part {
        let Some(Passing { to, back, .. }) = &self.scan else { return part };
        self.events += part.events.len() as u64;
        // A pass that gave up wants no more, and says so at the end.
        let _ = to.send(part);
        back.try_recv().unwrap_or_default()
    }
}

/// The pass over the parts, before its end; `None` when it cannot be made this way. Another thread keeps the services in the fluid schedules meanwhile,
/// a part behind.
fn follow(
    mut trace: Trace,
    has_wakeups: bool,
    options: &Options,
    parts: &Receiver<Part>,
    back: &SyncSender<Part>,
) -> Option<Box<Scan>> {
    let mut scan = Scan::new(&trace, options, &[0], 1);
    if has_wakeups {
        scan.has_wakeups();
    }
    let services = scan.hand_over_services();
    let services = scope(|scope| {
        let (to, changes) = sync_channel(PARTS_MAX);
        let (give_back, empty) = sync_channel(PARTS_MAX + 2);
        let keeping = scope.spawn(move || keep(services, &changes, &give_back));
        for mut part in parts {
            pass(&mut scan, &mut trace, &mut part)?;
            // Whoever fills them has enough.
            let _ = back.try_send(part);
            to.send(scan.take_changes(empty.try_recv().unwrap_or_default())).ok()?;
        }
        drop(to);
        keeping.join().ok()
    })?;
    scan.take_services_back(services);
    Some(Box::new(scan))
}

/// Takes a part over, and empties it; `None` when something comes too late.
fn pass(scan: &mut Scan, trace: &mut Trace, part: &mut Part) -> Option<()> {
    for (task, nice) in &part.nices {
        scan.has_nice(*task, *nice)?;
    }
    for info in part.tasks.drain(..) {
        trace.add_task(info);
    }
    scan.set_up_tasks(trace, &vec![0; trace.tasks().len()], trace.start_ns);
    part.events.iter().for_each(|event| scan.take(trace, event));
    part.clear();
    Some(())
}

/// Keeps the services as long as there are changes.
fn keep(
    mut services: Services,
    changes: &Receiver<Vec<Change>>,
    give_back: &SyncSender<Vec<Change>>,
) -> Services {
    for mut changes in changes {
        changes.iter().for_each(|change| services.apply(*change));
        changes.clear();
        let _ = give_back.try_send(changes);
    }
    services
}

impl Scan {
    /// A task that was entered before had this nice value from its first appearance on. `None` when that comes too late.
    fn has_nice(&mut self, id: TaskId, nice: i8) -> Option<()> {
        let weight = self.weight_of(nice);
        let task = self.tasks.get_mut(id.index());
        let task = task.filter(|task| !(task.was_queued || task.nice_known))?;
        (task.weight, task.nice_known) = (weight, true);
        self.change(self.window_time(self.now_ns), Change::Weigh { task: id.0, weight });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{Event, EventKind, TaskInfo, TaskState};
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

    /// Parts of so many events; each task comes with the part that names it or a later one first. `late` is told its nice value only
    /// with the part behind that.
    fn parts(trace: &Trace, size: usize, late: Option<TaskId>) -> Vec<Part> {
        let events: Vec<Event> = trace.events().collect();
        let mut known = 1;
        let mut parts: Vec<Part> = Vec::new();
        let mut untold = None;
        for events in events.chunks(size) {
            let mut part = Part { events: events.to_vec(), ..Part::default() };
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
        parts.push(Part { tasks, nices: untold.into_iter().collect(), events: Vec::new() });
        parts
    }

    fn followed(trace: &Trace, parts: Vec<Part>) -> Option<Analysis> {
        let mut header = Trace::new(trace.cpus);
        (header.start_ns, header.end_ns) = (trace.start_ns, u64::MAX);
        let has_wakeups =
            trace.events().any(|event| matches!(event.kind, EventKind::Wakeup { .. }));
        let (to, from) = std::sync::mpsc::channel();
        parts.into_iter().for_each(|part| to.send(part).unwrap());
        drop(to);
        let (back, _given) = sync_channel(1);
        let scan = follow(header, has_wakeups, &Options::default(), &from, &back)?;
        Some(Analysis::from_parts(trace, *scan))
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
