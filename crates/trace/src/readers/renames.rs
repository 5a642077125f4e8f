//! Names of tasks that come with a time of their own, in an input whose events do not name the task that ran.

use std::collections::HashMap;

use super::names::{Name, Names};

/// How a task comes to a name.
#[derive(Clone, Copy, Debug)]
enum Rename {
    To(Name),
    /// That of another task at that time.
    Like(u32),
}

/// The names, by the time from which on they hold.
#[derive(Debug, Default)]
pub(super) struct Renames {
    /// First in the order of the input, later of time.
    all: Vec<(u64, u32, Rename)>,
    /// How many of them are known to hold.
    passed: usize,
    known: HashMap<u32, Name>,
}

impl Renames {
    /// A task has a name from a time on.
    pub(super) fn named(&mut self, time_ns: u64, pid: u32, name: Name) {
        self.all.push((time_ns, pid, Rename::To(name)));
    }

    /// A task has its parent's name from a time on.
    pub(super) fn forked(&mut self, time_ns: u64, parent: u32, child: u32) {
        self.all.push((time_ns, child, Rename::Like(parent)));
    }

    /// Whether the input has such names at all.
    pub(super) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// To be called when there are all of them, before the first question.
    pub(super) fn sort(&mut self) {
        self.all.sort_by_key(|(time_ns, ..)| *time_ns);
    }

    /// The name of a task that runs at a time; none may lie before that of the question before. One without a name has its pid for a
    /// name from the first question on.
    pub(super) fn at(&mut self, time_ns: u64, pid: u32, names: &mut Names) -> Name {
        while let Some((_, pid, to)) = self.all.get(self.passed).filter(|(at, ..)| *at <= time_ns) {
            let name = match to {
                Rename::To(name) => Some(*name),
                Rename::Like(parent) => self.known.get(parent).copied(),
            };
            if let Some(name) = name {
                self.known.insert(*pid, name);
            }
            self.passed += 1;
        }
        *self.known.entry(pid).or_insert_with(|| names.intern(&format!(":{pid}")))
    }
}
