//! How long each part of a machine's life may take, wall time.

use std::time::Duration;

use super::mode::VmMode;

/// How long each part may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the start of QEMU to the guest's first sign.
    pub boot: Duration,
    /// For the command.
    pub run: Duration,
    /// For bringing the results out and ending the machine.
    pub shutdown: Duration,
}

impl Deadlines {
    /// For a command that lasts `guest_ns` of the guest's time on `cpus` virtual CPUs.
    ///
    /// A boot was measured at 3 to 6 s on an idle 2-core machine, and a guest second at about 1 s in the
    /// deterministic mode, whatever the number of CPUs (they take turns within it). In the fast mode `cpus` threads
    /// share the cores of this machine, and one has as much to do for each of them. All is given twenty times that: a
    /// deadline is there to end what hangs, not to hurry what is slow.
    pub fn for_guest(guest_ns: u64, cpus: u32, mode: VmMode) -> Self {
        const SLACK: u32 = 20;
        let cpus = cpus.max(1);
        let per_second = match mode {
            VmMode::Deterministic => 1,
            VmMode::Fast => cpus.div_ceil(2),
            VmMode::OneThread => cpus,
        };
        Self {
            boot: Duration::from_secs(120) + Duration::from_secs(4) * cpus,
            run: Duration::from_secs(60) + Duration::from_nanos(guest_ns) * SLACK * per_second,
            shutdown: Duration::from_secs(60),
        }
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.boot + self.run + self.shutdown
    }
}
