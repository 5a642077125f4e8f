//! `eevdf` and its naive model, with the same history of one CPU.

use super::callbacks::{Callbacks, Loaded, Task};
use super::eevdf;
use super::naive::{Dice, Mix};
use super::naive_eevdf::{Naive, Rules, State};
use super::{MS, US};

/// The object and its model.
pub struct EevdfPair {
    pub kernel: Callbacks,
    pub naive: Naive,
    pub tasks: Vec<Task>,
    pub told: String,
}

impl EevdfPair {
    pub fn new(loaded: &Loaded, set: &str, switches: &[(&str, bool)]) -> EevdfPair {
        let mut rules = Rules::of(set);
        let mut settings = super::set_of("eevdf", set);
        for &(name, on) in switches {
            settings.retain(|(known, _)| known != name);
            settings.push((name.to_owned(), u64::from(on)));
            let switch = match name {
                "PLACE_LAG" => &mut rules.place_lag,
                "PLACE_DEADLINE_INITIAL" => &mut rules.place_deadline_initial,
                "PLACE_REL_DEADLINE" => &mut rules.place_rel_deadline,
                "RUN_TO_PARITY" => &mut rules.run_to_parity,
                "PREEMPT_SHORT" => &mut rules.preempt_short,
                "NEXT_BUDDY" => &mut rules.next_buddy,
                "PICK_BUDDY" => &mut rules.pick_buddy,
                "DELAY_DEQUEUE" => &mut rules.delay_dequeue,
                "DELAY_ZERO" => &mut rules.delay_zero,
                _ => &mut rules.wakeup_preemption,
            };
            *switch = on;
        }
        let settings: Vec<(&str, u64)> = settings.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let kernel = Callbacks::new(loaded, &settings);
        EevdfPair { kernel, naive: Naive::new(rules), tasks: Vec::new(), told: String::new() }
    }

    pub fn spawn(&mut self, nice: i8) -> usize {
        self.tasks.push(self.kernel.task(nice));
        self.naive.add(nice)
    }

    pub fn current(&self) -> Option<usize> {
        self.kernel.current().map(|task| self.number(task))
    }

    pub fn number(&self, task: Task) -> usize {
        self.tasks.iter().position(|known| *known == task).expect("one of ours")
    }

    pub fn pass(&mut self, ns: u64) {
        self.kernel.pass(ns);
        self.naive.pass(ns);
    }

    /// Whether both preempt the current task.
    pub fn asked(&mut self, before: u32, model: bool) -> bool {
        let asked = self.kernel.kicks() != before;
        assert_eq!(asked, model, "{}: preempts", self.told);
        asked
    }

    pub fn join(&mut self, task: usize) -> bool {
        let before = self.kernel.kicks();
        if self.naive.tasks[task].is_new {
            self.kernel.restore(self.tasks[task]);
        } else {
            self.kernel.wake(self.tasks[task]);
        }
        let model = self.naive.join(task);
        self.asked(before, model)
    }

    pub fn schedule(&mut self) {
        let before = self.naive.current;
        let model = self.naive.pick();
        self.kernel.schedule();
        let picked = self.current();
        if picked != model {
            let (Some(a), Some(b)) = (picked, model) else {
                panic!("{}: picks {picked:?}, the model {model:?}", self.told)
            };
            let (ours, theirs) = (&self.naive.tasks[a], &self.naive.tasks[b]);
            assert!(
                before != Some(a)
                    && before != Some(b)
                    && ours.state == State::Queued
                    && ours.d == theirs.d,
                "{}: picks {a}, the model {b}: {ours:?}, {theirs:?}",
                self.told
            );
        }
        match picked {
            None => self.naive.current = None,
            Some(task) if before != picked => self.naive.run(task),
            Some(_) => {}
        }
    }

    pub fn check(&self) {
        let (told, queue) = (&self.told, eevdf::queue(&self.kernel));
        assert_eq!(queue.total_weight(), self.naive.total_weight(), "{told}: weight");
        if queue.total_weight() != 0 {
            assert_eq!(queue.average(), self.naive.average() as u64, "{told}: V");
        }
        for (task, entity) in self.naive.tasks.iter().enumerate() {
            let seen = eevdf::entity(&self.kernel, self.tasks[task]);
            if self.naive.current == Some(task) {
                assert_eq!(queue.curr_vruntime, entity.v as u64, "{told}: v of the current one");
                assert_eq!(queue.curr_deadline, entity.d as u64, "{told}: its deadline");
                assert_eq!(queue.curr_vprot, self.naive.vprot as u64, "{told}: its protection");
                assert_eq!(i128::from(queue.curr_slice_ns), entity.slice_ns, "{told}: its slice");
                continue;
            }
            match entity.state {
                State::Out if seen.delayed == 0 && !entity.is_new => {
                    assert_eq!(i128::from(seen.vlag), entity.vlag, "{told}: lag of {task}");
                }
                State::Out => {}
                State::Queued | State::Delayed => {
                    assert_eq!(seen.vruntime, entity.v as u64, "{told}: v of {task}");
                    assert_eq!(seen.deadline, entity.d as u64, "{told}: deadline of {task}");
                    let delayed = seen.delayed != 0 && queue.delayed >> (seen.delayed - 1) & 1 != 0;
                    assert_eq!(delayed, entity.state == State::Delayed, "{told}: {task} delayed");
                }
            }
        }
    }

    /// The next random operation. Returns the number of decisions.
    pub fn step(&mut self, dice: &mut Dice, mix: &Mix) -> u64 {
        let out: Vec<usize> =
            (0..self.tasks.len()).filter(|t| self.naive.tasks[*t].state != State::Queued).collect();
        let Some(current) = self.current() else {
            self.told = "idle".to_owned();
            self.pass(dice.below(3 * MS));
            self.wake_one(dice, &out, mix);
            return 2;
        };
        if dice.one_in(mix.sleep) {
            self.told = format!("{current} sleeps");
            self.kernel.sleep();
            self.naive.sleep();
            self.schedule();
            return 1;
        }
        if dice.one_in(mix.yields) {
            self.told = format!("{current} yields");
            self.kernel.yield_now();
            self.naive.yields();
            self.schedule();
            return 1;
        }
        if dice.one_in(mix.change) {
            return self.change_one(dice, mix);
        }
        if dice.one_in(3) && !(out.is_empty() && self.tasks.len() >= mix.tasks) {
            self.wake_one(dice, &out, mix);
            return 2;
        }
        0
    }

    pub fn wake_one(&mut self, dice: &mut Dice, out: &[usize], mix: &Mix) {
        let task = if self.tasks.len() < mix.tasks && (out.is_empty() || dice.one_in(2)) {
            self.spawn(dice.of(mix.nices))
        } else {
            dice.of(out)
        };
        self.told = format!("{task} joins");
        let asked = self.join(task);
        self.check();
        if asked || self.kernel.current().is_none() {
            self.pass(dice.below(3) * US);
            self.told = format!("{task} joined");
            self.schedule();
        }
    }

    pub fn change_one(&mut self, dice: &mut Dice, mix: &Mix) -> u64 {
        let queued: Vec<usize> =
            (0..self.tasks.len()).filter(|t| self.naive.tasks[*t].state == State::Queued).collect();
        let task = dice.of(&queued);
        let (nice, slice_ns) = (dice.of(mix.nices), dice.of(mix.slices_ns));
        self.told = format!("{task} becomes nice {nice}, slice {slice_ns}");
        let before = self.kernel.kicks();
        self.kernel.change(self.tasks[task], |kernel, task| {
            kernel.set_nice(task, nice);
            kernel.set_slice(task, slice_ns);
        });
        let model = self.naive.change(task, nice, i128::from(slice_ns));
        if self.asked(before, model) {
            self.schedule();
        }
        1
    }

    /// Time passes up to the next step; on the way there may be ticks.
    pub fn live(&mut self, dice: &mut Dice, now_ns: &mut u64) -> u64 {
        let until_ns = *now_ns
            + dice.of(&[3, 40, 200, 700, 1500]) * US * (1 + dice.below(3))
            + dice.below(999);
        let mut decisions = 0;
        while (*now_ns / MS + 1) * MS <= until_ns {
            let tick_ns = (*now_ns / MS + 1) * MS;
            self.pass(tick_ns - *now_ns);
            *now_ns = tick_ns;
            if self.kernel.current().is_none() {
                continue;
            }
            self.told = "tick".to_owned();
            let (over, model) = (self.kernel.tick(), self.naive.update());
            assert_eq!(over, model, "{}: ends the slice", self.told);
            self.naive.resched |= model;
            self.check();
            decisions += 1;
            if over {
                self.schedule();
                self.check();
                decisions += 1;
            }
        }
        self.pass(until_ns - *now_ns);
        *now_ns = until_ns;
        decisions
    }
}
