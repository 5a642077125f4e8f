//! Collects the facts that the rules use: an observer of task states, in O(1) a change (O(log pairs) where a slice
//! is cut).

use super::facts::{Cuts, Facts, Phase, SliceSum, TaskFacts, Wait};
use super::queue::{OpenCut, Queue};
use super::{cut_slices, ping_pong, tail, waiting};
use crate::states::{Cause, Change, Observer, State, States, Task};
use crate::{Analysis, weight_of_nice};
use fairground_trace::{Event, EventKind, TaskId, TaskState, Trace};

/// Changes of tunables that begin a phase of their own; later ones belong to the last.
const PHASES_MAX: usize = 16;

/// In a queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    cpu: u32,
    /// [`Queue::epoch`] and [`Queue::service`] when it came.
    epoch: u64,
    service: u128,
}

#[derive(Clone, Debug, Default)]
struct Candidate {
    group: usize,
    weight: u32,
    queued: Option<Queued>,
    /// Begin of the present wait in a queue, ns; what was due in it; the request to wake that it follows.
    wait_from_ns: u64,
    due_ns: u64,
    woken_ns: Option<u64>,
    /// The CPU on which it ran last, and until when.
    ran_on: Option<(u32, u64)>,
    /// The one before that.
    ran_before: Option<(u32, u64)>,
    moved_ns: u64,
    cold: bool,
}

struct Collector {
    now_ns: u64,
    queues: Vec<Queue>,
    tasks: Vec<Candidate>,
    /// The task that leaves the CPU in the present switch.
    prev: TaskId,
    facts: Facts,
}

/// The facts of a whole trace.
pub(super) fn collect(trace: &Trace, analysis: &Analysis) -> Facts {
    let mut collector = Collector::new(trace, analysis);
    let states = States::of(trace, false).observe(trace, &mut collector);
    collector.finish(&states, analysis)
}

impl Collector {
    fn new(trace: &Trace, analysis: &Analysis) -> Self {
        let groups = analysis.groups.len();
        let new = |nice: Option<i8>| Candidate {
            weight: weight_of_nice(nice.unwrap_or(0)),
            ..Candidate::default()
        };
        let mut tasks: Vec<Candidate> = trace.tasks().iter().map(|info| new(info.nice)).collect();
        for task in &analysis.tasks {
            tasks[task.task.index()].group = task.group;
        }
        let mut facts = Facts {
            tasks: vec![TaskFacts::default(); tasks.len()],
            whole: vec![SliceSum::default(); groups],
            wakeups: vec![0; groups],
            slow_due_ns: vec![0; groups],
            ..Facts::default()
        };
        facts.phases.push(Phase {
            from_ns: analysis.start_ns,
            change: String::new(),
            slices: vec![SliceSum::default(); groups],
        });
        let now_ns = analysis.start_ns;
        let queues = (0..trace.cpus).map(|_| Queue::new(now_ns)).collect();
        Self { now_ns, queues, tasks, prev: TaskId::IDLE, facts }
    }

    /// Takes a task out of its queue, and adds up what it was due there if it waited.
    fn unqueue(&mut self, id: TaskId, waited: bool) {
        let task = &mut self.tasks[id.index()];
        let Some(queued) = task.queued.take() else { return };
        let queue = &mut self.queues[queued.cpu as usize];
        queue.advance(self.now_ns);
        if queue.epoch != queued.epoch {
            return;
        }
        if waited {
            let due_ns = Queue::due_ns(task.weight, queue.service() - queued.service);
            task.due_ns = task.due_ns.saturating_add(due_ns);
        }
        queue.leave(task.weight, waited);
    }

    fn queue(&mut self, id: TaskId, cpu: u32, waits: bool) {
        let task = &mut self.tasks[id.index()];
        let queue = &mut self.queues[cpu as usize];
        queue.advance(self.now_ns);
        queue.enter(task.weight, waits);
        task.queued = Some(Queued { cpu, epoch: queue.epoch, service: queue.service() });
    }

    fn on_nice(&mut self, task: &Task, nice: i8) {
        let waits = task.state == State::Waiting;
        self.unqueue(task.id, waits);
        self.tasks[task.id.index()].weight = weight_of_nice(nice);
        if task.state.is_queued() {
            self.queue(task.id, task.cpu, waits);
        }
    }

    fn on_param(&mut self, text: &str) {
        let groups = self.facts.whole.len();
        let many = self.facts.phases.len() >= PHASES_MAX;
        let Some(last) = self.facts.phases.last_mut() else { return };
        if many || last.from_ns == self.now_ns {
            if !last.change.is_empty() {
                last.change.push_str(", ");
            }
            last.change.push_str(text);
            return;
        }
        let slices = vec![SliceSum::default(); groups];
        self.facts.phases.push(Phase { from_ns: self.now_ns, change: text.to_owned(), slices });
    }

    /// The length of the slice that ends, when it is known that `prev` ran all of it.
    fn end_slice(&mut self, states: &States, cpu_number: u32, prev: TaskId) -> Option<u64> {
        let cpu = &states.cpus[cpu_number as usize];
        let queue = &mut self.queues[cpu_number as usize];
        queue.advance(self.now_ns);
        let contended_ns = queue.contended_ns;
        let slice_ns = self.now_ns - cpu.since_ns;
        if cpu.running? != prev {
            // A contradiction: what the CPU did is not known.
            queue.cut = None;
            return None;
        }
        if prev.is_idle() {
            return Some(slice_ns);
        }
        let facts = &mut self.facts.tasks[prev.index()];
        if contended_ns >= waiting::HELD_NS {
            facts.held_count += 1;
            facts.held_ns = facts.held_ns.saturating_add(contended_ns);
            if contended_ns > facts.held_max_ns {
                (facts.held_max_ns, facts.held_cpu) = (contended_ns, cpu_number);
            }
        }
        if std::mem::take(&mut self.tasks[prev.index()].cold) {
            facts.cold_ns += slice_ns.min(ping_pong::COLD_NS);
        }
        Some(slice_ns)
    }

    fn judge_cut(
        &mut self,
        states: &States,
        cpu: u32,
        slice_ns: u64,
        (prev, left, next): (TaskId, TaskState, TaskId),
    ) {
        let comes = &states.tasks[next.index()];
        let woken_ns = comes.woken_ns.filter(|_| comes.state == State::Waiting);
        let is_recent = |ns: u64| self.now_ns - ns <= cut_slices::CUT_DELAY_MAX_NS;
        let just_woken = woken_ns.is_some_and(is_recent);
        let queue = &mut self.queues[cpu as usize];
        if let Some(open) = queue.cut.take() {
            let Facts { cuts, dropped_pairs, .. } = &mut self.facts;
            if let Some(cuts) = Facts::pair(cuts, open.key, dropped_pairs) {
                cuts.taken_ns = cuts.taken_ns.saturating_add(slice_ns);
                if next == open.victim {
                    cuts.resumed += 1;
                } else if just_woken {
                    queue.cut = Some(open);
                } else if !next.is_idle() {
                    cuts.passed_on += 1;
                }
            }
        }
        if prev.is_idle() || next.is_idle() || !left.is_runnable() {
            return;
        }
        let victim_group = self.tasks[prev.index()].group;
        if let Some(phase) = self.facts.phases.last_mut() {
            phase.slices[victim_group].add(slice_ns);
        }
        // Woken before the slice began, it was the next in the queue and cut nothing.
        if !just_woken || woken_ns < Some(states.cpus[cpu as usize].since_ns) {
            self.facts.whole[victim_group].add(slice_ns);
            return;
        }
        let key = (self.tasks[next.index()].group, victim_group);
        let Facts { cuts, dropped_pairs, .. } = &mut self.facts;
        let Some(cuts): Option<&mut Cuts> = Facts::pair(cuts, key, dropped_pairs) else { return };
        cuts.count += 1;
        cuts.slices_ns = cuts.slices_ns.saturating_add(slice_ns);
        queue.cut.get_or_insert(OpenCut { victim: prev, key });
    }

    /// The wait of a task in queues ends with a switch-in.
    fn end_wait(&mut self, cpu: u32, next: TaskId) {
        self.judge_wait(next, cpu);
        let task = &self.tasks[next.index()];
        let (group, due_ns) = (task.group, task.due_ns);
        let Some(woken_ns) = task.woken_ns else { return };
        self.facts.wakeups[group] += 1;
        if self.now_ns - woken_ns < tail::SLOW_NS {
            return;
        }
        let slow_due_ns = &mut self.facts.slow_due_ns[group];
        *slow_due_ns = slow_due_ns.saturating_add(due_ns);
        if !self.prev.is_idle() {
            let key = (group, self.tasks[self.prev.index()].group);
            let Facts { slow, dropped_pairs, .. } = &mut self.facts;
            if let Some(count) = Facts::pair(slow, key, dropped_pairs) {
                *count += 1;
            }
        }
    }

    /// A wait has ended, or the trace has.
    fn judge_wait(&mut self, id: TaskId, cpu: u32) {
        let task = &self.tasks[id.index()];
        let facts = &mut self.facts.tasks[id.index()];
        if task.due_ns < waiting::STARVED_DUE_NS {
            return;
        }
        facts.starved_count += 1;
        facts.starved_due_ns = facts.starved_due_ns.saturating_add(task.due_ns);
        if task.due_ns > facts.starved_worst.due_ns {
            facts.starved_worst = Wait {
                from_ns: task.wait_from_ns,
                wait_ns: self.now_ns - task.wait_from_ns,
                due_ns: task.due_ns,
                cpu,
            };
        }
    }

    /// A task comes onto a CPU: is it another one than before?
    fn arrive(&mut self, cpu: u32, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let facts = &mut self.facts.tasks[id.index()];
        facts.switch_ins += 1;
        let Some((before, left_ns)) = task.ran_on else {
            task.moved_ns = self.now_ns;
            return;
        };
        if before == cpu {
            return;
        }
        let back = task.ran_before.filter(|(there, _)| *there == cpu);
        let soon = |(_, left_ns): (u32, u64)| self.now_ns - left_ns <= ping_pong::BOUNCE_NS;
        facts.bounces += u64::from(back.is_some_and(soon));
        task.ran_before = Some((before, left_ns));
        task.cold = true;
        end_residence(facts, before, self.now_ns - task.moved_ns);
        task.moved_ns = self.now_ns;
    }

    fn finish(mut self, states: &States, analysis: &Analysis) -> Facts {
        self.now_ns = self.now_ns.max(analysis.end_ns);
        for (number, cpu) in states.cpus.iter().enumerate() {
            self.queues[number].advance(self.now_ns);
            if let Some(running) = cpu.running {
                self.end_slice(states, number as u32, running);
                self.tasks[running.index()].ran_on = Some((number as u32, self.now_ns));
            }
        }
        for task in states.tasks.iter().skip(1) {
            let waits = task.state == State::Waiting;
            self.unqueue(task.id, waits);
            if waits {
                self.judge_wait(task.id, task.cpu);
            }
            let candidate = &self.tasks[task.id.index()];
            if let Some((cpu, _)) = candidate.ran_on {
                let stay_ns = self.now_ns - candidate.moved_ns;
                end_residence(&mut self.facts.tasks[task.id.index()], cpu, stay_ns);
            }
        }
        let window_ns = analysis.window_ns();
        self.facts.load_milli =
            self.queues.iter().map(|queue| queue.load_milli(window_ns)).collect();
        self.facts
    }
}

impl Observer for Collector {
    fn on_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn on_event(&mut self, trace: &Trace, states: &States, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                if let Some(slice_ns) = self.end_slice(states, event.cpu, prev) {
                    self.judge_cut(states, event.cpu, slice_ns, (prev, prev_state, next));
                }
                self.prev = prev;
            }
            EventKind::Waking { task, .. } if states.queued_at_waking => {
                self.facts.has_wakeups |= !task.is_idle();
            }
            EventKind::Wakeup { task, .. } => self.facts.has_wakeups |= !task.is_idle(),
            EventKind::Nice { task, nice } if !task.is_idle() => {
                self.on_nice(&states.tasks[task.index()], nice);
            }
            EventKind::ContentionBegin { .. } => self.facts.has_lock_waits = true,
            EventKind::Param { label } => self.on_param(trace.label(label)),
            EventKind::Lost { .. } => self.queues[event.cpu as usize].forget(self.now_ns),
            _ => {}
        }
    }

    fn on_cpu(&mut self, cpu: u32, _: Option<TaskId>, after: Option<TaskId>, _: bool) {
        let queue = &mut self.queues[cpu as usize];
        queue.advance(self.now_ns);
        queue.set_busy(after.is_some_and(|task| !task.is_idle()));
    }

    fn on_change(&mut self, task: &Task, change: &Change) {
        let (id, waited) = (task.id, change.from == State::Waiting);
        self.unqueue(id, waited);
        match change.cause {
            Cause::SwitchOut { .. } => {
                self.tasks[id.index()].ran_on = Some((task.cpu, self.now_ns));
            }
            Cause::SwitchIn { .. } => {
                if let Cause::SwitchIn { latency_ns: Some(latency_ns), .. } = change.cause
                    && change.from == State::WokenEarly
                {
                    let candidate = &mut self.tasks[id.index()];
                    let wait_from_ns = self.now_ns - latency_ns;
                    (candidate.wait_from_ns, candidate.due_ns) = (wait_from_ns, 0);
                    candidate.woken_ns = Some(wait_from_ns);
                    self.end_wait(task.cpu, id);
                } else if waited {
                    self.end_wait(task.cpu, id);
                }
                self.arrive(task.cpu, id);
            }
            _ => {}
        }
        let waits = task.state == State::Waiting;
        let begins = waits && (!waited || matches!(change.cause, Cause::SwitchOut { .. }));
        if begins {
            let candidate = &mut self.tasks[id.index()];
            (candidate.wait_from_ns, candidate.due_ns) = (self.now_ns, 0);
            candidate.woken_ns = task.woken_ns;
        }
        if task.state.is_queued() {
            self.queue(id, task.cpu, waits);
        }
    }
}

fn end_residence(facts: &mut TaskFacts, cpu: u32, stay_ns: u64) {
    if stay_ns > facts.residence_ns {
        (facts.residence_ns, facts.residence_cpu) = (stay_ns, cpu);
    }
}
