//! A workload by name, or from a file: our own TOML, or rt-app's JSON.

use std::path::Path;

use fairground_realkernel::files::{TEXT_BYTES_MAX, read_file};
use fairground_workload::Workload;

use crate::failure::Failure;

/// Whether an argument means a file: it begins like a path, ends in `.toml` or `.json`, or is there.
fn is_file(argument: &str) -> bool {
    let path = ["/", "./", "../"].iter().any(|start| argument.starts_with(start));
    path || argument.ends_with(".toml") || is_rt_app(argument) || Path::new(argument).is_file()
}

/// Whether a file is one of rt-app.
fn is_rt_app(argument: &str) -> bool {
    argument.ends_with(".json")
}

/// Reads, parses and checks.
pub fn find_workload(argument: &str) -> Result<Workload, Failure> {
    find_workload_noted(argument).map(|(workload, _)| workload)
}

/// The same, with what has another meaning here than for the program whose file it is.
pub fn find_workload_noted(argument: &str) -> Result<(Workload, Vec<String>), Failure> {
    if is_file(argument) {
        let bytes = read_file(argument, TEXT_BYTES_MAX).map_err(|e| Failure::io(argument, &e))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Failure::new(format_args!(
                "{argument}: byte {at} is not UTF-8, so this is no workload file"
            ))
            .help(
                "a workload is a TOML file, or a JSON file of rt-app: docs/reference/workloads.md",
            )
        })?;
        if is_rt_app(argument) {
            let read = fairground_workload::parse_rt_app(argument, &text).map_err(Failure::new)?;
            return Ok((read.workload, read.notes));
        }
        let workload = fairground_workload::parse(argument, &text).map_err(Failure::new)?;
        return Ok((workload, Vec::new()));
    }
    let workload = fairground_workload::from_spec(argument).map_err(Failure::new)?;
    Ok((workload, Vec::new()))
}
