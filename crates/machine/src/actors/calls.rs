//! The effects of actors' system calls, once their CPU time is paid for.

use fairground_workload::{Duration, Role};

use super::actor::Phase;
use super::code::{NO_CODE, Step};
use super::effect::{ActorId, Effect, Need};
use super::error::ActorError;
use super::state::{Actors, draw};

impl Actors {
    #[inline]
    pub(super) fn sleep(&mut self, id: u32, length: Duration, now_ns: u64) -> Option<Need> {
        // The timer is set on the way into the call, a third of its cost before what comes now.
        let set_ns = now_ns.saturating_sub(self.cost.syscall_ns / 3);
        let actor = &mut self.actors[id as usize];
        let at_ns = set_ns.saturating_add(draw(&mut actor.prng, length));
        if actor.takes_signal() {
            return self.finish(id);
        }
        actor.frame().phase = Phase::Asleep;
        Some(Need::SleepUntil { at_ns })
    }

    /// The device serves requests one after the other, in the order in which they come.
    pub(super) fn io(&mut self, id: u32, length: Duration, now_ns: u64) -> Need {
        let actor = &mut self.actors[id as usize];
        let begin_ns = now_ns.max(self.device_free_ns);
        self.device_free_ns = begin_ns.saturating_add(draw(&mut actor.prng, length));
        actor.in_kernel += 1;
        actor.frame().phase = Phase::Waiting;
        Need::Io { at_ns: self.device_free_ns }
    }

    /// `waitpid` of any child, repeated until there is none: each call takes one that has ended, or waits.
    pub(super) fn wait_children(&mut self, id: u32) -> Option<Need> {
        let actor = &mut self.actors[id as usize];
        if actor.children == 0 {
            return self.finish(id);
        }
        if actor.ended > 0 {
            (actor.children, actor.ended) = (actor.children - 1, actor.ended - 1);
            let more = actor.children > 0;
            return self.finish_part(id, 0, more);
        }
        if actor.takes_signal() {
            actor.frame().phase = Phase::Retry;
            return None;
        }
        actor.frame().phase = Phase::Waiting;
        Some(Need::Block)
    }

    pub(super) fn fork(
        &mut self,
        id: u32,
        spec: usize,
        count: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        let progress = self.actors[id as usize].frame().progress;
        if progress >= count {
            return Ok(self.finish(id));
        }
        if self.living >= self.max_living {
            return Err(Box::new(ActorError::TooManyTasks {
                task: self.task_name(ActorId(id)),
                limit: self.max_living,
            }));
        }
        let child = self.spawn(spec, Some(ActorId(id)));
        effects.push(Effect::Fork { child });
        Ok(self.finish_part(id, progress + 1, progress + 1 < count))
    }

    pub(super) fn exit(&mut self, id: u32, effects: &mut Vec<Effect>) -> Need {
        let actor = &mut self.actors[id as usize];
        (actor.level, actor.pending) = (0, false);
        actor.frames[0].phase = Phase::Ended;
        effects.push(Effect::BeginExit);
        let (spec, nth, parent) = (actor.spec, actor.nth, actor.parent);
        self.members[spec as usize].remove(nth);
        self.living -= 1;
        if let Some(parent) = self.living_parent(parent) {
            let actor = &mut self.actors[parent as usize];
            actor.ended += 1;
            let frame = actor.frame();
            let waits = matches!(self.code.steps[frame.pc as usize], Step::WaitChildren);
            if waits && frame.phase == Phase::Waiting {
                frame.phase = Phase::Ready;
                effects.push(Effect::Wake { actor: ActorId(parent), sync: true });
            }
        }
        Need::Exit
    }

    fn living_parent(&self, parent: Option<(u32, u64)>) -> Option<u32> {
        let (id, birth) = parent?;
        let actor = &self.actors[id as usize];
        (actor.birth == birth && actor.frames[0].phase != Phase::Ended).then_some(id)
    }

    /// One `kill` of one target; a group is signalled one after the other, in the order of its numbers.
    pub(super) fn signal(
        &mut self,
        id: u32,
        role: Role,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let from = self.actors[id as usize].frame().progress;
        let (target, next) = match role {
            Role::All(spec) => {
                let target = self.members[spec].at_or_after(from);
                let next = target.and_then(|(nth, _)| self.members[spec].at_or_after(nth + 1));
                (target.map(|(_, actor)| actor), next.map(|(nth, _)| nth))
            }
            Role::One(spec, nth) => {
                let found = self.members[spec].at_or_after(u64::from(nth));
                (found.filter(|(found, _)| *found == u64::from(nth)).map(|(_, actor)| actor), None)
            }
            Role::Parent => (self.living_parent(self.actors[id as usize].parent), None),
        };
        if let Some(target) = target {
            self.deliver(target, effects);
        }
        self.finish_part(id, next.unwrap_or(0), next.is_some())
    }

    /// A signal reaches an actor.
    fn deliver(&mut self, id: u32, effects: &mut Vec<Effect>) {
        let actor = &mut self.actors[id as usize];
        let handled = actor.handler != NO_CODE;
        if actor.pending || (!handled && actor.level == 0 && actor.frames[0].phase != Phase::Asleep)
        {
            return;
        }
        actor.pending = handled;
        if actor.level != 0 || actor.in_kernel > 0 {
            return;
        }
        let wake = Effect::Wake { actor: ActorId(id), sync: false };
        match actor.frames[0].phase {
            Phase::Asleep => {
                actor.frames[0].finish();
                effects.push(wake);
            }
            Phase::Waiting => {
                (actor.frames[0].phase, actor.frames[0].has_waited) = (Phase::Retry, false);
                self.leave_queue(id);
                effects.push(wake);
            }
            Phase::Computing => effects.push(Effect::Signal { actor: ActorId(id) }),
            _ => {}
        }
    }
}
