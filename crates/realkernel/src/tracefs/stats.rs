//! Statistics of a CPU's buffer: `per_cpu/cpuN/stats`.

/// The counts of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stats {
    /// Events in the buffer.
    pub(super) entries: u64,
    /// Events read from the buffer.
    pub(super) read: u64,
    /// Events overwritten before they were read.
    pub(super) overrun: u64,
    /// Events dropped because a nested write overran the buffer (`commit overrun`).
    pub(super) commit_overrun: u64,
    /// Events dropped because the buffer was full (without overwriting).
    pub(super) dropped: u64,
}

impl Stats {
    /// Parses the file; missing counts are 0.
    pub(super) fn parse(text: &str) -> Self {
        let mut stats = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let Ok(value) = value.trim().parse() else { continue };
            match name {
                "entries" => stats.entries = value,
                "read events" => stats.read = value,
                "overrun" => stats.overrun = value,
                "commit overrun" => stats.commit_overrun = value,
                "dropped events" => stats.dropped = value,
                _ => {}
            }
        }
        stats
    }

    /// Events recorded and not overwritten.
    pub(super) fn kept(&self) -> u64 {
        self.entries.saturating_add(self.read)
    }

    /// Lost events.
    pub(super) fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text() {
        let text = "entries: 7\noverrun: 3\ncommit overrun: 1\nbytes: 52\noldest event ts:  3.5\n\
                    now ts:  4.5\ndropped events: 20\nread events: 900\n";
        let stats = Stats::parse(text);
        let known = Stats { entries: 7, read: 900, overrun: 3, commit_overrun: 1, dropped: 20 };
        assert_eq!((stats, stats.kept(), stats.lost()), (known, 907, 24));
    }
}
