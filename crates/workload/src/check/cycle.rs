//! Cyclic waits: which tasks wait for each other when no event is left.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::execution::{Execution, Task, Wait};
use crate::limits::CHECK_WAITS_MAX;
use crate::model::{LockKind, Op, Program, Role, Workload};
use crate::objects::ObjectKind;
use crate::spans::{Finding, Subject};
use crate::walk::{OpPath, each_op};

/// Limit of the tasks of a set whose remaining operations are examined.
const SPEAKERS_MAX: usize = 64;

/// Tasks of one group that wait at one operation, shown as one.
struct Waiting {
    at: OpPath,
    wait: Wait,
    /// The tasks, as indices of the execution, ascending.
    tasks: Vec<usize>,
}

/// The way in which one set of tasks could end the wait of another.
#[derive(Clone)]
struct Help {
    /// Index of that set.
    by: usize,
    /// The operation that would do it; `None` when the task would have to exit.
    with: Option<OpPath>,
}

/// Cyclic waits within the first `steps_max` operations.
pub(super) fn findings(workload: &Workload, steps_max: u64) -> Vec<Finding> {
    if !can_block(workload) {
        return Vec::new();
    }
    let mut execution = Execution::new(workload, steps_max);
    match execution.until_nothing_happens() {
        true => finding(&execution).into_iter().collect(),
        false => Vec::new(),
    }
}

/// Whether any task can wait for another one.
fn can_block(workload: &Workload) -> bool {
    let mut waits = false;
    each_op(workload, |_, op| {
        let mut objects = op.references();
        waits |= *op == Op::WaitChildren
            || objects.any(|(kind, _)| !matches!(kind, ObjectKind::Task | ObjectKind::Cgroup));
    });
    waits
}

/// The shortest cycle of tasks that wait for each other.
fn finding(execution: &Execution<'_>) -> Option<Finding> {
    let sets = waiting_sets(execution);
    let helpers: Vec<Vec<Help>> = sets.iter().map(|set| helpers(execution, &sets, set)).collect();
    let circles = (0..sets.len()).filter_map(|from| circle(&helpers, from));
    let circle = circles.min_by_key(Vec::len)?;
    Some(describe(execution, &sets, &circle))
}

fn waiting_sets(execution: &Execution<'_>) -> Vec<Waiting> {
    let mut sets: BTreeMap<OpPath, Waiting> = BTreeMap::new();
    for (index, task) in execution.tasks.iter().enumerate() {
        if let Some(wait) = task.waits_for() {
            let at = position(task);
            let set = sets.entry(at.clone()).or_insert(Waiting { at, wait, tasks: Vec::new() });
            set.tasks.push(index);
        }
    }
    sets.into_values().take(CHECK_WAITS_MAX).collect()
}

/// The operation at which a task waits.
fn position(task: &Task<'_>) -> OpPath {
    let from = task.frames.iter().rposition(|frame| frame.handler);
    let frames = &task.frames[from.unwrap_or(0)..];
    OpPath {
        task: task.group,
        handler: from.is_some(),
        path: frames.iter().map(|frame| frame.at).collect(),
    }
}

/// The sets that could end a wait if they were not waiting.
fn helpers(execution: &Execution<'_>, sets: &[Waiting], set: &Waiting) -> Vec<Help> {
    let mut helpers = Vec::new();
    for (by, other) in sets.iter().enumerate() {
        if set.wait == Wait::Children {
            let child = |&index: &usize| {
                execution.tasks[index]
                    .parent
                    .is_some_and(|parent| set.tasks.binary_search(&parent).is_ok())
            };
            if other.tasks.iter().any(child) {
                helpers.push(Help { by, with: None });
            }
        } else if let Wait::Lock(lock) = set.wait {
            let holders = &execution.locks[lock].holders;
            if let Some(holder) = holders.iter().find(|holder| other.tasks.contains(holder)) {
                helpers.push(Help { by, with: remaining(execution, *holder, set.wait) });
            }
        } else {
            // Tasks at one operation may be in different iterations of their loops.
            let mut speakers = other.tasks.iter().take(SPEAKERS_MAX);
            let with = speakers.find_map(|&task| remaining(execution, task, set.wait));
            helpers.extend(with.map(|with| Help { by, with: Some(with) }));
        }
    }
    helpers
}

/// The first of a task's remaining operations that would end a wait.
fn remaining(execution: &Execution<'_>, task: usize, wait: Wait) -> Option<OpPath> {
    let task = &execution.tasks[task];
    let mut search = Search { workload: execution.workload, wait, seen: Vec::new() };
    let mut handler = false;
    let mut start = 0;
    for (depth, frame) in task.frames.iter().enumerate() {
        if frame.handler {
            (handler, start) = (true, depth);
        }
        let outer: Vec<usize> = task.frames[start..depth].iter().map(|frame| frame.at).collect();
        let mut path = OpPath { task: task.group, handler, path: outer };
        // In a body with further iterations every operation can follow; elsewhere only those after the present one.
        let from = if frame.may_turn() { 0 } else { frame.at + 1 };
        if let Some(found) = search.program(frame.program, from, &mut path) {
            return Some(found);
        }
    }
    None
}

/// A search for the operation that ends a wait.
struct Search<'w> {
    workload: &'w Workload,
    wait: Wait,
    /// Groups whose programs were searched because they are forked or signalled.
    seen: Vec<(usize, bool)>,
}

impl Search<'_> {
    fn program(&mut self, program: &Program, from: usize, path: &mut OpPath) -> Option<OpPath> {
        for (index, op) in program.iter().enumerate().skip(from) {
            path.path.push(index);
            let found = match op {
                op if ends(op, self.wait) => Some(path.clone()),
                Op::Loop(_, body) => self.program(body, 0, path),
                Op::Fork(group) => self.whole(*group, false),
                Op::Signal(Role::All(group) | Role::One(group, _)) => self.whole(*group, true),
                Op::Signal(Role::Parent) => {
                    let parents = parents(self.workload, path.task);
                    parents.into_iter().find_map(|group| self.whole(group, true))
                }
                _ => None,
            };
            path.path.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn whole(&mut self, task: usize, handler: bool) -> Option<OpPath> {
        if self.seen.contains(&(task, handler)) {
            return None;
        }
        self.seen.push((task, handler));
        let workload = self.workload;
        let spec = &workload.tasks[task];
        let program = if handler { &spec.on_signal } else { &spec.program };
        self.program(program, 0, &mut OpPath::start(task, handler))
    }
}

/// Whether an operation ends a wait.
fn ends(op: &Op, wait: Wait) -> bool {
    match *op {
        Op::Send(queue) => wait == Wait::Message(queue),
        Op::Receive(queue, _) => wait == Wait::Capacity(queue),
        Op::PipeWrite(pipe, _) => wait == Wait::Bytes(pipe),
        Op::PipeRead(pipe, _) => wait == Wait::Room(pipe),
        Op::Unlock(lock) | Op::ConditionWait(_, lock) => wait == Wait::Lock(lock),
        Op::Notify(index) | Op::NotifyAll(index) => wait == Wait::Condition(index),
        Op::Barrier(barrier) => wait == Wait::Barrier(barrier),
        _ => false,
    }
}

/// The groups that fork a group.
fn parents(workload: &Workload, child: usize) -> BTreeSet<usize> {
    let mut parents = BTreeSet::new();
    each_op(workload, |path, op| {
        if *op == Op::Fork(child) {
            parents.insert(path.task);
        }
    });
    parents
}

/// The shortest way from a set back to itself, as (set, how the next one could help it).
fn circle(helpers: &[Vec<Help>], from: usize) -> Option<Vec<(usize, Help)>> {
    let mut came: Vec<Option<(usize, Help)>> = vec![None; helpers.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(set) = queue.pop_front() {
        for help in &helpers[set] {
            if came[help.by].is_none() {
                came[help.by] = Some((set, help.clone()));
                queue.push_back(help.by);
            }
        }
        if came[from].is_some() {
            break;
        }
    }
    let mut way = Vec::new();
    let mut at = from;
    loop {
        let (set, help) = came[at].clone()?;
        way.push((set, help));
        at = set;
        if at == from {
            way.reverse();
            return Some(way);
        }
    }
}

fn describe(execution: &Execution<'_>, sets: &[Waiting], circle: &[(usize, Help)]) -> Finding {
    let workload = execution.workload;
    let count: usize = circle.iter().map(|&(set, _)| sets[set].tasks.len()).sum();
    let message = if count == 1 {
        let name = &workload.tasks[sets[circle[0].0].at.task].name;
        format!("cyclic wait: `{name}` waits for itself and never continues")
    } else {
        format!("cyclic wait: {count} tasks wait for each other and none ever continues")
    };
    let locks = circle.iter().all(|&(set, _)| matches!(sets[set].wait, Wait::Lock(_)));
    let help = match locks {
        true => "let all tasks take these locks in the same order",
        false => {
            "let one of them send or write before it waits, or give a queue an `initial` message"
        }
    };
    let mut finding = Finding::new(Subject::Op(sets[circle[0].0].at.clone()), message, help);
    for (set, help) in circle {
        let waiting = &sets[*set];
        let plural = waiting.tasks.len() > 1;
        let who = who(workload, waiting);
        let waits = if plural { "wait" } else { "waits" };
        let what = what(workload, waiting.wait);
        finding.notes.push((Subject::Op(waiting.at.clone()), format!("{who} {waits} for {what}")));
        let helper = self::who(workload, &sets[help.by]);
        let itself = if sets[help.by].tasks.len() > 1 { "wait themselves" } else { "waits itself" };
        let (subject, note) = match &help.with {
            Some(with) if with.task == sets[help.by].at.task => {
                (with.clone(), format!("{helper} would provide it here, but {itself}"))
            }
            Some(with) => {
                let other = &workload.tasks[with.task].name;
                let note = format!("{helper} would let `{other}` provide it here, but {itself}");
                (with.clone(), note)
            }
            None => (sets[help.by].at.clone(), format!("{helper} would have to end, but {itself}")),
        };
        finding.notes.push((Subject::Op(subject), note));
    }
    // The kernel refuses a circle of the locks whose owner it knows.
    let refused = |&(set, _): &(usize, Help)| match sets[set].wait {
        Wait::Lock(lock) => workload.locks[lock].kind != LockKind::Mutex,
        _ => false,
    };
    if locks && circle.iter().any(refused) { finding } else { finding.hanging() }
}

fn who(workload: &Workload, waiting: &Waiting) -> String {
    let name = &workload.tasks[waiting.at.task].name;
    match waiting.tasks.len() {
        1 => format!("`{name}`"),
        count => format!("{count} tasks `{name}`"),
    }
}

fn what(workload: &Workload, wait: Wait) -> String {
    let name = |kind, index| workload.name_of(kind, index);
    match wait {
        Wait::Bytes(pipe) => format!("bytes in pipe `{}`", name(ObjectKind::Pipe, pipe)),
        Wait::Room(pipe) => {
            format!("room in pipe `{}`, which is full", name(ObjectKind::Pipe, pipe))
        }
        Wait::Message(queue) => format!("a message in queue `{}`", name(ObjectKind::Queue, queue)),
        Wait::Capacity(queue) => {
            format!("room in queue `{}`, which is full", name(ObjectKind::Queue, queue))
        }
        Wait::Condition(condition) => {
            format!("a notification of `{}`", name(ObjectKind::Condition, condition))
        }
        Wait::Barrier(barrier) => {
            format!("others at the barrier `{}`", name(ObjectKind::Barrier, barrier))
        }
        Wait::Lock(lock) => format!("the lock `{}`", name(ObjectKind::Lock, lock)),
        Wait::Children => "its children to end".to_owned(),
    }
}
