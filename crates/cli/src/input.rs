//! Reads the options that several commands share, with progress and notes on stderr.

use std::path::Path;

use fairground_analysis::{Analysed, Options, command_tree, tasks_called, tree};
use fairground_session::{
    Failure, Recording, RunSpec, analyse_recording_watched, parse_time_if, read_recording_watched,
};
use fairground_trace::Trace;
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

/// Files in the folder of a recording: of LTTng, of perf with `--threads`. Other folders may have the name of a
/// workload.
const IN_FOLDERS: [&str; 3] = ["metadata", "kernel/metadata", "data"];

/// Whether an argument names a recording: stdin, a file that is no workload's, or a recording's folder.
pub(crate) fn is_recording(argument: &str) -> bool {
    let path = Path::new(argument);
    let is_folder = || IN_FOLDERS.iter().any(|name| path.join(name).exists());
    argument == "-" || (path.is_file() && !is_workload_file(argument)) || is_folder()
}

/// Whether a name is that of a workload file.
pub(crate) fn is_workload_file(argument: &str) -> bool {
    let extension = Path::new(argument).extension();
    extension.is_some_and(|extension| extension == "toml" || extension == "json")
}

/// By task: whether a result is about it. `None`: about all.
///
/// # Errors
/// No task is called so.
pub(crate) fn asked_tasks(
    args: &TreeArgs,
    Recording { name, trace }: &Recording,
) -> Result<Option<Vec<bool>>, Failure> {
    tree_of(&args.tree, name, trace)
}

/// The same for these names and pids, or for the recorded command where there is none.
///
/// # Errors
/// As [`asked_tasks`].
pub(crate) fn tree_of(
    asked: &[String],
    name: &str,
    trace: &Trace,
) -> Result<Option<Vec<bool>>, Failure> {
    if asked.is_empty() {
        return Ok(command_tree(trace));
    }
    let mut roots = Vec::new();
    for called in asked {
        let found = tasks_called(trace, called);
        if found.is_empty() {
            return Err(Failure::new(format_args!(
                "{name}: no task has the name or pid `{called}`"
            ))
            .help(format_args!("`fairground analyze {name} --per task` lists the tasks")));
        }
        roots.extend(found);
    }
    Ok(Some(tree(trace, &roots)))
}
