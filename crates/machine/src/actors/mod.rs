//! The user-space side of the tasks of a workload.
//!
//! The machine runs tasks; an [`Actors`] executes their programs. The protocol:
//!
//! * [`Actors::spawn`] makes an actor that has not run yet.
//! * When an actor is on a CPU and has nothing left to compute, the machine calls [`Actors::advance`]. The actor
//!   executes operations until it needs CPU time or has to wait, and returns that [`Need`]. Its effects on others are
//!   in the list of [`Effect`]s, in order.
//! * [`Need::Cpu`]: the machine lets it compute for that time, in one or more pieces, then advances it.
//! * [`Need::Touch`]: the same as [`Need::Cpu`], for a time that depends on the caches.
//! * [`Need::Block`], [`Need::SleepUntil`]: the task leaves the CPU until [`Effect::Wake`] or the time; the machine
//!   wakes it, and advances it when it runs again. The first of them counts; a later one is ignored.
//! * [`Need::Return`]: between a call that has woken others and what the actor does in user mode after it, the kernel's
//!   work is paid for and another task may take the CPU. So a task that is woken with a lock held preempts its waker
//!   before that one releases the lock.
//! * [`Need::InCall`]: a call that wakes several tasks wakes them one after the other, and each wake-up takes its time.
//! * [`Effect::Signal`]: a signal reached an actor that is computing in user mode. The machine interrupts the
//!   computation ([`Actors::interrupt`], with the time left) and advances it the next time that it runs. The handler
//!   runs, then the rest of the computation. A sleeping or waiting actor is woken by [`Effect::Wake`] instead.
//!
//! A system call costs [`crate::CostModel::syscall_ns`] of CPU time first and has its effect at the end of that time.

mod actor;
mod calls;
mod channel;
mod charge;
mod check;
mod code;
mod effect;
mod engine;
mod error;
mod lock;
mod locks;
mod meeting;
mod members;
mod messages;
mod pipe;
mod pipe_lock;
mod state;
mod sync;
#[cfg(test)]
mod tests;
mod timers;
mod traced;

pub use effect::{ActorId, AffinityId, Effect, FutexOp, Need};
pub use error::{ActorError, MAX_LOOP_DEPTH, MAX_OPS_PER_ADVANCE, MAX_OPS_PER_INSTANT};
pub use state::Actors;
