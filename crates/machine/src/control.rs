//! Operations on a machine between two steps: get the time of the next event, change a setting, discard past events.
//!
//! None of them affects the result: many short advances, with a tunable changed between them, give the same bytes as
//! one call of [`Machine::run_until`] and a [`Setting`] with that time.

use crate::changes::Changes;
use crate::events::EventHandle;
use crate::kernel::agenda;
use crate::{Machine, MachineError, Setting};

impl Machine {
    /// When something happens next in the machine, simulated ns; `None`: never again.
    pub fn next_ns(&mut self) -> Option<u64> {
        if self.finished { None } else { self.kernel.events.first_ns() }
    }

    /// Changes a tunable, the weight of a cgroup or the cgroup of a group of tasks, as a [`Setting`] does that takes
    /// effect 1 ns from now: after all events of this instant, before all others. Advances the machine to that instant
    /// and returns it, simulated ns.
    ///
    /// # Errors
    /// If there is no such tunable, it cannot take that value or is a constant of the loaded program, or the scheduler
    /// is no longer in charge; the machine is then as it was. And those of [`Machine::run_until`].
    pub fn change(&mut self, name: &str, value: &str) -> Result<u64, MachineError> {
        let now_ns = self.kernel.clock.now_ns();
        let at_ns = now_ns + 1;
        let names = Changes {
            policy: &self.policy,
            groups: &self.group_names,
            cgroups: &self.kernel.cgroups,
            topology: &self.kernel.topology,
        };
        let (_, mut change) = names.encode(&[Setting::at(at_ns, name, value)])?;
        if let Some(exit) = self.exit() {
            return Err(MachineError::Config(format!(
                "`{name}` cannot be changed: the scheduler is no longer in charge ({exit})"
            )));
        }
        self.run_until(now_ns)?;
        if self.finished {
            return Ok(now_ns);
        }
        self.changes.append(&mut change);
        self.kernel.clock.move_to(at_ns);
        self.kernel.counters.steps += 1;
        self.handle(EventHandle::Machine(agenda::SETTING)).map_err(MachineError::Memory)?;
        self.kernel.flush_ipis();
        self.kernel.write_due();
        self.outcome()?;
        Ok(at_ns)
    }

    /// Discards the events so far, so that memory does not grow with the length of the run. The trace of
    /// [`Machine::finish`] then begins here.
    pub fn forget_events(&mut self) {
        if self.kernel.check {
            self.kernel.audit_trace();
        }
        self.kernel.checker.forget(self.kernel.trace.len());
        self.kernel.trace.clear_events();
    }
}
