//! Min-heaps of two-word entries with four children a place, which lie in one cache line: a level costs one access to
//! memory, and the least of the four is found without a branch that could be predicted wrongly.
//!
//! The root has place 3 and the children of place `n` have the four places from `4 · (n − 2)` on, so that a line holds
//! exactly the children of one place. Unused places hold an entry that sorts after every other, and need no special
//! case.

/// An entry of a heap.
pub(crate) trait Keyed: Copy {
    /// Comes after every entry that is put into a heap.
    const LAST: Self;

    /// Order of a heap's entries. No two entries of a heap have the same.
    fn key(self) -> u128;
}

const ARITY: usize = 4;
/// The place of the least entry.
pub(crate) const ROOT: usize = ARITY - 1;

/// The children of one place.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line<E>([E; ARITY]);

/// A heap. To find an entry again, pass a `put`, which is called for every place that an entry gets.
#[derive(Clone, Debug)]
pub(crate) struct Heap<E> {
    lines: Vec<Line<E>>,
    len: usize,
}

impl<E> Default for Heap<E> {
    fn default() -> Heap<E> {
        Heap { lines: Vec::new(), len: 0 }
    }
}

impl<E: Keyed> Heap<E> {
    /// Makes room for entries.
    pub(crate) fn reserve(&mut self, entries: usize) {
        self.lines.reserve(entries / ARITY + 2);
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The least entry.
    #[inline]
    pub(crate) fn first(&self) -> Option<E> {
        (self.len > 0).then(|| self.at(ROOT))
    }

    /// The entry at a place that has one.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> E {
        self.lines[place / ARITY].0[place % ARITY]
    }

    /// The second least entry.
    #[inline]
    pub(crate) fn second(&self) -> Option<E> {
        (self.len > 1).then(|| self.at(self.least_below(ROOT).unwrap_or(ROOT)))
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: E, put: impl FnMut(E, usize)) {
        let place = self.len + ROOT;
        if place / ARITY >= self.lines.len() {
            self.lines.push(Line([E::LAST; ARITY]));
        }
        self.len += 1;
        self.sift_up(place, entry, put);
    }

    /// Replaces the entry at a place.
    #[inline]
    pub(crate) fn replace(&mut self, place: usize, entry: E, put: impl FnMut(E, usize)) {
        if entry.key() < self.at(place).key() {
            self.sift_up(place, entry, put);
        } else {
            self.sift_down(place, entry, put);
        }
    }

    /// Takes out the entry at a place.
    #[inline]
    pub(crate) fn remove(&mut self, place: usize, put: impl FnMut(E, usize)) {
        let end = self.len + ROOT - 1;
        let last = self.at(end);
        self.set(end, E::LAST);
        self.len -= 1;
        if place < end {
            self.replace(place, last, put);
        }
    }

    /// Takes the least entry out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        let first = self.first()?;
        self.remove(ROOT, |_, _| {});
        Some(first)
    }

    /// Keeps the entries that are wanted.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(E) -> bool) {
        let all: Vec<E> = self.entries().filter(|entry| wanted(*entry)).collect();
        *self = Heap::default();
        for entry in all {
            self.push(entry, |_, _| {});
        }
    }

    /// Every entry, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = E> {
        (ROOT..self.len + ROOT).map(|place| self.at(place))
    }

    /// Prefetches the cache lines that taking the least entry out reads first.
    #[inline]
    pub(crate) fn prefetch(&self) {
        for line in self.lines.iter().take(2) {
            fairground_bpf::prefetch(line);
        }
    }

    #[inline]
    fn set(&mut self, place: usize, entry: E) {
        self.lines[place / ARITY].0[place % ARITY] = entry;
    }

    #[inline]
    fn sift_up(&mut self, mut place: usize, entry: E, mut put: impl FnMut(E, usize)) {
        while place > ROOT {
            let parent = place / ARITY + 2;
            let above = self.at(parent);
            if above.key() <= entry.key() {
                break;
            }
            self.set(place, above);
            put(above, place);
            place = parent;
        }
        self.set(place, entry);
        put(entry, place);
    }

    #[inline]
    fn sift_down(&mut self, mut place: usize, entry: E, mut put: impl FnMut(E, usize)) {
        while let Some(least) = self.least_below(place) {
            let child = self.at(least);
            if entry.key() <= child.key() {
                break;
            }
            self.set(place, child);
            put(child, place);
            place = least;
        }
        self.set(place, entry);
        put(entry, place);
    }

    /// The place of the least entry below a place; there may be none at it.
    #[inline]
    fn least_below(&self, place: usize) -> Option<usize> {
        let line = place - 2;
        let [a, b, c, d] = self.lines.get(line)?.0.map(Keyed::key);
        // The lesser of each pair, then of both.
        let (left, least_left) = if b < a { (1, b) } else { (0, a) };
        let (right, least_right) = if d < c { (3, d) } else { (2, c) };
        Some(line * ARITY + if least_right < least_left { right } else { left })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Keyed for u128 {
        const LAST: u128 = u128::MAX;

        fn key(self) -> u128 {
            self
        }
    }

    impl<E: Keyed> Heap<E> {
        /// The places below a place that have an entry.
        fn below(&self, place: usize) -> std::ops::Range<usize> {
            let first = (place - 2) * ARITY;
            first..(first + ARITY).min(self.len + ROOT).max(first)
        }
    }

    #[test]
    fn each_place_has_its_own_line_of_children() {
        let mut heap = Heap::default();
        (0..100_u128).for_each(|entry| heap.push(entry, |_, _| {}));
        let below: Vec<usize> = (ROOT..ROOT + 100).flat_map(|place| heap.below(place)).collect();
        assert_eq!(below, (ROOT + 1..ROOT + 100).collect::<Vec<_>>());
        assert!((ROOT..ROOT + 100).all(|place| heap.below(place).start % ARITY == 0));
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0..5_u32, 0..1000_u128), 1..300)) {
            let mut heap = Heap::default();
            let mut places = std::collections::BTreeMap::new();
            let mut model: Vec<u128> = Vec::new();
            for (number, (what, key)) in steps.into_iter().enumerate() {
                let put = |entry, place| {
                    places.insert(entry, place);
                };
                match what {
                    0 | 1 => {
                        let entry = key << 32 | number as u128;
                        heap.push(entry, put);
                        model.push(entry);
                        model.sort_unstable_by(|a, b| b.cmp(a));
                    }
                    2 if !model.is_empty() => {
                        let entry = model.remove(key as usize % model.len());
                        let place = places[&entry];
                        prop_assert_eq!(heap.at(place), entry);
                        heap.remove(place, |entry, place| {
                            places.insert(entry, place);
                        });
                    }
                    3 if key % 7 == 0 => {
                        let wanted = |entry: u128| entry % 3 != key % 3;
                        heap.retain(wanted);
                        model.retain(|entry| wanted(*entry));
                        places = (ROOT..ROOT + heap.len()).map(|place| (heap.at(place), place)).collect();
                    }
                    _ => {
                        let first = model.pop();
                        prop_assert_eq!(heap.first(), first);
                        if first.is_some() {
                            heap.remove(ROOT, put);
                        }
                    }
                }
                let rest = model.iter().rev().copied();
                prop_assert_eq!((heap.first(), heap.second()), (rest.clone().next(), rest.clone().nth(1)));
                prop_assert_eq!(heap.len(), model.len());
            }
        }
    }
}
