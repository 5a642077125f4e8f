//! How a scheduler's time in charge ended: what its own `exit` callback wrote down, or what the kernel's log tells.

use super::layout::ExitPlace;
use super::sections::Section;
use crate::job::SchedulerExit;

/// `SCX_ECODE_ACT_RESTART` (`enum scx_exit_code`, 6.12): the kernel asks the loader to attach the scheduler again.
const ACT_RESTART: u64 = 1 << 48;

/// The kinds of exit (`enum scx_exit_kind`, 6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// 64: its user took it off.
    UnregisteredByUser,
    /// 65: it ended itself (`scx_bpf_exit`).
    UnregisteredByItself,
    /// 66: the kernel ended it: CPU hotplug.
    UnregisteredByKernel,
    /// 67: somebody pressed SysRq-S.
    SysRq,
    /// 1024: it did what the kernel does not take.
    Error,
    /// 1025: it reported an error (`scx_bpf_error`).
    ErrorOfItself,
    /// 1026: a runnable task did not run for too long.
    Stall,
}

impl ExitKind {
    /// The kind of a number; `None` for one that is not known.
    pub fn of(number: u64) -> Option<ExitKind> {
        Some(match number {
            64 => Self::UnregisteredByUser,
            65 => Self::UnregisteredByItself,
            66 => Self::UnregisteredByKernel,
            67 => Self::SysRq,
            1024 => Self::Error,
            1025 => Self::ErrorOfItself,
            1026 => Self::Stall,
            _ => return None,
        })
    }
}

/// Whether the kernel ended it only to have it attached again, as after CPU hotplug.
pub fn asks_for_restart(exit: &SchedulerExit) -> bool {
    exit.code.is_some_and(|code| code as u64 & ACT_RESTART != 0)
}

/// Whether it was ended because its `init_task` got no memory for a task. Newer kernels (7.2) take the memory of a task's storage without
/// waiting for anybody's lock (`kmalloc_nolock`): that fails on a machine that has enough, and is over in a moment.
pub(super) fn lacked_memory(exit: &SchedulerExit) -> bool {
    exit.message.contains("init_task() failed (-12)")
}

/// What the object recorded; `None` while it is in charge.
pub(super) fn exit_of(place: &ExitPlace, section: &Section) -> Option<SchedulerExit> {
    let kind = section.read(place.kind, 4)?;
    let kind = u32::from_ne_bytes(kind.try_into().ok()?);
    if kind == 0 {
        return None;
    }
    let code = section.read(place.code, 8)?;
    let text = |(offset, length): (usize, usize)| {
        let bytes = section.read(offset, length).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Some(SchedulerExit {
        kind: Some(u64::from(kind)),
        code: code.try_into().ok().map(i64::from_ne_bytes),
        reason: text(place.reason),
        message: text(place.message),
    })
}

/// What the kernel's log tells of an object that records nothing: `sched_ext: BPF scheduler "NAME" disabled (REASON)`, and
/// the message on a line of its own.
pub(super) fn from_log(log: &[String], late: bool) -> SchedulerExit {
    let mut exit = SchedulerExit {
        kind: None,
        code: None,
        reason: "the object does not record it".to_owned(),
        message: String::new(),
    };
    if late {
        exit.message = "the kernel still had not taken its own scheduler back".to_owned();
    }
    let Some(at) = log.iter().rposition(|line| line.contains("\" disabled (")) else { return exit };
    if let Some((_, reason)) = log[at].split_once("\" disabled (") {
        reason.trim_end_matches(')').clone_into(&mut exit.reason);
        exit.kind = kind_of(&exit.reason);
    }
    if let Some((_, message)) = log.get(at + 1).and_then(|line| line.split_once(": ")) {
        message.split_once(": ").map_or(message, |(_, text)| text).clone_into(&mut exit.message);
    }
    exit
}

/// The kind by the kernel's words for it (`scx_exit_reason`, 6.12).
fn kind_of(reason: &str) -> Option<u64> {
    Some(match reason {
        "unregistered from user space" => 64,
        "unregistered from BPF" => 65,
        "unregistered from the main kernel" => 66,
        "disabled by sysrq-S" => 67,
        "runtime error" => 1024,
        "scx_bpf_error" => 1025,
        "runnable task stall" => 1026,
        _ => return None,
    })
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
