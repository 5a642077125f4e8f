//! `originals`: programs of others beside our workloads on one kernel. It is the first process of a virtual machine, and the
//! program that runs there.

use std::error::Error;
use std::path::Path;

use fairground_kernel::run::RUNNER_COMMAND;
use fairground_tests::originals;

fn main() -> Result<(), Box<dyn Error>> {
    if fairground_kernel::guest::is_init() {
        fairground_kernel::guest::main();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [originals::COMMAND] => originals::guest(),
        [RUNNER_COMMAND, folder] => {
            fairground_kernel::carry_out(Path::new(folder))?;
            Ok(())
        }
        _ => Err("the tests boot this program in a virtual machine".into()),
    }
}
