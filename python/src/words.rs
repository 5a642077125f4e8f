//! A point as a spec, and the schedulers and workloads that there are.

use fairground_machine::{MachineConfig, Setting};
use fairground_session::{
    BadWord, Failure, OptionGroup, RunSpec, SchedulerObject, VariablesSpec, find_object,
    one_variant, parameter_sets, read_profiles,
};
use fairground_workload::{Workload, library};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error;

/// The spec of a point: of Python's `fairground.Point`.
///
/// # Errors
/// As [`spec_of_words`].
pub(crate) fn spec_of(point: &Bound<'_, PyAny>) -> PyResult<RunSpec> {
    spec_of_words(&point.call_method0("words")?.extract::<String>()?)
}

/// The spec of named values, as JSON.
///
/// # Errors
/// A `TypeError` for a value of the wrong type, else an `Error`; both name the keyword.
pub(crate) fn spec_of_words(json: &str) -> PyResult<RunSpec> {
    let words: Map<String, Value> = serde_json::from_str(json).map_err(error)?;
    RunSpec::from_words(&words).map_err(|BadWord { name, why, is_type, .. }| {
        let keyword = if name == "set" { "settings" } else { &name };
        let text = format!("{keyword}: {why}");
        if is_type { PyTypeError::new_err(text) } else { error(text) }
    })
}

/// The SHA-256 of what a point names, where it names a file, and of its scheduler's object: Python's
/// `fairground._files.Digests`.
#[derive(FromPyObject)]
pub(crate) struct Digests {
    pub(crate) scheduler: Option<String>,
    pub(crate) workload: Option<String>,
    pub(crate) topology: Option<String>,
    pub(crate) profile: Option<String>,
}

/// A spec of one simulated run, checked; its scheduler is compiled apart.
pub(crate) struct Checked {
    pub(crate) workload: Workload,
    /// What of a foreign workload has another meaning here.
    pub(crate) notes: Vec<String>,
    pub(crate) machine: MachineConfig,
    /// Settings beyond those of a parameter set.
    pub(crate) settings: Vec<Setting>,
    /// What is shown and required of the scheduler's variables.
    pub(crate) variables: VariablesSpec,
    pub(crate) duration_ns: u64,
    /// What a task is called in the result, from its name in the workload.
    pub(crate) rename: fn(&str) -> &str,
}

impl Checked {
    /// Checks everything but the scheduler.
    pub(crate) fn of(spec: &RunSpec, callbacks: bool) -> Result<Checked, Failure> {
        Checked::with(spec, spec.find_workload()?, callbacks)
    }

    /// The same of a workload that is made already, with notes on it.
    pub(crate) fn with(
        spec: &RunSpec,
        (workload, notes): (Workload, Vec<String>),
        callbacks: bool,
    ) -> Result<Checked, Failure> {
        let run = spec.resolve(&workload, callbacks)?;
        let mut settings = one_variant(&spec.scheduler.set)?.settings;
        settings.extend(run.later);
        let (machine, duration_ns) = (run.machine, run.duration_ns);
        let variables = spec.variables.clone();
        let rename: fn(&str) -> &str = |name| name;
        Ok(Checked { workload, notes, machine, settings, variables, duration_ns, rename })
    }
}

/// The scheduler that a spec names.
pub(crate) fn sched_of(spec: &RunSpec) -> Result<&str, Failure> {
    match spec.scheduler.sched.as_slice() {
        [sched] => Ok(sched),
        _ => Err(Failure::new("sched: a run has one scheduler")
            .help("`grid` and `sweep` run several, each for itself")),
    }
}

fn load(spec: &RunSpec) -> Result<fairground_session::Scheduler, Failure> {
    let (sched, target) = (sched_of(spec)?, (&spec.scheduler).into());
    let profiles = read_profiles(&spec.scheduler.profile, &[sched])?;
    let Some(profile) = profiles.first() else {
        return fairground_session::Scheduler::load(sched, None, target);
    };
    let checked = Checked::of(spec, false)?;
    profile.check(sched, &checked.settings)?;
    let topology = &checked.machine.topology;
    fairground_session::Scheduler::load(sched, Some((profile, topology)), target)
}

/// A scheduler, compiled: any number of runs share it.
#[pyclass(frozen)]
pub(crate) struct Scheduler {
    pub(crate) loaded: fairground_session::Scheduler,
    /// The SHA-256 of its object: of the very bytes that were compiled.
    #[pyo3(get)]
    digest: String,
}

#[pymethods]
impl Scheduler {
    /// Finds and compiles the scheduler of a point.
    #[new]
    fn new(py: Python<'_>, point: &Bound<'_, PyAny>) -> PyResult<Self> {
        let spec = spec_of(point)?;
        let load = || load(&spec).map(|loaded| (sha256(&loaded.object.bytes), loaded));
        let (digest, loaded) = py.detach(load).map_err(error)?;
        Ok(Self { loaded, digest })
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a scheduler's object, as it would be loaded now: the same text means the same program.
#[pyfunction]
pub(crate) fn object_digest(py: Python<'_>, sched: &str) -> PyResult<String> {
    let find = || SchedulerObject::find(sched, None).map(|object| sha256(&object.bytes));
    py.detach(find).map_err(error)
}

/// Name, what it is, and parameter sets of each scheduler that comes with fairground.
#[pyfunction]
pub(crate) fn schedulers() -> PyResult<Vec<(&'static str, &'static str, Vec<String>)>> {
    let of = |policy: &fairground_policies::Policy| {
        let sets = parameter_sets(&*find_object(policy.name).map_err(error)?);
        Ok((policy.name, policy.summary, sets.into_keys().collect()))
    };
    fairground_policies::all().iter().map(of).collect()
}

/// Name, what stands behind its colon, and what it is, of each workload that comes with fairground.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(&'static str, &'static str, &'static str)> {
    library::entries().iter().map(|entry| (entry.name, entry.arguments, entry.summary)).collect()
}
