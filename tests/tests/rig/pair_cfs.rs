//! `cfs` and its naive model, with the same history of one CPU.

use super::callbacks::{Callbacks, Loaded, Task};
use super::naive::{Dice, Mix};
use super::naive_cfs;
use super::{MS, US};

/// The object and its model.
pub struct CfsPair {
    pub kernel: Callbacks,
    pub naive: naive_cfs::Naive,
    pub tasks: Vec<Task>,
    pub told: String,
}

/// `struct cfs_queue`, words: min_vruntime, and the current task's vruntime.
pub const CFS_MIN_VRUNTIME: usize = 0;
pub const CFS_CURR_VRUNTIME: usize = 2;
/// And the offset of the current task's pid.
pub const CFS_CURR_PID_AT: usize = 64;

impl CfsPair {
    pub fn new(loaded: &Loaded, set: &str, switches: &[(&str, bool)]) -> CfsPair {
        let mut rules = naive_cfs::Rules::of(set);
        let mut settings = super::set_of("cfs", set);
        for &(name, on) in switches {
            settings.retain(|(known, _)| known != name);
            settings.push((name.to_owned(), u64::from(on)));
            let switch = match name {
                "FAIR_SLEEPERS" => &mut rules.fair_sleepers,
                "GENTLE_FAIR_SLEEPERS" => &mut rules.gentle,
                "START_DEBIT" => &mut rules.start_debit,
                _ => &mut rules.wakeup_preemption,
            };
            *switch = on;
        }
        let settings: Vec<(&str, u64)> = settings.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let kernel = Callbacks::new(loaded, &settings);
        CfsPair {
            kernel,
            naive: naive_cfs::Naive::new(rules),
            tasks: Vec::new(),
            told: String::new(),
        }
    }

    pub fn current(&self) -> Option<usize> {
        self.kernel.current().map(|task| self.tasks.iter().position(|t| *t == task).expect("ours"))
    }

    pub fn pass(&mut self, ns: u64) {
        self.kernel.pass(ns);
        self.naive.pass(ns);
    }

    pub fn schedule(&mut self) {
        let models = self.naive.picks();
        self.kernel.schedule();
        let (picked, model) = (self.current(), models.first().copied());
        if picked.is_none_or(|task| !models.contains(&task)) && picked != model {
            let v = |task: Option<usize>| task.map(|task| self.naive.tasks[task].v);
            let told = &self.told;
            assert!(
                picked.is_some() && picked != self.naive.current,
                "{told}: picks {picked:?}, the model {model:?}"
            );
            assert_eq!(v(picked), v(model), "{told}: picks {picked:?}, the model {model:?}");
        }
        match picked {
            None => self.naive.current = None,
            Some(task) => self.naive.run(task),
        }
    }

    /// Tasks wake up or are new, sometimes several before the CPU picks.
    pub fn join(&mut self, dice: &mut Dice, mix: &Mix) {
        let mut asked = false;
        for _ in 0..mix.tasks {
            asked |= self.one_joins(dice, mix);
            if !dice.one_in(4) {
                break;
            }
        }
        if asked || self.kernel.current().is_none() {
            self.schedule();
        }
    }

    /// True: the CPU is to pick again.
    fn one_joins(&mut self, dice: &mut Dice, mix: &Mix) -> bool {
        let asleep: Vec<usize> =
            (0..self.tasks.len()).filter(|task| !self.naive.tasks[*task].queued).collect();
        let room = self.tasks.len() < mix.tasks;
        if asleep.is_empty() && !room {
            return false;
        }
        let task = if asleep.is_empty() || (room && dice.one_in(2)) {
            let nice = dice.of(mix.nices);
            self.tasks.push(self.kernel.task(nice));
            self.naive.add(nice)
        } else {
            dice.of(&asleep)
        };
        self.told = format!("{task} joins");
        let before = self.kernel.kicks();
        if self.naive.tasks[task].is_new {
            self.kernel.restore(self.tasks[task]);
        } else {
            self.kernel.wake(self.tasks[task]);
        }
        let asked = self.kernel.kicks() != before;
        assert_eq!(asked, self.naive.join(task), "{}: preempts", self.told);
        self.check();
        asked
    }

    pub fn check(&self) {
        let told = &self.told;
        let min = self.kernel.word("cpu_queues", CFS_MIN_VRUNTIME);
        assert_eq!(min, self.naive.min_v as u64, "{told}: min_vruntime");
        for (task, entity) in self.naive.tasks.iter().enumerate().filter(|(_, e)| !e.is_new) {
            let seen = if self.naive.current == Some(task) {
                self.kernel.word("cpu_queues", CFS_CURR_VRUNTIME)
            } else {
                self.kernel.dsq_vtime(self.tasks[task])
            };
            assert_eq!(seen, entity.v as u64, "{told}: vruntime of {task}");
        }
    }

    pub fn live(&mut self, dice: &mut Dice, mix: &Mix, now_ns: &mut u64) -> u64 {
        let until_ns = *now_ns
            + dice.of(&[3, 40, 200, 700, 2500]) * US * (1 + dice.below(3))
            + dice.below(999);
        let mut decisions = 1;
        while (*now_ns / MS + 1) * MS <= until_ns {
            let tick_ns = (*now_ns / MS + 1) * MS;
            self.pass(tick_ns - *now_ns);
            *now_ns = tick_ns;
            if self.kernel.current().is_none() {
                continue;
            }
            self.told = "tick".to_owned();
            let (over, model) = (self.kernel.tick(), self.naive.tick());
            assert_eq!(over, model, "ends the slice");
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
        let current = self.current();
        if current.is_some() && dice.one_in(mix.sleep) {
            self.told = format!("{current:?} sleeps");
            self.kernel.sleep();
            self.naive.sleep();
            self.schedule();
        } else if current.is_some() && dice.one_in(mix.yields) {
            self.told = format!("{current:?} yields");
            self.kernel.yield_now();
            self.naive.yields();
            self.schedule();
        } else if current.is_none() || dice.one_in(3) {
            self.join(dice, mix);
            decisions += 1;
        }
        self.check();
        decisions
    }
}
