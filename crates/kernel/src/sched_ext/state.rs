//! What the kernel says about sched_ext: `/sys/kernel/sched_ext`, its log, and whether a scheduler may be attached at all.

use std::fs;
use std::path::Path;

use super::LoadError;
use crate::kernel_log::KernelLog;

const FOLDER: &str = "/sys/kernel/sched_ext";
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Bits of `CapEff` (`linux/capability.h`).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
/// Lines of the kernel's log that an error shows.
const LOG_LINES_MAX: usize = 24;

/// The kernel's own account of sched_ext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelState {
    /// `disabled`, `enabling`, `enabled`, `disabling`.
    pub state: String,
    /// The name of the scheduler in charge.
    pub ops: Option<String>,
    /// Tasks that were refused a move to sched_ext since the scheduler came (`nr_rejected`).
    pub nr_rejected: Option<u64>,
    /// How many schedulers were attached since the kernel started (`enable_seq`).
    pub enable_seq: Option<u64>,
}

impl KernelState {
    /// Reads it; `None` when the kernel has no sched_ext (or `/sys` is not there).
    pub fn read() -> Option<KernelState> {
        let number = |name| file(name)?.parse().ok();
        Some(KernelState {
            state: file("state")?,
            ops: file("root/ops"),
            nr_rejected: number("nr_rejected"),
            enable_seq: number("enable_seq"),
        })
    }

    /// Whether the kernel's own scheduler is in charge.
    pub fn is_disabled(&self) -> bool {
        self.state == "disabled"
    }
}

fn file(name: &str) -> Option<String> {
    fs::read_to_string(Path::new(FOLDER).join(name)).ok().map(|text| text.trim().to_owned())
}

/// `uname -r`.
pub(super) fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "of unknown release".to_owned(), |text| text.trim().to_owned())
}

/// Whether a scheduler can be attached here and now.
pub(super) fn check(name: &str) -> Result<(), LoadError> {
    let name = name.to_owned();
    let Some(state) = KernelState::read() else {
        return Err(LoadError::NoSchedExt { name, release: release() });
    };
    if !Path::new(BTF).exists() {
        return Err(LoadError::NoBtf { name, release: release() });
    }
    if !may_load() {
        return Err(LoadError::NoRights { name });
    }
    if !state.is_disabled() {
        let other = state.ops.unwrap_or(state.state);
        return Err(LoadError::Busy { name, other });
    }
    Ok(())
}

fn may_load() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(rights) = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()) else {
        return true; // It is not known: let the kernel say.
    };
    let has = |bit: u32| rights & (1 << bit) != 0;
    has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON))
}

/// What the kernel said about sched_ext, the last lines.
pub(super) fn log_lines(log: &mut KernelLog) -> Vec<String> {
    let mut found = log.messages(is_about_sched_ext).unwrap_or_default();
    let first = found.len().saturating_sub(LOG_LINES_MAX);
    found.split_off(first)
}

fn is_about_sched_ext(line: &str) -> bool {
    line.contains("sched_ext")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_kernels_log_only_what_is_about_sched_ext() {
        assert!(is_about_sched_ext("sched_ext: cfs: bad dsq"));
        assert!(!is_about_sched_ext("usb 1-1: new device"));
    }

    #[test]
    fn a_kernel_without_sched_ext_is_named_with_a_remedy() {
        if KernelState::read().is_some() {
            return;
        }
        let text = check("cfs").expect_err("no sched_ext").to_string();
        assert!(text.contains(&release()), "{text}");
        assert!(text.contains("--on vm:7.2"), "{text}");
    }
}
