//! What a reader of a result must know first: what ended the run, what is partial, which tasks never ran.

use fairground_analysis::{Analysis, NeverRan};
use fairground_bpf::{Object, SourceLine, TrapPlace};
use fairground_machine::{Exit, ExitKind, Origin, Waiting, WaitingPlace};
use fairground_trace::TaskId;

use crate::outcome::{Outcome, TargetReport};

/// Exit code: the scheduler left by itself (`scx_bpf_exit`), or the kernel took it out in an orderly way.
pub const EXIT_LEFT: u8 = 41;
/// Exit code: a task was runnable for longer than the watchdog's timeout without running.
pub const EXIT_STALLED: u8 = 42;
/// Exit code: the scheduler was ejected for an error.
pub const EXIT_EJECTED: u8 = 43;

/// A task that has waited for less than this at the end may just have come, ns.
const WAIT_MIN_NS: u64 = 10_000_000;
/// Tasks that are named; the others are counted.
const NAMES_SHOWN: usize = 5;

/// How bad a [`Verdict`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The run did not do what was asked for.
    Failure,
    /// The result holds, with a restriction.
    Warning,
}

/// One statement that heads a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How bad it is.
    pub severity: Severity,
    /// The statement, one line.
    pub text: String,
    /// Lines below it: the source, the last callbacks.
    pub details: Vec<String>,
}

/// Where in the source something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The line.
    pub line: SourceLine,
    /// Whether it is this line; else it is this one or one that follows.
    pub is_exact: bool,
}

/// The exit code for the kernel's number of an exit kind (`enum scx_exit_kind`); 0 when the scheduler stayed to the
/// end.
pub(crate) fn exit_code(kind: u64) -> u8 {
    let is = |of: ExitKind| kind == u64::from(of.number());
    match kind {
        _ if is(ExitKind::ErrorStall) => EXIT_STALLED,
        kind if kind >= u64::from(ExitKind::Error.number()) => EXIT_EJECTED,
        _ if is(ExitKind::UnregisteredByBpf) || is(ExitKind::UnregisteredByKernel) => EXIT_LEFT,
        _ => 0,
    }
}

/// The lines of the source from which an exit comes; none where the object has no line information.
pub(crate) fn sources(object: &Object, exit: &Exit) -> Vec<Source> {
    let places = exit.origin.iter().flat_map(|origin| &origin.places);
    let mut sources: Vec<Source> = Vec::new();
    for place in places {
        if let Some(source) = source_of(object, place)
            && !sources.contains(&source)
        {
            sources.push(source);
        }
    }
    sources
}

/// The line of an instruction in the file of its function. Code of a header's inline function has lines of that
/// header only: then the line that calls it, or without DWARF the last line before it.
fn source_of(object: &Object, place: &TrapPlace) -> Option<Source> {
    let exact = object.source_line(&place.function, place.insn)?;
    let first = object.source_line(&place.function, 0);
    let is_own = |line: &&SourceLine| first.is_none_or(|first| first.file == line.file);
    if !is_own(&exact)
        && let Some(line) = object.line_of_inline_call(&place.function, place.insn)
    {
        return Some(Source { line, is_exact: true });
    }
    let lines = (0..=place.insn).rev().map(|slot| object.source_line(&place.function, slot));
    let own = lines.flatten().find(is_own).unwrap_or(exact);
    Some(Source { line: own.clone(), is_exact: is_own(&exact) })
}

/// The statement about tasks that are runnable at the end of a recording and that it shows on no CPU.
pub fn never_ran(analysis: &Analysis) -> Option<Verdict> {
    never_ran_where(analysis, |_| "")
}

fn never_ran_where(analysis: &Analysis, place: impl Fn(TaskId) -> &'static str) -> Option<Verdict> {
    let mut tasks = analysis.never_ran();
    tasks.retain(|task| task.waiting_ns >= WAIT_MIN_NS);
    let names =
        tasks.iter().take(NAMES_SHOWN).map(|NeverRan { task, name, waiting_ns, .. }| {
            format!("{name} (waiting for {}{})", seconds(*waiting_ns), place(*task))
        });
    let names: Vec<String> = names.collect();
    let subject = match tasks.len() {
        0 => return None,
        1 => "1 task".to_owned(),
        several => format!("{several} tasks"),
    };
    let more = match tasks.len().saturating_sub(NAMES_SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(Verdict {
        severity: Severity::Warning,
        text: format!("{subject} never ran: {}{more}", names.join(", ")),
        details: Vec::new(),
    })
}

impl Outcome {
    /// What heads the result of this run, the worst first; nothing when it ran to its end and every task ran.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        if let Some(text) = self.ejection() {
            let details = match &self.report {
                TargetReport::Simulated { exit, sources, .. } => details(exit, sources),
                TargetReport::Real { .. } => Vec::new(),
            };
            verdicts.push(Verdict { severity: Severity::Failure, text, details });
        }
        if let Some(reached_ns) = self.partial_ns {
            verdicts.push(Verdict {
                severity: Severity::Warning,
                text: format!(
                    "partial: it was interrupted after {} of simulated time, and what is measured \
                     is measured up to there",
                    seconds(reached_ns)
                ),
                details: Vec::new(),
            });
        }
        let waiting = match &self.report {
            TargetReport::Simulated { waiting, .. } => waiting.as_slice(),
            TargetReport::Real { .. } => &[],
        };
        verdicts.extend(never_ran_where(&self.analysis, |task| place_of(waiting, task)));
        verdicts.extend(self.forgotten(waiting));
        verdicts
    }

    /// Tasks that the scheduler took, that ran before, and that have waited with it for more than half of the run.
    fn forgotten(&self, waiting: &[Waiting]) -> Option<Verdict> {
        let bound_ns = (self.analysis.window_ns() / 2).max(WAIT_MIN_NS);
        let is_forgotten = |waits: &&Waiting| {
            let has_run = self.analysis.task(waits.task).is_some_and(|task| task.has_run);
            waits.place == WaitingPlace::Scheduler && waits.waited_ns > bound_ns && has_run
        };
        let name = |waits: &Waiting| {
            let task = self.analysis.task(waits.task)?;
            Some(format!("{} (waiting for {})", task.name, seconds(waits.waited_ns)))
        };
        let forgotten: Vec<&Waiting> = waiting.iter().filter(is_forgotten).collect();
        let names: Vec<String> =
            forgotten.iter().take(NAMES_SHOWN).filter_map(|waits| name(waits)).collect();
        (!forgotten.is_empty()).then(|| Verdict {
            severity: Severity::Warning,
            text: format!(
                "the scheduler took {} of the tasks and put them into no dispatch queue since: {}",
                forgotten.len(),
                names.join(", ")
            ),
            details: Vec::new(),
        })
    }
}

fn place_of(waiting: &[Waiting], task: TaskId) -> &'static str {
    match waiting.iter().find(|waits| waits.task == task).map(|waits| waits.place) {
        Some(WaitingPlace::Scheduler) => ", taken by ops.enqueue() and in no dispatch queue",
        Some(WaitingPlace::Queue | WaitingPlace::Local(_)) => ", in a dispatch queue",
        None => "",
    }
}

/// An exit in words: what, in which callback for which task, and where in the source.
pub(crate) fn describe(exit: &Exit, sources: &[Source]) -> String {
    let verb = if exit.kind.is_error() { "was ejected" } else { "left" };
    let after = match exit.time_ns {
        ns @ ..1_000_000_000 => milliseconds(ns),
        ns => seconds(ns),
    };
    let after = format!("the scheduler {verb} after {after}: {exit}");
    let Some(origin) = &exit.origin else { return after };
    let mut text = after;
    if exit.kind == ExitKind::ErrorStall {
        text += &format!("; last callback {}", origin.callback);
    } else if exit.message.starts_with(&origin.callback) {
        text.push(',');
    } else {
        text += &format!(", in {}", origin.callback);
    }
    text += &about(origin);
    if let [first, others @ ..] = sources {
        let at = if first.is_exact { "at" } else { "at or after" };
        let others = others.iter().map(|source| format!(" or {}", source.line.line));
        text += &format!(", {at} {}{}", first.line, others.collect::<String>());
    }
    text
}

fn about(origin: &Origin) -> String {
    let task = origin.task.as_ref().map_or(String::new(), |task| format!(" for {task}"));
    format!("{task} on CPU {}", origin.cpu)
}

fn details(exit: &Exit, sources: &[Source]) -> Vec<String> {
    let Some(origin) = &exit.origin else { return Vec::new() };
    let with_text = sources.iter().map(|source| &source.line).filter(|line| !line.text.is_empty());
    let mut lines: Vec<String> =
        with_text.map(|line| format!("{line}: {}", line.text.trim())).collect();
    if !origin.calls.is_empty() {
        lines.push(format!("last callbacks{}:", about(origin).replace(" for ", " about ")));
    }
    lines.extend(origin.calls.iter().map(|call| {
        let task = call.task.as_ref().map_or("", String::as_str);
        let at = milliseconds(call.time_ns);
        format!("  {at:>14}  CPU {:<3} {:<18} {task}", call.cpu, call.callback)
            .trim_end()
            .to_owned()
    }));
    lines
}

fn seconds(ns: u64) -> String {
    let ms = ns / 1_000_000;
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

fn milliseconds(ns: u64) -> String {
    let us = ns / 1_000;
    format!("{}.{:03} ms", us / 1000, us % 1000)
}
