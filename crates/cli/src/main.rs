//! The `fairground` binary: reads arguments, calls the crates, prints. It decides nothing about scheduling.

mod args;
mod commands;
mod doctor;
mod experiment;
mod export;
mod formats;
mod input;
mod interrupt;
mod pictures;
mod present;
mod progress;
mod real;
mod targets;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;

/// The exit code of every error.
const ERROR_CODE: u8 = 2;

fn main() -> ExitCode {
    if fairground_realkernel::guest::is_init() {
        fairground_realkernel::guest::main();
    }
    let cli = Cli::parse();
    match commands::execute(&cli) {
        Ok(code) => code,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("fairground: {failure}");
            ExitCode::from(ERROR_CODE)
        }
    }
}
