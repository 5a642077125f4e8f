//! The dump of the state at an error (`scx_dump_state`).

use fairground_bpf::{InstanceError, Memory, Trap};

use super::DumpText;
use crate::abi::EXIT_DUMP_DFL_LEN;
use crate::flow::{Machine, Step};
use crate::kernel::{Kernel, OpsState, ScxState, Slot, Task};
use crate::layout::offsets::dump_ctx;
use crate::op::Op;
use crate::{Exit, ExitKind};

/// How the lines of `ops.dump_cpu()` and `ops.dump_task()` begin.
const OF_CPU: &str = "  ";
const OF_TASK: &str = "    ";

impl Machine {
    /// Writes the dump: what the scheduler adds about itself, then every CPU that is not idle with the tasks that are
    /// runnable there, and what the scheduler adds about each. Callbacks: `dump`, `dump_cpu`, `dump_task`; the first
    /// one that fails ends the dump.
    pub(crate) fn dump_state(&mut self) -> Step {
        let Some(exit) = self.kernel.exit.clone().filter(|exit| exit.kind.is_error()) else {
            return Ok(());
        };
        let limit = match self.policy.ops.exit_dump_len {
            0 => EXIT_DUMP_DFL_LEN,
            bytes => bytes,
        };
        let (was_on, exit_cpu) = (self.kernel.this_cpu, self.kernel.exit_cpu);
        self.kernel.dump = Some(DumpText::new(limit as usize));
        let context = self.dump_context(&exit)?;
        self.dump_call(Op::Dump, "", None, &[context]);
        // A stall is found from outside; else the CPU of the error comes first, whatever does not fit in then.
        let first = (exit.kind != ExitKind::ErrorStall).then_some(exit_cpu);
        let others = (0..self.kernel.nr_cpus()).filter(|cpu| Some(*cpu) != first);
        for cpu in first.into_iter().chain(others) {
            if self.kernel.dump.as_ref().is_some_and(DumpText::has_failed) {
                break;
            }
            self.dump_cpu(context, cpu);
        }
        self.kernel.this_cpu = was_on;
        if let (Some(dump), Some(exit)) = (self.kernel.dump.take(), &mut self.kernel.exit) {
            exit.dump = dump.finish();
        }
        Ok(())
    }

    /// `scx_dump_cpu`. An idle CPU is left out unless the scheduler has something to say about it.
    fn dump_cpu(&mut self, context: u64, cpu: u32) {
        self.kernel.this_cpu = cpu;
        let curr = self.kernel.cpus[cpu as usize].curr();
        let waiting = self.kernel.runnable_on(cpu);
        let idle = curr.is_none() && waiting.is_empty();
        let runs = curr.map_or("idle".to_owned(), |slot| self.kernel.describe(slot));
        let count = waiting.len();
        let head = format!("CPU {cpu}: runs {runs}, {count} waiting");
        if let Some(dump) = &mut self.kernel.dump {
            dump.head(head, idle);
        }
        let number = self.kernel.cids.told(cpu);
        self.dump_call(Op::DumpCpu, OF_CPU, None, &[context, number, u64::from(idle)]);
        for slot in curr.into_iter().chain(waiting) {
            if !self.kernel.task(slot).rt.is_rt() {
                self.dump_task(context, slot);
            }
        }
    }

    /// `scx_dump_task`.
    fn dump_task(&mut self, context: u64, slot: Slot) {
        let line = self.kernel.dump_line(self.program.memory(), slot);
        if let Some(dump) = &mut self.kernel.dump {
            dump.head(line, false);
        }
        let addr = self.kernel.task(slot).addr;
        self.dump_call(Op::DumpTask, OF_TASK, Some(slot), &[context, addr]);
    }

    /// Calls one of the callbacks, whose lines begin with `prefix`.
    fn dump_call(&mut self, op: Op, prefix: &'static str, subject: Option<Slot>, args: &[u64]) {
        if !self.has(op) || self.kernel.dump.as_ref().is_none_or(DumpText::has_failed) {
            return;
        }
        if let Some(dump) = &mut self.kernel.dump {
            dump.begin(prefix);
        }
        self.call(op, subject, args);
        if let Some(dump) = &mut self.kernel.dump {
            dump.end();
        }
    }

    /// The `struct scx_dump_ctx` of the callbacks.
    fn dump_context(&self, exit: &Exit) -> Step<u64> {
        let full = |error: InstanceError| Trap::host(error.to_string());
        let mem = self.program.memory();
        let reason = mem.alloc(exit.reason.len() as u64 + 1, 8).map_err(full)?;
        mem.write(reason, exit.reason.as_bytes())?;
        let context = mem.alloc(dump_ctx::SIZE, 8).map_err(full)?;
        mem.store_u32(context + dump_ctx::KIND, exit.kind.number())?;
        mem.store_u64(context + dump_ctx::EXIT_CODE, exit.code as u64)?;
        mem.store_u64(context + dump_ctx::REASON, reason)?;
        mem.store_u64(context + dump_ctx::AT_NS, self.kernel.clock.now_ns())?;
        mem.store_u64(context + dump_ctx::AT_JIFFIES, self.kernel.clock.jiffies())?;
        Ok(context)
    }
}

impl Kernel {
    /// The tasks of the scheduler that wait for a CPU there, the one that has waited longest first
    /// (`rq->scx.runnable_list`).
    pub(crate) fn runnable_on(&self, cpu: u32) -> Vec<Slot> {
        let waits = |(_, task): &(Slot, &Task)| {
            task.cpu == cpu && task.waiting && task.scx_state == ScxState::Enabled
        };
        let mut slots: Vec<Slot> = self.tasks.iter().filter(waits).map(|(slot, _)| slot).collect();
        slots.sort_by_key(|slot| (self.task(*slot).runnable_at_ns, self.task(*slot).pid));
        slots
    }

    /// The dump's lines about a task.
    pub(crate) fn dump_line(&self, mem: &Memory, slot: Slot) -> String {
        let task = self.task(slot);
        let place = match self.queues.queue_of(slot.0) {
            _ if self.runs(slot) => "runs",
            _ if task.ops_state == OpsState::Queued => "taken by the scheduler",
            Some(queue) if queue == self.cpus[task.cpu as usize].local => "in the local queue",
            Some(_) => "in a dispatch queue",
            None => "in no queue",
        };
        let since_ms = self.clock.now_ns().saturating_sub(task.runnable_at_ns) / 1_000_000;
        let number =
            |read: Result<u64, Trap>| read.map_or("?".to_owned(), |value| value.to_string());
        format!(
            "  {}: {place}, runnable for {since_ms} ms, slice {}, vtime {}, weight {}",
            self.describe(slot),
            number(task.slice(mem)),
            number(task.vtime(mem)),
            task.weight()
        )
    }
}
