//! What a switch says: who left the CPU and how, who came, and whether that fits what was known.

use super::ledger::Ledger;
use super::{Running, Scan};
use crate::task_scan::{Category, State, TaskScan};
use fairground_trace::{Event, TaskId, TaskState};

impl Scan {
    #[inline(always)]
    pub(super) fn on_switch(
        &mut self,
        event: &Event,
        prev: TaskId,
        prev_state: TaskState,
        next: TaskId,
    ) {
        if self.ledger.counting {
            self.count_switch(event);
        }
        let cpu = event.cpu;
        let scan = &mut self.cpus[cpu as usize];
        if scan.running == Running::Unknown || scan.running == Running::of(prev) {
            self.ledger.close_cpu(scan, false);
        } else {
            self.break_off(cpu);
        }
        if !prev.is_idle() {
            self.switch_out(cpu, prev, prev_state);
        }
        if !next.is_idle() {
            self.switch_in(cpu, next);
        }
        self.cpus[cpu as usize].running = Running::of(next);
        self.ledger.waste.set_idle(cpu, next.is_idle());
    }

    #[inline(always)]
    fn count_switch(&mut self, event: &Event) {
        self.cpus[event.cpu as usize].metrics.switches += 1;
        if self.counts_insns {
            self.cost.switch.add(event.insns);
        }
        if let Some(series) = &mut self.ledger.series {
            let interval = series.at(self.ledger.now_ns);
            interval.switches += 1;
            interval.switch_insns += u64::from(event.insns);
        }
    }

    /// The switch contradicts what the CPU was known to run.
    #[cold]
    fn break_off(&mut self, cpu: u32) {
        self.irregularities.broken_switches += 1;
        self.disown(cpu);
    }

    /// What the CPU did since its last switch turned out to be unknown.
    fn disown(&mut self, cpu: u32) {
        self.ledger.close_cpu(&mut self.cpus[cpu as usize], true);
        if let Running::Task(task) = self.cpus[cpu as usize].running {
            let counted = u64::from(self.ledger.counting);
            self.tasks[task.index()].figures.slices.censored += counted;
            self.enter(task.index(), State::Unknown, cpu, Some(Category::Unknown));
        }
        self.cpus[cpu as usize].running = Running::Unknown;
        self.ledger.waste.set_idle(cpu, false);
    }

    #[inline(always)]
    fn switch_out(&mut self, cpu: u32, id: TaskId, prev_state: TaskState) {
        let task = &self.tasks[id.index()];
        let ran_here = task.state == State::Running && task.cpu == cpu;
        if !ran_here {
            self.find_elsewhere(id);
        }
        let (task, ledger) = (&mut self.tasks[id.index()], &mut self.ledger);
        let early_waking_ns = ledger.come_off(task, cpu, prev_state, ran_here);
        let to = match (prev_state, early_waking_ns) {
            (TaskState::Runnable, _) => State::Waiting,
            (TaskState::Dead, _) => State::Absent,
            (_, Some(_)) if self.queued_at_waking => State::Waiting,
            (_, Some(_)) => State::Waking,
            (_, None) => State::Asleep,
        };
        let closing = if ran_here { Category::Run } else { Category::Unknown };
        ledger.enter(id.index(), task, to, cpu, closing);
        task.preempted = prev_state == TaskState::Runnable;
        if matches!(to, State::Waiting | State::Waking) {
            task.wait_from_ns = Some(ledger.now_ns);
            if !task.preempted {
                task.woken_ns = early_waking_ns;
            }
        }
    }

    /// The task that leaves a CPU was not known to run there.
    #[cold]
    fn find_elsewhere(&mut self, id: TaskId) {
        let task = &self.tasks[id.index()];
        match task.state {
            State::Running => {
                self.irregularities.doubly_running += 1;
                self.disown(task.cpu);
            }
            State::Absent => self.irregularities.after_exit += 1,
            _ => {}
        }
        self.ledger.drop_wait(&mut self.tasks[id.index()]);
    }

    #[inline(always)]
    fn switch_in(&mut self, cpu: u32, id: TaskId) {
        let task = &self.tasks[id.index()];
        let (state, on) = (task.state, task.cpu);
        match state {
            State::Running => {
                self.irregularities.doubly_running += 1;
                self.disown(on);
            }
            State::Asleep => self.irregularities.missed_wakeups += 1,
            State::Absent => self.irregularities.after_exit += 1,
            _ => {}
        }
        let (task, ledger) = (&mut self.tasks[id.index()], &mut self.ledger);
        ledger.come_on(task, cpu, state);
        let missed = state == State::Asleep;
        let closing = if missed { Category::Unknown } else { task.category() };
        ledger.enter(id.index(), task, State::Running, cpu, closing);
    }
}

impl Ledger {
    /// A stretch on the CPU ends; gives when the task was asked to wake meanwhile.
    #[inline(always)]
    fn come_off(
        &mut self,
        task: &mut TaskScan,
        cpu: u32,
        prev_state: TaskState,
        ran_here: bool,
    ) -> Option<u64> {
        let now_ns = self.now_ns;
        task.ran_on = Some(cpu);
        let early_waking_ns = task.early_waking_ns.take();
        let from_ns = task.stretch_from_ns.take().filter(|_| ran_here);
        if !self.counting {
            return early_waking_ns;
        }
        let figures = &mut task.figures;
        let slice_ns = from_ns.map(|from_ns| now_ns - from_ns);
        match slice_ns {
            Some(slice_ns) => figures.slices.push(slice_ns),
            None => figures.slices.censored += 1,
        }
        let involuntary = u64::from(prev_state == TaskState::Runnable);
        figures.involuntary_switches += involuntary;
        figures.voluntary_switches += 1 - involuntary;
        if let Some(series) = &mut self.series {
            let interval = series.at(now_ns);
            slice_ns.into_iter().for_each(|slice_ns| interval.slices.push(slice_ns));
            interval.involuntary_switches += involuntary;
            interval.voluntary_switches += 1 - involuntary;
            interval.groups[task.group].involuntary_switches += involuntary;
        }
        early_waking_ns
    }

    /// A wait ends, and a stretch on the CPU begins.
    #[inline(always)]
    fn come_on(&mut self, task: &mut TaskScan, cpu: u32, state: State) {
        let now_ns = self.now_ns;
        let (from_ns, woken_ns) = (task.wait_from_ns.take(), task.woken_ns.take());
        let before = task.ran_on.replace(cpu);
        task.early_waking_ns = None;
        task.stretch_from_ns = Some(now_ns);
        if !self.counting {
            return;
        }
        let figures = &mut task.figures;
        figures.switch_ins += 1;
        figures.cpu_changes += u64::from(before.is_some_and(|before| before != cpu));
        let waited = matches!(state, State::Waiting | State::Waking);
        match from_ns.filter(|_| waited) {
            Some(from_ns) => figures.waits.push(now_ns - from_ns),
            None => figures.waits.censored += 1,
        }
        if let Some(woken_ns) = woken_ns.filter(|_| waited) {
            let latency_ns = now_ns - woken_ns;
            figures.wakeup_latency.push(latency_ns);
            if let Some(series) = &mut self.series {
                series.at(now_ns).wakeup_latency.push(latency_ns);
            }
        } else if state == State::Asleep {
            figures.wakeup_latency.censored += 1;
        }
    }
}
