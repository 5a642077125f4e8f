//! Shared parts of the naive models: weights and divisions in numbers that do not overflow.

use super::WEIGHTS;

/// The load weight of a nice value.
pub fn weight_of(nice: i8) -> i128 {
    i128::from(WEIGHTS[(i32::from(nice) + 20) as usize])
}

/// 2^32 / weight as in the kernel's table: rounded, except for four truncated entries.
pub fn inverse_of(nice: i8) -> i128 {
    let weight = weight_of(nice);
    let half = if matches!(nice, 13 | 14 | 16 | 17) { 0 } else { weight / 2 };
    ((1 << 32) + half) / weight
}

/// Wall time to virtual time, `calc_delta_fair`: exact at nice 0, otherwise by the inverse.
pub fn virtual_ns(ns: i128, nice: i8) -> i128 {
    if nice == 0 { ns } else { (ns * inverse_of(nice)) >> 22 }
}

/// Rounded down.
pub fn floor_div(a: i128, b: i128) -> i128 {
    a.div_euclid(b)
}

/// Within ±limit.
pub fn clamp(value: i128, limit: i128) -> i128 {
    value.max(-limit).min(limit)
}

/// A seeded generator (xorshift64*), the same on each machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Frequencies of the steps of a history: one in this many steps.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    pub tasks: usize,
    pub sleep: u64,
    pub yields: u64,
    pub change: u64,
    pub nices: &'static [i8],
    pub slices_ns: &'static [u64],
}

pub const MIXES: [Mix; 4] = [
    Mix { tasks: 4, sleep: 50, yields: 400, change: 300, nices: &[0], slices_ns: &[0] },
    Mix { tasks: 9, sleep: 4, yields: 100, change: 90, nices: &[-5, 0, 5], slices_ns: &[0] },
    Mix {
        tasks: 14,
        sleep: 3,
        yields: 12,
        change: 12,
        nices: &[-20, -11, -3, 0, 0, 4, 13, 19],
        slices_ns: &[0, 100_000, 300_000, 3_000_000, 100_000_000],
    },
    Mix {
        tasks: 24,
        sleep: 6,
        yields: 60,
        change: 30,
        nices: &[-1, 0, 0, 1],
        slices_ns: &[0, 0, 200_000],
    },
];
