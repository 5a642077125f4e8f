//! What a switch says: who left the CPU and how, who came, and whether that fits what was known.

use super::Scan;
use super::ledger::Ledger;
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
        let (cpu, ledger) = (event.cpu, &mut self.ledger);
        let scan = &mut self.cpus[cpu as usize];
        if ledger.counting {
            scan.metrics.switches += 1;
            if self.counts_insns {
                self.cost.switch.add(event.insns);
            }
            if let Some(series) = &mut ledger.series {
                let interval = series.at(ledger.now_ns);
                interval.switches += 1;
                interval.switch_insns += u64::from(event.insns);
            }
        }
        if scan.running.is_none_or(|known| known == prev) {
            ledger.close_cpu(scan, false);
        } else {
            self.break_off(cpu);
        }
        if !prev.is_idle() {
            self.switch_out(cpu, prev, prev_state);
        }
        if !next.is_idle() {
            self.switch_in(cpu, next);
        }
        self.cpus[cpu as usize].running = Some(next);
        self.ledger.waste.set_idle(cpu, next.is_idle());
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
        if let Some(task) = self.cpus[cpu as usize].running.filter(|task| !task.is_idle()) {
            let counted = u64::from(self.ledger.counting);
            self.tasks[task.index()].figures.slices.censored += counted;
            self.enter(task.index(), State::Unknown, cpu, Some(Category::Unknown));
        }
        self.cpus[cpu as usize].running = None;
        self.ledger.waste.set_idle(cpu, false);
    }

    #[inline(always)]
    fn switch_out(&mut self, cpu: u32, id: TaskId, prev_state: TaskState) {
        let task = &self.tasks[id.index()];
        if task.state == State::Running && task.cpu == cpu {
            self.come_off(cpu, id, prev_state, State::Running, true);
        } else {
            self.come_off_unexpectedly(cpu, id, prev_state);
        }
    }

    /// The task that leaves a CPU was not known to run there.
    #[cold]
    fn come_off_unexpectedly(&mut self, cpu: u32, id: TaskId, prev_state: TaskState) {
        let task = &self.tasks[id.index()];
        match task.state {
            State::Running => {
                self.irregularities.doubly_running += 1;
                self.disown(task.cpu);
            }
            State::Absent => self.irregularities.after_exit += 1,
            _ => {}
        }
        let task = &mut self.tasks[id.index()];
        self.ledger.drop_wait(task);
        task.ran_on = Some(cpu);
        let from = task.state;
        self.come_off(cpu, id, prev_state, from, false);
    }

    /// A stretch on the CPU ends, of which the begin is known where the task `ran_here`.
    #[inline(always)]
    fn come_off(
        &mut self,
        cpu: u32,
        id: TaskId,
        prev_state: TaskState,
        from: State,
        ran_here: bool,
    ) {
        let (task, ledger) = (&mut self.tasks[id.index()], &mut self.ledger);
        let preempted = prev_state == TaskState::Runnable;
        if ledger.counting {
            ledger.count_stretch(task, ran_here, preempted);
        }
        let early_waking_ns = task.early_waking_ns.take();
        let to = match (prev_state, early_waking_ns) {
            (TaskState::Runnable, _) => State::Waiting,
            (TaskState::Dead, _) => State::Absent,
            (_, Some(_)) if self.queued_at_waking => State::Waiting,
            (_, Some(_)) => State::Waking,
            (_, None) => State::Asleep,
        };
        let closing = if ran_here { Category::Run } else { Category::Unknown };
        ledger.enter(task, from, to, cpu, closing);
        task.preempted = preempted;
        if to.waits() {
            task.wait_from_ns = ledger.now_ns;
            if !preempted {
                task.woken_ns = early_waking_ns;
            }
        }
    }

    #[inline(always)]
    fn switch_in(&mut self, cpu: u32, id: TaskId) {
        if self.tasks[id.index()].state == State::Waiting {
            self.come_on(cpu, id, State::Waiting, true);
        } else {
            self.come_on_unexpectedly(cpu, id);
        }
    }

    /// The task that comes onto a CPU was not known to wait for one.
    #[inline(never)]
    fn come_on_unexpectedly(&mut self, cpu: u32, id: TaskId) {
        let task = &self.tasks[id.index()];
        let waited = task.state.waits();
        match task.state {
            State::Running => {
                self.irregularities.doubly_running += 1;
                self.disown(task.cpu);
            }
            State::Asleep => self.irregularities.missed_wakeups += 1,
            State::Absent => self.irregularities.after_exit += 1,
            _ => {}
        }
        self.come_on(cpu, id, self.tasks[id.index()].state, waited);
    }

    /// A stretch on the CPU begins, and a wait ends where the task `waited`.
    #[inline(always)]
    fn come_on(&mut self, cpu: u32, id: TaskId, from: State, waited: bool) {
        let (task, ledger) = (&mut self.tasks[id.index()], &mut self.ledger);
        let missed = from == State::Asleep;
        if ledger.counting {
            ledger.count_wait(task, cpu, waited, missed);
        }
        task.ran_on = Some(cpu);
        (task.woken_ns, task.early_waking_ns) = (None, None);
        task.stretch_from_ns = ledger.now_ns;
        let closing = if missed { Category::Unknown } else { from.category() };
        ledger.enter(task, from, State::Running, cpu, closing);
    }
}

impl Ledger {
    /// A stretch on the CPU ends, of which the begin is known where the task `ran_here`.
    #[inline(always)]
    fn count_stretch(&mut self, task: &mut TaskScan, ran_here: bool, preempted: bool) {
        let slice_ns = ran_here.then(|| self.now_ns - task.stretch_from_ns);
        let figures = &mut task.figures;
        match slice_ns {
            Some(slice_ns) => figures.slices.push(slice_ns),
            None => figures.slices.censored += 1,
        }
        if preempted {
            figures.involuntary_switches += 1;
        } else {
            figures.voluntary_switches += 1;
        }
        if let Some(series) = &mut self.series {
            let interval = series.at(self.now_ns);
            slice_ns.into_iter().for_each(|slice_ns| interval.slices.push(slice_ns));
            let involuntary = u64::from(preempted);
            interval.involuntary_switches += involuntary;
            interval.voluntary_switches += 1 - involuntary;
            interval.groups[task.group].involuntary_switches += involuntary;
        }
    }

    /// A task comes onto a CPU. It `waited` for that, or its wake-up was `missed`, or nothing is known.
    #[inline(always)]
    fn count_wait(&mut self, task: &mut TaskScan, cpu: u32, waited: bool, missed: bool) {
        let figures = &mut task.figures;
        figures.switch_ins += 1;
        if task.ran_on.is_some_and(|before| before != cpu) {
            figures.cpu_changes += 1;
        }
        if !waited {
            figures.waits.censored += 1;
            figures.wakeup_latency.censored += u64::from(missed);
            return;
        }
        let wait_ns = self.now_ns - task.wait_from_ns;
        let latency_ns = task.woken_ns.map(|woken_ns| self.now_ns - woken_ns);
        if latency_ns == Some(wait_ns) {
            task.woken_waits.push(wait_ns);
        } else {
            figures.waits.push(wait_ns);
            latency_ns.into_iter().for_each(|latency_ns| figures.wakeup_latency.push(latency_ns));
        }
        if let (Some(series), Some(latency_ns)) = (&mut self.series, latency_ns) {
            series.at(self.now_ns).wakeup_latency.push(latency_ns);
        }
    }
}
