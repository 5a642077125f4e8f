//! Which callback of the scheduler led to its end: for the report, without any effect on the run.

use fairground_bpf::{Callee, Fixup, Linked, TrapPlace};
use fairground_trace::{CallbackKind, TaskId};

use super::timers::TIMER_LIMIT;
use super::{Called, Kernel, Slot};
use crate::exit::{Origin, PastCall};
use crate::op::Op;
use crate::tracing::is_traced;
use crate::{Exit, ExitKind, Policy};

/// Callbacks that a report shows.
const CALLS_SHOWN: usize = 8;

/// Functions of the object that are searched for a call, at most: those of a callback and what it calls.
const FUNCTIONS_SEARCHED: usize = 64;

/// Beginnings of messages, and of the names of the kfuncs to which they belong.
const CALLED: [(&str, &str); 8] = [
    ("non-existent DSQ", "scx_bpf_d"),
    ("invalid CPU", "scx_bpf_"),
    ("SCX_DSQ_LOCAL", "scx_bpf_d"),
    ("scheduling for", "scx_bpf_d"),
    ("dispatch buffer", "scx_bpf_d"),
    ("invalid DSQ ID", "scx_bpf_dsq_move_to_local"),
    ("called with NULL task", "scx_bpf_d"),
    (TIMER_LIMIT, "bpf_timer_start"),
];

/// `bpf_timer_start`: its number among the helpers.
const TIMER_START: u32 = 171;

impl Kernel {
    /// Notes a callback that begins, for the report of a failure.
    #[inline]
    pub(crate) fn remember_call(&mut self, kind: CallbackKind, about: Option<Slot>) {
        let (time_ns, cpu) = (self.clock.now_ns(), self.this_cpu);
        let mut task = TaskId::IDLE;
        if let Some(slot) = about {
            // No part of the machine's state: the checker need not look.
            let about = &mut self.tasks[slot];
            about.last_call = Some(kind);
            task = about.id;
        }
        self.history.push(Called { time_ns, task, cpu, kind });
    }

    /// A callback (its kind and function) about `subject` has ended the scheduler's time in charge, or has just trapped
    /// at `place`.
    #[cold]
    pub(crate) fn explain_call(
        &mut self,
        policy: &Policy,
        (kind, function): (CallbackKind, usize),
        subject: Option<Slot>,
        place: Option<&TrapPlace>,
    ) {
        let task = subject.map_or(TaskId::IDLE, |slot| self.task(slot).id);
        let (time_ns, cpu) = (self.clock.now_ns(), self.this_cpu);
        self.explain(policy, Called { time_ns, task, cpu, kind }, Some(function), place);
    }

    /// The scheduler's time in charge ends between two callbacks: what led there is the last decision on this CPU.
    pub(crate) fn explain_decision(&mut self, policy: &Policy) {
        let Some(exit) = self.exit.as_ref().filter(|exit| exit.kind == ExitKind::Error) else {
            return;
        };
        let failed = |name: &&str| {
            let rest = exit.message.strip_prefix("ops.");
            rest.is_some_and(|rest| rest.starts_with(&format!("{name}()")))
        };
        let named = Op::names().find(failed);
        let decides = |called: &&Called| match named {
            Some(name) => called.kind.name() == name,
            None => matches!(
                called.kind,
                CallbackKind::SelectCpu | CallbackKind::Enqueue | CallbackKind::Dispatch
            ),
        };
        let here = self.history.latest().filter(decides).find(|called| called.cpu == self.this_cpu);
        if let Some(called) = here.or_else(|| self.history.latest().find(decides)).copied() {
            self.explain(policy, called, policy.ops.of_kind(called.kind), None);
        }
    }

    /// A task has waited for too long: the last callback about it.
    pub(crate) fn explain_stall(&mut self, policy: &Policy, slot: Slot) {
        let task = self.task(slot);
        let Some(kind) = task.last_call else { return };
        let called = Called { time_ns: task.runnable_at_ns, task: task.id, cpu: task.cpu, kind };
        self.explain(policy, called, policy.ops.of_kind(kind), None);
    }

    fn explain(
        &mut self,
        policy: &Policy,
        called: Called,
        function: Option<usize>,
        place: Option<&TrapPlace>,
    ) {
        let Some(exit) = self.exit.as_ref().filter(|exit| exit.origin.is_none()) else { return };
        let places = match (place, function) {
            (Some(place), _) => vec![place.clone()],
            (None, Some(function)) => places(policy.image.linked(), function, exit),
            (None, None) => Vec::new(),
        };
        let related = |past: &&Called| {
            past.cpu == called.cpu || (called.task != TaskId::IDLE && past.task == called.task)
        };
        // A callback without a kind of its own in the trace is known by its function.
        let op = function.filter(|_| called.kind == CallbackKind::Other).and_then(|function| {
            Op::ALL.iter().find(|op| policy.ops.function(**op) == Some(function))
        });
        let program = function.and_then(|function| policy.image.linked().functions.get(function));
        let traced = program.filter(|program| is_traced(&program.section));
        let name = match (traced, op) {
            (Some(program), _) => format!("{} ({})", program.name, program.section),
            (None, Some(op)) => format!("ops.{}()", op.name()),
            (None, None) => callback_name(called.kind),
        };
        let is_it = |past: &Called| past.kind == called.kind && past.time_ns == called.time_ns;
        let past = |past: &Called| PastCall {
            time_ns: past.time_ns,
            cpu: past.cpu,
            callback: if is_it(past) { name.clone() } else { callback_name(past.kind) },
            task: self.describe_id(past.task),
        };
        let latest = self.history.latest().filter(related).take(CALLS_SHOWN);
        let mut calls: Vec<PastCall> = latest.map(past).collect();
        calls.reverse();
        let origin = Origin {
            callback: name,
            task: self.describe_id(called.task),
            cpu: called.cpu,
            places,
            calls,
        };
        if let Some(exit) = &mut self.exit {
            exit.origin = Some(Box::new(origin));
        }
    }
}

/// As the kernel's messages name a callback.
fn callback_name(kind: CallbackKind) -> String {
    match kind {
        CallbackKind::Timer => "a timer's callback".to_owned(),
        CallbackKind::Other => "a program of the loader".to_owned(),
        kind => format!("ops.{}()", kind.name()),
    }
}

/// Where in the program the end may come from: the calls of the kernel's function that reports it, in the callback
/// and in what it calls; else the callback's first instruction.
fn places(linked: &Linked, function: usize, exit: &Exit) -> Vec<TrapPlace> {
    let wanted = match exit.kind {
        ExitKind::UnregisteredByBpf => Some("scx_bpf_exit"),
        ExitKind::ErrorBpf => Some("scx_bpf_error"),
        ExitKind::Error if exit.message.ends_with("already direct-dispatched") => Some("scx_bpf_d"),
        ExitKind::Error => {
            let of_message = CALLED.iter().find(|(start, _)| exit.message.starts_with(start));
            of_message.map(|(_, kfunc)| *kfunc)
        }
        _ => None,
    };
    let found = wanted.map_or(Vec::new(), |kfunc| calls_of(linked, function, kfunc));
    if !found.is_empty() {
        return found;
    }
    let first = linked.functions.get(function);
    first.map(|entry| TrapPlace { function: entry.name.clone(), insn: 0 }).into_iter().collect()
}

/// Every call of a kernel's function whose name begins so, in a function of the object and in those that it calls.
fn calls_of(linked: &Linked, function: usize, kfunc: &str) -> Vec<TrapPlace> {
    let mut functions = vec![function];
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(entry) = functions.get(next).and_then(|index| linked.functions.get(*index)) {
        next += 1;
        for (slot, fixup) in &entry.fixups {
            let is_wanted = match fixup {
                Fixup::Call(Callee::Kfunc(index)) => {
                    linked.kfuncs.get(*index).is_some_and(|name| name.starts_with(kfunc))
                }
                Fixup::Call(Callee::Helper(TIMER_START)) => kfunc == "bpf_timer_start",
                Fixup::Call(Callee::Function(callee)) => {
                    if !functions.contains(callee) && functions.len() < FUNCTIONS_SEARCHED {
                        functions.push(*callee);
                    }
                    false
                }
                _ => false,
            };
            if is_wanted {
                found.push(TrapPlace { function: entry.name.clone(), insn: *slot });
            }
        }
    }
    found
}
