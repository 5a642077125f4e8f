//! The walk over the events: who runs, who waits behind whom and since when, in O(1) an event (O(log pairs) where a slice is cut).

use super::facts::{Cuts, Facts, Phase, Stretches, TaskFacts, Wait};
use super::walk_cpu::{Cpu, OpenCut};
use super::{cut_slices, ping_pong, tail, waiting};
use crate::scan::is_in_range;
use crate::{Analysis, weight_of_nice};
use fairground_trace::{Event, EventKind, TaskId, TaskState, Trace};

/// Changes of tunables that begin a phase of their own; later ones belong to the last.
const PHASES_MAX: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Away,
    Waiting,
    Running,
}

#[derive(Clone, Debug, Default)]
struct Task {
    group: usize,
    weight: u32,
    place: Place,
    /// Where it is queued, and the epoch of that CPU then.
    cpu: u32,
    epoch: u64,
    service_mark: u128,
    /// The present wait.
    wait_from_ns: u64,
    due_ns: u64,
    /// It was asked to wake and is not yet queued.
    asked_ns: Option<u64>,
    /// When the wake-up was asked for that the present wait follows.
    woken_ns: Option<u64>,
    /// The CPU on which it ran last, and until when.
    ran_on: Option<(u32, u64)>,
    /// The one before that.
    ran_before: Option<(u32, u64)>,
    moved_ns: u64,
    cold: bool,
}

struct Walk<'t> {
    trace: &'t Trace,
    now_ns: u64,
    queued_at_waking: bool,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    facts: Facts,
}

/// Walks over a whole trace.
pub(super) fn walk(trace: &Trace, analysis: &Analysis) -> Facts {
    let mut walk = Walk::new(trace, analysis);
    for event in trace.events() {
        walk.now_ns = walk.now_ns.max(event.time_ns);
        if is_in_range(trace, &event) {
            walk.step(&event);
        }
    }
    walk.finish(analysis)
}

impl<'t> Walk<'t> {
    fn new(trace: &'t Trace, analysis: &Analysis) -> Self {
        let groups = analysis.groups.len();
        let new = |nice: Option<i8>| Task {
            weight: weight_of_nice(nice.unwrap_or(0)),
            ..Task::default()
        };
        let mut tasks: Vec<Task> = trace.tasks().iter().map(|info| new(info.nice)).collect();
        for task in &analysis.tasks {
            tasks[task.task.index()].group = task.group;
        }
        let mut facts = Facts {
            tasks: vec![TaskFacts::default(); tasks.len()],
            whole: vec![Stretches::default(); groups],
            wakeups: vec![0; groups],
            slow_due_ns: vec![0; groups],
            ..Facts::default()
        };
        facts.phases.push(Phase {
            from_ns: analysis.start_ns,
            change: String::new(),
            slices: vec![Stretches::default(); groups],
        });
        let wakeups = |event: Event| matches!(event.kind, EventKind::Wakeup { .. });
        Self {
            trace,
            now_ns: analysis.start_ns,
            queued_at_waking: !trace.events().any(wakeups),
            cpus: (0..trace.cpus).map(|_| Cpu::new(analysis.start_ns)).collect(),
            tasks,
            facts,
        }
    }

    fn step(&mut self, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.on_switch(event.cpu, prev, prev_state, next);
            }
            EventKind::Waking { task, target_cpu, .. } if !task.is_idle() => {
                if self.queued_at_waking {
                    self.on_wakeup(task, target_cpu, true);
                } else {
                    let now_ns = self.now_ns;
                    self.tasks[task.index()].asked_ns.get_or_insert(now_ns);
                }
            }
            EventKind::Wakeup { task, target_cpu } => self.on_wakeup(task, target_cpu, true),
            EventKind::WakeupNew { task, target_cpu } => self.on_wakeup(task, target_cpu, false),
            EventKind::Migrate { task, to_cpu, .. }
                if self.tasks[task.index()].place == Place::Waiting =>
            {
                self.unqueue(task);
                self.queue(task, to_cpu, Place::Waiting);
            }
            EventKind::Exit { task } if self.tasks[task.index()].place == Place::Waiting => {
                self.unqueue(task);
            }
            EventKind::Nice { task, nice } if !task.is_idle() => self.on_nice(task, nice),
            EventKind::ContentionBegin { .. } => self.facts.has_lock_waits = true,
            EventKind::Param { label } => self.on_param(self.trace.label(label)),
            EventKind::Lost { .. } => self.on_lost(event.cpu),
            _ => {}
        }
    }

    /// Takes a task out of the queue where it stands, and settles what it was due there.
    fn unqueue(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let waits = task.place == Place::Waiting;
        if task.place == Place::Away {
            return;
        }
        task.place = Place::Away;
        let cpu = &mut self.cpus[task.cpu as usize];
        cpu.advance(self.now_ns);
        if cpu.epoch != task.epoch {
            return;
        }
        if waits {
            let due_ns = Cpu::due_ns(task.weight, cpu.service() - task.service_mark);
            task.due_ns = task.due_ns.saturating_add(due_ns);
        }
        cpu.leave(task.weight, waits);
    }

    fn queue(&mut self, id: TaskId, cpu_number: u32, place: Place) {
        let task = &mut self.tasks[id.index()];
        let cpu = &mut self.cpus[cpu_number as usize];
        cpu.advance(self.now_ns);
        cpu.enter(task.weight, place == Place::Waiting);
        (task.place, task.cpu, task.epoch) = (place, cpu_number, cpu.epoch);
        task.service_mark = cpu.service();
    }

    fn begin_wait(&mut self, id: TaskId, cpu: u32, woken_ns: Option<u64>) {
        let task = &mut self.tasks[id.index()];
        (task.wait_from_ns, task.due_ns, task.woken_ns) = (self.now_ns, 0, woken_ns);
        self.queue(id, cpu, Place::Waiting);
    }

    fn on_wakeup(&mut self, id: TaskId, cpu: u32, again: bool) {
        if id.is_idle() {
            return;
        }
        self.facts.has_wakeups |= again;
        let asked_ns = self.tasks[id.index()].asked_ns.take().unwrap_or(self.now_ns);
        match self.tasks[id.index()].place {
            Place::Away => self.begin_wait(id, cpu, again.then_some(asked_ns)),
            Place::Waiting if self.tasks[id.index()].cpu != cpu => {
                self.unqueue(id);
                self.queue(id, cpu, Place::Waiting);
            }
            Place::Waiting | Place::Running => {}
        }
    }

    fn on_nice(&mut self, id: TaskId, nice: i8) {
        let (place, cpu) = (self.tasks[id.index()].place, self.tasks[id.index()].cpu);
        self.unqueue(id);
        self.tasks[id.index()].weight = weight_of_nice(nice);
        if place != Place::Away {
            self.queue(id, cpu, place);
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
        let slices = vec![Stretches::default(); groups];
        self.facts.phases.push(Phase { from_ns: self.now_ns, change: text.to_owned(), slices });
    }

    fn on_lost(&mut self, cpu: u32) {
        let cpu = &mut self.cpus[cpu as usize];
        cpu.advance(self.now_ns);
        if let Some(task) = cpu.running {
            self.tasks[task.index()].place = Place::Away;
        }
        cpu.forget();
    }

    fn on_switch(&mut self, cpu: u32, prev: TaskId, prev_state: TaskState, next: TaskId) {
        self.cpus[cpu as usize].advance(self.now_ns);
        let stretch_ns = self.end_stretch(cpu, prev);
        self.judge_cut(cpu, stretch_ns, prev, prev_state, next);
        if !prev.is_idle() {
            self.unqueue(prev);
            self.tasks[prev.index()].ran_on = Some((cpu, self.now_ns));
            if prev_state == TaskState::Runnable {
                self.begin_wait(prev, cpu, None);
            }
        }
        if !next.is_idle() {
            self.end_wait(cpu, prev, next);
            self.arrive(cpu, next);
            self.queue(next, cpu, Place::Running);
        }
        let now_ns = self.now_ns;
        let cpu = &mut self.cpus[cpu as usize];
        (cpu.running, cpu.since_ns, cpu.contended_ns) = (Some(next), now_ns, 0);
    }

    /// The length of the stretch that ends, when it is known that `prev` ran all of it.
    fn end_stretch(&mut self, cpu_number: u32, prev: TaskId) -> Option<u64> {
        let cpu = &self.cpus[cpu_number as usize];
        let (running, contended_ns) = (cpu.running?, cpu.contended_ns);
        let stretch_ns = self.now_ns - cpu.since_ns;
        if running != prev {
            // A contradiction: what the CPU did is not known.
            self.cpus[cpu_number as usize].cut = None;
            if !running.is_idle() {
                self.unqueue(running);
            }
            return None;
        }
        if prev.is_idle() {
            return Some(stretch_ns);
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
            facts.cold_ns += stretch_ns.min(ping_pong::COLD_NS);
        }
        Some(stretch_ns)
    }

    /// Whether `next` has just woken up.
    fn has_just_woken(&self, next: TaskId) -> bool {
        let task = &self.tasks[next.index()];
        let woken_ns = task.woken_ns.filter(|_| task.place == Place::Waiting);
        woken_ns.is_some_and(|woken_ns| self.now_ns - woken_ns <= cut_slices::CUT_DELAY_MAX_NS)
    }

    fn judge_cut(
        &mut self,
        cpu: u32,
        stretch_ns: Option<u64>,
        prev: TaskId,
        prev_state: TaskState,
        next: TaskId,
    ) {
        let just_woken = !next.is_idle() && self.has_just_woken(next);
        let cpu = &mut self.cpus[cpu as usize];
        let Some(stretch_ns) = stretch_ns else { return };
        if let Some(open) = cpu.cut.take() {
            let Facts { cuts, dropped_pairs, .. } = &mut self.facts;
            if let Some(cuts) = Facts::pair(cuts, open.key, dropped_pairs) {
                cuts.turns_ns = cuts.turns_ns.saturating_add(stretch_ns);
                if next == open.victim {
                    cuts.resumed += 1;
                } else if just_woken {
                    cpu.cut = Some(open);
                } else if !next.is_idle() {
                    cuts.passed_on += 1;
                }
            }
        }
        if prev.is_idle() || next.is_idle() || prev_state != TaskState::Runnable {
            return;
        }
        let victim_group = self.tasks[prev.index()].group;
        if let Some(phase) = self.facts.phases.last_mut() {
            phase.slices[victim_group].add(stretch_ns);
        }
        // Woken before the slice began, it was the next in the queue and cut nothing.
        if !just_woken || self.tasks[next.index()].woken_ns < Some(cpu.since_ns) {
            self.facts.whole[victim_group].add(stretch_ns);
            return;
        }
        let key = (self.tasks[next.index()].group, victim_group);
        let Facts { cuts, dropped_pairs, .. } = &mut self.facts;
        let Some(cuts): Option<&mut Cuts> = Facts::pair(cuts, key, dropped_pairs) else { return };
        cuts.count += 1;
        cuts.slices_ns = cuts.slices_ns.saturating_add(stretch_ns);
        cpu.cut.get_or_insert(OpenCut { victim: prev, key });
    }

    fn end_wait(&mut self, cpu: u32, prev: TaskId, next: TaskId) {
        let waited = self.tasks[next.index()].place == Place::Waiting;
        self.unqueue(next);
        let task = &mut self.tasks[next.index()];
        task.asked_ns = None;
        let woken_ns = task.woken_ns.take();
        if !waited {
            return;
        }
        let (group, due_ns) = (task.group, task.due_ns);
        self.judge_wait(next, cpu);
        let Some(woken_ns) = woken_ns else { return };
        self.facts.wakeups[group] += 1;
        if self.now_ns - woken_ns < tail::SLOW_NS {
            return;
        }
        let slow_due_ns = &mut self.facts.slow_due_ns[group];
        *slow_due_ns = slow_due_ns.saturating_add(due_ns);
        if !prev.is_idle() {
            let key = (group, self.tasks[prev.index()].group);
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

    /// A task comes on a CPU: is it another one than before?
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

    fn finish(mut self, analysis: &Analysis) -> Facts {
        self.now_ns = self.now_ns.max(analysis.end_ns);
        for number in 0..self.trace.cpus {
            self.cpus[number as usize].advance(self.now_ns);
            if let Some(running) = self.cpus[number as usize].running {
                self.end_stretch(number, running);
                self.tasks[running.index()].ran_on = Some((number, self.now_ns));
            }
        }
        for number in 1..self.tasks.len() {
            let id = TaskId(number as u32);
            let (place, cpu) = (self.tasks[number].place, self.tasks[number].cpu);
            self.unqueue(id);
            if place == Place::Waiting {
                self.judge_wait(id, cpu);
            }
            if let Some((cpu, _)) = self.tasks[number].ran_on {
                let stay_ns = self.now_ns - self.tasks[number].moved_ns;
                end_residence(&mut self.facts.tasks[number], cpu, stay_ns);
            }
        }
        let window_ns = analysis.window_ns();
        self.facts.load_milli = self.cpus.iter().map(|cpu| cpu.load_milli(window_ns)).collect();
        self.facts
    }
}

fn end_residence(facts: &mut TaskFacts, cpu: u32, stay_ns: u64) {
    if stay_ns > facts.residence_ns {
        (facts.residence_ns, facts.residence_cpu) = (stay_ns, cpu);
    }
}
