//! `soak`: every scheduler on a real kernel.

use std::error::Error;

use fairground_tests::{guest, soak};

fn main() -> Result<(), Box<dyn Error>> {
    guest::main(soak::COMMAND, soak::guest)
}
