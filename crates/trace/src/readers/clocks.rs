//! The clocks of the CPUs: where one goes back, and up to which time the rounds of a recorder are complete.

/// The times of a CPU's events in a part of the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSpan {
    pub(super) cpu: u32,
    pub(super) first_ns: u64,
    /// The byte of the input where the first event begins.
    pub(super) first_at: u64,
    pub(super) last_ns: u64,
}

/// The clocks in a part of the input.
#[derive(Debug, Default)]
pub(super) struct ClockSpans {
    spans: Vec<ClockSpan>,
    /// The index of the CPU noted last.
    current: usize,
}

impl ClockSpans {
    /// Notes the time of an event that begins at a byte of the input. Returns by how many nanoseconds the CPU's clock
    /// went back, if it did.
    #[inline]
    pub(super) fn note(&mut self, cpu: u32, time_ns: u64, at: u64) -> Option<u64> {
        if self.spans.get(self.current).is_none_or(|span| span.cpu != cpu) {
            let known = self.spans.iter().position(|span| span.cpu == cpu);
            self.current = known.unwrap_or_else(|| {
                let (first_ns, first_at, last_ns) = (time_ns, at, time_ns);
                self.spans.push(ClockSpan { cpu, first_ns, first_at, last_ns });
                self.spans.len() - 1
            });
        }
        let last_ns = std::mem::replace(&mut self.spans[self.current].last_ns, time_ns);
        last_ns.checked_sub(time_ns).filter(|back_ns| *back_ns > 0)
    }

    /// The last time of a CPU, ns.
    pub(super) fn last_ns(&self, cpu: u32) -> Option<u64> {
        self.spans.iter().find(|span| span.cpu == cpu).map(|span| span.last_ns)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ClockSpan> {
        self.spans.iter()
    }
}

/// The last time of each CPU so far.
#[derive(Debug, Default)]
pub(super) struct CpuClocks {
    last_ns: Vec<Option<u64>>,
    /// The same when the last round of the recorder ended.
    round_ns: Vec<Option<u64>>,
}

impl CpuClocks {
    /// Sets a CPU's clock; returns its last time.
    pub(super) fn set(&mut self, cpu: u32, time_ns: u64) -> Option<u64> {
        let index = cpu as usize;
        if self.last_ns.len() <= index {
            self.last_ns.resize(index + 1, None);
        }
        self.last_ns[index].replace(time_ns)
    }

    /// The last time of a CPU, ns.
    pub(super) fn last_ns(&self, cpu: u32) -> Option<u64> {
        self.last_ns.get(cpu as usize).copied().flatten()
    }

    /// Notes that a round of the recorder ended. Returns the time up to which no event is missing any more, if there is
    /// one.
    ///
    /// In a round the recorder empties the buffers of all CPUs, one after the other. An event that it has not seen when
    /// a round ends happened after that buffer had been emptied, hence after the round before it had ended: nothing
    /// older than the latest event of that earlier round can follow (perf's rule, `ordered-events.c`). A CPU whose
    /// clock went back since then does not count: its time of that earlier round was wrong.
    pub(super) fn end_round(&mut self) -> Option<u64> {
        let sound = self.round_ns.iter().zip(&self.last_ns).filter(|(before, now)| before <= now);
        let complete_ns = sound.filter_map(|(before, _)| *before).max();
        self.round_ns.clone_from(&self.last_ns);
        complete_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_back() {
        let mut spans = ClockSpans::default();
        let found =
            [(0, 10), (1, 5), (0, 10), (0, 7), (1, 6)].map(|(cpu, ns)| spans.note(cpu, ns, 99));
        assert_eq!(found, [None, None, None, Some(3), None]);
        let ends: Vec<_> =
            spans.iter().map(|span| (span.cpu, span.first_ns, span.last_ns)).collect();
        assert_eq!(ends, [(0, 10, 7), (1, 5, 6)]);
    }

    #[test]
    fn a_round_completes_the_one_before_it() {
        let mut clocks = CpuClocks::default();
        clocks.set(0, 100);
        clocks.set(1, 90);
        assert_eq!(clocks.end_round(), None);
        clocks.set(1, 200);
        assert_eq!(clocks.end_round(), Some(100));
        // One wrong time, far ahead, completes nothing.
        clocks.set(0, u64::MAX);
        assert_eq!(clocks.end_round(), Some(200));
        clocks.set(0, 300);
        assert_eq!(clocks.end_round(), Some(200));
    }
}
