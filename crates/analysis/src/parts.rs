//! A recording that is analysed while it is still put in order, on another thread: nobody keeps its events.

use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::scope;

use crate::analysis::group_tasks;
use crate::scan::Scan;
use crate::services::{Change, Services, What};
use crate::{Analysis, Options, Samples};
use fairground_trace::{Part, ReadError, TakeParts, TaskId, Trace, read_file, read_file_in_parts};

/// Parts that wait for the analysis.
const PARTS_MAX: usize = 6;
/// Changes that a part of switches and wake-ups makes, about. More of them take memory anew.
const CHANGES: usize = 2 << 13;

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
        let (trace, followed) = scope(|scope| {
            let (to, said) = sync_channel(PARTS_MAX);
            let (give_back, back) = sync_channel(PARTS_MAX + 2);
            let mut telling = Telling { to, back };
            let reading = scope.spawn(move || read_file_in_parts(name, file, &mut telling));
            let followed = follow(options, &said, &give_back);
            // A pass that gave up listens no more.
            drop(said);
            let trace = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((trace?, followed))
        })?;
        match followed {
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
        let analysis = Analysis::from_scan(trace, &names, scanned);
        // All threads are idle now, and of a long recording this is most of what is left to do.
        let groups = analysis.groups.iter().map(|group| &group.figures.wakeup_latency);
        Samples::find_usual(&groups.collect::<Vec<_>>(), &analysis.machine.wakeup_latency);
        analysis
    }
}

fn analysed(trace: Trace, options: &Options) -> Analysed {
    let analysis = Analysis::of(&trace, options);
    Analysed { events: trace.len() as u64, analysis, trace }
}

/// What whoever reads the recording says of it.
enum Said {
    /// It begins, or does so again. There are wake-ups, or none.
    Begin(Box<Trace>, bool),
    Part(Part),
}

/// Where the recording is read.
struct Telling {
    to: SyncSender<Said>,
    back: Receiver<Part>,
}

impl TakeParts for Telling {
    fn begin(&mut self, header: &Trace, has_wakeups: bool) {
        // A pass that gave up says so at the end.
        let _ = self.to.send(Said::Begin(Box::new(header.clone()), has_wakeups));
    }

    fn take(&mut self, part: Part) -> Part {
        let _ = self.to.send(Said::Part(part));
        self.back.try_recv().unwrap_or_default()
    }
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

/// The pass over the parts, before its end.
fn follow(options: &Options, said: &Receiver<Said>, back: &SyncSender<Part>) -> Followed {
    let mut next = said.recv().ok();
    let mut followed = Followed::NotBegun;
    while let Some(Said::Begin(mut header, has_wakeups)) = next {
        header.end_ns = u64::MAX;
        let mut pass = Pass { trace: *header, events: 0, again: None };
        followed = match pass.follow(has_wakeups, options, said, back) {
            Some(scan) => Followed::Whole { events: pass.events, scan: Box::new(scan) },
            None => return Followed::TooLate,
        };
        next = pass.again;
    }
    followed
}

/// A recording from where it begins.
struct Pass {
    trace: Trace,
    events: u64,
    /// It begins again: all of this is void.
    again: Option<Said>,
}

impl Pass {
    /// `None` when it cannot be made this way. Another thread keeps the services in the fluid schedules meanwhile, a part behind.
    fn follow(
        &mut self,
        has_wakeups: bool,
        options: &Options,
        said: &Receiver<Said>,
        back: &SyncSender<Part>,
    ) -> Option<Scan> {
        let mut scan = Scan::new(&self.trace, options, &[0], 1);
        if has_wakeups {
            scan.has_wakeups();
        }
        let services = scan.ledger.hand_over_services();
        let services = scope(|scope| {
            let (to, changes) = sync_channel(PARTS_MAX);
            let (give_back, empty) = sync_channel(PARTS_MAX + 2);
            let keeping = scope.spawn(move || keep(services, &changes, &give_back));
            for said in said {
                let Said::Part(mut part) = said else {
                    self.again = Some(said);
                    break;
                };
                self.events += part.events.len() as u64;
                pass(&mut scan, &mut self.trace, &mut part)?;
                // Whoever fills them has enough.
                let _ = back.try_send(part);
                let room = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHANGES));
                to.send(scan.ledger.take_changes(room)).ok()?;
            }
            drop(to);
            keeping.join().ok()
        })?;
        scan.ledger.take_services_back(services);
        Some(scan)
    }
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
    for event in &part.events {
        scan.take_sound(trace, event);
    }
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
        services.apply(&changes);
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
        self.ledger.change(What::Weigh { task: id.0, weight });
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
        let (to, said) = std::sync::mpsc::channel();
        // What was begun before is void.
        to.send(Said::Begin(Box::new(header.clone()), !has_wakeups)).unwrap();
        parts.iter().take(2).for_each(|part| to.send(Said::Part(part.clone())).unwrap());
        to.send(Said::Begin(Box::new(header), has_wakeups)).unwrap();
        parts.into_iter().for_each(|part| to.send(Said::Part(part)).unwrap());
        drop(to);
        let (back, _given) = sync_channel(1);
        match follow(&Options::default(), &said, &back) {
            Followed::Whole { events, scan } => {
                assert_eq!(events, trace.len() as u64);
                Some(Analysis::from_parts(trace, *scan))
            }
            Followed::TooLate => None,
            Followed::NotBegun => panic!("it has begun"),
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
