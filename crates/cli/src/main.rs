//! The `fairground` binary: reads arguments, calls the crates, prints. It decides nothing about scheduling.

mod args;
mod commands;
mod experiment;
mod export;
mod failure;
mod grounds;
mod input;
mod outcome;
mod pictures;
mod present;
mod progress;
mod real;
mod samples;
mod simulate;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;
use crate::failure::Failure;

fn main() -> ExitCode {
    if fairground_kernel::guest::is_init() {
        fairground_kernel::guest::main();
    }
    let cli = Cli::parse();
    match commands::execute(&cli) {
        Ok(code) => code,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("fairground: {failure}");
            ExitCode::from(Failure::CODE)
        }
    }
}
