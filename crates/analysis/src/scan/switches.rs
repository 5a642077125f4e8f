//! What a switch says: who left the CPU and how, who came, and whether that fits what was known.

use super::{Running, Scan};
use crate::task_scan::{Category, State};
use fairground_trace::{Event, TaskId, TaskState};

impl Scan {
    pub(super) fn on_switch(
        &mut self,
        event: &Event,
        prev: TaskId,
        prev_state: TaskState,
        next: TaskId,
    ) {
        let cpu = event.cpu;
        if self.counting {
            self.machine.switches += 1;
            self.cpus[cpu as usize].metrics.switches += 1;
            self.cost.switch.add(event.insns);
            if let Some(series) = &mut self.series {
                let interval = series.at(self.now_ns);
                interval.switches += 1;
                interval.switch_insns += u64::from(event.insns);
            }
        }
        match self.cpus[cpu as usize].running {
            Running::Idle if !prev.is_idle() => self.break_off(cpu),
            Running::Task(known) if known != prev => self.break_off(cpu),
            _ => self.close_cpu(cpu, false),
        }
        if !prev.is_idle() {
            self.switch_out(cpu, prev, prev_state);
        }
        if !next.is_idle() {
            self.switch_in(cpu, next);
        }
        let running = if next.is_idle() { Running::Idle } else { Running::Task(next) };
        self.cpus[cpu as usize].running = running;
        self.waste.set_idle(cpu, next.is_idle());
    }

    /// The switch contradicts what the CPU was known to run.
    fn break_off(&mut self, cpu: u32) {
        self.irregularities.broken_switches += 1;
        self.disown(cpu);
    }

    /// What the CPU did since its last switch turned out to be unknown.
    fn disown(&mut self, cpu: u32) {
        self.close_cpu(cpu, true);
        if let Running::Task(task) = self.cpus[cpu as usize].running {
            self.tasks[task.index()].figures.slices.censored += u64::from(self.counting);
            self.enter(task.index(), State::Unknown, cpu, Some(Category::Unknown));
        }
        self.cpus[cpu as usize].running = Running::Unknown;
        self.waste.set_idle(cpu, false);
    }

    fn switch_out(&mut self, cpu: u32, id: TaskId, prev_state: TaskState) {
        let task = &self.tasks[id.index()];
        let (state, ran_here) = (task.state, task.cpu == cpu && task.state == State::Running);
        if state == State::Running && !ran_here {
            self.irregularities.doubly_running += 1;
            self.disown(task.cpu);
        }
        if state == State::Absent {
            self.irregularities.after_exit += 1;
        }
        if !ran_here {
            self.drop_wait(id.index());
        }
        let early_waking_ns = self.come_off(cpu, id.index(), prev_state, ran_here);
        let to = match (prev_state, early_waking_ns) {
            (TaskState::Runnable, _) => State::Waiting,
            (TaskState::Dead, _) => State::Absent,
            (_, Some(_)) if self.queued_at_waking => State::Waiting,
            (_, Some(_)) => State::Waking,
            (_, None) => State::Asleep,
        };
        self.enter(id.index(), to, cpu, if ran_here { None } else { Some(Category::Unknown) });
        let task = &mut self.tasks[id.index()];
        task.preempted = prev_state == TaskState::Runnable;
        if matches!(to, State::Waiting | State::Waking) {
            task.wait_from_ns = Some(self.now_ns);
            if !task.preempted {
                task.woken_ns = early_waking_ns;
            }
        }
    }

    /// A stretch on the CPU ends; gives when the task was asked to wake meanwhile.
    #[inline]
    fn come_off(
        &mut self,
        cpu: u32,
        id: usize,
        prev_state: TaskState,
        ran_here: bool,
    ) -> Option<u64> {
        let now_ns = self.now_ns;
        let task = &mut self.tasks[id];
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

    fn switch_in(&mut self, cpu: u32, id: TaskId) {
        let (state, on) = (self.tasks[id.index()].state, self.tasks[id.index()].cpu);
        if state == State::Running {
            self.irregularities.doubly_running += 1;
            self.disown(on);
        }
        let irregularities = &mut self.irregularities;
        match state {
            State::Asleep => irregularities.missed_wakeups += 1,
            State::Absent => irregularities.after_exit += 1,
            _ => {}
        }
        let closing = (state == State::Asleep).then_some(Category::Unknown);
        self.come_on(cpu, id.index(), state);
        self.enter(id.index(), State::Running, cpu, closing);
    }

    /// A wait ends, and a stretch on the CPU begins.
    #[inline]
    fn come_on(&mut self, cpu: u32, id: usize, state: State) {
        let now_ns = self.now_ns;
        let task = &mut self.tasks[id];
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
