//! The workload on an ideal machine: a CPU for each task, no costs. A task that is stuck here is stuck on every
//! machine.
//!
//! Time passes as the programs say (a uniform duration takes its shortest), so that tasks that compete for one queue
//! arrive in a plausible order. When no event is left, some tasks may still wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::store::Store;
use crate::limits::CHECK_TASKS_MAX;
use crate::model::{Op, Program, Role, Workload};
use crate::operations::Pace;

/// Operations that a task executes before other tasks that are due at the same time execute theirs.
const STEPS_AT_ONCE_MAX: u32 = 64;

/// The reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Wait {
    Bytes(usize),
    Room(usize),
    Message(usize),
    Capacity(usize),
    Lock(usize),
    Condition(usize),
    Barrier(usize),
    Children,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the event queue, due now.
    Ready,
    /// In the event queue, due at that time.
    Running {
        until_ns: u64,
    },
    Sleeping,
    Blocked(Wait),
    /// Computes forever.
    Forever,
    Ended,
}

/// A program in execution: that of the task, its handler, or a loop's body.
#[derive(Clone, Debug)]
pub(super) struct Frame<'w> {
    pub(super) program: &'w Program,
    pub(super) at: usize,
    /// Iterations after this one; `None`: unlimited.
    iterations_left: Option<u64>,
    /// The first frame of a handler.
    pub(super) handler: bool,
    /// The rest of the operation at `at` once it has begun: ns of a run, messages of a receive.
    rest: Option<u64>,
}

impl<'w> Frame<'w> {
    /// Before the first operation.
    fn new(program: &'w Program, iterations_left: Option<u64>, handler: bool) -> Self {
        Self { program, at: 0, iterations_left, handler, rest: None }
    }

    /// Whether the program starts again at its end.
    pub(super) fn may_turn(&self) -> bool {
        self.iterations_left != Some(0)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Task<'w> {
    pub(super) group: usize,
    pub(super) parent: Option<usize>,
    pub(super) frames: Vec<Frame<'w>>,
    pub(super) state: State,
    /// Distinguishes the valid event from those that a signal has cancelled.
    generation: u64,
    children: u32,
}

impl Task<'_> {
    pub(super) fn waits_for(&self) -> Option<Wait> {
        match self.state {
            State::Blocked(wait) => Some(wait),
            _ => None,
        }
    }

    pub(super) fn lives(&self) -> bool {
        self.state != State::Ended
    }
}

/// A lock: its owners and its waiters, shared or exclusive.
#[derive(Clone, Debug, Default)]
pub(super) struct Holding {
    pub(super) holders: Vec<usize>,
    pub(super) shared: bool,
    pub(super) waiters: VecDeque<(usize, bool)>,
}

/// A barrier: arrivals, waiters, and how often it has opened.
#[derive(Clone, Debug, Default)]
pub(super) struct Meeting {
    pub(super) come: u32,
    pub(super) waiters: Vec<usize>,
    pub(super) opened: u64,
}

/// An event: time, sequence number, task, and the task's generation.
type Event = Reverse<(u64, u64, usize, u64)>;

pub(super) struct Execution<'w> {
    pub(super) workload: &'w Workload,
    pub(super) tasks: Vec<Task<'w>>,
    /// The tasks of each group.
    members: Vec<Vec<usize>>,
    pipes: Vec<Store>,
    queues: Vec<Store>,
    pub(super) locks: Vec<Holding>,
    pub(super) conditions: Vec<VecDeque<usize>>,
    pub(super) barriers: Vec<Meeting>,
    events: BinaryHeap<Event>,
    now_ns: u64,
    sequence: u64,
    steps_left: u64,
}

impl<'w> Execution<'w> {
    pub(super) fn new(workload: &'w Workload, steps_max: u64) -> Self {
        let pipes = workload.pipes.iter().map(Store::of_pipe);
        let queues = workload.queues.iter().map(Store::of_queue);
        let mut execution = Self {
            workload,
            tasks: Vec::new(),
            members: vec![Vec::new(); workload.tasks.len()],
            pipes: pipes.collect(),
            queues: queues.collect(),
            locks: vec![Holding::default(); workload.locks.len()],
            conditions: vec![VecDeque::new(); workload.conditions.len()],
            barriers: vec![Meeting::default(); workload.barriers.len()],
            events: BinaryHeap::new(),
            now_ns: 0,
            sequence: 0,
            steps_left: steps_max,
        };
        for (group, spec) in workload.tasks.iter().enumerate() {
            if let Some(start_ns) = spec.start_ns {
                execution.start(group, None, start_ns);
            }
        }
        execution
    }

    /// Runs until no event is left; whether that was within the limits.
    pub(super) fn until_nothing_happens(&mut self) -> bool {
        while let Some(Reverse((time_ns, _, task, generation))) = self.events.pop() {
            if self.tasks.len() > CHECK_TASKS_MAX || self.steps_left == 0 {
                return false;
            }
            if self.tasks[task].generation != generation || !self.tasks[task].lives() {
                continue;
            }
            self.now_ns = time_ns;
            if let State::Running { .. } = self.tasks[task].state {
                self.advance(task);
            }
            self.tasks[task].state = State::Ready;
            self.execute_until_wait(task);
        }
        true
    }

    fn start(&mut self, group: usize, parent: Option<usize>, time_ns: u64) {
        let spec = &self.workload.tasks[group];
        for _ in 0..spec.count {
            let task = self.tasks.len();
            if task > CHECK_TASKS_MAX {
                return;
            }
            self.tasks.push(Task {
                group,
                parent,
                frames: vec![Frame::new(&spec.program, Some(0), false)],
                state: State::Ready,
                generation: 0,
                children: 0,
            });
            self.members[group].push(task);
            if let Some(parent) = parent {
                self.tasks[parent].children += 1;
            }
            self.due(task, time_ns);
        }
    }

    fn due(&mut self, task: usize, time_ns: u64) {
        self.sequence += 1;
        self.tasks[task].generation += 1;
        let generation = self.tasks[task].generation;
        self.events.push(Reverse((time_ns, self.sequence, task, generation)));
    }

    pub(super) fn wake(&mut self, task: Option<usize>) {
        if let Some(task) = task {
            self.tasks[task].state = State::Ready;
            self.due(task, self.now_ns);
        }
    }

    /// The operation is done: on to the next.
    pub(super) fn advance(&mut self, task: usize) {
        if let Some(frame) = self.tasks[task].frames.last_mut() {
            frame.at += 1;
            frame.rest = None;
        }
    }

    /// Lets a task execute until it waits.
    fn execute_until_wait(&mut self, task: usize) {
        for _ in 0..STEPS_AT_ONCE_MAX {
            if self.steps_left == 0 || self.tasks[task].state != State::Ready {
                return;
            }
            self.steps_left -= 1;
            let Some(frame) = self.tasks[task].frames.last_mut() else {
                self.end(task);
                return;
            };
            let program = frame.program;
            match program.get(frame.at) {
                Some(op) => self.execute(task, op),
                None => match frame.iterations_left {
                    Some(0) => {
                        let was_loop = !frame.handler && self.tasks[task].frames.len() > 1;
                        self.tasks[task].frames.pop();
                        if was_loop {
                            self.advance(task);
                        }
                    }
                    iterations => {
                        frame.iterations_left = iterations.map(|iterations| iterations - 1);
                        frame.at = 0;
                    }
                },
            }
        }
        self.due(task, self.now_ns);
    }

    fn execute(&mut self, task: usize, op: &'w Op) {
        match op {
            Op::RunForever => self.tasks[task].state = State::Forever,
            Op::PipeWrite(pipe, bytes) => self.give(task, Wait::Room(*pipe), *bytes),
            Op::PipeRead(pipe, bytes) => self.take(task, Wait::Bytes(*pipe), *bytes),
            Op::Send(queue) => self.give(task, Wait::Capacity(*queue), 1),
            Op::Receive(queue, count) => {
                self.take(task, Wait::Message(*queue), u64::from(*count));
            }
            Op::Lock(lock) | Op::WriteLock(lock) => self.lock(task, *lock, false),
            Op::ReadLock(lock) => self.lock(task, *lock, true),
            Op::Unlock(lock) => {
                self.advance(task);
                self.unlock(task, *lock);
            }
            Op::ConditionWait(condition, lock) => self.condition_wait(task, *condition, *lock),
            Op::Notify(condition) => self.notify(task, *condition, 1),
            Op::NotifyAll(condition) => self.notify(task, *condition, usize::MAX),
            Op::Barrier(barrier) => self.meet(task, *barrier),
            Op::Signal(role) => self.signal(task, *role),
            Op::Fork(group) => {
                self.start(*group, Some(task), self.now_ns);
                self.advance(task);
            }
            Op::WaitChildren if self.tasks[task].children > 0 => {
                self.tasks[task].state = State::Blocked(Wait::Children);
            }
            Op::Loop(times, body) => {
                let iterations_left = times.map(|times| times.saturating_sub(1));
                self.tasks[task].frames.push(Frame::new(body, iterations_left, false));
            }
            Op::Exit => self.end(task),
            op => match op.effect(self.workload).pace {
                // Each task has a device of its own, like a CPU.
                Pace::Sleeps(length) => self.sleep(task, length.bounds().0),
                Pace::Computes(length) => self.compute(task, length.bounds().0),
                // A wait of which nothing is known here is over at once.
                Pace::AtOnce | Pace::Waits => self.advance(task),
            },
        }
    }

    fn compute(&mut self, task: usize, time_ns: u64) {
        let until_ns = self.now_ns.saturating_add(self.rest(task).unwrap_or(time_ns));
        self.tasks[task].state = State::Running { until_ns };
        self.due(task, until_ns);
    }

    pub(super) fn rest(&self, task: usize) -> Option<u64> {
        self.tasks[task].frames.last().and_then(|frame| frame.rest)
    }

    pub(super) fn set_rest(&mut self, task: usize, rest: u64) {
        if let Some(frame) = self.tasks[task].frames.last_mut() {
            frame.rest = Some(rest);
        }
    }

    /// A sleep that a signal interrupts is over.
    fn sleep(&mut self, task: usize, time_ns: u64) {
        self.advance(task);
        self.tasks[task].state = State::Sleeping;
        self.due(task, self.now_ns.saturating_add(time_ns));
    }

    fn store(&mut self, wait: Wait) -> &mut Store {
        match wait {
            Wait::Bytes(pipe) | Wait::Room(pipe) => &mut self.pipes[pipe],
            Wait::Message(queue) | Wait::Capacity(queue) => &mut self.queues[queue],
            _ => unreachable!("only pipes and queues hold something"),
        }
    }

    /// Writes bytes or a message as far as there is room; waits for the rest.
    fn give(&mut self, task: usize, wait: Wait, amount: u64) {
        let waited = self.rest(task);
        let rest = waited.unwrap_or(amount);
        let store = self.store(wait);
        let given = store.put(rest, waited.is_none());
        let taker = if store.amount > 0 { store.takers.pop_front() } else { None };
        let done = given == rest;
        let giver = if done && !store.is_full() { store.givers.pop_front() } else { None };
        if !done {
            store.givers.push_back(task);
        }
        self.finish(task, wait, rest - given, done);
        self.wake(taker);
        self.wake(giver);
    }

    /// Reads bytes (any number above 0 suffices) or receives all the messages.
    fn take(&mut self, task: usize, wait: Wait, amount: u64) {
        let rest = self.rest(task).unwrap_or(amount);
        let store = self.store(wait);
        let (taken, makes_room) = store.take(rest);
        let done = taken == rest || (taken > 0 && matches!(wait, Wait::Bytes(_)));
        let makes_room = makes_room || (!done && store.is_rendezvous());
        let giver = if makes_room { store.givers.pop_front() } else { None };
        let taker = if done && store.amount > 0 { store.takers.pop_front() } else { None };
        if !done {
            store.takers.push_back(task);
        }
        self.finish(task, wait, rest - taken, done);
        self.wake(giver);
        self.wake(taker);
    }

    fn finish(&mut self, task: usize, wait: Wait, rest: u64, done: bool) {
        if done {
            self.advance(task);
        } else {
            self.set_rest(task, rest);
            self.tasks[task].state = State::Blocked(wait);
        }
    }

    fn signal(&mut self, sender: usize, role: Role) {
        self.advance(sender);
        let receivers = match role {
            Role::All(group) => self.members[group].clone(),
            Role::One(group, number) => {
                self.members[group].get(number as usize).copied().into_iter().collect()
            }
            Role::Parent => self.tasks[sender].parent.into_iter().collect(),
        };
        self.steps_left = self.steps_left.saturating_sub(receivers.len() as u64);
        for receiver in receivers {
            if self.tasks[receiver].lives() {
                self.interrupt(receiver);
            }
        }
    }

    /// Makes a task run its handler; then it continues, except that a sleep is over.
    fn interrupt(&mut self, task: usize) {
        let handler = &self.workload.tasks[self.tasks[task].group].on_signal;
        let state = self.tasks[task].state;
        if handler.is_empty() && state != State::Sleeping {
            return;
        }
        match state {
            State::Running { until_ns } => {
                self.set_rest(task, until_ns.saturating_sub(self.now_ns));
            }
            State::Blocked(Wait::Children) | State::Forever | State::Sleeping => {}
            State::Blocked(Wait::Lock(lock)) => {
                self.locks[lock].waiters.retain(|&(waiting, _)| waiting != task);
            }
            State::Blocked(Wait::Condition(condition)) => {
                self.conditions[condition].retain(|&waiting| waiting != task);
            }
            State::Blocked(Wait::Barrier(barrier)) => {
                self.barriers[barrier].waiters.retain(|&waiting| waiting != task);
            }
            State::Blocked(wait) => {
                let store = self.store(wait);
                store.takers.retain(|&waiting| waiting != task);
                store.givers.retain(|&waiting| waiting != task);
            }
            State::Ready | State::Ended => {}
        }
        if !handler.is_empty() {
            self.tasks[task].frames.push(Frame::new(handler, Some(0), true));
        }
        if state != State::Ready {
            self.wake(Some(task));
        }
    }

    fn end(&mut self, task: usize) {
        self.tasks[task].state = State::Ended;
        self.tasks[task].frames.clear();
        let Some(parent) = self.tasks[task].parent else { return };
        self.tasks[parent].children -= 1;
        let waiting = self.tasks[parent].state == State::Blocked(Wait::Children);
        if waiting && self.tasks[parent].children == 0 {
            self.wake(Some(parent));
        }
    }
}
