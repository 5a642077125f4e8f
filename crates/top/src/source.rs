//! The source of a view.

use std::collections::BTreeMap;

use fairground_analysis::{Analysis, CpuNow, Figures, NeverRan, TaskActivity};
use fairground_trace::TaskId;

/// Why an action failed, in words.
pub type Problem = String;

/// A run that continues while it is shown.
pub trait Source {
    /// Describes it.
    fn about(&self) -> About;

    /// Its time, ns since its beginning.
    fn now_ns(&self) -> u64;

    /// Advances it to that time, or at least a part of the way. A recording of a real machine advances in wall time,
    /// and reads what has happened meanwhile.
    ///
    /// # Errors
    /// It cannot continue.
    fn advance(&mut self, to_ns: u64) -> Result<(), Problem>;

    /// The present view.
    fn view(&self) -> View;

    /// Advances it to the next event.
    ///
    /// # Errors
    /// There is none, or it is a real machine.
    fn step(&mut self) -> Result<(), Problem> {
        Err(REAL.to_owned())
    }

    /// Restarts it, with every change so far at the time at which it was made.
    ///
    /// # Errors
    /// It cannot be repeated.
    fn restart(&mut self) -> Result<(), Problem> {
        Err(REAL.to_owned())
    }

    /// Switches to the next of its schedulers, in a run of its own up to the present time.
    ///
    /// # Errors
    /// There is only one.
    fn next_scheduler(&mut self) -> Result<(), Problem> {
        Err("there is one scheduler only: name several, as in `--sched cfs,eevdf`".to_owned())
    }

    /// The scheduler's tunables with their present values.
    fn tunables(&self) -> Vec<Tunable> {
        Vec::new()
    }

    /// It does not exist, or the value is invalid.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let _ = (name, value);
        Err(REAL.to_owned())
    }
}

/// The error for an action that needs a simulated run.
const REAL: &str =
    "a real machine does not wait, and does nothing twice: only a simulated run can do that";

/// The description of a source, for the head of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The workload, or the recorded machine.
    pub what: String,
    /// The scheduler.
    pub scheduler: String,
    /// Its conditions: machine, seed, costs.
    pub made: String,
    /// Whether it advances in wall time.
    pub is_real: bool,
    /// Where it pauses at first, ns: the duration of the workload.
    pub length_ns: Option<u64>,
}

/// A tunable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Its name.
    pub name: String,
    /// Its value now.
    pub value: String,
    /// The unit; `switch` for on or off.
    pub unit: String,
    /// Its purpose.
    pub what: String,
    /// Why it cannot be changed any more; `None`: it can.
    pub fixed: Option<String>,
}

/// The view of a source at an instant.
#[derive(Clone, Debug)]
pub struct View {
    /// The instant, ns since the beginning.
    pub now_ns: u64,
    /// The figures of the last whole interval; before its end, of the time so far.
    pub recent: Analysis,
    /// The figures of each task since the beginning; tasks that are newer than `recent` are after the others.
    pub whole: Vec<Figures>,
    /// Pid and name of each, in that order.
    pub tasks: Vec<(u32, String)>,
    /// The state of each, in that order.
    pub doing: Vec<TaskActivity>,
    /// The tasks that are runnable and have never run, the one that has waited longest first.
    pub never_ran: Vec<NeverRan>,
    /// The state of each CPU.
    pub cpus: Vec<CpuNow>,
    /// Names of the scheduler's own per-task numbers.
    pub number_names: Vec<String>,
    /// Those numbers, for the tasks that have some.
    pub numbers: BTreeMap<TaskId, Vec<Option<i64>>>,
    /// The last events in words, in order.
    pub events: Vec<String>,
    /// Why it has ended; `None`: it has not.
    pub ended: Option<String>,
    /// Notes on missing or doubtful data.
    pub notes: Vec<String>,
}
