//! What is looked at.

use std::collections::BTreeMap;

use fairground_analysis::{Analysis, CpuNow, Doing, Figures};
use fairground_trace::TaskId;

/// Why something could not be done, in words for a person.
pub type Problem = String;

/// A run that goes on while it is looked at.
pub trait Source {
    /// What it is.
    fn about(&self) -> About;

    /// How far it is, ns since its beginning.
    fn now_ns(&self) -> u64;

    /// Lets it go on up to that instant, at least a part of the way. A recording of a real machine goes on by itself, and takes in what
    /// happened meanwhile.
    ///
    /// # Errors
    /// It cannot go on at all.
    fn advance(&mut self, to_ns: u64) -> Result<(), Problem>;

    /// What can be seen now.
    fn view(&self) -> View;

    /// Lets it go on up to the next event.
    ///
    /// # Errors
    /// There is none, or it does not wait for anybody.
    fn step(&mut self) -> Result<(), Problem> {
        Err(REAL.to_owned())
    }

    /// Begins again, with every change that was made so far at the time at which it was made.
    ///
    /// # Errors
    /// It cannot be had again.
    fn restart(&mut self) -> Result<(), Problem> {
        Err(REAL.to_owned())
    }

    /// The next of its schedulers takes the place of the present one, in a run of its own that is as far as that one.
    ///
    /// # Errors
    /// There is only one.
    fn next_scheduler(&mut self) -> Result<(), Problem> {
        Err("there is one scheduler only: name several, as in `--sched cfs,eevdf`".to_owned())
    }

    /// What can be changed of the scheduler, as it is now.
    fn tunables(&self) -> Vec<Tunable> {
        Vec::new()
    }

    /// Changes a tunable now.
    ///
    /// # Errors
    /// It does not exist, or cannot take that value.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let _ = (name, value);
        Err(REAL.to_owned())
    }
}

/// Why what a simulated run can do cannot be done.
const REAL: &str =
    "a real machine does not wait, and does nothing twice: only a simulated run can do that";

/// What a source is, for the head of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The workload, or what is recorded.
    pub what: String,
    /// The scheduler.
    pub scheduler: String,
    /// How it was made: machine, seed, costs.
    pub made: String,
    /// Whether it goes on by itself, at the pace of the clock on the wall.
    pub is_real: bool,
    /// Where it is to be held at first, ns: the length of the workload.
    pub length_ns: Option<u64>,
}

/// Something to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Its name.
    pub name: String,
    /// Its value now.
    pub value: String,
    /// The unit; `switch` for what is on or off.
    pub unit: String,
    /// What it does.
    pub what: String,
    /// Why it cannot be changed any more, if it cannot.
    pub fixed: Option<String>,
}

/// What can be seen of a source at an instant.
#[derive(Clone, Debug)]
pub struct View {
    /// The instant, ns since the beginning.
    pub now_ns: u64,
    /// The figures of the last whole interval; of the time so far while there is none.
    pub recent: Analysis,
    /// The figures of each task since the beginning; tasks that are newer than `recent` stand behind the others.
    pub whole: Vec<Figures>,
    /// Pid and name of each, in that order.
    pub tasks: Vec<(u32, String)>,
    /// Where each is, in that order.
    pub doing: Vec<Doing>,
    /// What each CPU does.
    pub cpus: Vec<CpuNow>,
    /// What the scheduler's own numbers of a task are called.
    pub number_names: Vec<String>,
    /// Those numbers, of the tasks that have some.
    pub numbers: BTreeMap<TaskId, Vec<Option<i64>>>,
    /// The last events in words, the latest last.
    pub events: Vec<String>,
    /// Why it does not go on any more.
    pub ended: Option<String>,
    /// What is missing or doubtful.
    pub notes: Vec<String>,
}
