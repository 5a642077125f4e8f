//! The walk over the events.

use std::collections::BTreeMap;

use fairground_trace::{Event, EventKind, Label, LockFlags, TaskId, TaskState, Trace};

use super::history::{Doing, History};
use super::site::Gathered;
use super::{Contention, Folded, Point, Site, WaitKind, stacks};
use crate::analysis::group_tasks;
use crate::scan::is_in_range;

/// What the next stack of a task belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StackOf {
    #[default]
    Nothing,
    Switch,
    Lock,
}

/// A task asleep.
#[derive(Clone, Copy, Debug)]
struct Asleep {
    since_ns: u64,
    kind: WaitKind,
    stack: Option<Label>,
    /// It was woken, when and by whom, before its stack came.
    woken: Option<(u64, TaskId)>,
}

/// A task that waits for a lock.
#[derive(Clone, Debug)]
struct AtLock {
    since_ns: u64,
    lock: Label,
    flags: LockFlags,
    stack: Option<Label>,
    /// Who has the lock since when; several, one after the other.
    holders: Vec<(u64, TaskId)>,
    woken_by: TaskId,
}

#[derive(Clone, Debug, Default)]
struct Task {
    history: History,
    asleep: Option<Asleep>,
    at_lock: Option<AtLock>,
    stack_of: StackOf,
}

/// Which site a wait belongs to: how, the stack, the lock.
type Place = (WaitKind, Option<Label>, Option<Label>);

pub(super) struct Walk<'t> {
    trace: &'t Trace,
    depth: usize,
    groups: Vec<&'t str>,
    group_of: Vec<usize>,
    tasks: Vec<Task>,
    has_waking: bool,
    /// Who waits for a lock.
    queues: BTreeMap<Label, Vec<TaskId>>,
    points: BTreeMap<Label, u64>,
    sites: BTreeMap<Place, Gathered>,
    /// By group and stack: count and time.
    folded: BTreeMap<(usize, Label), (u64, u64)>,
    found: Contention,
}

impl<'t> Walk<'t> {
    pub(super) fn new(trace: &'t Trace, depth: usize) -> Self {
        let (groups, group_of) = group_tasks(trace);
        Self {
            trace,
            depth,
            groups,
            group_of,
            tasks: vec![Task::default(); trace.tasks().len()],
            has_waking: trace.events().any(|e| matches!(e.kind, EventKind::Waking { .. })),
            queues: BTreeMap::new(),
            points: BTreeMap::new(),
            sites: BTreeMap::new(),
            folded: BTreeMap::new(),
            found: Contention::default(),
        }
    }

    pub(super) fn all(mut self) -> Contention {
        for event in self.trace.events().filter(|event| is_in_range(self.trace, event)) {
            self.event(&event);
        }
        self.cut_off();
        self.finish()
    }

    fn event(&mut self, event: &Event) {
        let now_ns = event.time_ns;
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.leaves(now_ns, prev, prev_state);
                self.comes(now_ns, next);
            }
            EventKind::Waking { task, waker, .. } => {
                let known = waker.index() < self.tasks.len();
                self.woken(now_ns, task, if known { waker } else { TaskId::IDLE });
            }
            EventKind::Wakeup { task, .. } if !self.has_waking => {
                self.woken(now_ns, task, TaskId::IDLE);
            }
            EventKind::WakeupNew { task, .. } => {
                self.tasks[task.index()].history.change(now_ns, Doing::Runnable);
            }
            EventKind::ContentionBegin { task, lock, flags, holder } => {
                self.at_lock(now_ns, task, lock, flags, holder);
            }
            EventKind::ContentionEnd { task, .. } => self.has_lock(now_ns, task),
            EventKind::Stack { task, label } => self.stack(task, label),
            _ => {}
        }
    }

    fn leaves(&mut self, now_ns: u64, prev: TaskId, state: TaskState) {
        if prev.is_idle() {
            return;
        }
        self.found.switches += 1;
        self.sleep_is_over(prev);
        let kind = WaitKind::of(state);
        let task = &mut self.tasks[prev.index()];
        let runnable = state == TaskState::Runnable;
        task.history.change(now_ns, if runnable { Doing::Runnable } else { Doing::Sleeping });
        task.stack_of = StackOf::Switch;
        // Asleep at a lock: that wait has begun already.
        if let (Some(kind), None) = (kind, &task.at_lock) {
            task.asleep = Some(Asleep { since_ns: now_ns, kind, stack: None, woken: None });
        }
    }

    fn comes(&mut self, now_ns: u64, next: TaskId) {
        if next.is_idle() {
            return;
        }
        if let Some(asleep) = &mut self.tasks[next.index()].asleep {
            // Its wake-up is missing in the trace.
            asleep.woken.get_or_insert((now_ns, TaskId::IDLE));
        }
        self.sleep_is_over(next);
        let task = &mut self.tasks[next.index()];
        task.stack_of = StackOf::Nothing;
        task.history.change(now_ns, Doing::Running);
    }

    fn woken(&mut self, now_ns: u64, woken: TaskId, waker: TaskId) {
        let task = &mut self.tasks[woken.index()];
        if task.history.now() != Doing::Running {
            task.history.change(now_ns, Doing::Runnable);
        }
        if let Some(at_lock) = &mut task.at_lock {
            at_lock.woken_by = waker;
        }
        let Some(asleep) = &mut task.asleep else { return };
        asleep.woken.get_or_insert((now_ns, waker));
        // The stack of a switch may come after a wake-up by another CPU.
        if task.stack_of != StackOf::Switch {
            self.sleep_is_over(woken);
        }
    }

    /// Books the sleep of a task that was woken.
    fn sleep_is_over(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let Some(Asleep { since_ns, kind, stack, woken: Some((until_ns, waker)) }) = task.asleep
        else {
            return;
        };
        task.asleep = None;
        let place = (kind, stack, None);
        self.book(place, id, (since_ns, until_ns), &[(since_ns, waker)]);
    }

    fn at_lock(&mut self, now_ns: u64, id: TaskId, lock: Label, flags: LockFlags, holder: TaskId) {
        let task = &mut self.tasks[id.index()];
        if let Some(at_lock) = task.at_lock.as_mut().filter(|at_lock| at_lock.lock == lock) {
            at_lock.holders.push((now_ns, holder));
            return;
        }
        if let Some(other) = &task.at_lock {
            // The end of that wait is missing.
            self.queues.entry(other.lock).or_default().retain(|waiter| *waiter != id);
        }
        self.queues.entry(lock).or_default().push(id);
        let task = &mut self.tasks[id.index()];
        task.stack_of = StackOf::Lock;
        let holders = vec![(now_ns, holder)];
        let (stack, woken_by) = (None, TaskId::IDLE);
        task.at_lock = Some(AtLock { since_ns: now_ns, lock, flags, stack, holders, woken_by });
    }

    fn has_lock(&mut self, now_ns: u64, id: TaskId) {
        let Some(mut at_lock) = self.tasks[id.index()].at_lock.take() else { return };
        // Who still waits for it waits for this task now.
        let queue = self.queues.entry(at_lock.lock).or_default();
        queue.retain(|waiter| *waiter != id);
        for waiter in queue {
            if let Some(other) = &mut self.tasks[waiter.index()].at_lock {
                other.holders.push((now_ns, id));
            }
        }
        if at_lock.holders.iter().all(|(_, holder)| holder.is_idle()) {
            at_lock.holders = vec![(at_lock.since_ns, at_lock.woken_by)];
        }
        self.found.lock_waits += 1;
        let place = (WaitKind::Lock(at_lock.flags.0), at_lock.stack, Some(at_lock.lock));
        self.book(place, id, (at_lock.since_ns, now_ns), &at_lock.holders);
    }

    fn stack(&mut self, id: TaskId, label: Label) {
        let task = &mut self.tasks[id.index()];
        match std::mem::take(&mut task.stack_of) {
            StackOf::Nothing => {}
            StackOf::Switch => {
                self.found.with_stack += 1;
                *self.points.entry(label).or_default() += 1;
                if let Some(asleep) = &mut task.asleep {
                    asleep.stack = Some(label);
                }
                self.sleep_is_over(id);
            }
            StackOf::Lock => {
                if let Some(at_lock) = &mut task.at_lock {
                    at_lock.stack = Some(label);
                }
            }
        }
    }

    /// Enters a wait that was seen from begin to end.
    fn book(
        &mut self,
        place: Place,
        id: TaskId,
        (from_ns, to_ns): (u64, u64),
        whom: &[(u64, TaskId)],
    ) {
        let waiter = self.group_of[id.index()];
        let wait_ns = to_ns.saturating_sub(from_ns);
        if let Some(stack) = place.1 {
            let folded = self.folded.entry((waiter, stack)).or_default();
            folded.0 += 1;
            folded.1 += wait_ns;
        }
        let site = self.sites.entry(place).or_default();
        site.waits.push(wait_ns);
        for (at, (begin_ns, holder)) in whom.iter().enumerate() {
            let end_ns = whom.get(at + 1).map_or(to_ns, |(next_ns, _)| *next_ns);
            let part_ns = end_ns.saturating_sub(*begin_ns);
            if holder.is_idle() {
                site.holder.unknown_ns += part_ns;
                continue;
            }
            site.holder.add(self.tasks[holder.index()].history.between(*begin_ns, end_ns), part_ns);
            let pair = (self.group_of[holder.index()], waiter);
            self.found.pairs_not_kept += u64::from(!site.add(pair, (1, part_ns)));
        }
    }

    /// The trace ends: who is woken has waited; of the others only that they wait is known.
    fn cut_off(&mut self) {
        for index in 1..self.tasks.len() {
            self.sleep_is_over(TaskId(index as u32));
            let task = &self.tasks[index];
            let asleep = task.asleep.map(|asleep| (asleep.kind, asleep.stack, None));
            let at_lock = task.at_lock.as_ref();
            let at_lock = at_lock.map(|l| (WaitKind::Lock(l.flags.0), l.stack, Some(l.lock)));
            for place in asleep.into_iter().chain(at_lock) {
                self.sites.entry(place).or_default().waits.censored += 1;
            }
        }
    }

    fn finish(mut self) -> Contention {
        let (trace, depth) = (self.trace, self.depth);
        let mut points: BTreeMap<stacks::Chain, u64> = BTreeMap::new();
        for (label, count) in &self.points {
            *points.entry(stacks::point(trace.label(*label), depth)).or_default() += count;
        }
        let mut points: Vec<Point> =
            points.into_iter().map(|(chain, count)| Point { chain, count }).collect();
        points.sort_by_key(|point| point.count);
        self.found.points = points;
        self.found.sites = self.sites();
        let mut folded: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for ((group, label), (count, wait_ns)) in &self.folded {
            let stack = stacks::trimmed(trace.label(*label));
            let entry = folded.entry(format!("{};{stack}", self.groups[*group])).or_default();
            entry.0 += count;
            entry.1 += wait_ns;
        }
        let folded = folded.into_iter();
        self.found.folded =
            folded.map(|(stack, (count, wait_ns))| Folded { stack, count, wait_ns }).collect();
        self.found
    }

    /// The sites by name, for different stacks may have the same.
    fn sites(&mut self) -> Vec<Site> {
        let mut by_name: BTreeMap<(WaitKind, String), Gathered> = BTreeMap::new();
        for ((kind, stack, lock), gathered) in std::mem::take(&mut self.sites) {
            let name = self.name(stack, lock);
            let same_name = by_name.entry((kind, name)).or_default();
            self.found.pairs_not_kept += same_name.absorb(gathered);
        }
        let groups = &self.groups;
        let mut sites: Vec<Site> = by_name
            .into_iter()
            .map(|((kind, name), gathered)| gathered.site(name, kind, groups))
            .collect();
        sites.sort_by_key(|site| std::cmp::Reverse(site.waits.sum_ns()));
        sites
    }

    /// A lock that has a name is called by it, with the place; one of which there is only an address, by the place.
    fn name(&self, stack: Option<Label>, lock: Option<Label>) -> String {
        let chain = stack.map(|label| stacks::site(self.trace.label(label), self.depth).text());
        let lock = lock.map(|label| self.trace.label(label));
        match (lock.filter(|name| chain.is_none() || !is_address(name)), chain) {
            (Some(name), Some(chain)) => format!("{name} in {chain}"),
            (Some(name), None) => name.to_owned(),
            (None, Some(chain)) => chain,
            (None, None) => "-".to_owned(),
        }
    }
}

/// A real kernel tells where a lock lies, and not what it is called.
fn is_address(name: &str) -> bool {
    const DIGITS_MIN: usize = 8;
    let digits = name.strip_prefix("0x").unwrap_or(name);
    digits.len() >= DIGITS_MIN && digits.bytes().all(|b| b.is_ascii_hexdigit())
}
