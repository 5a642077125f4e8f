//! The decisions of a recording: for each CPU its switches, and the events that may have led to them.

use super::deferred::{DeferredCharge, DeferredFinder};
use super::kept::{KeptFinder, KeptSeen};
use super::passes::{PassFinder, PassSeen};
use super::reads::{ClockRead, ReadFinder};
use super::vanished::VanishedFinder;
use super::yields::{YieldFinder, Yielded};
use fairground_trace::{Call, CallbackKind, Event, EventKind, TaskId, Trace};

/// A wake-up or a tick decides about what runs on a CPU at most so long before the switch, ns: the shortest tick.
const REACTION_NS_MAX: u64 = 1_000_000;

/// The same where no switch of the recording shows it, ns.
const REACTION_NS_DEFAULT: u64 = 50_000;

/// Wake-ups of idle CPUs that are enough to tell how soon they react.
const IDLE_MIN: usize = 8;

/// A recorded decision whether the running task stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedPreemption {
    /// It left for another one, still runnable, and nothing else lies between.
    Preempts,
    /// It ran on.
    Stays,
    /// It left, and something else may have been the reason: another wake-up, a tick, its own block.
    Unclear,
}

/// A switch of a CPU.
#[derive(Clone, Copy, Debug)]
struct Switched {
    index: usize,
    time_ns: u64,
    prev: TaskId,
    /// The task that left, not the idle task, was still runnable.
    preempted: bool,
    /// The idle task left.
    from_idle: bool,
}

/// An event that may make what runs on a CPU leave.
#[derive(Clone, Copy, Debug)]
struct Trigger {
    index: usize,
    time_ns: u64,
    /// In an interrupt of that CPU, which is over before the CPU schedules.
    in_interrupt: bool,
}

/// The decisions of a recording.
#[derive(Debug)]
pub(super) struct Timeline {
    /// By CPU.
    switches: Vec<Vec<Switched>>,
    /// By task: the switches to it, and their CPUs.
    runs: Vec<Vec<(usize, u32)>>,
    /// Passes that callbacks show, by their first events.
    pub(super) passes: Vec<PassSeen>,
    /// Charges that belong to wake-ups before them; none in a simulated recording, whose stamps are the clock.
    pub(super) deferred: Vec<DeferredCharge>,
    /// Wake-ups that read the clock and charge nothing; none in a simulated recording.
    pub(super) reads: Vec<ClockRead>,
    /// Yields with their charges; none where callbacks show them.
    pub(super) yields: Vec<Yielded>,
    /// Switches before which the task that the CPU ran had gone to sleep without an event, in order.
    pub(super) slept: Vec<usize>,
    /// Passes without a switch that charges show, by CPU, in order.
    kept: Vec<Vec<KeptSeen>>,
    /// By CPU, in order.
    triggers: Vec<Vec<Trigger>>,
    /// Whether the recording has ticks.
    pub(super) has_ticks: bool,
    /// Whether the recording has what the kernel charged.
    pub(super) has_charges: bool,
    pub(super) has_switches: bool,
    pub(super) has_wakings: bool,
    pub(super) has_wakeups: bool,
    /// Whether the recording shows the calls of `sched_yield`.
    pub(super) has_yields: bool,
    /// Whether those are calls of the scheduler's `yield` callback: then the system calls are the same yields.
    pub(super) has_yield_callbacks: bool,
    /// Whether the recording has the calls of the scheduler's `dispatch` callback.
    pub(super) has_dispatches: bool,
    /// Whether the recording says which wake-ups are synchronous.
    pub(super) has_syncs: bool,
    /// When the recording ends, ns.
    end_ns: u64,
    /// By `sched_waking` in their order: the CPU of the `sched_wakeup` that follows.
    woken_on: Vec<Option<u32>>,
    /// By task: the place of its `sched_waking` in that list.
    asked_to_wake: Vec<Option<usize>>,
    /// By task: its last `sched_waking` was in an interrupt.
    woken_by_interrupt: Vec<bool>,
    /// How long a CPU takes to switch after it was asked to, ns, at most.
    pub(super) reaction_ns: u64,
    /// By task: it leaves CPUs for no visible reason, in a recording that does not show yields.
    pub(super) yielders: Vec<bool>,
    /// How long after a move the CPU that made it switches to the task, ns, at most.
    pub(super) move_ns: u64,
    /// How late a switch is stamped after the kernel read the clock, ns; 0 where no charge tells.
    pub(super) stamp_late_ns: u64,
    /// The same where the running task is in the kernel and leaves it first (voluntary and lazy preemption), ns.
    late_ns: u64,
}

impl Timeline {
    /// Whether callbacks show when decisions began.
    pub(super) fn shows_passes(&self) -> bool {
        !self.passes.is_empty()
    }

    pub(super) fn of(trace: &Trace, tick_ns: u64) -> Timeline {
        let cpus = trace.cpus as usize;
        let mut timeline = Timeline {
            switches: vec![Vec::new(); cpus],
            runs: vec![Vec::new(); trace.tasks().len()],
            passes: Vec::new(),
            deferred: Vec::new(),
            reads: Vec::new(),
            yields: Vec::new(),
            slept: Vec::new(),
            kept: vec![Vec::new(); cpus],
            triggers: vec![Vec::new(); cpus],
            has_ticks: false,
            has_charges: false,
            has_switches: false,
            has_wakings: false,
            has_wakeups: false,
            has_yields: false,
            has_yield_callbacks: false,
            has_dispatches: false,
            has_syncs: false,
            end_ns: trace.end_ns,
            woken_on: Vec::new(),
            asked_to_wake: vec![None; trace.tasks().len()],
            woken_by_interrupt: vec![false; trace.tasks().len()],
            reaction_ns: 0,
            yielders: vec![false; trace.tasks().len()],
            move_ns: 0,
            stamp_late_ns: 0,
            late_ns: if trace.origin.is_simulated() { 0 } else { tick_ns },
        };
        timeline.take_switches(trace);
        let mut deferred = DeferredFinder::new(cpus);
        let mut reads = ReadFinder::new(trace.tasks().len(), cpus);
        let mut yields = YieldFinder::new(trace.tasks().len(), cpus);
        let mut kept = KeptFinder::new(cpus, timeline.reaction_ns);
        let mut vanished = VanishedFinder::new(trace.tasks().len(), cpus);
        for (index, event) in trace.events().enumerate() {
            if (event.cpu as usize) < cpus {
                kept.take(index, &event);
                deferred.take(index, &event);
                reads.take(index, &event);
                yields.take(index, &event);
                vanished.take(index, &event);
            }
        }
        timeline.slept = vanished.finish();
        if !timeline.has_yield_callbacks {
            timeline.yields = yields.finish();
        }
        if !trace.origin.is_simulated() {
            timeline.deferred = deferred.finish();
            (timeline.reads, timeline.stamp_late_ns) = reads.finish();
            timeline.kept = kept.finish();
        }
        timeline
    }

    /// Takes the events that decide, and how soon CPUs react to them.
    fn take_switches(&mut self, trace: &Trace) {
        let cpus = trace.cpus as usize;
        let mut reactions = Reactions::new(cpus);
        let mut passes = PassFinder::new(cpus);
        for (index, event) in trace.events().enumerate() {
            if (event.cpu as usize) < cpus {
                let (decided, time_ns) =
                    passes.take(index, &event).unwrap_or((index, event.time_ns));
                self.take(index, decided, &Event { time_ns, ..event });
                reactions.take(&Event { time_ns, ..event });
                reactions.take_move(&event);
            }
        }
        self.passes = passes.finish();
        let move_ns = reactions.move_ns;
        self.reaction_ns = reactions.bound_ns();
        self.move_ns = if self.reaction_ns == 0 { 0 } else { move_ns.max(self.reaction_ns) };
        if !self.has_yields {
            self.find_yielders();
        }
    }

    /// Finds the tasks that leave a CPU, runnable, longer than it takes to react after the last wake-up or tick.
    fn find_yielders(&mut self) {
        for (switches, triggers) in self.switches.iter().zip(&self.triggers) {
            for switch in switches.iter().filter(|switch| switch.preempted) {
                let at = triggers.partition_point(|trigger| trigger.index < switch.index);
                let since_ns = at.checked_sub(1).map_or(0, |last| triggers[last].time_ns);
                let until_ns = since_ns + self.reaction_ns.max(self.late_ns);
                self.yielders[switch.prev.index()] |= until_ns < switch.time_ns;
            }
        }
    }

    /// Takes an event; of a switch, the index and the time of its decision.
    fn take(&mut self, index: usize, decided: usize, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.has_switches = true;
                self.runs[next.index()].push((decided, event.cpu));
                self.switches[event.cpu as usize].push(Switched {
                    index: decided,
                    time_ns: event.time_ns,
                    prev,
                    preempted: !prev.is_idle() && prev_state.is_runnable(),
                    from_idle: prev.is_idle(),
                });
            }
            EventKind::Waking { task, waker, .. } => {
                self.has_wakings = true;
                if let Some(by_interrupt) = self.woken_by_interrupt.get_mut(task.index()) {
                    *by_interrupt = waker.is_idle();
                }
                if let Some(asked) = self.asked_to_wake.get_mut(task.index()) {
                    *asked = Some(self.woken_on.len());
                }
                self.woken_on.push(None);
            }
            EventKind::Wakeup { task, target_cpu } | EventKind::WakeupNew { task, target_cpu } => {
                self.has_wakeups = true;
                let asked = self.asked_to_wake.get_mut(task.index());
                if let Some(at) = asked.and_then(Option::take) {
                    self.woken_on[at] = Some(target_cpu);
                }
                let by_interrupt = self.woken_by_interrupt.get(task.index()) == Some(&true);
                self.trigger(target_cpu, index, event, by_interrupt && event.cpu == target_cpu);
            }
            EventKind::Callback { kind: CallbackKind::Timer, .. } => {
                self.trigger(event.cpu, index, event, true);
            }
            EventKind::Callback { kind: CallbackKind::Dispatch, .. } => self.has_dispatches = true,
            EventKind::Callback { kind: CallbackKind::Yield, .. } => {
                (self.has_yields, self.has_yield_callbacks) = (true, true);
                self.trigger(event.cpu, index, event, false);
            }
            EventKind::CallEnter { call, .. } => {
                self.has_yields = true;
                if call == Call::Yield {
                    self.trigger(event.cpu, index, event, false);
                }
            }
            EventKind::Tick { .. } => {
                self.has_ticks = true;
                self.trigger(event.cpu, index, event, true);
            }
            EventKind::Charge { .. } => self.has_charges = true,
            EventKind::WakeSync { .. } => self.has_syncs = true,
            _ => {}
        }
    }

    fn trigger(&mut self, cpu: u32, index: usize, event: &Event, in_interrupt: bool) {
        if let Some(triggers) = self.triggers.get_mut(cpu as usize) {
            triggers.push(Trigger { index, time_ns: event.time_ns, in_interrupt });
        }
    }

    /// Up to when a CPU switches that is asked to at a time, before the event `index`, ns: further wake-ups in the same
    /// interrupt keep it from it.
    fn reacts_until_ns(&self, cpu: u32, index: usize, now_ns: u64) -> u64 {
        let triggers = &self.triggers[cpu as usize];
        let at = triggers.partition_point(|trigger| trigger.index < index);
        let mut until_ns = now_ns + self.reaction_ns;
        for trigger in &triggers[at..] {
            if !trigger.in_interrupt || trigger.time_ns > until_ns {
                break;
            }
            until_ns = trigger.time_ns + self.reaction_ns;
        }
        until_ns
    }

    /// The CPU for which the task of the `nth` `sched_waking` was queued, if the recording says so.
    pub(super) fn woken_on(&self, nth: usize) -> Option<u32> {
        self.woken_on.get(nth).copied().flatten()
    }

    /// The next switch of a CPU from the event `index` on.
    fn next_switch(&self, cpu: u32, index: usize) -> Option<Switched> {
        let switches = self.switches.get(cpu as usize)?;
        let at = switches.partition_point(|switch| switch.index < index);
        switches.get(at).copied()
    }

    /// The CPU on which a task runs next from the event `index` on.
    pub(super) fn runs_next_on(&self, task: TaskId, index: usize) -> Option<u32> {
        let runs = &self.runs[task.index()];
        let at = runs.partition_point(|(switch, _)| *switch < index);
        runs.get(at).map(|(_, cpu)| *cpu)
    }

    /// The next pass without a switch of a CPU from the event `index` on.
    fn next_kept(&self, cpu: u32, index: usize) -> Option<KeptSeen> {
        let kept = self.kept.get(cpu as usize)?;
        let at = kept.partition_point(|kept| kept.index < index);
        kept.get(at).copied()
    }

    /// Whether a charge is that of a pass without a switch.
    pub(super) fn keeps(&self, cpu: u32, index: usize) -> bool {
        self.next_kept(cpu, index).is_some_and(|kept| kept.index == index)
    }

    /// Whether a CPU that is asked to schedule at a time, before the event `index`, does so soon: the pass is one that
    /// the recording shows.
    pub(super) fn schedules_soon(&self, cpu: u32, index: usize, now_ns: u64) -> bool {
        let late_ns = now_ns + self.late_ns;
        if self.next_kept(cpu, index).is_some_and(|kept| kept.time_ns <= late_ns) {
            return true;
        }
        let Some(next) = self.next_switch(cpu, index) else {
            // It may come after the end.
            return self.end_ns <= now_ns + REACTION_NS_MAX;
        };
        let until_ns = match next.from_idle && self.reaction_ns > 0 {
            // Out of an idle state.
            true => now_ns + REACTION_NS_MAX,
            false => self.reacts_until_ns(cpu, index, now_ns).max(late_ns),
        };
        next.time_ns <= until_ns
    }

    /// The recorded decision about the task that runs on a CPU at a time, when all events before `index` have
    /// happened.
    pub(super) fn verdict(&self, cpu: u32, index: usize, now_ns: u64) -> RecordedPreemption {
        let until_ns = self.reacts_until_ns(cpu, index, now_ns);
        let Some(next) = self.next_switch(cpu, index) else {
            return if self.end_ns <= until_ns {
                RecordedPreemption::Unclear
            } else {
                RecordedPreemption::Stays
            };
        };
        if next.time_ns > until_ns {
            return RecordedPreemption::Stays;
        }
        let triggers = &self.triggers[cpu as usize];
        let at = triggers.partition_point(|trigger| trigger.index < index);
        let another = triggers.get(at).is_some_and(|trigger| trigger.index < next.index);
        if next.preempted && !another {
            RecordedPreemption::Preempts
        } else {
            RecordedPreemption::Unclear
        }
    }
}

/// How soon after wake-ups and ticks CPUs switch.
struct Reactions {
    running: Vec<TaskId>,
    /// By CPU: the last wake-up or tick since its last switch, ns.
    asked_ns: Vec<Option<u64>>,
    of_idle: Vec<u64>,
    of_busy: Vec<u64>,
    /// By CPU: the task that it moved last, and when, ns.
    moved: Vec<Option<(TaskId, u64)>>,
    /// The longest time from a move to the switch to that task, ns.
    move_ns: u64,
}

impl Reactions {
    fn new(cpus: usize) -> Reactions {
        Reactions {
            running: vec![TaskId::IDLE; cpus],
            asked_ns: vec![None; cpus],
            of_idle: Vec::new(),
            of_busy: Vec::new(),
            moved: vec![None; cpus],
            move_ns: 0,
        }
    }

    fn take(&mut self, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                let cpu = event.cpu as usize;
                let asked_ns = self.asked_ns[cpu].take();
                if let Some(ns) = asked_ns.and_then(|asked_ns| event.time_ns.checked_sub(asked_ns))
                    && ns <= REACTION_NS_MAX
                {
                    if prev.is_idle() {
                        self.of_idle.push(ns);
                    } else if prev_state.is_runnable() {
                        self.of_busy.push(ns);
                    }
                }
                self.running[cpu] = next;
            }
            EventKind::Wakeup { target_cpu: cpu, .. }
            | EventKind::WakeupNew { target_cpu: cpu, .. } => self.ask(cpu, event.time_ns),
            EventKind::Tick { .. } => self.ask(event.cpu, event.time_ns),
            _ => {}
        }
    }

    fn take_move(&mut self, event: &Event) {
        let moved = &mut self.moved[event.cpu as usize];
        match event.kind {
            EventKind::Migrate { task, to_cpu, .. } if to_cpu == event.cpu => {
                *moved = Some((task, event.time_ns));
            }
            EventKind::Switch { next, .. } => {
                let moved = moved.take().filter(|(task, _)| *task == next);
                let took_ns = moved.map_or(0, |(_, at_ns)| event.time_ns.saturating_sub(at_ns));
                if took_ns <= REACTION_NS_MAX {
                    self.move_ns = self.move_ns.max(took_ns);
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, cpu: u32, now_ns: u64) {
        let Some(asked_ns) = self.asked_ns.get_mut(cpu as usize) else { return };
        // Of an idle CPU the first counts, of a busy one the last.
        if !self.running[cpu as usize].is_idle() || asked_ns.is_none() {
            *asked_ns = Some(now_ns);
        }
    }

    /// The bound: what 95 % of the idle CPUs take; of too few of them, four times what half of the busy ones take. 0
    /// where a quarter of them react at once: simulated without costs.
    fn bound_ns(mut self) -> u64 {
        let of_idle = self.of_idle.len() >= IDLE_MIN;
        let list = if of_idle { &mut self.of_idle } else { &mut self.of_busy };
        list.sort_unstable();
        let at = |percent: usize| list.get(list.len() * percent / 100).copied();
        let bound_ns = match of_idle {
            true => at(95),
            false => at(50).map(|ns| 4 * ns),
        };
        if at(25) == Some(0) { 0 } else { bound_ns.unwrap_or(REACTION_NS_DEFAULT) }
    }
}
