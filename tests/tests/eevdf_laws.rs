//! The laws of `eevdf` (docs/laws/eevdf.md) on the compiled object, callback by callback: sums, placement, lag,
//! reweight, yield, and the worked example. `eevdf_rules.rs` has those of whole runs, `naive_models.rs` checks every
//! decision.

use crate::rig::callbacks::{Callbacks, HZ, Loaded, Task, load};
use crate::rig::eevdf::{Queue, entity, is_delayed, queue};
use crate::rig::naive::{Dice, virtual_ns};
use crate::rig::{MS, US, diff, weight};

const SETS: [&str; 4] = ["6.6", "6.12", "6.18", "7.2"];
/// `struct eevdf_task`, words.
const VRUNTIME: usize = 0;
const DEADLINE: usize = 1;
const VLAG: usize = 2;

fn kernel(loaded: &Loaded, set: &str, changes: &[(&str, u64)]) -> Callbacks {
    let mut settings = crate::rig::set_of("eevdf", set);
    for (name, value) in changes {
        settings.retain(|(known, _)| known != name);
        settings.push(((*name).to_owned(), *value));
    }
    let settings: Vec<(&str, u64)> = settings.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    Callbacks::new(loaded, &settings)
}

/// One CPU and a random history of its tasks; the sleeping ones are listed.
struct Life {
    kernel: Callbacks,
    tasks: Vec<Task>,
    asleep: Vec<Task>,
    dice: Dice,
    now_ns: u64,
}

const NICES: [i8; 6] = [-5, 0, 0, 5, 10, -11];

impl Life {
    fn new(loaded: &Loaded, set: &str, changes: &[(&str, u64)], tasks: usize, seed: u64) -> Life {
        let mut kernel = kernel(loaded, set, changes);
        let mut dice = Dice::new(seed);
        let tasks: Vec<Task> = (0..tasks).map(|_| kernel.task(dice.of(&NICES))).collect();
        Life { kernel, asleep: tasks.clone(), tasks, dice, now_ns: 0 }
    }

    /// A random event: a tick, a wake-up, a sleep.
    fn step(&mut self) {
        let pass_ns = self.dice.below(MS);
        let tick = (self.now_ns + pass_ns) / MS > self.now_ns / MS;
        self.now_ns += pass_ns;
        self.kernel.pass(pass_ns);
        let mut decide = self.kernel.current().is_none();
        if tick && !decide {
            decide = self.kernel.tick();
        }
        if !self.asleep.is_empty() && self.dice.one_in(2) {
            let at = self.dice.below(self.asleep.len() as u64) as usize;
            let (task, kicks) = (self.asleep.remove(at), self.kernel.kicks());
            if entity(&self.kernel, task).is_new {
                self.kernel.restore(task);
            } else {
                self.kernel.wake(task);
            }
            decide |= self.kernel.kicks() != kicks;
        } else if self.dice.one_in(6)
            && let Some(task) = self.kernel.current()
        {
            self.kernel.sleep();
            self.asleep.push(task);
            decide = true;
        }
        if decide {
            self.kernel.schedule();
        }
    }

    /// The queued entities: v, d and weight; the current one first, delayed ones last.
    fn competing(&self) -> Vec<(u64, u64, u64)> {
        let (q, kernel) = (queue(&self.kernel), &self.kernel);
        let mut all = Vec::new();
        if let Some(task) = kernel.current() {
            all.push((q.curr_vruntime, q.curr_deadline, weight(kernel.nice(task))));
        }
        let mut delayed = Vec::new();
        for (number, task) in self.tasks.iter().enumerate().filter(|(_, t)| self.asleep.contains(t))
        {
            if is_delayed(kernel, *task, number as u32 + 1) {
                delayed.push(*task);
            }
        }
        for task in kernel.waiting().iter().chain(&delayed) {
            let e = entity(kernel, *task);
            all.push((e.vruntime, e.deadline, u64::from(e.weight)));
        }
        all
    }
}

#[test]
fn law_01_the_lags_add_up_to_zero_and_the_sums_are_exact() {
    let loaded = load("eevdf");
    for set in SETS {
        let mut life = Life::new(&loaded, set, &[], 12, 1);
        for _ in 0..3_000 {
            life.step();
            let q = queue(&life.kernel);
            let mut sum = 0_i128;
            let mut total = 0_i128;
            for (v, _, w) in life.competing() {
                sum += i128::from(diff(v, q.zero)) * i128::from(w);
                total += i128::from(w);
            }
            assert_eq!((sum, total), (q.total_sum(), q.total_weight()), "{set}");
            // sum(w * (V - v)) with V = zero + sum / total as a fraction, times total.
            let all = life.competing();
            let lags = all
                .iter()
                .map(|(v, _, w)| i128::from(*w) * (sum - i128::from(diff(*v, q.zero)) * total));
            assert_eq!(lags.sum::<i128>(), 0, "{set}");
        }
    }
}

#[test]
fn law_02_an_entity_is_eligible() {
    let loaded = load("eevdf");
    for set in SETS {
        let mut life = Life::new(&loaded, set, &[], 9, 2);
        for _ in 0..3_000 {
            life.step();
            let (q, all) = (queue(&life.kernel), life.competing());
            assert!(all.is_empty() || all.iter().any(|(v, ..)| q.is_eligible(*v)), "{set}");
        }
    }
}

/// Without protection and delayed entities; `naive_models.rs` checks the pick with them.
#[test]
fn law_03_the_pick_is_the_earliest_deadline_of_the_eligible() {
    let loaded = load("eevdf");
    for set in SETS {
        let plain = [("RUN_TO_PARITY", 0), ("DELAY_DEQUEUE", 0), ("rule_vprot", 0)];
        let mut life = Life::new(&loaded, set, &plain, 20, 3);
        let mut seen = 0;
        for _ in 0..3_000 {
            life.step();
            if life.kernel.current().is_some() {
                // Charges the time up to now, as the pick will.
                life.kernel.tick();
            }
            let all = life.competing();
            let q = queue(&life.kernel);
            let earliest = all.iter().filter(|(v, ..)| q.is_eligible(*v)).map(|(_, d, _)| *d);
            let Some(earliest) = earliest.min_by(|a, b| diff(*a, *b).cmp(&0)) else { continue };
            life.kernel.schedule();
            assert_eq!(queue(&life.kernel).curr_deadline, earliest, "{set}");
            seen += usize::from(all.len() > 3);
        }
        assert!(seen > 500, "{set}: {seen} choices among more than three");
    }
}

#[test]
fn laws_04_05_a_task_comes_back_with_the_lag_that_it_left_with_and_no_more_than_the_limit() {
    let loaded = load("eevdf");
    let tick_ns = 1_000_000_000 / HZ;
    for set in SETS {
        let mut life = Life::new(&loaded, set, &[("DELAY_DEQUEUE", 0)], 8, 4);
        let (mut seen, mut debts) = (0, 0);
        for _ in 0..4_000 {
            life.step();
            let Some(task) = life.kernel.current() else { continue };
            if !life.dice.one_in(4) || life.kernel.waiting().is_empty() {
                continue;
            }
            life.kernel.sleep();
            let left = entity(&life.kernel, task);
            let nice = life.kernel.nice(task);
            let slice_ns = i128::from(left.slice_ns);
            let limit_ns = if matches!(set, "6.18" | "7.2") {
                slice_ns + i128::from(tick_ns)
            } else {
                (2 * slice_ns).max(tick_ns.into())
            };
            assert!(i128::from(left.vlag.abs()) <= virtual_ns(limit_ns, nice), "{set}: {left:?}");
            life.kernel.schedule();
            life.kernel.wake(task);
            let back = entity(&life.kernel, task);
            let lag = queue(&life.kernel).vlag(back.vruntime);
            assert!(
                (lag - left.vlag).abs() <= 2,
                "{set}: left with {}, is back with {lag}",
                left.vlag
            );
            seen += 1;
            debts += usize::from(left.vlag < 0);
        }
        assert!(seen > 200 && debts > 20, "{set}: {seen} sleeps, {debts} in debt");
    }
}

/// The reference is moved by the test: V, eligibility and all that follows stay the same.
#[test]
fn law_06_the_reference_does_not_matter() {
    let loaded = load("eevdf");
    for set in SETS {
        let mut plain = Life::new(&loaded, set, &[], 10, 6);
        let mut moved = Life::new(&loaded, set, &[], 10, 6);
        let mut dice = Dice::new(66);
        for _ in 0..2_000 {
            plain.step();
            moved.step();
            let q = queue(&moved.kernel);
            let by = dice.below(1 << 34) as i64 - (1 << 33);
            if q.total_weight() != 0 {
                moved.kernel.set_word("cpu_queues", 0, q.zero.wrapping_add(by as u64));
                moved.kernel.set_word("cpu_queues", 1, (q.sum - by * q.weight as i64) as u64);
                assert_eq!(queue(&moved.kernel).average(), q.average(), "{set}");
                for (v, ..) in moved.competing() {
                    assert_eq!(queue(&moved.kernel).is_eligible(v), q.is_eligible(v), "{set}");
                }
            }
            assert_eq!(plain.kernel.current(), moved.kernel.current(), "{set}");
            assert_eq!(plain.competing().len(), moved.competing().len(), "{set}");
        }
    }
}

/// A request is made in full and used up: a waiting task has a part of it left, and no more than all. At a change of
/// weight the distance is scaled with another rounding: 1 ns.
#[test]
fn law_07_a_deadline_is_at_most_one_request_away() {
    let loaded = load("eevdf");
    for set in SETS {
        let mut life = Life::new(&loaded, set, &[], 10, 7);
        let new = life.asleep[0];
        life.asleep.remove(0);
        life.kernel.restore(new);
        let (e, nice) = (entity(&life.kernel, new), life.kernel.nice(new));
        let whole = virtual_ns(i128::from(e.slice_ns), nice);
        assert_eq!(i128::from(diff(e.deadline, e.vruntime)), whole / 2, "{set}: a new task");
        for _ in 0..3_000 {
            life.step();
            for task in life.kernel.waiting() {
                let e = entity(&life.kernel, task);
                let whole = virtual_ns(i128::from(e.slice_ns), life.kernel.nice(task));
                let distance = i128::from(diff(e.deadline, e.vruntime));
                assert!(distance > 0 && distance <= whole, "{set}: {distance} of {whole}");
            }
        }
    }
}

/// With negative lag a sleep changes nothing: a task that wakes up at once is where it was; only V advances. In 7.2 V
/// advances to the time of the wake-up, and the debt does not grow.
#[test]
fn law_11_a_sleep_does_not_lose_the_debt() {
    let loaded = load("eevdf");
    for set in ["6.12", "6.18", "7.2"] {
        let mut life = Life::new(&loaded, set, &[], 5, 11);
        let mut seen = 0;
        for _ in 0..6_000 {
            life.step();
            let Some(task) = life.kernel.current() else { continue };
            let q = queue(&life.kernel);
            life.kernel.tick();
            let before = queue(&life.kernel);
            if before.is_eligible(before.curr_vruntime) || q.delayed != 0 {
                continue;
            }
            life.kernel.sleep();
            let slept = queue(&life.kernel).vlag(before.curr_vruntime);
            life.kernel.schedule();
            assert_ne!(entity(&life.kernel, task).delayed, 0, "{set}: it competes on");
            let pass_ns = life.dice.below(300 * US);
            life.kernel.pass(pass_ns);
            life.now_ns += pass_ns;
            let lag_before = queue(&life.kernel).vlag(before.curr_vruntime);
            life.kernel.wake(task);
            let back = entity(&life.kernel, task);
            if set == "7.2" {
                let lag = queue(&life.kernel).vlag(back.vruntime);
                assert!((slept - 2..=2).contains(&lag), "{set}: {lag} after {slept}");
                seen += 1;
                continue;
            }
            if lag_before > 0 {
                continue;
            }
            assert_eq!(back.vruntime, before.curr_vruntime, "{set}");
            assert_eq!(back.deadline, before.curr_deadline, "{set}");
            seen += 1;
            life.kernel.schedule();
        }
        assert!(seen > 100, "{set}: {seen} sleeps in debt");
    }
}

#[test]
fn law_12_another_weight_keeps_v_and_the_lag() {
    let loaded = load("eevdf");
    for set in SETS {
        let mut life = Life::new(&loaded, set, &[], 8, 12);
        let mut seen = 0;
        for _ in 0..4_000 {
            life.step();
            let Some(task) = life.kernel.waiting().first().copied() else { continue };
            // At the clock of the last charge, so that V does not move in between.
            let kicks = life.kernel.kicks();
            let nice = life.dice.of(&NICES);
            life.kernel.change(task, |_, _| ());
            let (q, e) = (queue(&life.kernel), entity(&life.kernel, task));
            let (old, v) = (i128::from(e.weight), q.average());
            life.kernel.change(task, |kernel, task| kernel.set_nice(task, nice));
            let (after, f) = (queue(&life.kernel), entity(&life.kernel, task));
            let new = i128::from(f.weight);
            // 1 ns each: V, before and after; vlag, at the old weight and at the new one, inflated by W / others; the
            // larger lag and V of the others, both at the new weight.
            let off = i128::from(diff(after.average(), v).abs());
            let others = after.total_weight() - new;
            let bound = 2 + (old + new) / others + 2 * new / after.total_weight() + 1;
            assert!(off <= bound, "{set}: V moved by {off} ns, not {bound}");
            let (a, b) =
                (i128::from(q.vlag(e.vruntime)) * old, i128::from(after.vlag(f.vruntime)) * new);
            assert!((a - b).abs() <= 3 * (old + new), "{set}: lag * w was {a}, is {b}");
            let (a, b) = (
                i128::from(diff(e.deadline, e.vruntime)) * old,
                i128::from(diff(f.deadline, f.vruntime)) * new,
            );
            if old != new {
                assert!((a - b).abs() <= old + new, "{set}: request * w was {a}, is {b}");
            }
            seen += usize::from(old != new);
            if life.kernel.kicks() != kicks {
                life.kernel.schedule();
            }
        }
        assert!(seen > 500, "{set}: {seen} changes");
    }
}

#[test]
fn law_13_yield() {
    let loaded = load("eevdf");
    for set in SETS {
        let mut kernel = kernel(&loaded, set, &[]);
        let (a, b) = (kernel.task(-5), kernel.task(-5));
        kernel.restore(a);
        kernel.schedule();
        kernel.pass(100 * US);
        kernel.restore(b);
        kernel.tick();
        let before = queue(&kernel);
        let vslice = virtual_ns(i128::from(before.curr_slice_ns), -5) as u64;
        kernel.yield_now();
        let after = queue(&kernel);
        if matches!(set, "6.18" | "7.2") {
            assert!(before.is_eligible(before.curr_vruntime), "the case in which it forfeits");
            assert_eq!(after.curr_vruntime, before.curr_deadline);
            assert_eq!(after.curr_deadline, before.curr_deadline.wrapping_add(vslice));
        } else {
            assert_eq!(after.curr_vruntime, before.curr_vruntime);
            assert_eq!(after.curr_deadline, before.curr_deadline.wrapping_add(vslice));
        }
        kernel.schedule();
        assert_eq!(kernel.current(), Some(b), "{set}: the other runs");
    }
}

/// Places three tasks as in the example.
fn example(loaded: &Loaded) -> (Callbacks, [Task; 3]) {
    let mut kernel = kernel(loaded, "6.12", &[("base_slice_ns", 3 * MS)]);
    let tasks = [(0, 10 * MS), (-5, 12 * MS), (5, 9 * MS)].map(|(nice, vruntime)| {
        let task = kernel.task(nice);
        kernel.restore(task);
        (task, nice, vruntime)
    });
    let mut sum = 0;
    for (task, nice, vruntime) in tasks {
        let deadline = vruntime + virtual_ns(i128::from(3 * MS), nice) as u64;
        kernel.set_storage(task, VRUNTIME, vruntime);
        kernel.set_storage(task, DEADLINE, deadline);
        kernel.set_dsq_vtime(task, deadline);
        sum += vruntime * weight(nice);
    }
    kernel.set_word("cpu_queues", 0, 0);
    kernel.set_word("cpu_queues", 1, sum);
    (kernel, tasks.map(|(task, ..)| task))
}

#[test]
fn worked_example() {
    let loaded = load("eevdf");
    let (mut kernel, [a, b, c]) = example(&loaded);
    let q = queue(&kernel);
    assert_eq!(q.average(), 11_318_526);
    let seen = [a, b, c].map(|task| {
        let e = entity(&kernel, task);
        (q.vlag(e.vruntime), q.is_eligible(e.vruntime), e.deadline)
    });
    assert_eq!(
        seen,
        [
            (1_318_526, true, 13_000_000),
            (-681_474, false, 12_984_299),
            (2_318_526, true, 18_170_149)
        ]
    );
    kernel.schedule();
    assert_eq!(kernel.current(), Some(a), "the earliest deadline, B's, is not eligible");
    // Another task of nice 0 returns with a debt of 1.5 ms. Inflated it is 1 842 857.14 ns, which div_s64 truncates;
    // rounded down, as in the text, everything is 1 ns off.
    let d = kernel.task(0);
    kernel.restore(d);
    kernel.take_out(d);
    kernel.set_storage(d, VLAG, -1_500_000_i64 as u64);
    assert_eq!(queue(&kernel).average(), 11_318_526);
    kernel.wake(d);
    let (q, e) = (queue(&kernel), entity(&kernel, d));
    assert_eq!((e.vruntime, q.average(), q.vlag(e.vruntime)), (13_161_383, 11_661_383, -1_500_000));
    // After A has run 3 ms, B is eligible, and its deadline is the earliest.
    let (mut kernel, [a, b, _]) = example(&loaded);
    kernel.schedule();
    kernel.pass(3 * MS);
    assert!(kernel.tick(), "A's request is used up");
    let q: Queue = queue(&kernel);
    assert_eq!(q.average(), 12_004_241);
    kernel.schedule();
    assert_eq!(kernel.current(), Some(b));
    assert_eq!(entity(&kernel, a).vruntime, 13_000_000);
}
