//! Third-party programs and our workloads in one guest, one after the other, each recorded with the same instrument.
//!
//! The program `originals` is the first process of a virtual machine ([`fairground_realkernel::vm`]) and does all of
//! it there. Of each run `NAME` it leaves the recording (`NAME.dat`), of a program what it printed (`NAME.txt`), of a
//! workload its outcome (`NAME.json`). Whether they are alike, the tests say.

mod guest;

use serde::{Deserialize, Serialize};

use fairground_realkernel::job::Job;

pub use guest::guest;

/// The argument of the program in the guest.
pub const COMMAND: &str = "originals";
/// The plan, in its working folder.
pub const PLAN_FILE: &str = "plan.json";
/// Time limit of a program, s of the guest's time.
pub const PROGRAM_LIMIT_S: u64 = 60;
/// Memory for the events of each CPU, KiB.
pub const KIB_PER_CPU: u32 = 32 << 10;

/// The runs, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The runs; their names differ.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The stem of its files' names.
    pub name: String,
    /// The program or workload.
    pub what: What,
}

/// A third-party program, or a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A workload for a runner.
    Workload(Box<Job>),
}
