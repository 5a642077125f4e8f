//! What each task did when: the state of a lock's holder, or of a waker, while another task waited for it.

/// What a task does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing is known yet.
    #[default]
    Unknown,
    Running,
    Runnable,
    Sleeping,
}

/// Time in each state, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    running_ns: u64,
    runnable_ns: u64,
    sleeping_ns: u64,
}

impl Sums {
    fn add(&mut self, doing: Doing, ns: u64) {
        match doing {
            Doing::Unknown => {}
            Doing::Running => self.running_ns += ns,
            Doing::Runnable => self.runnable_ns += ns,
            Doing::Sleeping => self.sleeping_ns += ns,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: u64,
    doing: Doing,
    /// Up to `at_ns`.
    before: Sums,
}

/// The changes of one task, in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    changes: Vec<Change>,
}

impl History {
    /// From now on the task does something else.
    pub(super) fn change(&mut self, now_ns: u64, doing: Doing) {
        let before = match self.changes.last() {
            Some(last) if last.doing == doing => return,
            Some(last) => {
                let mut sums = last.before;
                sums.add(last.doing, now_ns.saturating_sub(last.at_ns));
                sums
            }
            None => Sums::default(),
        };
        self.changes.push(Change { at_ns: now_ns, doing, before });
    }

    fn sums_at(&self, at_ns: u64) -> Sums {
        let behind = self.changes.partition_point(|change| change.at_ns <= at_ns);
        let Some(last) = behind.checked_sub(1).and_then(|index| self.changes.get(index)) else {
            return Sums::default();
        };
        let mut sums = last.before;
        sums.add(last.doing, at_ns - last.at_ns);
        sums
    }

    /// How long the task ran, was runnable, slept between two times that are not after its last change or now, ns.
    pub(super) fn between(&self, from_ns: u64, to_ns: u64) -> [u64; 3] {
        let (from, to) = (self.sums_at(from_ns), self.sums_at(to_ns));
        [
            to.running_ns - from.running_ns,
            to.runnable_ns - from.runnable_ns,
            to.sleeping_ns - from.sleeping_ns,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_cut_at_both_ends() {
        let mut history = History::default();
        history.change(100, Doing::Running);
        history.change(150, Doing::Running);
        history.change(200, Doing::Sleeping);
        history.change(500, Doing::Runnable);
        assert_eq!(history.between(0, 100), [0, 0, 0], "before the first change nothing is known");
        assert_eq!(history.between(120, 300), [80, 0, 100]);
        assert_eq!(history.between(0, 510), [100, 10, 300]);
    }

    /// As the module's documentation says.
    #[test]
    fn a_change_takes_forty_bytes() {
        assert_eq!(size_of::<Change>(), 40);
    }
}
