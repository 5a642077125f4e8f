//! Configuration values that schedulers read (`extern int CONFIG_HZ __kconfig`).
//!
//! libbpf reads them from `/proc/config.gz` or `/boot/config-RELEASE`. A virtual machine may have neither, but every
//! kernel reports its ticks per second.

use std::ffi::CString;

/// The known values, in the format of `.config`. They take precedence over the file's.
pub(super) fn known() -> CString {
    let text = hz().map_or_else(String::new, |hz| format!("CONFIG_HZ={hz}\n"));
    CString::new(text).unwrap_or_default()
}

/// Ticks per second, from the resolution of the coarse clock (`TICK_NSEC`).
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
