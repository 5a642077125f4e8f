//! Time limits of the phases of a virtual machine: wall time, without that in which QEMU waits for a CPU of the host.

use std::time::Duration;

use super::mode::VmMode;

/// The time limit of each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the start of QEMU to the guest's first message.
    pub boot: Duration,
    /// For the command.
    pub run: Duration,
    /// For copying the results and ending the machine.
    pub shutdown: Duration,
}

impl Deadlines {
    /// For a command that lasts `guest_ns` of the guest's time on `cpus` virtual CPUs; in the deterministic mode an
    /// instruction takes `instruction_ns`.
    ///
    /// On an idle 2-core machine, a boot takes 3 to 6 s, and a guest second about 1 s in the deterministic mode at 8 ns
    /// an instruction, for any number of CPUs. In the fast mode, `cpus` threads share the cores of the machine. The
    /// limits are twenty times these values: they detect hangs, not slow runs.
    pub fn for_guest(guest_ns: u64, cpus: u32, mode: VmMode, instruction_ns: u64) -> Self {
        const SLACK: u32 = 20;
        let cpus = cpus.max(1);
        let per_second = match mode {
            VmMode::Deterministic => (8 / instruction_ns.clamp(1, 8)) as u32,
            VmMode::Fast => cpus.div_ceil(2),
            VmMode::OneThread => cpus,
        };
        Self {
            boot: Duration::from_secs(120) + Duration::from_secs(4) * cpus,
            run: Duration::from_secs(60) + Duration::from_nanos(guest_ns) * SLACK * per_second,
            shutdown: Duration::from_secs(60),
        }
    }

    /// The sum of all limits.
    pub fn total(&self) -> Duration {
        self.boot + self.run + self.shutdown
    }
}
