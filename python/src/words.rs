//! What a point says in words, and the schedulers and workloads that there are.

use std::path::PathBuf;

use fairground_machine::{Engine, MachineConfig, NullLoads, Setting, SleepTimers, TraceOptions};
use fairground_session::{
    Failure, MachineSpec, SchedulerObject, at_settings, duration_ns, find_object,
    find_workload_noted, lock_model, machine_config, parameter_sets, read_profiles,
};
use fairground_workload::{Workload, library};
use pyo3::prelude::*;
use sha2::{Digest, Sha256};

use crate::error;

/// A run in words: the attributes of Python's `fairground.Point`.
#[derive(FromPyObject)]
pub(crate) struct Words {
    pub(crate) workload: String,
    pub(crate) sched: String,
    cpus: Option<u32>,
    topology: Option<String>,
    duration: Option<String>,
    pub(crate) seed: u64,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) at: Vec<String>,
    hz: Option<u32>,
    timers: String,
    pub(crate) costs: String,
    pub(crate) cost: Vec<(String, u64)>,
    pub(crate) locks: Option<String>,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) engine: String,
    pub(crate) null_loads: String,
    lead_in: Option<String>,
    pub(crate) check: bool,
    idle_bound: Option<String>,
}

/// The SHA-256 of what a point names, where it names a file, and of its scheduler's object: Python's `fairground._files.Digests`.
#[derive(FromPyObject)]
pub(crate) struct Digests {
    pub(crate) scheduler: Option<String>,
    pub(crate) workload: Option<String>,
    pub(crate) topology: Option<String>,
    pub(crate) profile: Option<String>,
}

/// A run's words, checked.
pub(crate) struct Checked {
    pub(crate) workload: Workload,
    /// What of a foreign workload has another meaning here.
    pub(crate) notes: Vec<String>,
    pub(crate) machine: MachineConfig,
    /// Settings beyond those of a parameter set.
    pub(crate) settings: Vec<Setting>,
    pub(crate) duration_ns: u64,
}

/// One of a few words.
fn one_of<T: Copy>(name: &str, word: &str, known: &[(&str, T)]) -> Result<T, Failure> {
    known.iter().find(|(known, _)| *known == word).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|(known, _)| format!("`{known}`")).collect();
        Failure::new(format_args!("{name}: there is no `{word}`"))
            .help(format_args!("give {}", words.join(" or ")))
    })
}

impl Words {
    /// Reads and checks everything but the scheduler.
    pub(crate) fn check(&self, callbacks: bool) -> Result<Checked, Failure> {
        let (mut workload, notes) = find_workload_noted(&self.workload)?;
        if let Some(locks) = &self.locks {
            workload.set_lock_model(lock_model(locks)?);
        }
        let timers = [("hrtimer", SleepTimers::Hrtimer), ("jiffies", SleepTimers::Jiffies)];
        let null_loads = [("error", NullLoads::Trap), ("zero", NullLoads::ReadZero)];
        let machine = machine_config(&MachineSpec {
            cpus: self.cpus,
            topology: self.topology.clone(),
            hz: self.hz,
            timers: one_of("timers", &self.timers, &timers)?,
            seed: self.seed,
            costs: self.costs.clone(),
            cost: self.cost.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            null_loads: one_of("null_loads", &self.null_loads, &null_loads)?,
            trace: TraceOptions { callbacks, ticks: true },
            check: self.check,
            idle_bound: self.idle_bound.clone(),
            lead_in: self.lead_in.clone(),
            max_events: None,
        })?;
        let given = self.settings.iter().map(|(name, value)| Setting::initial(name, value));
        let mut settings: Vec<_> = given.collect();
        settings.extend(at_settings(&self.at)?);
        let duration_ns = duration_ns(self.duration.as_deref(), workload.duration_ns)?;
        Ok(Checked { workload, notes, machine, settings, duration_ns })
    }

    fn engine(&self) -> Result<Engine, Failure> {
        let engines = [("jit", Engine::Jit), ("interpreter", Engine::Interpreter)];
        one_of("engine", &self.engine, &engines)
    }

    fn load(&self) -> Result<fairground_session::Scheduler, Failure> {
        let engine = self.engine()?;
        let paths: Vec<PathBuf> = self.profile.iter().cloned().collect();
        let profiles = read_profiles(&paths, &[&self.sched])?;
        let Some(profile) = profiles.first() else {
            return fairground_session::Scheduler::load(&self.sched, None, engine);
        };
        let checked = self.check(false)?;
        profile.check(&self.sched, &checked.settings)?;
        let cpus = checked.machine.cpus();
        fairground_session::Scheduler::load(&self.sched, Some((profile, cpus)), engine)
    }
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
    fn new(py: Python<'_>, point: Words) -> PyResult<Self> {
        let load = || point.load().map(|loaded| (sha256(&loaded.object.bytes), loaded));
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
        let sets = parameter_sets(&find_object(policy.name).map_err(error)?);
        Ok((policy.name, policy.summary, sets.into_keys().collect()))
    };
    fairground_policies::all().iter().map(of).collect()
}

/// Name, what stands behind its colon, and what it is, of each workload that comes with fairground.
#[pyfunction]
pub(crate) fn workloads() -> Vec<(&'static str, &'static str, &'static str)> {
    library::entries().iter().map(|entry| (entry.name, entry.arguments, entry.summary)).collect()
}
