//! The laws of `rfs` (docs/laws/rfs.md) that hold after every operation, on the compiled object: a random history of
//! one CPU, callback by callback, beside a model with 128-bit numbers. Damaged sums and changed parameters break the
//! laws.

use std::collections::BTreeSet;

use crate::rig::callbacks::{Callbacks, Loaded, Task, load};
use crate::rig::rfs::{
    ACCURATE, LITERAL, Member, Queue, TIME_NORM_BASE, TIME_NORM_INC, TIME_SUM_MAX, TIME_SUM_OFF,
    WEIGHT_SUM_APP, inv, shift,
};
use crate::rig::{MS, diff};

fn queue(rfs: &Callbacks) -> Queue {
    Queue::read(|word| rfs.word("cpu_queues", word))
}

/// A task of the model: time relative to the common start.
struct ModelTask {
    task: Task,
    nice: i8,
    time_norm: i128,
    runnable: bool,
}

/// A random history of one CPU: the object and a model with 128-bit numbers side by side.
struct History {
    rfs: Callbacks,
    tasks: Vec<ModelTask>,
    fraction_bits: u32,
    max_log2: u32,
    start: u64,
    current: Option<usize>,
    /// The average of an empty queue.
    emptied_at: i128,
    seed: u64,
    /// Counts: wake-ups at the limit, wake-ups with the own time, slices ended by a tick, wake-ups that preempted.
    seen: [u32; 4],
}

const NICES: [i8; 12] = [-20, -17, -10, -5, -1, 0, 0, 1, 5, 10, 15, 19];
const BONUS_NS: i128 = 10_000_000;
const GRANULARITY_NS: i128 = 4_000_000;
const WAKEUP_GRANULARITY_NS: i128 = 1_000_000;

impl History {
    fn new(loaded: &Loaded, model: (u32, u32), settings: &[(&str, u64)], start: u64) -> History {
        // The model's parameters, whatever the defaults are; a change to find a fault comes after it.
        let model_ns = [
            ("bonus_ns", BONUS_NS as u64),
            ("granularity_ns", GRANULARITY_NS as u64),
            ("wakeup_granularity_ns", WAKEUP_GRANULARITY_NS as u64),
        ];
        let mut settings = [&model_ns[..], settings].concat();
        settings.push(("time_norm_start", start));
        let mut rfs = Callbacks::new(loaded, &settings);
        let sleeping =
            |nice| ModelTask { task: rfs.task(nice), nice, time_norm: 0, runnable: false };
        let tasks = NICES.map(sleeping).into();
        let (fraction_bits, max_log2) = model;
        let seed = 88_172_645_463_325_252;
        History {
            rfs,
            tasks,
            fraction_bits,
            max_log2,
            start,
            current: None,
            emptied_at: 0,
            seed,
            seen: [0; 4],
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    fn inv(&self, nice: i8) -> i128 {
        i128::from(inv(nice, self.fraction_bits))
    }

    fn average(&self) -> i128 {
        let runnable = || self.tasks.iter().filter(|t| t.runnable);
        let weights: i128 = runnable().map(|t| 1i128 << shift(t.nice)).sum();
        if weights == 0 {
            return self.emptied_at;
        }
        runnable().map(|t| t.time_norm << shift(t.nice)).sum::<i128>().div_euclid(weights)
    }

    fn least_waiting(&self) -> Option<i128> {
        let waiting = self.tasks.iter().enumerate();
        let waiting = waiting.filter(|(i, t)| t.runnable && Some(*i) != self.current);
        waiting.map(|(_, t)| t.time_norm).min()
    }

    /// The lead of the current task over a time, less this many ns of its own.
    fn lead(&self, of: i128, granularity_ns: i128) -> Option<i128> {
        let current = &self.tasks[self.current?];
        Some(current.time_norm - of - granularity_ns * self.inv(current.nice))
    }

    fn leave(&mut self, i: usize) {
        self.tasks[i].runnable = false;
        self.emptied_at = self.tasks[i].time_norm;
    }

    /// The object's times, relative to the start, are the model's, and its sums those of its tasks.
    fn check(&self) -> Result<(), String> {
        let q = queue(&self.rfs);
        let mut members: Vec<Member> = Vec::new();
        for (i, t) in self.tasks.iter().enumerate().filter(|(_, t)| t.runnable) {
            let is_current = Some(i) == self.current;
            let time = if is_current { q.curr_time_norm } else { self.rfs.dsq_vtime(t.task) };
            if i128::from(diff(time, self.start)) != t.time_norm {
                return Err(format!("law 4: nice {}: {time}, model {}", t.nice, t.time_norm));
            }
            members.push((time, shift(t.nice)));
        }
        q.check(&members, self.max_log2)?;
        q.check_average(&members)
    }

    /// A new task, or a wake-up: placement and preemption (law 10).
    fn wake(&mut self, i: usize, is_new: bool) -> Result<(), String> {
        let (average, task) = (self.average(), self.tasks[i].task);
        let limit = average - BONUS_NS * self.inv(0);
        let own = self.tasks[i].time_norm;
        let placed = match self.current {
            Some(parent) if is_new => average.max(self.tasks[parent].time_norm),
            _ if is_new => average,
            _ => own.max(limit),
        };
        let kicks = self.rfs.kicks();
        if is_new {
            self.rfs.restore(task)
        } else {
            self.rfs.wake(task)
        }
        let got = i128::from(diff(self.rfs.dsq_vtime(task), self.start));
        if got != placed {
            return Err(format!("law 10: own {own}, limit {limit}: placed at {got}"));
        }
        let preempts = self.lead(placed, WAKEUP_GRANULARITY_NS).is_some_and(|lead| lead > 0);
        if (self.rfs.kicks() > kicks) != preempts {
            return Err(format!("a wake-up at {placed} should preempt: {preempts}"));
        }
        self.tasks[i].time_norm = placed;
        self.tasks[i].runnable = true;
        self.seen[usize::from(placed == own && !is_new)] += u32::from(!is_new);
        self.seen[3] += u32::from(preempts);
        Ok(())
    }

    /// The current task runs; then a tick.
    fn run(&mut self) -> Result<(), String> {
        let Some(current) = self.current else { return Ok(()) };
        let alone = self.least_waiting().is_none();
        let ns = self.random(if alone { 200 * MS } else { 4 * MS });
        self.rfs.pass(ns);
        self.tasks[current].time_norm += i128::from(ns) * self.inv(self.tasks[current].nice);
        let ahead = self.least_waiting().and_then(|least| self.lead(least, GRANULARITY_NS));
        let ends = ahead.is_some_and(|ahead| ahead > 0);
        if self.rfs.tick() != ends {
            return Err(format!("the tick should end the slice: {ends}, {ahead:?} beyond G"));
        }
        self.seen[2] += u32::from(ends);
        if ends { self.schedule() } else { Ok(()) }
    }

    /// The smallest time runs next; among equals a waiting task before the current one.
    fn schedule(&mut self) -> Result<(), String> {
        let least = self.tasks.iter().filter(|t| t.runnable).map(|t| t.time_norm).min();
        let got = self.rfs.schedule();
        self.current = self.tasks.iter().position(|t| Some(t.task) == got);
        let got = self.current.map(|i| self.tasks[i].time_norm);
        if got == least { Ok(()) } else { Err(format!("{got:?} was picked, least is {least:?}")) }
    }

    /// A waiting task is dequeued, and enqueued again with another nice value or not at all.
    fn take_out(&mut self, i: usize) {
        self.rfs.take_out(self.tasks[i].task);
        self.leave(i);
        if self.random(2) == 0 {
            self.tasks[i].nice = NICES[self.random(12) as usize];
            self.rfs.set_nice(self.tasks[i].task, self.tasks[i].nice);
            self.rfs.restore(self.tasks[i].task);
            self.tasks[i].runnable = true;
        }
    }

    /// The current task sleeps, and the CPU idles or runs another.
    fn sleep(&mut self) -> Result<(), String> {
        let Some(current) = self.current.take() else { return Ok(()) };
        self.rfs.sleep();
        self.leave(current);
        self.check()?;
        self.schedule()
    }

    /// A task joins in the middle of a slice: the run time of the current task since the last tick must count.
    fn come(&mut self, i: usize, is_new: bool) -> Result<(), String> {
        let ns = self.random(MS);
        self.rfs.pass(ns);
        if let Some(current) = self.current {
            self.tasks[current].time_norm += i128::from(ns) * self.inv(self.tasks[current].nice);
        }
        self.wake(i, is_new)?;
        if self.current.is_none() { self.schedule() } else { Ok(()) }
    }

    fn steps(&mut self, count: u32) -> Result<(), String> {
        let mut born = BTreeSet::new();
        for step in 0..count {
            let i = self.random(12) as usize;
            let done = match self.random(16) {
                0..4 if !self.tasks[i].runnable => self.come(i, born.insert(i)),
                4 => self.sleep(),
                5 if self.tasks[i].runnable && Some(i) != self.current => {
                    self.take_out(i);
                    Ok(())
                }
                6 => self.schedule(),
                _ => self.run(),
            };
            done.and_then(|()| self.check()).map_err(|why| format!("step {step}: {why}"))?;
        }
        Ok(())
    }
}

#[test]
fn laws_02_03_04_05_07_10_hold_after_every_operation() {
    let loaded = load("rfs");
    let narrow = [("fraction_bits", 16), ("max_timesum_log2", 40)];
    for (settings, model) in [(LITERAL, (16, 46)), (ACCURATE, (24, 54)), (narrow, (16, 40))] {
        for start in [0, (1 << 63) - 5_000_000_000, u64::MAX - 5_000_000_000] {
            let mut history = History::new(&loaded, model, &settings, start);
            history.steps(6000).unwrap_or_else(|e| panic!("{settings:?} from {start}: {e}"));
            let seen = history.seen;
            assert!(seen.iter().all(|n| *n >= 50), "too little of something happened: {seen:?}");
            assert!(queue(&history.rfs).rotations > 0);
            let passed = diff(queue(&history.rfs).time_norm_base, start);
            assert!(passed > 5_000_000_000, "law 7: the times went past the wrap, {passed}");
        }
    }
}

/// The laws can fail: a scheduler with another parameter than the model's breaks the law for it.
#[test]
fn another_scheduler_breaks_the_laws() {
    let loaded = load("rfs");
    for (name, value, law) in [
        ("bonus_ns", 9 * MS, "law 10"),
        ("granularity_ns", 5 * MS, "the tick should end"),
        ("wakeup_granularity_ns", 3 * MS, "should preempt"),
        ("WAKEUP_PREEMPTION", 0, "should preempt"),
        ("max_timesum_log2", 47, "law 3, invariant N"),
        ("fraction_bits", 17, "law"),
        ("START_DEBIT", 1, "law 10"),
    ] {
        let mut settings = LITERAL.to_vec();
        settings.push((name, value));
        let told = History::new(&loaded, (16, 46), &settings, 0).steps(6000);
        assert!(told.as_ref().is_err_and(|e| e.contains(law)), "{name} = {value}: {told:?}");
    }
}

/// The check of the sums can fail: each of them changed by the least possible amount.
#[test]
fn damaged_sums_break_the_laws() {
    let loaded = load("rfs");
    for word in [WEIGHT_SUM_APP, TIME_NORM_BASE, TIME_SUM_OFF, TIME_SUM_MAX, TIME_NORM_INC] {
        let mut history = History::new(&loaded, (16, 46), &LITERAL, 0);
        history.steps(500).expect("undamaged, all laws hold");
        while queue(&history.rfs).weight_sum_app == 0 {
            history.steps(1).expect("undamaged, all laws hold");
        }
        let value = history.rfs.word("cpu_queues", word);
        history.rfs.set_word("cpu_queues", word, value + 1);
        assert!(history.check().is_err(), "word {word}: {value} + 1 went unnoticed");
    }
}
