//! What the kernel says about sched_ext: `/sys/kernel/sched_ext`, its log, and whether a scheduler may be attached at all.

use std::fs;
use std::path::Path;

use super::LoadError;
use crate::kernel_log::KernelLog;
use crate::rights::Rights;

/// Below the root.
const FOLDER: &str = "sys/kernel/sched_ext";
const BTF: &str = "sys/kernel/btf/vmlinux";
const RELEASE: &str = "proc/sys/kernel/osrelease";
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
        Self::read_below(Path::new("/"))
    }

    /// The same, of the `/sys` below `root`.
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

    /// Whether the kernel's own scheduler is in charge.
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

/// Whether the scheduler `name` can be attached here and now.
pub(super) fn check(name: &str) -> Result<(), LoadError> {
    attachable(Path::new("/"), name)
}

/// Whether the kernel whose `/sys` and `/proc` lie below `root` would take the scheduler `name`, as far as can be told
/// without attaching one.
///
/// # Errors
/// What is in its way.
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
        assert!(text.contains(&release(Path::new("/"))), "{text}");
        assert!(text.contains("--on vm:7.2"), "{text}");
    }
}
