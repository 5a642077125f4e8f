//! The states of each task over time: the state of a lock's holder, or of a waker, while another task waited for it.

/// The state of a task that others wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HolderState {
    /// Nothing is known yet.
    #[default]
    Unknown,
    Running,
    Runnable,
    Sleeping,
}

/// Time running, runnable and asleep, ns.
type Sums = [u64; 3];

#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: u64,
    doing: HolderState,
    /// Up to `at_ns`.
    before: Sums,
}

impl Change {
    /// The sums up to a time before the next change.
    fn sums_at(&self, at_ns: u64) -> Sums {
        let mut sums = self.before;
        let ns = at_ns.saturating_sub(self.at_ns);
        match self.doing {
            HolderState::Unknown => {}
            HolderState::Running => sums[0] += ns,
            HolderState::Runnable => sums[1] += ns,
            HolderState::Sleeping => sums[2] += ns,
        }
        sums
    }
}

/// The changes of one task, in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    changes: Vec<Change>,
}

impl History {
    /// From now on the task does something else.
    pub(super) fn change(&mut self, now_ns: u64, doing: HolderState) {
        let last = self.changes.last();
        if last.is_none_or(|last| last.doing != doing) {
            let before = last.map_or([0; 3], |last| last.sums_at(now_ns));
            self.changes.push(Change { at_ns: now_ns, doing, before });
        }
    }

    fn sums_at(&self, at_ns: u64) -> Sums {
        let behind = self.changes.partition_point(|change| change.at_ns <= at_ns);
        self.changes[..behind].last().map_or([0; 3], |last| last.sums_at(at_ns))
    }

    /// How long the task ran, was runnable, slept between two times that are not after its last change or now, ns.
    pub(super) fn between(&self, from_ns: u64, to_ns: u64) -> Sums {
        let (from, to) = (self.sums_at(from_ns), self.sums_at(to_ns));
        std::array::from_fn(|at| to[at] - from[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_cut_at_both_ends() {
        let mut history = History::default();
        history.change(100, HolderState::Running);
        history.change(150, HolderState::Running);
        history.change(200, HolderState::Sleeping);
        history.change(500, HolderState::Runnable);
        assert_eq!(history.between(0, 100), [0, 0, 0], "before the first change nothing is known");
        assert_eq!(history.between(120, 300), [80, 0, 100]);
        assert_eq!(history.between(0, 510), [100, 10, 300]);
    }

    /// As the documentation of [`super`] says.
    #[test]
    fn a_change_takes_forty_bytes() {
        assert_eq!(size_of::<Change>(), 40);
    }
}
