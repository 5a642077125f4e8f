//! `originals`: third-party programs and our workloads on one kernel.

use std::error::Error;

use fairground_tests::{guest, originals};

fn main() -> Result<(), Box<dyn Error>> {
    guest::main(originals::COMMAND, originals::guest)
}
