//! Timers of the scheduler's program.

use fairground_trace::{CallbackKind, EventKind, TaskId};

use super::{Machine, Step};

impl Machine {
    /// `bpf_timer_cb`: a timer's interrupt on the CPU that armed it.
    pub(crate) fn timer_event(&mut self, number: u32) -> Step {
        let Some(timer) = self.kernel.timers.take(number) else { return Ok(()) };
        let cpu = timer.cpu;
        self.on_cpu(cpu, |machine| {
            machine.wake_from_idle(cpu);
            if machine.broken {
                return Ok(());
            }
            machine.set_context();
            machine.kernel.kf_mask = crate::kernel::kf::UNLOCKED;
            machine.kernel.kf_task = None;
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
            if let Err(trap) = result {
                machine.trapped("a timer's callback", &trap);
            }
            let ns = machine.kernel.cost.timer_irq_ns + machine.policy_ns(insns);
            machine.kernel.charge(cpu, ns);
            Ok(())
        })
    }
}
