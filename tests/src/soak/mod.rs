//! Every scheduler on a real kernel: verified, attached, under load, attached repeatedly, with CPU hotplug.
//!
//! The program `soak` is the first process of a virtual machine ([`fairground_realkernel::vm`]) and does all of it
//! there, not on the user's computer. It writes its observations to a [`Report`]; the tests check them.

mod beside;
mod guest;
mod kernel_log;
mod load;
mod programs;
mod stuck;

use serde::{Deserialize, Serialize};

use fairground_realkernel::job::SchedulerExit;

pub use guest::guest;
pub use load::WORKLOAD;
pub use programs::{LOAD_PROGRAMS, LoadProgram};

/// The argument of the program in the guest.
pub const COMMAND: &str = "soak";
/// The plan, in its working folder.
pub const PLAN_FILE: &str = "plan.json";
/// The report, in the same folder.
pub const REPORT_FILE: &str = "report.json";

/// The steps for each scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The schedulers; empty: all.
    pub schedulers: Vec<String>,
    /// Duration of the load under each, s: half of it before hotplug and reloads, half of it afterwards.
    pub load_s: u64,
    /// Number of reloads under load.
    pub reloads: u32,
    /// Number of times that the last CPU goes off line and back, under load.
    pub hotplugs: u32,
    /// Programs that run beside the own load, each restarted when it ends: program and arguments.
    pub programs: Vec<Vec<String>>,
}

/// The observations of all schedulers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// `uname -r`.
    pub kernel: String,
    /// One for each scheduler.
    pub schedulers: Vec<SchedulerReport>,
}

/// The observations of one scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerReport {
    /// Its name.
    pub name: String,
    /// Its programs, each with the instructions that the verifier examined.
    pub programs: Vec<(String, Option<u32>)>,
    /// Time of loading and attaching, the guest's ms: the first time, without load.
    pub attach_ms: u64,
    /// Number of reloads.
    pub reloads: u32,
    /// Their total time, and the longest, ms.
    pub reload_total_ms: u64,
    /// See above.
    pub reload_max_ms: u64,
    /// Number of times that a CPU went off line and came back.
    pub hotplugs: u32,
    /// Workers: tasks of the load, programs beside it, and the reported workers of these.
    pub workers: usize,
    /// Operations that the slowest of them finished.
    pub least_ops: u64,
    /// Successful runs of the programs beside the load.
    pub program_runs: u64,
    /// Total time, ms.
    pub total_ms: u64,
    /// Warnings of the kernel meanwhile.
    pub complaints: Vec<String>,
    /// Its final exit: detached by its user.
    pub exit: Option<SchedulerExit>,
    /// Problems.
    pub problems: Vec<String>,
}
