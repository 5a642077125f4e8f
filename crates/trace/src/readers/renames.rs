//! Names of tasks that come with a time of their own, in an input whose events do not name the task that ran.

use std::collections::HashMap;

use super::names::Name;

/// How a task comes to a name.
#[derive(Clone, Copy, Debug)]
enum Rename {
    To(Name),
    /// That of another task at that time.
    Like(u32),
}

/// What a task is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
    Name(Name),
    /// Nothing but this pid.
    Pid(u32),
}

/// The names, by the time from which on they hold.
#[derive(Debug, Default)]
pub(super) struct Renames {
    /// First in the order of the input, later of time.
    all: Vec<(u64, u32, Rename)>,
    /// How many of them are known to hold.
    passed: usize,
    known: HashMap<u32, Called>,
    /// Whoever asks may have asked for this time.
    asked_ns: Option<u64>,
    is_late: bool,
}

impl Renames {
    /// A task has a name from a time on.
    pub(super) fn named(&mut self, time_ns: u64, pid: u32, name: Name) {
        self.add((time_ns, pid, Rename::To(name)));
    }

    /// A task has its parent's name from a time on.
    pub(super) fn forked(&mut self, time_ns: u64, parent: u32, child: u32) {
        self.add((time_ns, child, Rename::Like(parent)));
    }

    fn add(&mut self, rename: (u64, u32, Rename)) {
        self.is_late |= self.asked_ns.is_some_and(|asked_ns| rename.0 <= asked_ns);
        self.all.push(rename);
    }

    /// Whether the input has such names at all.
    pub(super) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether a name came when somebody may have asked for a later time.
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// To be called before questions, when there are all names up to this time.
    pub(super) fn complete(&mut self, until_ns: u64) {
        self.all[self.passed..].sort_by_key(|(time_ns, ..)| *time_ns);
        self.asked_ns = self.asked_ns.max(Some(until_ns));
    }

    /// What a task that runs at a time is called; none may lie before that of the question before. One without a name is called by its
    /// pid from the first question on.
    pub(super) fn at(&mut self, time_ns: u64, pid: u32) -> Called {
        while let Some((_, pid, to)) = self.all.get(self.passed).filter(|(at, ..)| *at <= time_ns) {
            let called = match to {
                Rename::To(name) => Some(Called::Name(*name)),
                Rename::Like(parent) => self.known.get(parent).copied(),
            };
            if let Some(called) = called {
                self.known.insert(*pid, called);
            }
            self.passed += 1;
        }
        *self.known.entry(pid).or_insert(Called::Pid(pid))
    }
}
