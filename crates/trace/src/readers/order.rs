//! Records in order of time. An input consists of runs that are in order by themselves, such as what a recorder took from the buffer of
//! one CPU at once: they are merged as they are handed out, and nothing is moved.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::records::Record;
use crate::memory;

/// Records in the order of the input.
#[derive(Debug, Default)]
pub(super) struct Pile {
    records: Vec<Record>,
    /// Where each run begins, but the first.
    breaks: Vec<usize>,
    last_ns: u64,
    end_ns: u64,
}

/// A place in the pile by time, then by order in the input.
type Key = (u64, usize);

impl Pile {
    #[inline]
    pub(super) fn push(&mut self, record: Record) {
        if record.time_ns < self.last_ns {
            self.breaks.push(self.records.len());
        }
        self.last_ns = record.time_ns;
        self.end_ns = self.end_ns.max(record.time_ns);
        self.records.push(record);
    }

    /// Makes room for so many more records, of which fewer may come.
    pub(super) fn reserve(&mut self, records: usize) {
        memory::reserve(&mut self.records, records);
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The earliest and the latest time; `None` without records.
    pub(super) fn extent(&self) -> Option<(u64, u64)> {
        let begins = self.begins().map(|at| self.records[at].time_ns);
        begins.min().map(|start_ns| (start_ns, self.end_ns))
    }

    fn begins(&self) -> impl Iterator<Item = usize> {
        let first = (!self.records.is_empty()).then_some(0);
        first.into_iter().chain(self.breaks.iter().copied())
    }

    /// Hands out all records in order of time; equal times keep the order of the input.
    pub(super) fn in_order(&self, mut take: impl FnMut(&Record)) {
        let ends = self.breaks.iter().copied().chain([self.records.len()]);
        let mut runs: Vec<(Key, usize)> =
            self.begins().zip(ends).map(|(at, end)| (self.key(at), end)).collect();
        runs.sort_unstable();
        // A run joins the others when its first record's turn has come: as many are open as there are buffers.
        let mut ahead = runs.into_iter().map(Reverse).peekable();
        let mut open: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::new();
        loop {
            // Reversed: the greater is the earlier one.
            let head = match (open.peek(), ahead.peek()) {
                (Some(a), Some(b)) if a > b => open.pop(),
                (Some(_), None) => open.pop(),
                _ => ahead.next(),
            };
            let Some(Reverse(((_, from), end))) = head else { return };
            let limit = [open.peek(), ahead.peek()].into_iter().flatten().map(|run| run.0.0).min();
            let at = self.hand_out(from..end, limit, &mut take);
            if at < end {
                open.push(Reverse((self.key(at), end)));
            }
        }
    }

    /// Hands out the records of a run that stand before a place; gives where it stopped.
    #[inline]
    fn hand_out(
        &self,
        run: std::ops::Range<usize>,
        limit: Option<Key>,
        take: &mut impl FnMut(&Record),
    ) -> usize {
        let (limit_ns, limit_at) = limit.unwrap_or((u64::MAX, usize::MAX));
        for at in run.clone() {
            let record = &self.records[at];
            if (record.time_ns, at) > (limit_ns, limit_at) {
                return at;
            }
            take(record);
        }
        run.end
    }

    fn key(&self, at: usize) -> Key {
        (self.records[at].time_ns, at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::What;
    use super::*;
    use proptest::prelude::*;

    fn merged(times: &[u64]) -> Vec<(u64, u32)> {
        let mut pile = Pile::default();
        for (cpu, time_ns) in times.iter().enumerate() {
            let what = What::Nice { pid: 1, nice: 0 };
            pile.push(Record { time_ns: *time_ns, cpu: cpu as u32, what });
        }
        let mut found = Vec::new();
        pile.in_order(|record| found.push((record.time_ns, record.cpu)));
        assert_eq!(pile.extent(), times.iter().copied().min().zip(times.iter().copied().max()));
        found
    }

    fn sorted(times: &[u64]) -> Vec<(u64, u32)> {
        let mut all: Vec<_> = times.iter().copied().zip(0..).collect();
        all.sort_by_key(|(time_ns, _)| *time_ns);
        all
    }

    proptest! {
        #[test]
        fn merging_is_a_stable_sort(times in prop::collection::vec(0..40_u64, 0..200)) {
            prop_assert_eq!(merged(&times), sorted(&times));
        }

        /// Buffers of CPUs in rounds, as perf writes them.
        #[test]
        fn rounds_of_buffers(mut buffers in prop::collection::vec(prop::collection::vec(0..500_u64, 0..40), 0..12)) {
            buffers.iter_mut().for_each(|buffer| buffer.sort_unstable());
            let times = buffers.concat();
            prop_assert_eq!(merged(&times), sorted(&times));
        }
    }

    #[test]
    fn the_last_instant_of_all() {
        assert_eq!(merged(&[u64::MAX, 3, u64::MAX]), [(3, 1), (u64::MAX, 0), (u64::MAX, 2)]);
        assert_eq!(merged(&[]), []);
    }
}
