//! The workload of a run: what tasks do.
//!
//! A [`Workload`] is a set of tasks, each a small [`Program`] of operations: run, sleep, wait for a timer, read and
//! write pipes, send and receive messages, signal, fork, exit, loop. It is described in TOML or rt-app JSON, taken
//! from the library, or built from a recording of a real machine. It is checked before it runs: every [`Workload`]
//! that this crate returns is valid and fully defaulted.
//!
//! This crate depends on no other crate of the workspace.

mod bandwidth;
mod cgroups;
mod check;
mod describe;
mod diagnostic;
mod drawn;
mod join;
pub mod library;
pub mod limits;
mod model;
mod objects;
mod operations;
mod parse;
mod pipe_ring;
mod policy;
pub mod prng;
mod replay;
mod rt_app;
mod spans;
mod units;
mod walk;
mod write;

pub use bandwidth::Bandwidth;
pub use cgroups::Cgroup;
pub use check::check;
pub use describe::describe;
pub use diagnostic::{Diagnostic, WorkloadError};
pub use drawn::{DRAWN_CPUS, DRAWN_DURATION_NS, DRAWN_TASKS_MAX, draw, drawn_cpus};
pub use library::from_spec;
pub use model::{
    BUSY_LOOK_NS, Barrier, BarrierId, Carrier, CgroupId, Condition, ConditionId, Lock, LockId,
    LockKind, LockModel, Op, PIPE_CAPACITY_DEFAULT, Pipe, PipeId, Program, Queue, QueueId, Role,
    SOCKET_BUFFER_DEFAULT, TaskSpec, TaskSpecId, Timer, TimerId, Workload,
};
pub use objects::ObjectKind;
pub use parse::{FORMAT, parse};
pub use pipe_ring::{PipeRing, Taken};
pub use policy::{RT_PRIORITIES, SchedPolicy};
pub use replay::{MessageId, ReplayBuilder, ReplayNotes};
pub use rt_app::{
    IORUN_NS_PER_BYTE, RT_APP_DURATION_NS, RT_APP_MEM_BUFFER, RtApp, RtAppText, parse_rt_app,
    to_rt_app,
};
pub use units::{CpuList, Duration, TextError, parse_cpus, parse_time};
pub use write::to_toml;
