//! What the tasks of a workload do in user space.
//!
//! The machine runs tasks; an [`Actors`] says what each of them wants. The agreement:
//!
//! * [`Actors::spawn`] makes an actor that has not run yet.
//! * When an actor is on a CPU and has nothing left to compute, the machine calls [`Actors::advance`]. The actor
//!   executes operations until it needs CPU time or has to wait, and says which: the [`Need`]. What it did to others on
//!   the way stands in the list of [`Effect`]s, in order.
//! * [`Need::Cpu`]: the machine lets it compute for so long, in as many pieces as scheduling makes of it, then advances
//!   it.
//! * [`Need::Touch`]: the same as [`Need::Cpu`], for as long as the caches make it.
//! * [`Need::Block`], [`Need::SleepUntil`]: the task leaves the CPU until [`Effect::Wake`] or the time; the machine
//!   wakes it, and advances it when it runs again. Whichever comes first counts; a later one finds the task awake and
//!   is ignored.
//! * [`Effect::Signal`]: a signal reached an actor that is computing in user mode. The machine takes it out of its
//!   computation ([`Actors::interrupt`], with what is left of it) and advances it the next time that it runs. The
//!   handler runs, then the rest of the computation. A sleeping or waiting actor is woken by [`Effect::Wake`] instead.
//!
//! A system call costs [`crate::CostModel::syscall_ns`] of CPU time first and has its effect at the end of that time.

mod actor;
mod calls;
mod channel;
mod charge;
mod check;
mod code;
mod compile;
mod effect;
mod engine;
mod error;
mod lock;
mod locks;
mod meeting;
mod members;
mod pipe;
mod state;
mod sync;
#[cfg(test)]
mod tests;
mod timers;

pub use effect::{ActorId, AffinityId, Effect, Need};
pub use error::{ActorError, MAX_LOOP_DEPTH, MAX_OPS_PER_ADVANCE, MAX_OPS_PER_INSTANT};
pub use state::Actors;
