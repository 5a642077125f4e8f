//! Where time goes: the change of a task's or a CPU's state closes an interval, which is cut to the window and added to the
//! right figure, and moves the task in the fluid schedules.

use super::{Running, Scan};
use crate::Samples;
use crate::services::{Change, What};
use crate::task_scan::{Category, State};

impl Scan {
    /// Lets time pass until `time_ns`; nothing changes before it.
    #[inline(always)]
    pub(super) fn advance(&mut self, time_ns: u64) {
        if time_ns <= self.now_ns {
            return;
        }
        self.now_ns = time_ns;
        let wasted = self.waste.advance(time_ns);
        if let Some(series) = self.series.as_mut().filter(|_| wasted.cpus > 0) {
            series.spread(wasted.from_ns, wasted.to_ns, |interval, ns| {
                interval.idle_while_waiting_ns += ns.saturating_mul(wasted.cpus);
            });
        }
    }

    #[inline]
    pub(crate) fn window_time(&self, time_ns: u64) -> u64 {
        time_ns.max(self.window_ns.0).min(self.window_ns.1)
    }

    /// Moves a task to a state, on or for `cpu`. `closing` says what the time since its last change was, where that is not
    /// what its present state says.
    pub(super) fn enter(&mut self, id: usize, to: State, cpu: u32, closing: Option<Category>) {
        self.close_task(id, closing);
        let at_ns = self.window_time(self.now_ns);
        let task = &mut self.tasks[id];
        let (from, from_cpu, restriction) = (task.state, task.cpu, task.restriction);
        let (was_queued, is_queued) = (from.is_queued(), to.is_queued());
        let stays = was_queued && is_queued && from_cpu == cpu;
        (task.state, task.cpu) = (to, cpu);
        task.was_queued |= is_queued;
        if was_queued {
            self.settle_at(at_ns, id, stays);
        }
        if is_queued && !stays {
            self.change(at_ns, What::Join { task: id as u32, cpu });
        }
        if from == State::Waiting {
            self.waste.remove(restriction, from_cpu);
            self.note_queue(from_cpu, -1);
        }
        if to == State::Waiting {
            self.waste.add(restriction, cpu);
            self.note_queue(cpu, 1);
        }
    }

    #[inline]
    fn note_queue(&mut self, cpu: u32, more: i64) {
        if self.tracks.is_none() {
            return;
        }
        let now_ns = self.window_time(self.now_ns);
        if let Some(tracks) = &mut self.tracks {
            tracks.queue(now_ns, cpu, more);
        }
    }

    /// A waiting task moved to the queue of another CPU.
    pub(super) fn requeue(&mut self, id: usize, cpu: u32) {
        if self.tasks[id].cpu != cpu {
            self.enter(id, State::Waiting, cpu, None);
        }
    }

    /// The task's wait came to an end that is not a switch-in.
    pub(super) fn drop_wait(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        let waited = matches!(task.state, State::Waiting | State::Waking);
        let woken = task.woken_ns.take().is_some();
        task.wait_from_ns = None;
        if self.counting && waited {
            task.figures.waits.censored += 1;
            task.figures.wakeup_latency.censored += u64::from(woken);
        }
    }

    #[inline(always)]
    pub(super) fn close_task(&mut self, id: usize, closing: Option<Category>) {
        let (now_ns, to_ns) = (self.now_ns, self.window_time(self.now_ns));
        let since_ns = std::mem::replace(&mut self.tasks[id].since_ns, now_ns);
        let from_ns = self.window_time(since_ns);
        let task = &mut self.tasks[id];
        if to_ns <= from_ns {
            return;
        }
        let ns = to_ns - from_ns;
        let category = closing.unwrap_or_else(|| task.category());
        match category {
            Category::Run => task.figures.run_ns += ns,
            Category::Wait => {
                task.figures.wait_ns += ns;
                if task.state == State::Waking {
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
            self.spread(id, category, (from_ns, to_ns));
        }
    }

    /// The time of a task in a state, over the intervals.
    fn spread(&mut self, id: usize, category: Category, (from_ns, to_ns): (u64, u64)) {
        let (group, Some(series)) = (self.tasks[id].group, &mut self.series) else { return };
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

    #[inline]
    pub(super) fn close_cpu(&mut self, cpu: u32, unknown: bool) {
        let to_ns = self.window_time(self.now_ns);
        let from_ns = self.window_time(self.cpus[cpu as usize].since_ns);
        let scan = &mut self.cpus[cpu as usize];
        scan.since_ns = self.now_ns;
        let ns = to_ns.saturating_sub(from_ns);
        match scan.running {
            _ if unknown => scan.metrics.unknown_ns += ns,
            Running::Unknown => scan.metrics.unknown_ns += ns,
            Running::Task(_) => scan.metrics.run_ns += ns,
            Running::Idle => {
                scan.metrics.idle_ns += ns;
                if let Some(series) = &mut self.series {
                    series.spread(from_ns, to_ns, |interval, ns| {
                        interval.idle_ns = interval.idle_ns.saturating_add(ns);
                    });
                }
            }
        }
    }

    /// Something changes for the fluid schedules, at an instant of the window.
    #[inline(always)]
    pub(crate) fn change(&mut self, now_ns: u64, what: What) {
        let change = Change { now_ns, what };
        if self.keeps_services {
            self.services.apply(&[change]);
        } else {
            self.changes.push(change);
        }
    }

    /// Reads the fluid services of a queued task up to now.
    pub(super) fn settle(&mut self, id: usize) {
        self.settle_at(self.window_time(self.now_ns), id, true);
    }

    /// The same; it is in no queue any more then, unless it stays.
    #[inline(always)]
    fn settle_at(&mut self, at_ns: u64, id: usize, stays: bool) {
        let scan = &self.tasks[id];
        let (task, run_ns) = (id as u32, scan.figures.run_ns + scan.moved_run_ns);
        let change = match stays {
            true => What::Settle { task, run_ns },
            false => What::Leave { task, run_ns },
        };
        self.change(at_ns, change);
        if let Some(tracks) = &mut self.tracks {
            tracks.lag(at_ns, id, self.services.lag_ns(id, run_ns));
        }
    }

    pub(super) fn join_fluid(&mut self, id: usize) {
        self.tasks[id].was_queued = true;
        let (task, cpu) = (id as u32, self.tasks[id].cpu);
        self.change(self.window_time(self.now_ns), What::Join { task, cpu });
    }

    pub(super) fn leave_fluid(&mut self, id: usize) {
        self.settle_at(self.window_time(self.now_ns), id, false);
    }

    /// Closes a task's books at the window's end.
    pub(super) fn finish_task(&mut self, id: usize) {
        let state = self.tasks[id].state;
        self.counting = true;
        self.drop_wait(id);
        let closing = (state == State::Initial && self.starts_idle).then_some(Category::Absent);
        self.close_task(id, closing);
        if state.is_queued() {
            self.settle(id);
        }
        let task = &mut self.tasks[id];
        task.figures.slices.censored += u64::from(state == State::Running);
        let served = self.services.served(id);
        task.figures.fluid_ns = served.machine_ns;
        (task.figures.lag_max_ns, task.figures.lead_max_ns) =
            (served.lag_max_ns, served.lead_max_ns);
        // How a group's weight is spread over CPUs is the scheduler's to say: with groups there is no such figure.
        if !self.has_cgroups {
            task.figures.fluid_on_cpu_ns = served.cpu_ns;
        }
        let assumed = !task.nice_known && served.any;
        self.irregularities.assumed_nice += u64::from(assumed);
        task.figures.samples_mut().into_iter().for_each(Samples::seal);
    }
}
