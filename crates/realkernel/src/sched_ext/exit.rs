//! How a scheduler was disabled: from the record of its `exit` callback, or from the kernel's log.

use super::layout::ExitRecord;
use super::sections::Section;
use crate::job::SchedulerExit;

/// `SCX_ECODE_ACT_RESTART` (`enum scx_exit_code`, 6.12): the kernel asks the loader to attach the scheduler again.
const ACT_RESTART: u64 = 1 << 48;

/// The kinds of exit (`enum scx_exit_kind`, 6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// 64: unregistered from user space.
    UnregisteredByUser,
    /// 65: the scheduler called `scx_bpf_exit`.
    UnregisteredByItself,
    /// 66: unregistered by the kernel, as on CPU hotplug.
    UnregisteredByKernel,
    /// 67: SysRq-S.
    SysRq,
    /// 1024: an error that the kernel detected.
    Error,
    /// 1025: the scheduler called `scx_bpf_error`.
    ErrorOfItself,
    /// 1026: a runnable task stalled.
    Stall,
}

/// Their numbers and reasons (`scx_exit_reason`, 6.12).
const KINDS: [(u64, ExitKind, &str); 7] = [
    (64, ExitKind::UnregisteredByUser, "unregistered from user space"),
    (65, ExitKind::UnregisteredByItself, "unregistered from BPF"),
    (66, ExitKind::UnregisteredByKernel, "unregistered from the main kernel"),
    (67, ExitKind::SysRq, "disabled by sysrq-S"),
    (1024, ExitKind::Error, "runtime error"),
    (1025, ExitKind::ErrorOfItself, "scx_bpf_error"),
    (1026, ExitKind::Stall, "runnable task stall"),
];

impl ExitKind {
    /// The kind with that number; `None` if it is unknown.
    pub fn of(number: u64) -> Option<ExitKind> {
        KINDS.into_iter().find(|(known, ..)| *known == number).map(|(_, kind, _)| kind)
    }
}

/// Whether the kernel asks the loader to attach the scheduler again, as after CPU hotplug.
pub fn asks_for_restart(exit: &SchedulerExit) -> bool {
    exit.code.is_some_and(|code| code as u64 & ACT_RESTART != 0)
}

/// Whether `init_task` failed for lack of memory. Newer kernels (7.2) allocate task storage without waiting for locks
/// (`kmalloc_nolock`), which fails occasionally although memory is available.
pub(super) fn lacked_memory(exit: &SchedulerExit) -> bool {
    exit.message.contains("init_task() failed (-12)")
}

/// The exit record of the object; `None` while the scheduler is enabled.
pub(super) fn exit_of(record: &ExitRecord, section: &Section) -> Option<SchedulerExit> {
    let kind = section.read(record.kind, 4)?;
    let kind = u32::from_ne_bytes(kind.try_into().ok()?);
    if kind == 0 {
        return None;
    }
    let code = section.read(record.code, 8)?;
    let text = |(offset, length): (usize, usize)| {
        let bytes = section.read(offset, length).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Some(SchedulerExit {
        kind: Some(u64::from(kind)),
        code: code.try_into().ok().map(i64::from_ne_bytes),
        reason: text(record.reason),
        message: text(record.message),
    })
}

/// The exit of an object without an exit record, from the kernel's log: `sched_ext: BPF scheduler "NAME" disabled
/// (REASON)`, and the message on the next line.
pub(super) fn from_log(log: &[String], late: bool) -> SchedulerExit {
    let mut exit = SchedulerExit {
        kind: None,
        code: None,
        reason: "the object does not record it".to_owned(),
        message: String::new(),
    };
    if late {
        exit.message = "the kernel has still not disabled the scheduler".to_owned();
    }
    let Some(at) = log.iter().rposition(|line| line.contains("\" disabled (")) else { return exit };
    if let Some((_, reason)) = log[at].split_once("\" disabled (") {
        reason.trim_end_matches(')').clone_into(&mut exit.reason);
        let kind = KINDS.into_iter().find(|(.., known)| *known == exit.reason);
        exit.kind = kind.map(|(number, ..)| number);
    }
    if let Some((_, message)) = log.get(at + 1).and_then(|line| line.split_once(": ")) {
        message.split_once(": ").map_or(message, |(_, text)| text).clone_into(&mut exit.message);
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_log_tells_what_an_object_does_not() {
        let log = [
            "sched_ext: BPF scheduler \"simple\" disabled (runtime error)".to_owned(),
            "sched_ext: simple: non-existent DSQ 0x7".to_owned(),
        ];
        let exit = from_log(&log, false);
        assert_eq!(exit.kind, Some(1024));
        assert_eq!(exit.reason, "runtime error");
        assert_eq!(exit.message, "non-existent DSQ 0x7");
        let exit = from_log(&[], true);
        assert_eq!(exit.kind, None);
        assert!(exit.message.contains("still"), "{exit:?}");
    }

    #[test]
    fn memory_that_a_task_did_not_get_is_no_other_error() {
        let exit = |message: &str| SchedulerExit {
            kind: Some(1024),
            code: Some(0),
            reason: "runtime error".to_owned(),
            message: message.to_owned(),
        };
        assert!(lacked_memory(&exit("ops.init_task() failed (-12) for kworker/R-netns[8]")));
        assert!(!lacked_memory(&exit("ops.init_task() failed (-22) for kworker/R-netns[8]")));
        assert!(!lacked_memory(&exit("ops.init() failed (-12)")));
    }

    #[test]
    fn hotplug_asks_for_a_restart() {
        let exit = |code| SchedulerExit {
            kind: Some(66),
            code: Some(code),
            reason: String::new(),
            message: String::new(),
        };
        assert!(asks_for_restart(&exit((1 << 48) | (1 << 32))));
        assert!(!asks_for_restart(&exit(0)));
        assert_eq!(ExitKind::of(66), Some(ExitKind::UnregisteredByKernel));
        assert_eq!(ExitKind::of(3), None);
    }
}
