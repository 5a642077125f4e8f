//! The kernel's state of sched_ext: `/sys/kernel/sched_ext`, its log, and whether a scheduler can be attached.

use std::fs;
use std::path::Path;

use super::LoadError;
use crate::kernel_log::KernelLog;
use crate::rights::Rights;

/// Relative to the root.
const FOLDER: &str = "sys/kernel/sched_ext";
const BTF: &str = "sys/kernel/btf/vmlinux";
const RELEASE: &str = "proc/sys/kernel/osrelease";
/// Maximum lines of the kernel's log in an error.
const LOG_LINES_MAX: usize = 24;

/// The content of `/sys/kernel/sched_ext`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelState {
    /// `disabled`, `enabling`, `enabled`, `disabling`.
    pub state: String,
    /// The name of the enabled scheduler.
    pub ops: Option<String>,
    /// Tasks whose move to sched_ext was rejected since the scheduler was enabled (`nr_rejected`).
    pub nr_rejected: Option<u64>,
    /// Number of schedulers attached since boot (`enable_seq`).
    pub enable_seq: Option<u64>,
}

impl KernelState {
    /// Reads it; `None` if the kernel has no sched_ext or `/sys` is not mounted.
    pub fn read() -> Option<KernelState> {
        Self::read_below(Path::new("/"))
    }

    /// As [`KernelState::read`], with the `/sys` below `root`.
    fn read_below(root: &Path) -> Option<KernelState> {
        let file = |name| file(root, name);
        let number = |name| file(name)?.parse().ok();
        Some(KernelState {
            state: file("state")?,
            ops: file("root/ops"),
            nr_rejected: number("nr_rejected"),
            enable_seq: number("enable_seq"),
        })
    }

    /// Whether the scheduler that was `enabled` then is still the one in charge.
    pub(super) fn is_still(&self, enabled: &KernelState) -> bool {
        self.state == "enabled" && self.enable_seq == enabled.enable_seq
    }

    /// Whether no sched_ext scheduler is enabled.
    pub fn is_disabled(&self) -> bool {
        self.state == "disabled"
    }
}

fn file(root: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(FOLDER).join(name)).ok()?;
    Some(text.trim().to_owned())
}

/// `uname -r`.
fn release(root: &Path) -> String {
    fs::read_to_string(root.join(RELEASE))
        .map_or_else(|_| "of unknown release".to_owned(), |text| text.trim().to_owned())
}

/// Checks that the scheduler `name` can be attached now.
pub(super) fn check(name: &str) -> Result<(), LoadError> {
    attachable(Path::new("/"), name)
}

/// Checks, without attaching it, that the kernel whose `/sys` and `/proc` are below `root` would accept the scheduler
/// `name`.
///
/// # Errors
/// Why it would not.
pub fn attachable(root: &Path, name: &str) -> Result<(), LoadError> {
    let name = name.to_owned();
    let Some(state) = KernelState::read_below(root) else {
        return Err(LoadError::NoSchedExt { name, release: release(root) });
    };
    if !root.join(BTF).exists() {
        return Err(LoadError::NoBtf { name, release: release(root) });
    }
    if !Rights::read(root).may_attach() {
        return Err(LoadError::NoRights { name });
    }
    if !state.is_disabled() {
        let other = state.ops.unwrap_or(state.state);
        return Err(LoadError::Busy { name, other });
    }
    Ok(())
}

/// The last lines of the kernel's log about sched_ext.
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
        assert!(text.contains(&release(Path::new("/"))), "{text}");
        assert!(text.contains("--on vm:7.2"), "{text}");
    }
}
