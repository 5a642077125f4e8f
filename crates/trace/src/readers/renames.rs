//! Names of tasks that come with a time of their own, in an input whose events do not name the task that ran.

use std::collections::HashMap;
use std::sync::Arc;

/// How a task gets a name.
#[derive(Clone, Debug)]
pub(super) enum Rename {
    To(Arc<str>),
    /// The name that the task with this pid has at that time.
    Like(u32),
}

/// The names of tasks over time.
#[derive(Debug, Default)]
pub(super) struct Renames {
    /// From when on which task has which name: the first `applied` in order of time, then in the order of the input
    /// until [`Renames::sort`].
    all: Vec<(u64, u32, Rename)>,
    applied: usize,
    names: HashMap<u32, Arc<str>>,
}

impl Renames {
    /// Moves names here: from when on which task has it. A time before that of the last question counts as that time.
    pub(super) fn add(&mut self, names: &mut Vec<(u64, u32, Rename)>) {
        self.all.append(names);
    }

    /// Whether the input has such names at all.
    pub(super) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// To be called before questions when names have been added.
    pub(super) fn sort(&mut self) {
        self.all.drain(..std::mem::take(&mut self.applied));
        self.all.sort_by_key(|(time_ns, ..)| *time_ns);
    }

    /// The name at a time of the task that runs. Times must not decrease from question to question. A task without a
    /// name is called by its pid, `:7`, from the first question on.
    pub(super) fn at(&mut self, time_ns: u64, pid: u32) -> Arc<str> {
        while let Some((_, pid, rename)) =
            self.all.get(self.applied).filter(|(from_ns, ..)| *from_ns <= time_ns)
        {
            let name = match rename {
                Rename::To(name) => Some(name),
                Rename::Like(parent) => self.names.get(parent),
            };
            if let Some(name) = name.map(Arc::clone) {
                self.names.insert(*pid, name);
            }
            self.applied += 1;
        }
        Arc::clone(self.names.entry(pid).or_insert_with(|| format!(":{pid}").into()))
    }
}
