//! `sched show --verify`: what a real kernel's verifier says of a scheduler's programs.

use fairground_analysis::Options;
use fairground_realkernel::sched_ext::VerifiedProgram;
use fairground_report::{Cell, Column, Table};
use fairground_session::{
    Failure, MachineSpec, RunPlan, RunSpec, SchedulerSpec, TargetReport, TargetSpec,
};

use crate::progress::Progress;

/// Workload in the guest meanwhile, and its length: the scheduler is attached and detached.
const WORKLOAD: &str = "sleepers:1";
const DURATION: &str = "10ms";

/// Loads a scheduler into the kernel of a virtual machine, and returns its programs with the number of instructions that
/// the verifier processed for each.
///
/// # Errors
/// If the kernel refuses the object: with the verifier's message.
pub(super) fn verified_table(sched: &str, on: &str, quiet: bool) -> Result<Table, Failure> {
    let spec = RunSpec {
        workload: WORKLOAD.to_owned(),
        target: TargetSpec { on: vec![on.to_owned()], record: false, ..TargetSpec::default() },
        scheduler: SchedulerSpec { sched: vec![sched.to_owned()], ..SchedulerSpec::default() },
        machine: MachineSpec { duration: Some(DURATION.to_owned()), ..MachineSpec::default() },
        ..RunSpec::default()
    };
    let (workload, _) = spec.find_workload()?;
    let plan = RunPlan::new(&spec, &workload, Options::default());
    let outcome = plan.run_alone(sched, &Progress::new(quiet, 1))?;
    let TargetReport::Real { job, .. } = outcome.report else {
        return Err(Failure::new(format_args!("--verify={on}: it has no real kernel"))
            .help("give `--verify=vm:KERNEL`; `fairground kernels list` names them"));
    };
    Ok(table(&job.kernel.release, &job.programs))
}

fn table(release: &str, programs: &[VerifiedProgram]) -> Table {
    let title = format!("Programs, as the verifier of Linux {release} accepts them");
    let mut table = Table::of("verified", title, programs)
        .text("program", |program| program.name.as_str())
        .column(Column::number_in("processed", "instructions"), |program| {
            Cell::known(program.verified_insns, |insns| Cell::count(insns.into()))
        })
        .table();
    table.note("It gives up at 1,000,000 instructions for a program.");
    table
}
