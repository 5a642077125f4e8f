//! Causes of the time that roles lost.

use super::{Change, Difference, TimeShare};
use std::collections::BTreeMap;

/// Sleep for a role is that role's own lost time, passed on, if the role lost at least this part of it.
const PASSED_ON_MIN: f64 = 0.2;

/// So many roles may pass a loss on, one to the next.
const PASSED_ON_MAX: usize = 8;

/// The kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseKind {
    /// Others wait longer while the role has the CPU.
    TakesCpu,
    /// The role needs more CPU time for the same work.
    Runs,
    /// The role waits longer while the CPU idles in whose queue it is.
    WaitsIdle,
    /// Others sleep longer until the role wakes them, and it lost no time itself.
    IsWaitedFor,
    /// The role sleeps longer until an interrupt, a timer, or something that is not recorded wakes it.
    Sleeps,
}

impl CauseKind {
    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            CauseKind::TakesCpu => "takes-cpu",
            CauseKind::Runs => "runs",
            CauseKind::WaitsIdle => "waits-idle",
            CauseKind::IsWaitedFor => "is-waited-for",
            CauseKind::Sleeps => "sleeps",
        }
    }
}

/// Something that took time.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The kind of the cause.
    pub kind: CauseKind,
    /// The role that does it, or to which it happens.
    pub role: usize,
    /// The roles that lost time by it, with that time, ns; the one that lost most first.
    pub victims: Vec<(usize, Change)>,
    /// The time lost by all of them, ns.
    pub lost: Change,
}

/// All of them, the costliest first; the negative ones, by which time was gained, are last.
pub(super) fn causes(difference: &Difference) -> Vec<Cause> {
    let passed_on = passed_on(difference);
    let mut by_cause: BTreeMap<(CauseKind, usize), Vec<(usize, TimeShare)>> = BTreeMap::new();
    for change in difference.roles.iter().filter(|change| change.asked) {
        let Some(work) = change.work else { continue };
        for (part, time) in change.parts.iter().filter(|(part, _)| part.is_loss(work)) {
            let cause = match *part {
                TimeShare::Runs => (CauseKind::Runs, change.role),
                TimeShare::WaitsBehind(by) => (CauseKind::TakesCpu, by),
                TimeShare::WaitsIdle => (CauseKind::WaitsIdle, change.role),
                TimeShare::SleepsFor(by) if is_passed_on(&passed_on, by, time) => continue,
                TimeShare::SleepsFor(by) => (CauseKind::IsWaitedFor, by),
                TimeShare::Sleeps => (CauseKind::Sleeps, change.role),
                // Never a loss.
                TimeShare::WaitsUnknown | TimeShare::SleepsOn | TimeShare::Unknown => continue,
            };
            by_cause.entry(cause).or_default().push((change.role, *part));
        }
    }
    let cause = |((kind, role), parts): ((CauseKind, usize), Vec<(usize, TimeShare)>)| Cause {
        kind,
        role,
        victims: victims(difference, &parts),
        lost: difference.sum(&parts),
    };
    let mut causes: Vec<Cause> = by_cause.into_iter().map(cause).collect();
    causes.sort_by(|a, b| b.lost.difference().total_cmp(&a.lost.difference()));
    causes
}

fn victims(difference: &Difference, parts: &[(usize, TimeShare)]) -> Vec<(usize, Change)> {
    let mut by_role: BTreeMap<usize, Vec<(usize, TimeShare)>> = BTreeMap::new();
    for (role, part) in parts {
        by_role.entry(*role).or_default().push((*role, *part));
    }
    let sums = by_role.into_iter().map(|(role, parts)| (role, difference.sum(&parts)));
    let mut victims: Vec<(usize, Change)> = sums.collect();
    victims.sort_by(|(_, a), (_, b)| b.difference().total_cmp(&a.difference()));
    victims
}

/// By role: how much time it lost that it passes on to those that sleep until it wakes them, ns.
fn passed_on(difference: &Difference) -> Vec<f64> {
    let mut lost = vec![0.0; difference.names.len()];
    for _ in 0..PASSED_ON_MAX {
        let mut next = vec![0.0; lost.len()];
        for change in &difference.roles {
            let Some(work) = change.work else { continue };
            let losses = change.parts.iter().filter(|(part, _)| part.is_loss(work));
            let counts = |part: &TimeShare, time: &Change| match part {
                TimeShare::SleepsFor(by) => is_passed_on(&lost, *by, time),
                _ => true,
            };
            let counted = losses.filter(|(part, time)| counts(part, time));
            next[change.role] = counted.map(|(_, time)| time.difference()).sum::<f64>().max(0.0);
        }
        if next == lost {
            break;
        }
        lost = next;
    }
    lost
}

/// Whether sleep for a role is that role's own lost time.
fn is_passed_on(lost: &[f64], by: usize, time: &Change) -> bool {
    lost[by] > 0.0 && lost[by] >= PASSED_ON_MIN * time.difference()
}
