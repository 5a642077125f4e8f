//! `vmstat 1`: the columns that the scheduler decides.

use std::fmt::Write as _;

use fairground_trace::{EventKind, TaskId, TaskState};

use super::Run;

/// The interval, ns.
const INTERVAL_NS: u64 = 1_000_000_000;
const HEAD: &str = "\nprocs -----------memory---------- ---swap-- -----io---- -system-- ----cpu----\n \
                    r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n";

/// A line for each whole second of a run; nothing where its switches were not recorded, or where it is shorter.
pub(super) fn lines(run: &Run<'_>) -> String {
    let trace = &run.outcome.trace;
    let mut pass = Pass::new(run);
    for event in trace.events() {
        pass.until(event.time_ns);
        pass.step(event.cpu as usize, event.kind);
    }
    pass.until(run.outcome.analysis.end_ns + 1);
    match pass.lines.is_empty() || !pass.has_switches {
        true => String::new(),
        false => HEAD.to_owned() + &pass.lines,
    }
}

/// What a second has shown so far.
struct Pass {
    next_ns: u64,
    end_ns: u64,
    now_ns: u64,
    /// The task on each CPU.
    current: Vec<TaskId>,
    states: Vec<TaskState>,
    has_switches: bool,
    switches: u64,
    /// CPU time without a task, ns.
    idle_ns: u64,
    lines: String,
}

impl Pass {
    fn new(run: &Run<'_>) -> Self {
        let (trace, analysis) = (&run.outcome.trace, &run.outcome.analysis);
        Self {
            next_ns: analysis.start_ns + INTERVAL_NS,
            end_ns: analysis.end_ns,
            now_ns: analysis.start_ns,
            current: vec![TaskId::IDLE; trace.cpus as usize],
            states: vec![TaskState::Sleeping; trace.tasks().len()],
            has_switches: false,
            switches: 0,
            idle_ns: 0,
            lines: String::new(),
        }
    }

    /// Advances to a time; seconds that end before it give their lines.
    fn until(&mut self, time_ns: u64) {
        while self.next_ns < time_ns && self.next_ns <= self.end_ns {
            self.idle(self.next_ns);
            self.line();
            self.next_ns += INTERVAL_NS;
        }
        self.idle(time_ns.min(self.end_ns));
    }

    fn idle(&mut self, time_ns: u64) {
        let idle = self.current.iter().filter(|task| task.is_idle()).count() as u64;
        self.idle_ns += time_ns.saturating_sub(self.now_ns) * idle;
        self.now_ns = self.now_ns.max(time_ns);
    }

    fn line(&mut self) {
        let count = |is_meant: fn(TaskState) -> bool| {
            self.states.iter().skip(1).filter(|state| is_meant(**state)).count()
        };
        let runnable = count(TaskState::is_runnable);
        let blocked = count(|state| state == TaskState::Uninterruptible);
        let idle = self.idle_ns * 100 / (INTERVAL_NS * self.current.len().max(1) as u64);
        let no = "-";
        let _ = writeln!(
            self.lines,
            "{runnable:>2} {blocked:>2} {no:>6} {no:>6} {no:>6} {no:>6} {no:>4} {no:>4} {no:>5} {no:>5} {no:>4} {:>4} \
             {no:>2} {no:>2} {idle:>2} {no:>2}",
            self.switches
        );
        (self.switches, self.idle_ns) = (0, 0);
    }

    fn step(&mut self, cpu: usize, kind: EventKind) {
        let runnable = match kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.has_switches = true;
                self.switches += 1;
                if let Some(current) = self.current.get_mut(cpu) {
                    *current = next;
                }
                self.set(prev, prev_state);
                next
            }
            EventKind::Waking { task, .. }
            | EventKind::Wakeup { task, .. }
            | EventKind::WakeupNew { task, .. } => task,
            _ => return,
        };
        self.set(runnable, TaskState::Runnable);
    }

    fn set(&mut self, task: TaskId, state: TaskState) {
        if let Some(known) = self.states.get_mut(task.index()) {
            *known = state;
        }
    }
}
