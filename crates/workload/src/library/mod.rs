//! Workloads by name: the benchmarks of the published results, and loads for tests and benchmarks.

mod containers;
mod critical;
mod jobs;
mod load;
mod messages;
mod phases;
mod pipe_chain;
mod rhythm;
mod ring;
mod schbench;
mod servers;
mod slice;
mod spec;
mod yield_pair;

use crate::cgroups;
use crate::check::check;
use crate::diagnostic::{Source, WorkloadError};
use crate::limits::{NAME_CHARS_MAX, PARTS_MAX, TASKS_MAX};
use crate::model::{Duration, Lock, LockKind, Op, Program, Role, TaskSpec, Workload, independent};
use spec::{Call, Token};

/// The name of a specification in messages.
const SPECIFICATION: &str = "workload specification";
/// Limit of a count argument.
const COUNT_MAX: i64 = TASKS_MAX as i64;

/// A `key=value` parameter of a workload of the library.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// The default, as it would be written.
    pub default: &'static str,
    /// Its meaning.
    pub help: &'static str,
}

/// A workload of the library.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name, as in `slice:16`.
    pub name: &'static str,
    /// The form of the arguments after the colon; empty when there are none.
    pub arguments: &'static str,
    /// A summary of one line.
    pub summary: &'static str,
    /// Its source: a program, a mail, a paper.
    pub source: &'static str,
    /// Its limits: what it does not show.
    pub limits: &'static str,
    /// Its parameters, besides [`COMMON_PARAMETERS`].
    pub parameters: &'static [Parameter],
    build: fn(&mut Call<'_, '_>) -> Workload,
}

/// The parameters of every workload of the library.
pub const COMMON_PARAMETERS: &[Parameter] =
    &[Parameter { name: "duration", default: "10s", help: "how long the workload runs" }];

const ENTRIES: &[Entry] = &[
    jobs::AIM7,
    load::BENCH_LOAD,
    containers::CONTAINERS,
    critical::CRITICAL,
    jobs::DBENCH,
    phases::FAIRTEST,
    rhythm::FORKSTORM,
    messages::HACKBENCH,
    load::HOGS,
    ring::LAT_CTX,
    load::LOOP,
    phases::MASSIVE_INTR,
    load::MIX,
    servers::NETPERF_STREAM,
    rhythm::PERIODIC,
    messages::PIPE,
    pipe_chain::PIPE_CHAIN,
    schbench::SCHBENCH,
    slice::SLICE,
    load::SLEEPERS,
    servers::VOLANO,
    yield_pair::YIELD_PAIR,
];

/// All workloads of the library, by name.
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// Builds a workload from a specification: `name[:arguments][,key=value]…`, several joined by `+`.
///
/// ```
/// let workload = fairground_workload::from_spec("hogs:2,nice=5 + sleepers:3,run=20us,sleep=1ms")?;
/// assert_eq!(workload.tasks.len(), 2);
/// # Ok::<(), fairground_workload::WorkloadError>(())
/// ```
///
/// # Errors
/// All problems of the specification, with their columns (the specification is line 1 of its text).
pub fn from_spec(text: &str) -> Result<Workload, WorkloadError> {
    let source = Source::new(SPECIFICATION, text);
    let mut problems = Vec::new();
    let mut parts = Vec::new();
    let mut durations: Vec<(u64, Token<'_>)> = Vec::new();
    let pieces = Token::whole(text).split(|c| c == '+');
    if let Some(piece) = pieces.get(PARTS_MAX) {
        let message = format!("more than PARTS_MAX, {PARTS_MAX}, workloads in one specification");
        let help = "use counts, or write a file".to_owned();
        return Err(WorkloadError::new(vec![source.diagnostic(piece.span.clone(), message, help)]));
    }
    for piece in pieces {
        let Some(mut call) = Call::read(&piece, ENTRIES, &source, &mut problems) else { continue };
        let mut workload = (call.entry.build)(&mut call);
        if let Some(value) = call.value("duration") {
            workload.duration_ns = call.time("duration", workload.duration_ns);
            durations.push((workload.duration_ns, value));
        }
        if let Some((ns, piece)) = call.duration.take() {
            durations.push((ns, piece));
        }
        parts.push(workload);
    }
    if let [(first_ns, _), rest @ ..] = durations.as_slice()
        && let Some((_, piece)) = rest.iter().find(|(ns, _)| ns != first_ns)
    {
        let message = "two different durations for one workload".to_owned();
        let help = "write `duration` once".to_owned();
        problems.push(source.diagnostic(piece.span.clone(), message, help));
    }
    if !problems.is_empty() {
        return Err(WorkloadError::new(problems));
    }
    let longest_ns = parts.iter().map(|part| part.duration_ns).max().unwrap_or(0);
    let mut parts = parts.into_iter();
    let Some(mut workload) = parts.next() else {
        let help = "name a workload, as in `hogs:3`".to_owned();
        let problem = source.diagnostic(0..0, "the specification is empty".into(), help);
        return Err(WorkloadError::new(vec![problem]));
    };
    for part in parts {
        join(&mut workload, part);
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    workload.name = words.chars().take(NAME_CHARS_MAX).collect();
    workload.duration_ns = durations.first().map_or(longest_ns, |&(ns, _)| ns);
    check(&workload)?;
    Ok(workload)
}

/// Adds the tasks of one workload to another.
fn join(into: &mut Workload, mut part: Workload) {
    cgroups::join(into, &mut part);
    let by = Shift {
        tasks: into.tasks.len(),
        pipes: into.pipes.len(),
        queues: into.queues.len(),
        locks: into.locks.len(),
        conditions: into.conditions.len(),
        barriers: into.barriers.len(),
        timers: into.timers.len(),
    };
    for task in &mut part.tasks {
        for program in [&mut task.program, &mut task.on_signal] {
            shift(program, &by);
        }
    }
    append(&mut into.tasks, part.tasks, |task| &mut task.name);
    append(&mut into.pipes, part.pipes, |pipe| &mut pipe.name);
    append(&mut into.conditions, part.conditions, |condition| &mut condition.name);
    append(&mut into.barriers, part.barriers, |barrier| &mut barrier.name);
    append(&mut into.locks, part.locks, |lock| &mut lock.name);
    append(&mut into.queues, part.queues, |queue| &mut queue.name);
    append(&mut into.timers, part.timers, |timer| &mut timer.name);
    into.description = format!("{}; {}", into.description, part.description);
}

/// Appends named objects to others of their kind; one whose name is taken gets another.
fn append<T>(into: &mut Vec<T>, part: Vec<T>, name: fn(&mut T) -> &mut String) {
    let mut taken: Vec<String> = into.iter_mut().map(|known| name(known).clone()).collect();
    for mut thing in part {
        let free = free_name(taken.iter(), std::mem::take(name(&mut thing)));
        name(&mut thing).clone_from(&free);
        taken.push(free);
        into.push(thing);
    }
}

/// The name, or `name-2`, `name-3` …
pub(crate) fn free_name<'n>(
    taken: impl Iterator<Item = &'n String> + Clone,
    name: String,
) -> String {
    let is_taken = |candidate: &str| taken.clone().any(|taken| taken == candidate);
    if !is_taken(&name) {
        return name;
    }
    let mut number = 2_usize;
    loop {
        let candidate = format!("{name}-{number}");
        if !is_taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

/// The number of objects of each kind before another workload is appended.
struct Shift {
    tasks: usize,
    pipes: usize,
    queues: usize,
    locks: usize,
    conditions: usize,
    barriers: usize,
    timers: usize,
}

/// Shifts the references of a program by the objects of another workload.
fn shift(program: &mut Program, by: &Shift) {
    for op in program {
        match op {
            Op::TimerWait(timer, _) | Op::TimerStart(timer) => *timer += by.timers,
            Op::PipeWrite(pipe, _) | Op::PipeRead(pipe, _) => *pipe += by.pipes,
            Op::Send(queue) | Op::Receive(queue, _) => *queue += by.queues,
            Op::Signal(Role::All(task) | Role::One(task, _)) | Op::Fork(task) => *task += by.tasks,
            Op::Lock(lock) | Op::ReadLock(lock) | Op::WriteLock(lock) | Op::Unlock(lock) => {
                *lock += by.locks;
            }
            Op::ConditionWait(condition, lock) => {
                *condition += by.conditions;
                *lock += by.locks;
            }
            Op::Notify(condition) | Op::NotifyAll(condition) => *condition += by.conditions,
            Op::Barrier(barrier) => *barrier += by.barriers,
            Op::Loop(_, body) => shift(body, by),
            _ => {}
        }
    }
}

/// A group that starts at once, at nice 0, on any CPU.
fn group(name: &str, count: u32, program: Program) -> TaskSpec {
    TaskSpec {
        name: name.to_owned(),
        count,
        nice: 0,
        cpus: None,
        cgroup: None,
        start_ns: Some(0),
        program,
        on_signal: Program::new(),
    }
}

/// A run of at least 1 ns.
fn run(ns: u64) -> Op {
    Op::Run(Duration::Fixed(ns.max(1)))
}

/// A lock with the defaults of today's kernels.
fn lock(name: &str, kind: LockKind) -> Lock {
    Lock { name: name.to_owned(), kind, adaptive: true, steal: true }
}
