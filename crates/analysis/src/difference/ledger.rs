//! How the tasks of a recording spent their time: running, waiting and behind which tasks, asleep and until which task
//! woke them. An observer of task states, in O(roles that wait on the CPU) a change.

use crate::Irregularities;
use crate::states::{Cause, Change, Observer, State, States, Task, TimeKind, extent};
use fairground_trace::{Event, EventKind, TaskId, TaskState, Trace};

/// A table of whole numbers: a row for each role, a column for each role and two more, [`Grid::no_role`] and
/// [`Grid::unseen`].
#[derive(Clone, Debug)]
pub(super) struct Grid {
    roles: usize,
    cells: Vec<u64>,
}

impl Grid {
    fn new(roles: usize) -> Self {
        Self { roles, cells: vec![0; roles * (roles + 2)] }
    }

    /// The column of no task: the idle task, an interrupt.
    pub(super) fn no_role(&self) -> usize {
        self.roles
    }

    /// The column of what the recording does not show.
    pub(super) fn unseen(&self) -> usize {
        self.roles + 1
    }

    /// The number of columns.
    pub(super) fn width(&self) -> usize {
        self.roles + 2
    }

    pub(super) fn get(&self, row: usize, column: usize) -> u64 {
        self.cells[row * self.width() + column]
    }

    /// A row.
    pub(super) fn row(&self, row: usize) -> &[u64] {
        &self.cells[row * self.width()..][..self.width()]
    }

    fn add(&mut self, row: usize, column: usize, amount: u64) {
        let width = self.width();
        let cell = &mut self.cells[row * width + column];
        *cell = cell.saturating_add(amount);
    }
}

/// Sums of the tasks of one role.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Tasks that existed.
    pub(super) tasks: u64,
    /// Of them, those that began and ended in the recording.
    pub(super) complete: u64,
    /// On a CPU, ns.
    pub(super) run_ns: u64,
    /// Blocked in state D, a part of the time asleep, ns.
    pub(super) blocked_ns: u64,
    /// Alive, and not known to do what, ns.
    pub(super) unknown_ns: u64,
    /// Ends of sleeps.
    pub(super) wakeups: u64,
    /// Arrivals on another CPU than before.
    pub(super) migrations: u64,
}

/// How the tasks of one recording spent their time, by role.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) window_ns: u64,
    pub(super) cpus: u32,
    pub(super) switches: u64,
    pub(super) irregularities: Irregularities,
    pub(super) roles: Vec<Sums>,
    /// By role that waits and role that has the CPU meanwhile, ns.
    pub(super) waited: Grid,
    /// By role that sleeps and role that wakes it, ns.
    pub(super) slept: Grid,
    /// By role that has to leave a CPU while it can run, and role that comes.
    pub(super) preempted: Grid,
    /// Of these, those at which the coming task had been woken while the other one ran.
    pub(super) by_wakeup: Grid,
}

impl Ledger {
    /// Time on CPUs, waiting, asleep and unknown together: how long the tasks of a role lived, ns.
    pub(super) fn life_ns(&self, role: usize) -> u64 {
        let sums = &self.roles[role];
        sums.run_ns + sums.unknown_ns + self.waited_ns(role) + self.slept_ns(role)
    }

    pub(super) fn waited_ns(&self, role: usize) -> u64 {
        self.waited.row(role).iter().sum()
    }

    pub(super) fn slept_ns(&self, role: usize) -> u64 {
        self.slept.row(role).iter().sum()
    }
}

/// A CPU: what it runs, and the roles of those that wait for it.
#[derive(Clone, Debug)]
struct Queue {
    since_ns: u64,
    /// The column of what runs.
    runs: usize,
    /// Roles with the number of their tasks that wait; none is 0.
    waiting: Vec<(usize, u64)>,
}

/// The state of a task in the ledger.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    role: usize,
    /// Begin of the state, ns.
    since_ns: u64,
    begun: bool,
    ended: bool,
    exists: bool,
    /// Asleep in state D.
    blocked: bool,
}

struct Collector {
    now_ns: u64,
    queues: Vec<Queue>,
    tasks: Vec<Seen>,
    ledger: Ledger,
}

/// Reads a whole recording. `role_of[task]` is the task's role, below `roles`; that of the idle task is not used.
pub(super) fn collect(trace: &Trace, role_of: &[usize], roles: usize) -> Ledger {
    let (start_ns, end_ns) = extent(trace);
    let new = |role: &usize| Seen { role: *role, since_ns: start_ns, ..Seen::default() };
    let ledger = Ledger {
        window_ns: end_ns - start_ns,
        cpus: trace.cpus,
        switches: 0,
        irregularities: Irregularities::default(),
        roles: vec![Sums::default(); roles],
        waited: Grid::new(roles),
        slept: Grid::new(roles),
        preempted: Grid::new(roles),
        by_wakeup: Grid::new(roles),
    };
    let unseen = ledger.waited.unseen();
    let queue = Queue { since_ns: start_ns, runs: unseen, waiting: Vec::new() };
    let mut collector = Collector {
        now_ns: start_ns,
        queues: vec![queue; trace.cpus as usize],
        tasks: role_of.iter().map(new).collect(),
        ledger,
    };
    let states = States::of(trace, trace.origin.is_simulated()).observe(trace, &mut collector);
    collector.finish(&states, end_ns)
}

impl Collector {
    /// Brings the waits of a CPU up to now.
    fn advance(&mut self, cpu: u32) {
        let queue = &mut self.queues[cpu as usize];
        let elapsed_ns = self.now_ns - queue.since_ns;
        queue.since_ns = self.now_ns;
        if elapsed_ns == 0 {
            return;
        }
        for (role, count) in &queue.waiting {
            self.ledger.waited.add(*role, queue.runs, elapsed_ns * count);
        }
    }

    fn enter(&mut self, cpu: u32, role: usize) {
        self.advance(cpu);
        let waiting = &mut self.queues[cpu as usize].waiting;
        match waiting.iter_mut().find(|(known, _)| *known == role) {
            Some((_, count)) => *count += 1,
            None => waiting.push((role, 1)),
        }
    }

    fn leave(&mut self, cpu: u32, role: usize) {
        self.advance(cpu);
        let waiting = &mut self.queues[cpu as usize].waiting;
        if let Some(at) = waiting.iter().position(|(known, _)| *known == role) {
            waiting[at].1 -= 1;
            if waiting[at].1 == 0 {
                waiting.swap_remove(at);
            }
        }
    }

    /// The column of a task, the idle task, or nothing known.
    fn column(&self, task: Option<TaskId>) -> usize {
        match task {
            Some(task) if task.is_idle() => self.ledger.waited.no_role(),
            Some(task) => self.tasks[task.index()].role,
            None => self.ledger.waited.unseen(),
        }
    }

    /// Accounts for the time of a task in the state that ends now. Waits are accounted for by CPU.
    fn account(&mut self, id: TaskId, from: State, time: TimeKind, waker: usize) {
        let seen = self.tasks[id.index()];
        let elapsed_ns = self.now_ns - seen.since_ns;
        let sums = &mut self.ledger.roles[seen.role];
        match time {
            _ if is_queued(from) => {}
            TimeKind::Run => sums.run_ns += elapsed_ns,
            TimeKind::Sleep => {
                sums.blocked_ns += if seen.blocked { elapsed_ns } else { 0 };
                self.ledger.slept.add(seen.role, waker, elapsed_ns);
            }
            // Woken before it left its CPU: on which it waited is not known.
            TimeKind::Waking => {
                let unseen = self.ledger.waited.unseen();
                self.ledger.waited.add(seen.role, unseen, elapsed_ns);
            }
            TimeKind::Absent => {}
            _ => sums.unknown_ns += elapsed_ns,
        }
        self.tasks[id.index()].since_ns = self.now_ns;
    }

    fn finish(mut self, states: &States, end_ns: u64) -> Ledger {
        self.now_ns = end_ns;
        for cpu in 0..self.queues.len() {
            self.advance(cpu as u32);
        }
        let unseen = self.ledger.slept.unseen();
        for task in states.tasks().iter().skip(1).filter(|task| task.state != State::Initial) {
            self.account(task.id, task.state, task.time_kind(), unseen);
        }
        for seen in self.tasks.iter().skip(1).filter(|seen| seen.exists) {
            let sums = &mut self.ledger.roles[seen.role];
            sums.tasks += 1;
            sums.complete += u64::from(seen.begun && seen.ended);
        }
        self.ledger.irregularities = states.irregularities().clone();
        self.ledger.irregularities.no_switches = self.ledger.switches == 0;
        self.ledger
    }
}

/// Whether a task waits in the queue of a CPU.
fn is_queued(state: State) -> bool {
    state.waits() && state != State::WokenEarly
}

impl Observer for Collector {
    fn on_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn on_event(&mut self, _: &Trace, states: &States, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.ledger.switches += 1;
                if prev.is_idle() || next.is_idle() || !prev_state.is_runnable() {
                    return;
                }
                let (from, to) = (self.tasks[prev.index()].role, self.tasks[next.index()].role);
                let comes = states.task(next);
                let since_ns = states.cpus()[event.cpu as usize].since_ns;
                let woken = comes.state == State::Waiting && comes.woken_ns >= Some(since_ns);
                self.ledger.preempted.add(from, to, 1);
                self.ledger.by_wakeup.add(from, to, u64::from(woken));
            }
            EventKind::Fork { child: task, .. } | EventKind::WakeupNew { task, .. }
                if !self.tasks[task.index()].exists =>
            {
                self.tasks[task.index()].begun = true;
            }
            EventKind::Exit { task } => self.tasks[task.index()].ended = true,
            _ => {}
        }
    }

    fn on_cpu(&mut self, cpu: u32, _: Option<TaskId>, after: Option<TaskId>, _: bool) {
        self.advance(cpu);
        self.queues[cpu as usize].runs = self.column(after);
    }

    fn on_change(&mut self, task: &Task, change: &Change) {
        let (id, from) = (task.id, change.from);
        let role = self.tasks[id.index()].role;
        if is_queued(from) {
            self.leave(change.from_cpu, role);
        }
        let waker = match task.waker {
            Some(waker) => self.column(Some(waker)),
            None => self.ledger.slept.no_role(),
        };
        self.account(id, from, change.time, waker);
        let seen = &mut self.tasks[id.index()];
        seen.exists = true;
        let sums = &mut self.ledger.roles[role];
        match change.cause {
            Cause::SwitchOut { left, .. } => {
                seen.blocked = left == TaskState::Uninterruptible;
                seen.ended |= left.is_dead();
            }
            Cause::SwitchIn { changed_cpu, .. } => sums.migrations += u64::from(changed_cpu),
            Cause::Wakeup if change.time != TimeKind::Waking && !is_queued(from) => {
                sums.wakeups += 1
            }
            _ => {}
        }
        if is_queued(task.state) {
            self.enter(task.cpu, role);
        }
    }
}
