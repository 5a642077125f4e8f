//! The kernel's log (`/dev/kmsg`).

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum records per read: more than the kernel's buffer holds.
const RECORDS_MAX: usize = 1 << 16;
/// Maximum bytes of a record (the kernel's `CONSOLE_EXT_LOG_MAX`).
const RECORD_BYTES_MAX: usize = 8192;

/// A reader of the kernel's log.
#[derive(Debug)]
pub struct KernelLog(Option<File>);

impl KernelLog {
    /// Starts at the current end of the log.
    pub fn from_now_on() -> KernelLog {
        let open = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        KernelLog(open.ok().and_then(|mut file| {
            file.seek(SeekFrom::End(0)).ok()?;
            Some(file)
        }))
    }

    /// The first lines of the records since the last call (or since the start) that pass the filter; `None` if the log cannot
    /// be read.
    pub fn messages(&mut self, keep: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let file = self.0.as_mut()?;
        let mut found = Vec::new();
        let mut record = [0; RECORD_BYTES_MAX];
        for _ in 0..RECORDS_MAX {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let record = String::from_utf8_lossy(&record[..length]);
                    found.extend(message(&record).filter(|line| keep(line)).map(str::to_owned));
                }
                // Records were overwritten before they were read: the next read continues after them.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => break,
            }
        }
        Some(found)
    }
}

/// The text of a record (`4,512,9000,-;text\n KEY=value\n`).
fn message(record: &str) -> Option<&str> {
    record.split_once(';')?.1.lines().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_told_by_its_first_line() {
        let record = "3,512,9000,-;sched_ext: cfs: bad dsq\n SUBSYSTEM=x\n";
        assert_eq!(message(record), Some("sched_ext: cfs: bad dsq"));
        assert_eq!(message("garbage"), None);
    }
}
