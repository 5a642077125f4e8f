//! Measured durations, kept one by one.

/// A set of durations in ns with exact quantiles, and the number of those whose length is not known.
///
/// Every sample is kept, 8 bytes each: quantiles have no rounding error, and two sets can be merged without loss. A
/// *censored* duration is one whose begin or end lies outside of what was recorded; it is counted and takes no part in
/// the figures, so a mean over few samples and many censored ones is biased towards short durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    values_ns: Vec<u64>,
    sorted: bool,
    /// Durations whose length is not known.
    pub censored: u64,
}

impl Samples {
    pub(crate) fn push(&mut self, value_ns: u64) {
        self.values_ns.push(value_ns);
        self.sorted = false;
    }

    pub(crate) fn sort(&mut self) {
        if !self.sorted {
            sort(&mut self.values_ns);
            self.sorted = true;
        }
    }

    /// Takes in the samples of another set.
    pub fn merge(&mut self, other: &Samples) {
        self.absorb(other);
        self.sort();
    }

    /// [`Samples::merge`], to be sorted later.
    pub(crate) fn absorb(&mut self, other: &Samples) {
        self.values_ns.extend_from_slice(&other.values_ns);
        self.censored += other.censored;
        self.sorted = false;
    }

    /// All samples in rising order, ns.
    pub fn values_ns(&self) -> &[u64] {
        &self.values_ns
    }

    /// The number of samples, without the censored ones.
    pub fn count(&self) -> u64 {
        self.values_ns.len() as u64
    }

    /// The sum of all samples, ns; it stops at `u64::MAX`.
    pub fn sum_ns(&self) -> u64 {
        self.values_ns.iter().fold(0, |sum, value| sum.saturating_add(*value))
    }

    /// The arithmetic mean, ns. `None` without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        if self.values_ns.is_empty() {
            return None;
        }
        let sum: u128 = self.values_ns.iter().map(|value| u128::from(*value)).sum();
        Some(sum as f64 / self.values_ns.len() as f64)
    }

    /// The quantile `per_mille`/1000 by nearest rank: the smallest sample that at least that part of all samples does not
    /// exceed. 0 gives the smallest and 1000 the largest sample. `None` without samples.
    pub fn quantile_ns(&self, per_mille: u32) -> Option<u64> {
        debug_assert!(self.sorted || self.values_ns.is_empty());
        let count = self.values_ns.len() as u128;
        let rank = (count * u128::from(per_mille.min(1000))).div_ceil(1000).max(1);
        self.values_ns.get((rank - 1) as usize).copied()
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
        self.quantile_ns(0)
    }

    /// The largest sample, ns.
    pub fn max_ns(&self) -> Option<u64> {
        self.quantile_ns(1000)
    }
}

/// Fewer values than this are sorted by comparing them.
const RADIX_VALUES_MIN: usize = 1 << 11;
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts. Many values go digit by digit (radix sort from the lowest digit on), as far as the largest one has digits: times between
/// events of a scheduler have three or four.
fn sort(values: &mut Vec<u64>) {
    let max = values.iter().copied().max().unwrap_or(0);
    let rounds = (u64::BITS - max.leading_zeros()).div_ceil(DIGIT_BITS);
    if values.len() < RADIX_VALUES_MIN || rounds > 4 {
        return values.sort_unstable();
    }
    let mut other = vec![0; values.len()];
    for round in 0..rounds {
        let digit = |value: u64| (value >> (round * DIGIT_BITS)) as usize % DIGITS;
        let mut next = vec![0_usize; DIGITS];
        for value in values.iter() {
            next[digit(*value)] += 1;
        }
        let mut sum = 0;
        for place in &mut next {
            sum += std::mem::replace(place, sum);
        }
        for value in values.iter() {
            let place = &mut next[digit(*value)];
            other[*place] = *value;
            *place += 1;
        }
        std::mem::swap(values, &mut other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[u64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.push(*value));
        samples.sort();
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
        for bits in [1, 10, 11, 12, 33, 44, 45, 64] {
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
