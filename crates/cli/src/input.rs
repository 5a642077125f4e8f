//! From flags to the words that `fairground-session` takes, and from its notes to stderr.

use fairground_analysis::{Analysed, Options};
use fairground_machine::{Engine, NullLoads, SleepTimers, TraceOptions};
use fairground_session::{
    Failure, MachineSpec, Recording, analyse_recording_watched, find_workload_noted,
    read_recording_watched,
};
use fairground_workload::Workload;

use crate::args::{EngineArg, LockArgs, MachineArgs, NullLoadsArg, TimersArg};
use crate::progress::Reading;

/// The machine that the flags describe.
pub(crate) fn machine_spec(
    args: &MachineArgs,
    null_loads: NullLoadsArg,
    trace: TraceOptions,
) -> MachineSpec {
    MachineSpec {
        cpus: args.cpus,
        topology: args.topology.clone(),
        hz: args.hz,
        timers: args.timers.into(),
        seed: args.seed,
        costs: args.costs.clone(),
        cost: args.cost.clone(),
        null_loads: null_loads.into(),
        trace,
        check: args.check,
        idle_bound: args.idle_bound.clone(),
        lead_in: args.lead_in.clone(),
        max_events: args.max_events,
    }
}

impl From<EngineArg> for Engine {
    fn from(arg: EngineArg) -> Self {
        match arg {
            EngineArg::Jit => Engine::Jit,
            EngineArg::Interpreter => Engine::Interpreter,
        }
    }
}

impl From<NullLoadsArg> for NullLoads {
    fn from(arg: NullLoadsArg) -> Self {
        match arg {
            NullLoadsArg::Error => NullLoads::Trap,
            NullLoadsArg::Zero => NullLoads::ReadZero,
        }
    }
}

impl From<TimersArg> for SleepTimers {
    fn from(arg: TimersArg) -> Self {
        match arg {
            TimersArg::Hrtimer => SleepTimers::Hrtimer,
            TimersArg::Jiffies => SleepTimers::Jiffies,
        }
    }
}

/// Reads a recording, and shows how far it is.
pub(crate) fn find_recording(argument: &str, quiet: bool) -> Result<Recording, Failure> {
    read_recording_watched(argument, |file| Reading::of(argument, file, quiet))
}

/// Reads a recording for its analysis alone, and shows how far it is; also gives its name.
pub(crate) fn analyse_recording(
    argument: &str,
    options: &Options,
    quiet: bool,
) -> Result<(String, Analysed), Failure> {
    analyse_recording_watched(argument, options, |file| Reading::of(argument, file, quiet))
}

/// Reads, parses and checks a workload, with the notes on stderr unless nobody wants any.
fn find_workload_aloud(argument: &str, quiet: bool) -> Result<Workload, Failure> {
    let (workload, notes) = find_workload_noted(argument)?;
    if !quiet {
        say(&notes);
    }
    Ok(workload)
}

/// Notes for people, on stderr.
pub(crate) fn say(notes: &[String]) {
    for note in notes {
        eprintln!("note: {note}");
    }
}

/// The same, with the locks that are asked for.
pub(crate) fn find_workload_with(
    argument: &str,
    args: &LockArgs,
    quiet: bool,
) -> Result<Workload, Failure> {
    let mut workload = find_workload_aloud(argument, quiet)?;
    if let Some(locks) = args.locks {
        workload.set_lock_model(locks.model());
    }
    Ok(workload)
}
