//! A workload by name, or from a file.

use std::fs;
use std::path::Path;

use fairground_workload::Workload;

use crate::args::LockArgs;
use crate::failure::Failure;

/// Whether an argument means a file: it begins like a path, ends in `.toml`, or is there.
fn is_file(argument: &str) -> bool {
    let path = ["/", "./", "../"].iter().any(|start| argument.starts_with(start));
    path || argument.ends_with(".toml") || Path::new(argument).is_file()
}

/// Reads, parses and checks.
pub(crate) fn find_workload(argument: &str) -> Result<Workload, Failure> {
    if is_file(argument) {
        let bytes = fs::read(argument).map_err(|e| Failure::io(argument, &e))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Failure::new(format_args!(
                "{argument}: byte {at} is not UTF-8, so this is no workload file"
            ))
            .help("a workload is a TOML file: docs/workloads.md")
        })?;
        return fairground_workload::parse(argument, &text).map_err(Failure::new);
    }
    fairground_workload::from_spec(argument).map_err(Failure::new)
}

/// The same, with the locks that are asked for.
pub(crate) fn find_workload_with(argument: &str, args: &LockArgs) -> Result<Workload, Failure> {
    let mut workload = find_workload(argument)?;
    if let Some(locks) = args.locks {
        workload.set_lock_model(locks.model());
    }
    Ok(workload)
}
