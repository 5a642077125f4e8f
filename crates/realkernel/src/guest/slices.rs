//! Short time slices of virtual CPUs, for guests whose clock counts instructions.
//!
//! QEMU runs the virtual CPUs of such a guest round-robin on one thread. A CPU runs until the next timer of the
//! virtual clock, divided by the number of CPUs: 0.5 to 1.5 ms, during which the clock advances for the waiting CPUs,
//! too. A task that needs 36 µs was thereby charged 690 µs (Linux 6.1, 2 CPUs, a sleeper of 1 kHz and two hogs).
//!
//! A CPU ends its slice when it executes `pause`. Therefore long computations of the workload's tasks execute `pause`
//! every 2 µs if [`requested`]; this does not change their CPU time on the guest's clock. Tasks that make system
//! calls do so after every few operations. The kernel's own work is not interrupted and is charged what it executes:
//! a pipe hop beside a hog on each other CPU takes 48.4 µs in the median on 2 and on 4 CPUs, as without hogs. Ending
//! slices with a fast timer instead makes them uneven (58 and 41 % of the time for two CPUs) and interrupts the
//! kernel's work.

use std::fs;

/// The kernel parameter that requests short slices.
pub const PARAMETER: &str = "fairground.slices=short";

/// Whether the kernel's command line requests short slices.
pub(crate) fn requested() -> bool {
    fs::read_to_string("/proc/cmdline")
        .is_ok_and(|line| line.split_whitespace().any(|word| word == PARAMETER))
}
