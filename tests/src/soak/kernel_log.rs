//! What the kernel complains about.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// How a line begins with which the kernel says that something in it is wrong: `WARN_ON`, `BUG_ON`, a lockup, tasks that hang.
/// A stall of RCU is not among them: it ends the scheduler that is in charge, which is seen. Where none is, this program itself,
/// which comes before all while the verifier works, can make RCU wait on a machine with little to spare.
const COMPLAINTS: [&str; 5] = ["WARNING: ", "BUG: ", "Oops", "INFO: task ", "watchdog: BUG"];
/// Complaints that are kept.
const KEPT: usize = 16;
/// Records read at once: more than the kernel's buffer holds.
const RECORDS_MAX: usize = 1 << 16;

/// The kernel's log from a moment on.
pub(super) struct KernelLog(Option<File>);

impl KernelLog {
    pub(super) fn from_now_on() -> KernelLog {
        let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        KernelLog(open.ok().and_then(|mut file| {
            file.seek(SeekFrom::End(0)).ok()?;
            Some(file)
        }))
    }

    /// The complaints since then; one of them if the log could not be read.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        let Some(file) = &mut self.0 else { return vec!["there is no /dev/kmsg".to_owned()] };
        let mut found = Vec::new();
        let mut record = [0; 8192];
        for _ in 0..RECORDS_MAX {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => found.extend(complaint(&String::from_utf8_lossy(&record[..length]))),
                // Some records were overwritten before they were read: the next read goes on behind them.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => break,
            }
        }
        found.truncate(KEPT);
        found
    }
}

/// The text of a record (`4,512,9000,-;text\n KEY=value\n`), if it is a complaint.
fn complaint(record: &str) -> Option<String> {
    let line = record.split_once(';')?.1.lines().next()?;
    COMPLAINTS.iter().any(|start| line.starts_with(start)).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_from_other_lines() {
        let record =
            "4,512,9000,-;WARNING: kernel/sched/ext.c:2035 at x+0x1/0x2, CPU#1: init/104\n";
        assert!(
            complaint(record).is_some_and(|line| line.starts_with("WARNING: kernel/sched/ext.c"))
        );
        assert_eq!(complaint("6,1,2,-;sched_ext: BPF scheduler \"cfs\" enabled\n"), None);
        assert_eq!(complaint("garbage"), None);
    }
}
