//! Events of the kernel at which programs of the object are called that are no callbacks of its scheduler.
//!
//! A program is called on the executing CPU, where the kernel has the event, and its instructions count like those of
//! the callbacks around it. No event happens while a program runs, so that none is called again within itself (the
//! kernel skips such calls).

use std::sync::Arc;

use fairground_bpf::FuncRef;
use fairground_trace::CallbackKind;

use super::{ARGS_MAX, CONTEXT_BYTES, Event, PATH_BYTES, Way};
use crate::actors::FutexOp;
use crate::cgroup::CgroupRef;
use crate::flow::{Invocation, Machine, Step};
use crate::kernel::{Permission, Slot};
use crate::layout::offsets::task as field;

/// `__NR_futex`.
const NR_FUTEX: u64 = 202;
/// Where the objects of futexes lie, and how far they are from each other.
const FUTEXES: u64 = 0x7000_0000_0000;
const FUTEX_BYTES: u64 = 64;

impl Machine {
    /// A tracepoint: calls the programs that are attached to it with its arguments.
    #[inline]
    pub(crate) fn raise(&mut self, event: Event, args: &[u64]) -> Step {
        match self.policy.tracing.has(event) {
            true => self.call_attached((event, Way::Args), args, 0),
            false => Ok(()),
        }
    }

    /// A tracepoint about one task.
    #[inline]
    pub(crate) fn raise_task(&mut self, event: Event, slot: Slot) -> Step {
        self.raise(event, &[self.kernel.task(slot).addr])
    }

    /// A switch, before the next task runs.
    #[inline]
    pub(crate) fn raise_switch(
        &mut self,
        cpu: u32,
        prev: Option<Slot>,
        next: Option<Slot>,
    ) -> Step {
        if next == prev || !self.policy.tracing.has(Event::SchedSwitch) {
            return Ok(());
        }
        let idle = self.kernel.cpus[cpu as usize].idle_addr;
        let addr = |slot: Option<Slot>| slot.map_or(idle, |slot| self.kernel.task(slot).addr);
        let (prev, next) = (addr(prev), addr(next));
        let state = self.program.memory().load_u32(prev + field::STATE)?;
        self.raise(Event::SchedSwitch, &[0, prev, next, u64::from(state)])
    }

    /// A task moves to a cgroup, as the only one of its process.
    pub(crate) fn raise_attach(&mut self, slot: Slot, to: CgroupRef) -> Step {
        if !self.policy.tracing.has(Event::CgroupAttachTask) {
            return Ok(());
        }
        let path = self.kernel.cgroups.get(to).path.trim_start_matches('/');
        let mut path = format!("/{path}").into_bytes();
        path.truncate(PATH_BYTES as usize - 1);
        path.push(0);
        let at = self.trace_context + CONTEXT_BYTES;
        self.program.memory().write(at, &path)?;
        let args = [self.kernel.cgroups.addr(to), at, self.kernel.task(slot).addr, 1];
        self.raise(Event::CgroupAttachTask, &args)
    }

    /// The scheduler's table is about to be registered.
    pub(crate) fn raise_register(&mut self) -> Step {
        let args = [0, 0];
        self.raise_function(Event::Register, Way::Entry, &args, 0)
    }

    /// The same once it is registered.
    pub(crate) fn raise_registered(&mut self) -> Step {
        self.raise_function(Event::Register, Way::Exit, &[0, 0], 0)
    }

    /// The running task of a CPU enters a system call of a futex.
    pub(crate) fn enter_futex(&mut self, cpu: u32, op: FutexOp, object: u64) -> Step {
        let address = FUTEXES + object.wrapping_mul(FUTEX_BYTES);
        self.at_its_cost(cpu, |machine| {
            let args = [address, op.number(), 0, 0, 0, 0];
            machine.raise_record(Event::SysEnterFutex, &args)?;
            let (event, count) = function_of(op);
            machine.raise_function(event, Way::Entry, &[address, 0, 0, 0, 0][..count], 0)
        })
    }

    /// It leaves it.
    pub(crate) fn exit_futex(&mut self, cpu: u32, op: FutexOp, object: u64, result: i64) -> Step {
        let address = FUTEXES + object.wrapping_mul(FUTEX_BYTES);
        self.at_its_cost(cpu, |machine| {
            let (event, count) = function_of(op);
            let args = &[address, 0, 0, 0, 0][..count];
            machine.raise_function(event, Way::Exit, args, result)?;
            machine.raise_record(Event::SysExitFutex, &[result as u64])
        })
    }

    /// A tracepoint of a system call, as its record: the common part, the number of the call, and its arguments.
    fn raise_record(&mut self, event: Event, args: &[u64]) -> Step {
        if !self.policy.tracing.has(event) {
            return Ok(());
        }
        let pid = self.kernel.cpus[self.kernel.this_cpu as usize].curr();
        let pid = pid.map_or(0, |slot| u64::from(self.kernel.task(slot).pid));
        let record = [&[pid << 32, NR_FUTEX], args].concat();
        self.call_attached((event, Way::Record), &record, 0)
    }

    /// A function begins, or has returned `result`.
    fn raise_function(&mut self, event: Event, way: Way, args: &[u64], result: i64) -> Step {
        match self.policy.tracing.has(event) {
            true => self.call_attached((event, way), args, result),
            false => Ok(()),
        }
    }

    /// Calls the programs of an event one after the other. Their context are these words and the result; the word
    /// before it is how many they are.
    fn call_attached(&mut self, (event, way): (Event, Way), words: &[u64], result: i64) -> Step {
        debug_assert!(words.len() <= ARGS_MAX + 2, "the context has room for them");
        let mut from = 0;
        while let Some((number, function)) = self.policy.tracing.next(from, event, way) {
            from = number + 1;
            if self.broken || self.kernel.exit.is_some() {
                return Ok(());
            }
            let mem = self.program.memory();
            let all = [words.len() as u64].into_iter().chain(words.iter().copied());
            for (at, word) in (self.trace_context..).step_by(8).zip(all.chain([result as u64])) {
                mem.store_u64(at, word)?;
            }
            let args = [self.trace_context + 8, 0, 0, 0, 0];
            let (kind, permission) = (CallbackKind::Other, Permission::TRACING);
            let entry = Invocation { kind, function, subject: None, permission };
            self.kernel.calls_ns += self.kernel.cost.call_ns;
            let image = Arc::clone(&self.policy.image);
            let what = || format!("the program {}", image.linked().functions[function].name);
            self.execute(entry, what, |program, kernel| {
                program.call_function(FuncRef(function), args, kernel)
            });
        }
        Ok(())
    }
}

/// The function of the kernel that an operation of a futex is, and how many arguments it has.
fn function_of(op: FutexOp) -> (Event, usize) {
    match op {
        FutexOp::Wait => (Event::FutexWait, 5),
        FutexOp::Wake => (Event::FutexWake, 5),
        FutexOp::LockPi => (Event::FutexLockPi, 4),
        FutexOp::UnlockPi => (Event::FutexUnlockPi, 3),
    }
}
