//! The event stream of a CPU scheduler.
//!
//! The simulated machine, a kernel in a VM, the host kernel and an imported recording all produce the same
//! [`Trace`]: a table of tasks and a sequence of [`Event`]s, kept in 32 bytes each. Every metric
//! of the project is computed from it.
//!
//! [`read`] takes recordings of perf, ftrace, trace-cmd and Perfetto, [`write_ftrace`] gives ftrace text,
//! [`write_perfetto`] and [`write_chrome`] what Perfetto's and Chrome's viewers open (with the feature `parquet` also
//! `write_parquet` and `write_arrow`):
//!
//! ```
//! let text = "  cat-7 [000] d..2. 1.000002: sched_switch: prev_comm=cat prev_pid=7 prev_prio=120 \
//!             prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
//! let trace = fairground_trace::read("example", text.as_bytes())?;
//! assert_eq!((trace.len(), trace.tasks()[1].nice), (1, Some(0)));
//! assert!(trace.loss == fairground_trace::Loss::default());
//! # Ok::<(), fairground_trace::ReadError>(())
//! ```
//!
//! This crate knows no other crate of the workspace.

mod call;
mod cgroup;
mod counter;
mod cpu_list;
mod escape;
#[macro_use]
mod event_table;
mod event;
mod join;
mod loss;
mod origin;
mod packed;
mod policy;
mod readers;
mod rt_prio;
mod start_state;
mod task;
mod task_state;
mod trace;
mod writers;

pub use call::Call;
pub use cgroup::{CgroupId, CgroupInfo};
pub use counter::{Counter, CounterOf, CounterUnit};
pub use cpu_list::{cpu_list_text, parse_cpu_list};
pub use event::{CallbackKind, Event, EventKind, Label, LockFlags};
pub use join::Joiner;
pub use loss::Loss;
pub use origin::{Origin, OriginTarget};
pub use policy::Policy;
pub use readers::{
    Machines, ReadError, Segment, TakeSegments, read, read_file, read_file_in_segments,
    read_machine, read_machine_file, system_calls, tick_symbols,
};
pub use rt_prio::RtPrio;
pub use start_state::StartState;
pub use task::{TaskId, TaskInfo};
pub use task_state::TaskState;
pub use trace::{Events, Trace};
#[cfg(feature = "parquet")]
pub use writers::{EVENTS_SCHEMA_VERSION, EventBatches, write_arrow, write_parquet};
pub use writers::{
    Precision, write_chrome, write_ftrace, write_ftrace_with, write_perfetto, write_trace_dat,
};
