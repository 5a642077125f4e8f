//! The executor: a workload as real processes, one for each task.
//!
//! The runner makes everything that tasks share ([`world`]), forks those that exist from the beginning one after the
//! other ([`birth`]), and lets them go at once. From then on it sleeps. A task executes its program ([`task`],
//! [`calls`]) and counts what it finishes in shared memory. At the end the runner kills the tasks' process group,
//! waits for all and reads their accounting ([`reap`]).
//!
//! An operation means what it means in simulation. The differences are the kernel's: a message that a woken receiver
//! has not taken yet may be taken by another one; a parent that waits for children is woken by each; a sleep is
//! lengthened by the timer slack that the process has; a spin lock is one of user space, so that a task that has it
//! can be preempted ([`locks`]).

mod anchor;
mod birth;
mod calls;
pub(crate) mod cgroups;
pub(crate) mod clock;
mod cpu_list;
mod error;
mod executor;
mod futex;
mod lock_words;
mod locks;
mod meeting;
mod plan;
mod queue;
mod reap;
mod shared;
mod spin;
mod task;
mod text;
mod usage;
mod world;

pub(crate) use cpu_list::parse_cpu_list;
pub use error::TaskError;
pub(crate) use executor::Executor;
