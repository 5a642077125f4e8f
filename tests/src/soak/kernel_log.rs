//! Warnings in the kernel log.

use fairground_realkernel::kernel_log::KernelLog;

/// Prefixes of the lines by which the kernel reports an internal error: `WARN_ON`, `BUG_ON`, a lockup, hung tasks. A
/// stall of RCU is not among them: it ejects the active scheduler, which is detected. Without one, this program
/// itself, which precedes all others while the verifier works, can make RCU wait on a small machine.
const COMPLAINTS: [&str; 5] = ["WARNING: ", "BUG: ", "Oops", "INFO: task ", "watchdog: BUG"];
/// Limit of the warnings.
const KEPT: usize = 16;

/// The warnings in a log; one if it could not be read.
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
