//! The invariants of a run, and the records that checking them needs.
//!
//! With [`crate::MachineConfig::check`], each step of the machine is followed by a check of the tasks and CPUs that it
//! touched (`kernel/checks.rs`), and periodically of all of them. The records here are independent of the machine's
//! own: the [`Audit`] uses only the trace, and runnable tasks are counted again.

mod audit;

use std::collections::VecDeque;
use std::fmt;

use fairground_trace::Event;

#[cfg(test)]
pub(crate) use audit::OnCpu;
pub(crate) use audit::{Audit, Whereabouts};

/// An invariant of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// A runnable task runs, is in a dispatch queue, is owned by the scheduler, or is moving to one of these.
    TaskLost,
    /// No task is in two of these places, or runs twice; one that sleeps is in none.
    TwoPlaces,
    /// A task that sleeps waits for a timer that is armed or for another task that will wake it; a CPU is not idle
    /// while its local queue holds a task.
    LostWakeup,
    /// A task runs only on CPUs that it may run on.
    Affinity,
    /// A CPU that is offline runs nothing and has no runnable task.
    Offline,
    /// The counts of runnable tasks and the set of busy CPUs are correct.
    Count,
    /// Callbacks come in the documented order.
    CallbackOrder,
    /// The trace is consistent: a task that leaves a CPU ran there, one that starts to run waited, one that is woken
    /// slept.
    Story,
    /// All time of a CPU belongs to a task or the idle task.
    CpuTime,
    /// All time of a task is run, wait or sleep time, and its run time is what the kernel accounted.
    TaskTime,
    /// The task that is taken out of a queue ordered by vtime, to run, is the first one that may run on the CPU.
    PickOrder,
    /// No CPU is idle for longer than the promised bound while a task that may run there waits.
    WorkConservation,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invariant::TaskLost => "no task is lost",
            Invariant::TwoPlaces => "no task is in two places",
            Invariant::LostWakeup => "no wake-up is lost",
            Invariant::Affinity => "affinity is respected",
            Invariant::Offline => "nothing is on an offline CPU",
            Invariant::Count => "run queue counts are correct",
            Invariant::CallbackOrder => "callbacks come in order",
            Invariant::Story => "the trace is consistent",
            Invariant::CpuTime => "the time of a CPU is conserved",
            Invariant::TaskTime => "the time of a task is conserved",
            Invariant::PickOrder => "queues are served in order",
            Invariant::WorkConservation => "work is conserved",
        })
    }
}

/// An [`Invariant`] that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was detected, ns.
    pub time_ns: u64,
    /// Which.
    pub invariant: Invariant,
    /// The CPU that it is about, if it is about one.
    pub cpu: Option<u32>,
    /// The task that it is about, if it is about one, as `name[pid]`.
    pub task: Option<String>,
    /// The finding.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns", self.time_ns)?;
        if let Some(cpu) = self.cpu {
            write!(f, ", CPU {cpu}")?;
        }
        if let Some(task) = &self.task {
            write!(f, ", task {task}")?;
        }
        write!(f, ": {} (invariant: {})", self.what, self.invariant)
    }
}

/// A finding of the audit, without names and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) invariant: Invariant,
    pub(crate) cpu: Option<u32>,
    /// Number of the task in the trace.
    pub(crate) task: Option<fairground_trace::TaskId>,
    pub(crate) what: String,
}

/// Not runnable on any run queue.
const NOWHERE: u32 = u32::MAX;

/// The checker's records.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    /// Tasks, by slot, that the step touched.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// By slot: the run queue that the task was last seen runnable on.
    runnable_on: Vec<u32>,
    /// By CPU: how many tasks were.
    runnable: Vec<u32>,
    /// Room for the CPUs of a step.
    pub(crate) cpus: Vec<u32>,
    pub(crate) audit: Audit,
    /// Events of the trace that the audit has seen.
    pub(crate) audited: usize,
    /// Switches that the trace has later than they were decided, and that the audit has not seen: number of the event,
    /// and time of the decision, ns.
    pub(crate) decided: VecDeque<(usize, u64)>,
    /// Steps until the next check of everything.
    pub(crate) until_full: u32,
    /// When idle CPUs and waiting tasks are compared next, ns.
    pub(crate) next_idle_look_ns: u64,
}

impl Checker {
    /// For a machine of so many CPUs.
    pub(crate) fn new(cpus: u32) -> Checker {
        Checker { runnable: vec![0; cpus as usize], audit: Audit::new(cpus), ..Checker::default() }
    }

    /// A step touched a task.
    #[cold]
    #[inline(never)]
    pub(crate) fn touch(&mut self, slot: u32) {
        let index = slot as usize;
        if index >= self.is_touched.len() {
            self.is_touched.resize((index + 1).next_power_of_two(), false);
            self.runnable_on.resize(self.is_touched.len(), NOWHERE);
        }
        if !self.is_touched[index] {
            self.is_touched[index] = true;
            self.touched.push(slot);
        }
    }

    /// Processes the next event of the trace; an error if it contradicts earlier ones.
    pub(crate) fn audit_event(&mut self, event: &Event) -> Result<(), Finding> {
        let decided = self.decided.pop_front_if(|(index, _)| *index == self.audited);
        self.audited += 1;
        self.audit.event(event, decided.map_or(event.time_ns, |(_, decided_ns)| decided_ns))
    }

    /// The first `events` of the trace, which the audit has seen, were removed: the others have lower numbers now.
    pub(crate) fn forget(&mut self, events: usize) {
        self.audited = self.audited.saturating_sub(events);
        for (number, _) in &mut self.decided {
            *number = number.saturating_sub(events);
        }
    }

    /// Removes one of the touched tasks.
    pub(crate) fn take_touched(&mut self) -> Option<u32> {
        let slot = self.touched.pop()?;
        self.is_touched[slot as usize] = false;
        Some(slot)
    }

    /// A task is runnable on a run queue now, or on none; returns the one that it was on before.
    pub(crate) fn count(&mut self, slot: u32, cpu: Option<u32>) -> Option<u32> {
        let now = cpu.unwrap_or(NOWHERE);
        let before = std::mem::replace(&mut self.runnable_on[slot as usize], now);
        if before != NOWHERE {
            self.runnable[before as usize] -= 1;
        }
        if now != NOWHERE {
            self.runnable[now as usize] += 1;
        }
        (before != NOWHERE).then_some(before)
    }

    /// Runnable tasks of a run queue.
    pub(crate) fn runnable(&self, cpu: u32) -> u32 {
        self.runnable[cpu as usize]
    }
}
