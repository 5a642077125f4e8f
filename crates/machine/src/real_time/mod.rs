//! The classes above the scheduler's: the real-time class, the deadline server that keeps a share of each CPU for the
//! scheduler, and the CPUs that the scheduler loses and gets back.

mod class;
mod cpus;
mod higher;
mod queues;
mod server;

pub(crate) use higher::Taker;
pub(crate) use queues::{RtEntity, RtQueues};
