//! A recording of a real machine: a file or stdin, in any format that the library reads.

use std::fs;
use std::io;

use fairground_trace::Trace;

use crate::failure::Failure;

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
    read_recording_watched(argument, |_| ())
}

/// The same, for who wants to know how far it is: `opened` is shown the file before its first byte is read.
///
/// # Errors
/// As [`read_recording`].
pub fn read_recording_watched<Guard>(
    argument: &str,
    opened: impl FnOnce(&fs::File) -> Guard,
) -> Result<Recording, Failure> {
    let (name, trace) = if argument == "-" {
        ("<stdin>", fairground_trace::read("<stdin>", io::stdin().lock()))
    } else {
        let file = fs::File::open(argument).map_err(|e| Failure::io(argument, &e))?;
        let _guard = opened(&file);
        (argument, fairground_trace::read_file(argument, file))
    };
    Ok(Recording { name: name.to_owned(), trace: trace.map_err(Failure::new)? })
}
