//! Which tasks of several recordings are the same: by name, by place in the wake-up graph, and by order.

use super::{Detail, Recorded};
use crate::GroupMetrics;
use fairground_trace::{EventKind, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// Roles that are told apart. Those with the fewest switches beyond that are one, [`OTHERS`].
pub const ROLES_MAX: usize = 1_000;

/// The name of the role of all tasks beyond [`ROLES_MAX`] roles.
pub const OTHERS: &str = "(others)";

/// Two roles with different names are the same only if at least half of their neighbours in the wake-up graph are the
/// same: the numerator and the denominator.
const ALIKE_MIN: (usize, usize) = (1, 2);

/// And only if the tasks of one came onto a CPU at most so many times as often as those of the other.
const SWITCHES_FACTOR_MAX: u64 = 4;

/// The roles of the tasks of all recordings.
#[derive(Debug)]
pub(super) struct Roles {
    /// The names.
    pub(super) names: Vec<String>,
    /// By recording and task: the role.
    pub(super) of: Vec<Vec<usize>>,
    /// By role: whether it has tasks that are asked for.
    pub(super) asked: Vec<bool>,
    /// Roles that have another name before than after: both.
    pub(super) renamed: Vec<(String, String)>,
}

/// The tasks of a recording as the matching sees them.
struct Cast {
    after: bool,
    /// By task: its name; empty for the idle task and tasks without events.
    names: Vec<String>,
    /// Arrivals on a CPU.
    switches: Vec<u64>,
    /// Waker and woken task, each pair once.
    wakes: Vec<(usize, usize)>,
    /// By task: whether it is asked for.
    asked: Vec<bool>,
}

impl Cast {
    fn of(recorded: Recorded<'_>, after: bool, detail: Detail) -> Self {
        let trace = recorded.trace;
        let count = trace.tasks().len();
        let (mut switches, mut wakes, mut seen) = (vec![0; count], Vec::new(), vec![false; count]);
        for event in trace.events() {
            match event.kind {
                EventKind::Switch { prev, next, .. } => {
                    for task in [prev, next].into_iter().filter(|task| task.index() < count) {
                        seen[task.index()] = true;
                    }
                    if let Some(switches) = switches.get_mut(next.index()) {
                        *switches += 1;
                    }
                }
                EventKind::Waking { task, waker, .. } if task.index() < count => {
                    seen[task.index()] = true;
                    let is_task = !waker.is_idle() && waker.index() < count;
                    let pair = (waker.index(), task.index());
                    if is_task && wakes.last() != Some(&pair) {
                        wakes.push(pair);
                    }
                }
                EventKind::WakeupNew { task, .. } if task.index() < count => {
                    seen[task.index()] = true;
                }
                _ => {}
            }
        }
        wakes.sort_unstable();
        wakes.dedup();
        let name = |(at, seen): (usize, bool)| {
            let comm = trace.tasks()[at].comm.as_str();
            match detail {
                _ if !seen || TaskId(at as u32).is_idle() => String::new(),
                Detail::Group => GroupMetrics::name_of(comm).to_owned(),
                Detail::Task => comm.to_owned(),
            }
        };
        let names = seen.into_iter().enumerate().map(name).collect();
        let asked = (0..count).map(|task| recorded.is_asked(task)).collect();
        Self { after, names, switches, wakes, asked }
    }

    /// The tasks by name, in the order in which they appear.
    fn by_name(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let named = self.names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        named.for_each(|(at, name)| by_name.entry(name).or_default().push(at));
        by_name
    }

    fn rename(&mut self, names: &BTreeMap<String, String>) {
        for name in &mut self.names {
            if let Some(new) = names.get(name) {
                name.clone_from(new);
            }
        }
    }

    /// Names of the tasks that wake a task, and of those that it wakes, marked as such.
    fn neighbours(&self) -> Vec<BTreeSet<(bool, &str)>> {
        let mut neighbours = vec![BTreeSet::new(); self.names.len()];
        for (waker, woken) in &self.wakes {
            neighbours[*woken].insert((false, self.names[*waker].as_str()));
            neighbours[*waker].insert((true, self.names[*woken].as_str()));
        }
        neighbours
    }
}

impl Roles {
    /// Matches the tasks of all recordings; `true` beside those after.
    pub(super) fn of(recorded: &[(Recorded<'_>, bool)], detail: Detail) -> Self {
        let cast = |(one, after): &(Recorded<'_>, bool)| Cast::of(*one, *after, detail);
        let mut casts: Vec<Cast> = recorded.iter().map(cast).collect();
        set_others_apart(&mut casts);
        let numbered = numbered_alike(&casts);
        casts.iter_mut().for_each(|cast| cast.rename(&numbered));
        let renamed = placed_alike(&casts);
        casts.iter_mut().filter(|cast| !cast.after).for_each(|cast| cast.rename(&renamed));
        if detail == Detail::Task {
            casts = in_order(casts);
        }
        let names = kept_names(&casts);
        let number: BTreeMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let role = |name: &String| number.get(name.as_str()).copied().unwrap_or(names.len() - 1);
        let of: Vec<Vec<usize>> =
            casts.iter().map(|cast| cast.names.iter().map(role).collect()).collect();
        let mut asked = vec![false; names.len()];
        for (cast, of) in casts.iter().zip(&of) {
            let tasks = of.iter().zip(&cast.asked).zip(&cast.names);
            let tasks = tasks.filter(|((_, asked), name)| **asked && !name.is_empty());
            tasks.for_each(|((role, _), _)| asked[*role] = true);
        }
        let renamed = renamed.into_iter().collect();
        Self { of, asked, renamed, names }
    }
}

/// Tasks that are not asked for are not of the role of those that are, whatever their names.
fn set_others_apart(casts: &mut [Cast]) {
    let named = casts.iter().flat_map(|cast| cast.names.iter().zip(&cast.asked));
    let asked: BTreeSet<String> =
        named.filter(|(_, asked)| **asked).map(|(name, _)| name.clone()).collect();
    for cast in casts {
        for (name, is_asked) in cast.names.iter_mut().zip(&cast.asked) {
            if !is_asked && !name.is_empty() && asked.contains(name) {
                name.push_str(" (elsewhere)");
            }
        }
    }
}

/// The names of a side.
fn names_of(casts: &[Cast], after: bool) -> BTreeSet<&str> {
    let casts = casts.iter().filter(|cast| cast.after == after);
    casts.flat_map(|cast| &cast.names).map(String::as_str).filter(|name| !name.is_empty()).collect()
}

/// `worker-#` of `worker-12`.
fn pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_ascii_digit() {
            true if pattern.ends_with('#') => {}
            true => pattern.push('#'),
            false => pattern.push(c),
        }
    }
    pattern
}

/// Names that differ in their numbers only, where both sides have such names and not the same ones: the same role.
fn numbered_alike(casts: &[Cast]) -> BTreeMap<String, String> {
    let mut patterns: BTreeMap<String, [BTreeSet<&str>; 2]> = BTreeMap::new();
    for after in [false, true] {
        for name in names_of(casts, after) {
            let sides = patterns.entry(pattern(name)).or_default();
            sides[usize::from(after)].insert(name);
        }
    }
    let differ = patterns
        .into_iter()
        .filter(|(_, [before, after])| !before.is_empty() && !after.is_empty() && before != after);
    let renamed = differ.flat_map(|(pattern, sides)| {
        let names = sides.into_iter().flatten();
        names.map(|name| (name.to_owned(), pattern.clone())).collect::<Vec<_>>()
    });
    renamed.collect()
}

/// The tasks of one name on one side.
#[derive(Debug, Default)]
struct Place<'a> {
    /// Tasks, and arrivals on a CPU, in the recording with most of them.
    tasks: usize,
    switches: u64,
    neighbours: BTreeSet<(bool, &'a str)>,
}

/// Of names that only one side has: those before and after that stand in the same place of the wake-up graph, and in no
/// other as well.
fn placed_alike(casts: &[Cast]) -> BTreeMap<String, String> {
    let [before, after] = [false, true].map(|after| names_of(casts, after));
    let common: BTreeSet<&str> = before.intersection(&after).copied().collect();
    let places = |of_after: bool| {
        let mut places: BTreeMap<&str, Place<'_>> = BTreeMap::new();
        for cast in casts.iter().filter(|cast| cast.after == of_after) {
            let neighbours = cast.neighbours();
            for (name, tasks) in cast.by_name() {
                if common.contains(name) {
                    continue;
                }
                let place = places.entry(name).or_default();
                place.tasks = place.tasks.max(tasks.len());
                let switches = tasks.iter().map(|task| cast.switches[*task]).sum();
                place.switches = place.switches.max(switches);
                for task in tasks {
                    let known = neighbours[task].iter().filter(|(_, name)| common.contains(name));
                    place.neighbours.extend(known);
                }
            }
        }
        places
    };
    let (before, after) = (places(false), places(true));
    let mut pairs = Vec::new();
    for (old, before) in &before {
        for (new, after) in &after {
            if is_alike(before, after) {
                pairs.push((*old, *new));
            }
        }
    }
    let is_only = |(old, new): &&(&str, &str)| {
        pairs.iter().filter(|(o, n)| o == old || n == new).count() == 1
    };
    pairs.iter().filter(is_only).map(|(o, n)| ((*o).to_owned(), (*n).to_owned())).collect()
}

fn is_alike(before: &Place<'_>, after: &Place<'_>) -> bool {
    let common = before.neighbours.intersection(&after.neighbours).count();
    let all = before.neighbours.union(&after.neighbours).count();
    let (few, many) = match before.switches < after.switches {
        true => (before.switches, after.switches),
        false => (after.switches, before.switches),
    };
    common > 0
        && common * ALIKE_MIN.1 >= all * ALIKE_MIN.0
        && before.tasks == after.tasks
        && many <= few.saturating_mul(SWITCHES_FACTOR_MAX)
}

/// Gives tasks of one name numbers, where every recording has as many of them: those with the same neighbours first,
/// then in the order in which they appear.
fn in_order(casts: Vec<Cast>) -> Vec<Cast> {
    let mut counts: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for cast in &casts {
        for (name, tasks) in cast.by_name() {
            counts.entry(name).or_default().insert(tasks.len());
        }
    }
    let several = |name: &str| {
        counts.get(name).is_some_and(|counts| counts.len() == 1 && !counts.contains(&1))
    };
    let mut ordered = Vec::with_capacity(casts.len());
    for cast in &casts {
        let neighbours = cast.neighbours();
        let mut names = cast.names.clone();
        for (name, mut tasks) in cast.by_name().into_iter().filter(|(name, _)| several(name)) {
            tasks.sort_by(|a, b| neighbours[*a].cmp(&neighbours[*b]));
            for (nth, task) in (1..).zip(tasks) {
                names[task] = format!("{name} #{nth}");
            }
        }
        ordered.push(names);
    }
    casts.into_iter().zip(ordered).map(|(cast, names)| Cast { names, ..cast }).collect()
}

/// The names of the roles, sorted; of too many those with the most switches, and [`OTHERS`] at the end.
fn kept_names(casts: &[Cast]) -> Vec<String> {
    let mut switches: BTreeMap<&str, u64> = BTreeMap::new();
    for cast in casts {
        for (name, count) in cast.names.iter().zip(&cast.switches) {
            if !name.is_empty() {
                *switches.entry(name).or_default() += count;
            }
        }
    }
    let mut names: Vec<(&str, u64)> = switches.into_iter().collect();
    names.sort_by_key(|(_, count)| u64::MAX - count);
    names.truncate(ROLES_MAX - 1);
    let mut names: Vec<String> = names.into_iter().map(|(name, _)| name.to_owned()).collect();
    names.sort_unstable();
    names.push(OTHERS.to_owned());
    names
}
