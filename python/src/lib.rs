//! The native half of the Python package `fairground`: runs, recordings, tables. The other half, `fairground/*.py`, is
//! what people import; it knows nothing of scheduling, and this half nothing of notebooks, processes and clusters.

mod figures;
mod findings;
mod made;
mod options;
mod plan;
mod point;
mod replay;
mod run;
mod table;
mod waits;
mod watch;
mod words;

use pyo3::prelude::*;

pyo3::create_exception!(
    fairground,
    Error,
    pyo3::exceptions::PyValueError,
    "What was wrong, where, why, and what to do: the text that the command line prints."
);

/// An error for Python, in the same words as on the command line.
fn error(failure: impl std::fmt::Display) -> PyErr {
    Error::new_err(failure.to_string())
}

/// The module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::Error;
    #[pymodule_export]
    use super::options::{Opt, nearest, options};
    #[pymodule_export]
    use super::plan::{compare, compare_recordings, follow, is_recording, run_on};
    #[pymodule_export]
    use super::point::{error_file, point_file};
    #[pymodule_export]
    use super::replay::{near, own_scheduler, replay};
    #[pymodule_export]
    use super::run::{Run, read, simulate};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::waits::Contention;
    #[pymodule_export]
    use super::words::{Scheduler, object_digest, schedulers, workloads};

    /// The version of fairground.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// The SHA-256 of the sources that results come from: the machine, the workloads, the metrics.
    #[pymodule_export]
    const SOURCES_SHA256: &str = env!("FAIRGROUND_SOURCES_SHA256");
}
