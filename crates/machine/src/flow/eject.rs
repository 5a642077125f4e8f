//! The end of a scheduler's time in charge.

use fairground_bpf::InstanceError;

use super::{Machine, Step};
use crate::abi::deq;
use crate::kernel::{Op, OpsState, ScxState};
use crate::layout::offsets::exit_info;
use crate::{Exit, ExitKind, Waiting, WaitingPlace};

impl Machine {
    /// `scx_ops_disable_workfn`: takes the scheduler out. Callbacks: `cgroup_exit` for every cgroup; for every task
    /// `dequeue`, `stopping`, `quiescent` as its state demands, `disable`, `exit_task`; then `exit`. The kernel's own
    /// scheduler would take over from here; the simulation ends.
    pub(crate) fn disable(&mut self) -> Step {
        self.finished = true;
        self.explain_decision();
        self.waiting = self.waiting_tasks();
        self.exit_cgroups();
        for slot in self.kernel.tasks.slots() {
            if self.kernel.task(slot).scx_state == ScxState::None {
                continue;
            }
            self.kernel.this_cpu = self.kernel.task(slot).cpu;
            self.dequeue_task(slot, deq::SAVE)?;
            self.exit_task(slot);
        }
        if self.has(Op::Exit)
            && let Some(exit) = self.kernel.exit.clone()
        {
            let info = self.exit_info(&exit)?;
            self.call(Op::Exit, None, &[info]);
        }
        Ok(())
    }

    /// The scheduler is taken out in an orderly way at the end of a run.
    pub(crate) fn unregister(&mut self) -> Step {
        self.kernel.exit(ExitKind::Unregistered, 0, String::new());
        self.disable()
    }

    /// Writes the `struct scx_exit_info` that `ops.exit()` gets.
    fn exit_info(&self, exit: &Exit) -> Step<u64> {
        let mem = self.program.memory();
        let full = |error: InstanceError| fairground_bpf::Trap::host(error.to_string());
        let text = |text: &str| -> Step<u64> {
            let bytes = text.as_bytes();
            let addr = mem.alloc(bytes.len() as u64 + 1, 8).map_err(full)?;
            mem.write(addr, bytes)?;
            Ok(addr)
        };
        let info = mem.alloc(exit_info::SIZE, 8).map_err(full)?;
        mem.store_u32(info + exit_info::KIND, exit.kind.number())?;
        mem.store_u64(info + exit_info::EXIT_CODE, exit.code as u64)?;
        mem.store_u64(info + exit_info::REASON, text(&exit.reason)?)?;
        mem.store_u64(info + exit_info::MSG, text(&exit.message)?)?;
        // There is no backtrace and no dump: both are empty.
        mem.store_u64(info + exit_info::DUMP, text("")?)?;
        mem.store_u64(info + exit_info::BT, mem.alloc(8, 8).map_err(full)?)?;
        mem.store_u32(info + exit_info::BT_LEN, 0)?;
        Ok(info)
    }

    /// The watchdog's look at every task that waits to run (`check_rq_for_timeouts`), half a timeout after the last
    /// one.
    pub(crate) fn watchdog(&mut self) {
        self.check_for_stall();
        self.arm_watchdog();
    }

    /// Ejects the scheduler if a task has been runnable for longer than the timeout without running.
    pub(crate) fn check_for_stall(&mut self) {
        let (now, timeout) = (self.kernel.clock.now_ns(), self.watchdog_ns);
        let stalled = self.kernel.tasks.slots().find(|slot| {
            let task = self.kernel.task(*slot);
            task.scx_state == ScxState::Enabled
                && task.waiting
                && now - task.runnable_at_ns > timeout
        });
        if let Some(slot) = stalled {
            let waited_ms = (now - self.kernel.task(slot).runnable_at_ns) / 1_000_000;
            let task = self.kernel.describe(slot);
            let message =
                format!("{task} failed to run for {}.{:03}s", waited_ms / 1000, waited_ms % 1000);
            self.kernel.exit(ExitKind::ErrorStall, 0, message);
            self.explain_stall(slot);
        }
    }

    /// The tasks that are runnable and do not run, the one that has waited longest first.
    fn waiting_tasks(&self) -> Vec<Waiting> {
        let now_ns = self.kernel.clock.now_ns();
        let slots = self.kernel.tasks.slots();
        let mut waiting: Vec<Waiting> = slots
            .filter_map(|slot| {
                let task = self.kernel.task(slot);
                let waits = task.scx_state == ScxState::Enabled && task.waiting;
                let place = match task.ops_state {
                    OpsState::Queued => WaitingPlace::Scheduler,
                    _ => match self.kernel.queues.queue_of(slot.0) {
                        Some(queue) if queue == self.kernel.cpus[task.cpu as usize].local() => {
                            WaitingPlace::Local(task.cpu)
                        }
                        _ => WaitingPlace::Queue,
                    },
                };
                let waited_ns = now_ns.saturating_sub(task.runnable_at_ns);
                waits.then_some(Waiting { task: task.id, waited_ns, place })
            })
            .collect();
        waiting.sort_by_key(|task| (u64::MAX - task.waited_ns, task.task));
        waiting
    }

    /// The next look, half a timeout from now.
    pub(crate) fn arm_watchdog(&mut self) {
        let at = self.kernel.clock.now_ns() + (self.watchdog_ns / 2).max(1);
        self.kernel
            .events
            .arm(crate::events::EventHandle::Machine(crate::kernel::agenda::WATCHDOG), at);
    }
}
