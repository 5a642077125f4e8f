//! Lost events, which a file tells twice: where they are missing (`PERF_RECORD_LOST`), for each buffer that had no room; and when the
//! recorder ends, what each event lost on each CPU in all (`PERF_RECORD_LOST_SAMPLES` without a time; Linux 6.0 and later). What was lost
//! last has no record behind it that could tell: only the count at the end knows of it.

use std::collections::BTreeMap;

/// By CPU; `None` where a record does not say which.
#[derive(Debug, Default)]
pub(super) struct Losses(BTreeMap<Option<u32>, Lost>);

#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    here: u64,
    in_all: u64,
}

impl Losses {
    /// So many are missing where the reader is.
    pub(super) fn here(&mut self, cpu: Option<u32>, count: u64) {
        let here = &mut self.0.entry(cpu).or_default().here;
        *here = here.saturating_add(count);
    }

    /// One event lost so many in all.
    pub(super) fn in_all(&mut self, cpu: Option<u32>, count: u64) {
        let in_all = &mut self.0.entry(cpu).or_default().in_all;
        *in_all = in_all.saturating_add(count);
    }

    /// What was counted and is missing at no known place.
    pub(super) fn untold(&self) -> Vec<(Option<u32>, u64)> {
        let untold =
            |(cpu, lost): (&Option<u32>, &Lost)| (*cpu, lost.in_all.saturating_sub(lost.here));
        self.0.iter().map(untold).filter(|(_, count)| *count > 0).collect()
    }
}
