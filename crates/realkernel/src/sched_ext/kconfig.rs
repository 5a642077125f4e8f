//! The kernel's configuration, as far as a scheduler asks for it (`extern int CONFIG_HZ __kconfig`).
//!
//! libbpf reads it from `/proc/config.gz` or `/boot/config-RELEASE`. A virtual machine has neither; but ticks a second, which is
//! what schedulers ask for, can be found out on every kernel.

use std::ffi::CString;

/// The values that are found out, in the form of the kernel's `.config`. They count before the file's.
pub(super) fn known() -> CString {
    let text = hz().map_or_else(String::new, |hz| format!("CONFIG_HZ={hz}\n"));
    CString::new(text).unwrap_or_default()
}

/// Ticks a second: the coarse clock moves with the tick, and its resolution is one (`TICK_NSEC`).
fn hz() -> Option<u32> {
    const NS_PER_S: i64 = 1_000_000_000;
    let clock = nix::time::ClockId::CLOCK_MONOTONIC_COARSE;
    let tick = nix::time::clock_getres(clock).ok()?;
    let ns = tick.tv_sec() * NS_PER_S + tick.tv_nsec();
    (1..=NS_PER_S).contains(&ns).then(|| ((NS_PER_S + ns / 2) / ns) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_a_second_are_a_number_that_kernels_are_built_with() {
        let text = known().into_string().expect("ASCII");
        let kernels = [100, 250, 300, 1000].map(|hz| format!("CONFIG_HZ={hz}\n"));
        assert!(kernels.contains(&text), "{text}");
    }
}
