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
pub fn read_recording(argument: &str) -> Result<Recording, Failure> {
    let (name, trace) = if argument == "-" {
        ("<stdin>", fairground_trace::read("<stdin>", io::stdin().lock()))
    } else {
        let file = fs::File::open(argument).map_err(|e| Failure::io(argument, &e))?;
        (argument, fairground_trace::read_file(argument, file))
    };
    Ok(Recording { name: name.to_owned(), trace: trace.map_err(Failure::new)? })
}
