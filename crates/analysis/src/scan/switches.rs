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
        self.end_stretch(id.index(), ran_here);
        self.count_switch_away(id.index(), prev_state);
        let task = &mut self.tasks[id.index()];
        task.ran_on = Some(cpu);
        let early_waking_ns = task.early_waking_ns.take();
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

    fn end_stretch(&mut self, id: usize, ran_here: bool) {
        let from_ns = self.tasks[id].stretch_from_ns.take().filter(|_| ran_here);
        if !self.counting {
            return;
        }
        let slices = &mut self.tasks[id].figures.slices;
        match from_ns {
            Some(from_ns) => {
                let slice_ns = self.now_ns - from_ns;
                slices.push(slice_ns);
                if let Some(series) = &mut self.series {
                    series.at(self.now_ns).slices.push(slice_ns);
                }
            }
            None => slices.censored += 1,
        }
    }

    fn count_switch_away(&mut self, id: usize, prev_state: TaskState) {
        if !self.counting {
            return;
        }
        let involuntary = u64::from(prev_state == TaskState::Runnable);
        let task = &mut self.tasks[id];
        task.figures.involuntary_switches += involuntary;
        task.figures.voluntary_switches += 1 - involuntary;
        if let Some(series) = &mut self.series {
            let interval = series.at(self.now_ns);
            interval.involuntary_switches += involuntary;
            interval.voluntary_switches += 1 - involuntary;
            interval.groups[task.group].involuntary_switches += involuntary;
        }
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
        self.end_wait(id.index(), state);
        let task = &mut self.tasks[id.index()];
        if self.counting {
            task.figures.switch_ins += 1;
            task.figures.cpu_changes += u64::from(task.ran_on.is_some_and(|before| before != cpu));
        }
        task.ran_on = Some(cpu);
        task.early_waking_ns = None;
        self.enter(id.index(), State::Running, cpu, closing);
        self.tasks[id.index()].stretch_from_ns = Some(self.now_ns);
    }

    fn end_wait(&mut self, id: usize, state: State) {
        let task = &mut self.tasks[id];
        let (from_ns, woken_ns) = (task.wait_from_ns.take(), task.woken_ns.take());
        if !self.counting {
            return;
        }
        let waited = matches!(state, State::Waiting | State::Waking);
        match from_ns.filter(|_| waited) {
            Some(from_ns) => task.figures.waits.push(self.now_ns - from_ns),
            None => task.figures.waits.censored += 1,
        }
        if let Some(woken_ns) = woken_ns.filter(|_| waited) {
            let latency_ns = self.now_ns - woken_ns;
            task.figures.wakeup_latency.push(latency_ns);
            if let Some(series) = &mut self.series {
                series.at(self.now_ns).wakeup_latency.push(latency_ns);
            }
        } else if state == State::Asleep {
            task.figures.wakeup_latency.censored += 1;
        }
    }
}
