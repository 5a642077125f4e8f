//! The source of random numbers of a run, simulated or real: a task draws the same numbers on every target.

/// The stream ([`Prng::fork`] of the run's seed) that tasks draw from.
pub const STREAM_TASKS: u64 = 1;
/// The stream for the scheduler's own requests (`bpf_get_prandom_u32`).
pub const STREAM_SCHEDULER: u64 = 2;

/// A seeded generator of integers. Equal seeds give equal draws on every platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prng {
    state: [u64; 4],
}

/// One step of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014): a Weyl sequence, then two rounds of multiply and shift.
fn split_mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Prng {
    /// The generator of a seed. Any seed is good, 0 too.
    #[must_use]
    pub fn new(seed: u64) -> Prng {
        let mut counter = seed;
        Prng { state: std::array::from_fn(|_| split_mix(&mut counter)) }
    }

    /// An independent generator, selected by a number. It depends on this generator's state and on `stream` alone, and
    /// does not change this one: forks of a generator that is never drawn from do not depend on each other's order.
    #[must_use]
    pub fn fork(&self, stream: u64) -> Prng {
        let mut counter = stream;
        let mut mixed = split_mix(&mut counter);
        let state = self.state.map(|word| {
            let mut seed = word ^ mixed;
            mixed = split_mix(&mut counter);
            split_mix(&mut seed)
        });
        // All words zero is the one state that the generator never leaves.
        if state == [0; 4] { Prng::new(stream) } else { Prng { state } }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let drawn = s1.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (t2, t3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ t3, s1 ^ t2, t2 ^ (s1 << 17), t3.rotate_left(45)];
        drawn
    }

    /// 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number in `0..n`, each equally likely; 0 when `n` is 0 (D. Lemire, "Fast random integer generation in an
    /// interval", 2019: the high half of a product, and a redraw for the few low halves that would favour some
    /// results).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut wide = u128::from(self.next_u64()) * u128::from(n);
        if (wide as u64) < n {
            let unfair = n.wrapping_neg() % n;
            // Ends: each redraw is accepted with a chance above one half.
            while (wide as u64) < unfair {
                wide = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// A number in `low..=high`, each equally likely; `low` when `high` is smaller.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low) {
            0 => low,
            u64::MAX => self.next_u64(),
            span => low + self.below(span + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draws_are_those_of_the_published_algorithm() {
        // From the state (1, 2, 3, 4): worked by hand from the definition.
        let mut prng = Prng { state: [1, 2, 3, 4] };
        assert_eq!(prng.next_u64(), 11_520);
        assert_eq!(prng.next_u64(), 0);
        assert_eq!(prng.next_u64(), 1_509_978_240);
        // SplitMix64 from 0, the constant that implementations quote.
        assert_eq!(split_mix(&mut 0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn bounds_hold_and_both_ends_come_up() {
        let mut prng = Prng::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[(prng.between(3, 9) - 3) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (800..1_200).contains(n)), "{seen:?}");
        assert_eq!(
            (prng.below(0), prng.below(1), prng.between(5, 5), prng.between(9, 3)),
            (0, 0, 5, 9)
        );
        prng.between(0, u64::MAX);
    }

    #[test]
    fn forks_differ_and_do_not_depend_on_their_order() {
        let root = Prng::new(7);
        let (mut a, mut b) = (root.fork(0), root.fork(1));
        assert_ne!(a.next_u64(), b.next_u64());
        assert_eq!(root.fork(1), {
            let _ = root.fork(0);
            root.fork(1)
        });
        assert_ne!(root.fork(0), Prng::new(8).fork(0));
        assert_ne!(root.fork(0), root);
    }
}
