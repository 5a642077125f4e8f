//! The programs that make load beside the own one.

use crate::debian::{DebianProgram, HACKBENCH, PackedProgram, STRESS_NG};

/// A program, and the arguments with which it ends after some seconds.
#[derive(Clone, Copy, Debug)]
pub struct LoadProgram {
    /// Which.
    pub program: DebianProgram,
    arguments: &'static str,
}

/// Two groups of twenty senders and twenty receivers each; and one worker of each of four kinds, which says in a file how much
/// each did.
pub const LOAD_PROGRAMS: [LoadProgram; 2] = [
    LoadProgram { program: HACKBENCH, arguments: "-g 2 -l 100" },
    LoadProgram {
        program: STRESS_NG,
        arguments: "--cpu 1 --fork 1 --pipe 1 --switch 1 --timeout 5 --metrics --yaml /tmp/stress-ng.yaml --temp-path /tmp",
    },
];

impl LoadProgram {
    /// What to start in the guest, and its arguments.
    pub fn words(&self, packed: &PackedProgram) -> Vec<String> {
        let arguments = self.arguments.split(' ').map(str::to_owned);
        std::iter::once(packed.path.clone()).chain(arguments).collect()
    }
}
