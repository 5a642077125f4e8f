//! The simulated kernel's steps that call the scheduler: each is a method of [`Machine`] and names the kernel function
//! whose order of callbacks it follows.
//!
//! Every step happens at one instant of simulated time on one CPU (`Kernel::this_cpu`). What it costs is then charged
//! to that CPU: computing there goes on after it. The end of what was charged is an event of the CPU only where
//! something is to be done then; a task that just computes begins at once, for as much longer.

mod advance;
mod attributes;
mod call;
mod cpu;
mod eject;
mod enable;
mod enqueue;
mod fork;
mod hotplug;
mod hrtimer;
mod locks;
mod operator;
mod schedule;
#[cfg(test)]
mod tests;
mod tick;
mod timer;
mod wakeup;

pub(crate) use crate::machine::{Machine, Step};
pub(crate) use call::{Invocation, Meter};
pub(crate) use enqueue::Sticky;
pub(crate) use fork::Birth;
pub(crate) use schedule::Pick;
