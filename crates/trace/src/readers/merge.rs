//! Puts events in order of time: a k-way merge of runs that are sorted by themselves, such as what a recorder took from
//! the buffer of one CPU at once.
//!
//! Runs can be added while earlier events are already taken out ([`RunMerger::take_until`]). An event that is added
//! when later ones have been taken out is *late*: it gets the time of the last event taken out and is counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::take;
use std::vec;

use super::pending::PendingEvent;

/// Events in order of time that were added together.
#[derive(Debug)]
struct Segment {
    next: PendingEvent,
    /// The events behind `next`.
    rest: vec::IntoIter<PendingEvent>,
}

/// The time of a segment's next event, and the number of the segment: of equal times the earlier segment's comes first.
type Head = Reverse<(u64, usize)>;

/// Merges events. Equal times keep the order in which the events were added.
#[derive(Debug, Default)]
pub(super) struct RunMerger {
    /// By number; `None` once all its events have been taken out.
    segments: Vec<Option<Segment>>,
    /// Of all segments that have events left.
    heads: BinaryHeap<Head>,
    /// The run that grows by [`RunMerger::push`].
    open: Vec<PendingEvent>,
    /// Events added.
    len: usize,
    /// The earliest and the latest time.
    extent: Option<(u64, u64)>,
    /// The time of the last event taken out, ns.
    taken_ns: u64,
    late: u64,
}

impl RunMerger {
    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, event: PendingEvent) {
        if self.open.last().is_some_and(|last| last.time_ns > event.time_ns) {
            self.close();
        }
        self.open.push(event);
        self.note(1, event.time_ns, event.time_ns);
    }

    /// Adds a run, which must be in order of time.
    pub(super) fn push_run(&mut self, run: Vec<PendingEvent>) {
        self.close();
        if let Some((first, last)) = run.first().zip(run.last()) {
            self.note(run.len(), first.time_ns, last.time_ns);
            self.add(run);
        }
    }

    fn note(&mut self, events: usize, first_ns: u64, last_ns: u64) {
        self.len += events;
        let (start_ns, end_ns) = self.extent.unwrap_or((first_ns, last_ns));
        self.extent = Some((start_ns.min(first_ns), end_ns.max(last_ns)));
    }

    /// What is pushed from here on is a run of its own.
    fn close(&mut self) {
        let run = take(&mut self.open);
        self.add(run);
    }

    fn add(&mut self, run: Vec<PendingEvent>) {
        let mut rest = run.into_iter();
        if let Some(next) = rest.next() {
            self.heads.push(Reverse((next.time_ns, self.segments.len())));
            self.segments.push(Some(Segment { next, rest }));
        }
    }

    /// The number of events added so far.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The earliest and the latest time of the events added so far, ns; `None` without events.
    pub(super) fn extent(&self) -> Option<(u64, u64)> {
        self.extent
    }

    /// The number of late events taken out so far.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Takes out all events up to a time, in order of time.
    pub(super) fn take_until(&mut self, until_ns: u64, mut take_over: impl FnMut(&PendingEvent)) {
        self.close();
        while let Some(Reverse((time_ns, number))) = self.heads.peek().copied()
            && time_ns <= until_ns
        {
            self.heads.pop();
            let limit = self.heads.peek().map_or((u64::MAX, usize::MAX), |head| head.0);
            let slot = &mut self.segments[number];
            let Some(segment) = slot else { continue };
            let head = segment.take(number, limit, until_ns, |mut event| {
                if event.time_ns < self.taken_ns {
                    event.time_ns = self.taken_ns;
                    self.late += 1;
                }
                self.taken_ns = event.time_ns;
                take_over(&event);
            });
            match head {
                Some(time_ns) => self.heads.push(Reverse((time_ns, number))),
                None => *slot = None,
            }
        }
    }
}

impl Segment {
    /// Takes out the events that stand before another segment's next one; returns the time of the first that is left.
    #[inline(always)]
    fn take(
        &mut self,
        number: usize,
        limit: (u64, usize),
        until_ns: u64,
        mut take_over: impl FnMut(PendingEvent),
    ) -> Option<u64> {
        loop {
            let time_ns = self.next.time_ns;
            if (time_ns, number) > limit || time_ns > until_ns {
                return Some(time_ns);
            }
            take_over(self.next);
            self.next = self.rest.next()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::PendingKind;
    use super::*;
    use proptest::prelude::*;

    /// Events of these times; the CPU is the position.
    fn events(times: &[u64]) -> Vec<PendingEvent> {
        let kind = PendingKind::Nice { pid: 1, nice: 0 };
        let numbered = times.iter().zip(0..);
        numbered.map(|(time_ns, cpu)| PendingEvent { time_ns: *time_ns, cpu, kind }).collect()
    }

    fn taken(merger: &mut RunMerger, until_ns: u64) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        merger.take_until(until_ns, |event| found.push((event.time_ns, event.cpu)));
        found
    }

    fn merged(times: &[u64]) -> Vec<(u64, u32)> {
        let mut merger = RunMerger::default();
        events(times).into_iter().for_each(|event| merger.push(event));
        let extent = times.iter().copied().min().zip(times.iter().copied().max());
        assert_eq!((merger.len(), merger.extent()), (times.len(), extent));
        let found = taken(&mut merger, u64::MAX);
        assert_eq!(merger.late(), 0);
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

        /// Buffers of CPUs one after the other, as perf writes them.
        #[test]
        fn sorted_runs(
            mut runs in prop::collection::vec(prop::collection::vec(0..500_u64, 0..40), 0..12),
        ) {
            runs.iter_mut().for_each(|run| run.sort_unstable());
            let times = runs.concat();
            let mut all = events(&times).into_iter();
            let mut merger = RunMerger::default();
            runs.iter().for_each(|run| merger.push_run(all.by_ref().take(run.len()).collect()));
            prop_assert_eq!(merger.len(), times.len());
            prop_assert_eq!(taken(&mut merger, u64::MAX), sorted(&times));
            prop_assert!(merger.segments.iter().all(Option::is_none));
        }

        /// In rounds, each of which may be taken out up to any time: what comes in time is in order, the rest is
        /// counted.
        #[test]
        fn taking_out_early(
            rounds in prop::collection::vec((prop::collection::vec(0..300_u64, 0..30), 0..300_u64), 0..9),
        ) {
            let mut merger = RunMerger::default();
            let (mut found, mut all, mut late, mut last_ns) = (Vec::new(), Vec::new(), 0, 0);
            for (times, until_ns) in rounds {
                late += times.iter().filter(|time_ns| **time_ns < last_ns).count() as u64;
                all.extend(times.iter().map(|time_ns| last_ns.max(*time_ns)));
                events(&times).into_iter().for_each(|event| merger.push(event));
                found.extend(taken(&mut merger, until_ns));
                last_ns = found.last().map_or(0, |(time_ns, _)| *time_ns);
            }
            found.extend(taken(&mut merger, u64::MAX));
            all.sort_unstable();
            prop_assert_eq!(found.iter().map(|(time_ns, _)| *time_ns).collect::<Vec<_>>(), all);
            prop_assert_eq!(merger.late(), late);
        }
    }

    #[test]
    fn the_last_instant_of_all() {
        assert_eq!(merged(&[u64::MAX, 3, u64::MAX]), [(3, 1), (u64::MAX, 0), (u64::MAX, 2)]);
        assert_eq!(merged(&[]), []);
    }
}
