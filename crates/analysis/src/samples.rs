//! Measured durations, kept one by one.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::quantiles::{Buckets, rank_of};

/// A set of durations in ns with exact quantiles, and the number of those whose length is not known.
///
/// Every sample is kept, 4 bytes each and 8 from 2^32 ns on (4.3 s), and once for all sets that have it; a small
/// set that is asked for quantiles keeps them in order, too, for another 8. Quantiles have no rounding error, and
/// two sets can be merged without loss. A *censored* duration is one whose begin or end lies outside of what was
/// recorded; it is counted and takes no part in the distribution, so a mean over few samples and many censored ones
/// is biased towards short durations. Where a lower bound of its length is known, as of a wait that has not ended
/// yet, [`Samples::max_ns`] takes it into account.
#[derive(Clone, Default)]
pub struct Samples {
    own: Batch,
    /// Those that other sets may have, too.
    shared: Vec<Arc<Batch>>,
    /// Kept from the first quantile on, until the set changes.
    asked: OnceLock<Box<QuantileIndex>>,
    /// Durations whose length is not known.
    pub censored: u64,
    /// The longest time that one of these is known to exceed or equal, ns.
    censored_max_ns: Option<u64>,
}

/// The bounds that make the next quantile quicker.
#[derive(Clone, Default)]
struct QuantileIndex {
    /// All in rising order.
    sorted_ns: OnceLock<Vec<u64>>,
    /// How many there are in each bucket, where there are many.
    buckets: OnceLock<Buckets>,
}

/// Some samples, ns.
#[derive(Clone, Default)]
struct Batch {
    short: Vec<u32>,
    /// Those that do not fit there.
    long: Vec<u64>,
}

impl Batch {
    fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    fn values_ns(&self) -> impl Iterator<Item = u64> {
        self.short.iter().copied().map(u64::from).chain(self.long.iter().copied())
    }
}

impl PartialEq for Samples {
    fn eq(&self, other: &Self) -> bool {
        let of = |samples: &Self| (samples.censored, samples.censored_max_ns, samples.count());
        of(self) == of(other) && self.values_ns() == other.values_ns()
    }
}

impl Eq for Samples {}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values_ns = self.values_ns();
        let mut shown = f.debug_struct("Samples");
        shown.field("values_ns", &values_ns).field("censored", &self.censored);
        shown.field("censored_max_ns", &self.censored_max_ns).finish()
    }
}

impl Samples {
    #[inline(always)]
    pub(crate) fn push(&mut self, value_ns: u64) {
        self.change();
        match u32::try_from(value_ns) {
            Ok(value_ns) => {
                if self.own.short.len() == self.own.short.capacity() {
                    self.make_room();
                }
                self.own.short.push(value_ns);
            }
            Err(_) => self.own.long.push(value_ns),
        }
    }

    /// Counts a duration that has not ended after `lower_bound_ns`.
    pub(crate) fn censor_at(&mut self, lower_bound_ns: u64) {
        self.censored += 1;
        self.censored_max_ns = self.censored_max_ns.max(Some(lower_bound_ns));
    }

    fn make_room(&mut self) {
        let known = self.own.short.len();
        if known < BATCH {
            self.own.short.reserve(known.max(4));
        } else {
            self.seal();
            self.own.short.reserve_exact(BATCH);
        }
    }

    /// There are no more to come: sets that take these in share them.
    pub(crate) fn seal(&mut self) {
        if self.own.len() > 0 {
            self.shared.push(Arc::new(std::mem::take(&mut self.own)));
        }
    }

    /// Takes in the samples of another set.
    pub fn merge(&mut self, other: &Samples) {
        self.change();
        self.own.short.extend_from_slice(&other.own.short);
        self.own.long.extend_from_slice(&other.own.long);
        self.shared.extend(other.shared.iter().cloned());
        self.censored += other.censored;
        self.censored_max_ns = self.censored_max_ns.max(other.censored_max_ns);
    }

    /// Marks the kept order as outdated.
    #[inline]
    fn change(&mut self) {
        if self.asked.get().is_some() {
            self.asked = OnceLock::new();
        }
    }

    fn asked(&self) -> &QuantileIndex {
        self.asked.get_or_init(Box::default)
    }

    /// All samples in no order.
    fn batches(&self) -> impl Iterator<Item = &Batch> {
        let shared = self.shared.iter().map(|batch| &**batch);
        [&self.own].into_iter().chain(shared)
    }

    /// All samples in rising order, ns.
    pub fn values_ns(&self) -> &[u64] {
        self.asked().sorted_ns.get_or_init(|| {
            let mut values = Vec::with_capacity(self.len());
            self.batches().for_each(|batch| values.extend(batch.values_ns()));
            values.sort_unstable();
            values
        })
    }

    fn len(&self) -> usize {
        self.batches().map(Batch::len).sum()
    }

    /// The number of samples, without the censored ones.
    pub fn count(&self) -> u64 {
        self.len() as u64
    }

    /// The sum of all samples, ns; it stops at `u64::MAX`.
    pub fn sum_ns(&self) -> u64 {
        let sum = |batch: &Batch| batch.values_ns().fold(0, u64::saturating_add);
        self.batches().map(sum).fold(0, u64::saturating_add)
    }

    /// The arithmetic mean, ns. `None` without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let sum = |batch: &Batch| batch.values_ns().map(u128::from).sum::<u128>();
        let sum: u128 = self.batches().map(sum).sum();
        Some(sum as f64 / count as f64)
    }

    /// The quantile `per_mille`/1000 by nearest rank: the smallest sample that at least that part of all samples
    /// does not exceed. 0 gives the smallest and 1000 the largest sample. `None` without samples.
    pub fn quantile_ns(&self, per_mille: u32) -> Option<u64> {
        let count = self.count();
        let rank = rank_of(per_mille, count);
        if count < MANY || self.asked().sorted_ns.get().is_some() {
            return self.values_ns().get(rank).copied();
        }
        let all = || self.batches().flat_map(Batch::values_ns);
        self.asked().buckets.get_or_init(|| Buckets::of(all())).select(rank, all())
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

    /// The longest duration, ns: the largest sample or the largest lower bound of a censored duration
    /// ([`Samples::censored_max_ns`]), whichever is greater. `None` without either.
    pub fn max_ns(&self) -> Option<u64> {
        let longest = self.batches().filter_map(|batch| batch.values_ns().max()).max();
        longest.max(self.censored_max_ns)
    }

    /// The largest lower bound of a censored duration, ns; `None` where no bound is known.
    pub fn censored_max_ns(&self) -> Option<u64> {
        self.censored_max_ns
    }
}

/// So many samples of a set are kept together at most.
const BATCH: usize = 1 << 9;

/// So many values are not sorted for the sake of a quantile.
const MANY: u64 = 1 << 11;

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
        assert_eq!((samples.quantile_ns(0), samples.max_ns()), (Some(1), Some(100)));
        assert_eq!(samples.mean_ns(), Some(50.5));
    }

    #[test]
    fn quantiles_of_many_are_those_of_the_sorted_ones() {
        let mut value = 1_u64;
        for bits in [1, 6, 7, 8, 13, 31, 32, 33, 45, 64] {
            let mut values: Vec<u64> = (0..5_000)
                .map(|_| {
                    value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    value >> (64 - bits)
                })
                .collect();
            let many = samples(&values);
            values.sort_unstable();
            for per_mille in [0, 1, 250, 500, 900, 990, 999, 1000] {
                let wanted = values[(5 * per_mille as usize).max(1) - 1];
                assert_eq!(many.quantile_ns(per_mille), Some(wanted), "{bits} bits, {per_mille}");
            }
            assert_eq!(many.values_ns(), values);
        }
    }

    #[test]
    fn an_empty_set_has_no_figures() {
        let empty = Samples::default();
        assert_eq!((empty.count(), empty.mean_ns(), empty.p50_ns()), (0, None, None));
    }

    #[test]
    fn a_lower_bound_counts_in_the_maximum_alone() {
        let mut waits = samples(&[5, 1]);
        waits.censor_at(9);
        let mut others = samples(&[7]);
        others.censor_at(3);
        waits.merge(&others);
        assert_eq!((waits.max_ns(), waits.censored_max_ns()), (Some(9), Some(9)));
        assert_eq!((waits.values_ns(), waits.censored), ([1, 5, 7].as_slice(), 2));
        assert_eq!((waits.quantile_ns(1000), others.max_ns()), (Some(7), Some(7)));
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
