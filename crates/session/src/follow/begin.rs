//! The tasks that exist when a recording begins.
//!
//! They have lived before: what a scheduler keeps for them is not that of new tasks. The recording does not say what it
//! is, so the machine begins a while earlier, in which each of them wakes up once and sleeps.

use fairground_machine::{NewTask, Wake};
use fairground_trace::{CgroupId, Event, EventKind, TaskId, TaskState, Trace};

use super::follower::{Follower, MachineResult};

/// The time that the machine lives through before the recording begins, ns: whole ticks at every HZ, and longer than what any
/// scheduler remembers of a sleep in its placement of a task.
const LEAD_NS: u64 = 3_000_000_000;

/// The state of a task when the recording begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitialState {
    Runs,
    Waits,
    Sleeps,
}

/// A task that exists when the recording begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Present {
    pub(super) task: TaskId,
    pub(super) cpu: u32,
    state: InitialState,
}

impl Present {
    /// The CPU on which it slept before the recording began.
    pub(super) fn slept_on(&self, trace: &Trace) -> u32 {
        let last_cpu = trace.tasks()[self.task.index()].last_cpu;
        last_cpu.filter(|&cpu| cpu < trace.cpus).unwrap_or(self.cpu)
    }
}

/// The tasks that a recording's events name before any event that makes them, in the order of these events.
fn present(trace: &Trace) -> Vec<Present> {
    let mut found = Vec::new();
    let mut seen = vec![false; trace.tasks().len()];
    let mut seen_cpu = vec![false; trace.cpus as usize];
    seen[TaskId::IDLE.index()] = true;
    let is_wake =
        |event: Event| matches!(event.kind, EventKind::Waking { .. } | EventKind::Wakeup { .. });
    let shows_wakes = trace.events().any(is_wake);
    let mut note = |task: TaskId, cpu: u32, state: Option<InitialState>| {
        let is_first =
            seen.get_mut(task.index()).is_some_and(|seen| !std::mem::replace(seen, true));
        if let Some(state) = state.filter(|_| is_first) {
            found.push(Present { task, cpu, state });
        }
    };
    for Event { cpu, kind, .. } in trace.events().filter(|event| event.cpu < trace.cpus) {
        match kind {
            EventKind::Switch { prev, next, .. } => {
                let is_first = !std::mem::replace(&mut seen_cpu[cpu as usize], true);
                note(
                    prev,
                    cpu,
                    Some(if is_first { InitialState::Runs } else { InitialState::Sleeps }),
                );
                // A task that was runnable would have ended the idling earlier.
                let slept = prev.is_idle() && !is_first && !shows_wakes;
                note(
                    next,
                    cpu,
                    Some(if slept { InitialState::Sleeps } else { InitialState::Waits }),
                );
            }
            EventKind::Waking { task, target_cpu, .. } | EventKind::Wakeup { task, target_cpu } => {
                note(task, target_cpu.min(trace.cpus - 1), Some(InitialState::Sleeps));
            }
            EventKind::WakeupNew { task, .. } | EventKind::Fork { child: task, .. } => {
                note(task, cpu, None);
            }
            _ => {}
        }
    }
    found
}

impl Follower<'_> {
    /// Makes the tasks that exist when the recording begins, and lets time pass up to there.
    pub(super) fn begin(&mut self, trace: &Trace) -> MachineResult {
        let present = present(trace);
        for &Present { task, cpu, .. } in &present {
            self.create(trace, task, None, cpu)?;
        }
        let present: Vec<Present> =
            present.into_iter().filter(|one| self.driven.exists(one.task)).collect();
        if present.is_empty() {
            return Ok(());
        }
        self.live_before(trace, &present)?;
        for &Present { task, cpu, state } in &present {
            match state {
                InitialState::Runs => self.put_on(cpu, task)?,
                InitialState::Waits => self.driven.wake(cpu, task, cpu, None, Wake::default())?,
                InitialState::Sleeps => {}
            }
        }
        self.driven.take_moves(&mut Vec::new());
        Ok(())
    }

    /// Each task wakes for the first time and sleeps, where it ran last; then another one runs on each CPU for a while,
    /// so that the clocks of the queues leave all of them behind.
    fn live_before(&mut self, trace: &Trace, present: &[Present]) -> MachineResult {
        for one in present {
            let (task, cpu) = (one.task, one.slept_on(trace));
            let how = Wake { is_new: true, ..Wake::default() };
            self.driven.wake(cpu, task, cpu, None, how)?;
            self.switch_to(cpu, None, task)?;
            self.switch_to(cpu, Some(TaskState::Sleeping), TaskId::IDLE)?;
        }
        for cpu in 0..trace.cpus {
            let earlier = self.make_earlier(cpu, CgroupId::ROOT)?;
            self.switch_to(cpu, None, earlier)?;
        }
        let mut now_ns = trace.start_ns + LEAD_NS / 2;
        self.driven.advance(now_ns)?;
        for cpu in 0..trace.cpus {
            let earlier = self.driven.earlier(cpu);
            self.driven.charge(cpu, earlier, LEAD_NS / 2)?;
            self.switch_to(cpu, Some(TaskState::Sleeping), TaskId::IDLE)?;
            self.driven.remove(earlier)?;
        }
        self.order_sleepers(trace, present, &mut now_ns)?;
        // Whole ticks at every HZ.
        self.lead_ns = LEAD_NS.max((now_ns - trace.start_ns).next_multiple_of(1_000_000_000));
        self.driven.advance(trace.start_ns + self.lead_ns)
    }

    /// Makes and wakes the task of a CPU that lived before the recording.
    pub(super) fn make_earlier(&mut self, cpu: u32, cgroup: CgroupId) -> MachineResult<TaskId> {
        let task = self.driven.earlier(cpu);
        self.driven.create(
            cpu,
            &NewTask {
                task,
                parent: None,
                comm: "earlier",
                nice: 0,
                allowed_cpus: Some(&[(cpu, cpu)]),
                cgroup: cgroup.0,
            },
        )?;
        let how = Wake { is_new: true, ..Wake::default() };
        self.driven.wake(cpu, task, cpu, None, how)?;
        Ok(task)
    }

    /// Lets a CPU run a task that sleeps.
    fn put_on(&mut self, cpu: u32, task: TaskId) -> MachineResult {
        self.driven.wake(cpu, task, cpu, None, Wake::default())?;
        self.switch_to(cpu, None, task)
    }

    pub(super) fn switch_to(
        &mut self,
        cpu: u32,
        leaves: Option<TaskState>,
        next: TaskId,
    ) -> MachineResult {
        self.driven.pick(cpu, leaves)?;
        self.driven.run(next)
    }

    pub(super) fn create(
        &mut self,
        trace: &Trace,
        task: TaskId,
        parent: Option<TaskId>,
        cpu: u32,
    ) -> MachineResult {
        if !self.of_class[task.index()] || task.is_idle() {
            return Ok(());
        }
        let info = &trace.tasks()[task.index()];
        self.put(task, cpu);
        self.driven.create(
            cpu,
            &NewTask {
                task,
                parent: parent.filter(|parent| !parent.is_idle()),
                comm: &info.comm,
                nice: info.nice.unwrap_or(0),
                allowed_cpus: info.allowed_cpus.as_deref(),
                cgroup: info.cgroup.map_or(0, |cgroup| cgroup.0),
            },
        )?;
        match info.slice_ns {
            Some(slice_ns) => self.driven.set_slice_length(cpu, task, slice_ns),
            None => Ok(()),
        }
    }
}
