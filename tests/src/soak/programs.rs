//! The programs that run beside the own load.

use crate::debian::{DebianProgram, HACKBENCH, PackedProgram, STRESS_NG};

/// A program, and the arguments with which it ends after some seconds.
#[derive(Clone, Copy, Debug)]
pub struct LoadProgram {
    /// The program.
    pub program: DebianProgram,
    arguments: &'static str,
}

/// Two groups of twenty senders and twenty receivers each; and one worker of each of four kinds, with its figures in a
/// file.
pub const LOAD_PROGRAMS: [LoadProgram; 2] = [
    LoadProgram { program: HACKBENCH, arguments: "-g 2 -l 100" },
    LoadProgram {
        program: STRESS_NG,
        arguments: "--cpu 1 --fork 1 --pipe 1 --switch 1 --timeout 5 --metrics --yaml \
                    /tmp/stress-ng.yaml --temp-path /tmp",
    },
];

impl LoadProgram {
    /// The path in the guest, and the arguments.
    pub fn words(&self, packed: &PackedProgram) -> Vec<String> {
        let arguments = self.arguments.split(' ').map(str::to_owned);
        std::iter::once(packed.path.clone()).chain(arguments).collect()
    }
}
