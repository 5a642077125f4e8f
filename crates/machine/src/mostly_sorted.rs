//! A priority queue for entries that mostly arrive in order: the timers of one CPU, whose tasks sleep for about as long
//! as one another.
//!
//! An entry that sorts after all entries of a ring is appended to it; any other goes to a [heap](crate::heap). Both
//! ends of the ring are a cache line each; a heap of a hundred entries costs three or four, which are cache misses when
//! a thousand CPUs alternate. Without entries in order it is a heap, also while the ring's last entry sorts after all
//! that arrive.

use std::collections::VecDeque;

use crate::heap::{Heap, Keyed};

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct MostlySorted<E> {
    /// In order.
    ring: VecDeque<E>,
    heap: Heap<E>,
}

impl<E> Default for MostlySorted<E> {
    fn default() -> Self {
        Self { ring: VecDeque::new(), heap: Heap::default() }
    }
}

impl<E: Keyed> MostlySorted<E> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.heap.len()
    }

    /// The least entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<E> {
        if self.is_heaps_turn() { self.heap.first() } else { self.ring.front().copied() }
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: E) {
        match self.ring.back() {
            Some(last) if entry.key() < last.key() => self.heap.push(entry, |_, _| {}),
            _ => self.ring.push_back(entry),
        }
    }

    /// Takes the least entry out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        if self.is_heaps_turn() { self.heap.pop() } else { self.ring.pop_front() }
    }

    /// Keeps the entries that are wanted.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(E) -> bool) {
        self.ring.retain(|entry| wanted(*entry));
        self.heap.retain(wanted);
    }

    /// Prefetches the cache lines that taking the least entry out reads first, and those of the ring's end.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.ring.front().into_iter().chain(self.ring.back()).for_each(fairground_bpf::prefetch);
        self.heap.prefetch();
    }

    /// Whether the least entry is in the heap.
    #[inline]
    fn is_heaps_turn(&self) -> bool {
        let Some(entry) = self.heap.first() else { return false };
        self.ring.front().is_none_or(|front| entry.key() < front.key())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_comes_in_order_never_reaches_the_heap() {
        let mut queue = MostlySorted::default();
        for time in 0..1000_u128 {
            queue.push(time + 100);
            if time >= 100 {
                assert_eq!(queue.pop(), Some(time));
            }
        }
        assert_eq!((queue.len(), queue.heap.len()), (100, 0));
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0..6_u32, 0..1000_u128), 1..300)) {
            let mut queue = MostlySorted::default();
            let mut model: Vec<u128> = Vec::new();
            for (number, (what, key)) in steps.into_iter().enumerate() {
                match what {
                    // Now at any place, now behind most.
                    0..=2 => {
                        let late = if what == 0 { 0 } else { number as u128 * 100 };
                        let entry = (key + late) << 32 | number as u128;
                        queue.push(entry);
                        model.push(entry);
                        model.sort_unstable_by(|a, b| b.cmp(a));
                    }
                    3 if key % 7 == 0 => {
                        let wanted = |entry: u128| entry % 3 != key % 3;
                        queue.retain(wanted);
                        model.retain(|entry| wanted(*entry));
                    }
                    _ => prop_assert_eq!(queue.pop(), model.pop()),
                }
                prop_assert_eq!(queue.first(), model.last().copied());
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
