//! Timers of the scheduler's program, and programs that its loader runs.

use fairground_bpf::FuncRef;
use fairground_trace::CallbackKind;

use super::call::Invocation;
use super::{Machine, Step};
use crate::kernel::{Permission, Timer, agenda};
use crate::setup::PreparedRun;

impl Machine {
    /// `bpf_timer_cb`: a timer's interrupt on the CPU that armed it.
    pub(crate) fn timer_event(&mut self, number: u32) -> Step {
        let now_ns = self.kernel.clock.now_ns();
        let Some(timer) = self.kernel.timers.expire(number, now_ns) else { return Ok(()) };
        let cpu = timer.cpu;
        self.on_cpu(cpu, |machine| {
            machine.kernel.wake_from_idle(cpu);
            machine.run_timer(timer)
        })
    }

    /// A timer's callback, as an interrupt of the executing CPU.
    pub(crate) fn run_timer(&mut self, timer: Timer) -> Step {
        if self.broken {
            return Ok(());
        }
        let insns = self.in_interrupt(|machine| {
            let what = || "a timer's callback".to_owned();
            let (kind, function) = (CallbackKind::Timer, timer.callback);
            Ok(machine.execute_unlocked(kind, function, timer.args, what).1)
        })?;
        let ns = self.kernel.cost.timer_irq_ns + self.policy_ns(insns);
        self.kernel.charge(timer.cpu, ns);
        Ok(())
    }

    /// `bpf_prog_run` of a `SEC("syscall")` program, as the object's loader calls it: outside of any callback, with the
    /// context that the loader passes, on its CPU. A negative result or a trap ends the scheduler's time in charge.
    pub(crate) fn run_program(&mut self, run: &PreparedRun) {
        if self.broken || self.kernel.exit.is_some() {
            return;
        }
        self.kernel.this_cpu = self.kernel.interrupted_cpu(run.cpu());
        let function = run.function;
        let name =
            format!("the loader's program {}", self.policy.image.linked().functions[function].name);
        let context = match run.pass(&self.program, &self.saved) {
            Ok(address) => address,
            Err(error) => return self.kernel.error(format!("{name} cannot be run: {error}")),
        };
        let (kind, what) = (CallbackKind::Other, || name.clone());
        let args = [context, 0, 0, 0, 0];
        let (value, _) = self.execute_unlocked(kind, FuncRef(function), args, what);
        if let Err(error) = run.take_back(context, &self.program, &mut self.saved) {
            self.kernel.error(format!("{name}: {error}"));
        }
        let result = value as i32;
        if result < 0 {
            self.kernel.error(format!("{name} failed ({result})"));
            self.kernel.explain_call(&self.policy, (kind, function), None, None);
        }
    }

    /// Runs a function of the program outside of the scheduler's callbacks.
    fn execute_unlocked(
        &mut self,
        kind: CallbackKind,
        function: FuncRef,
        args: [u64; 5],
        what: impl FnOnce() -> String,
    ) -> (u64, u64) {
        let permission = Permission::UNLOCKED;
        let entry = Invocation { kind, function: function.0, subject: None, permission };
        self.execute(entry, what, |program, kernel| program.call_function(function, args, kernel))
    }

    /// The programs of each full second, at the cost of their instructions.
    pub(crate) fn programs_event(&mut self) -> Step {
        for run in self.policy.setup.each_second.clone() {
            let cpu = self.kernel.interrupted_cpu(run.cpu());
            self.on_cpu(cpu, |machine| {
                machine.at_its_cost(cpu, |machine| {
                    machine.run_program(&run);
                    Ok(())
                })
            })?;
        }
        self.arm_programs();
        Ok(())
    }

    /// The next full second, if there is something to run.
    pub(crate) fn arm_programs(&mut self) {
        const SECOND_NS: u64 = 1_000_000_000;
        if !self.policy.setup.each_second.is_empty() {
            let at_ns = (self.kernel.clock.now_ns() / SECOND_NS + 1) * SECOND_NS;
            self.kernel.plan(agenda::PROGRAMS, Some(at_ns));
        }
    }
}
