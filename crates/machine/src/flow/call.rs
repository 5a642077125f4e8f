//! Calling the scheduler.

use fairground_trace::{CallbackKind, EventKind, TaskId};

use super::{Machine, Step};
use crate::Path;
use crate::kernel::{Called, Meter, Op, Permission, Slot};

impl Machine {
    /// `SCX_HAS_OP`: whether the scheduler has a callback, and is in charge.
    #[inline]
    pub(crate) fn has(&self, op: Op) -> bool {
        self.policy.ops.has(op) && !self.broken
    }

    /// Calls a callback on the executing CPU and returns what it returned. `subject` is the task that it is about. A
    /// trap ends the scheduler's time in charge: it is not called again, and 0 is returned.
    #[inline]
    pub(crate) fn call(&mut self, op: Op, subject: Option<Slot>, args: &[u64]) -> u64 {
        let Some(function) = self.policy.ops.function(op) else { return 0 };
        if self.broken {
            return 0;
        }
        let about = subject.filter(|_| op.is_about_its_task());
        let inner = Permission::of(op, about);
        let outer = std::mem::replace(&mut self.kernel.permission, inner);
        self.set_context();
        self.remember(op.kind(), subject.filter(|_| op.is_about_its_task()));
        let was_in_charge = self.kernel.exit.is_none();
        let before = self.program.insns();
        let result = self.program.call(function, args, &mut self.kernel);
        self.kernel.calls_ns += self.kernel.cost.call_ns;
        self.kernel.permission = outer;
        self.kernel.idle_shown = false;
        let insns = self.program.insns() - before;
        self.kernel.counters.count_callback(op.kind());
        if self.kernel.trace_options.callbacks {
            let task = subject.map_or(TaskId::IDLE, |slot| self.kernel.task(slot).id);
            let cpu = self.kernel.this_cpu;
            self.kernel.emit(cpu, insns, EventKind::Callback { kind: op.kind(), task });
        }
        let value = match &result {
            Ok(value) => *value,
            Err(trap) => {
                let name = crate::layout::OPS_CALLBACKS[op as usize];
                self.trapped(&format!("ops.{name}()"), trap);
                0
            }
        };
        if was_in_charge && self.kernel.exit.is_some() {
            let place = result.as_ref().err().and_then(fairground_bpf::Trap::place);
            self.explain_call(op.kind(), function, subject, place);
        }
        value
    }

    /// Notes a callback that begins, for the report of a failure.
    #[inline]
    pub(crate) fn remember(&mut self, kind: CallbackKind, about: Option<Slot>) {
        let (time_ns, cpu) = (self.kernel.clock.now_ns(), self.kernel.this_cpu);
        let mut task = TaskId::IDLE;
        if let Some(slot) = about {
            // No part of the machine's state: the checker need not look.
            let about = &mut self.kernel.tasks[slot];
            about.last_call = Some(kind);
            task = about.id;
        }
        self.kernel.history.push(Called { time_ns, task, cpu, kind });
    }

    /// Calls a callback about one task, if the scheduler has it: `op(p)`.
    #[inline]
    pub(crate) fn call_task(&mut self, op: Op, slot: Slot) {
        if self.kernel.check {
            self.check_order(op, slot);
        }
        if self.has(op) {
            let addr = self.kernel.task(slot).addr;
            self.call(op, Some(slot), &[addr]);
        }
    }

    /// Calls a callback about one task with another argument: `op(p, value)`.
    #[inline]
    pub(crate) fn call_task_with(&mut self, op: Op, slot: Slot, value: u64) {
        if self.kernel.check {
            self.check_order(op, slot);
        }
        if self.has(op) {
            let addr = self.kernel.task(slot).addr;
            self.call(op, Some(slot), &[addr, value]);
        }
    }

    /// Tells the program which CPU it runs on, what time it is, and which task is current.
    #[inline]
    pub(crate) fn set_context(&mut self) {
        let cpu = self.kernel.this_cpu;
        let rq = &self.kernel.cpus[cpu as usize];
        let task = rq.curr().map_or(rq.idle_addr(), |slot| self.kernel.task(slot).addr);
        let now_ns = self.kernel.clock.now_ns();
        let context = self.program.context();
        context.cpu = cpu;
        context.now_ns = now_ns;
        context.task = task;
    }

    /// The scheduler's program ended in a trap.
    #[cold]
    pub(crate) fn trapped(&mut self, what: &str, trap: &fairground_bpf::Trap) {
        self.broken = true;
        self.kernel.queues.end_all();
        let text = format!("{what}: {trap}");
        if self.kernel.exit.is_some() {
            // Its time is over already, for another reason; this one is worth telling all the same.
            self.kernel.print_line(&text);
        }
        self.kernel.error(text);
    }

    /// Begins to measure what the scheduler's program executes.
    #[inline]
    pub(crate) fn meter(&self) -> Meter {
        Meter { insns: self.program.insns(), divisions: self.program.divisions() }
    }

    /// What was executed since.
    #[inline]
    pub(crate) fn since(&self, meter: Meter) -> Meter {
        self.meter().less(meter)
    }

    /// Instructions since `meter`, booked on a path.
    #[inline]
    pub(crate) fn book(&mut self, path: Path, meter: Meter) -> u64 {
        let Meter { insns, divisions } = self.since(meter);
        self.kernel.counters.count_path(path, insns, divisions);
        insns
    }

    /// Runs a step on a CPU and returns how many instructions the scheduler executed in it.
    #[inline]
    pub(crate) fn counted(&mut self, step: impl FnOnce(&mut Self) -> Step) -> Step<u64> {
        let before = self.program.insns();
        step(self)?;
        Ok(self.program.insns() - before)
    }
}
