//! Records in order of time. An input consists of runs that are in order by themselves, such as what a recorder took from the buffer of
//! one CPU at once: they are merged as they are handed out, and nothing is moved. What is known to be complete can be handed out before
//! the rest is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::mem::take;
use std::ops::Range;

use super::records::Record;

/// Records in the order of the input, until they are handed out.
#[derive(Debug, Default)]
pub(super) struct Pile {
    shelves: Vec<Shelf>,
    /// The shelf of those that come one by one.
    open: Option<usize>,
    /// In the order of the input; the records of each are in order of time.
    runs: Vec<Run>,
    /// Where the runs stand that were not handed out to their ends.
    heads: Vec<Head>,
    /// What is left of shelves that were handed out.
    empty: Vec<Vec<Record>>,
    last_ns: u64,
    len: usize,
    /// The earliest and the latest time.
    extent: Option<(u64, u64)>,
    /// Everything up to this time was handed out.
    passed_ns: Option<u64>,
    is_late: bool,
}

/// Where records lie.
#[derive(Debug, Default)]
struct Shelf {
    records: Vec<Record>,
    /// Runs that were not handed out to their ends.
    runs: usize,
}

#[derive(Clone, Debug)]
struct Run {
    shelf: usize,
    places: Range<usize>,
}

/// The next record of a run: its time, the number of the run, and its place on the shelf. Of equal times the earlier run's comes first.
type Head = (u64, usize, usize);

impl Pile {
    #[inline]
    pub(super) fn push(&mut self, record: Record) {
        let shelf = self.open.unwrap_or_else(|| self.open_shelf());
        let place = self.shelves[shelf].records.len();
        match self.runs.last_mut() {
            Some(run) if run.shelf == shelf && record.time_ns >= self.last_ns => {
                run.places.end += 1;
                self.note(record.time_ns, record.time_ns);
            }
            _ => self.add_run(shelf, place..place + 1, record.time_ns, record.time_ns),
        }
        self.len += 1;
        self.shelves[shelf].records.push(record);
    }

    #[cold]
    fn open_shelf(&mut self) -> usize {
        self.shelves.push(Shelf::default());
        *self.open.insert(self.shelves.len() - 1)
    }

    /// Takes over records that come next, in runs that are in order of time.
    pub(super) fn shelve(&mut self, records: Vec<Record>, runs: Vec<Range<usize>>) {
        self.open = None;
        let shelf = self.shelves.len();
        self.shelves.push(Shelf::default());
        for places in runs {
            let ends = records[places.clone()].first().zip(records[places.clone()].last());
            if let Some((first, last)) = ends {
                self.len += places.len();
                self.add_run(shelf, places, first.time_ns, last.time_ns);
            }
        }
        match self.shelves[shelf].runs {
            0 => self.empty.push(records),
            _ => self.shelves[shelf].records = records,
        }
    }

    fn add_run(&mut self, shelf: usize, places: Range<usize>, first_ns: u64, last_ns: u64) {
        self.is_late |= self.passed_ns.is_some_and(|passed_ns| first_ns < passed_ns);
        self.note(first_ns, last_ns);
        self.heads.push((first_ns, self.runs.len(), places.start));
        self.runs.push(Run { shelf, places });
        self.shelves[shelf].runs += 1;
    }

    #[inline]
    fn note(&mut self, first_ns: u64, last_ns: u64) {
        self.last_ns = last_ns;
        let (start_ns, end_ns) = self.extent.unwrap_or((first_ns, last_ns));
        self.extent = Some((start_ns.min(first_ns), end_ns.max(last_ns)));
    }

    /// How many there are, with those that were handed out.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The earliest and the latest time; `None` without records.
    pub(super) fn extent(&self) -> Option<(u64, u64)> {
        self.extent
    }

    /// Whether a record came when later ones had been handed out: the order of what was handed out is not that of time.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Up to which time everything was handed out.
    pub(super) fn passed_ns(&self) -> Option<u64> {
        self.passed_ns
    }

    /// Memory of records that were handed out.
    pub(super) fn take_empty(&mut self) -> Vec<Vec<Record>> {
        take(&mut self.empty)
    }

    /// Hands out all records up to a time in order of time; equal times keep the order of the input.
    pub(super) fn in_order(&mut self, until_ns: u64, mut take_over: impl FnMut(&Record)) {
        // What comes one by one from here on is a run of its own.
        self.open = None;
        self.passed_ns = self.passed_ns.max(Some(until_ns));
        let mut heads = take(&mut self.heads);
        heads.sort_unstable();
        // A run joins the others when its first record's turn has come: as many are open as there are buffers.
        let mut ahead = heads.into_iter().peekable();
        let mut open: BinaryHeap<Reverse<Head>> = BinaryHeap::new();
        let mut next = ahead.next();
        while let Some(head) = next.filter(|(time_ns, ..)| *time_ns <= until_ns) {
            let limit = match (open.peek(), ahead.peek()) {
                (Some(Reverse(open)), Some(ahead)) => Some(*open.min(ahead)),
                (open, ahead) => open.map(|Reverse(open)| *open).or(ahead.copied()),
            };
            let rest = self.hand_out(head, limit, until_ns, &mut take_over);
            if rest.is_none() {
                self.clear(head);
            }
            let opens = ahead.peek() == limit.as_ref();
            next = match (rest, if opens { ahead.next() } else { None }) {
                (rest, Some(next)) => {
                    open.extend(rest.map(Reverse));
                    Some(next)
                }
                (rest, None) => match (rest, open.peek_mut()) {
                    (rest, None) => rest,
                    (None, Some(least)) => Some(PeekMut::pop(least).0),
                    (Some(rest), Some(mut least)) => Some(std::mem::replace(&mut least.0, rest)),
                },
            };
        }
        self.heads =
            next.into_iter().chain(ahead).chain(open.into_iter().map(|head| head.0)).collect();
    }

    /// Hands out the records of a run that stand before another run's next one; gives where it stopped.
    #[inline]
    fn hand_out(
        &self,
        head: Head,
        limit: Option<Head>,
        until_ns: u64,
        take: &mut impl FnMut(&Record),
    ) -> Option<Head> {
        let (_, number, from) = head;
        let Run { shelf, places } = &self.runs[number];
        let last_ns = match limit {
            Some((limit_ns, other, _)) if number > other => limit_ns.checked_sub(1),
            Some((limit_ns, ..)) => Some(limit_ns),
            None => Some(u64::MAX),
        };
        let Some(last_ns) = last_ns.map(|last_ns| last_ns.min(until_ns)) else { return Some(head) };
        for (record, at) in self.shelves[*shelf].records[from..places.end].iter().zip(from..) {
            if record.time_ns > last_ns {
                return Some((record.time_ns, number, at));
            }
            take(record);
        }
        None
    }

    /// A run was handed out to its end.
    fn clear(&mut self, (_, number, _): Head) {
        let shelf = &mut self.shelves[self.runs[number].shelf];
        shelf.runs -= 1;
        if shelf.runs == 0 {
            let mut records = take(&mut shelf.records);
            records.clear();
            self.empty.push(records);
        }
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
        pile.in_order(u64::MAX, |record| found.push((record.time_ns, record.cpu)));
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

    proptest! {
        /// In rounds, each of which brings nothing from before what the round before it had seen.
        #[test]
        fn handing_out_early_changes_nothing(
            rounds in prop::collection::vec((prop::collection::vec(0..60_u64, 0..30), any::<bool>()), 0..12),
            late in prop::option::of(0..200_u64),
        ) {
            let (mut pile, mut found, mut all) = (Pile::default(), Vec::new(), Vec::new());
            let (mut seen_ns, mut complete_ns, mut handed_ns) = (0, 0, 0);
            let mut is_late = false;
            for (round, (times, one_by_one)) in rounds.into_iter().enumerate() {
                let mut times: Vec<u64> = times.iter().map(|ns| complete_ns + ns).collect();
                times.extend(late.filter(|_| round == 5));
                let record = |(at, time_ns): (usize, &u64)| {
                    let what = What::Nice { pid: 1, nice: 0 };
                    Record { time_ns: *time_ns, cpu: (all.len() + at) as u32, what }
                };
                let records: Vec<Record> = times.iter().enumerate().map(record).collect();
                all.extend(&times);
                is_late |= times.iter().any(|ns| *ns < handed_ns);
                if one_by_one {
                    records.iter().for_each(|record| pile.push(*record));
                } else {
                    let mut at = 0;
                    let in_order = |a: &u64, b: &u64| a <= b;
                    let runs: Vec<_> = times.chunk_by(in_order).map(|run| {
                        at += run.len();
                        at - run.len()..at
                    }).collect();
                    pile.shelve(records, runs);
                }
                handed_ns = complete_ns;
                pile.in_order(handed_ns, |record| found.push((record.time_ns, record.cpu)));
                (complete_ns, seen_ns) = (seen_ns, times.iter().copied().max().unwrap_or(0).max(seen_ns));
            }
            pile.in_order(u64::MAX, |record| found.push((record.time_ns, record.cpu)));
            prop_assert_eq!(pile.is_late(), is_late);
            prop_assert_eq!(found.len(), all.len());
            if !is_late {
                prop_assert_eq!(found, sorted(&all));
            }
            prop_assert!(pile.shelves.iter().all(|shelf| shelf.records.is_empty()));
        }
    }

    #[test]
    fn the_last_instant_of_all() {
        assert_eq!(merged(&[u64::MAX, 3, u64::MAX]), [(3, 1), (u64::MAX, 0), (u64::MAX, 2)]);
        assert_eq!(merged(&[]), []);
    }
}
