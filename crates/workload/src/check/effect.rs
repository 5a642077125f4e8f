//! How each operation uses time, and what a task that holds a spin lock may not do: one table for all checks.

use crate::model::{Op, Workload};

/// What an operation does while the task is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// Whether time passes, or the task may wait.
    pub(super) takes_time: bool,
    /// What is forbidden while the task holds a spin lock, in words; `None`: it is allowed.
    pub(super) may_sleep: Option<&'static str>,
}

/// The effect of one operation; of a loop without its body.
pub(super) fn effect(workload: &Workload, op: &Op) -> Effect {
    let at_once = Effect { takes_time: false, may_sleep: None };
    let change = |what| Effect { takes_time: false, may_sleep: Some(what) };
    let wait = |what| Effect { takes_time: true, may_sleep: Some(what) };
    match op {
        Op::Run(duration) | Op::Busy(duration) => {
            Effect { takes_time: duration.bounds().1 > 0, may_sleep: None }
        }
        Op::Sleep(duration) => Effect { takes_time: duration.bounds().1 > 0, ..wait("a sleep") },
        Op::Io(duration) => {
            Effect { takes_time: duration.bounds().1 > 0, ..wait("a wait for the device") }
        }
        Op::RunForever => wait("a run without end"),
        Op::TimerWait(..) => wait("a wait for a timer"),
        Op::PipeWrite(..) => wait("a write into a pipe"),
        Op::PipeRead(..) => wait("a read from a pipe"),
        Op::Receive(..) => wait("a receive"),
        Op::WaitChildren => wait("a wait for children"),
        Op::Send(queue) if workload.queues[*queue].capacity.is_some() => {
            wait("a send to a queue that may be full")
        }
        Op::Barrier(barrier) => Effect {
            takes_time: workload.barriers[*barrier].count > 1,
            ..wait("a wait at a barrier")
        },
        Op::Fork(_) => change("a fork"),
        Op::Yield => change("a yield"),
        Op::SetNice(_) | Op::SetPolicy(_) | Op::SetSlice(_) => {
            change("a change of the task's own scheduling")
        }
        Op::SetAffinity(_) => change("a change of the task's own affinity"),
        Op::SetCgroup(_) | Op::SetCgroupWeight(..) => change("a change of a cgroup"),
        // The order of locks has checks of its own.
        Op::ConditionWait(..) | Op::Exit => Effect { takes_time: true, ..at_once },
        Op::Send(_)
        | Op::Touch(_)
        | Op::TimerStart(_)
        | Op::Signal(_)
        | Op::Mark(_)
        | Op::Lock(_)
        | Op::ReadLock(_)
        | Op::WriteLock(_)
        | Op::Unlock(_)
        | Op::Notify(_)
        | Op::NotifyAll(_)
        | Op::Loop(..) => at_once,
    }
}
