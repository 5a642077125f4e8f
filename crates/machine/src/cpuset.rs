//! Sets of CPUs.

use fairground_workload::CpuList;

use crate::abi::MAX_CPUS;

/// 64-bit words of a CPU mask.
pub(crate) const MASK_WORDS: usize = (MAX_CPUS / 64) as usize;

/// A set of CPUs with the layout of the kernel's `struct cpumask`: CPU `n` is bit `n % 64` of word `n / 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuMask {
    pub(crate) words: [u64; MASK_WORDS],
}

impl CpuMask {
    /// No CPU.
    pub(crate) const EMPTY: CpuMask = CpuMask { words: [0; MASK_WORDS] };

    /// The CPUs below `n`; all that a mask holds when `n` is larger.
    pub(crate) fn first_n(n: u32) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        for (i, word) in mask.words.iter_mut().enumerate() {
            let above = n.saturating_sub(i as u32 * 64);
            *word = if above >= 64 { u64::MAX } else { (1 << above) - 1 };
        }
        mask
    }

    /// One CPU.
    pub(crate) fn one(cpu: u32) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        mask.set(cpu);
        mask
    }

    /// The CPUs of a list; those beyond what a mask holds are left out.
    pub(crate) fn from_list(list: &CpuList) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        for &(low, high) in &list.0 {
            for cpu in low..=high.min(MAX_CPUS - 1) {
                mask.set(cpu);
            }
        }
        mask
    }

    /// The mask with these words.
    pub(crate) fn from_words(words: [u64; MASK_WORDS]) -> CpuMask {
        CpuMask { words }
    }

    /// The words, lowest CPUs first.
    #[inline]
    pub(crate) fn words(&self) -> &[u64; MASK_WORDS] {
        &self.words
    }

    /// Adds a CPU; does nothing when a mask holds no such CPU.
    #[inline]
    pub(crate) fn set(&mut self, cpu: u32) {
        if cpu < MAX_CPUS {
            self.words[cpu as usize / 64] |= 1 << (cpu % 64);
        }
    }

    /// Removes a CPU.
    #[inline]
    pub(crate) fn clear(&mut self, cpu: u32) {
        if cpu < MAX_CPUS {
            self.words[cpu as usize / 64] &= !(1 << (cpu % 64));
        }
    }

    /// Whether the CPU is in the set.
    #[inline]
    pub(crate) fn test(&self, cpu: u32) -> bool {
        cpu < MAX_CPUS && self.words[cpu as usize / 64] >> (cpu % 64) & 1 == 1
    }

    /// Whether no CPU is in the set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().fold(0, |all, word| all | word) == 0
    }

    /// The number of CPUs in the set.
    pub(crate) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The lowest CPU of the set.
    pub(crate) fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The lowest CPU in both sets.
    pub(crate) fn first_and(&self, other: &CpuMask) -> Option<u32> {
        self.and(other).first()
    }

    /// The CPUs in both sets.
    pub(crate) fn and(&self, other: &CpuMask) -> CpuMask {
        CpuMask { words: std::array::from_fn(|i| self.words[i] & other.words[i]) }
    }

    /// The CPUs in either set.
    pub(crate) fn or(&self, other: &CpuMask) -> CpuMask {
        CpuMask { words: std::array::from_fn(|i| self.words[i] | other.words[i]) }
    }

    /// The CPUs of this set that are not in the other.
    pub(crate) fn and_not(&self, other: &CpuMask) -> CpuMask {
        CpuMask { words: std::array::from_fn(|i| self.words[i] & !other.words[i]) }
    }

    /// Whether the sets share a CPU.
    pub(crate) fn intersects(&self, other: &CpuMask) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether every CPU of this set is in the other.
    pub(crate) fn is_subset(&self, other: &CpuMask) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// The CPUs as ranges, each from its first to its last.
    pub(crate) fn ranges(&self) -> Vec<(u32, u32)> {
        CpuList::of(self.iter().map(|cpu| (cpu, cpu)).collect()).0
    }

    /// The CPUs, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(cpus: &[u32]) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        cpus.iter().for_each(|cpu| mask.set(*cpu));
        mask
    }

    #[test]
    fn masks_have_the_kernels_layout() {
        let m = mask(&[0, 63, 64, 1023, 5000]);
        assert_eq!((m.words()[0], m.words()[1], m.words()[15]), (1 | 1 << 63, 1, 1 << 63));
        assert_eq!(m.iter().collect::<Vec<_>>(), [0, 63, 64, 1023]);
        assert_eq!(
            (m.count(), m.first(), m.test(64), m.test(65), m.test(5000)),
            (4, Some(0), true, false, false)
        );
        assert_eq!(CpuMask::from_list(&CpuList(vec![(0, 0), (63, 64), (1023, 9999)])), m);
        assert_eq!((CpuMask::first_n(65).count(), CpuMask::first_n(9999).count()), (65, 1024));
        assert_eq!(m.and(&CpuMask::first_n(64)).or(&CpuMask::one(3)), mask(&[0, 3, 63]));
        assert_eq!(m.first_and(&mask(&[64, 1023])), Some(64));
        assert!(
            mask(&[63]).is_subset(&m) && !m.is_subset(&mask(&[63])) && m.intersects(&mask(&[63]))
        );
        assert!(
            CpuMask::EMPTY.is_empty()
                && m.and_not(&m).is_empty()
                && CpuMask::from_words(*m.words()) == m
        );
    }
}
