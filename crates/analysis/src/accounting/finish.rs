//! The end of the window: open times are closed, and sums over tasks and CPUs are made.

use super::{Accounting, TaskAccount};
use crate::counters::Tracks;
use crate::states::{Observer, State, States, Task, TimeKind};
use crate::{CpuMetrics, Irregularities, MachineMetrics, ParamChange, Samples, Series};
use fairground_trace::CallbackKind;

/// The accounts of a finished pass.
pub(crate) struct Accounts {
    pub(crate) window_ns: (u64, u64),
    pub(crate) tasks: Vec<TaskAccount>,
    pub(crate) cgroup_weights: Vec<Option<u32>>,
    pub(crate) cpus: Vec<CpuMetrics>,
    pub(crate) series: Option<Series>,
    pub(crate) machine: MachineMetrics,
    pub(crate) irregularities: Irregularities,
    pub(crate) params: Vec<ParamChange>,
    pub(crate) tracks: Option<Tracks>,
}

impl TaskAccount {
    /// No more samples come.
    pub(super) fn complete_samples(&mut self) {
        let mut woken_waits = std::mem::take(&mut self.woken_waits);
        woken_waits.seal();
        self.figures.waits.merge(&woken_waits);
        self.figures.wakeup_latency.merge(&woken_waits);
        self.figures.samples_mut().into_iter().for_each(Samples::seal);
    }
}

impl Accounting {
    /// Ends the pass at the window's end.
    pub(crate) fn finish(mut self, mut states: States) -> Accounts {
        self.on_time(self.window_ns.1);
        self.waste.finish();
        for task in states.tasks.iter().skip(1) {
            self.leave_wait_open(task, states.lost_ns);
            self.finish_task(task, states.starts_idle);
            let account = &self.tasks[task.id.index()];
            let assumed = !account.nice_known && self.services.served(task.id.index()).any;
            states.irregularities.assumed_nice += u64::from(assumed);
            self.join_pieces(task.id.index());
        }
        for (number, cpu) in states.cpus.iter().enumerate() {
            self.close_cpu(number as u32, cpu.running);
        }
        self.finish_machine();
        if !self.saw_switches && !states.starts_idle {
            self.lack_switches();
            states.irregularities.no_switches = true;
        }
        if states.irregularities.loss.lost_events > 0 {
            let all_ns = u128::from(self.machine.window_ns) * u128::from(self.machine.cpus);
            let unknown = u128::from(self.machine.unknown_ns) * 1_000_000;
            states.irregularities.unknown_ppm = unknown.checked_div(all_ns).unwrap_or(0) as u64;
        }
        if !self.saw_wakeups && self.wakes_unseen(&states) {
            self.lack_wakeups();
        }
        Accounts {
            window_ns: self.window_ns,
            tasks: self.tasks,
            cgroup_weights: self.cgroup_weights,
            cpus: self.cpus.into_iter().map(|cpu| cpu.metrics).collect(),
            series: self.series.map(|series| *series),
            machine: self.machine,
            irregularities: states.irregularities,
            params: self.params,
            tracks: self.tracks.map(|tracks| *tracks),
        }
    }

    /// The window ends while the task waits: it has waited for at least so long.
    fn leave_wait_open(&mut self, task: &Task, lost_ns: u64) {
        let account = &mut self.tasks[task.id.index()];
        account.has_run = task.ran_on.is_some();
        if !task.state.waits() {
            return;
        }
        // Before a loss the task may have run unseen.
        let since = |begin_ns: u64| self.window_ns.1.saturating_sub(begin_ns.max(lost_ns));
        let waiting_ns = since(task.since_ns);
        account.waiting_ns = Some(waiting_ns);
        account.figures.waits.censor_at(waiting_ns);
        if let Some(woken_ns) = task.woken_ns {
            account.figures.wakeup_latency.censor_at(since(woken_ns));
        }
    }

    fn finish_task(&mut self, task: &Task, starts_idle: bool) {
        let id = task.id.index();
        let never_seen = task.state == State::Initial && starts_idle;
        self.close_task(id, if never_seen { TimeKind::Absent } else { task.time_kind() });
        if task.state.is_queued() {
            self.read_services(id, true);
        }
        let account = &mut self.tasks[id];
        let figures = &mut account.figures;
        figures.slices.censored += u64::from(task.state == State::Running);
        let served = self.services.served(id);
        figures.fluid_ns = served.machine_ns;
        (figures.lag_max_ns, figures.lead_max_ns) = (served.lag_max_ns, served.lead_max_ns);
        // The scheduler decides how a group's weight is spread over CPUs: with groups this figure is not defined.
        if !self.has_cgroups {
            figures.fluid_on_cpu_ns = served.cpu_ns;
        }
        account.complete_samples();
    }

    fn finish_machine(&mut self) {
        let (machine, mut wakeups) = (&mut self.machine, 0);
        machine.window_ns = self.window_ns.1 - self.window_ns.0;
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
            wakeups += task.figures.wakeups.unwrap_or(0);
            machine.cpu_changes += task.figures.cpu_changes;
            machine.slices.merge(&task.figures.slices);
            machine.wakeup_latency.merge(&task.figures.wakeup_latency);
        }
        machine.wakeups = Some(wakeups);
        let recorded = self.migrations > 0 || machine.cpu_changes == 0;
        machine.migrations = recorded.then_some(self.migrations);
        for task in &mut self.tasks {
            task.figures.migrations = recorded.then_some(task.migrations);
            for (_, piece) in task.pieces.iter_mut().filter(|_| !recorded) {
                piece.migrations = None;
            }
        }
        machine.idle_while_waiting_ns = self.waste.total_ns;
        machine.idle_while_waiting_longest_ns = self.waste.longest_ns;
        machine.policy = self.counts_insns.then_some(self.cost);
        let ran = CallbackKind::ALL.into_iter().zip(self.callbacks).filter(|(_, n)| *n > 0);
        machine.callbacks = ran.collect();
    }

    /// Nothing shows what ran when: switches were not recorded.
    fn lack_switches(&mut self) {
        self.machine.lacks_switches = true;
        self.machine.wakeup_latency = Samples::default();
        self.machine.migrations = self.machine.migrations.filter(|moves| *moves > 0);
        let moved = self.machine.migrations.is_some();
        self.series = None;
        for task in &mut self.tasks {
            task.figures.lacks_switches = true;
            task.figures.migrations = task.figures.migrations.filter(|_| moved);
            task.figures
                .samples_mut()
                .into_iter()
                .for_each(|samples| *samples = Samples::default());
            task.waiting_ns = None;
            for (_, piece) in &mut task.pieces {
                piece.lacks_switches = true;
                piece.migrations = piece.migrations.filter(|_| moved);
            }
        }
    }

    /// Whether tasks were woken, or may have been, although no event shows it.
    fn wakes_unseen(&self, states: &States) -> bool {
        let missed = states.irregularities.missed_wakeups > 0;
        missed || self.came_from_nowhere || self.machine.lacks_switches
    }

    /// Wake-ups were not recorded.
    fn lack_wakeups(&mut self) {
        self.machine.wakeups = None;
        for task in &mut self.tasks {
            task.figures.wakeups = None;
            task.pieces.iter_mut().for_each(|(_, piece)| piece.wakeups = None);
        }
        let intervals = self.series.iter_mut().flat_map(|series| &mut series.intervals);
        intervals.for_each(|interval| interval.wakeups = None);
    }
}
