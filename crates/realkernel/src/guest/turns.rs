//! Short turns for the virtual CPUs of a guest whose clock counts instructions.
//!
//! QEMU runs such CPUs on one thread, one after the other, and a turn lasts until the next timer of its virtual clock
//! is due, divided by the number of CPUs: half a millisecond to one and a half, in which the clock goes on for the
//! CPUs that stand still. A task that needs 36 µs was so charged 690 µs (Linux 6.1, 2 CPUs, a sleeper of 1 kHz beside
//! two hogs).
//!
//! A CPU gives its turn away when it executes `pause`. So a long computation of ours does that every 2 µs ([`asked`]
//! says whether), which costs its CPU nothing but progress that nobody looks at: its time is what the guest's clock
//! says. A task that calls the kernel does it after every few operations. The kernel's own work is not interrupted
//! and, since the others have given way, is charged what it executes: a hop of a pipe beside a hog on each other CPU
//! takes the 48.4 µs that it takes alone, in the median, on 2 CPUs and on 4. Ending turns by a quick timer instead
//! was tried: it makes them uneven (58 and 41 % of the time for two CPUs) and cuts the kernel's work to pieces.

use std::fs;

/// The kernel's parameter that asks for short turns.
pub const PARAMETER: &str = "fairground.turns=short";

/// Whether the kernel's command line asks for short turns.
pub(crate) fn asked() -> bool {
    fs::read_to_string("/proc/cmdline")
        .is_ok_and(|line| line.split_whitespace().any(|word| word == PARAMETER))
}
