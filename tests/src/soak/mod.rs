//! Every scheduler on a real kernel: verified, attached, under load, attached again and again, with CPUs that go and come.
//!
//! The program `soak` is the first process of a virtual machine ([`fairground_realkernel::vm`]) and does all of it there, on what
//! would otherwise be somebody's computer. It says what it saw in a [`Report`]; whether that is right, the tests say.

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

/// The argument with which the program does its work in the guest.
pub const COMMAND: &str = "soak";
/// The plan, in the folder where it works.
pub const PLAN_FILE: &str = "plan.json";
/// What it saw, in the same folder.
pub const REPORT_FILE: &str = "report.json";

/// What to do with each scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The schedulers; none: all.
    pub schedulers: Vec<String>,
    /// How long the load runs under each, s: half of it before CPUs go and the scheduler is reloaded, half of it afterwards.
    pub load_s: u64,
    /// How often each is taken off and attached anew, under load.
    pub reloads: u32,
    /// How often the last CPU is taken away and given back, under load.
    pub hotplugs: u32,
    /// Programs that run beside the own load, each to be started anew when it ends: program and arguments.
    pub programs: Vec<Vec<String>>,
}

/// What was seen of all schedulers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// `uname -r`.
    pub kernel: String,
    /// One for each scheduler.
    pub schedulers: Vec<SchedulerReport>,
}

/// What was seen of one scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerReport {
    /// Its name.
    pub name: String,
    /// Its programs, each with the instructions that the verifier looked at.
    pub programs: Vec<(String, Option<u32>)>,
    /// How long loading and attaching took, the guest's ms: the first time, without load.
    pub attach_ms: u64,
    /// How often it was attached anew.
    pub reloads: u32,
    /// All of them together, and the longest, ms.
    pub reload_total_ms: u64,
    /// See above.
    pub reload_max_ms: u64,
    /// How often a CPU went away and came back.
    pub hotplugs: u32,
    /// How often the kernel asked for it to be attached again.
    pub restarts: u32,
    /// Workers: tasks of the load, programs beside it, and the workers of which those give an account.
    pub workers: usize,
    /// Operations that the slowest of them finished.
    pub least_ops: u64,
    /// Runs of the programs beside the load that ended well.
    pub program_runs: u64,
    /// From the beginning to the end, ms.
    pub total_ms: u64,
    /// What the kernel complained about meanwhile.
    pub complaints: Vec<String>,
    /// How it ended at last: its user took it off.
    pub exit: Option<SchedulerExit>,
    /// What went wrong.
    pub problems: Vec<String>,
}
