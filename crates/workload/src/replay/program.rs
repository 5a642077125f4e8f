//! From what was recorded of each task to its program.

use std::collections::BTreeSet;

use super::meetings::{Meetings, Message, Received};
use super::notes::ReplayNotes;
use crate::cgroups::{self, Cgroup};
use crate::check;
use crate::diagnostic::WorkloadError;
use crate::limits::NAME_CHARS_MAX;
use crate::model::{Op, Program, TaskSpec, Workload, independent};
use crate::policy::SchedPolicy;
use crate::units::{CpuList, Duration};

/// Characters of a recorded name that go into the name of its group; the pid follows.
const COMM_CHARS_MAX: usize = 40;

/// A piece of what a task did.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Run(u64),
    Sleep(u64),
    /// A message, by number.
    Receive(usize),
    /// A message, by number; it counts only when it was received.
    Send(usize),
    /// A task, by index.
    Fork(usize),
    SetNice(i8),
    SetPolicy(SchedPolicy),
    Yield,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// ns after the start of the recording.
    At(u64),
    Forked,
}

/// The recorded events of a task.
#[derive(Debug)]
pub(super) struct Recorded {
    id: u32,
    pub(super) pid: u32,
    pub(super) comm: String,
    pub(super) policy: SchedPolicy,
    pub(super) nice: i8,
    pub(super) cpus: Option<CpuList>,
    /// The path of its control group.
    pub(super) cgroup: Option<String>,
    pub(super) start: Start,
    /// It was seen on a CPU.
    pub(super) ran: bool,
    /// It was seen to exit.
    pub(super) ends: bool,
    pub(super) items: Vec<Item>,
}

impl Recorded {
    pub(super) fn new(id: u32) -> Self {
        let (start, items) = (Start::At(0), Vec::new());
        Self {
            id,
            pid: id,
            comm: String::new(),
            policy: SchedPolicy::Other,
            nice: 0,
            cpus: None,
            cgroup: None,
            start,
            ran: false,
            ends: false,
            items,
        }
    }

    /// Adds to the present burst.
    pub(super) fn run(&mut self, ns: u64) {
        self.ran = true;
        match self.items.last_mut() {
            _ if ns == 0 => {}
            Some(Item::Run(burst_ns)) => *burst_ns += ns,
            _ => self.items.push(Item::Run(ns)),
        }
    }

    pub(super) fn sleep(&mut self, ns: u64) {
        match self.items.last_mut() {
            _ if ns == 0 => {}
            Some(Item::Sleep(sleep_ns)) => *sleep_ns += ns,
            _ => self.items.push(Item::Sleep(ns)),
        }
    }

    /// Whether it ran or waited at all.
    pub(super) fn does_something(&self) -> bool {
        let changes =
            |item: &Item| matches!(item, Item::SetNice(_) | Item::SetPolicy(_) | Item::Yield);
        !self.items.iter().all(changes)
    }

    /// Whether it was there from the beginning to the end, and computes.
    fn lasts(&self) -> bool {
        let computes = self.items.iter().any(|item| matches!(item, Item::Run(_)));
        self.start == Start::At(0) && !self.ends && computes
    }
}

/// The tasks that start over when they are through: they last, and so do all for which they wait.
fn goes_on(recorded: &[Recorded], messages: &[Message]) -> Vec<bool> {
    let mut goes_on: Vec<bool> = recorded.iter().map(Recorded::lasts).collect();
    let mut wakes = vec![Vec::new(); recorded.len()];
    let received = messages.iter().filter(|message| message.received != Received::No);
    received.for_each(|message| wakes[message.ends.0].push(message.ends.1));
    let mut ended: Vec<usize> = (0..recorded.len()).filter(|&task| !goes_on[task]).collect();
    while let Some(waker) = ended.pop() {
        for woken in std::mem::take(&mut wakes[waker]) {
            if std::mem::replace(&mut goes_on[woken], false) {
                ended.push(woken);
            }
        }
    }
    goes_on
}

/// The workload of a recording that begins in it at a time, and its length, ns. Tasks that did something become groups
/// of one, in the order in which they were named.
pub(super) fn workload(
    (name, cgroups): (&str, Vec<Cgroup>),
    (begin_ns, duration_ns): (u64, u64),
    recorded: Vec<Recorded>,
    messages: &[Message],
    mut notes: ReplayNotes,
) -> Result<(Workload, ReplayNotes), WorkloadError> {
    let mut groups = 0..;
    let group_of: Vec<Option<usize>> = recorded
        .iter()
        .map(|task| {
            let exists = task.does_something() || task.start == Start::Forked;
            exists.then(|| groups.next()).flatten()
        })
        .collect();
    let names = names(&recorded);
    let goes_on = goes_on(&recorded, messages);
    let meetings = Meetings::of(messages, &names);
    let writer = Writer { messages, meetings: &meetings, group_of: &group_of, goes_on: &goes_on };
    let mut tasks = Vec::with_capacity(recorded.len());
    let mut operations = 0_u64;
    for ((index, task), name) in recorded.into_iter().enumerate().zip(names) {
        if group_of[index].is_none() {
            continue;
        }
        let program = writer.program(&task, goes_on[index]);
        operations += 2 * task.items.len() as u64;
        let runs = task.items.iter().map(|item| if let Item::Run(ns) = item { *ns } else { 0 });
        notes.run_ns += runs.sum::<u64>();
        let start_ns = match task.start {
            Start::At(ns) => Some(begin_ns + ns),
            Start::Forked => None,
        };
        let Recorded { policy, nice, cpus, cgroup, .. } = task;
        let cgroup = cgroup.and_then(|path| cgroups::find(&cgroups, &path));
        tasks.push(TaskSpec {
            policy,
            nice,
            cpus,
            cgroup,
            ..TaskSpec::new(name, 1, start_ns, program)
        });
    }
    notes.tasks = tasks.len() as u64;
    let workload = Workload {
        name: safe(name, NAME_CHARS_MAX, "replay"),
        duration_ns,
        recorded: true,
        queues: meetings.queues,
        cgroups,
        ..independent(format!("replay of a recording: {} tasks", tasks.len()), tasks)
    };
    // Every operation is executed once, and every step of the check executes one or finds a program's end.
    check::with_steps(&workload, operations.saturating_mul(4).saturating_add(1_000))?;
    Ok((workload, notes))
}

/// Writes programs.
struct Writer<'a> {
    messages: &'a [Message],
    meetings: &'a Meetings,
    /// The group of each task.
    group_of: &'a [Option<usize>],
    /// The tasks that start over.
    goes_on: &'a [bool],
}

impl Writer<'_> {
    /// The recorded program of the task; one that goes on starts over at its end.
    fn program(&self, task: &Recorded, goes_on: bool) -> Program {
        let mut program = self.operations(&task.items, |_| true);
        if goes_on {
            let again = |item: &Item| match *item {
                // A receiver that ends is there only once.
                Item::Send(message) => self.goes_on[self.messages[message].ends.1],
                Item::Fork(_) => false,
                Item::Run(_)
                | Item::Sleep(_)
                | Item::Receive(_)
                | Item::SetNice(_)
                | Item::SetPolicy(_)
                | Item::Yield => true,
            };
            let mut body = self.operations(&task.items, again);
            if body.iter().any(|op| matches!(op, Op::SetNice(_))) {
                body.insert(0, Op::SetNice(task.nice));
            }
            if body.iter().any(|op| matches!(op, Op::SetPolicy(_))) {
                body.insert(0, Op::SetPolicy(task.policy));
            }
            let differs = body != program;
            let lap = Op::Loop(None, body);
            if differs {
                program.push(lap);
            } else {
                program = vec![lap];
            }
        }
        if program.is_empty() {
            // It was forked, and nothing more was seen of it.
            program.push(Op::Exit);
        }
        program.shrink_to_fit();
        program
    }

    /// The operations of those items that are wanted: bursts that only something else parted are one again.
    fn operations(&self, items: &[Item], wanted: impl Fn(&Item) -> bool) -> Program {
        let mut program = Program::with_capacity(items.len());
        for item in items.iter().filter(|item| wanted(item)) {
            match *item {
                Item::Run(ns) => match program.last_mut() {
                    Some(Op::Run(Duration::Fixed(burst_ns))) => *burst_ns += ns,
                    _ => program.push(Op::Run(Duration::Fixed(ns))),
                },
                Item::Sleep(ns) => program.push(Op::Sleep(Duration::Fixed(ns))),
                Item::Receive(message) => {
                    program.extend(self.meetings.queue(message).map(|queue| Op::Receive(queue, 1)));
                }
                Item::Send(message) => {
                    program.extend(self.meetings.queue(message).map(Op::Send));
                }
                Item::Fork(child) => program.extend(self.group_of[child].map(Op::Fork)),
                Item::SetNice(nice) => program.push(Op::SetNice(nice)),
                Item::SetPolicy(policy) => program.push(Op::SetPolicy(policy)),
                Item::Yield => program.push(Op::Yield),
            }
        }
        program
    }
}

/// `comm-pid`, made unique by the caller's number where a pid came twice.
fn names(recorded: &[Recorded]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let names = recorded.iter().map(|task| {
        let comm = safe(&task.comm, COMM_CHARS_MAX, "task");
        let mut name = format!("{comm}-{}", task.pid);
        if taken.contains(&name) {
            name = format!("{name}#{}", task.id);
        }
        taken.insert(name.clone());
        name
    });
    names.collect()
}

/// A recorded text as part of a name.
fn safe(text: &str, chars_max: usize, otherwise: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let text: String = text.chars().take(chars_max).map(printable).collect();
    if text.is_empty() { otherwise.to_owned() } else { text }
}
