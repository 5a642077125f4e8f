//! Measured durations, kept one by one.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// A set of durations in ns with exact quantiles, and the number of those whose length is not known.
///
/// Every sample is kept, 8 bytes each, and once for all sets that have it; a set that is asked for quantiles keeps them in order, too,
/// for another 8. Quantiles have no rounding error, and two sets can be merged without loss. A
/// *censored* duration is one whose begin or end lies outside of what was recorded; it is counted and takes no part in
/// the figures, so a mean over few samples and many censored ones is biased towards short durations.
#[derive(Clone, Default)]
pub struct Samples {
    own_ns: Vec<u64>,
    /// Those that other sets have, too.
    shared_ns: Vec<Arc<Vec<u64>>>,
    /// All of them in rising order, once they were asked for.
    sorted_ns: OnceLock<Vec<u64>>,
    /// Durations whose length is not known.
    pub censored: u64,
}

impl PartialEq for Samples {
    fn eq(&self, other: &Self) -> bool {
        let of = |samples: &Self| (samples.censored, samples.count());
        of(self) == of(other) && self.values_ns() == other.values_ns()
    }
}

impl Eq for Samples {}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values_ns = self.values_ns();
        let mut shown = f.debug_struct("Samples");
        shown.field("values_ns", &values_ns).field("censored", &self.censored).finish()
    }
}

impl Samples {
    pub(crate) fn push(&mut self, value_ns: u64) {
        self.change();
        self.own_ns.push(value_ns);
    }

    /// There are no more to come: sets that take these in share them.
    pub(crate) fn seal(&mut self) {
        if !self.own_ns.is_empty() {
            self.shared_ns.push(Arc::new(std::mem::take(&mut self.own_ns)));
        }
    }

    /// Takes in the samples of another set.
    pub fn merge(&mut self, other: &Samples) {
        self.change();
        self.own_ns.extend_from_slice(&other.own_ns);
        self.shared_ns.extend(other.shared_ns.iter().cloned());
        self.censored += other.censored;
    }

    /// What was put in order is not all any more.
    fn change(&mut self) {
        if self.sorted_ns.get().is_some() {
            self.sorted_ns = OnceLock::new();
        }
    }

    /// All samples in no order.
    fn each_ns(&self) -> impl Iterator<Item = u64> {
        self.parts().flatten().copied()
    }

    fn parts(&self) -> impl Iterator<Item = &[u64]> {
        let shared = self.shared_ns.iter().map(|part| &part[..]);
        [&self.own_ns[..]].into_iter().chain(shared)
    }

    /// All samples in rising order, ns.
    pub fn values_ns(&self) -> &[u64] {
        self.sorted_ns.get_or_init(|| {
            let mut values = Vec::with_capacity(self.parts().map(<[u64]>::len).sum());
            self.parts().for_each(|part| values.extend_from_slice(part));
            sort(&mut values);
            values
        })
    }

    /// The number of samples, without the censored ones.
    pub fn count(&self) -> u64 {
        self.parts().map(|part| part.len() as u64).sum()
    }

    /// The sum of all samples, ns; it stops at `u64::MAX`.
    pub fn sum_ns(&self) -> u64 {
        self.each_ns().fold(0, u64::saturating_add)
    }

    /// The arithmetic mean, ns. `None` without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let sum: u128 = self.each_ns().map(u128::from).sum();
        Some(sum as f64 / count as f64)
    }

    /// The quantile `per_mille`/1000 by nearest rank: the smallest sample that at least that part of all samples does not
    /// exceed. 0 gives the smallest and 1000 the largest sample. `None` without samples.
    pub fn quantile_ns(&self, per_mille: u32) -> Option<u64> {
        let values = self.values_ns();
        let count = values.len() as u128;
        let rank = (count * u128::from(per_mille.min(1000))).div_ceil(1000).max(1);
        values.get((rank - 1) as usize).copied()
    }

    /// The median, ns.
    pub fn p50_ns(&self) -> Option<u64> {
        self.quantile_ns(500)
    }

    /// The value that 90 % of the samples do not exceed, ns.
    pub fn p90_ns(&self) -> Option<u64> {
        self.quantile_ns(900)
    }

    /// The value that 99 % of the samples do not exceed, ns.
    pub fn p99_ns(&self) -> Option<u64> {
        self.quantile_ns(990)
    }

    /// The value that 99.9 % of the samples do not exceed, ns.
    pub fn p999_ns(&self) -> Option<u64> {
        self.quantile_ns(999)
    }

    /// The smallest sample, ns.
    pub fn min_ns(&self) -> Option<u64> {
        self.each_ns().min()
    }

    /// The largest sample, ns.
    pub fn max_ns(&self) -> Option<u64> {
        self.each_ns().max()
    }
}

/// Fewer values than this are sorted by comparing them.
const RADIX_VALUES_MIN: usize = 1 << 11;
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Digits of a value of 32 bits.
const ROUNDS: usize = 3;

/// Sorts. Many values go digit by digit (radix sort from the lowest digit on), if none has more than 32 bits: on the way they take half
/// the room.
fn sort(values: &mut [u64]) {
    let max = values.iter().copied().max().unwrap_or(0);
    let is_few = values.len() < RADIX_VALUES_MIN || u32::try_from(values.len()).is_err();
    if is_few || max > u32::MAX.into() {
        return values.sort_unstable();
    }
    // For each digit, how many values have it, and then where those with it go next.
    let mut places = [[0_u32; DIGITS]; ROUNDS];
    for value in values.iter() {
        for (round, places) in places.iter_mut().enumerate() {
            places[digit(*value as u32, round)] += 1;
        }
    }
    for places in &mut places {
        let mut sum = 0;
        places.iter_mut().for_each(|place| sum += std::mem::replace(place, sum));
    }
    let [first, second, third] = &mut places;
    let (mut once, mut twice) = (vec![0_u32; values.len()], vec![0_u32; values.len()]);
    scatter(values.iter().map(|value| *value as u32), 0, first, &mut once);
    scatter(once.iter().copied(), 1, second, &mut twice);
    scatter(twice.iter().copied(), 2, third, values);
}

#[inline]
fn digit(value: u32, round: usize) -> usize {
    (value >> (round as u32 * DIGIT_BITS)) as usize % DIGITS
}

#[inline]
fn scatter<T: From<u32>>(
    from: impl Iterator<Item = u32>,
    round: usize,
    places: &mut [u32; DIGITS],
    to: &mut [T],
) {
    for value in from {
        let place = &mut places[digit(value, round)];
        to[*place as usize] = value.into();
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[u64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.push(*value));
        samples
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let samples = samples(&hundred);
        assert_eq!(samples.p50_ns(), Some(50));
        assert_eq!(samples.p99_ns(), Some(99));
        assert_eq!(samples.p999_ns(), Some(100));
        assert_eq!((samples.min_ns(), samples.max_ns()), (Some(1), Some(100)));
        assert_eq!(samples.mean_ns(), Some(50.5));
    }

    #[test]
    fn many_values_are_sorted_like_few() {
        let mut value = 1_u64;
        for bits in [1, 10, 11, 12, 22, 23, 31, 32, 33, 45, 64] {
            let mut values: Vec<u64> = (0..5_000)
                .map(|_| {
                    value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    value >> (64 - bits)
                })
                .collect();
            let sorted = samples(&values);
            values.sort_unstable();
            assert_eq!(sorted.values_ns(), values, "{bits} bits");
        }
    }

    #[test]
    fn an_empty_set_has_no_figures() {
        let empty = Samples::default();
        assert_eq!((empty.count(), empty.mean_ns(), empty.p50_ns()), (0, None, None));
    }

    #[test]
    fn merging_is_like_measuring_together() {
        let mut left = samples(&[5, 1]);
        left.censored = 1;
        left.merge(&samples(&[3]));
        assert_eq!(left.values_ns(), [1, 3, 5]);
        assert_eq!(left.censored, 1);
    }
}
