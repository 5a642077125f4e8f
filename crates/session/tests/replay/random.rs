//! Replays of random recordings.

use std::collections::BTreeMap;

use fairground_machine::CostModel;
use fairground_session::Charges;
use fairground_workload::{parse, to_toml};
use proptest::prelude::*;

use super::{Recording, run_ns};

/// The action of a task of the small machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Runnable,
    On(usize),
    Blocked,
    Dead,
}

/// A small machine that makes consistent recordings, with its own accounting: CPU time per task.
struct Machine {
    now_ns: u64,
    cpus: Vec<Option<usize>>,
    states: Vec<State>,
    since_ns: Vec<u64>,
    run_ns: Vec<u64>,
    replay: Recording,
}

impl Machine {
    fn new(cpus: usize, tasks: usize) -> Self {
        let mut replay = Recording::new(cpus as u32);
        replay.window(0, 0);
        Self {
            now_ns: 0,
            cpus: vec![None; cpus],
            states: vec![State::Runnable; tasks],
            since_ns: vec![0; tasks],
            run_ns: vec![0; tasks],
            replay,
        }
    }

    fn id(task: Option<usize>) -> u32 {
        task.map_or(0, |task| task as u32 + 1)
    }

    /// The CPU switches to a runnable task (or idles); the previous one blocks, exits, or is preempted.
    fn switch(&mut self, cpu: usize, choice: usize, how: u8) {
        let runnable: Vec<usize> =
            (0..self.states.len()).filter(|&t| self.states[t] == State::Runnable).collect();
        let next = if runnable.is_empty() { None } else { Some(runnable[choice % runnable.len()]) };
        let prev = self.cpus[cpu];
        if prev.is_none() && next.is_none() {
            return;
        }
        let (blocked, dead) = (how < 6, how == 6);
        if let Some(prev) = prev {
            self.run_ns[prev] += self.now_ns - self.since_ns[prev];
            self.states[prev] = match (blocked, dead) {
                (true, _) => State::Blocked,
                (_, true) => State::Dead,
                _ => State::Runnable,
            };
        }
        if let Some(next) = next {
            self.states[next] = State::On(cpu);
            self.since_ns[next] = self.now_ns;
        }
        let (from, to) = (Self::id(prev), Self::id(next));
        let real = prev.is_some();
        self.replay.switch(self.now_ns, cpu as u32, from, blocked && real, dead && real, to);
        self.cpus[cpu] = next;
    }

    /// A task is woken by the running task or an interrupt.
    fn wake(&mut self, cpu: usize, choice: usize, interrupt: bool) {
        let target = choice % self.states.len();
        if matches!(self.states[target], State::Dead) {
            return;
        }
        let waker = if interrupt { None } else { self.cpus[cpu] };
        self.replay.waking(
            self.now_ns,
            cpu as u32,
            waker.map(|waker| waker as u32 + 1),
            target as u32 + 1,
        );
        if self.states[target] == State::Blocked {
            self.states[target] = State::Runnable;
        }
    }

    fn fork(&mut self, cpu: usize) {
        if let Some(parent) = self.cpus[cpu] {
            self.states.push(State::Runnable);
            self.since_ns.push(0);
            self.run_ns.push(0);
            self.replay.fork(self.now_ns, parent as u32 + 1, self.states.len() as u32);
        }
    }

    fn finish(mut self) -> (BTreeMap<String, u64>, Recording) {
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.cpus[cpu] {
                self.run_ns[task] += self.now_ns - self.since_ns[task];
            }
        }
        self.replay.window(0, self.now_ns);
        let named = |(task, ns): (usize, &u64)| (format!("task-{}", task + 1), *ns);
        (self.run_ns.iter().enumerate().map(named).collect(), self.replay)
    }
}

proptest! {
    #[test]
    fn every_replay_holds_the_run_time_that_was_seen_and_cannot_lock_up(
        cpus in 1_usize..5,
        tasks in 1_usize..12,
        steps in prop::collection::vec((0_u64..5_000, 0_u8..12, 0_usize..64, 0_u8..9), 0..400),
        charges in any::<bool>(),
    ) {
        let mut machine = Machine::new(cpus, tasks);
        if charges {
            machine.replay.charges = Charges::of(&CostModel::default());
        }
        for (ns, what, choice, how) in steps {
            machine.now_ns += ns;
            let cpu = choice % cpus;
            match what {
                0..6 => machine.switch(cpu, choice / cpus, how),
                6..11 => machine.wake(cpu, choice / cpus, how < 3),
                _ => machine.fork(cpu),
            }
        }
        let (seen, replay) = machine.finish();
        let total: u64 = seen.values().sum();
        match replay.finish("replay") {
            Ok((workload, notes)) => {
                prop_assert!(!notes.has_gaps(), "{notes}");
                prop_assert_eq!(notes.run_ns + notes.charged_ns, total);
                for (group, task) in workload.tasks.iter().enumerate() {
                    let (run_ns, seen_ns) = (run_ns(&workload, group), seen[&task.name]);
                    prop_assert!(run_ns == seen_ns || charges && run_ns < seen_ns, "{}", &task.name);
                }
                prop_assert_eq!(parse("replay.toml", &to_toml(&workload)), Ok(workload));
            }
            Err(error) => {
                // What ran may be no longer than what the machine charges anew.
                prop_assert!(total == 0 || charges, "{}", error);
                prop_assert!(error.to_string().contains("holds no task"), "{}", error);
            }
        }
    }

    #[test]
    fn no_recording_panics(
        events in prop::collection::vec((0_u8..4, 0_u64..1_000, 0_u32..4, 0_u32..6, 0_u32..6, any::<u8>()), 0..200)
    ) {
        let mut replay = Recording::new(2);
        for (what, time_ns, cpu, a, b, flags) in events {
            match what {
                0 => replay.switch(time_ns, cpu, a, flags & 1 > 0, flags & 2 > 0, b),
                1 => replay.waking(time_ns, cpu, (flags & 1 > 0).then_some(a), b),
                2 => replay.fork(time_ns, a, b),
                _ => replay.exit(time_ns, a),
            };
        }
        if let Err(error) = replay.finish("replay") {
            prop_assert!(error.to_string().contains("holds no task"), "{}", error);
        }
    }
}
