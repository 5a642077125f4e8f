//! Executes the operations of actors.

use super::actor::{Frame, Phase};
use super::code::Step;
use super::effect::{ActorId, Effect, Need};
use super::error::{ActorError, MAX_OPS_PER_ADVANCE, MAX_OPS_PER_INSTANT};
use super::state::{Actors, draw};

impl Actors {
    /// Interrupts the actor's computation with this much CPU time left (any number for [`Need::CpuForever`]). The next
    /// [`Actors::advance`] handles a pending signal and then continues with the rest.
    pub fn interrupt(&mut self, actor: ActorId, remaining_ns: u64) {
        let frame = self.actors[actor.0 as usize].frame();
        let step = self.code.steps[frame.pc as usize];
        let forever = matches!(step, Step::RunForever);
        frame.left_ns = remaining_ns;
        let phase = match frame.phase {
            Phase::Computing if remaining_ns > 0 || forever => Phase::ComputeCut,
            Phase::Computing if matches!(step, Step::Busy(_)) => Phase::Retry,
            Phase::Computing => return frame.finish(),
            Phase::Charging if remaining_ns > 0 => Phase::ChargeCut,
            Phase::Charging => Phase::Ready,
            Phase::Owing => {
                self.actors[actor.0 as usize].owed_ns = remaining_ns;
                Phase::Start
            }
            other => other,
        };
        self.actors[actor.0 as usize].frame().phase = phase;
    }

    /// Executes the actor's operations from what it needed last until it needs something again, adding to `effects`
    /// what it did on the way. `now_ns` does not go back from call to call.
    pub fn advance(
        &mut self,
        actor: ActorId,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Need, Box<ActorError>> {
        if now_ns != self.instant_ns {
            (self.instant_ns, self.instant_ops) = (now_ns, 0);
        }
        let id = actor.0;
        self.resume(id, now_ns);
        let mut has_woken = false;
        for ops in 0..MAX_OPS_PER_ADVANCE {
            self.enter_handler(id);
            let before = effects.len();
            let need = match self.traces_calls() {
                _ if has_woken && self.shows_in_user_mode(id) => {
                    self.leave_call(id, effects);
                    Some(Need::Return)
                }
                false => self.step(id, now_ns, effects)?,
                true => self.traced_step(id, now_ns, effects)?,
            };
            has_woken |= effects[before..]
                .iter()
                .any(|effect| matches!(effect, Effect::Wake { .. } | Effect::Fork { .. }));
            if let Some(need) = need {
                self.instant_ops += u64::from(ops) + 1;
                if self.instant_ops > MAX_OPS_PER_INSTANT {
                    return Err(Box::new(ActorError::EndlessInstant {
                        task: self.task_name(actor),
                        time_ns: now_ns,
                    }));
                }
                return Ok(need);
            }
        }
        Err(Box::new(ActorError::EndlessOps { task: self.task_name(actor) }))
    }

    /// Whether the actor's next step has an effect on others in user mode, or reads the clock there.
    fn shows_in_user_mode(&self, id: u32) -> bool {
        let actor = &self.actors[id as usize];
        let frame = &actor.frames[actor.level];
        let shows = matches!(
            self.code.steps[frame.pc as usize],
            Step::Lock { .. }
                | Step::Unlock { .. }
                | Step::Send { .. }
                | Step::Receive { .. }
                | Step::ConditionWait { .. }
                | Step::Notify { .. }
                | Step::Barrier { .. }
                | Step::TimerWait { .. }
                | Step::TimerStart(_)
                | Step::Busy(_)
                | Step::Mark { .. }
        );
        shows && frame.phase == Phase::Start && actor.owed_ns == 0
    }

    /// If an actor continues with a computation, begins it and returns its length, ns. It does not depend on the time,
    /// so it may begin before the kernel work on the CPU ends.
    #[inline]
    pub(crate) fn begin_run(&mut self, actor: ActorId) -> Option<u64> {
        if self.traces_calls() {
            return None;
        }
        let actor = &mut self.actors[actor.0 as usize];
        if actor.pending || actor.owed_ns > 0 {
            return None;
        }
        let frame = &mut actor.frames[actor.level];
        let mut pc = match frame.phase {
            Phase::Start => frame.pc,
            Phase::Asleep => frame.pc + 1,
            _ => return None,
        };
        if let Step::Jump(to) = self.code.steps[pc as usize] {
            pc = to;
        }
        match self.code.steps[pc as usize] {
            Step::Run(length) if length.bounds().0 > 0 => {
                *frame = Frame { phase: Phase::Computing, ..Frame::at(pc) };
                Some(draw(&mut actor.prng, length))
            }
            _ => None,
        }
    }

    /// The actor's need has been met.
    #[inline]
    fn resume(&mut self, id: u32, now_ns: u64) {
        let frame = self.actors[id as usize].frame();
        let step = &self.code.steps[frame.pc as usize];
        match frame.phase {
            Phase::Computing if matches!(step, Step::RunForever) => {
                frame.phase = Phase::ComputeCut;
            }
            Phase::Computing if matches!(step, Step::Busy(_)) => frame.phase = Phase::Retry,
            Phase::Computing | Phase::Asleep => frame.finish(),
            Phase::Owing => frame.phase = Phase::Start,
            Phase::Charging => frame.phase = Phase::Ready,
            Phase::Waiting
                if matches!(step, Step::TimerWait { .. }) && now_ns >= frame.progress =>
            {
                frame.finish();
            }
            Phase::Waiting if matches!(step, Step::Io(_)) => {
                frame.finish();
                self.actors[id as usize].in_kernel -= 1;
            }
            Phase::Waiting => {
                frame.phase = Phase::Retry;
                self.shared.leave(&mut self.actors, id);
            }
            _ => {}
        }
    }

    /// Begins the handler of a pending signal where user mode would be entered.
    #[inline]
    fn enter_handler(&mut self, id: u32) {
        let actor = &mut self.actors[id as usize];
        if !actor.takes_signal() {
            return;
        }
        match actor.frames[0].phase {
            Phase::Start | Phase::Retry | Phase::ComputeCut => {
                actor.pending = false;
                actor.level = 1;
                actor.frames[1] = Frame::at(actor.handler);
            }
            _ => {}
        }
    }

    /// One step of the current operation.
    #[inline]
    fn step(
        &mut self,
        id: u32,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        let actor = &mut self.actors[id as usize];
        let frame = &mut actor.frames[actor.level];
        let step = self.code.steps[frame.pc as usize];
        match frame.phase {
            Phase::Start => Ok(self.begin(id, step, effects)),
            Phase::ComputeCut => {
                frame.phase = Phase::Computing;
                let forever = matches!(step, Step::RunForever);
                Ok(Some(if forever { Need::CpuForever } else { Need::Cpu { ns: frame.left_ns } }))
            }
            Phase::ChargeCut => {
                let ns = frame.left_ns;
                Ok(Some(self.charge(id, ns)))
            }
            Phase::Ready | Phase::Retry => {
                frame.phase = Phase::Ready;
                self.call(id, step, now_ns, effects)
            }
            Phase::Ended => Ok(Some(Need::Exit)),
            // `resume` left none of these, and each step that sets one returns a need.
            Phase::Owing
            | Phase::Charging
            | Phase::Computing
            | Phase::Asleep
            | Phase::Waiting
            | Phase::Spinning => Ok(Some(Need::Block)),
        }
    }

    /// A step with the calls that it enters and leaves among its effects.
    fn traced_step(
        &mut self,
        id: u32,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        self.leave_call(id, effects);
        let from = effects.len();
        let need = self.step(id, now_ns, effects)?;
        self.enter_call(id, from, effects);
        Ok(need)
    }

    /// Begins an operation. System calls begin to cost CPU time; all others take effect here.
    #[inline]
    fn begin(&mut self, id: u32, step: Step, effects: &mut Vec<Effect>) -> Option<Need> {
        self.timer_reference(id, step);
        let actor = &mut self.actors[id as usize];
        if actor.owed_ns > 0 {
            actor.frame().phase = Phase::Owing;
            return Some(Need::Cpu { ns: std::mem::take(&mut actor.owed_ns) });
        }
        let actor = &mut self.actors[id as usize];
        let regs = &mut self.regs[actor.regs as usize..];
        let frame = &mut actor.frames[actor.level];
        match step {
            Step::Run(length) => {
                let ns = draw(&mut actor.prng, length);
                if ns == 0 {
                    frame.finish();
                    return None;
                }
                frame.phase = Phase::Computing;
                Some(Need::Cpu { ns })
            }
            Step::Touch { bytes } => {
                frame.phase = Phase::Computing;
                Some(Need::Touch { bytes })
            }
            Step::RunForever => {
                frame.phase = Phase::Computing;
                Some(Need::CpuForever)
            }
            Step::Mark { label, reg } => {
                effects.push(Effect::Mark { label, value: regs[reg as usize] });
                regs[reg as usize] += 1;
                frame.finish();
                None
            }
            Step::LoopEnter { reg, count, end } => {
                regs[reg as usize] = count;
                frame.pc = if count == 0 { end } else { frame.pc + 1 };
                None
            }
            Step::LoopBack { reg, body } => {
                regs[reg as usize] -= 1;
                frame.pc = if regs[reg as usize] == 0 { frame.pc + 1 } else { body };
                None
            }
            Step::Jump(to) => {
                frame.pc = to;
                None
            }
            Step::Return => {
                actor.level = 0;
                None
            }
            _ => self.begin_shared(id, step, effects),
        }
    }

    /// Begins an operation on what actors share. What needs no system call happens here.
    fn begin_shared(&mut self, id: u32, step: Step, effects: &mut Vec<Effect>) -> Option<Need> {
        match step {
            Step::Lock { lock, shared } => self.begin_lock(id, step, (lock, shared), effects),
            Step::Unlock { lock } if self.holds(id, lock) => {
                match self.release_in_user_mode(id, lock, effects) {
                    true => self.finish(id),
                    false => self.enter(id, step),
                }
            }
            Step::Send { queue } => self.begin_send(id, step, queue),
            Step::Receive { count: 0, .. } => self.finish(id),
            Step::Receive { queue, .. } => self.begin_receive(id, step, queue),
            Step::ConditionWait { condition, lock } => {
                self.begin_condition_wait(id, step, (condition, lock), effects)
            }
            Step::Notify { condition, all } => self.begin_notify(id, step, (condition, all)),
            Step::Barrier { barrier, count } => self.arrive(id, step, barrier, count),
            _ => self.enter(id, step),
        }
    }

    /// The effect of a system call.
    #[inline]
    fn call(
        &mut self,
        id: u32,
        step: Step,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        let need = match step {
            Step::Sleep(length) => self.sleep(id, length, now_ns),
            Step::Io(length) => Some(self.io(id, length, now_ns)),
            Step::Busy(length) => self.busy(id, length, now_ns),
            Step::TimerWait { timer, period_ns, relative } => {
                self.timer_wait(id, timer, (period_ns, relative), now_ns)
            }
            Step::TimerStart(timer) => self.timer_start(id, timer, now_ns),
            Step::PipeWrite { pipe, bytes } => self.pipe_write(id, pipe, bytes, effects),
            Step::PipeRead { pipe, bytes } => self.pipe_read(id, pipe, bytes, effects),
            Step::Send { queue } => self.send(id, step, queue, effects),
            Step::Receive { queue, .. } => self.receive(id, step, queue, effects),
            Step::Signal(role) => self.signal(id, role, effects),
            Step::Fork { spec, count } => return self.fork(id, spec as usize, count, effects),
            Step::WaitChildren => self.wait_children(id),
            Step::Lock { lock, shared } => {
                return self.lock(id, step, (lock, shared), now_ns, effects);
            }
            Step::ConditionWait { condition, lock } => {
                return self.condition_wait(id, step, (condition, lock), now_ns, effects);
            }
            Step::Notify { condition, .. } => self.notify(id, condition, effects),
            Step::Barrier { barrier, .. } => self.meet(id, barrier, effects),
            Step::Unlock { lock } => return self.unlock(id, lock, now_ns, effects),
            Step::Exit => {
                self.ends_without_locks(id, now_ns)?;
                Some(self.exit(id, effects))
            }
            Step::Yield => {
                self.finish(id);
                Some(Need::Yield)
            }
            Step::Set(effect) => {
                effects.push(effect);
                self.finish(id)
            }
            // No system calls.
            Step::Run(_)
            | Step::RunForever
            | Step::Touch { .. }
            | Step::Mark { .. }
            | Step::LoopEnter { .. }
            | Step::LoopBack { .. }
            | Step::Jump(_)
            | Step::Return => self.finish(id),
        };
        Ok(need)
    }
}
