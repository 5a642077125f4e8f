//! Puts events in order of time: a k-way merge of runs that are sorted by themselves, such as what a recorder took from
//! the buffer of one CPU at once.
//!
//! Runs can be added while earlier events are already taken out ([`RunMerger::take_until`]). An event that is added
//! when later ones have been taken out is *late*: it gets the time of the last event taken out and is counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::vec;

use crate::packed::Packed;

/// The time of a run's next event, and the number of the run: of equal times the earlier run's comes first.
type Head = Reverse<(u64, usize)>;

/// Merges events. Equal times keep the order in which the events were added.
#[derive(Debug, Default)]
pub(super) struct RunMerger {
    /// By number; empty once all its events have been taken out.
    runs: Vec<Peekable<vec::IntoIter<Packed>>>,
    /// Of all runs that have events left.
    heads: BinaryHeap<Head>,
    /// Events added.
    pub(super) len: usize,
    /// The earliest and the latest time, ns; `None` without events.
    pub(super) extent: Option<(u64, u64)>,
    /// The time of the last event taken out, ns.
    taken_ns: u64,
    /// Late events taken out so far.
    pub(super) late: u64,
}

impl RunMerger {
    /// Adds a run, which must be in order of time.
    pub(super) fn add(&mut self, run: Vec<Packed>) {
        let Some((first_ns, last_ns)) =
            run.first().zip(run.last()).map(|(first, last)| (first.time_ns, last.time_ns))
        else {
            return;
        };
        let (start_ns, end_ns) = self.extent.unwrap_or((first_ns, last_ns));
        self.extent = Some((start_ns.min(first_ns), end_ns.max(last_ns)));
        self.len += run.len();
        self.heads.push(Reverse((first_ns, self.runs.len())));
        self.runs.push(run.into_iter().peekable());
    }

    /// Takes out all events up to a time, in order of time.
    pub(super) fn take_until(&mut self, until_ns: u64, mut take_over: impl FnMut(Packed)) {
        while let Some(Reverse((time_ns, number))) = self.heads.peek().copied()
            && time_ns <= until_ns
        {
            self.heads.pop();
            // The run's events that stand before another run's next one.
            let limit = self.heads.peek().map_or((u64::MAX, usize::MAX), |head| head.0);
            let stands_before =
                |event: &Packed| event.time_ns <= until_ns && (event.time_ns, number) <= limit;
            let run = &mut self.runs[number];
            while let Some(mut event) = run.next_if(stands_before) {
                if event.time_ns < self.taken_ns {
                    event.time_ns = self.taken_ns;
                    self.late += 1;
                }
                self.taken_ns = event.time_ns;
                take_over(event);
            }
            match run.peek() {
                Some(next) => self.heads.push(Reverse((next.time_ns, number))),
                None => *run = Vec::new().into_iter().peekable(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::Runs;
    use super::*;
    use crate::EventKind;
    use proptest::prelude::*;

    /// Events of these times; the CPU is the position.
    fn runs(times: impl IntoIterator<Item = u64>) -> Vec<Vec<Packed>> {
        let mut events = Runs::default();
        for (time_ns, cpu) in times.into_iter().zip(0..) {
            events.push(time_ns, cpu, EventKind::Lost { count: 1 });
        }
        events.runs
    }

    fn taken(merger: &mut RunMerger, until_ns: u64) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        merger.take_until(until_ns, |event| found.push((event.time_ns, event.cpu)));
        found
    }

    fn merged(times: &[u64]) -> Vec<(u64, u32)> {
        let mut merger = RunMerger::default();
        runs(times.to_vec()).into_iter().for_each(|run| merger.add(run));
        let extent = times.iter().copied().min().zip(times.iter().copied().max());
        assert_eq!((merger.len, merger.extent), (times.len(), extent));
        let found = taken(&mut merger, u64::MAX);
        assert_eq!(merger.late, 0);
        assert!(merger.runs.iter_mut().all(|run| run.peek().is_none()));
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
            prop_assert_eq!(merged(&times), sorted(&times));
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
                runs(times).into_iter().for_each(|run| merger.add(run));
                found.extend(taken(&mut merger, until_ns));
                last_ns = found.last().map_or(0, |(time_ns, _)| *time_ns);
            }
            found.extend(taken(&mut merger, u64::MAX));
            all.sort_unstable();
            prop_assert_eq!(found.iter().map(|(time_ns, _)| *time_ns).collect::<Vec<_>>(), all);
            prop_assert_eq!(merger.late, late);
        }
    }

    #[test]
    fn the_last_instant_of_all() {
        assert_eq!(merged(&[u64::MAX, 3, u64::MAX]), [(3, 1), (u64::MAX, 0), (u64::MAX, 2)]);
        assert_eq!(merged(&[]), []);
    }
}
