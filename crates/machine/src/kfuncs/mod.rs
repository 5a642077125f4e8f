//! The kernel functions that a scheduler's program calls, one file per family. Names of Linux 6.12 and their later
//! spellings are both defined, so that an object built for either can be linked.

mod cid;
mod cpumask;
mod dispatch;
mod events;
mod exit;
mod idle;
mod idle_node;
mod iter;
mod kick;
mod queue;
pub(crate) mod registers;
mod table;
mod task;
mod walk;

use fairground_bpf::{HostFn, Memory};

use crate::kernel::Kernel;
use registers::{Ret, int, s32};
pub(crate) use table::{BPF, Kfunc, SCX};

/// The process that loaded the scheduler: the first one of the machine.
const LOADER_PID: u64 = 1;

/// Every kernel function.
pub(crate) fn all() -> impl Iterator<Item = &'static Kfunc> {
    SCX.iter().chain(BPF)
}

/// BPF helpers that need the machine.
pub(crate) fn helpers() -> Vec<(u32, HostFn<Kernel>)> {
    let own: [(u32, HostFn<Kernel>); 2] = [(14, current_pid_tgid), (118, jiffies64)];
    own.iter().chain(crate::tracing::helpers::HELPERS).copied().collect()
}

/// `bpf_get_current_pid_tgid`: thread group and thread of the task that the CPU runs; of the loader, 1, outside of
/// tasks.
fn current_pid_tgid(kernel: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    let curr = kernel.cpus[kernel.this_cpu as usize].curr();
    let pid = curr.map_or(LOADER_PID, |slot| u64::from(kernel.task(slot).pid));
    Ok(pid << 32 | pid)
}

/// `bpf_jiffies64`: ticks since the start.
fn jiffies64(kernel: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(kernel.clock.jiffies())
}
