//! Timers of the scheduler's program.

use fairground_bpf::{FuncRef, Trap};
use fairground_trace::{CallbackKind, EventKind, TaskId};

use super::{Machine, Step};
use crate::events::EventHandle;
use crate::kernel::{Permission, agenda};

impl Machine {
    /// `bpf_timer_cb`: a timer's interrupt on the CPU that armed it.
    pub(crate) fn timer_event(&mut self, number: u32) -> Step {
        let now_ns = self.kernel.clock.now_ns();
        let Some(timer) = self.kernel.timers.expire(number, now_ns) else { return Ok(()) };
        let cpu = timer.cpu;
        self.on_cpu(cpu, |machine| {
            machine.wake_from_idle(cpu);
            if machine.broken {
                return Ok(());
            }
            machine.set_context();
            machine.kernel.permission = Permission::UNLOCKED;
            machine.remember(CallbackKind::Timer, None);
            let was_in_charge = machine.kernel.exit.is_none();
            let before = machine.program.insns();
            let result = machine.in_interrupt(|machine| {
                machine.program.call_function(timer.callback, timer.args, &mut machine.kernel)
            });
            machine.kernel.idle_shown = false;
            let insns = machine.program.insns() - before;
            machine.kernel.counters.count_callback(CallbackKind::Timer);
            if machine.kernel.trace_options.callbacks {
                let kind = EventKind::Callback { kind: CallbackKind::Timer, task: TaskId::IDLE };
                machine.kernel.emit(cpu, insns, kind);
            }
            if let Err(trap) = &result {
                machine.trapped("a timer's callback", trap);
            }
            if was_in_charge && machine.kernel.exit.is_some() {
                let place = result.as_ref().err().and_then(Trap::place);
                machine.explain_call(CallbackKind::Timer, timer.callback.0, None, place);
            }
            let ns = machine.kernel.cost.timer_irq_ns + machine.policy_ns(insns);
            machine.kernel.charge(cpu, ns);
            Ok(())
        })
    }

    /// `bpf_prog_run` of a `SEC("syscall")` program, as the object's loader calls it: outside of any callback, without
    /// a context, on CPU 0. A negative result or a trap ends the scheduler's time in charge.
    pub(crate) fn run_program(&mut self, function: usize) {
        if self.broken || self.kernel.exit.is_some() {
            return;
        }
        self.kernel.this_cpu = 0;
        self.set_context();
        self.kernel.permission = Permission::UNLOCKED;
        self.remember(CallbackKind::Other, None);
        let result = self.program.call_function(FuncRef(function), [0; 5], &mut self.kernel);
        self.kernel.idle_shown = false;
        self.kernel.counters.count_callback(CallbackKind::Other);
        let name = self.policy.image.linked().functions[function].name.clone();
        match &result {
            Ok(value) if (*value as i32) < 0 => {
                self.kernel
                    .error(format!("the loader's program {name} failed ({})", *value as i32));
            }
            Ok(_) => {}
            Err(trap) => self.trapped(&format!("the loader's program {name}"), trap),
        }
        if self.kernel.exit.is_some() {
            let place = result.as_ref().err().and_then(Trap::place);
            self.explain_call(CallbackKind::Other, function, None, place);
        }
    }

    /// The programs of each full second, on CPU 0, at the cost of their instructions.
    pub(crate) fn programs_event(&mut self) -> Step {
        self.on_cpu(0, |machine| {
            for function in machine.policy.setup.each_second.clone() {
                let insns = machine.counted(|machine| {
                    machine.run_program(function);
                    Ok(())
                })?;
                let ns = machine.policy_ns(insns);
                machine.kernel.charge(0, ns);
            }
            Ok(())
        })?;
        self.arm_programs();
        Ok(())
    }

    /// The next full second, if there is something to run.
    pub(crate) fn arm_programs(&mut self) {
        const SECOND_NS: u64 = 1_000_000_000;
        if !self.policy.setup.each_second.is_empty() {
            let at = (self.kernel.clock.now_ns() / SECOND_NS + 1) * SECOND_NS;
            self.kernel.events.arm(EventHandle::Machine(agenda::PROGRAMS), at);
        }
    }
}
