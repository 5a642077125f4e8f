//! Where time goes: an observer of task states that adds each stretch of time, cut to the window, to the right
//! figure, and feeds the fluid schedules.

mod cgroups;
mod events;
mod finish;
mod windows;

pub(crate) use finish::Accounts;

use crate::counters::Tracks;
use crate::idle_waiting::IdleWaiting;
use crate::machine_metrics::PolicyCost;
use crate::services::Services;
use crate::states::{Cause, Change, Observer, State, States, Task, TimeKind};
use crate::{CpuMetrics, Figures, MachineMetrics, Options, ParamChange, Samples, Series};
use fairground_trace::{CallbackKind, CgroupId, Event, TaskId, Trace};

/// The account of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskAccount {
    /// From when on its time is not yet accounted for, in the window, ns.
    since_ns: u64,
    nice_known: bool,
    /// It has been in the fluid schedules, where its weight counts.
    was_queued: bool,
    pub(crate) weight: u32,
    /// Its cgroup, by number in the trace; 0 where the trace has none.
    pub(crate) cgroup: usize,
    /// Its figures in the cgroups that it left, in order; complete at the end for a task that moved.
    pub(crate) pieces: Vec<(usize, Figures)>,
    /// Run time in those, ns.
    moved_run_ns: u64,
    /// The restriction under which it is entered in the idle-while-waiting count.
    restriction: Option<usize>,
    migrations: u64,
    pub(crate) group: usize,
    /// Waits that are wake-up latencies, too, as most are: missing in both sets of the figures until these are
    /// complete.
    woken_waits: Samples,
    /// At the end: it was seen on a CPU.
    pub(crate) has_run: bool,
    /// At the end: how long it has been waiting for a CPU, ns.
    pub(crate) waiting_ns: Option<u64>,
    pub(crate) figures: Figures,
}

/// The account of a CPU.
#[derive(Clone, Debug)]
struct CpuAccount {
    /// From when on its time is not yet accounted for, in the window, ns.
    since_ns: u64,
    metrics: CpuMetrics,
}

/// All accounts.
#[derive(Clone, Debug)]
pub(crate) struct Accounting {
    /// Whether [`Event::insns`] is measured.
    counts_insns: bool,
    has_cgroups: bool,
    weights: Options,
    pub(crate) window_ns: (u64, u64),
    now_ns: u64,
    /// The same, cut to the window.
    at_ns: u64,
    /// Whether what happens now lies in the window.
    counting: bool,
    services: Services,
    waste: IdleWaiting,
    series: Option<Box<Series>>,
    /// Numbers over time, where they are wanted.
    pub(crate) tracks: Option<Box<Tracks>>,
    /// `cpu.weight` of the cgroups, now.
    cgroup_weights: Vec<Option<u32>>,
    cpus: Vec<CpuAccount>,
    tasks: Vec<TaskAccount>,
    callbacks: [u64; CallbackKind::ALL.len()],
    cost: PolicyCost,
    migrations: u64,
    /// From the trace's begin on: an event showed a wake-up.
    saw_wakeups: bool,
    saw_switches: bool,
    /// A task of which nothing was known came onto a CPU that idled: something woke it.
    came_from_nowhere: bool,
    machine: MachineMetrics,
    params: Vec<ParamChange>,
}

impl Accounting {
    /// Accounts of a trace that begins at `now_ns`. `groups[task]` is the number of the task's group, below
    /// `group_count`.
    pub(crate) fn new(
        trace: &Trace,
        options: &Options,
        (now_ns, window_ns): (u64, (u64, u64)),
        groups: &[usize],
        group_count: usize,
    ) -> Self {
        let weights = options.weights.map(|weight| weight.max(1));
        let mut accounting = Self {
            counts_insns: trace.counts_insns,
            has_cgroups: !trace.cgroups().is_empty(),
            weights: options.clone(),
            window_ns,
            now_ns,
            at_ns: 0,
            counting: false,
            services: Services::new(trace.cpus, &weights, window_ns.0),
            waste: IdleWaiting::new(trace.cpus, window_ns.0),
            series: Series::new(window_ns, options.interval_ns, group_count).map(Box::new),
            tracks: None,
            cgroup_weights: Vec::new(),
            cpus: Vec::new(),
            tasks: Vec::new(),
            callbacks: [0; CallbackKind::ALL.len()],
            cost: PolicyCost::default(),
            migrations: 0,
            saw_wakeups: false,
            saw_switches: false,
            came_from_nowhere: false,
            machine: MachineMetrics::default(),
            params: Vec::new(),
        };
        accounting.be_at(now_ns);
        accounting.set_up_cgroups(trace);
        for cpu in 0..trace.cpus {
            let metrics = CpuMetrics { cpu, ..CpuMetrics::default() };
            accounting.cpus.push(CpuAccount { since_ns: accounting.at_ns, metrics });
            accounting.waste.set_idle(cpu, options.starts_idle);
        }
        accounting.add_tasks(trace, groups, now_ns);
        accounting
    }

    /// Enters the tasks of the trace that are new; nothing is known of them since `since_ns`.
    pub(crate) fn add_tasks(&mut self, trace: &Trace, groups: &[usize], since_ns: u64) {
        let window_ns = self.window_ns.1 - self.window_ns.0;
        let known = self.tasks.len();
        for (info, group) in trace.tasks().iter().zip(groups).skip(known) {
            let weight = self.weights.weight(info.nice);
            let figures = fresh_figures(window_ns, trace.cpus);
            let cgroups = trace.cgroups().len();
            let cgroup = info.cgroup.map(CgroupId::index).filter(|cgroup| *cgroup < cgroups);
            let cgroup = cgroup.unwrap_or(0);
            self.services.add_task(weight, cgroup);
            self.tasks.push(TaskAccount {
                since_ns: self.window_time(since_ns),
                nice_known: info.nice.is_some() || info.rt_prio.is_some(),
                was_queued: false,
                weight,
                cgroup,
                pieces: Vec::new(),
                moved_run_ns: 0,
                restriction: self.waste.restriction(info.allowed_cpus.as_ref()),
                migrations: 0,
                group: *group,
                woken_waits: Samples::default(),
                has_run: false,
                waiting_ns: None,
                figures,
            });
        }
    }

    /// A task that was entered before had this nice value from its first appearance on. `None` when that comes too
    /// late.
    pub(crate) fn set_first_nice(&mut self, id: TaskId, nice: i8) -> Option<()> {
        let weight = self.weights.weight(Some(nice));
        let task = self.tasks.get_mut(id.index());
        let task = task.filter(|task| !(task.was_queued || task.nice_known))?;
        (task.weight, task.nice_known) = (weight, true);
        self.services.weigh(id.index(), weight);
        Some(())
    }

    #[inline(always)]
    fn be_at(&mut self, time_ns: u64) {
        self.now_ns = time_ns;
        self.at_ns = self.window_time(time_ns);
        self.counting = time_ns >= self.window_ns.0;
    }

    #[inline(always)]
    fn window_time(&self, time_ns: u64) -> u64 {
        time_ns.max(self.window_ns.0).min(self.window_ns.1)
    }

    /// The time of a task since its last change.
    #[inline(always)]
    fn close_task(&mut self, id: usize, kind: TimeKind) {
        let account = &mut self.tasks[id];
        let (from_ns, to_ns) = (account.since_ns, self.at_ns);
        if to_ns <= from_ns {
            return;
        }
        account.since_ns = to_ns;
        let ns = to_ns - from_ns;
        let figures = &mut account.figures;
        match kind {
            TimeKind::Run => figures.run_ns += ns,
            TimeKind::Queued => figures.wait_ns += ns,
            TimeKind::Waking => {
                figures.wait_ns += ns;
                figures.waking_ns += ns;
            }
            TimeKind::Preempted => {
                figures.wait_ns += ns;
                figures.preempted_wait_ns += ns;
            }
            TimeKind::Sleep => figures.sleep_ns += ns,
            TimeKind::Absent => figures.absent_ns += ns,
            TimeKind::Unknown => figures.unknown_ns += ns,
        }
        if let Some(series) = &mut self.series {
            series.add_time(account.group, kind, (from_ns, to_ns));
        }
    }

    /// The time of a CPU since its last change; `running`: what ran, where that is known.
    #[inline(always)]
    fn close_cpu(&mut self, cpu: u32, running: Option<TaskId>) {
        let account = &mut self.cpus[cpu as usize];
        let (from_ns, to_ns) = (account.since_ns, self.at_ns);
        account.since_ns = to_ns;
        let ns = to_ns.saturating_sub(from_ns);
        match running {
            Some(TaskId::IDLE) => {
                account.metrics.idle_ns += ns;
                if let Some(series) = &mut self.series {
                    series.spread(from_ns, to_ns, |interval, ns| {
                        interval.idle_ns = interval.idle_ns.saturating_add(ns);
                    });
                }
            }
            Some(_) => account.metrics.run_ns += ns,
            None => account.metrics.unknown_ns += ns,
        }
    }

    /// Moves a task in the fluid schedules and in the count of those that wait.
    #[inline(always)]
    fn requeue(&mut self, task: &Task, change: &Change) {
        let id = task.id.index();
        let (from, to) = (change.from, task.state);
        let stays = from.is_queued() && to.is_queued() && change.from_cpu == task.cpu;
        if from.is_queued() {
            self.read_services(id, stays);
        }
        if to.is_queued() && !stays {
            self.tasks[id].was_queued = true;
            self.services.join(self.at_ns, id, task.cpu);
        }
        let restriction = self.tasks[id].restriction;
        if from == State::Waiting {
            self.waste.remove(restriction, change.from_cpu);
            self.note_queue(change.from_cpu, -1);
        }
        if to == State::Waiting {
            self.waste.add(restriction, task.cpu);
            self.note_queue(task.cpu, 1);
        }
    }

    /// Reads the fluid services of a queued task up to now. It is in no queue any more then, unless it stays.
    #[inline(always)]
    fn read_services(&mut self, id: usize, stays: bool) {
        let account = &self.tasks[id];
        let run_ns = account.figures.run_ns + account.moved_run_ns;
        if stays {
            self.services.stay(self.at_ns, id, run_ns);
        } else {
            self.services.leave(self.at_ns, id, run_ns);
        }
        if let Some(tracks) = &mut self.tracks {
            tracks.lag(self.at_ns, id, self.services.lag_ns(id, run_ns));
        }
    }

    /// So many more tasks wait for a CPU.
    #[inline(always)]
    fn note_queue(&mut self, cpu: u32, more: i64) {
        if let Some(tracks) = &mut self.tracks {
            tracks.queue(self.at_ns, cpu, more);
        }
    }

    /// A stretch on a CPU ends, of which the begin is known where it has a length.
    #[inline(always)]
    fn count_slice(&mut self, id: usize, slice_ns: Option<u64>, preempted: bool) {
        let account = &mut self.tasks[id];
        let figures = &mut account.figures;
        match slice_ns {
            Some(slice_ns) => figures.slices.push(slice_ns),
            None => figures.slices.censored += 1,
        }
        let involuntary = u64::from(preempted);
        figures.involuntary_switches += involuntary;
        figures.voluntary_switches += 1 - involuntary;
        if let Some(series) = &mut self.series {
            let interval = series.at(self.now_ns);
            slice_ns.into_iter().for_each(|slice_ns| interval.slices.push(slice_ns));
            interval.involuntary_switches += involuntary;
            interval.voluntary_switches += 1 - involuntary;
            interval.groups[account.group].involuntary_switches += involuntary;
        }
    }

    /// A stretch on a CPU begins, and with it a wait ends, where one was known.
    #[inline(always)]
    fn count_wait(&mut self, id: usize, wait_ns: Option<u64>, latency_ns: Option<u64>) {
        let account = &mut self.tasks[id];
        let figures = &mut account.figures;
        match wait_ns {
            None => figures.waits.censored += 1,
            _ if wait_ns == latency_ns => {
                wait_ns.into_iter().for_each(|wait_ns| account.woken_waits.push(wait_ns));
            }
            Some(wait_ns) => {
                figures.waits.push(wait_ns);
                let latency_ns = latency_ns.into_iter();
                latency_ns.for_each(|latency_ns| figures.wakeup_latency.push(latency_ns));
            }
        }
        if let (Some(series), Some(latency_ns)) = (&mut self.series, latency_ns) {
            series.at(self.now_ns).wakeup_latency.push(latency_ns);
        }
    }

    #[inline(always)]
    fn count(&mut self, task: &Task, change: &Change) {
        let id = task.id.index();
        let figures = &mut self.tasks[id].figures;
        match change.cause {
            Cause::SwitchIn { wait_ns, latency_ns, missed_wakeup, changed_cpu } => {
                figures.switch_ins += 1;
                figures.cpu_changes += u64::from(changed_cpu);
                figures.wakeup_latency.censored += u64::from(missed_wakeup);
                return self.count_wait(id, wait_ns, latency_ns);
            }
            Cause::SwitchOut { .. } | Cause::Exit | Cause::Loss if change.from.waits() => {
                figures.waits.censored += 1;
                figures.wakeup_latency.censored += u64::from(change.was_woken);
            }
            Cause::Loss | Cause::Contradiction => figures.slices.censored += 1,
            _ => {}
        }
        if let Cause::SwitchOut { left, slice_ns } = change.cause {
            self.count_slice(id, slice_ns, left.is_runnable());
        }
    }
}

/// Those of a task that has done nothing yet.
fn fresh_figures(window_ns: u64, cpus: u32) -> Figures {
    Figures { window_ns, cpus, tasks: 1, wakeups: Some(0), ..Figures::default() }
}

impl Observer for Accounting {
    #[inline(always)]
    fn on_time(&mut self, now_ns: u64) {
        if now_ns <= self.now_ns {
            return;
        }
        self.be_at(now_ns);
        let wasted = self.waste.advance(self.at_ns);
        if wasted.cpus > 0
            && let Some(series) = &mut self.series
        {
            series.spread(wasted.from_ns, wasted.to_ns, |interval, ns| {
                interval.idle_while_waiting_ns += ns.saturating_mul(wasted.cpus);
            });
        }
    }

    #[inline(always)]
    fn on_event(&mut self, trace: &Trace, states: &States, event: &Event) {
        self.note(trace, states, event);
    }

    #[inline(always)]
    fn on_cpu(&mut self, cpu: u32, before: Option<TaskId>, after: Option<TaskId>, disowned: bool) {
        self.close_cpu(cpu, before.filter(|_| !disowned));
        self.waste.set_idle(cpu, after == Some(TaskId::IDLE));
    }

    #[inline(always)]
    fn on_change(&mut self, task: &Task, change: &Change) {
        if self.counting {
            self.count(task, change);
        }
        self.close_task(task.id.index(), change.time);
        self.requeue(task, change);
    }
}
