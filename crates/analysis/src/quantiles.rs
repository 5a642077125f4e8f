//! Quantiles of many samples, which are not put in order for that: they are counted by size, and then those of the right size are looked at.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{available_parallelism, scope};

use crate::samples::Batch;

/// Bits behind the highest one that tell buckets apart: the values of a bucket lie within 2 % of each other.
const BUCKET_BITS: u32 = 6;
/// From here on a value has so many bits behind its highest one.
const SMALL: u64 = 1 << BUCKET_BITS;
const BUCKETS: usize = (u64::BITS as usize + 1) << BUCKET_BITS;

/// Each thread has its own buckets for each set.
const THREADS_MAX: usize = 8;

/// The quantiles that tables have, ‰.
pub(crate) const USUAL: [u32; 2] = [500, 990];

/// These of a set of samples, ns; `None` without samples.
pub(crate) type Usual = [Option<u64>; USUAL.len()];

/// The place of the quantile `per_mille`/1000 among so many samples in rising order, from 0, by nearest rank.
pub(crate) fn rank_of(per_mille: u32, count: u64) -> usize {
    let rank = (u128::from(count) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1) - 1;
    usize::try_from(rank).unwrap_or(usize::MAX)
}

/// How many samples there are, by size.
#[derive(Clone)]
pub(crate) struct Buckets {
    counts: Vec<u64>,
}

/// Where a quantile is to be sought.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) within: Span,
    /// Its place among the samples there, in rising order, from 0.
    rank: usize,
}

/// The values of a bucket: the first, and how many more there are in a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    first: u64,
    more: u64,
}

impl Span {
    /// Those of the samples that lie in it.
    #[inline(always)]
    pub(crate) fn pick(self, batch: &Batch, values: &mut Vec<u64>) {
        batch.each_ns(|value| {
            if value.wrapping_sub(self.first) <= self.more {
                values.push(value);
            }
        });
    }
}

impl Sought {
    /// The quantile, of all samples that lie where it is to be sought.
    pub(crate) fn of(self, mut values: Vec<u64>) -> Option<u64> {
        let is_there = self.rank < values.len();
        is_there.then(|| *values.select_nth_unstable(self.rank).1)
    }
}

impl Buckets {
    fn none() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }

    pub(crate) fn of<'s>(batches: impl Iterator<Item = &'s Batch>) -> Self {
        let mut buckets = Self::none();
        batches.for_each(|batch| buckets.note(batch));
        buckets
    }

    #[inline(always)]
    fn note(&mut self, batch: &Batch) {
        batch.each_ns(|value| self.counts[bucket_of(value)] += 1);
    }

    fn add(mut self, other: &Self) -> Self {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self
    }

    /// Where the sample of a rank is to be sought; `None` where there are not so many.
    pub(crate) fn seek(&self, rank: usize) -> Option<Sought> {
        let mut before = 0;
        let bucket = self.counts.iter().position(|count| {
            let count = *count as usize;
            let found = rank - before < count;
            before += if found { 0 } else { count };
            found
        });
        bucket.map(|bucket| Sought { within: span_of(bucket), rank: rank - before })
    }

    fn seek_usual(&self) -> [Option<Sought>; USUAL.len()] {
        let count = self.counts.iter().sum();
        USUAL.map(|per_mille| self.seek(rank_of(per_mille, count)))
    }
}

/// By the place of the highest bit and the bits right behind it: greater values lie in the same bucket or a later one.
#[inline(always)]
fn bucket_of(value: u64) -> usize {
    // Small values have buckets of their own.
    let shift = (value | SMALL).ilog2() - BUCKET_BITS;
    ((shift as usize) << BUCKET_BITS) + (value >> shift) as usize
}

fn span_of(bucket: usize) -> Span {
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    let first = ((bucket - (shift << BUCKET_BITS)) as u64) << shift;
    Span { first, more: (1 << shift) - 1 }
}

/// Some samples, and the number of the set that they are of.
type Lot<'s> = (usize, &'s Batch);

/// The usual quantiles of each of `sets` and of all samples together, on as many threads as there are processors, up to [`THREADS_MAX`].
pub(crate) fn usual_of(sets: &[Vec<&Batch>]) -> (Vec<Usual>, Usual) {
    let numbered = sets.iter().enumerate();
    let lots: Vec<Lot<'_>> =
        numbered.flat_map(|(set, batches)| batches.iter().map(move |lot| (set, *lot))).collect();
    let threads = available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let shares: Vec<&[Lot<'_>]> = lots.chunks(lots.len().div_ceil(threads).max(1)).collect();
    let counted = on_threads(&shares, |lots| {
        let mut counted = vec![Buckets::none(); sets.len()];
        lots.iter().for_each(|(set, batch)| counted[*set].note(batch));
        counted
    });
    let of_set = |set: usize| counted.iter().map(move |counted| &counted[set]);
    let each: Vec<Buckets> =
        (0..sets.len()).map(|set| of_set(set).fold(Buckets::none(), Buckets::add)).collect();
    let all = each.iter().fold(Buckets::none(), Buckets::add).seek_usual();
    let each: Vec<_> = each.iter().map(Buckets::seek_usual).collect();
    // What is picked out of the samples of each set: what it wants itself, and what is wanted of all.
    let wanted = |own: &[Option<Sought>; USUAL.len()]| {
        let mut spans: Vec<Span> = own.iter().chain(&all).flatten().map(|it| it.within).collect();
        spans.sort_unstable();
        spans.dedup();
        spans
    };
    let wanted: Vec<Vec<Span>> = each.iter().map(wanted).collect();
    let picked = on_threads(&shares, |lots| {
        let mut picked: Vec<_> = wanted.iter().map(|spans| vec![Vec::new(); spans.len()]).collect();
        for (set, batch) in lots {
            let spans = wanted[*set].iter().zip(&mut picked[*set]);
            spans.for_each(|(span, values)| span.pick(batch, values));
        }
        picked
    });
    let find = |sought: Sought, sets: Range<usize>| {
        let mut values = Vec::new();
        for set in sets {
            let at = wanted[set].iter().position(|span| *span == sought.within)?;
            picked.iter().for_each(|picked| values.extend_from_slice(&picked[set][at]));
        }
        sought.of(values)
    };
    let found = each.iter().enumerate().map(|(set, own)| own.map(|it| find(it?, set..set + 1)));
    (found.collect(), all.map(|it| find(it?, 0..sets.len())))
}

/// Does the work on each share, on a thread for each; the first one's is this.
fn on_threads<'s, T: Send>(shares: &[&[Lot<'s>]], work: impl Fn(&[Lot<'s>]) -> T + Sync) -> Vec<T> {
    let Some((own, others)) = shares.split_first() else { return Vec::new() };
    scope(|scope| {
        let work = &work;
        let others: Vec<_> = others.iter().map(|lots| scope.spawn(move || work(lots))).collect();
        let mut made = vec![work(own)];
        made.extend(others.into_iter().map(|it| it.join().unwrap_or_else(|e| resume_unwind(e))));
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise() {
        let all = (0..64).flat_map(|shift| [1_u64 << shift, (1 << shift) + 1, u64::MAX >> shift]);
        let mut all: Vec<u64> = all.chain(0..2000).collect();
        all.sort_unstable();
        assert!(all.is_sorted_by_key(|value| bucket_of(*value)));
        for bucket in 0..=bucket_of(u64::MAX) {
            let Span { first, more } = span_of(bucket);
            assert_eq!((bucket_of(first), bucket_of(first + more)), (bucket, bucket));
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
    }
}
