//! One pass over the events: each is turned into changes of the state of tasks and CPUs.
//!
//! Here are the walk and its end; [`switches`] and [`wakeups`] say what each event means, [`accounting`] where the time goes, and
//! [`ledger`] has what they all enter changes in.

mod accounting;
mod cgroups;
mod ledger;
mod switches;
mod wakeups;
mod windows;

use crate::counters::Tracks;
use crate::idle_waiting::IdleWaiting;
use crate::machine_metrics::PolicyCost;
use crate::services::{Services, What};
use crate::task_scan::{State, TaskScan};
use crate::{
    CpuMetrics, Figures, Irregularities, MachineMetrics, Options, ParamChange, Samples, Series,
};
use fairground_trace::{CallbackKind, CgroupId, Event, EventKind, TaskId, Trace};
use ledger::Ledger;

#[derive(Clone, Debug)]
pub(crate) struct CpuScan {
    /// The task that runs, [`TaskId::IDLE`] for none; `None`: that is not known.
    pub(crate) running: Option<TaskId>,
    /// From when on its time is not yet accounted for, in the window, ns.
    since_ns: u64,
    metrics: CpuMetrics,
}

/// The state of a pass.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// Whether [`Event::insns`] is measured.
    counts_insns: bool,
    has_cgroups: bool,
    starts_idle: bool,
    weights: Options,
    /// The last instant of the trace: an event there still belongs to a window that ends there.
    trace_end_ns: u64,
    /// The trace has no `sched_wakeup`: a task is queued as soon as it is asked to wake.
    queued_at_waking: bool,
    pub(crate) ledger: Ledger,
    /// `cpu.weight` of the cgroups, now.
    cgroup_weights: Vec<Option<u32>>,
    pub(crate) cpus: Vec<CpuScan>,
    callbacks: [u64; CallbackKind::ALL.len()],
    cost: PolicyCost,
    migrations: u64,
    pub(crate) tasks: Vec<TaskScan>,
    machine: MachineMetrics,
    irregularities: Irregularities,
    params: Vec<ParamChange>,
}

/// What a finished pass leaves.
pub(crate) struct Scanned {
    pub(crate) window_ns: (u64, u64),
    pub(crate) tasks: Vec<TaskScan>,
    pub(crate) cgroup_weights: Vec<Option<u32>>,
    pub(crate) cpus: Vec<CpuMetrics>,
    pub(crate) series: Option<Series>,
    pub(crate) machine: MachineMetrics,
    pub(crate) irregularities: Irregularities,
    pub(crate) params: Vec<ParamChange>,
    pub(crate) tracks: Option<Tracks>,
}

impl Scan {
    /// The stream has `sched_wakeup`, whether or not one came yet.
    pub(crate) fn has_wakeups(&mut self) {
        self.queued_at_waking = false;
    }

    /// `groups[task]` is the number of the task's group, below `group_count`.
    pub(crate) fn new(
        trace: &Trace,
        options: &Options,
        groups: &[usize],
        group_count: usize,
    ) -> Self {
        let (trace_start_ns, trace_end_ns) = extent(trace);
        let (start_ns, end_ns) = options.window.unwrap_or((trace_start_ns, trace_end_ns));
        let start_ns = start_ns.clamp(trace_start_ns, trace_end_ns);
        let window_ns = (start_ns, end_ns.clamp(start_ns, trace_end_ns));
        let weights = options.weights.map(|weight| weight.max(1));
        let services = Services::new(trace.cpus, &weights, window_ns.0);
        let waste = IdleWaiting::new(trace.cpus, window_ns.0);
        let series = Series::new(window_ns, options.interval_ns, group_count);
        let mut scan = Self {
            counts_insns: trace.counts_insns,
            has_cgroups: !trace.cgroups().is_empty(),
            starts_idle: options.starts_idle,
            weights: options.clone(),
            trace_end_ns,
            queued_at_waking: !has_wakeups(trace),
            ledger: Ledger::new(window_ns, trace_start_ns, services, waste, series),
            cgroup_weights: Vec::new(),
            cpus: Vec::new(),
            callbacks: [0; CallbackKind::ALL.len()],
            cost: PolicyCost::default(),
            migrations: 0,
            tasks: Vec::new(),
            machine: MachineMetrics::default(),
            irregularities: Irregularities { loss: trace.loss.clone(), ..Default::default() },
            params: Vec::new(),
        };
        scan.set_up_cgroups(trace);
        scan.set_up_cpus(trace.cpus);
        scan.set_up_tasks(trace, groups, trace_start_ns);
        scan
    }

    fn set_up_cpus(&mut self, cpus: u32) {
        let running = self.starts_idle.then_some(TaskId::IDLE);
        for cpu in 0..cpus {
            let metrics = CpuMetrics { cpu, ..CpuMetrics::default() };
            self.cpus.push(CpuScan { running, since_ns: self.ledger.at_ns, metrics });
            self.ledger.waste.set_idle(cpu, self.starts_idle);
        }
    }

    /// Enters the tasks of the trace that are not known yet; nothing is known of them since `since_ns`.
    pub(crate) fn set_up_tasks(&mut self, trace: &Trace, groups: &[usize], since_ns: u64) {
        let window_ns = self.ledger.window_ns.1 - self.ledger.window_ns.0;
        let known = self.tasks.len();
        for (info, group) in trace.tasks().iter().zip(groups).skip(known) {
            let weight = self.weights.weight(info.nice);
            let figures = Figures { window_ns, tasks: 1, cpus: trace.cpus, ..Figures::default() };
            let cgroups = trace.cgroups().len();
            let cgroup = info.cgroup.map(CgroupId::index).filter(|cgroup| *cgroup < cgroups);
            let cgroup = cgroup.unwrap_or(0);
            self.ledger.change(What::Enter { weight, cgroup: cgroup as u32 });
            self.tasks.push(TaskScan {
                id: self.tasks.len() as u32,
                cgroup,
                pieces: Vec::new(),
                moved_run_ns: 0,
                state: State::Initial,
                since_ns: self.ledger.window_time(since_ns),
                cpu: 0,
                ran_on: None,
                stretch_from_ns: 0,
                wait_from_ns: 0,
                preempted: false,
                woken_ns: None,
                early_waking_ns: None,
                nice_known: info.nice.is_some(),
                was_queued: false,
                weight,
                restriction: self.ledger.waste.restriction(info.allowed_cpus.as_ref()),
                migrations: 0,
                group: *group,
                woken_waits: Samples::default(),
                waiting_ns: None,
                figures,
            });
        }
    }

    pub(crate) fn weight_of(&self, nice: i8) -> u32 {
        self.weights.weight(Some(nice))
    }

    /// Reads all events up to the end of the window.
    pub(crate) fn run(mut self, trace: &Trace) -> Scanned {
        for event in trace.events() {
            let time_ns = event.time_ns.max(self.ledger.now_ns);
            let end_ns = self.ledger.window_ns.1;
            let beyond = time_ns > end_ns || (time_ns == end_ns && time_ns < self.trace_end_ns);
            if beyond {
                break;
            }
            self.take(trace, &event);
        }
        self.finish()
    }

    /// What happened next.
    #[inline(always)]
    pub(crate) fn take(&mut self, trace: &Trace, event: &Event) {
        self.advance(event.time_ns);
        if is_in_range(trace, event) {
            self.note(trace, event);
        } else {
            self.irregularities.out_of_range += 1;
        }
    }

    /// What happened next, of a recording whose reader has seen to it that events name nothing that is not there.
    #[inline(always)]
    pub(crate) fn take_sound(&mut self, trace: &Trace, event: &Event) {
        debug_assert!(is_in_range(trace, event), "{event:?} of {} CPUs", trace.cpus);
        self.advance(event.time_ns);
        self.note(trace, event);
    }

    #[inline(always)]
    fn advance(&mut self, time_ns: u64) {
        if time_ns < self.ledger.now_ns {
            self.irregularities.clock_jumps += 1;
        } else {
            self.ledger.advance(time_ns);
        }
    }

    #[inline(always)]
    fn note(&mut self, trace: &Trace, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.on_switch(event, prev, prev_state, next);
            }
            EventKind::Waking { task, target_cpu, .. } => self.on_waking(task, target_cpu),
            _ => self.take_rarer(trace, event),
        }
    }

    /// The kinds that are not most of all events.
    #[inline(never)]
    fn take_rarer(&mut self, trace: &Trace, event: &Event) {
        match event.kind {
            EventKind::Switch { .. } | EventKind::Waking { .. } => {}
            EventKind::Wakeup { task, target_cpu } => {
                self.on_wakeup(task, target_cpu, false, event.insns);
            }
            EventKind::WakeupNew { task, target_cpu } => {
                self.on_wakeup(task, target_cpu, true, event.insns);
            }
            EventKind::Migrate { task, to_cpu, .. } => self.on_migrate(task, to_cpu),
            EventKind::Fork { child, .. } => self.on_fork(child),
            EventKind::Exit { task } => self.on_exit(task),
            EventKind::Nice { task, nice } => self.on_nice(task, nice),
            EventKind::Tick { task } => {
                if self.ledger.counting {
                    self.machine.ticks += 1;
                    self.cost.tick.add(event.insns);
                    self.tasks[task.index()].figures.ticks += 1;
                }
            }
            EventKind::Callback { kind, .. } => {
                self.callbacks[kind as usize] += u64::from(self.ledger.counting);
            }
            EventKind::Param { label } => self.on_param(trace.label(label).to_owned()),
            // What waits look like is for the contention analysis.
            EventKind::Stack { .. } => {}
            EventKind::Print { .. } => self.machine.prints += u64::from(self.ledger.counting),
            EventKind::Lost { .. } => self.on_lost(event.cpu),
            EventKind::CgroupMove { task, to, .. } => self.on_cgroup_move(task, to),
            EventKind::CgroupWeight { cgroup, weight } => self.on_cgroup_weight(cgroup, weight),
            EventKind::ContentionBegin { .. } | EventKind::ContentionEnd { .. } => {}
            EventKind::Mark { task, .. } => {
                self.tasks[task.index()].figures.marks += u64::from(self.ledger.counting);
            }
        }
    }

    fn on_param(&mut self, text: String) {
        if !self.ledger.counting {
            return;
        }
        let change = ParamChange { time_ns: self.ledger.now_ns, text };
        if let Some(series) = &mut self.ledger.series {
            series.at(self.ledger.now_ns).params.push(change.clone());
        }
        self.params.push(change);
    }

    /// After lost events neither the CPU's state nor that of its task is known.
    fn on_lost(&mut self, cpu: u32) {
        self.ledger.lost_ns = self.ledger.now_ns;
        self.ledger.close_cpu(&mut self.cpus[cpu as usize], false);
        if let Some(task) = self.cpus[cpu as usize].running.filter(|task| !task.is_idle()) {
            self.tasks[task.index()].figures.slices.censored += u64::from(self.ledger.counting);
            self.enter(task.index(), State::Unknown, cpu, None);
        }
        self.cpus[cpu as usize].running = None;
        self.ledger.waste.set_idle(cpu, false);
    }

    /// Ends the pass at the window's end.
    pub(crate) fn finish(mut self) -> Scanned {
        self.ledger.advance(self.ledger.window_ns.1);
        self.ledger.waste.finish();
        for id in 1..self.tasks.len() {
            self.finish_task(id);
            self.join_pieces(id);
        }
        self.cpus.iter_mut().for_each(|cpu| self.ledger.close_cpu(cpu, false));
        self.finish_machine();
        Scanned {
            window_ns: self.ledger.window_ns,
            tasks: self.tasks,
            cgroup_weights: self.cgroup_weights,
            cpus: self.cpus.into_iter().map(|cpu| cpu.metrics).collect(),
            series: self.ledger.series.map(|series| *series),
            machine: self.machine,
            irregularities: self.irregularities,
            params: self.params,
            tracks: self.ledger.tracks.map(|tracks| *tracks),
        }
    }

    fn finish_machine(&mut self) {
        let machine = &mut self.machine;
        machine.window_ns = self.ledger.window_ns.1 - self.ledger.window_ns.0;
        machine.cpus = self.cpus.len() as u32;
        for cpu in &self.cpus {
            machine.switches += cpu.metrics.switches;
            machine.run_ns = machine.run_ns.saturating_add(cpu.metrics.run_ns);
            machine.idle_ns = machine.idle_ns.saturating_add(cpu.metrics.idle_ns);
            machine.unknown_ns = machine.unknown_ns.saturating_add(cpu.metrics.unknown_ns);
        }
        for task in self.tasks.iter().skip(1) {
            machine.voluntary_switches += task.figures.voluntary_switches;
            machine.involuntary_switches += task.figures.involuntary_switches;
            machine.wakeups += task.figures.wakeups;
            machine.cpu_changes += task.figures.cpu_changes;
            machine.slices.merge(&task.figures.slices);
            machine.wakeup_latency.merge(&task.figures.wakeup_latency);
        }
        let recorded = self.migrations > 0 || machine.cpu_changes == 0;
        machine.migrations = recorded.then_some(self.migrations);
        for task in &mut self.tasks {
            task.figures.migrations = recorded.then_some(task.migrations);
            for (_, piece) in task.pieces.iter_mut().filter(|_| !recorded) {
                piece.migrations = None;
            }
        }
        machine.idle_while_waiting_ns = self.ledger.waste.total_ns;
        machine.idle_while_waiting_longest_ns = self.ledger.waste.longest_ns;
        machine.policy = self.counts_insns.then_some(self.cost);
        let ran = CallbackKind::ALL.into_iter().zip(self.callbacks).filter(|(_, n)| *n > 0);
        machine.callbacks = ran.collect();
    }
}

/// The first and the last instant of a trace.
fn extent(trace: &Trace) -> (u64, u64) {
    let last = trace.len().checked_sub(1).and_then(|last| trace.get(last));
    let first_ns = trace.get(0).map_or(trace.start_ns, |first| first.time_ns);
    let start_ns = trace.start_ns.min(first_ns);
    let last_ns = last.map_or(start_ns, |last| last.time_ns);
    (start_ns, trace.end_ns.max(last_ns).max(start_ns))
}

fn has_wakeups(trace: &Trace) -> bool {
    trace.events().any(|event| matches!(event.kind, EventKind::Wakeup { .. }))
}

/// Whether every task, CPU and control group that an event names is one of the trace's.
#[inline(always)]
pub(crate) fn is_in_range(trace: &Trace, event: &Event) -> bool {
    let task = |task: TaskId| task.index() < trace.tasks().len();
    let cpu = |cpu: u32| cpu < trace.cpus;
    cpu(event.cpu)
        && match event.kind {
            EventKind::Switch { prev, next, .. } => task(prev) && task(next),
            EventKind::Waking { task: t, target_cpu, .. }
            | EventKind::Wakeup { task: t, target_cpu }
            | EventKind::WakeupNew { task: t, target_cpu } => task(t) && cpu(target_cpu),
            EventKind::Migrate { task: t, from_cpu, to_cpu } => {
                task(t) && cpu(from_cpu) && cpu(to_cpu)
            }
            EventKind::Fork { child: t, .. }
            | EventKind::Exit { task: t }
            | EventKind::Nice { task: t, .. }
            | EventKind::Tick { task: t }
            | EventKind::Mark { task: t, .. }
            | EventKind::ContentionEnd { task: t, .. }
            | EventKind::Stack { task: t, .. }
            | EventKind::Callback { task: t, .. } => task(t),
            EventKind::ContentionBegin { task: t, holder, .. } => task(t) && task(holder),
            EventKind::CgroupMove { task: t, from, to } => {
                let known = |id: CgroupId| id.index() < trace.cgroups().len();
                task(t) && known(from) && known(to)
            }
            EventKind::CgroupWeight { cgroup, .. } => cgroup.index() < trace.cgroups().len(),
            EventKind::Param { .. } | EventKind::Print { .. } | EventKind::Lost { .. } => true,
        }
}
