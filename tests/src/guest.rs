//! Programs of tests in virtual machines: each is the first process there, and the program that the host starts in it.

use std::error::Error;
use std::path::Path;

use fairground_realkernel::run::RUNNER_COMMAND;

/// Interprets the arguments of such a program: `command` starts `task`.
///
/// # Errors
/// Those of the task; and a start outside of a test.
pub fn main(command: &str, task: fn() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    if fairground_realkernel::guest::is_init() {
        fairground_realkernel::guest::main();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [word] if word == command => task(),
        [RUNNER_COMMAND, folder] => {
            fairground_realkernel::carry_out(Path::new(folder))?;
            Ok(())
        }
        _ => Err("the tests boot this program in a virtual machine".into()),
    }
}
