//! Counts that depend on events alone, not on the states of tasks.

use super::Accounting;
use crate::ParamChange;
use crate::states::{State, States, hotplug};
use fairground_trace::{Event, EventKind, TaskId, Trace};

impl Accounting {
    #[inline(always)]
    pub(super) fn note(&mut self, trace: &Trace, states: &States, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                if prev.is_idle() && !next.is_idle() && !self.came_from_nowhere {
                    self.note_arrival(states, event.cpu, next);
                }
                self.note_switch(event);
            }
            // The only event of a wake-up in this trace.
            EventKind::Waking { task, .. } if states.queued_at_waking => self.note_wakeup(task),
            EventKind::Waking { .. } => {}
            _ => self.note_rarer(trace, states, event),
        }
    }

    /// A task comes onto a CPU in place of the idle task.
    fn note_arrival(&mut self, states: &States, cpu: u32, task: TaskId) {
        let is_new = states.tasks[task.index()].state == State::Initial && !states.starts_idle;
        let idled = states.cpus[cpu as usize].running == Some(TaskId::IDLE);
        self.came_from_nowhere = is_new && idled;
    }

    #[inline(always)]
    fn note_switch(&mut self, event: &Event) {
        self.saw_switches = true;
        if !self.counting {
            return;
        }
        self.cpus[event.cpu as usize].metrics.switches += 1;
        if self.counts_insns {
            self.cost.switch.add(event.insns);
        }
        if let Some(series) = &mut self.series {
            series.at(self.now_ns).switches += 1;
        }
    }

    #[inline(never)]
    fn note_rarer(&mut self, trace: &Trace, states: &States, event: &Event) {
        match event.kind {
            EventKind::Nice { task, nice } => return self.on_nice(states, task, nice),
            EventKind::CgroupMove { task, to, .. } => {
                return self.on_cgroup_move(&states.tasks[task.index()], to);
            }
            EventKind::CgroupWeight { cgroup, weight } => {
                return self.on_cgroup_weight(cgroup, weight);
            }
            EventKind::Wakeup { task, .. } => self.note_wakeup(task),
            _ => {}
        }
        if !self.counting {
            return;
        }
        match event.kind {
            EventKind::Wakeup { task, .. } if !task.is_idle() => self.cost.wakeup.add(event.insns),
            EventKind::WakeupNew { task, .. } if !task.is_idle() => {
                self.cost.wakeup.add(event.insns);
                self.machine.new_tasks += 1;
            }
            EventKind::Migrate { task, .. } if !task.is_idle() => {
                self.migrations += 1;
                self.tasks[task.index()].migrations += 1;
                if let Some(series) = &mut self.series {
                    series.at(self.now_ns).migrations += 1;
                }
            }
            EventKind::Tick { task } => {
                self.machine.ticks += 1;
                self.cost.tick.add(event.insns);
                self.tasks[task.index()].figures.ticks += 1;
            }
            EventKind::Callback { kind, .. } => self.callbacks[kind as usize] += 1,
            EventKind::Param { label } => self.on_param(trace.label(label).to_owned()),
            EventKind::Print { .. } => self.machine.prints += 1,
            EventKind::Mark { task, .. } => self.tasks[task.index()].figures.marks += 1,
            _ => {}
        }
    }

    /// A wake-up, by the event that shows it in this trace.
    fn note_wakeup(&mut self, task: TaskId) {
        self.saw_wakeups = true;
        if !self.counting || task.is_idle() {
            return;
        }
        if let Some(count) = &mut self.tasks[task.index()].figures.wakeups {
            *count += 1;
        }
        if let Some(series) = &mut self.series
            && let Some(count) = &mut series.at(self.now_ns).wakeups
        {
            *count += 1;
        }
    }

    fn on_param(&mut self, text: String) {
        if let Some((cpu, online)) = hotplug(&text) {
            self.services.set_online(self.at_ns, cpu, online);
        }
        let change = ParamChange { time_ns: self.now_ns, text };
        if let Some(series) = &mut self.series {
            series.at(self.now_ns).params.push(change.clone());
        }
        self.params.push(change);
    }

    fn on_nice(&mut self, states: &States, id: TaskId, nice: i8) {
        if id.is_idle() {
            return;
        }
        let (task, id) = (&states.tasks[id.index()], id.index());
        let weight = self.weights.weight(Some(nice));
        if task.state.is_queued() {
            self.read_services(id, false);
        }
        (self.tasks[id].weight, self.tasks[id].nice_known) = (weight, true);
        self.services.weigh(id, weight);
        if task.state.is_queued() {
            self.services.join(self.at_ns, id, task.cpu);
        }
    }
}
