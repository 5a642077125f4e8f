//! The runner alone, without the rest of the program: `fairground-runner __run-job FOLDER`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (Some(command), Some(folder), None)
            if command == fairground_kernel::run::RUNNER_COMMAND =>
        {
            match fairground_kernel::carry_out(Path::new(&folder)) {
                Ok(_) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::from(2)
                }
            }
        }
        _ => {
            eprintln!("usage: fairground-runner {} FOLDER", fairground_kernel::run::RUNNER_COMMAND);
            ExitCode::from(2)
        }
    }
}
