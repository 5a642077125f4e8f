//! Quantiles of many samples without sorting them: samples are counted by size, and those of the right size are
//! examined.

/// Bits behind the highest one that tell buckets apart: the values of a bucket lie within 2 % of each other.
const BUCKET_BITS: u32 = 6;
/// From here on a value has so many bits behind its highest one.
const SMALL: u64 = 1 << BUCKET_BITS;
const BUCKETS: usize = (u64::BITS as usize + 1) << BUCKET_BITS;

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

/// The values of a bucket: the first, and how many more there are in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u64,
    more: u64,
}

impl Buckets {
    pub(crate) fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut counts = vec![0; BUCKETS];
        values.for_each(|value| counts[bucket_of(value)] += 1);
        Self { counts }
    }

    /// The sample of a rank; `values` are those of which these buckets are. `None` where there are not so many.
    pub(crate) fn select(&self, rank: usize, values: impl Iterator<Item = u64>) -> Option<u64> {
        let mut before = 0;
        let bucket = self.counts.iter().position(|count| {
            let found = rank - before < *count as usize;
            before += if found { 0 } else { *count as usize };
            found
        })?;
        let Span { first, more } = span_of(bucket);
        let mut alike: Vec<u64> =
            values.filter(|value| value.wrapping_sub(first) <= more).collect();
        Some(*alike.select_nth_unstable(rank - before).1)
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
