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
mod talk;

use std::borrow::Cow;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;

/// The exit code of every error.
const ERROR_CODE: u8 = 2;

fn main() -> ExitCode {
    if fairground_realkernel::guest::is_init() {
        fairground_realkernel::guest::main();
    }
    interrupt::outlive_file_limit();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(text) = args::negative_number(&error) {
                talk::say(text);
                return ExitCode::from(ERROR_CODE);
            }
            return refuse(&args::with_nearest_command(error));
        }
    };
    match commands::execute(&cli) {
        Ok(code) => code,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            talk::say(format!("fairground: {failure}"));
            // What was asked to end has not failed.
            let is_asked = failure.is_interrupted() || interrupt::is_asked();
            ExitCode::from(if is_asked { interrupt::EXIT_CODE } else { ERROR_CODE })
        }
    }
}

/// Says what is wrong with the arguments, in colours where they do not repeat what would control the terminal; or
/// prints the help that they ask for.
fn refuse(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    match talk::shown(&plain) {
        Cow::Borrowed(_) => drop(error.print()),
        Cow::Owned(text) => talk::say(text.trim_end()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(ERROR_CODE))
}
