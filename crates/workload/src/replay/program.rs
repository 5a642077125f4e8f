//! From what was recorded of each task to its program.

use std::collections::BTreeSet;

use super::notes::ReplayNotes;
use crate::check;
use crate::diagnostic::WorkloadError;
use crate::limits::NAME_CHARS_MAX;
use crate::model::{CpuList, Duration, Op, Program, Queue, TaskSpec, Workload, independent};

/// Characters of a recorded name that go into the name of its group; the pid follows.
const COMM_CHARS_MAX: usize = 40;

/// A piece of what a task did.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Run(u64),
    Sleep(u64),
    Receive,
    /// To a task, by index; the message counts only when it was received.
    Send {
        to: usize,
        message: usize,
    },
    /// A task, by index.
    Fork(usize),
    SetNice(i8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// ns after the start of the recording.
    At(u64),
    Forked,
}

/// What was recorded of a task.
#[derive(Debug)]
pub(super) struct Recorded {
    id: u32,
    pub(super) pid: u32,
    pub(super) comm: String,
    pub(super) nice: i8,
    pub(super) cpus: Option<CpuList>,
    pub(super) start: Start,
    pub(super) items: Vec<Item>,
}

impl Recorded {
    pub(super) fn new(id: u32) -> Self {
        let (start, items) = (Start::At(0), Vec::new());
        Self { id, pid: id, comm: String::new(), nice: 0, cpus: None, start, items }
    }

    /// Adds to the present burst.
    pub(super) fn run(&mut self, ns: u64) {
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
        self.items.iter().any(|item| !matches!(item, Item::SetNice(_)))
    }
}

/// Tasks that did something become groups of one, in the order in which they were named; each that received a message
/// gets a queue.
pub(super) fn workload(
    name: &str,
    duration_ns: u64,
    recorded: Vec<Recorded>,
    messages: &[bool],
    mut notes: ReplayNotes,
) -> Result<(Workload, ReplayNotes), WorkloadError> {
    let mut group_of = vec![None; recorded.len()];
    let mut queue_of = vec![None; recorded.len()];
    let (mut groups, mut queues) = (0, Vec::new());
    let names = names(&recorded);
    for (index, task) in recorded.iter().enumerate() {
        if task.does_something() || task.start == Start::Forked {
            group_of[index] = Some(groups);
            groups += 1;
        }
        if task.items.iter().any(|item| matches!(item, Item::Receive)) {
            queue_of[index] = Some(queues.len());
            queues.push(Queue::unlimited(names[index].clone()));
        }
    }
    let mut tasks = Vec::with_capacity(groups);
    let mut operations = 0_u64;
    for ((index, task), name) in recorded.into_iter().enumerate().zip(names) {
        if group_of[index].is_none() {
            continue;
        }
        let program = program(&task.items, index, messages, &group_of, &queue_of);
        operations += program.len() as u64;
        let runs = program.iter().map(|op| match op {
            Op::Run(Duration::Fixed(ns)) => *ns,
            _ => 0,
        });
        notes.run_ns += runs.sum::<u64>();
        let start_ns = match task.start {
            Start::At(ns) => Some(ns),
            Start::Forked => None,
        };
        let Recorded { nice, cpus, .. } = task;
        tasks.push(TaskSpec { nice, cpus, ..TaskSpec::new(name, 1, start_ns, program) });
    }
    notes.tasks = tasks.len() as u64;
    let workload = Workload {
        name: safe(name, NAME_CHARS_MAX, "replay"),
        duration_ns,
        queues,
        ..independent(format!("replay of a recording: {} tasks", tasks.len()), tasks)
    };
    // Every operation is executed once, and every step of the check executes one or finds a program's end.
    check::with_steps(&workload, operations.saturating_mul(4).saturating_add(1_000))?;
    Ok((workload, notes))
}

/// The operations: bursts that only an unneeded message parted are one again.
fn program(
    items: &[Item],
    own: usize,
    messages: &[bool],
    group_of: &[Option<usize>],
    queue_of: &[Option<usize>],
) -> Program {
    let mut program = Program::with_capacity(items.len());
    for item in items {
        match *item {
            Item::Run(ns) => match program.last_mut() {
                Some(Op::Run(Duration::Fixed(burst_ns))) => *burst_ns += ns,
                _ => program.push(Op::Run(Duration::Fixed(ns))),
            },
            Item::Sleep(ns) => program.push(Op::Sleep(Duration::Fixed(ns))),
            Item::Receive => program.extend(queue_of[own].map(|queue| Op::Receive(queue, 1))),
            Item::Send { to, message } if messages[message] => {
                program.extend(queue_of[to].map(Op::Send));
            }
            Item::Send { .. } => {}
            Item::Fork(child) => program.extend(group_of[child].map(Op::Fork)),
            Item::SetNice(nice) => program.push(Op::SetNice(nice)),
        }
    }
    if program.is_empty() {
        // It was forked, and nothing more was seen of it.
        program.push(Op::Exit);
    }
    program.shrink_to_fit();
    program
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
