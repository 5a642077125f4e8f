//! Which callback of the scheduler led to its end: for the report, without any effect on the run.

use fairground_bpf::{Callee, Fixup, Linked, TrapPlace};
use fairground_trace::{CallbackKind, TaskId};

use super::Machine;
use crate::exit::{Origin, PastCall};
use crate::kernel::{Called, Op, Slot};
use crate::layout::OPS_CALLBACKS;
use crate::{Exit, ExitKind};

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

/// How the message of a timer that keeps expiring begins.
pub(crate) const TIMER_LIMIT: &str = "timers expire without end";

/// `bpf_timer_start`: its number among the helpers.
const TIMER_START: u32 = 171;

impl Machine {
    /// A callback about `subject` has ended the scheduler's time in charge, or has just trapped at `place`.
    #[cold]
    pub(crate) fn explain_call(
        &mut self,
        kind: CallbackKind,
        function: usize,
        subject: Option<Slot>,
        place: Option<&TrapPlace>,
    ) {
        let task = subject.map_or(TaskId::IDLE, |slot| self.kernel.task(slot).id);
        let (time_ns, cpu) = (self.kernel.clock.now_ns(), self.kernel.this_cpu);
        self.explain(Called { time_ns, task, cpu, kind }, Some(function), place);
    }

    /// The scheduler's time in charge ends between two callbacks: what led there is the last decision on this CPU.
    pub(crate) fn explain_decision(&mut self) {
        if self.kernel.exit.as_ref().is_none_or(|exit| exit.kind != ExitKind::Error) {
            return;
        }
        let failed = |name: &&&str| {
            let message = self.kernel.exit.as_ref().map_or("", |exit| exit.message.as_str());
            message.strip_prefix("ops.").is_some_and(|rest| rest.starts_with(&format!("{name}()")))
        };
        let named = OPS_CALLBACKS.iter().find(failed);
        let decides = |called: &&Called| match named {
            Some(name) => called.kind.name() == *name,
            None => matches!(
                called.kind,
                CallbackKind::SelectCpu | CallbackKind::Enqueue | CallbackKind::Dispatch
            ),
        };
        let cpu = self.kernel.this_cpu;
        let history = &self.kernel.history;
        let here = history.latest().filter(decides).find(|called| called.cpu == cpu);
        if let Some(called) = here.or_else(|| history.latest().find(decides)).copied() {
            self.explain(called, self.function_of(called.kind), None);
        }
    }

    /// A task has waited for too long: the callback that heard of it last.
    pub(crate) fn explain_stall(&mut self, slot: Slot) {
        let task = self.kernel.task(slot);
        let Some(kind) = task.last_call else { return };
        let called = Called { time_ns: task.runnable_at_ns, task: task.id, cpu: task.cpu, kind };
        self.explain(called, self.function_of(kind), None);
    }

    fn explain(&mut self, called: Called, function: Option<usize>, place: Option<&TrapPlace>) {
        let Some(exit) = &self.kernel.exit else { return };
        if exit.origin.is_some() {
            return;
        }
        let linked = self.policy.image.linked();
        let places = match (place, function) {
            (Some(place), _) => vec![place.clone()],
            (None, Some(function)) => places(linked, function, exit),
            (None, None) => Vec::new(),
        };
        let related = |past: &&Called| {
            past.cpu == called.cpu || (called.task != TaskId::IDLE && past.task == called.task)
        };
        let mut calls: Vec<PastCall> = self
            .kernel
            .history
            .latest()
            .filter(related)
            .take(CALLS_SHOWN)
            .map(|past| PastCall {
                time_ns: past.time_ns,
                cpu: past.cpu,
                callback: callback_name(past.kind),
                task: self.kernel.describe_id(past.task),
            })
            .collect();
        calls.reverse();
        let origin = Origin {
            callback: callback_name(called.kind),
            task: self.kernel.describe_id(called.task),
            cpu: called.cpu,
            places,
            calls,
        };
        if let Some(exit) = &mut self.kernel.exit {
            exit.origin = Some(Box::new(origin));
        }
    }

    fn function_of(&self, kind: CallbackKind) -> Option<usize> {
        Op::ALL.into_iter().find(|op| op.kind() == kind).and_then(|op| self.policy.ops.function(op))
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
