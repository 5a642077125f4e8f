//! `sched show --verify`: what a real kernel's verifier says of a scheduler's programs.

use fairground_realkernel::sched_ext::VerifiedProgram;
use fairground_report::{Cell, Column, Table};
use fairground_session::{Failure, SchedulerSpec, TargetSpec};

use super::attached::attached;

/// Loads a scheduler into the kernel of a virtual machine, and returns its programs with the number of instructions that
/// the verifier processed for each.
///
/// # Errors
/// If the kernel refuses the object: with the verifier's message.
pub(super) fn verified_table(sched: &str, on: &str, quiet: bool) -> Result<Table, Failure> {
    let target = TargetSpec { on: vec![on.to_owned()], ..TargetSpec::default() };
    let scheduler = SchedulerSpec { sched: vec![sched.to_owned()], ..SchedulerSpec::default() };
    let job = attached(sched, (target, scheduler), None, false, quiet)?;
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
