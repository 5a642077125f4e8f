//! The end of a scheduler's time in charge.

use fairground_bpf::{InstanceError, Memory, Trap};

use super::{Machine, Step};
use crate::abi::deq;
use crate::kernel::{ScxState, agenda};
use crate::layout::offsets::exit_info;
use crate::op::Op;
use crate::{Exit, ExitKind};

/// `SCX_EFLAG_INITIALIZED`: `ops.init()` has succeeded.
const EFLAG_INITIALIZED: u64 = 1;
/// `scx_exit_info.exit_cpu` of an exit that no CPU has begun: -1.
const NO_CPU: u32 = u32::MAX;

impl Machine {
    /// `scx_ops_disable_workfn`: takes the scheduler out. Callbacks: after an error, those of
    /// the dump; `cgroup_exit` for every cgroup; for every task
    /// `dequeue`, `stopping`, `quiescent` as its state requires, `disable`, `exit_task`; then `exit`. The kernel's own
    /// scheduler would take over from here; the simulation ends.
    pub(crate) fn disable(&mut self) -> Step {
        self.finished = true;
        self.kernel.explain_decision(&self.policy);
        self.dump_state()?;
        self.waiting = self.kernel.waiting_tasks();
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
            let info =
                exit_info(self.program.memory(), &exit, self.kernel.exit_cpu, self.initialized)?;
            self.call(Op::Exit, None, &[info]);
        }
        Ok(())
    }

    /// The watchdog's check of every task that waits to run (`check_rq_for_timeouts`), half a timeout after the last
    /// one. Ejects the scheduler if a task has been runnable for longer than the timeout without running.
    pub(crate) fn check_for_stall(&mut self) {
        if let Some((slot, waited_ns)) = self.kernel.stalled_task(self.watchdog_ns) {
            let (seconds, rest_ms) = (waited_ns / 1_000_000_000, waited_ns / 1_000_000 % 1_000);
            let task = self.kernel.describe(slot);
            let message = format!("{task} failed to run for {seconds}.{rest_ms:03}s");
            self.kernel.exit(ExitKind::ErrorStall, 0, message);
            self.kernel.explain_stall(&self.policy, slot);
        }
    }

    /// The next check, half a timeout from now.
    pub(crate) fn arm_watchdog(&mut self) {
        let at_ns = self.kernel.clock.now_ns() + (self.watchdog_ns / 2).max(1);
        self.kernel.plan(agenda::WATCHDOG, Some(at_ns));
    }
}

/// Writes the `struct scx_exit_info` that `ops.exit()` gets.
fn exit_info(mem: &Memory, exit: &Exit, exit_cpu: u32, initialized: bool) -> Step<u64> {
    let full = |error: InstanceError| Trap::host(error.to_string());
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
    mem.store_u64(info + exit_info::DUMP, text(&exit.dump.text)?)?;
    let cpu = match exit.kind {
        ExitKind::Unregistered | ExitKind::ErrorStall => NO_CPU,
        _ => exit_cpu,
    };
    mem.store_u32(info + exit_info::EXIT_CPU, cpu)?;
    mem.store_u64(info + exit_info::FLAGS, if initialized { EFLAG_INITIALIZED } else { 0 })?;
    // There is no backtrace.
    mem.store_u64(info + exit_info::BT, mem.alloc(8, 8).map_err(full)?)?;
    mem.store_u32(info + exit_info::BT_LEN, 0)?;
    Ok(info)
}
