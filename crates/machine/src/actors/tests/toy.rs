//! A toy machine: CPUs that share time round robin, no cost but what the actors ask for.

use std::collections::VecDeque;

use fairground_workload::{Carrier, Duration, Op, Pipe, Program, Queue, TaskSpec, Timer, Workload};

use crate::CostModel;
use crate::actors::{ActorError, ActorId, Actors, Effect, Need};

pub(super) fn group(name: &str, count: u32, program: Program) -> TaskSpec {
    TaskSpec::new(name, count, Some(0), program)
}

pub(super) fn workload(tasks: Vec<TaskSpec>) -> Workload {
    Workload {
        name: "test".to_owned(),
        duration_ns: 1,
        tasks,
        pipes: vec![Pipe { name: "p".to_owned(), capacity: 100, carrier: Carrier::Pipe }],
        queues: vec![
            Queue::unlimited("q"),
            Queue { capacity: Some(1), ..Queue::unlimited("narrow") },
        ],
        timers: vec![Timer::new("t", 1_000)],
        ..Workload::default()
    }
}

pub(super) fn run(ns: u64) -> Op {
    Op::Run(Duration::Fixed(ns))
}

pub(super) fn sleep(ns: u64) -> Op {
    Op::Sleep(Duration::Fixed(ns))
}

pub(super) fn mark(text: &str) -> Op {
    Op::Mark(text.to_owned())
}

pub(super) fn costs(syscall_ns: u64) -> CostModel {
    let mut cost = CostModel::preset("zero").unwrap();
    for name in ["syscall_ns", "yield_ns"] {
        cost.set(name, syscall_ns).unwrap();
    }
    cost
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Wants so much CPU time; `None`: for ever.
    Computing(Option<u64>),
    /// To be advanced.
    Due,
    Blocked(Option<u64>),
    Gone,
}

/// Runs actors on `cpus` CPUs, round robin in slices of `slice_ns`; logs marks and ends.
pub(super) struct Toy {
    pub(super) actors: Actors,
    pub(super) states: Vec<State>,
    pub(super) used_ns: Vec<u64>,
    pub(super) now_ns: u64,
    pub(super) cpus: usize,
    pub(super) slice_ns: u64,
    pub(super) queue: VecDeque<usize>,
    pub(super) log: Vec<(u64, String)>,
}

impl Toy {
    pub(super) fn new(workload: &Workload, syscall_ns: u64, cpus: usize) -> Toy {
        let mut actors = Actors::new(workload, 1, &costs(syscall_ns)).unwrap();
        for (spec, group) in workload.tasks.iter().enumerate() {
            if group.start_ns.is_some() {
                for _ in 0..group.count {
                    actors.spawn(spec, None);
                }
            }
        }
        let count = actors.living() as usize;
        Toy {
            actors,
            states: vec![State::Due; count],
            used_ns: vec![0; count],
            now_ns: 0,
            cpus,
            slice_ns: 10,
            queue: (0..count).collect(),
            log: Vec::new(),
        }
    }

    fn advance(&mut self, id: usize) -> Result<(), ActorError> {
        let mut effects = Vec::new();
        let need =
            self.actors.advance(ActorId(id as u32), self.now_ns, &mut effects).map_err(|e| *e)?;
        self.states[id] = match need {
            Need::Cpu { ns } => State::Computing(Some(ns)),
            Need::Touch { bytes } => State::Computing(Some(bytes)),
            Need::CpuForever => State::Computing(None),
            Need::Block | Need::BlockHard => State::Blocked(None),
            Need::Spin | Need::SpinOn { .. } => State::Computing(None),
            Need::SleepUntil { at_ns } | Need::Io { at_ns } => State::Blocked(Some(at_ns)),
            Need::Yield | Need::Return | Need::InCall => State::Due,
            Need::Exit => State::Gone,
        };
        for effect in effects {
            self.apply(id, effect);
        }
        if matches!(need, Need::Return | Need::InCall) {
            // No other takes the CPU here.
            return self.advance(id);
        }
        if self.states[id] == State::Gone {
            let name = self.actors.task_name(ActorId(id as u32));
            self.log.push((self.now_ns, format!("{name} ends")));
            self.actors.release(ActorId(id as u32));
        }
        Ok(())
    }

    fn apply(&mut self, id: usize, effect: Effect) {
        match effect {
            Effect::Wake { actor, .. } => self.wake(actor.0 as usize),
            Effect::BeginExit => {}
            Effect::Signal { actor } => {
                let other = actor.0 as usize;
                let State::Computing(left) = self.states[other] else {
                    panic!("only those that compute are signalled this way")
                };
                self.actors.interrupt(actor, left.unwrap_or(0));
                self.states[other] = State::Due;
            }
            Effect::Fork { child } => {
                let child = child.0 as usize;
                if child == self.states.len() {
                    self.states.push(State::Due);
                    self.used_ns.push(0);
                }
                self.states[child] = State::Due;
                self.queue.push_back(child);
            }
            Effect::Mark { label, value } => {
                let who = self.actors.task_name(ActorId(id as u32));
                let text = &self.actors.labels()[label as usize];
                self.log.push((self.now_ns, format!("{who}: {text} {value}")));
            }
            Effect::SetCgroup { cgroup } => {
                self.log.push((self.now_ns, format!("cgroup {cgroup}")));
            }
            Effect::SetCgroupWeight { cgroup, weight } => {
                self.log.push((self.now_ns, format!("weight {cgroup} {weight}")));
            }
            Effect::SpinOver { actor } => self.states[actor.0 as usize] = State::Due,
            Effect::Preempt { .. }
            | Effect::CallEnter { .. }
            | Effect::CallExit { .. }
            | Effect::FutexEnter { .. }
            | Effect::FutexExit { .. } => {}
            Effect::ContentionBegin { lock, holder, .. } => {
                let name = |id| self.actors.task_name(id);
                let (who, holder) = (name(ActorId(id as u32)), holder.map_or("?".into(), name));
                let lock = self.actors.lock_name(lock);
                self.log.push((self.now_ns, format!("{who} waits for {lock} of {holder}")));
            }
            Effect::ContentionEnd { lock } => {
                let who = self.actors.task_name(ActorId(id as u32));
                let lock = self.actors.lock_name(lock);
                self.log.push((self.now_ns, format!("{who} has {lock}")));
            }
            Effect::SetNice { nice } => self.log.push((self.now_ns, format!("nice {nice}"))),
            Effect::SetPolicy { policy } => {
                self.log.push((self.now_ns, format!("policy {policy}")))
            }
            Effect::SetSlice { slice_ns } => {
                self.log.push((self.now_ns, format!("slice {slice_ns}")))
            }
            Effect::SetAffinity { mask } => {
                let cpus: Vec<u32> = self.actors.affinity(mask).iter().collect();
                self.log.push((self.now_ns, format!("cpus {cpus:?}")));
            }
        }
    }

    fn wake(&mut self, id: usize) {
        if let State::Blocked(_) = self.states[id] {
            self.states[id] = State::Due;
            self.queue.push_back(id);
        }
    }

    /// Lets time pass until `end_ns`, in steps of one slice at most.
    pub(super) fn until(&mut self, end_ns: u64) -> Result<(), ActorError> {
        while self.now_ns < end_ns {
            for id in 0..self.states.len() {
                if matches!(self.states[id], State::Blocked(Some(at_ns)) if at_ns <= self.now_ns) {
                    self.wake(id);
                }
            }
            let mut running: Vec<usize> = Vec::new();
            loop {
                // One that was signalled while it ran leaves its computation at once.
                let again = running.iter().position(|id| self.states[*id] == State::Due);
                let next = match again {
                    Some(place) => Some(running.remove(place)),
                    None if running.len() < self.cpus => self.queue.pop_front(),
                    None => None,
                };
                let Some(id) = next else { break };
                if self.states[id] == State::Due {
                    self.advance(id)?;
                }
                match self.states[id] {
                    State::Computing(_) => running.push(id),
                    State::Due => self.queue.push_back(id),
                    State::Blocked(_) | State::Gone => {}
                }
            }
            self.pass(&running, end_ns);
        }
        Ok(())
    }

    fn pass(&mut self, running: &[usize], end_ns: u64) {
        let mut step_ns = end_ns - self.now_ns;
        for state in &self.states {
            if let State::Blocked(Some(at_ns)) = state {
                step_ns = step_ns.min(at_ns.saturating_sub(self.now_ns));
            }
        }
        for id in running {
            step_ns = step_ns.min(self.slice_ns);
            if let State::Computing(Some(left)) = self.states[*id] {
                step_ns = step_ns.min(left);
            }
        }
        self.now_ns += step_ns;
        let mut done = 0;
        for &id in running {
            self.used_ns[id] += step_ns;
            match &mut self.states[id] {
                State::Computing(Some(left)) if *left == step_ns => {
                    self.states[id] = State::Due;
                    self.queue.insert(done, id);
                    done += 1;
                    continue;
                }
                State::Computing(Some(left)) => *left -= step_ns,
                _ => {}
            }
            self.queue.push_back(id);
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.log.iter().map(|(time, text)| format!("{time} {text}")).collect()
    }
}
