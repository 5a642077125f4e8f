//! Where time goes: the change of a task's or a CPU's state closes an interval, which is cut to the window and added to the
//! right figure, and moves the task in the fluid schedules.

use super::ledger::Ledger;
use super::{CpuScan, Scan};
use crate::services::What;
use crate::task_scan::{Category, State, TaskScan};

impl Ledger {
    /// Moves a task from its state to another one, on or for `cpu`. `closing` says what the time since its last change was. Where
    /// callers name the states, the compiler leaves out what cannot be.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        task: &mut TaskScan,
        from: State,
        to: State,
        cpu: u32,
        closing: Category,
    ) {
        self.close_task(task, from, closing);
        let from_cpu = task.cpu;
        let (was_queued, is_queued) = (from.is_queued(), to.is_queued());
        let stays = was_queued && is_queued && from_cpu == cpu;
        (task.state, task.cpu) = (to, cpu);
        task.was_queued |= is_queued;
        if was_queued {
            self.settle(task, stays);
        }
        if is_queued && !stays {
            self.change(What::Join { task: task.id, cpu });
        }
        if from == State::Waiting {
            self.waste.remove(task.restriction, from_cpu);
            self.note_queue(from_cpu, -1);
        }
        if to == State::Waiting {
            self.waste.add(task.restriction, cpu);
            self.note_queue(cpu, 1);
        }
    }

    /// The task's wait came to an end that is not a switch-in.
    pub(super) fn drop_wait(&mut self, task: &mut TaskScan) {
        let woken = task.woken_ns.take().is_some();
        if self.counting && task.state.waits() {
            task.figures.waits.censored += 1;
            task.figures.wakeup_latency.censored += u64::from(woken);
        }
    }

    /// The window ends while the task waits: it has waited for at least so long.
    fn leave_wait_open(&mut self, task: &mut TaskScan) {
        if !task.state.waits() {
            return;
        }
        // Before a loss the task may have run unseen.
        let since = |begin_ns: u64| self.window_ns.1.saturating_sub(begin_ns.max(self.lost_ns));
        let waiting_ns = since(task.wait_from_ns);
        task.waiting_ns = Some(waiting_ns);
        task.figures.waits.censor_at(waiting_ns);
        if let Some(woken_ns) = task.woken_ns.take() {
            task.figures.wakeup_latency.censor_at(since(woken_ns));
        }
    }

    #[inline(always)]
    pub(super) fn close_task(&mut self, task: &mut TaskScan, state: State, closing: Category) {
        let (from_ns, to_ns) = (task.since_ns, self.at_ns);
        if to_ns <= from_ns {
            return;
        }
        task.since_ns = to_ns;
        let ns = to_ns - from_ns;
        match closing {
            Category::Run => task.figures.run_ns += ns,
            Category::Wait => {
                task.figures.wait_ns += ns;
                if state == State::Waking {
                    task.figures.waking_ns += ns;
                } else if task.preempted {
                    task.figures.preempted_wait_ns += ns;
                }
            }
            Category::Sleep => task.figures.sleep_ns += ns,
            Category::Absent => task.figures.absent_ns += ns,
            Category::Unknown => task.figures.unknown_ns += ns,
        }
        if self.series.is_some() {
            self.spread(task.group, closing, (from_ns, to_ns));
        }
    }

    /// The time of a task of a group, over the intervals.
    fn spread(&mut self, group: usize, category: Category, (from_ns, to_ns): (u64, u64)) {
        let Some(series) = &mut self.series else { return };
        match category {
            Category::Run => series.spread(from_ns, to_ns, |interval, ns| {
                interval.run_ns = interval.run_ns.saturating_add(ns);
                interval.groups[group].run_ns = interval.groups[group].run_ns.saturating_add(ns);
            }),
            Category::Wait => series.spread(from_ns, to_ns, |interval, ns| {
                interval.wait_ns = interval.wait_ns.saturating_add(ns);
                interval.groups[group].wait_ns = interval.groups[group].wait_ns.saturating_add(ns);
            }),
            Category::Sleep | Category::Absent | Category::Unknown => {}
        }
    }

    #[inline(always)]
    pub(super) fn close_cpu(&mut self, cpu: &mut CpuScan, unknown: bool) {
        let (from_ns, to_ns) = (cpu.since_ns, self.at_ns);
        cpu.since_ns = to_ns;
        let ns = to_ns.saturating_sub(from_ns);
        match cpu.running {
            Some(task) if !task.is_idle() && !unknown => cpu.metrics.run_ns += ns,
            Some(_) if !unknown => {
                cpu.metrics.idle_ns += ns;
                if let Some(series) = &mut self.series {
                    series.spread(from_ns, to_ns, |interval, ns| {
                        interval.idle_ns = interval.idle_ns.saturating_add(ns);
                    });
                }
            }
            _ => cpu.metrics.unknown_ns += ns,
        }
    }

    /// Reads the fluid services of a queued task up to now. It is in no queue any more then, unless it stays.
    #[inline(always)]
    pub(super) fn settle(&mut self, of: &TaskScan, stays: bool) {
        let (task, run_ns) = (of.id, of.figures.run_ns + of.moved_run_ns);
        self.change(match stays {
            true => What::Settle { task, run_ns },
            false => What::Leave { task, run_ns },
        });
        if let Some(tracks) = &mut self.tracks {
            let lag_ns = self.services.lag_ns(task as usize, run_ns);
            tracks.lag(self.at_ns, task as usize, lag_ns);
        }
    }
}

impl Scan {
    /// [`Ledger::enter`], for what seldom happens. `closing`: where it is not what the present state says.
    #[inline(never)]
    pub(super) fn enter(&mut self, id: usize, to: State, cpu: u32, closing: Option<Category>) {
        let task = &mut self.tasks[id];
        let from = task.state;
        self.ledger.enter(task, from, to, cpu, closing.unwrap_or(from.category()));
    }

    /// A waiting task moved to the queue of another CPU.
    pub(super) fn requeue(&mut self, id: usize, cpu: u32) {
        if self.tasks[id].cpu != cpu {
            self.enter(id, State::Waiting, cpu, None);
        }
    }

    pub(super) fn join_fluid(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        task.was_queued = true;
        self.ledger.change(What::Join { task: task.id, cpu: task.cpu });
    }

    pub(super) fn leave_fluid(&mut self, id: usize) {
        self.ledger.settle(&self.tasks[id], false);
    }

    /// Closes a task's books at the window's end.
    pub(super) fn finish_task(&mut self, id: usize) {
        let Self { tasks, ledger, .. } = self;
        let task = &mut tasks[id];
        ledger.leave_wait_open(task);
        let never_seen = task.state == State::Initial && self.starts_idle;
        let closing = if never_seen { Category::Absent } else { task.state.category() };
        ledger.close_task(task, task.state, closing);
        if task.state.is_queued() {
            ledger.settle(task, true);
        }
        task.figures.slices.censored += u64::from(task.state == State::Running);
        let served = ledger.services.served(id);
        task.figures.fluid_ns = served.machine_ns;
        (task.figures.lag_max_ns, task.figures.lead_max_ns) =
            (served.lag_max_ns, served.lead_max_ns);
        // How a group's weight is spread over CPUs is the scheduler's to say: with groups there is no such figure.
        if !self.has_cgroups {
            task.figures.fluid_on_cpu_ns = served.cpu_ns;
        }
        let assumed = !task.nice_known && served.any;
        self.irregularities.assumed_nice += u64::from(assumed);
        task.complete_samples();
    }
}
