//! What the options of several commands ask for, with progress and notes on stderr.

use fairground_analysis::{Analysed, Options};
use fairground_session::{
    Failure, Recording, RunSpec, analyse_recording_watched, parse_time_if, read_recording_watched,
};
use fairground_workload::Workload;

use crate::args::ShowArgs;
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
pub(crate) fn find_recording(argument: &str, quiet: bool) -> Result<Recording, Failure> {
    read_recording_watched(argument, |file| reading(argument, file, quiet))
}

/// Reads a recording for its analysis alone, and shows how far it is; also gives its name.
pub(crate) fn analyse_recording(
    argument: &str,
    options: &Options,
    quiet: bool,
) -> Result<(String, Analysed), Failure> {
    analyse_recording_watched(argument, options, |file| reading(argument, file, quiet))
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
