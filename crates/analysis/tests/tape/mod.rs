//! Writes small traces by hand.
#![allow(dead_code)] // Each test file uses a part of it.

use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const IDLE: TaskId = TaskId::IDLE;

pub(crate) struct Tape {
    pub(crate) trace: Trace,
}

impl Tape {
    pub(crate) fn new(cpus: u32) -> Self {
        Self { trace: Trace::new(cpus) }
    }

    pub(crate) fn task(&mut self, comm: &str) -> TaskId {
        self.nice_task(comm, 0)
    }

    pub(crate) fn nice_task(&mut self, comm: &str, nice: i8) -> TaskId {
        let pid = self.trace.tasks().len() as u32 + 100;
        self.trace.add_task(TaskInfo { nice: Some(nice), ..TaskInfo::new(pid, comm) })
    }

    pub(crate) fn event(&mut self, time_ns: u64, cpu: u32, kind: EventKind) -> &mut Self {
        self.trace.push(Event { time_ns, cpu, insns: 0, kind });
        self
    }

    pub(crate) fn switch(
        &mut self,
        time_ns: u64,
        cpu: u32,
        prev: TaskId,
        state: TaskState,
        next: TaskId,
    ) -> &mut Self {
        self.event(time_ns, cpu, EventKind::Switch { prev, prev_state: state, next })
    }

    /// `prev` was preempted.
    pub(crate) fn preempt(
        &mut self,
        time_ns: u64,
        cpu: u32,
        prev: TaskId,
        next: TaskId,
    ) -> &mut Self {
        self.switch(time_ns, cpu, prev, TaskState::Runnable, next)
    }

    /// `prev` went to sleep.
    pub(crate) fn block(
        &mut self,
        time_ns: u64,
        cpu: u32,
        prev: TaskId,
        next: TaskId,
    ) -> &mut Self {
        self.switch(time_ns, cpu, prev, TaskState::Sleeping, next)
    }

    pub(crate) fn waking(&mut self, time_ns: u64, task: TaskId, target_cpu: u32) -> &mut Self {
        self.event(time_ns, 0, EventKind::Waking { task, waker: IDLE, target_cpu })
    }

    pub(crate) fn wakeup(&mut self, time_ns: u64, task: TaskId, target_cpu: u32) -> &mut Self {
        self.event(time_ns, target_cpu, EventKind::Wakeup { task, target_cpu })
    }

    pub(crate) fn start(&mut self, time_ns: u64, task: TaskId, target_cpu: u32) -> &mut Self {
        self.event(time_ns, target_cpu, EventKind::WakeupNew { task, target_cpu })
    }

    pub(crate) fn mark(&mut self, time_ns: u64, cpu: u32, task: TaskId, label: &str) -> &mut Self {
        let label = self.trace.intern(label);
        self.event(time_ns, cpu, EventKind::Mark { task, label, value: 0 })
    }

    pub(crate) fn param(&mut self, time_ns: u64, text: &str) -> &mut Self {
        let label = self.trace.intern(text);
        self.event(time_ns, 0, EventKind::Param { label })
    }

    pub(crate) fn end(mut self, end_ns: u64) -> Trace {
        self.trace.end_ns = end_ns;
        self.trace
    }
}

/// `tasks` alternate in slices of `slice_ns` on CPU 0, in this order, from 0 to `end_ns`; all are new at 0.
pub(crate) fn round_robin(tape: &mut Tape, tasks: &[TaskId], slice_ns: u64, end_ns: u64) {
    for task in tasks {
        tape.start(0, *task, 0);
    }
    let mut running = IDLE;
    for nth in 0..end_ns.div_ceil(slice_ns) {
        let next = tasks[nth as usize % tasks.len()];
        tape.preempt(nth * slice_ns, 0, running, next);
        running = next;
    }
}
