//! What the kernel says about sched_ext: `/sys/kernel/sched_ext`, its log, and whether a scheduler may be attached at all.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::LoadError;

const FOLDER: &str = "/sys/kernel/sched_ext";
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Bits of `CapEff` (`linux/capability.h`).
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
/// Lines of the kernel's log that an error shows.
const LOG_LINES_MAX: usize = 24;
/// Records read from the kernel's log at once: more than its buffer holds.
const LOG_RECORDS_MAX: usize = 1 << 16;

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

/// The kernel's log from a moment on.
#[derive(Debug)]
pub(super) struct KernelLog(Option<File>);

impl KernelLog {
    /// Stands at the log's end.
    pub(super) fn from_now_on() -> KernelLog {
        let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        KernelLog(open.ok().and_then(|mut file| {
            file.seek(SeekFrom::End(0)).ok()?;
            Some(file)
        }))
    }

    /// What it said about sched_ext since then, the last lines.
    pub(super) fn lines(&mut self) -> Vec<String> {
        let Some(file) = &mut self.0 else { return Vec::new() };
        let mut found = Vec::new();
        let mut record = [0; 8192];
        for _ in 0..LOG_RECORDS_MAX {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => found.extend(message(&String::from_utf8_lossy(&record[..length]))),
                // Some records were overwritten before they were read: the next read goes on behind them.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => break,
            }
        }
        let first = found.len().saturating_sub(LOG_LINES_MAX);
        found.split_off(first)
    }
}

/// The text of a record (`4,512,9000,-;text\n KEY=value\n`), if it is about sched_ext.
fn message(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let line = text.lines().next()?;
    line.contains("sched_ext").then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_kernels_log_only_what_is_about_sched_ext() {
        let record = "3,512,9000,-;sched_ext: cfs: bad dsq\n SUBSYSTEM=x\n";
        assert_eq!(message(record).as_deref(), Some("sched_ext: cfs: bad dsq"));
        assert_eq!(message("6,1,2,-;usb 1-1: new device\n"), None);
        assert_eq!(message("garbage"), None);
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
