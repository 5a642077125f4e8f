//! A workload from a recording: what each task did, and who woke whom.
//!
//! The replay is closed: it keeps causes, not times. A task's program is its CPU bursts. Where it blocked and another
//! recorded task woke it, it receives a message that the other sends at the same point of its own burst; the queue counts,
//! so that a wake-up that comes before the wait is not lost. Where it was woken by an interrupt, by the idle task or by
//! something that the recording does not hold, it sleeps as long as it was seen blocked, from the block to the wake-up;
//! the time from the wake-up to the run is the scheduler's and is left out.
//!
//! Every message is sent at a recorded time before the one at which it was received, so that the order of the recording is
//! one in which nobody waits in vain: no replay can lock up. [`ReplayBuilder::finish`] checks that.
//!
//! What a recording cannot tell is counted in [`ReplayNotes`], never invented: run time of a task before the first event
//! that names it, except for the first task seen on a CPU, which ran there from the start; affinity; what lost events held.

mod notes;
mod program;

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, WorkloadError};
use crate::limits::CPU_MAX;
use crate::model::Workload;
pub use notes::ReplayNotes;
use program::{Item, Recorded, Start};

/// What a task does at the present moment of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No event has named it.
    Unseen,
    Running {
        cpu: u32,
        since_ns: u64,
    },
    Runnable,
    Blocked {
        since_ns: u64,
    },
    Dead,
}

/// A wake-up of a task that had not blocked yet: it set out to sleep, and was woken while it still ran.
#[derive(Clone, Copy, Debug)]
enum EarlyWake {
    Message(usize),
    Outside,
}

#[derive(Debug)]
struct Task {
    recorded: Recorded,
    phase: Phase,
    early: Option<EarlyWake>,
}

/// Builds a workload from the events of a recording, given in the order of time.
///
/// Tasks are named by numbers of the caller's (0: idle). An event that does not fit what is known is counted, and as much
/// of it is used as makes sense.
///
/// ```
/// use fairground_workload::ReplayBuilder;
///
/// let mut replay = ReplayBuilder::new(1);
/// replay.task(1, 100, "make", 0).task(2, 101, "cc", 0);
/// replay.switch(0, 0, 0, false, false, 1);
/// replay.waking(2_000, 0, Some(1), 2);
/// replay.switch(3_000, 0, 1, true, false, 2);
/// replay.switch(9_000, 0, 2, true, false, 0);
/// let (workload, notes) = replay.finish()?;
/// assert_eq!(notes.run_ns, 9_000);
/// assert_eq!(workload.tasks.len(), 2);
/// # Ok::<(), fairground_workload::WorkloadError>(())
/// ```
#[derive(Debug)]
pub struct ReplayBuilder {
    name: String,
    start_ns: Option<u64>,
    end_ns: Option<u64>,
    now_ns: u64,
    /// What runs on each CPU; `None` before its first event.
    current: Vec<Option<u32>>,
    at_start: Vec<(u32, u32)>,
    by_id: BTreeMap<u32, usize>,
    tasks: Vec<Task>,
    /// For each message that may have been sent, whether it was received.
    messages: Vec<bool>,
    notes: ReplayNotes,
}

impl ReplayBuilder {
    /// For a recording of a machine with that many CPUs.
    pub fn new(cpus: u32) -> Self {
        Self {
            name: "replay".to_owned(),
            start_ns: None,
            end_ns: None,
            now_ns: 0,
            current: vec![None; cpus.min(CPU_MAX + 1) as usize],
            at_start: Vec::new(),
            by_id: BTreeMap::new(),
            tasks: Vec::new(),
            messages: Vec::new(),
            notes: ReplayNotes::default(),
        }
    }

    /// The workload's name; `replay` when it is not set.
    pub fn name(&mut self, name: &str) -> &mut Self {
        name.clone_into(&mut self.name);
        self
    }

    /// When the recording began and ended, ns. Without it: its first and its last event.
    pub fn window(&mut self, start_ns: u64, end_ns: u64) -> &mut Self {
        self.start_ns = Some(start_ns);
        self.end_ns = Some(end_ns.max(start_ns));
        self.now_ns = start_ns;
        self.place_those_running();
        self
    }

    /// What is known of a task. One that is only named by events gets its number as its pid, an empty name and nice 0.
    pub fn task(&mut self, id: u32, pid: u32, comm: &str, nice: i8) -> &mut Self {
        if id != 0 {
            let index = self.index(id);
            let recorded = &mut self.tasks[index].recorded;
            (recorded.pid, recorded.nice) = (pid, nice.clamp(-20, 19));
            comm.clone_into(&mut recorded.comm);
        }
        self
    }

    /// The task that ran on a CPU when the recording began, where the caller knows it.
    pub fn running_at_start(&mut self, cpu: u32, id: u32) -> &mut Self {
        self.at_start.push((cpu, id));
        if self.start_ns.is_some() {
            self.place_those_running();
        }
        self
    }

    /// `count` events were lost at about this place.
    pub fn lost(&mut self, count: u64) -> &mut Self {
        self.notes.lost_events = self.notes.lost_events.saturating_add(count);
        self
    }

    /// `prev` left the CPU, and `next` came: `sched_switch`. `prev_blocked`: it does not want to run until it is woken;
    /// `prev_dead`: it never runs again.
    pub fn switch(
        &mut self,
        time_ns: u64,
        cpu: u32,
        prev: u32,
        prev_blocked: bool,
        prev_dead: bool,
        next: u32,
    ) -> &mut Self {
        let now_ns = self.at(time_ns);
        self.notes.switches += 1;
        let Some(current) = self.current_on(cpu) else { return self };
        if let Some(other) = current
            && other != prev
            && other != 0
        {
            // It left the CPU in an event that is missing. How long it ran since is not known.
            self.notes.unmatched_switches += 1;
            let index = self.index(other);
            if matches!(self.tasks[index].phase, Phase::Running { cpu: on, .. } if on == cpu) {
                self.tasks[index].phase = Phase::Runnable;
            }
        }
        if prev != 0 {
            self.leave(now_ns, cpu, prev, current.is_none(), prev_blocked, prev_dead);
        }
        if next != 0 {
            self.enter(now_ns, cpu, next);
        }
        self.current[cpu as usize] = Some(next);
        self
    }

    /// `wakee` was woken: `sched_waking`. `waker` is the task in whose context it happened; `None` (or 0) for an interrupt,
    /// the idle task, or when it is not known.
    pub fn waking(&mut self, time_ns: u64, cpu: u32, waker: Option<u32>, wakee: u32) -> &mut Self {
        let now_ns = self.at(time_ns);
        if wakee == 0 {
            return self;
        }
        let target = self.index(wakee);
        let blocked_since_ns = match self.tasks[target].phase {
            Phase::Blocked { since_ns } => since_ns,
            Phase::Unseen => self.start_ns.unwrap_or(now_ns),
            Phase::Running { .. } => {
                let message = self.send(now_ns, cpu, waker, wakee);
                self.tasks[target].early =
                    Some(message.map_or(EarlyWake::Outside, EarlyWake::Message));
                return self;
            }
            Phase::Runnable | Phase::Dead => {
                self.notes.needless_wakes += 1;
                return self;
            }
        };
        match self.send(now_ns, cpu, waker, wakee) {
            Some(message) => self.receive(target, message),
            None => {
                self.notes.sleeps += 1;
                self.tasks[target].recorded.sleep(now_ns - blocked_since_ns);
            }
        }
        self.tasks[target].early = None;
        self.tasks[target].phase = Phase::Runnable;
        self
    }

    /// `parent` started `child`: `sched_process_fork`.
    pub fn fork(&mut self, time_ns: u64, parent: u32, child: u32) -> &mut Self {
        let now_ns = self.at(time_ns);
        if child == 0 {
            return self;
        }
        let target = self.index(child);
        if self.tasks[target].phase != Phase::Unseen {
            self.notes.unplaced_forks += 1;
            return self;
        }
        self.tasks[target].phase = Phase::Runnable;
        let from = if parent == 0 { None } else { Some(self.index(parent)) };
        match from {
            Some(from) if self.split_burst(from, now_ns) => {
                self.notes.forks += 1;
                self.tasks[from].recorded.items.push(Item::Fork(target));
                self.tasks[target].recorded.start = Start::Forked;
            }
            _ => {
                self.notes.unplaced_forks += 1;
                let start_ns = now_ns - self.start_ns.unwrap_or(now_ns);
                self.tasks[target].recorded.start = Start::At(start_ns);
            }
        }
        self
    }

    /// A task began to exit: `sched_process_exit`. It runs on until its last switch.
    pub fn exit(&mut self, time_ns: u64, id: u32) -> &mut Self {
        self.at(time_ns);
        if id != 0 {
            self.index(id);
            self.notes.exits += 1;
        }
        self
    }

    /// The workload, and what the recording could not tell.
    ///
    /// # Errors
    /// When no task of the recording ever ran, or when the workload passes a limit (groups, operations).
    pub fn finish(mut self) -> Result<(Workload, ReplayNotes), WorkloadError> {
        self.place_those_running();
        let start_ns = self.start_ns.unwrap_or(0);
        let end_ns = self.end_ns.unwrap_or(self.now_ns).max(self.now_ns);
        for task in &mut self.tasks {
            match task.phase {
                Phase::Running { since_ns, .. } => {
                    task.recorded.run(end_ns.saturating_sub(since_ns));
                }
                Phase::Blocked { since_ns } => {
                    self.notes.blocked_at_end += 1;
                    task.recorded.sleep(end_ns.saturating_sub(since_ns));
                }
                Phase::Unseen => self.notes.unseen_tasks += 1,
                Phase::Runnable | Phase::Dead => {}
            }
        }
        if !self.tasks.iter().any(|task| task.recorded.does_something()) {
            return Err(WorkloadError::new(vec![Diagnostic::unplaced(
                &self.name,
                "the recording holds no task that ran".to_owned(),
                "record sched_switch and sched_waking events while the load runs".to_owned(),
            )]));
        }
        let recorded: Vec<Recorded> = self.tasks.into_iter().map(|task| task.recorded).collect();
        let duration_ns = (end_ns - start_ns).max(1);
        program::workload(&self.name, duration_ns, recorded, &self.messages, self.notes)
    }

    /// Moves on to an event's time; one that lies before the last event counts as simultaneous with it.
    fn at(&mut self, time_ns: u64) -> u64 {
        if self.start_ns.is_none() {
            self.start_ns = Some(time_ns);
            self.now_ns = time_ns;
            self.place_those_running();
        }
        if time_ns < self.now_ns {
            self.notes.clock_jumps += 1;
        }
        self.now_ns = self.now_ns.max(time_ns);
        self.now_ns
    }

    fn place_those_running(&mut self) {
        let Some(since_ns) = self.start_ns else { return };
        for (cpu, id) in std::mem::take(&mut self.at_start) {
            let Some(None) = self.current_on(cpu) else { continue };
            self.current[cpu as usize] = Some(id);
            if id != 0 {
                let index = self.index(id);
                self.tasks[index].phase = Phase::Running { cpu, since_ns };
            }
        }
    }

    fn index(&mut self, id: u32) -> usize {
        let tasks = &mut self.tasks;
        *self.by_id.entry(id).or_insert_with(|| {
            tasks.push(Task { recorded: Recorded::new(id), phase: Phase::Unseen, early: None });
            tasks.len() - 1
        })
    }

    /// What runs on a CPU; `None` for a CPU that cannot be.
    fn current_on(&mut self, cpu: u32) -> Option<Option<u32>> {
        if cpu > CPU_MAX {
            self.notes.unmatched_switches += 1;
            return None;
        }
        if self.current.len() <= cpu as usize {
            self.current.resize(cpu as usize + 1, None);
        }
        Some(self.current[cpu as usize])
    }

    /// `prev` of a switch.
    fn leave(&mut self, now_ns: u64, cpu: u32, id: u32, first: bool, blocked: bool, dead: bool) {
        let index = self.index(id);
        let start_ns = self.start_ns.unwrap_or(now_ns);
        let task = &mut self.tasks[index];
        match task.phase {
            Phase::Running { cpu: on, since_ns } if on == cpu => {
                task.recorded.run(now_ns - since_ns)
            }
            // The first event of this CPU, and of this task: it was there from the start.
            Phase::Unseen if first => task.recorded.run(now_ns - start_ns),
            Phase::Unseen => self.notes.unmatched_switches += 1,
            Phase::Blocked { since_ns } => {
                self.notes.unmatched_switches += 1;
                self.notes.missing_wakes += 1;
                task.recorded.sleep(now_ns - since_ns);
            }
            Phase::Running { .. } | Phase::Runnable | Phase::Dead => {
                self.notes.unmatched_switches += 1;
            }
        }
        task.phase = match (dead, blocked) {
            (true, _) => Phase::Dead,
            (false, true) => Phase::Blocked { since_ns: now_ns },
            (false, false) => Phase::Runnable,
        };
        if !blocked {
            task.early = None;
        }
    }

    /// `next` of a switch.
    fn enter(&mut self, now_ns: u64, cpu: u32, id: u32) {
        let index = self.index(id);
        match self.tasks[index].phase {
            Phase::Blocked { since_ns } => match self.tasks[index].early.take() {
                Some(EarlyWake::Message(message)) => self.receive(index, message),
                // An interrupt woke it before it could block: it did not wait.
                Some(EarlyWake::Outside) => {}
                None => {
                    self.notes.missing_wakes += 1;
                    self.tasks[index].recorded.sleep(now_ns - since_ns);
                }
            },
            Phase::Running { .. } | Phase::Dead => self.notes.unmatched_switches += 1,
            Phase::Unseen | Phase::Runnable => {}
        }
        self.tasks[index].phase = Phase::Running { cpu, since_ns: now_ns };
    }

    /// Lets the waker send, at this point of its burst; `None` when no recorded task did it.
    fn send(&mut self, now_ns: u64, cpu: u32, waker: Option<u32>, wakee: u32) -> Option<usize> {
        let waker = waker.filter(|&waker| waker != 0 && waker != wakee)?;
        let from = self.index(waker);
        let start_ns = self.start_ns.unwrap_or(now_ns);
        if self.tasks[from].phase == Phase::Unseen && self.current_on(cpu)?.is_none() {
            // The first event of this CPU: the waker ran there from the start.
            self.tasks[from].phase = Phase::Running { cpu, since_ns: start_ns };
            self.current[cpu as usize] = Some(waker);
        }
        if !self.split_burst(from, now_ns) {
            self.notes.wakers_not_running += 1;
            return None;
        }
        let to = self.index(wakee);
        let message = self.messages.len();
        self.messages.push(false);
        self.tasks[from].recorded.items.push(Item::Send { to, message });
        Some(message)
    }

    fn receive(&mut self, index: usize, message: usize) {
        self.messages[message] = true;
        self.notes.messages += 1;
        self.tasks[index].recorded.items.push(Item::Receive);
    }

    /// Closes the burst of a running task at this time and begins the next; `false` when it does not run.
    fn split_burst(&mut self, index: usize, now_ns: u64) -> bool {
        let task = &mut self.tasks[index];
        let Phase::Running { cpu, since_ns } = task.phase else { return false };
        task.recorded.run(now_ns - since_ns);
        task.phase = Phase::Running { cpu, since_ns: now_ns };
        true
    }
}
