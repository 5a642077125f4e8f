//! The words of a replay: which machine and which scheduler made the recording, as far as it tells, and the workload
//! that follows from both.

use fairground_trace::Trace;
use fairground_workload::{ReplayNotes, Workload};

use super::{Charges, OwnScheduler, recorded_machine, replay_workload};
use crate::COSTS_DEFAULT;
use crate::failure::Failure;
use crate::spec::{MachineSpec, RunSpec, SchedulerSpec};

/// What is replayed, and in which machine.
#[derive(Debug)]
pub struct Replay {
    /// What a result calls the workload: the recording's name.
    name: String,
    /// The machine: what was asked for, else what the recording tells.
    machine: MachineSpec,
    /// The model of the scheduler that made the recording.
    own: Option<OwnScheduler>,
    /// Why the scheduler that made it is not at hand.
    missing: Option<Failure>,
}

impl Replay {
    /// A replay of a recording in the machine that is asked for; what `asked` leaves at its default is as recorded.
    pub fn of(name: &str, trace: &Trace, asked: &MachineSpec) -> Self {
        let machine = recorded_machine(asked, trace);
        let (own, missing) = match OwnScheduler::of(&trace.origin) {
            Ok(own) => (own, None),
            Err(failure) => (None, Some(failure)),
        };
        Self { name: name.to_owned(), machine, own, missing }
    }

    /// The model of the scheduler that made the recording.
    pub fn own(&self) -> Option<&OwnScheduler> {
        self.own.as_ref()
    }

    /// The workload of the recording, without what the machine charges anew: where its scheduler is known, a first
    /// replay under it counts what that one takes. `engine` says how that replay's instructions are executed.
    ///
    /// # Errors
    /// When no task of the recording ever ran, when the workload passes a limit, or when a word of the machine is
    /// invalid.
    pub fn workload(
        &self,
        trace: &Trace,
        engine: &SchedulerSpec,
    ) -> Result<(Workload, ReplayNotes), Failure> {
        let failed = |e| Failure::new(format_args!("{}: {e}", self.name));
        let make = |charges| replay_workload("replay", trace, charges).map_err(failed);
        let charges = Charges::of(&self.machine.cost_model(COSTS_DEFAULT)?);
        let Some(own) = self.own_spec(engine) else { return make(charges) };
        let (workload, _) = make(charges)?;
        make(Charges::under(&own, &workload)?)
    }

    /// A run of the replay under a scheduler.
    pub fn spec(&self, scheduler: SchedulerSpec) -> RunSpec {
        let (workload, machine) = (self.name.clone(), self.machine.clone());
        RunSpec { workload, scheduler, machine, ..RunSpec::default() }
    }

    /// A run of the replay under the scheduler that made the recording, executed as `engine` says; `None` where that
    /// scheduler is not at hand.
    pub fn own_spec(&self, engine: &SchedulerSpec) -> Option<RunSpec> {
        let own = self.own.as_ref()?;
        Some(self.spec(SchedulerSpec {
            sched: vec![own.spec.clone()],
            set: own.set.clone(),
            engine: engine.engine,
            null_loads: engine.null_loads,
            kernel_abi: engine.kernel_abi,
            ..SchedulerSpec::default()
        }))
    }

    /// Why there is no replay under the scheduler that made the recording, where there is none.
    pub fn why_no_own(&self) -> String {
        match &self.missing {
            Some(failure) => format!("the scheduler that made it is not at hand: {failure}"),
            None => "the recording does not tell which scheduler made it".to_owned(),
        }
    }
}

/// The recorded name of a task: in the workload its pid stands behind it, so that names are unique.
pub fn without_pid(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((comm, pid)) if !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) => comm,
        _ => name,
    }
}
