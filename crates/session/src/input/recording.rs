//! A recording of a real machine: a file or stdin, in any format that the library reads.

use std::fs;
use std::io;
use std::path::Path;

use fairground_analysis::{Analysed, Analysis, Options};
use fairground_trace::Trace;

use crate::failure::Failure;

/// The argument for stdin, and the name of its recording.
const STDIN: &str = "-";
const STDIN_NAME: &str = "<stdin>";

/// A recording and its name.
#[derive(Debug)]
pub struct Recording {
    /// The file's name, or `<stdin>`.
    pub name: String,
    /// The events.
    pub trace: Trace,
}

/// Reads a whole recording. What a truncated one still holds is kept; the loss stands in the trace.
///
/// # Errors
/// There is no such file, it cannot be read, or holds no recording.
pub fn read_recording(argument: &str) -> Result<Recording, Failure> {
    read_recording_watched(argument, None, |_| ())
}

/// The same, of one machine or buffer of a recording that has several (`fairground_trace::read_machine`); `opened`
/// gets the file before its first byte is read, and what it returns lives until the end of the
/// reading.
///
/// # Errors
/// As [`read_recording`].
pub fn read_recording_watched<Guard>(
    argument: &str,
    machine: Option<&str>,
    opened: impl FnOnce(&fs::File) -> Guard,
) -> Result<Recording, Failure> {
    let (name, trace) = if argument == STDIN {
        (STDIN_NAME, fairground_trace::read_machine(STDIN_NAME, io::stdin().lock(), machine))
    } else {
        let file = fs::File::open(argument).map_err(|e| Failure::io(argument, &e))?;
        let _guard = opened(&file);
        let trace = fairground_trace::read_machine_file(argument, file, machine);
        (argument, trace)
    };
    Ok(Recording { name: name.to_owned(), trace: trace.map_err(Failure::new)? })
}

/// Reads a recording for nothing but its analysis: of most files the events are not kept ([`Analysis::of_file`]). Also
/// gives its name.
///
/// # Errors
/// As [`read_recording`].
pub fn analyse_recording_watched<Guard>(
    argument: &str,
    machine: Option<&str>,
    options: &Options,
    opened: impl FnOnce(&fs::File) -> Guard,
) -> Result<(String, Analysed), Failure> {
    if argument == STDIN || machine.is_some() {
        let Recording { name, trace } = read_recording_watched(argument, machine, opened)?;
        let analysis = Analysis::of(&trace, options);
        return Ok((name, Analysed { events: trace.len() as u64, analysis, trace }));
    }
    let file = fs::File::open(argument).map_err(|e| Failure::io(argument, &e))?;
    let _guard = opened(&file);
    let analysed = Analysis::of_file(argument, file, options).map_err(Failure::new)?;
    Ok((argument.to_owned(), analysed))
}

/// Files in the folder of a recording: of LTTng, of perf with `--threads`. Other folders may have the name of a
/// workload.
const IN_FOLDERS: [&str; 3] = ["metadata", "kernel/metadata", "data"];

/// Whether an argument names a recording: stdin, a file that is no workload's, or a recording's folder.
pub fn is_recording(argument: &str) -> bool {
    let path = Path::new(argument);
    let is_folder = || IN_FOLDERS.iter().any(|name| path.join(name).exists());
    argument == "-" || (path.is_file() && !is_workload_file(argument)) || is_folder()
}

/// Whether a name is that of a workload file: TOML, or JSON.
pub fn is_workload_file(argument: &str) -> bool {
    let extension = Path::new(argument).extension();
    extension.is_some_and(|extension| extension == "toml" || extension == "json")
}
