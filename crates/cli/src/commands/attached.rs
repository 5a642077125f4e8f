//! A scheduler that is attached in a virtual machine for a moment, for what the kernel knows of it then.

use fairground_analysis::Options;
use fairground_realkernel::job;
use fairground_session::{
    Failure, MachineSpec, RunPlan, RunSpec, SchedulerSpec, TargetReport, TargetSpec,
};

use crate::progress::Progress;

/// Workload in the guest meanwhile, and its length.
const WORKLOAD: &str = "sleepers:1";
const DURATION: &str = "10ms";

/// Attaches the scheduler, or starts the loader that the target names, and returns the outcome; with `captures` what
/// the loader has set stands in it. `label` names the scheduler in messages.
///
/// # Errors
/// If the target has no real kernel, or the kernel refuses the scheduler: with the verifier's message.
pub(super) fn attached(
    label: &str,
    (target, scheduler): (TargetSpec, SchedulerSpec),
    cpus: Option<u32>,
    captures: bool,
    quiet: bool,
) -> Result<job::Outcome, Failure> {
    let on = target.on.join(",");
    let target = TargetSpec { record: false, ..target };
    let machine =
        MachineSpec { cpus, duration: Some(DURATION.to_owned()), ..MachineSpec::default() };
    let spec =
        RunSpec { workload: WORKLOAD.to_owned(), target, scheduler, machine, ..RunSpec::default() };
    let (workload, _) = spec.find_workload()?;
    let plan = RunPlan { capture: captures, ..RunPlan::new(&spec, &workload, Options::default()) };
    let outcome = plan.run_alone(label, &Progress::new(quiet, 1))?;
    match outcome.report {
        TargetReport::Real { job, .. } => Ok(*job),
        TargetReport::Simulated { .. } => {
            Err(Failure::new(format_args!("{on}: it has no real kernel"))
                .help("give `vm:KERNEL`; `fairground kernels list` names them"))
        }
    }
}
