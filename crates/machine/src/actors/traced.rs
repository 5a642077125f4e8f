//! System calls as events, where the machine is asked for them ([`crate::TraceOptions::calls`]). Between two steps of an
//! actor it is looked whether it has entered or left a call; nothing else depends on it.
//!
//! The object of a call is its number in the workload, with the kind of object in the upper half.

use fairground_trace::Call;

use super::actor::Phase;
use super::code::Step;
use super::effect::Effect;
use super::state::Actors;

/// `EINTR`: what a call returns that a signal's handler interrupts.
const INTERRUPTED: i64 = -4;
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
                let result = if is_interrupted(open) { INTERRUPTED } else { open.result };
                effects.push(Effect::CallExit { result });
                *open = OpenCall::default();
            }
        }
    }

    /// After a step the actor may be in a call.
    pub(super) fn enter_call(&mut self, id: u32, effects: &mut Vec<Effect>) {
        let actor = &self.actors[id as usize];
        let (level, frame) = (actor.level, actor.frames[actor.level]);
        let is_inside = matches!(
            frame.phase,
            Phase::Charging | Phase::Ready | Phase::Waiting | Phase::Asleep | Phase::Spinning
        );
        let call = self.call_of(self.code.steps[frame.pc as usize]).filter(|_| is_inside);
        let Some(calls) = &mut self.traced else { return };
        let index = id as usize;
        if calls.len() <= index {
            calls.resize(index + 1, OpenCall::default());
        }
        let open = calls[index];
        if open.is_again {
            effects.push(Effect::CallExit { result: open.result });
        }
        if let Some((call, object)) = call.filter(|_| !open.is_open || open.is_again) {
            calls[index] = OpenCall { is_open: true, is_again: false, level, result: 0 };
            effects.push(Effect::CallEnter { call, object });
        }
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
