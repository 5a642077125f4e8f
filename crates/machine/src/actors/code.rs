//! A workload as flat code: one list of steps, loops as jumps, every counter in a numbered register.

use fairground_workload::{Duration, Role};

use super::effect::{AffinityId, Effect};
use crate::cpuset::CpuMask;

/// "No handler".
pub(super) const NO_CODE: u32 = u32::MAX;

/// The location of a timer's last expiry plus 1, ns; it holds 0 before the timer begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimerPlace {
    /// In a register of the actor.
    Own(u32),
    /// With all actors, by the workload's number of the timer.
    Shared(u32),
}

/// One step. Registers are the actor's own, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Run(Duration),
    RunForever,
    /// Reads the memory once.
    Touch {
        bytes: u64,
    },
    Sleep(Duration),
    Io(Duration),
    Busy(Duration),
    TimerWait {
        timer: TimerPlace,
        period_ns: u64,
        relative: bool,
    },
    TimerStart(TimerPlace),
    PipeWrite {
        pipe: u32,
        bytes: u64,
    },
    PipeRead {
        pipe: u32,
        bytes: u64,
    },
    Send {
        queue: u32,
    },
    Receive {
        queue: u32,
        count: u64,
    },
    Lock {
        lock: u32,
        shared: bool,
    },
    Unlock {
        lock: u32,
    },
    /// Releases the lock and waits; the next step takes the lock again.
    ConditionWait {
        condition: u32,
        lock: u32,
    },
    Notify {
        condition: u32,
        all: bool,
    },
    Barrier {
        barrier: u32,
        count: u64,
    },
    Signal(Role),
    Fork {
        spec: u32,
        count: u64,
    },
    WaitChildren,
    Yield,
    /// Sets an attribute of its own or of a cgroup.
    Set(Effect),
    Mark {
        label: u32,
        reg: u32,
    },
    /// Sets the loop's counter, or skips the body if there is nothing to repeat.
    LoopEnter {
        reg: u32,
        count: u64,
        end: u32,
    },
    /// Decrements the counter; jumps to `body` while it is not 0.
    LoopBack {
        reg: u32,
        body: u32,
    },
    Jump(u32),
    Exit,
    /// The end of a signal handler.
    Return,
}

/// The data that all tasks of a group share.
#[derive(Clone, Debug)]
pub(super) struct SpecCode {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) affinity: Option<AffinityId>,
    pub(super) entry: u32,
    pub(super) handler: u32,
    pub(super) regs: u32,
}

/// A compiled workload.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) specs: Vec<SpecCode>,
    pub(super) labels: Vec<String>,
    pub(super) affinities: Vec<CpuMask>,
}
