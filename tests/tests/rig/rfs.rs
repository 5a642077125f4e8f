//! The objects of the laws of `rfs` (docs/laws/rfs.md): inverses, the sums of a queue, and their invariants.

use super::{diff, weight};

/// The parameter sets, each with its fraction bits and the logarithm of its MAX_TIMESUM.
pub const SETS: [(&str, u32, u32); 2] = [("rfs@literal", 16, 46), ("rfs@accurate", 24, 54)];

/// Their settings.
pub const LITERAL: [(&str, u64); 2] = [("fraction_bits", 16), ("max_timesum_log2", 46)];
pub const ACCURATE: [(&str, u64); 2] = [("fraction_bits", 24), ("max_timesum_log2", 54)];

/// `inv` of equation (8).
pub fn inv(nice: i8, fraction_bits: u32) -> u64 {
    ((1 << fraction_bits) + weight(nice) / 2) / weight(nice)
}

/// `weight_shift`: the weight is about two to the power of it.
pub fn shift(nice: i8) -> u32 {
    (weight(nice) as f64).log2().round() as u32
}

/// Words of `struct rfs_queue`.
pub const WEIGHT_SUM_APP: usize = 0;
pub const TIME_NORM_BASE: usize = 1;
pub const TIME_SUM_OFF: usize = 2;
pub const TIME_SUM_MAX: usize = 3;
pub const TIME_NORM_INC: usize = 4;

/// The fields of `struct rfs_queue` that the laws use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub weight_sum_app: u64,
    pub time_norm_base: u64,
    pub time_sum_off: i64,
    pub time_sum_max: u64,
    pub time_norm_inc: u64,
    pub rotations: u64,
    pub curr_time_norm: u64,
    pub curr_pid: u32,
}

/// A runnable task: its normalised time, and its shift.
pub type Member = (u64, u32);

impl Queue {
    /// Reads it word by word.
    pub fn read(word: impl Fn(usize) -> u64) -> Queue {
        Queue {
            weight_sum_app: word(WEIGHT_SUM_APP),
            time_norm_base: word(TIME_NORM_BASE),
            time_sum_off: word(TIME_SUM_OFF) as i64,
            time_sum_max: word(TIME_SUM_MAX),
            time_norm_inc: word(TIME_NORM_INC),
            rotations: word(6),
            curr_time_norm: word(10),
            curr_pid: word(16) as u32,
        }
    }

    /// (20), rounded down.
    pub fn average(&self) -> u64 {
        if self.weight_sum_app == 0 {
            return self.time_norm_base;
        }
        self.time_norm_base.wrapping_add(self.time_sum_off as u64 / self.weight_sum_app)
    }

    /// `time_norm_base * weight_sum_app + time_sum_off`, modulo 2^64.
    pub fn total(&self) -> u64 {
        let base = self.time_norm_base.wrapping_mul(self.weight_sum_app);
        base.wrapping_add(self.time_sum_off as u64)
    }

    /// Laws 2 and 3: the sums are those of these tasks, and within their bounds.
    pub fn check(&self, tasks: &[Member], max_log2: u32) -> Result<(), String> {
        let broken = |law: &str| Err(format!("{law}: {self:?} of {tasks:?}"));
        if self.weight_sum_app != tasks.iter().map(|t| 1 << t.1).sum::<u64>() {
            return broken("law 2, (16)");
        }
        if tasks.is_empty() {
            return Ok(());
        }
        if !self.time_norm_inc.is_power_of_two() {
            return broken("law 3, time_norm_inc");
        }
        let max = u128::from(self.time_norm_inc) * u128::from(self.weight_sum_app);
        if u128::from(self.time_sum_max) != max {
            return broken("law 2, (21)");
        }
        if !(1 << (max_log2 - 1)..1 << max_log2).contains(&self.time_sum_max) {
            return broken("law 3, invariant N");
        }
        if !(0..self.time_sum_max as i64).contains(&self.time_sum_off) {
            return broken("law 3, invariant O");
        }
        let distance = |t: &Member| i128::from(diff(t.0, self.time_norm_base)) << t.1;
        if i128::from(self.time_sum_off) != tasks.iter().map(distance).sum::<i128>() {
            return broken("law 2, (25)");
        }
        Ok(())
    }

    /// Law 5: the average is the exact mean, rounded down.
    pub fn check_average(&self, tasks: &[Member]) -> Result<(), String> {
        let Some((first, _)) = tasks.first() else { return Ok(()) };
        let sum: i128 = tasks.iter().map(|t| i128::from(diff(t.0, *first)) << t.1).sum();
        let weights: i128 = tasks.iter().map(|t| 1i128 << t.1).sum();
        if i128::from(diff(self.average(), *first)) == sum.div_euclid(weights) {
            Ok(())
        } else {
            Err(format!("law 5: {} is not the mean of {tasks:?}", self.average()))
        }
    }
}
