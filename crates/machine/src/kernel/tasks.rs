//! The table of tasks: their places in the slab of `task_struct`s, their pids, and which places are free.

use std::ops::{Index, IndexMut};

use fairground_trace::TaskId;

use super::{ScxState, Slot, Task, residents};
use crate::actors::ActorId;
use crate::layout::offsets;

/// The pid of the first task, unless the tasks that every kernel has need it; the next ones count up.
const FIRST_PID_MIN: u32 = 1000;

/// All tasks, living and dead, by their places.
#[derive(Debug)]
pub(crate) struct Tasks {
    tasks: Vec<Task>,
    free: Vec<Slot>,
    /// The place that each task has or had, in the order of creation: by its pid less the first one.
    by_birth: Vec<Slot>,
    /// By actor: its task.
    by_actor: Vec<Option<Slot>>,
    /// Guest address of the slab; its first places, one a CPU, are the idle tasks, and the next ones the residents.
    slab: u64,
    cpus: u32,
    /// The tasks that every kernel has ([`super::residents`]).
    residents: u32,
    first_pid: u32,
}

impl Tasks {
    /// No task yet; the slab with the idle tasks of so many CPUs lies at a guest address.
    pub(crate) fn new(slab: u64, cpus: u32) -> Tasks {
        let (tasks, free, by_birth, by_actor) = Default::default();
        let residents = residents::count(cpus);
        let first_pid = FIRST_PID_MIN.max(residents + 1);
        Tasks { tasks, free, by_birth, by_actor, slab, cpus, residents, first_pid }
    }

    /// Places of the slab before that of the first task.
    #[inline]
    pub(crate) fn reserved(&self) -> u32 {
        self.cpus + self.residents
    }

    /// The guest address of a task that every kernel has, by its pid.
    pub(crate) fn resident(&self, pid: u32) -> Option<u64> {
        let place = u64::from(self.cpus) + u64::from(pid.checked_sub(1)?);
        (pid <= self.residents).then(|| self.slab + place * offsets::TASK_STRIDE)
    }

    /// The pid of such a task, by its guest address.
    pub(crate) fn resident_at(&self, addr: u64) -> Option<u32> {
        let distance = addr.checked_sub(self.resident(1)?)?;
        let nth = distance / offsets::TASK_STRIDE;
        let there = nth < u64::from(self.residents) && nth * offsets::TASK_STRIDE == distance;
        there.then_some(nth as u32 + 1)
    }

    /// Places that have been used.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// The tasks of all places, dead ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Task)> {
        (0..).map(Slot).zip(&self.tasks)
    }

    /// All places.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.tasks.len() as u32).map(Slot)
    }

    /// The task at a place, if that was ever taken.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<&Task> {
        self.tasks.get(slot.index())
    }

    /// The next task: its place, which [`Tasks::put`] fills, and its pid.
    pub(crate) fn take_place(&mut self) -> (Slot, u32) {
        let slot = self.free.pop().unwrap_or(Slot(self.tasks.len() as u32));
        let pid = self.first_pid + self.by_birth.len() as u32;
        self.by_birth.push(slot);
        (slot, pid)
    }

    /// Puts a new task into the place that was taken for it.
    pub(crate) fn put(&mut self, slot: Slot, task: Task) {
        let actor = task.actor.0 as usize;
        if self.by_actor.len() <= actor {
            self.by_actor.resize(actor + 1, None);
        }
        self.by_actor[actor] = Some(slot);
        match self.tasks.get_mut(slot.index()) {
            Some(free) => *free = task,
            None => self.tasks.push(task),
        }
    }

    /// The place of a task that is gone may be taken again.
    pub(crate) fn free(&mut self, slot: Slot) {
        let actor = self[slot].actor;
        self.by_actor[actor.0 as usize] = None;
        self.free.push(slot);
    }

    /// The places at which no task lives.
    pub(crate) fn free_places(&self) -> &[Slot] {
        &self.free
    }

    /// The guest address of a task's `task_struct`, without access to the task.
    #[inline]
    pub(crate) fn addr(&self, slot: Slot) -> u64 {
        self.slab + (u64::from(self.reserved()) + u64::from(slot.0)) * offsets::TASK_STRIDE
    }

    /// The guest address of a CPU's idle task.
    pub(crate) fn idle_addr(&self, cpu: u32) -> u64 {
        self.slab + u64::from(cpu) * offsets::TASK_STRIDE
    }

    /// The task whose `task_struct` lies at a guest address; `None` for anything else, idle tasks included.
    #[inline]
    pub(crate) fn at(&self, addr: u64) -> Option<Slot> {
        let distance = addr.wrapping_sub(self.addr(Slot(0)));
        let index = distance / offsets::TASK_STRIDE;
        let alive = index < self.tasks.len() as u64
            && index * offsets::TASK_STRIDE == distance
            && self.tasks[index as usize].scx_state != ScxState::None;
        alive.then_some(Slot(index as u32))
    }

    /// The CPU whose idle task lies at a guest address.
    #[inline]
    pub(crate) fn idle_at(&self, addr: u64) -> Option<u32> {
        let distance = addr.wrapping_sub(self.slab);
        let index = distance / offsets::TASK_STRIDE;
        let there = index < u64::from(self.cpus) && index * offsets::TASK_STRIDE == distance;
        there.then_some(index as u32)
    }

    /// The task of an actor.
    #[inline]
    pub(crate) fn of_actor(&self, actor: ActorId) -> Option<Slot> {
        self.by_actor.get(actor.0 as usize).copied().flatten()
    }

    /// The tasks of all actors, in the order of these.
    pub(crate) fn by_actor(&self) -> impl Iterator<Item = Slot> {
        self.by_actor.iter().flatten().copied()
    }

    /// The task of a number in the trace; it may be gone.
    pub(crate) fn of_id(&self, id: TaskId) -> Option<(Slot, &Task)> {
        self.iter().find(|(_, task)| task.id == id)
    }

    /// The living task of a pid; one that ends has none any more.
    pub(crate) fn of_pid(&self, pid: u32) -> Option<Slot> {
        let slot = self.born(pid.checked_sub(self.first_pid)?.into())?;
        let task = &self[slot];
        let lives = task.pid == pid && task.scx_state != ScxState::None && !task.exiting;
        lives.then_some(slot)
    }

    /// The living task of a `p->scx.tid`.
    pub(crate) fn of_tid(&self, tid: u64) -> Option<Slot> {
        let slot = self.born(tid.checked_sub(1)?)?;
        let task = &self[slot];
        (self.tid(task.pid) == tid && task.scx_state != ScxState::None).then_some(slot)
    }

    /// The `p->scx.tid` of a pid: tasks count from 1 in the order of creation.
    pub(crate) fn tid(&self, pid: u32) -> u64 {
        u64::from(pid - self.first_pid) + 1
    }

    fn born(&self, nth: u64) -> Option<Slot> {
        self.by_birth.get(usize::try_from(nth).ok()?).copied()
    }
}

impl Index<Slot> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, slot: Slot) -> &Task {
        &self.tasks[slot.index()]
    }
}

impl IndexMut<Slot> for Tasks {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Task {
        &mut self.tasks[slot.index()]
    }
}
