//! Switches whose trace events come slightly later than their decisions.
//!
//! A kernel writes `sched_switch` when the choice is made: after the scheduler's own instructions, while the task that
//! leaves is still on the CPU. Its accounting (`update_curr_scx`, `set_next_task_scx`) uses the run-queue clock, which
//! `__schedule` reads once, before. So the time of a decision is the previous task's in the trace and the next task's
//! in the accounting. Here a choice takes no time and is paid for afterwards; its event waits in [`Late`] until then.
//! Nothing that happens on the same CPU or to one of the two tasks overtakes it: if something does happen there, the
//! switch is written at once.

use fairground_trace::{Event, EventKind, TaskId};

use super::Kernel;

/// Switches that are decided and not yet in the trace: at most one of each CPU and of each task.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// By the time of their events, the next one last.
    switches: Vec<LateSwitch>,
    /// By CPU: whether one of them is of it.
    of_cpu: Vec<bool>,
    /// By task: whether one of them is of it; never of the idle task, which is everywhere.
    of_task: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct LateSwitch {
    event: Event,
    /// When it was decided, ns: the run-queue clock of its pass.
    decided_ns: u64,
}

impl LateSwitch {
    /// Whether it is a switch from or to a task; the idle task does not count.
    fn is_of(&self, task: TaskId) -> bool {
        !task.is_idle() && tasks_of(&self.event.kind).contains(&task)
    }
}

impl Late {
    fn insert(&mut self, switch: LateSwitch) {
        let time_ns = switch.event.time_ns;
        let place = self.switches.partition_point(|other| other.event.time_ns > time_ns);
        self.mark(&switch, true);
        self.switches.insert(place, switch);
    }

    /// Notes whether there is a switch of the CPU and of the tasks of this one.
    fn mark(&mut self, switch: &LateSwitch, is_late: bool) {
        set(&mut self.of_cpu, switch.event.cpu as usize, is_late);
        for task in tasks_of(&switch.event.kind) {
            set(&mut self.of_task, task.index(), is_late && !task.is_idle());
        }
    }

    /// Whether one is due at a time, or may not be overtaken by an event on a CPU about some tasks.
    #[inline(always)]
    fn has_before(&self, now_ns: u64, cpu: u32, tasks: [TaskId; 2]) -> bool {
        self.switches.last().is_some_and(|next| {
            next.event.time_ns <= now_ns
                || self.has_cpu(cpu)
                || tasks.iter().any(|task| self.has_task(*task))
        })
    }

    /// Takes out the first that is due at a time, or that an event on a CPU about some tasks may not overtake.
    #[inline]
    fn next_before(&mut self, now_ns: u64, cpu: u32, tasks: [TaskId; 2]) -> Option<LateSwitch> {
        let switch = if self.switches.last()?.event.time_ns <= now_ns {
            self.switches.pop()?
        } else if self.has_cpu(cpu) || tasks.iter().any(|task| self.has_task(*task)) {
            let is_next = |switch: &LateSwitch| {
                switch.event.cpu == cpu || tasks.iter().any(|task| switch.is_of(*task))
            };
            let index = self.switches.iter().rposition(is_next)?;
            self.switches.remove(index)
        } else {
            return None;
        };
        self.mark(&switch, false);
        Some(switch)
    }

    /// Whether one of the switches is of a CPU.
    #[inline]
    pub(crate) fn has_cpu(&self, cpu: u32) -> bool {
        self.of_cpu.get(cpu as usize).is_some_and(|is_late| *is_late)
    }

    /// Whether one of the switches is of a task.
    #[inline]
    pub(crate) fn has_task(&self, task: TaskId) -> bool {
        self.of_task.get(task.index()).is_some_and(|is_late| *is_late)
    }

    /// How far the accounting of a task is ahead of the trace (negative: behind) at a time, because of switches that
    /// the trace does not have yet, ns.
    pub(crate) fn ahead_ns(&self, task: TaskId, now_ns: u64) -> i64 {
        let since = |switch: &LateSwitch| (now_ns - switch.decided_ns) as i64;
        self.switches
            .iter()
            .map(|switch| match switch.event.kind {
                EventKind::Switch { next, .. } if next == task => since(switch),
                EventKind::Switch { prev, .. } if prev == task => -since(switch),
                _ => 0,
            })
            .sum()
    }
}

fn set(marks: &mut Vec<bool>, index: usize, mark: bool) {
    if index >= marks.len() {
        marks.resize((index + 1).next_power_of_two(), false);
    }
    marks[index] = mark;
}

/// The tasks that a switch, a wake-up or an end is about; [`TaskId::IDLE`] for none.
fn tasks_of(kind: &EventKind) -> [TaskId; 2] {
    match *kind {
        EventKind::Switch { prev, next, .. } => [prev, next],
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::Migrate { task, .. }
        | EventKind::Exit { task } => [task, TaskId::IDLE],
        _ => [TaskId::IDLE; 2],
    }
}

impl Kernel {
    /// Appends to the trace. In line, where the kind of event is known and packing it is a few stores.
    #[inline(always)]
    pub(crate) fn emit(&mut self, cpu: u32, insns: u64, kind: EventKind) {
        if self.late.has_before(self.clock.now_ns(), cpu, tasks_of(&kind)) {
            self.write_late(cpu, tasks_of(&kind));
        }
        let insns = u32::try_from(insns).unwrap_or(u32::MAX);
        self.trace.push(Event { time_ns: self.clock.now_ns(), cpu, insns, kind });
    }

    /// Appends a switch that is decided now, by so many instructions, which take so many ns.
    #[inline]
    pub(crate) fn emit_switch(&mut self, cpu: u32, insns: u64, kind: EventKind, choice_ns: u64) {
        let decided_ns = self.clock.now_ns();
        if choice_ns == 0 {
            return self.emit(cpu, insns, kind);
        }
        self.write_late(cpu, tasks_of(&kind));
        let time_ns = self.clock.now_ns().saturating_add(choice_ns);
        let insns = u32::try_from(insns).unwrap_or(u32::MAX);
        let event = Event { time_ns, cpu, insns, kind };
        self.late.insert(LateSwitch { event, decided_ns });
    }

    /// Writes the switches that are due, and those that an event on a CPU about some tasks may not overtake.
    #[inline(never)]
    fn write_late(&mut self, cpu: u32, tasks: [TaskId; 2]) {
        while let Some(switch) = self.late.next_before(self.clock.now_ns(), cpu, tasks) {
            self.write_switch(switch);
        }
    }

    /// Writes the switches that are due.
    pub(crate) fn write_due(&mut self) {
        self.write_late(u32::MAX, [TaskId::IDLE; 2]);
    }

    /// Writes every switch: the run is over.
    pub(crate) fn write_all(&mut self) {
        while let Some(switch) = self.late.next_before(u64::MAX, u32::MAX, [TaskId::IDLE; 2]) {
            self.write_switch(switch);
        }
    }

    fn write_switch(&mut self, switch: LateSwitch) {
        let LateSwitch { event, decided_ns } = switch;
        if self.check {
            self.checker.decided.push_back((self.trace.len(), decided_ns));
        }
        self.trace.push(Event { time_ns: event.time_ns.min(self.clock.now_ns()), ..event });
    }
}

#[cfg(test)]
mod tests {
    use fairground_trace::TaskState;

    use super::*;

    /// A switch on a CPU, due at a time, decided 4 ns before.
    fn switch(time_ns: u64, cpu: u32, prev: u32, next: u32) -> LateSwitch {
        let (prev, next) = (TaskId(prev), TaskId(next));
        let kind = EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
        LateSwitch { event: Event { time_ns, cpu, insns: 0, kind }, decided_ns: time_ns - 4 }
    }

    fn late() -> Late {
        let mut late = Late::default();
        for switch in [switch(20, 1, 3, 0), switch(10, 0, 1, 2), switch(30, 2, 4, 5)] {
            late.insert(switch);
        }
        late
    }

    fn taken(now_ns: u64, cpu: u32, tasks: [u32; 2]) -> Vec<u32> {
        let mut late = late();
        let next =
            || late.next_before(now_ns, cpu, tasks.map(TaskId)).map(|switch| switch.event.cpu);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn nothing_overtakes_a_switch_of_its_cpu_or_of_its_tasks() {
        assert_eq!(taken(5, 9, [9, 0]), [0_u32; 0]);
        assert_eq!(taken(20, 9, [9, 0]), [0, 1]);
        assert_eq!(taken(5, 1, [9, 0]), [1]);
        assert_eq!(taken(5, 9, [3, 5]), [1, 2]);
        // The idle task is everywhere, and holds nothing up.
        assert_eq!(taken(5, 9, [0, 0]), [0_u32; 0]);
    }

    #[test]
    fn books_are_ahead_of_the_trace_while_a_switch_waits() {
        let late = late();
        assert_eq!(late.ahead_ns(TaskId(5), 28), 2, "it comes, and was booked first");
        assert_eq!(late.ahead_ns(TaskId(4), 28), -2, "it leaves");
        assert_eq!(late.ahead_ns(TaskId(9), 28), 0);
    }
}
