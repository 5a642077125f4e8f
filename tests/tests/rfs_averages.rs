//! The averages at which `rfs` can place a task (docs/laws/rfs.md): (12), (13) and (14) beside the exact mean (11), and
//! the error of each.

use crate::rig::callbacks::{Callbacks, Loaded, Task, load};
use crate::rig::rfs::{inv, shift};
use crate::rig::{MS, diff, weight};

/// `rule_average`: its number, its equation.
const RULES: [(u64, &str); 3] = [(0, "(12)"), (1, "(13)"), (2, "(14)")];

/// The average weight of a task.
fn average_weight(rule: u64, nice: i8) -> u64 {
    match rule {
        0 => weight(nice),
        1 => 1,
        _ => 1 << shift(nice),
    }
}

struct Group {
    rfs: Callbacks,
    rule: u64,
    fraction_bits: u32,
    tasks: Vec<(i8, u64)>,
    visitor: Task,
}

impl Group {
    /// Waiting tasks with these nice values and times.
    fn new(loaded: &Loaded, rule: u64, fraction_bits: u32, tasks: &[(i8, u64)]) -> Group {
        let max_log2 = if fraction_bits == 16 { 46 } else { 54 };
        let settings = [
            ("fraction_bits", u64::from(fraction_bits)),
            ("max_timesum_log2", max_log2),
            ("rule_average", rule),
        ];
        let mut rfs = Callbacks::new(loaded, &settings);
        for (nice, time) in tasks {
            let task = rfs.task(*nice);
            rfs.restore(task);
            rfs.take_out(task);
            rfs.set_dsq_vtime(task, *time);
            rfs.restore(task);
        }
        let visitor = rfs.task(0);
        Group { rfs, rule, fraction_bits, tasks: tasks.to_vec(), visitor }
    }

    /// The placement of a new task: at the average.
    fn average(&mut self) -> u64 {
        self.rfs.restore(self.visitor);
        self.rfs.dsq_vtime(self.visitor)
    }

    /// The mean by the rule's own weights, rounded down.
    fn expected(&self) -> u64 {
        let first = self.tasks[0].1;
        let weights: i128 =
            self.tasks.iter().map(|t| i128::from(average_weight(self.rule, t.0))).sum();
        let distance = |t: &(i8, u64)| {
            i128::from(diff(t.1, first)) * i128::from(average_weight(self.rule, t.0))
        };
        let mean = self.tasks.iter().map(distance).sum::<i128>().div_euclid(weights);
        first.wrapping_add(mean as u64)
    }

    /// (11), relative to the first task.
    fn exact(&self) -> f64 {
        let applied =
            |nice: i8| (1u64 << self.fraction_bits) as f64 / inv(nice, self.fraction_bits) as f64;
        let first = self.tasks[0].1;
        let weights: f64 = self.tasks.iter().map(|t| applied(t.0)).sum();
        let sum: f64 = self.tasks.iter().map(|t| diff(t.1, first) as f64 * applied(t.0)).sum();
        sum / weights
    }

    /// The bound on |average - (11)| as a part of the spread. Two means whose weights differ by factors between r and
    /// rho * r are at most (sqrt rho - 1) / (sqrt rho + 1) of the spread apart: that is the largest distance of two
    /// distributions with such a ratio, reached by two values of which one has 1 / (1 + sqrt rho) of the weight.
    fn bound(&self) -> f64 {
        let factor = |nice: i8| {
            let applied =
                (1u64 << self.fraction_bits) as f64 / inv(nice, self.fraction_bits) as f64;
            average_weight(self.rule, nice) as f64 / applied
        };
        let factors = || self.tasks.iter().map(|t| factor(t.0));
        let rho = factors().fold(0.0, f64::max) / factors().fold(f64::MAX, f64::min);
        (rho.sqrt() - 1.0) / (rho.sqrt() + 1.0)
    }

    fn spread(&self) -> u64 {
        let first = self.tasks[0].1;
        let distances = || self.tasks.iter().map(|t| diff(t.1, first));
        (distances().max().expect("tasks") - distances().min().expect("tasks")) as u64
    }
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below
}

/// Laws 5 and 10: each average is what its equation says, and as near to the exact mean as the weights are to the true
/// ones.
#[test]
fn each_average_is_its_equation_and_within_its_bound() {
    let loaded = load("rfs");
    let mut seed = 88_172_645_463_325_252;
    for (rule, equation) in RULES {
        for fraction_bits in [16, 24] {
            let mut nearest = 0f64;
            for _ in 0..300 {
                let start = random(&mut seed, u64::MAX);
                let count = 2 + random(&mut seed, 6);
                let tasks: Vec<(i8, u64)> = (0..count)
                    .map(|_| {
                        // With 16 bits the inverses of negative nice values are too coarse (docs/laws/rfs.md, fixed
                        // point).
                        let lowest = if fraction_bits == 16 { 0 } else { -20 };
                        let nice = lowest + random(&mut seed, (20 - lowest) as u64) as i64;
                        let range = (40 * MS) << (fraction_bits - 10);
                        (nice as i8, start.wrapping_add(random(&mut seed, range)))
                    })
                    .collect();
                let mut group = Group::new(&loaded, rule, fraction_bits, &tasks);
                let got = group.average();
                assert_eq!(got, group.expected(), "{equation}, S = {fraction_bits}: {tasks:?}");
                let off = (diff(got, tasks[0].1) as f64 - group.exact()).abs();
                let allowed = group.bound() * group.spread() as f64;
                // Rounded down to a unit; and the error of a float of 53 bits for numbers of 2^40.
                assert!(off <= allowed * 1.000_001 + 2.0, "{equation}: {off} of {allowed}");
                if group.bound() > 0.0 && group.spread() > 0 {
                    nearest = nearest.max(off / (allowed + 2.0));
                }
            }
            assert!(nearest > 0.5, "{equation}, S = {fraction_bits}: no empty bound: {nearest}");
        }
    }
}

/// The error of (14) is at most 0.18 of the spread, since a power of two is within 1.42 of each weight; (12) is exact
/// to what the rounding of the inverses does.
#[test]
fn the_worst_errors_are_those_of_the_page() {
    let loaded = load("rfs");
    let nices: Vec<(i8, u64)> = (-20..20).map(|nice| (nice, 0)).collect();
    for (rule, most, least) in [(0, 0.001, 0.0), (1, 0.98, 0.95), (2, 0.18, 0.16)] {
        let bound = Group::new(&loaded, rule, 24, &nices).bound();
        assert!((least..=most).contains(&bound), "rule {rule}: {bound} of the spread");
    }
    // (14) at its worst: two clusters of opposite rounding, with the weights that the bound names.
    let by_factor = |nice: &i8| ((1u64 << shift(*nice)) as f64 / weight(*nice) as f64 * 1e6) as u64;
    let low = (0..20).min_by_key(by_factor).expect("nice values");
    let high = (0..20).max_by_key(by_factor).expect("nice values");
    let worst = (1..8u64).flat_map(|a| (1..8u64).map(move |b| (a, b))).map(|(a, b)| {
        let spread = (40 * MS) << 14;
        let mut tasks = vec![(low, 0); a as usize];
        tasks.extend(vec![(high, spread); b as usize]);
        let mut group = Group::new(&loaded, 2, 24, &tasks);
        (diff(group.average(), 0) as f64 - group.exact()).abs() / spread as f64
    });
    let worst = worst.fold(0.0, f64::max);
    assert!((0.14..=0.18).contains(&worst), "{worst} of the spread");
}

/// All agree where all tasks have received their share.
#[test]
fn all_averages_agree_when_all_times_are_equal() {
    let loaded = load("rfs");
    for (rule, equation) in RULES {
        for time in [0, 1 << 40, u64::MAX - 17] {
            let tasks: Vec<(i8, u64)> =
                [-20, -3, 0, 7, 19].into_iter().map(|nice| (nice, time)).collect();
            let mut group = Group::new(&loaded, rule, 24, &tasks);
            assert_eq!(group.average(), time, "{equation}");
        }
    }
}

/// The base of a light queue is far behind its average; the weight of a heavy task that joins must not be multiplied
/// with that.
#[test]
fn a_heavy_task_finds_the_average_of_a_light_queue() {
    let loaded = load("rfs");
    for (fraction_bits, max_log2, seconds) in
        [(24, 54, 1), (24, 54, 30), (16, 46, 100), (16, 40, 100)]
    {
        let settings = [("fraction_bits", fraction_bits), ("max_timesum_log2", max_log2)];
        let mut rfs = Callbacks::new(&loaded, &settings);
        let (light, heavy, visitor) = (rfs.task(19), rfs.task(-20), rfs.task(0));
        rfs.restore(light);
        assert_eq!(rfs.schedule(), Some(light));
        for _ in 0..seconds * 10 {
            rfs.pass(97 * MS);
            rfs.tick();
        }
        rfs.put_back();
        rfs.restore(heavy);
        assert_eq!(
            rfs.dsq_vtime(heavy),
            rfs.dsq_vtime(light),
            "the heavy one joins at the average"
        );
        rfs.restore(visitor);
        assert_eq!(
            rfs.dsq_vtime(visitor),
            rfs.dsq_vtime(light),
            "{seconds} s, S = {fraction_bits}"
        );
    }
}
