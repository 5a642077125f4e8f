//! Reads the options that several commands share, with progress and notes on stderr.

use fairground_analysis::{Analysed, Options};
use fairground_present::{ChosenTasks, chosen_tasks};
use fairground_session::{
    Failure, Recording, RunSpec, analyse_recording_watched, parse_time_if, read_recording_watched,
};
use fairground_workload::Workload;

use crate::args::{ShowArgs, SourceArgs, TreeArgs};
use crate::progress::reading;
use crate::talk;

/// How a simulated run is measured.
pub(crate) fn measuring_options(show: &ShowArgs) -> Result<Options, Failure> {
    Ok(Options { interval_ns: interval_ns(show)?, ..Options::simulated() })
}

/// The interval of the figures over time, ns.
pub(crate) fn interval_ns(show: &ShowArgs) -> Result<Option<u64>, Failure> {
    parse_time_if("--interval", show.interval.as_deref())
}

/// Reads a recording, and shows how far it is.
pub(crate) fn find_recording(
    argument: &str,
    source: &SourceArgs,
    quiet: bool,
) -> Result<Recording, Failure> {
    let machine = source.machine.as_deref();
    read_recording_watched(argument, machine, |file| reading(argument, file, quiet))
}

/// Reads a recording for its analysis alone, and shows how far it is; also gives its name.
pub(crate) fn analyse_recording(
    argument: &str,
    source: &SourceArgs,
    options: &Options,
    quiet: bool,
) -> Result<(String, Analysed), Failure> {
    let machine = source.machine.as_deref();
    analyse_recording_watched(argument, machine, options, |file| reading(argument, file, quiet))
}

/// The workload of a spec; notes on it go to stderr unless `quiet`.
pub(crate) fn find_workload(spec: &RunSpec, quiet: bool) -> Result<Workload, Failure> {
    let (workload, notes) = spec.find_workload()?;
    if !quiet {
        say(&notes);
    }
    Ok(workload)
}

/// Notes for people, on stderr.
pub(crate) fn say(notes: &[String]) {
    for note in notes {
        talk::say(format!("note: {note}"));
    }
}

/// By task: whether a result is about it. `None`: about all.
///
/// # Errors
/// No task is called so.
pub(crate) fn asked_tasks(
    args: &TreeArgs,
    Recording { name, trace }: &Recording,
) -> Result<ChosenTasks, Failure> {
    chosen_tasks(&args.tree, name, trace)
}
