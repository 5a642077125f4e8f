//! A site: a lock, or a point in the kernel, where tasks wait.

use std::collections::BTreeMap;

use super::{BLOCKERS_MAX, WaitKind};
use crate::Samples;

/// The times of blockers by state while other tasks waited for them, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolderTime {
    /// They ran: the lock was held, or the data made.
    pub running_ns: u64,
    /// They could run and had no CPU: the scheduler prolonged the wait.
    pub runnable_ns: u64,
    /// They slept: they waited for others.
    pub sleeping_ns: u64,
    /// The blocker, or its state, is not known.
    pub unknown_ns: u64,
}

impl HolderTime {
    pub(super) fn add(&mut self, [running, runnable, sleeping]: [u64; 3], whole_ns: u64) {
        self.running_ns += running;
        self.runnable_ns += runnable;
        self.sleeping_ns += sleeping;
        self.unknown_ns += whole_ns.saturating_sub(running + runnable + sleeping);
    }
}

/// Blockers and waiters, by groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// The group of the one that ended the wait, or held the lock.
    pub blocker: String,
    /// The group of the one that waited.
    pub waiter: String,
    /// Waits.
    pub count: u64,
    /// How long in all, ns.
    pub wait_ns: u64,
}

/// A lock, or a point in the kernel where tasks sleep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The lock's name, or the call chain; `-` where the trace has neither.
    pub name: String,
    /// How they wait there.
    pub kind: WaitKind,
    /// How long; those that the trace cuts off are counted only.
    pub waits: Samples,
    /// The times of the others by state meanwhile.
    pub holder: HolderTime,
    /// Blockers and waiters, the longest waits first.
    pub blockers: Vec<Blocking>,
}

/// A site while the trace is read.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) waits: Samples,
    pub(super) holder: HolderTime,
    /// By blocker and waiter, as numbers of groups: count and time.
    pub(super) pairs: BTreeMap<(usize, usize), (u64, u64)>,
}

impl Gathered {
    /// Adds waits, as many and as long as these, to a pair of blocker and waiter; false: there are too many pairs.
    pub(super) fn add(&mut self, pair: (usize, usize), (count, wait_ns): (u64, u64)) -> bool {
        if self.pairs.len() >= BLOCKERS_MAX && !self.pairs.contains_key(&pair) {
            return false;
        }
        let sums = self.pairs.entry(pair).or_default();
        sums.0 += count;
        sums.1 += wait_ns;
        true
    }

    /// Takes in another's; returns the number of waits whose pair finds no room.
    pub(super) fn absorb(&mut self, other: Gathered) -> u64 {
        self.waits.merge(&other.waits);
        let sums = &mut self.holder;
        sums.running_ns += other.holder.running_ns;
        sums.runnable_ns += other.holder.runnable_ns;
        sums.sleeping_ns += other.holder.sleeping_ns;
        sums.unknown_ns += other.holder.unknown_ns;
        let mut not_kept = 0;
        for (pair, waits) in other.pairs {
            if !self.add(pair, waits) {
                not_kept += waits.0;
            }
        }
        not_kept
    }

    pub(super) fn site(self, name: String, kind: WaitKind, groups: &[&str]) -> Site {
        let mut blockers: Vec<Blocking> = self
            .pairs
            .into_iter()
            .map(|((blocker, waiter), (count, wait_ns))| Blocking {
                blocker: groups[blocker].to_owned(),
                waiter: groups[waiter].to_owned(),
                count,
                wait_ns,
            })
            .collect();
        blockers.sort_by_key(|pair| std::cmp::Reverse(pair.wait_ns));
        Site { name, kind, waits: self.waits, holder: self.holder, blockers }
    }
}
