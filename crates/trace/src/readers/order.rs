//! Records in order of time. An input consists of runs that are in order by themselves, such as what a recorder took from the buffer of
//! one CPU at once: they are merged as they are handed out, and nothing is moved.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use super::records::Record;

/// Records in the order of the input.
#[derive(Debug)]
pub(super) struct Pile {
    /// Where they lie. The first shelf is for those that come one by one.
    shelves: Vec<Vec<Record>>,
    /// In the order of the input; the records of each are in order of time.
    runs: Vec<Run>,
    last_ns: u64,
    end_ns: u64,
    len: usize,
}

#[derive(Clone, Debug)]
struct Run {
    shelf: usize,
    places: Range<usize>,
}

/// The next record of a run: its time, the number of the run, and its place on the shelf. Of equal times the earlier run's comes first.
type Head = (u64, usize, usize);

impl Default for Pile {
    fn default() -> Self {
        Self { shelves: vec![Vec::new()], runs: Vec::new(), last_ns: 0, end_ns: 0, len: 0 }
    }
}

impl Pile {
    #[inline]
    pub(super) fn push(&mut self, record: Record) {
        let place = self.shelves[0].len();
        match self.runs.last_mut() {
            Some(run) if run.shelf == 0 && record.time_ns >= self.last_ns => run.places.end += 1,
            _ => self.runs.push(Run { shelf: 0, places: place..place + 1 }),
        }
        self.last_ns = record.time_ns;
        self.end_ns = self.end_ns.max(record.time_ns);
        self.len += 1;
        self.shelves[0].push(record);
    }

    /// Keeps records that [`Pile::run`] will tell the order of; gives the number of their shelf.
    pub(super) fn shelve(&mut self, records: Vec<Record>) -> usize {
        self.shelves.push(records);
        self.shelves.len() - 1
    }

    /// The records that come next lie on a shelf, in order of time.
    pub(super) fn run(&mut self, shelf: usize, places: Range<usize>) {
        let Some(last) = self.shelves[shelf][places.clone()].last() else { return };
        self.last_ns = last.time_ns;
        self.end_ns = self.end_ns.max(last.time_ns);
        self.len += places.len();
        self.runs.push(Run { shelf, places });
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The earliest and the latest time; `None` without records.
    pub(super) fn extent(&self) -> Option<(u64, u64)> {
        self.heads().map(|(start_ns, ..)| start_ns).min().map(|start_ns| (start_ns, self.end_ns))
    }

    fn heads(&self) -> impl Iterator<Item = Head> {
        let head = |(number, run): (usize, &Run)| {
            let at = run.places.start;
            (self.shelves[run.shelf][at].time_ns, number, at)
        };
        self.runs.iter().enumerate().map(head)
    }

    /// Hands out all records in order of time; equal times keep the order of the input.
    pub(super) fn in_order(&self, mut take: impl FnMut(&Record)) {
        let mut heads: Vec<Head> = self.heads().collect();
        heads.sort_unstable();
        // A run joins the others when its first record's turn has come: as many are open as there are buffers.
        let mut ahead = heads.into_iter().peekable();
        let mut open: BinaryHeap<Reverse<Head>> = BinaryHeap::new();
        let Some(mut head) = ahead.next() else { return };
        loop {
            let limit = match (open.peek(), ahead.peek()) {
                (Some(Reverse(open)), Some(ahead)) => Some(*open.min(ahead)),
                (open, ahead) => open.map(|Reverse(open)| *open).or(ahead.copied()),
            };
            let rest = self.hand_out(head, limit, &mut take);
            let opens = ahead.peek() == limit.as_ref();
            head = match (rest, if opens { ahead.next() } else { None }) {
                (rest, Some(next)) => {
                    open.extend(rest.map(Reverse));
                    next
                }
                // Without a limit all of the run was handed out.
                (rest, None) => match (rest, open.peek_mut()) {
                    (_, None) => return,
                    (None, Some(least)) => PeekMut::pop(least).0,
                    (Some(rest), Some(mut least)) => std::mem::replace(&mut least.0, rest),
                },
            };
        }
    }

    /// Hands out the records of a run that stand before another run's next one; gives where it stopped.
    #[inline]
    fn hand_out(
        &self,
        (_, number, from): Head,
        limit: Option<Head>,
        take: &mut impl FnMut(&Record),
    ) -> Option<Head> {
        let Run { shelf, places } = &self.runs[number];
        let (limit_ns, before) =
            limit.map_or((u64::MAX, true), |limit| (limit.0, number < limit.1));
        for (record, at) in self.shelves[*shelf][from..places.end].iter().zip(from..) {
            if record.time_ns >= limit_ns && !(before && record.time_ns == limit_ns) {
                return Some((record.time_ns, number, at));
            }
            take(record);
        }
        None
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
