//! Describes the running kernel.

use std::fs;
use std::path::Path;

use crate::job::KernelInfo;
use crate::knobs::{KnobFolders, features, tunables};
use crate::tasks::parse_cpu_list;

/// The hidden command with which the program prints a description of the running kernel as JSON on standard output.
pub const INFO_COMMAND: &str = "__kernel-info";

/// Describes the running kernel.
pub fn kernel_info() -> KernelInfo {
    let (release, version) = match nix::sys::utsname::uname() {
        Ok(names) => (
            names.release().to_string_lossy().into_owned(),
            names.version().to_string_lossy().into_owned(),
        ),
        Err(_) => Default::default(),
    };
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = parse_cpu_list(&online).iter().map(|(first, last)| last - first + 1).sum();
    let real_time = fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1");
    let folders = KnobFolders::default();
    KernelInfo {
        preempt_rt: real_time || version.contains("PREEMPT_RT"),
        release,
        version,
        cpus,
        hz: hz(),
        sched_ext: Path::new("/sys/kernel/sched_ext").is_dir(),
        features: features(&folders),
        tunables: tunables(&folders),
    }
}

/// Ticks per second, from the resolution of the coarse clock (`TICK_NSEC`).
pub(crate) fn hz() -> Option<u32> {
    const NS_PER_S: i64 = 1_000_000_000;
    let tick = nix::time::clock_getres(nix::time::ClockId::CLOCK_MONOTONIC_COARSE).ok()?;
    let ns = tick.tv_sec() * NS_PER_S + tick.tv_nsec();
    (1..=NS_PER_S).contains(&ns).then(|| ((NS_PER_S + ns / 2) / ns) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernel_is_described() {
        let info = kernel_info();
        assert!(info.cpus > 0 && !info.release.is_empty() && !info.version.is_empty());
        let hz = info.hz.expect("every kernel has the coarse clock");
        assert!([100, 128, 250, 256, 300, 1_000, 1_024].contains(&hz), "{hz}");
    }
}
