//! Calling the scheduler.

use fairground_bpf::{Context, Instance, Trap};
use fairground_trace::{CallbackKind, EventKind, TaskId};

use super::{Machine, Step};
use crate::Path;
use crate::kernel::{Kernel, Permission, Slot};
use crate::op::Op;

/// Instructions of the scheduler's program, and the divisions among them, at the start of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    insns: u64,
    divisions: u64,
}

/// A function of the scheduler's program that is about to run.
#[derive(Clone, Copy)]
pub(crate) struct Invocation {
    pub(crate) kind: CallbackKind,
    pub(crate) function: usize,
    /// The task that it is called for.
    pub(crate) subject: Option<Slot>,
    pub(crate) permission: Permission,
}

impl Machine {
    /// `SCX_HAS_OP`: whether the scheduler has a callback, and is in charge.
    #[inline]
    pub(crate) fn has(&self, op: Op) -> bool {
        self.policy.ops.has(op) && !self.broken
    }

    /// Calls a callback on the executing CPU and returns what it returned. `subject` is the task that it is about.
    /// Without that callback, or when it traps: 0.
    #[inline]
    pub(crate) fn call(&mut self, op: Op, subject: Option<Slot>, args: &[u64]) -> u64 {
        let Some(function) = self.policy.ops.function(op) else { return 0 };
        if self.broken {
            return 0;
        }
        if !self.kernel.left_custody.is_empty() {
            self.tell_left();
        }
        let permission = Permission::of(op, subject.filter(|_| op.is_about_its_task()));
        let entry = Invocation { kind: op.kind(), function, subject, permission };
        let what = || format!("ops.{}()", op.name());
        self.kernel.calls_ns += self.kernel.cost.call_ns;
        let (value, _) =
            self.execute(entry, what, |program, kernel| program.call(function, args, kernel));
        value
    }

    /// Runs a function of the scheduler's program on the executing CPU: what it returned, and the instructions that it
    /// executed. A trap ends the scheduler's time in charge: it is not called again, and 0 is returned; one in the
    /// dump, which follows that end, ends the dump. `what` names the function in the message then.
    #[inline]
    pub(crate) fn execute(
        &mut self,
        entry: Invocation,
        what: impl FnOnce() -> String,
        run: impl FnOnce(&mut Instance<Kernel>, &mut Kernel) -> Result<u64, Trap>,
    ) -> (u64, u64) {
        let Invocation { kind, function, subject, permission } = entry;
        self.kernel.permission = permission;
        self.set_context();
        if kind != CallbackKind::Other {
            self.kernel.remember_call(kind, permission.task());
        }
        let was_in_charge = self.kernel.exit.is_none();
        let before = self.program.insns();
        let result = run(&mut self.program, &mut self.kernel);
        let insns = self.program.insns() - before;
        self.kernel.idle_shown = false;
        self.kernel.counters.count_callback(kind);
        // What the loader runs, and what is called at events (`Other`), is no callback.
        if self.kernel.trace_options.callbacks && kind != CallbackKind::Other {
            let task = subject.map_or(TaskId::IDLE, |slot| self.kernel.task(slot).id);
            let cpu = self.kernel.this_cpu;
            self.kernel.emit(cpu, insns, EventKind::Callback { kind, task });
        }
        if let Err(trap) = &result {
            self.trapped(&what(), trap);
        }
        if was_in_charge && self.kernel.exit.is_some() {
            let place = result.as_ref().err().and_then(Trap::place);
            self.kernel.explain_call(&self.policy, (kind, function), subject, place);
        }
        (result.unwrap_or(0), insns)
    }

    /// Calls a callback about one task, if the scheduler has it: `op(p)`, or `op(p, value)`.
    #[inline(always)]
    pub(crate) fn call_task(&mut self, op: Op, slot: Slot, value: Option<u64>) {
        if self.kernel.check {
            self.kernel.check_order(op, slot);
        }
        if self.has(op) {
            let args = [self.kernel.task(slot).addr, value.unwrap_or(0)];
            self.call(op, Some(slot), &args[..1 + usize::from(value.is_some())]);
        }
    }

    /// Sets the CPU, the time and the current task for the program.
    #[inline]
    fn set_context(&mut self) {
        let cpu = self.kernel.this_cpu;
        let (now_ns, task) = (self.kernel.clock.now_ns(), self.kernel.curr_addr(cpu));
        *self.program.context() = Context { cpu, now_ns, task };
    }

    /// The scheduler's program ended in a trap. In a callback of the dump that ends the dump only.
    #[cold]
    fn trapped(&mut self, what: &str, trap: &Trap) {
        self.kernel.queues.end_all();
        let text = format!("{what}: {trap}");
        if let Some(dump) = &mut self.kernel.dump {
            return dump.fail(&text);
        }
        self.broken = true;
        if self.kernel.exit.is_some() {
            // The scheduler is already out, for another reason; the trap is reported nevertheless.
            self.kernel.print_line(&text);
        }
        self.kernel.error(text);
    }

    /// Begins to measure what the scheduler's program executes.
    #[inline]
    pub(crate) fn meter(&self) -> Meter {
        Meter { insns: self.program.insns(), divisions: self.program.divisions() }
    }

    /// Instructions since `meter`, booked on a path.
    #[inline]
    pub(crate) fn book(&mut self, path: Path, meter: Meter) -> u64 {
        let insns = self.program.insns() - meter.insns;
        let divisions = self.program.divisions() - meter.divisions;
        self.kernel.counters.count_path(path, insns, divisions);
        insns
    }

    /// The cost of the scheduler's instructions and calls since the last time, ns; fractions are carried over.
    #[inline]
    pub(crate) fn policy_ns(&mut self, insns: u64) -> u64 {
        let calls_ns = self.program.take_spent() + std::mem::take(&mut self.kernel.calls_ns);
        self.kernel.cost.policy_ns(insns, &mut self.carry_ps).saturating_add(calls_ns)
    }

    /// Runs a step and charges a CPU for what the scheduler executed in it.
    pub(crate) fn at_its_cost(&mut self, cpu: u32, step: impl FnOnce(&mut Self) -> Step) -> Step {
        let before = self.program.insns();
        step(self)?;
        let ns = self.policy_ns(self.program.insns() - before);
        self.kernel.charge(cpu, ns);
        Ok(())
    }
}
