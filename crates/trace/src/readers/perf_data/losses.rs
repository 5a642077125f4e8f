//! Lost events, which a file tells twice: where they are missing (`PERF_RECORD_LOST`), for each buffer that had no
//! room; and when the recorder ends, what each event lost on each CPU in all (`PERF_RECORD_LOST_SAMPLES` without a
//! time; Linux 6.0 and later). The last losses of a CPU have no record behind them that could tell: only the count at
//! the end includes them.

use std::collections::BTreeMap;

/// Counts of lost events.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// By CPU; `None` where a record does not say which.
    by_cpu: BTreeMap<Option<u32>, Lost>,
    /// Of those told where they are missing, the ones of an unknown CPU.
    pub(super) somewhere: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    here: u64,
    in_all: u64,
}

impl Losses {
    /// Counts events that are missing where the reader is.
    pub(super) fn here(&mut self, cpu: Option<u32>, count: u64) {
        let here = &mut self.by_cpu.entry(cpu).or_default().here;
        *here = here.saturating_add(count);
    }

    /// Counts the events that one tracepoint lost in all.
    pub(super) fn in_all(&mut self, cpu: Option<u32>, count: u64) {
        let in_all = &mut self.by_cpu.entry(cpu).or_default().in_all;
        *in_all = in_all.saturating_add(count);
    }

    /// Adds the counts of another part of the file.
    pub(super) fn add(&mut self, other: &Self) {
        for (cpu, lost) in &other.by_cpu {
            self.here(*cpu, lost.here);
            self.in_all(*cpu, lost.in_all);
        }
        self.somewhere = self.somewhere.saturating_add(other.somewhere);
    }

    /// Losses of which no record tells where they are, by CPU.
    pub(super) fn without_place(&self) -> Vec<(Option<u32>, u64)> {
        let rest =
            |(cpu, lost): (&Option<u32>, &Lost)| (*cpu, lost.in_all.saturating_sub(lost.here));
        self.by_cpu.iter().map(rest).filter(|(_, count)| *count > 0).collect()
    }
}
