//! System calls as events, where the machine is asked for them ([`crate::TraceOptions::calls`]). Between two steps of
//! an actor it is looked whether it has entered or left a call; nothing else depends on it. System calls of futexes are
//! effects of their own, for programs that are called at them.
//!
//! The object of a call is its number in the workload, with the kind of object in the upper half.

use fairground_trace::Call;
use fairground_workload::LockKind;

use super::actor::{CallPart, Frame, Phase};
use super::code::Step;
use super::effect::{Effect, FutexOp};
use super::meeting::releases;
use super::state::Actors;

/// `EINTR`: what a call returns that a signal's handler interrupts.
const INTERRUPTED: i64 = -4;
/// `EAGAIN`: what a wait returns whose futex is free again before it begins.
const TOO_LATE: i32 = -11;
/// `wait4(-1, …)`: any child.
const ANY_CHILD: u64 = u64::MAX;

/// Kinds of objects.
const QUEUE: u64 = 1;
const LOCK: u64 = 2;
const CONDITION: u64 = 3;
const BARRIER: u64 = 4;
const DEVICE: u64 = 5;

/// The call that an actor is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenCall {
    is_open: bool,
    /// It ended, and another one like it began.
    is_again: bool,
    /// In the handler of a signal.
    level: usize,
    result: i64,
    /// It is one of a futex.
    futex: Option<OpenFutex>,
}

/// The system call of a futex that an actor is in.
#[derive(Clone, Copy, Debug)]
struct OpenFutex {
    op: FutexOp,
    object: u64,
    /// The actor has waited in it.
    has_waited: bool,
    /// How many it has woken.
    woken: i32,
}

impl OpenFutex {
    /// Return value of the system call.
    fn exit(self, is_interrupted: bool) -> Effect {
        let result = match self.op {
            _ if is_interrupted => INTERRUPTED as i32,
            FutexOp::Wake => self.woken,
            FutexOp::Wait if !self.has_waited => TOO_LATE,
            FutexOp::Wait | FutexOp::LockPi | FutexOp::UnlockPi => 0,
        };
        Effect::FutexExit { op: self.op, object: self.object, result }
    }
}

impl Actors {
    /// From now on calls are among the effects.
    pub(crate) fn trace_calls(&mut self) {
        self.traced = Some(Vec::new());
    }

    /// Whether calls are among the effects. Then an actor must be advanced at the moment at which it is in user mode.
    #[inline]
    pub(crate) fn traces_calls(&self) -> bool {
        self.traced.is_some()
    }

    /// An actor's call returns this number of bytes.
    #[inline]
    pub(super) fn call_returns(&mut self, id: u32, bytes: u64) {
        if let Some(open) = self.traced.as_mut().and_then(|calls| calls.get_mut(id as usize)) {
            open.result = bytes as i64;
        }
    }

    /// An actor's call ends, and another one like it begins.
    #[inline]
    pub(super) fn call_again(&mut self, id: u32) {
        if let Some(open) = self.traced.as_mut().and_then(|calls| calls.get_mut(id as usize)) {
            open.is_again = open.is_open;
        }
    }

    /// Between two operations the actor is in no call.
    pub(super) fn leave_call(&mut self, id: u32, effects: &mut Vec<Effect>) {
        let actor = &self.actors[id as usize];
        let is_interrupted = |open: &OpenCall| open.level != actor.level;
        let phase = actor.frames[actor.level].phase;
        // What it copies is a part of the call.
        let is_between = phase == Phase::Start && actor.owed_ns == 0;
        let calls = self.traced.iter_mut().flatten();
        for open in calls.skip(id as usize).take(1) {
            if open.is_open && is_between {
                let is_interrupted = is_interrupted(open);
                let result = if is_interrupted { INTERRUPTED } else { open.result };
                effects.extend(open.futex.map(|futex| futex.exit(is_interrupted)));
                effects.push(Effect::CallExit { result });
                *open = OpenCall::default();
            }
        }
    }

    /// After a step, whose effects are those from a number on, the actor may be in a call.
    pub(super) fn enter_call(&mut self, id: u32, from: usize, effects: &mut Vec<Effect>) {
        let actor = &self.actors[id as usize];
        let (level, frame) = (actor.level, actor.frames[actor.level]);
        let is_inside = matches!(
            frame.phase,
            Phase::Charging | Phase::Ready | Phase::Waiting | Phase::Asleep | Phase::Spinning
        );
        let call = self.call_of(self.code.steps[frame.pc as usize]).filter(|_| is_inside);
        let futex = self.futex_of(self.code.steps[frame.pc as usize], &frame);
        let Some(calls) = &mut self.traced else { return };
        let index = id as usize;
        if calls.len() <= index {
            calls.resize(index + 1, OpenCall::default());
        }
        let mut open = calls[index];
        if let Some(futex) = &mut open.futex {
            let is_wake = |effect: &&Effect| matches!(effect, Effect::Wake { .. });
            futex.woken += effects[from..].iter().filter(is_wake).count() as i32;
            futex.has_waited |= frame.phase == Phase::Waiting;
            calls[index].futex = open.futex;
        }
        if open.is_again {
            effects.extend(open.futex.map(|futex| futex.exit(false)));
            effects.push(Effect::CallExit { result: open.result });
        }
        if let Some((call, object)) = call.filter(|_| !open.is_open || open.is_again) {
            calls[index] = OpenCall { is_open: true, is_again: false, level, result: 0, futex };
            effects.push(Effect::CallEnter { call, object });
            effects.extend(
                futex.map(|OpenFutex { op, object, .. }| Effect::FutexEnter { op, object }),
            );
        }
    }

    /// The system call of a futex that a step is in: as the programs of a workload on a real kernel use futexes.
    fn futex_of(&self, step: Step, frame: &Frame) -> Option<OpenFutex> {
        let wakes = frame.part == CallPart::Wake;
        let wake_or_wait = if wakes { FutexOp::Wake } else { FutexOp::Wait };
        let of_lock = |lock: u32, inherits: FutexOp, other: FutexOp| {
            let op = match self.locks[lock as usize].kind {
                LockKind::RtMutex => inherits,
                LockKind::Mutex | LockKind::RwLock => other,
                LockKind::Spin | LockKind::RtSpin => return None,
            };
            Some((op, LOCK, lock))
        };
        let (op, kind, number) = match step {
            Step::Lock { lock, .. } => of_lock(lock, FutexOp::LockPi, FutexOp::Wait)?,
            Step::Unlock { lock } => of_lock(lock, FutexOp::UnlockPi, FutexOp::Wake)?,
            Step::ConditionWait { lock, .. } if releases(frame) => {
                of_lock(lock, FutexOp::UnlockPi, FutexOp::Wake)?
            }
            Step::ConditionWait { condition, .. } => (FutexOp::Wait, CONDITION, condition),
            Step::Notify { condition, .. } => (FutexOp::Wake, CONDITION, condition),
            Step::Barrier { barrier, .. } => (wake_or_wait, BARRIER, barrier),
            Step::Send { queue } | Step::Receive { queue, .. } if !self.is_rendezvous(queue) => {
                (wake_or_wait, QUEUE, queue)
            }
            _ => return None,
        };
        let object = kind << 32 | u64::from(number);
        Some(OpenFutex { op, object, has_waited: false, woken: 0 })
    }

    /// The call that a step is, with its object.
    fn call_of(&self, step: Step) -> Option<(Call, u64)> {
        let object = |kind: u64, number: u32| kind << 32 | u64::from(number);
        let sleeping = |lock: u32| !self.locks[lock as usize].kind.is_atomic();
        Some(match step {
            Step::Sleep(_) => (Call::Sleep, 0),
            Step::TimerWait { .. } => (Call::SleepUntil, 0),
            Step::Io(_) => (Call::Read, object(DEVICE, 0)),
            Step::PipeWrite { pipe, .. } => (Call::Write, u64::from(pipe)),
            Step::PipeRead { pipe, .. } => (Call::Read, u64::from(pipe)),
            Step::Send { queue } => (Call::Send, object(QUEUE, queue)),
            Step::Receive { queue, .. } => (Call::Receive, object(QUEUE, queue)),
            Step::Lock { lock, .. } if sleeping(lock) => (Call::FutexWait, object(LOCK, lock)),
            Step::Unlock { lock } if sleeping(lock) => (Call::FutexWake, object(LOCK, lock)),
            Step::ConditionWait { condition, .. } => {
                (Call::FutexWait, object(CONDITION, condition))
            }
            Step::Notify { condition, .. } => (Call::FutexWake, object(CONDITION, condition)),
            Step::Barrier { barrier, .. } => (Call::FutexWait, object(BARRIER, barrier)),
            Step::WaitChildren => (Call::WaitChild, ANY_CHILD),
            Step::Yield => (Call::Yield, 0),
            _ => return None,
        })
    }
}
