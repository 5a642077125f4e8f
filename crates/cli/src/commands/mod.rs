//! One file for each command.

mod analyze;
mod attached;
mod capture;
mod compare;
mod compare_recordings;
mod contention;
mod diagnose;
mod doctor;
mod experiment_runs;
mod fetch;
mod follow;
pub(crate) mod kernels;
mod load;
mod man;
mod needs;
mod policy_cost;
mod ran;
mod record;
mod replay;
mod reproduce;
mod run;
mod sched;
mod schema;
mod top;
mod verify;
mod workload;

use std::process::ExitCode;

use fairground_session::Failure;

use crate::args::{Cli, Command};
use crate::present;

pub(crate) fn execute(cli: &Cli) -> Result<ExitCode, Failure> {
    present::check(cli.format)?;
    match &cli.command {
        Command::Run(args) => run::run(cli, args),
        Command::Compare(args) => compare::compare(cli, args),
        Command::Record(args) => record::record(cli, args),
        Command::Convert(args) => record::convert(cli, args),
        Command::Analyze(args) => analyze::analyze(cli, args),
        Command::Diagnose(args) => diagnose::diagnose(cli, args),
        Command::Contention(args) => contention::contention(cli, args),
        Command::Replay(args) => replay::replay(cli, args),
        Command::Follow(args) => follow::follow(cli, args),
        Command::Reproduce(args) => reproduce::reproduce(cli, args),
        Command::Top(args) => top::top(cli, args),
        Command::Load(args) => load::load(cli, args),
        Command::Sched(command) => sched::sched(cli, command),
        Command::Workload(command) => workload::workload(cli, command),
        Command::Doctor(args) => doctor::doctor(cli, args),
        Command::Completions(args) => man::completions(args),
        Command::Man(args) => man::man(args),
        Command::Schema(args) => schema::schema(cli, args),
        Command::Kernels(command) => kernels::kernels(cli, command),
        Command::KernelInfo => {
            let info = fairground_realkernel::run::kernel_info();
            let text = serde_json::to_string_pretty(&info)
                .expect("every key is a text, and no value can fail");
            present::write_stdout(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::RunJob { folder } => match fairground_realkernel::carry_out(folder) {
            Ok(_) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(Failure::new(error)),
        },
    }
}
