//! The executor: runs a workload as real processes, one per task.
//!
//! The runner creates the shared state of the tasks ([`shared_state`]), forks the initial tasks one after the other
//! ([`fork`]), starts them all at once ([`executor`]), and then sleeps. A task executes its program ([`task`],
//! [`calls`]) and counts completed operations in shared memory. At the end, the runner kills the tasks' process
//! group, waits for all tasks and reads their accounting ([`reap`]).
//!
//! Operations have the same meaning as in simulation, except where the kernel differs: another receiver may take a
//! message before the woken one does; a parent that waits for children wakes at each of them; the timer slack of the
//! process lengthens sleeps; a spin lock is in user space, so that its owner can be preempted ([`locks`]).

mod calls;
pub(crate) mod cgroups;
pub(crate) mod clock;
mod conditions;
mod cpu_list;
mod error;
mod executor;
mod fork;
mod futex;
mod locks;
mod plan;
mod queue;
mod reap;
mod shared;
mod shared_state;
mod spin;
mod task;
mod text;
mod usage;

pub(crate) use calls::scheduling_of;
pub(crate) use cpu_list::parse_cpu_list;
pub use error::TaskError;
pub(crate) use executor::Executor;
