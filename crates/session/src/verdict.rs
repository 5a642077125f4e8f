//! What a reader of a result must know first: what ended the run, what is partial, which tasks never ran.

use fairground_analysis::{Analysis, NeverRan};
use fairground_machine::{ECODE_ACT_RESTART, Exit, ExitKind, Origin, Waiting, WaitingPlace};
use fairground_realkernel::job::Charge;
use fairground_trace::TaskId;

use crate::outcome::{Outcome, TargetReport};
use crate::sources::Source;

/// Exit code: the scheduler left (`scx_bpf_exit`), or the kernel detached it without an error.
pub const EXIT_LEFT: u8 = 41;
/// Exit code: a task was runnable for longer than the watchdog's timeout without running.
pub const EXIT_STALLED: u8 = 42;
/// Exit code: the scheduler was ejected for an error.
pub const EXIT_EJECTED: u8 = 43;

/// Exit code: a variable does not hold what is expected, or a run that checks itself ends with tasks that have waited
/// for long.
const EXIT_UNEXPECTED: u8 = 1;

/// A task that has waited for less than this at the end may just have come, ns.
const WAIT_MIN_NS: u64 = 10_000_000;
/// A task in a dispatch queue waits for long if its wait is longer than this part of the run …
const LONG_WAIT_PART: u64 = 8;
/// … and so much CPU time was due to it meanwhile, ns: however many tasks share a CPU and whatever their weights, a fair
/// scheduler owes a waiter a slice or two, and the longest slice of Linux is 100 ms at nice 0.
const LONG_WAIT_DUE_NS: u64 = 100_000_000;
/// Tasks that are named; the others are counted.
const NAMES_SHOWN: usize = 5;
/// Lines of the scheduler's dump that are shown; the others are counted.
const DUMP_LINES_SHOWN: usize = 24;

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

/// The exit code for the kernel's number of an exit kind (`enum scx_exit_kind`); 0 when the scheduler stayed to the
/// end.
pub fn exit_code(kind: u64) -> u8 {
    let is = |of: ExitKind| kind == u64::from(of.number());
    match kind {
        _ if is(ExitKind::ErrorStall) => EXIT_STALLED,
        kind if kind >= u64::from(ExitKind::Error.number()) => EXIT_EJECTED,
        _ if is(ExitKind::UnregisteredByBpf) || is(ExitKind::UnregisteredByKernel) => EXIT_LEFT,
        _ => 0,
    }
}

/// The tasks that are runnable at the end of what was analysed and that it shows on no CPU, the one that has waited
/// longest first; without those that may just have come.
pub fn never_ran_tasks(analysis: &Analysis) -> Vec<NeverRan> {
    long_enough(analysis.never_ran())
}

/// The statement about tasks that have never run ([`Analysis::never_ran`]).
pub fn never_ran(tasks: Vec<NeverRan>) -> Option<Verdict> {
    never_ran_at(tasks, |_| String::new())
}

fn never_ran_at(tasks: Vec<NeverRan>, place: impl Fn(TaskId) -> String) -> Option<Verdict> {
    let tasks = long_enough(tasks);
    let name = |NeverRan { task, name, waiting_ns, .. }: &NeverRan| {
        format!("{name} (waiting for {}{})", seconds(*waiting_ns), place(*task))
    };
    let names: Vec<String> = tasks.iter().take(NAMES_SHOWN).map(name).collect();
    let subject = match tasks.len() {
        0 => return None,
        1 => "1 task".to_owned(),
        several => format!("{several} tasks"),
    };
    let more = match tasks.len().saturating_sub(NAMES_SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(Verdict::warning(format!("{subject} never ran: {}{more}", names.join(", "))))
}

fn long_enough(mut tasks: Vec<NeverRan>) -> Vec<NeverRan> {
    tasks.retain(|task| task.waiting_ns >= WAIT_MIN_NS);
    tasks
}

/// The statement about the end of a scheduler of a simulated machine; `None` if it stayed to the end of the run.
pub fn ended(exit: &Exit, sources: &[Source]) -> Option<Verdict> {
    (exit_code(u64::from(exit.kind.number())) != 0).then(|| Verdict {
        severity: Severity::Failure,
        text: describe(exit, sources),
        details: details(exit, sources),
    })
}

impl Verdict {
    fn warning(text: String) -> Verdict {
        Verdict { severity: Severity::Warning, text, details: Vec::new() }
    }
}

impl Outcome {
    /// The process's exit code for this run: the worse, the larger.
    pub fn exit_code(&self) -> u8 {
        let kind = match &self.report {
            TargetReport::Simulated { exit, .. } => Some(u64::from(exit.kind.number())),
            TargetReport::Real { job, .. } => job.exit.as_ref().and_then(|exit| exit.kind),
        };
        let by_itself = self.loader().is_some_and(|loader| loader.by_itself);
        match kind.map_or(0, exit_code) {
            0 if by_itself => EXIT_LEFT,
            0 if self.was_replaced() => EXIT_EJECTED,
            0 if !self.variables.unmet.is_empty() => EXIT_UNEXPECTED,
            0 if self.checks() && self.waits().next().is_some() => EXIT_UNEXPECTED,
            code => code,
        }
    }

    /// Whether the load of a run on a real kernel did not start, since its scheduler was not in charge any more.
    pub fn not_started(&self) -> bool {
        self.charge().is_some_and(|charge| !charge.at_start)
    }

    /// Whether the kernel's own scheduler was in charge at one end of a run under another one.
    fn was_replaced(&self) -> bool {
        self.charge().is_some_and(|charge| !charge.at_start || !charge.at_end)
    }

    fn charge(&self) -> Option<Charge> {
        match &self.report {
            TargetReport::Simulated { .. } => None,
            TargetReport::Real { job, .. } => job.charge,
        }
    }

    /// Why the scheduler ended before the run: it was ejected, or left (`scx_bpf_exit`).
    pub fn ejection(&self) -> Option<String> {
        self.ended().map(|verdict| verdict.text)
    }

    fn ended(&self) -> Option<Verdict> {
        let job = match &self.report {
            TargetReport::Simulated { exit, sources, .. } => return ended(exit, sources),
            TargetReport::Real { job, .. } => job,
        };
        let code = self.exit_code();
        let exit = job.exit.as_ref().filter(|_| code != 0)?;
        if let Some(loader) = job.loader.as_ref().filter(|loader| loader.by_itself)
            && exit.kind.map_or(0, exit_code) == 0
        {
            let text = format!("the scheduler left: its loader ended: {}", loader.end);
            return Some(Verdict { severity: Severity::Failure, text, details: Vec::new() });
        }
        let what = match code {
            EXIT_LEFT => "the scheduler left",
            _ => "the kernel ejected the scheduler",
        };
        let when = if self.not_started() { " before the load began" } else { "" };
        let message = if exit.message.is_empty() { "" } else { ": " };
        let text = format!("{what}{when}: {}{message}{}", exit.reason, exit.message);
        let details = restart(exit.code.unwrap_or(0)).into_iter().collect();
        Some(Verdict { severity: Severity::Failure, text, details })
    }

    /// What heads the result of this run, the worst first; nothing when it ran to its end and every task ran.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::from_iter(self.ended());
        verdicts.extend(self.variables.unmet.iter().map(|unmet| Verdict {
            severity: Severity::Failure,
            text: format!("not as expected: {unmet}"),
            details: Vec::new(),
        }));
        if let Some(reached_ns) = self.partial_ns {
            verdicts.push(Verdict::warning(format!(
                "partial: it was interrupted after {} of simulated time, and what is measured \
                 is measured up to there",
                seconds(reached_ns)
            )));
        }
        verdicts.extend(self.waits());
        verdicts
    }

    /// Whether the run checked the machine's rules (`--check`).
    fn checks(&self) -> bool {
        matches!(&self.report, TargetReport::Simulated { machine, .. } if machine.check)
    }

    /// Tasks that wait at the end, and have done so for long.
    fn waits(&self) -> impl Iterator<Item = Verdict> {
        let waiting = match &self.report {
            TargetReport::Simulated { waiting, .. } => waiting.as_slice(),
            TargetReport::Real { .. } => &[],
        };
        let place = |task: TaskId| {
            let waits = waiting.iter().find(|waits| waits.task == task);
            waits.map_or_else(String::new, place_of)
        };
        let has_run =
            |waits: &&Waiting| self.analysis.task(waits.task).is_some_and(|task| task.has_run);
        let window_ns = self.analysis.window_ns();
        let (with_scheduler, queued): (Vec<&Waiting>, Vec<&Waiting>) = waiting
            .iter()
            .filter(has_run)
            .partition(|waits| waits.place == WaitingPlace::Scheduler);
        let forgotten_ns = (window_ns / 2).max(WAIT_MIN_NS);
        let forgotten = with_scheduler.into_iter().filter(|waits| waits.waited_ns > forgotten_ns);
        let long_ns = window_ns / LONG_WAIT_PART;
        let starved = queued
            .into_iter()
            .filter(|waits| waits.waited_ns > long_ns && waits.due_ns >= LONG_WAIT_DUE_NS);
        let forgotten = self.named(forgotten.collect(), |count| {
            format!(
                "the scheduler took {count} of the tasks and put them into no dispatch queue since"
            )
        });
        let starved = self.named(starved.collect(), |count| match count {
            1 => "1 task has waited to the end of the run".to_owned(),
            count => format!("{count} tasks have waited to the end of the run"),
        });
        never_ran_at(self.analysis.never_ran(), place).into_iter().chain(forgotten).chain(starved)
    }

    /// A statement about tasks that wait, with their names.
    fn named(&self, waiting: Vec<&Waiting>, subject: impl Fn(usize) -> String) -> Option<Verdict> {
        let name = |waits: &&Waiting| {
            let task = self.analysis.task(waits.task)?;
            let place = match waits.place {
                WaitingPlace::Scheduler => String::new(),
                _ => place_of(waits),
            };
            Some(format!("{} (waiting for {}{place})", task.name, seconds(waits.waited_ns)))
        };
        let names: Vec<String> = waiting.iter().take(NAMES_SHOWN).filter_map(name).collect();
        let more = match waiting.len().saturating_sub(NAMES_SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        (!waiting.is_empty()).then(|| {
            Verdict::warning(format!("{}: {}{more}", subject(waiting.len()), names.join(", ")))
        })
    }
}

/// Where a task waits, and where it might run, behind a comma.
fn place_of(waits: &Waiting) -> String {
    let queue = match waits.place {
        WaitingPlace::Scheduler => {
            return ", taken by ops.enqueue() and in no dispatch queue".to_owned();
        }
        WaitingPlace::Global => "the global dispatch queue".to_owned(),
        WaitingPlace::Queue(id) => format!("dispatch queue {id:#x}"),
        WaitingPlace::Local(cpu) => format!("the local queue of CPU {cpu}"),
    };
    let mut text = match waits.position {
        Some((position, len)) => format!(", place {position} of {len} in {queue}"),
        None => format!(", in {queue}"),
    };
    if let Some(allowed) = &waits.allowed {
        text += &format!("; it may use {}", cpus(allowed));
    }
    if !waits.idle.is_empty() {
        text += &format!("; idle: {}", cpus(&waits.idle));
    }
    text
}

/// `CPU 3`, or `CPUs 0-2,5`.
fn cpus(ranges: &[(u32, u32)]) -> String {
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let plural = if matches!(ranges, [(first, last)] if first == last) { "" } else { "s" };
    format!("CPU{plural} {}", ranges.iter().map(range).collect::<Vec<_>>().join(","))
}

/// An exit in words: what, in which callback for which task, and where in the source.
fn describe(exit: &Exit, sources: &[Source]) -> String {
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
    let mut lines = exit.origin.as_deref().map_or(Vec::new(), |origin| led_to(origin, sources));
    lines.extend(restart(exit.code));
    let own = &exit.dump.own;
    if !own.is_empty() {
        lines.push("the scheduler's dump:".to_owned());
        lines.extend(own.iter().take(DUMP_LINES_SHOWN).map(|line| format!("  {line}")));
    }
    if own.len() > DUMP_LINES_SHOWN {
        lines.push(format!("  … and {} lines", own.len() - DUMP_LINES_SHOWN));
    }
    lines
}

/// What a loader does with an exit code of the system's action `SCX_ECODE_ACT_RESTART`; `None`: it is of another one.
fn restart(code: i64) -> Option<String> {
    (code as u64 & ECODE_ACT_RESTART != 0).then(|| {
        "the exit code asks for a restart (SCX_ECODE_ACT_RESTART): a loader attaches the scheduler again; this run ends \
         here. A scheduler with ops.cpu_online() and ops.cpu_offline() stays when CPUs come and go"
            .to_owned()
    })
}

/// Where in the source it was, and the last callbacks.
fn led_to(origin: &Origin, sources: &[Source]) -> Vec<String> {
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
