//! What the kernel complains about.

use fairground_realkernel::kernel_log::KernelLog;

/// How a line begins with which the kernel says that something in it is wrong: `WARN_ON`, `BUG_ON`, a lockup, tasks that hang.
/// A stall of RCU is not among them: it ends the scheduler that is in charge, which is seen. Where none is, this program itself,
/// which comes before all while the verifier works, can make RCU wait on a machine with little to spare.
const COMPLAINTS: [&str; 5] = ["WARNING: ", "BUG: ", "Oops", "INFO: task ", "watchdog: BUG"];
/// Complaints that are kept.
const KEPT: usize = 16;

/// The complaints in a log; one of them if it could not be read.
pub(super) fn complaints(log: &mut KernelLog) -> Vec<String> {
    let Some(mut found) = log.messages(is_complaint) else {
        return vec!["there is no /dev/kmsg".to_owned()];
    };
    found.truncate(KEPT);
    found
}

fn is_complaint(line: &str) -> bool {
    COMPLAINTS.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_from_other_lines() {
        assert!(is_complaint("WARNING: kernel/sched/ext.c:2035 at x+0x1/0x2, CPU#1: init/104"));
        assert!(!is_complaint("sched_ext: BPF scheduler \"cfs\" enabled"));
    }
}
