//! The system calls that are used: which [`Call`] each is, and which argument is its object.
//!
//! Events of system calls have three forms:
//!
//! ```text
//! sys_enter_read: fd: 0x00000003, buf: 0x7ffd0000, count: 0x00000400     perf script, trace-cmd report
//! sys_exit_read: 0x5
//! sys_read(fd: 3, buf: 7ffd0000, count: 400)                              ftrace
//! sys_read -> 0x5
//! ```

use super::stated::{Stated, Tasks};
use crate::{Call, EventKind};

/// A system call without its `sys_enter_`.
#[derive(Debug)]
pub(super) struct KnownCall {
    pub(super) name: &'static str,
    /// For a futex and a sleep with flags: what it is without the operation or flag.
    call: Call,
    /// The argument that is the object, if any.
    pub(super) object: Option<&'static str>,
    /// The argument that selects another [`Call`].
    pub(super) selector: Option<&'static str>,
}

macro_rules! known {
    ($($name:literal $call:ident $object:expr, $selector:expr;)*) => {
        const KNOWN: [KnownCall; [$($name),*].len()] = [$(KnownCall {
            name: $name,
            call: Call::$call,
            object: $object,
            selector: $selector,
        }),*];
    };
}

known! {
    "futex" FutexWait Some("uaddr"), Some("op");
    "futex_wait" FutexWait Some("uaddr"), None;
    "futex_wake" FutexWake Some("uaddr"), None;
    "read" Read Some("fd"), None;
    "readv" Read Some("fd"), None;
    "write" Write Some("fd"), None;
    "writev" Write Some("fd"), None;
    "sendto" Send Some("fd"), None;
    "sendmsg" Send Some("fd"), None;
    "sendmmsg" Send Some("fd"), None;
    "msgsnd" Send Some("msqid"), None;
    "recvfrom" Receive Some("fd"), None;
    "recvmsg" Receive Some("fd"), None;
    "recvmmsg" Receive Some("fd"), None;
    "msgrcv" Receive Some("msqid"), None;
    "accept" Receive Some("fd"), None;
    "accept4" Receive Some("fd"), None;
    "epoll_wait" Poll Some("epfd"), None;
    "epoll_pwait" Poll Some("epfd"), None;
    "epoll_pwait2" Poll Some("epfd"), None;
    "poll" Poll None, None;
    "ppoll" Poll None, None;
    "select" Poll None, None;
    "pselect6" Poll None, None;
    "nanosleep" Sleep None, None;
    "clock_nanosleep" Sleep None, Some("flags");
    "sched_yield" Yield None, None;
    "wait4" WaitChild Some("upid"), None;
    "waitid" WaitChild Some("upid"), None;
}

/// The system calls whose events (`syscalls:sys_enter_NAME`, `syscalls:sys_exit_NAME`) are read as
/// [`EventKind::CallEnter`] and [`EventKind::CallExit`].
pub fn system_calls() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

/// `FUTEX_CMD_MASK`: without `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
const FUTEX_COMMANDS: u64 = 0x7f;
/// `TIMER_ABSTIME` of `clock_nanosleep`.
const ABSOLUTE: u64 = 1;

impl KnownCall {
    /// A call by the name of its system call.
    pub(super) fn of(name: &str) -> Option<&'static KnownCall> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The call that it is with this selector; `None` for an operation of a futex that neither waits nor wakes.
    fn call(&self, selector: u64) -> Option<Call> {
        match self.name {
            // The commands of `include/uapi/linux/futex.h`.
            "futex" => match selector & FUTEX_COMMANDS {
                0 | 6 | 9 | 11 | 13 => Some(Call::FutexWait),
                1 | 3..=5 | 7 | 10 | 12 => Some(Call::FutexWake),
                _ => None,
            },
            "clock_nanosleep" if selector & ABSOLUTE != 0 => Some(Call::SleepUntil),
            _ => Some(self.call),
        }
    }

    /// The running task enters it.
    pub(super) fn enter(&self, object: u64, selector: u64, tasks: &mut Tasks<'_>) -> Stated {
        let Some(call) = self.call(selector) else { return Stated::Other };
        Stated::Event(EventKind::CallEnter { task: tasks.running(), call, object })
    }
}

/// The running task leaves its call.
pub(super) fn exit(result: i64, tasks: &mut Tasks<'_>) -> Stated {
    Stated::Event(EventKind::CallExit { task: tasks.running(), result })
}

/// Parses the fields of a line whose event begins with `sys_`; `None` when a known call lacks one.
pub(super) fn parse(event: &str, fields: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    if let Some(name) = event.strip_prefix("sys_enter_") {
        let Some(known) = KnownCall::of(name) else { return Some(Stated::Other) };
        return enter(known, fields, tasks);
    }
    let name = event.strip_prefix("sys_exit_").or(event.strip_prefix("sys_"))?;
    if KnownCall::of(name).is_none() {
        return Some(Stated::Other);
    }
    // ftrace has parentheses around the arguments, or an arrow before the result.
    if let Some(arguments) = fields.strip_prefix('(') {
        return enter(KnownCall::of(name)?, arguments.strip_suffix(')')?, tasks);
    }
    let text = fields.strip_prefix("-> ").unwrap_or(fields);
    Some(exit(number(text.split(' ').next()?)? as i64, tasks))
}

fn enter(known: &KnownCall, arguments: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    let argument = |name: Option<&str>| match name {
        Some(name) => arguments.split(", ").find_map(|argument| {
            let (key, value) = argument.split_once(": ")?;
            number(Some(value.split(' ').next()?).filter(|_| key == name)?)
        }),
        None => Some(0),
    };
    Some(known.enter(argument(known.object)?, argument(known.selector)?, tasks))
}

/// Hexadecimal digits, with or without `0x`.
fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}
