//! What wakes a task, makes it, ends it or moves it.

use super::Scan;
use crate::services::What;
use crate::task_scan::{Category, State};
use fairground_trace::TaskId;

impl Scan {
    #[inline(always)]
    pub(super) fn on_waking(&mut self, id: TaskId, target_cpu: u32) {
        if id.is_idle() {
            return;
        }
        let task = &mut self.tasks[id.index()];
        let to = if self.queued_at_waking { State::Waiting } else { State::Waking };
        match task.state {
            State::Running => task.early_waking_ns = Some(self.ledger.now_ns),
            State::Waking | State::Waiting => {}
            State::Asleep => {
                self.begin_wait(id, State::Asleep, to, target_cpu, Category::Sleep, true);
            }
            State::Initial | State::Unknown | State::Absent => {
                self.irregularities.after_exit += u64::from(task.state == State::Absent);
                self.begin_rarer_wait(id, to, target_cpu, Category::Sleep, true);
            }
        }
    }

    /// `first`: the task is new.
    pub(super) fn on_wakeup(&mut self, id: TaskId, target_cpu: u32, first: bool, insns: u32) {
        if id.is_idle() {
            return;
        }
        if self.ledger.counting {
            self.cost.wakeup.add(insns);
            if first {
                self.machine.new_tasks += 1;
            } else {
                self.tasks[id.index()].figures.wakeups += 1;
                if let Some(series) = &mut self.ledger.series {
                    series.at(self.ledger.now_ns).wakeups += 1;
                }
            }
        }
        let task = &mut self.tasks[id.index()];
        match task.state {
            // Woken before it came off the CPU: it never slept.
            State::Running => task.early_waking_ns = None,
            State::Waiting => self.requeue(id.index(), target_cpu),
            State::Waking => self.enter(id.index(), State::Waiting, target_cpu, None),
            State::Initial | State::Unknown | State::Absent | State::Asleep => {
                let before = if first { Category::Absent } else { Category::Sleep };
                let ended = task.state == State::Absent && !first;
                self.irregularities.after_exit += u64::from(ended);
                self.begin_rarer_wait(id, State::Waiting, target_cpu, before, !first);
            }
        }
    }

    /// `before`: what a task that no event has spoken of has done until now, where the recording saw all of it. `woken`: something
    /// asked for it.
    #[inline(always)]
    fn begin_wait(
        &mut self,
        id: TaskId,
        from: State,
        to: State,
        cpu: u32,
        before: Category,
        woken: bool,
    ) {
        let (task, ledger) = (&mut self.tasks[id.index()], &mut self.ledger);
        let closing = match from {
            // Nothing was heard of the task so far. A new task did not exist; any other slept if the recording saw everything.
            State::Initial if self.starts_idle || before == Category::Absent => before,
            _ => from.category(),
        };
        ledger.enter(task, from, to, cpu, closing);
        task.wait_from_ns = ledger.now_ns;
        task.preempted = false;
        task.woken_ns = woken.then_some(ledger.now_ns);
    }

    /// The same from whatever state it is in.
    #[inline(never)]
    fn begin_rarer_wait(&mut self, id: TaskId, to: State, cpu: u32, before: Category, woken: bool) {
        self.begin_wait(id, self.tasks[id.index()].state, to, cpu, before, woken);
    }

    pub(super) fn on_migrate(&mut self, id: TaskId, to_cpu: u32) {
        if id.is_idle() {
            return;
        }
        if self.ledger.counting {
            self.migrations += 1;
            self.tasks[id.index()].migrations += 1;
            if let Some(series) = &mut self.ledger.series {
                series.at(self.ledger.now_ns).migrations += 1;
            }
        }
        if self.tasks[id.index()].state == State::Waiting {
            self.requeue(id.index(), to_cpu);
        }
    }

    pub(super) fn on_fork(&mut self, child: TaskId) {
        if child.is_idle() {
            return;
        }
        let state = self.tasks[child.index()].state;
        if matches!(state, State::Initial | State::Absent) {
            self.enter(child.index(), State::Asleep, 0, Some(Category::Absent));
        }
    }

    /// A task announces its end while it is still on the CPU; the switch away in state dead is its end. One that is
    /// anywhere else has ended already.
    pub(super) fn on_exit(&mut self, id: TaskId) {
        if id.is_idle() || self.tasks[id.index()].state == State::Running {
            return;
        }
        self.ledger.drop_wait(&mut self.tasks[id.index()]);
        self.enter(id.index(), State::Absent, 0, None);
    }

    pub(super) fn on_nice(&mut self, id: TaskId, nice: i8) {
        if id.is_idle() {
            return;
        }
        let weight = self.weight_of(nice);
        let queued = self.tasks[id.index()].state.is_queued();
        if queued {
            self.leave_fluid(id.index());
        }
        let task = &mut self.tasks[id.index()];
        (task.weight, task.nice_known) = (weight, true);
        self.ledger.change(What::Weigh { task: id.0, weight });
        if queued {
            self.join_fluid(id.index());
        }
    }
}
