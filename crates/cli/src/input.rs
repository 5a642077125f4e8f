//! What the options of several commands ask for, with progress and notes on stderr.

use fairground_analysis::{Analysed, Options};
use fairground_session::{
    Failure, Recording, RunSpec, analyse_recording_watched, parse_time, read_recording_watched,
};
use fairground_workload::Workload;

use crate::args::ShowArgs;
use crate::progress::Reading;

/// How a simulated run is measured.
pub(crate) fn measuring_options(show: &ShowArgs) -> Result<Options, Failure> {
    let interval_ns = show.interval.as_deref().map(|t| parse_time("--interval", t)).transpose()?;
    Ok(Options { interval_ns, ..Options::simulated() })
}

/// Reads a recording, and shows how far it is.
pub(crate) fn find_recording(argument: &str, quiet: bool) -> Result<Recording, Failure> {
    read_recording_watched(argument, |file| Reading::of(argument, file, quiet))
}

/// Reads a recording for its analysis alone, and shows how far it is; also gives its name.
pub(crate) fn analyse_recording(
    argument: &str,
    options: &Options,
    quiet: bool,
) -> Result<(String, Analysed), Failure> {
    analyse_recording_watched(argument, options, |file| Reading::of(argument, file, quiet))
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
        eprintln!("note: {note}");
    }
}
