//! The state of all actors, and what their operations share.

use fairground_workload::{Duration, Workload};

use super::actor::{Actor, Frame, ListId, Phase, WaitLink};
use super::code::{Code, compile};
use super::effect::{ActorId, AffinityId, Effect, Need};
use super::error::ActorError;
use super::lock::LockState;
use super::members::Members;
use super::sync::Shared;
use super::traced::OpenCall;
use crate::CostModel;
use crate::cpuset::CpuMask;
use crate::prng::{Prng, STREAM_TASKS};

/// The user space of all tasks of a workload.
#[derive(Clone, Debug)]
pub struct Actors {
    pub(super) code: Code,
    pub(super) actors: Vec<Actor>,
    pub(super) shared: Shared,
    pub(super) locks: Vec<LockState>,
    /// Tasks may wait for ever ([`Workload::hangs`]).
    pub(super) hangs: bool,
    /// One more than the last expiry of each timer that is shared, ns; 0 before it begins.
    pub(super) timers: Vec<u64>,
    /// When the device will have served all its requests, ns.
    pub(super) device_free_ns: u64,
    pub(super) members: Vec<Members>,
    pub(super) regs: Vec<u64>,
    pub(super) free: Vec<u32>,
    /// Register blocks of released actors, per group.
    pub(super) free_regs: Vec<Vec<u32>>,
    pub(super) root: Prng,
    pub(super) cost: CostModel,
    pub(super) births: u64,
    pub(super) living: u32,
    pub(super) max_living: u32,
    /// The call that each actor is in, where they are among the effects.
    pub(super) traced: Option<Vec<OpenCall>>,
    pub(super) instant_ns: u64,
    pub(super) instant_ops: u64,
}

impl Actors {
    /// Without actors. Fails if the workload is inconsistent, as one built by hand may be.
    pub fn new(workload: &Workload, seed: u64, cost: &CostModel) -> Result<Actors, ActorError> {
        let code = compile(workload)?;
        let groups = code.specs.len();
        Ok(Actors {
            code,
            actors: Vec::new(),
            shared: Shared::new(workload),
            locks: LockState::of(workload),
            hangs: workload.hangs,
            device_free_ns: 0,
            timers: vec![0; workload.timers.len()],
            members: vec![Members::default(); groups],
            regs: Vec::new(),
            free: Vec::new(),
            free_regs: vec![Vec::new(); groups],
            root: Prng::new(seed).fork(STREAM_TASKS),
            cost: cost.clone(),
            births: 0,
            living: 0,
            max_living: u32::MAX,
            traced: None,
            instant_ns: 0,
            instant_ops: 0,
        })
    }

    /// The kernel takes so much CPU time from an actor before its next operation, ns.
    pub(crate) fn owe(&mut self, actor: ActorId, ns: u64) {
        self.actors[actor.0 as usize].owed_ns += ns;
    }

    /// Limits the number of actors at the same time; a fork beyond is [`ActorError::TooManyTasks`].
    pub fn set_limit(&mut self, max_living: u32) {
        self.max_living = max_living;
    }

    /// Makes the next actor of a group ([`Workload::tasks`] by index), `nth` counting from 0 over all that the group
    /// ever had. Its random numbers depend on the seed, the group and `nth` alone.
    pub fn spawn(&mut self, spec: usize, parent: Option<ActorId>) -> ActorId {
        let shape = &self.code.specs[spec];
        let (entry, handler, count) = (shape.entry, shape.handler, shape.regs);
        let nth = self.members[spec].next_nth();
        let regs = match self.free_regs[spec].pop() {
            Some(regs) => {
                self.regs[regs as usize..(regs + count) as usize].fill(0);
                regs
            }
            None => {
                let regs = self.regs.len();
                self.regs.resize(regs + count as usize, 0);
                regs as u32
            }
        };
        let parent = parent.and_then(|p| {
            let parent = self.actors.get_mut(p.0 as usize)?;
            parent.children += 1;
            Some((p.0, parent.birth))
        });
        self.births += 1;
        let frame = Frame::at(entry);
        let actor = Actor {
            frames: [frame; 2],
            level: 0,
            pending: false,
            handler,
            regs,
            spec: spec as u32,
            nth,
            birth: self.births,
            parent,
            children: 0,
            ended: 0,
            owed_ns: 0,
            wait: WaitLink::FREE,
            held: 0,
            in_kernel: 0,
            unpreempted: 0,
            prng: self.root.fork((spec as u64) << 40 ^ nth),
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.actors[id as usize] = actor;
                id
            }
            None => {
                self.actors.push(actor);
                self.actors.len() as u32 - 1
            }
        };
        self.living += 1;
        self.members[spec].push(id);
        ActorId(id)
    }

    /// The group of an actor.
    pub fn spec(&self, actor: ActorId) -> usize {
        self.actors[actor.0 as usize].spec as usize
    }

    /// Which of its group the actor is, from 0.
    pub fn nth(&self, actor: ActorId) -> u64 {
        self.actors[actor.0 as usize].nth
    }

    /// The name of the actor's task: its group's, with `/n` when the group has several.
    pub fn task_name(&self, actor: ActorId) -> String {
        let Actor { spec, nth, .. } = self.actors[actor.0 as usize];
        let spec = &self.code.specs[spec as usize];
        if spec.count == 1 { spec.name.clone() } else { format!("{}/{nth}", spec.name) }
    }

    /// The texts of all marks; [`Effect::Mark`] counts in them.
    pub fn labels(&self) -> &[String] {
        &self.code.labels
    }

    /// The affinity with which the tasks of a group start; `None`: any CPU.
    pub fn start_affinity(&self, spec: usize) -> Option<AffinityId> {
        self.code.specs[spec].affinity
    }

    /// The CPUs of an affinity.
    pub(crate) fn affinity(&self, id: AffinityId) -> &CpuMask {
        &self.code.affinities[id.0 as usize]
    }

    /// Living actors.
    pub fn living(&self) -> u32 {
        self.living
    }

    /// Releases an actor that has ended: its number may be used again.
    pub fn release(&mut self, actor: ActorId) {
        let Actor { spec, regs, frames, .. } = self.actors[actor.0 as usize];
        if frames[0].phase == Phase::Ended && self.actors[actor.0 as usize].birth != 0 {
            self.actors[actor.0 as usize].birth = 0;
            self.free_regs[spec as usize].push(regs);
            self.free.push(actor.0);
        }
    }

    /// Prefetches the likely actor of a task: tasks and actors have equal numbers until some end.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        if let Some(actor) = self.actors.get(number as usize) {
            fairground_bpf::prefetch_start(actor, Actor::HOT_BYTES);
        }
    }

    /// Lets the actor wait in a list, unless a pending signal makes it try again later.
    pub(super) fn block(&mut self, id: u32, list: ListId) -> Option<Need> {
        let actor = &mut self.actors[id as usize];
        if actor.takes_signal() {
            actor.frame().phase = Phase::Retry;
            return None;
        }
        actor.frame().phase = Phase::Waiting;
        actor.frame().has_waited = true;
        self.shared.wait(&mut self.actors, list, id);
        Some(Need::Block)
    }

    /// Wakes the first actor of a list, to try again; false: it is empty.
    pub(super) fn wake_first(
        &mut self,
        list: ListId,
        sync: bool,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(first) = self.shared.take_first(&mut self.actors, list) else { return false };
        self.actors[first as usize].frame().phase = Phase::Ready;
        effects.push(Effect::Wake { actor: ActorId(first), sync });
        true
    }

    /// Wakes those that wait in a list when this begins, to try again, one after the other: each wake-up is paid for
    /// before the next. The progress of the operation is how many are left; 0: all.
    pub(super) fn wake_all(
        &mut self,
        id: u32,
        list: ListId,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let left = match self.actors[id as usize].frame().progress {
            0 => self.shared.count(&self.actors, list),
            left => left,
        };
        if !self.wake_first(list, false, effects) || left == 1 {
            return self.finish(id);
        }
        let frame = self.actors[id as usize].frame();
        (frame.phase, frame.progress) = (Phase::Ready, left - 1);
        Some(Need::InCall)
    }

    #[inline]
    pub(super) fn finish(&mut self, id: u32) -> Option<Need> {
        self.actors[id as usize].frame().finish();
        None
    }

    /// One of `count` parts of the operation is done; each is a system call of its own.
    #[inline]
    pub(super) fn finish_part(&mut self, id: u32, progress: u64, more: bool) -> Option<Need> {
        let frame = self.actors[id as usize].frame();
        *frame = Frame { progress, ..Frame::at(frame.pc) };
        if !more {
            frame.finish();
        }
        None
    }
}

/// A length in ns.
#[inline]
pub(super) fn draw(prng: &mut Prng, length: Duration) -> u64 {
    match length {
        Duration::Fixed(ns) => ns,
        Duration::Uniform { low, high } => prng.between(low, high),
    }
}
