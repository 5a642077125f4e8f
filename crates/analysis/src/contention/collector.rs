//! Collects waits: an observer of task states that keeps, of each task, what it waits for and what it did when.

use std::collections::BTreeMap;

use fairground_trace::{Event, EventKind, Label, LockFlags, TaskId, Trace};

use super::history::{History, HolderState};
use super::site::Gathered;
use super::{Contention, Folded, Point, Site, WaitKind, stacks};
use crate::analysis::group_tasks;
use crate::states::{Cause, Change, Observer, State, States, Task, TimeKind};

/// The event that the next stack of a task belongs to.
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
    /// When it was woken and by which task, where that came before its stack.
    woken: Option<(u64, TaskId)>,
}

/// A wait for a lock.
#[derive(Clone, Debug)]
struct AtLock {
    since_ns: u64,
    lock: Label,
    flags: LockFlags,
    stack: Option<Label>,
    /// Holders of the lock, one after the other, and since when.
    holders: Vec<(u64, TaskId)>,
    woken_by: TaskId,
}

#[derive(Clone, Debug, Default)]
struct Waiter {
    history: History,
    asleep: Option<Asleep>,
    at_lock: Option<AtLock>,
    stack_of: StackOf,
}

/// Which site a wait belongs to: how, the stack, the lock.
type SiteKey = (WaitKind, Option<Label>, Option<Label>);

pub(super) struct Collector<'t> {
    trace: &'t Trace,
    depth: usize,
    /// By task: whether its waits count; `None`: those of all tasks.
    asked: Option<&'t [bool]>,
    groups: Vec<&'t str>,
    group_of: Vec<usize>,
    now_ns: u64,
    tasks: Vec<Waiter>,
    /// The tasks that wait for each lock.
    queues: BTreeMap<Label, Vec<TaskId>>,
    /// By CPU: the task and the stack of its last event, if that was one of a single function.
    last_function: Vec<Option<(TaskId, Label)>>,
    /// The same right before the switch that happens now, if it is of the task that leaves.
    before_switch: Option<Label>,
    points: BTreeMap<Label, u64>,
    sites: BTreeMap<SiteKey, Gathered>,
    /// By group and stack: count and time.
    folded: BTreeMap<(usize, Label), (u64, u64)>,
    found: Contention,
}

/// The waits of a whole trace, of all tasks or of some.
pub(super) fn collect(trace: &Trace, depth: usize, asked: Option<&[bool]>) -> Contention {
    let (groups, group_of) = group_tasks(trace);
    let mut collector = Collector {
        trace,
        depth,
        asked,
        groups,
        group_of,
        now_ns: 0,
        tasks: vec![Waiter::default(); trace.tasks().len()],
        queues: BTreeMap::new(),
        last_function: vec![None; trace.cpus as usize],
        before_switch: None,
        points: BTreeMap::new(),
        sites: BTreeMap::new(),
        folded: BTreeMap::new(),
        found: Contention::default(),
    };
    let states = States::of(trace, false);
    collector.now_ns = states.now_ns;
    states.observe(trace, &mut collector);
    collector.cut_off();
    collector.finish()
}

impl Observer for Collector<'_> {
    fn on_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn on_event(&mut self, _: &Trace, states: &States, event: &Event) {
        let last = self.last_function[event.cpu as usize].take();
        match event.kind {
            EventKind::Switch { prev, .. } => {
                let function = last.filter(|(task, _)| *task == prev);
                self.before_switch = function.map(|(_, function)| function);
            }
            EventKind::Waking { task, waker, .. } => {
                if let Some(at_lock) = &mut self.tasks[task.index()].at_lock {
                    let known = waker.index() < states.tasks.len();
                    at_lock.woken_by = if known { waker } else { TaskId::IDLE };
                }
            }
            EventKind::ContentionBegin { task, lock, flags, holder } => {
                self.at_lock(task, lock, flags, holder);
            }
            EventKind::ContentionEnd { task, .. } => self.has_lock(task),
            EventKind::Stack { task, label } => {
                if !self.trace.label(label).contains(';') {
                    self.last_function[event.cpu as usize] = Some((task, label));
                }
                self.stack(task, label);
            }
            _ => {}
        }
    }

    fn on_change(&mut self, task: &Task, change: &Change) {
        let id = task.id;
        if matches!(change.cause, Cause::SwitchOut { .. }) {
            self.found.switches += u64::from(self.is_asked(id));
            self.sleep_is_over(id);
        }
        let now_ns = self.now_ns;
        let waiter = &mut self.tasks[id.index()];
        waiter.history.change(now_ns, doing(task.state));
        if change.from == State::WokenEarly && change.time == TimeKind::Waking {
            waiter.asleep = None;
        }
        match change.cause {
            Cause::SwitchOut { left, .. } => {
                waiter.stack_of = StackOf::Switch;
                // Asleep at a lock: that wait has begun already. Asked to wake before it left: the next change shows
                // whether it sleeps.
                if matches!(task.state, State::Asleep | State::WokenEarly)
                    && waiter.at_lock.is_none()
                    && let Some(kind) = WaitKind::of(left)
                {
                    waiter.asleep =
                        Some(Asleep { since_ns: now_ns, kind, stack: None, woken: None });
                    if let Some(function) = self.before_switch.take()
                        && kind == WaitKind::Uninterruptible
                    {
                        self.stack(id, function);
                    }
                }
            }
            Cause::SwitchIn { .. } => {
                if let Some(asleep) = &mut waiter.asleep {
                    // Where its wake-up is missing in the trace.
                    asleep.woken.get_or_insert((now_ns, TaskId::IDLE));
                }
                self.sleep_is_over(id);
                self.tasks[id.index()].stack_of = StackOf::Nothing;
            }
            Cause::Wakeup => {
                let Some(asleep) = &mut waiter.asleep else { return };
                asleep.woken.get_or_insert((now_ns, task.waker.unwrap_or(TaskId::IDLE)));
                // The stack of a switch may come after a wake-up by another CPU.
                if waiter.stack_of != StackOf::Switch {
                    self.sleep_is_over(id);
                }
            }
            _ => {}
        }
    }
}

/// The state of a holder.
fn doing(state: State) -> HolderState {
    match state {
        State::Initial | State::Unknown | State::WokenEarly => HolderState::Unknown,
        State::Absent | State::Asleep => HolderState::Sleeping,
        State::Waking | State::Waiting => HolderState::Runnable,
        State::Running => HolderState::Running,
    }
}

impl Collector<'_> {
    /// Whether the waits of a task count.
    fn is_asked(&self, id: TaskId) -> bool {
        self.asked.is_none_or(|asked| asked.get(id.index()) == Some(&true))
    }

    /// Books the sleep of a task that was woken.
    fn sleep_is_over(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.index()];
        let Some(Asleep { since_ns, kind, stack, woken: Some((until_ns, waker)) }) = task.asleep
        else {
            return;
        };
        task.asleep = None;
        self.book((kind, stack, None), id, (since_ns, until_ns), &[(since_ns, waker)]);
    }

    fn at_lock(&mut self, id: TaskId, lock: Label, flags: LockFlags, holder: TaskId) {
        let now_ns = self.now_ns;
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

    fn has_lock(&mut self, id: TaskId) {
        let now_ns = self.now_ns;
        let Some(mut at_lock) = self.tasks[id.index()].at_lock.take() else { return };
        // Those that still wait for it wait for this task now.
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
        self.found.lock_waits += u64::from(self.is_asked(id));
        let site = (WaitKind::Lock(at_lock.flags.0), at_lock.stack, Some(at_lock.lock));
        self.book(site, id, (at_lock.since_ns, now_ns), &at_lock.holders);
    }

    fn stack(&mut self, id: TaskId, label: Label) {
        let is_asked = self.is_asked(id);
        let task = &mut self.tasks[id.index()];
        match std::mem::take(&mut task.stack_of) {
            StackOf::Nothing => {}
            StackOf::Switch => {
                if is_asked {
                    self.found.with_stack += 1;
                    *self.points.entry(label).or_default() += 1;
                }
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

    /// Enters a wait that was seen from begin to end, if it is one of a task that is asked for.
    fn book(
        &mut self,
        site: SiteKey,
        id: TaskId,
        (from_ns, to_ns): (u64, u64),
        holders: &[(u64, TaskId)],
    ) {
        if !self.is_asked(id) {
            return;
        }
        let waiter = self.group_of[id.index()];
        let wait_ns = to_ns.saturating_sub(from_ns);
        if let Some(stack) = site.1 {
            let folded = self.folded.entry((waiter, stack)).or_default();
            folded.0 += 1;
            folded.1 += wait_ns;
        }
        let site = self.sites.entry(site).or_default();
        site.waits.push(wait_ns);
        for (at, (begin_ns, holder)) in holders.iter().enumerate() {
            let end_ns = holders.get(at + 1).map_or(to_ns, |(next_ns, _)| *next_ns);
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

    /// The trace ends: a task that was woken has waited; the waits of others are censored.
    fn cut_off(&mut self) {
        for index in 1..self.tasks.len() {
            let id = TaskId(index as u32);
            self.sleep_is_over(id);
            if !self.is_asked(id) {
                continue;
            }
            let task = &self.tasks[index];
            let asleep = task.asleep.map(|asleep| (asleep.kind, asleep.stack, None));
            let at_lock = task.at_lock.as_ref();
            let at_lock = at_lock.map(|l| (WaitKind::Lock(l.flags.0), l.stack, Some(l.lock)));
            for site in asleep.into_iter().chain(at_lock) {
                self.sites.entry(site).or_default().waits.censored += 1;
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
        sites.sort_by_key(|site| (site.kind.is_sleep(), std::cmp::Reverse(site.waits.sum_ns())));
        sites
    }

    /// The name of a site: the name of the lock and the call chain; the chain alone where the lock has only an address.
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

/// A real kernel records the address of a lock instead of a name.
fn is_address(name: &str) -> bool {
    const DIGITS_MIN: usize = 8;
    let digits = name.strip_prefix("0x").unwrap_or(name);
    digits.len() >= DIGITS_MIN && digits.bytes().all(|b| b.is_ascii_hexdigit())
}
