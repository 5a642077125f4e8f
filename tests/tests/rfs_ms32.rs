//! The laws of the 32-bit form of `rfs` (set `ms32`; docs/laws/rfs.md): it decides as the 64-bit form does, its numbers
//! are 32 bits wide, and its ranges are those of (9), (18) and (24).

use crate::rig::callbacks::{Callbacks, Loaded, Task, load};
use crate::rig::rfs::{LITERAL, Member, Queue, inv, shift};
use crate::rig::{MS, bench, diff};

/// The settings of the set; `CLOCK_MS32` is 1.
const MS32: [(&str, u64); 3] = [("fraction_bits", 16), ("max_timesum_log2", 62), ("rule_clock", 1)];
/// With nice -20 and 19 together sums do not fit: see the test of (24) below.
const NICES: [i8; 10] = [-10, -7, -5, 0, 0, 1, 5, 10, 15, 19];
const GRANULARITY_MS: i64 = 4;
const WAKEUP_GRANULARITY_MS: i64 = 1;
/// The tolerated difference of the two forms' times, units of the 32-bit form (1/64 ms of nice 0): each placement at
/// an average is rounded down to a unit, and the average propagates the rounding of its tasks.
const ROUNDING_UNITS: i64 = 4;

fn queue(rfs: &Callbacks) -> Queue {
    Queue::read(|word| rfs.word("cpu_queues", word))
}

/// The decisions of two runs with the same history.
struct Pair {
    wide: Callbacks,
    narrow: Callbacks,
    /// Its number in both, nice value, whether it is runnable, whether it has run before.
    tasks: Vec<(Task, Task, i8)>,
    runnable: Vec<bool>,
    born: Vec<bool>,
    current: Option<usize>,
    seed: u64,
    decisions: u32,
}

/// A decision that the two forms take differently: how close the wide form was to the other choice, units.
struct Differ(i64);

impl Pair {
    fn new(loaded: &Loaded, seed: u64) -> Pair {
        let mut wide = Callbacks::new(loaded, &LITERAL);
        let mut narrow = Callbacks::new(loaded, &MS32);
        let tasks: Vec<_> = NICES.map(|n| (wide.task(n), narrow.task(n), n)).into();
        let count = tasks.len();
        Pair {
            wide,
            narrow,
            tasks,
            runnable: vec![false; count],
            born: vec![false; count],
            current: None,
            seed,
            decisions: 0,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    /// A task's time in the wide form, relative to another's or to the least waiting one's, units of the narrow one.
    fn time(&self, i: usize) -> u64 {
        if self.current == Some(i) {
            queue(&self.wide).curr_time_norm
        } else {
            self.wide.dsq_vtime(self.tasks[i].0)
        }
    }

    /// How far the current task is beyond a lead of `ms` of its own time over another.
    fn lead(&self, other: usize, ms: i64) -> i64 {
        let Some(current) = self.current else { return 0 };
        let ahead = diff(self.time(current), self.time(other)) / MS as i64;
        ahead - ms * inv(self.tasks[current].2, 16) as i64
    }

    fn least_waiting(&self) -> Option<usize> {
        let waiting =
            (0..self.tasks.len()).filter(|i| self.runnable[*i] && self.current != Some(*i));
        waiting.min_by(|a, b| diff(self.time(*a), self.time(*b)).cmp(&0))
    }

    fn schedule(&mut self) -> Result<(), Differ> {
        self.decisions += 1;
        let (wide, narrow) = (self.wide.schedule(), self.narrow.schedule());
        let first = self.tasks.iter().position(|t| Some(t.0) == wide);
        let second = self.tasks.iter().position(|t| Some(t.1) == narrow);
        if first == second {
            self.current = first;
            return Ok(());
        }
        self.current = None;
        // Both have just been charged; the running task has the time that it waited with.
        let time =
            |i: Option<usize>| self.wide.dsq_vtime(self.tasks[i.expect("a task is runnable")].0);
        Err(Differ(diff(time(first), time(second)).abs() / MS as i64))
    }

    fn run(&mut self) -> Result<(), Differ> {
        if self.current.is_none() {
            return Ok(());
        }
        let ns = (1 + self.random(5)) * MS;
        self.wide.pass(ns);
        self.narrow.pass(ns);
        self.decisions += 1;
        let (wide, narrow) = (self.wide.tick(), self.narrow.tick());
        if wide != narrow {
            let least = self.least_waiting().expect("a slice ends for another task");
            return Err(Differ(self.lead(least, GRANULARITY_MS).abs()));
        }
        if wide { self.schedule() } else { Ok(()) }
    }

    fn wake(&mut self, i: usize) -> Result<(), Differ> {
        self.decisions += 1;
        let kicks = [self.wide.kicks(), self.narrow.kicks()];
        if self.born[i] {
            self.wide.wake(self.tasks[i].0);
            self.narrow.wake(self.tasks[i].1);
        } else {
            self.wide.restore(self.tasks[i].0);
            self.narrow.restore(self.tasks[i].1);
        }
        (self.born[i], self.runnable[i]) = (true, true);
        let preempts = [self.wide.kicks() > kicks[0], self.narrow.kicks() > kicks[1]];
        if preempts[0] != preempts[1] {
            return Err(Differ(self.lead(i, WAKEUP_GRANULARITY_MS).abs()));
        }
        if self.current.is_none() || preempts[0] { self.schedule() } else { Ok(()) }
    }

    fn sleep(&mut self) -> Result<(), Differ> {
        let Some(current) = self.current.take() else { return Ok(()) };
        self.wide.sleep();
        self.narrow.sleep();
        self.runnable[current] = false;
        self.schedule()
    }

    fn take_out(&mut self, i: usize) {
        self.wide.take_out(self.tasks[i].0);
        self.narrow.take_out(self.tasks[i].1);
        self.runnable[i] = false;
    }

    fn step(&mut self) -> Result<(), Differ> {
        let i = self.random(NICES.len() as u64) as usize;
        match self.random(12) {
            0..2 if !self.runnable[i] => self.wake(i),
            2 => self.sleep(),
            3 if self.runnable[i] && self.current != Some(i) => {
                self.take_out(i);
                Ok(())
            }
            4 => self.schedule(),
            _ => self.run(),
        }
    }

    /// Laws 2 and 3 in 32 bits: every number's lower half is empty, and the sums are those of the tasks.
    fn check(&self) {
        let q = queue(&self.narrow);
        let mut members: Vec<Member> = Vec::new();
        for i in (0..self.tasks.len()).filter(|i| self.runnable[*i]) {
            let waiting = self.narrow.dsq_vtime(self.tasks[i].1);
            let time = if self.current == Some(i) { q.curr_time_norm } else { waiting };
            members.push((time, shift(self.tasks[i].2)));
        }
        q.check(&members, 62).unwrap_or_else(|e| panic!("{e}"));
        let numbers = [q.time_norm_base, q.time_sum_off as u64, q.time_sum_max, q.time_norm_inc];
        let times = members.iter().map(|m| m.0);
        let narrow = numbers.into_iter().chain(times).all(|n| n as u32 == 0);
        assert!(narrow, "no number has more than 32 bits: {q:?} {members:?}");
    }
}

/// Both forms have the same history, with run times of whole ms. Each history ends where they differ, which is allowed
/// only where two times are equal within the rounding of the averages.
#[test]
fn law_11_both_forms_decide_alike() {
    let loaded = load("rfs");
    let (mut decisions, mut near_ties) = (0, 0);
    let mut seed = 88_172_645_463_325_252;
    while decisions < 120_000 {
        let mut pair = Pair::new(&loaded, seed);
        for _ in 0..8_000 {
            if let Err(Differ(units)) = pair.step() {
                assert!(units <= ROUNDING_UNITS, "they differ where {units} units decide");
                near_ties += 1;
                break;
            }
            if pair.decisions.is_multiple_of(16) {
                pair.check();
            }
        }
        decisions += pair.decisions;
        seed = pair.seed;
    }
    assert!(near_ties * 500 < decisions, "{near_ties} near ties in {decisions} decisions");
}

/// Without placements there is nothing to round: not one decision differs.
#[test]
fn law_11_hogs_alone_are_decided_alike_to_the_last() {
    let loaded = load("rfs");
    let mut pair = Pair::new(&loaded, 1);
    for i in 0..NICES.len() {
        assert!(pair.wake(i).is_ok());
    }
    while pair.decisions < 100_000 {
        let alike = if pair.random(9) == 0 { pair.schedule() } else { pair.run() };
        assert!(alike.is_ok(), "decision {}", pair.decisions);
    }
    pair.check();
}

/// A pair of tasks of one nice value, the first of which runs.
fn two(loaded: &Loaded, nice: i8) -> (Callbacks, [Task; 2]) {
    let mut rfs = Callbacks::new(loaded, &MS32);
    let tasks = [rfs.task(nice), rfs.task(nice)];
    tasks.iter().for_each(|task| rfs.restore(*task));
    assert_eq!(rfs.schedule(), Some(tasks[0]));
    (rfs, tasks)
}

/// (9): two times can be compared while they are less than 2^31 apart, 491 s of nice 19.
#[test]
fn law_11_times_are_comparable_for_491_seconds() {
    let loaded = load("rfs");
    let (mut rfs, _) = two(&loaded, 19);
    for second in 1..=491 {
        rfs.pass(1_000 * MS);
        assert!(rfs.tick(), "after {second} s the slice is over");
    }
    rfs.pass(1_000 * MS);
    assert!(!rfs.tick(), "after 492 s the one ahead looks like the one behind");
}

/// (18): the sum of run times fits for 2^31 / 2^16 / 1.42 ms = 23 s between two adjustments of the base.
#[test]
fn law_11_a_sum_of_run_times_fits_for_23_seconds() {
    let loaded = load("rfs");
    // inv * 2^shift is largest, 1.39 * 2^16, at nice 17.
    let largest = (-20..20).filter(|n| *n >= 0).max_by_key(|n| inv(*n, 16) << shift(*n));
    assert_eq!(largest, Some(17));
    for (seconds, holds) in [(16, true), (23, true), (24, false)] {
        let (mut rfs, tasks) = two(&loaded, 17);
        rfs.pass(seconds * 1_000 * MS);
        rfs.tick();
        let (q, other) = (queue(&rfs), rfs.dsq_vtime(tasks[1]));
        let mean = diff(q.curr_time_norm, other) / 2;
        // Whole 32-bit numbers, rounded down.
        let average = diff(q.average(), other) >> 32;
        assert_eq!(average == mean >> 32, holds, "{seconds} s without a tick: {average}, {mean}");
    }
    // With a tick in between it always fits: the base has absorbed the rest.
    let (mut rfs, tasks) = two(&loaded, 17);
    for _ in 0..60 {
        rfs.pass(4_000 * MS);
        rfs.tick();
    }
    let (q, other) = (queue(&rfs), rfs.dsq_vtime(tasks[1]));
    assert_eq!(diff(q.average(), other) >> 32, (diff(q.curr_time_norm, other) / 2) >> 32);
}

/// (24): the distance of a task that joins, times 2^shift, must be below 2^31. At nice -20 that is 2^15 units, half a
/// second of nice 0, but 7.5 ms of nice 19: a task that has run beside nice 19 for a granularity can be further away.
#[test]
fn law_11_a_task_that_joins_fits_within_2_to_31_over_its_weight() {
    let loaded = load("rfs");
    assert_eq!((1u64 << 31 >> shift(-20)) / inv(19, 16), 7, "ms of nice 19");
    for (nice, distance, holds) in
        [(-20, 32_000, true), (-20, 33_000, false), (-10, 250_000, true), (-10, 270_000, false)]
    {
        let mut rfs = Callbacks::new(&loaded, &MS32);
        let (first, joins) = (rfs.task(0), rfs.task(nice));
        for task in [first, joins] {
            rfs.restore(task);
        }
        rfs.take_out(joins);
        rfs.set_dsq_vtime(joins, distance << 32);
        rfs.restore(joins);
        let mean = (distance << shift(nice)) / ((1 << shift(nice)) + (1 << shift(0)));
        assert_eq!(queue(&rfs).average() >> 32 == mean, holds, "nice {nice}, {distance} units");
    }
}

/// MAX_TIMESUM is 2^30: the base moves about every 2^30 / 2^16 ms = 16 s, at least twice as often where the sums just
/// fit.
#[test]
fn law_12_the_base_rotates_about_every_16_seconds() {
    for mix in ["hogs:3", "hogs:1:-5:0:5", "hogs:2:5:10"] {
        let mut run = bench("rfs@ms32").hz(100).run(mix);
        run.until(10 * MS);
        let read = |run: &crate::rig::Run| Queue::read(|word| run.queue_u64(0, word));
        let before = read(&run);
        let seconds = 400;
        run.until(10 * MS + seconds * 1_000 * MS);
        let after = read(&run);
        let rotations = (after.rotations - before.rotations) as f64;
        let expected = seconds as f64 * 1000.0 * 65536.0 / (after.time_sum_max >> 32) as f64;
        assert!(
            (1.0 / 1.42..=1.42).contains(&(rotations / expected)),
            "{mix}: {rotations}, {expected}"
        );
        let each = seconds as f64 / rotations;
        assert!((16.4 / 2.0 / 1.42..=16.4 * 1.42).contains(&each), "{mix}: every {each} s");
    }
}

/// Run time below a millisecond is not lost: it is charged with the next.
#[test]
fn law_04_service_is_accounted_in_whole_milliseconds_and_nothing_is_lost() {
    let mut run =
        bench("rfs@ms32").hz(250).run("hogs:1:-5:0:5:19 + sleepers:3,run=33us,sleep=901us");
    run.until(300 * 1_000);
    let hogs: Vec<_> = run.tasks().into_iter().filter(|t| t.1.starts_with("hog")).collect();
    let start: Vec<_> = hogs.iter().map(|h| run.task(h.0)).collect();
    run.until(5_000 * MS);
    for (hog, start) in hogs.iter().zip(&start) {
        let now = run.task(hog.0);
        let advance = (now.dsq_vtime.wrapping_sub(start.dsq_vtime) >> 32) as u32;
        let charged_ms = u64::from(advance) / inv(hog.2, 16);
        assert_eq!(u64::from(advance) % inv(hog.2, 16), 0, "whole ms");
        let ran_ms = now.sum_exec_ns / MS - start.sum_exec_ns / MS;
        assert_eq!(charged_ms, ran_ms, "nice {}", hog.2);
    }
}
