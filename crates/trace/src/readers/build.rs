//! From events in order of time to a trace: which task a pid means at a moment, and which events contradict each other.

use std::collections::{HashMap, VecDeque};

use super::interner::{Class, IdentityId, Interner, NameId};
use super::parts::PartWriter;
use super::pending::{PendingEvent, PendingKind};
use super::renames::{KnownName, Renames};
use crate::{CgroupId, CgroupInfo, Event, EventKind, TaskId, TaskInfo, TaskState, Trace};

/// Cgroups that a recording may have.
pub(super) const CGROUPS_MAX: usize = 1 << 16;

/// How an event refers to a task. Some events refer to living tasks only: then a pid whose task died means another
/// task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reference {
    /// The task is created.
    Birth,
    /// It is woken for the first time.
    FirstWake,
    /// It starts to run, or is woken.
    Living,
    /// A dying task may still be meant.
    Any,
}

/// What is known of a task while building.
#[derive(Clone, Copy, Default)]
struct Known {
    exited: bool,
    dead: bool,
    /// The header names it; its entry is not to be changed.
    listed: bool,
    /// An event told its class.
    class_known: bool,
    nice: Option<i8>,
    cgroup: Option<CgroupId>,
    /// The identity of the last event that named it, if a further event with it changes nothing.
    met_as: Option<IdentityId>,
    /// Its last name.
    name: Option<NameId>,
    /// Its name while it ran was looked up in [`Renames`].
    name_looked_up: bool,
}

/// Which task has which pid.
#[derive(Default)]
struct Pids {
    /// Pids that a kernel can give, by number; [`Pids::NONE`] where no task has it.
    small: Vec<u32>,
    others: HashMap<u32, TaskId>,
}

impl Pids {
    /// `PID_MAX_LIMIT` of 64-bit kernels.
    const SMALL: u32 = 1 << 22;
    const NONE: u32 = u32::MAX;

    fn get(&self, pid: u32) -> Option<TaskId> {
        if pid >= Self::SMALL {
            return self.others.get(&pid).copied();
        }
        self.small.get(pid as usize).filter(|id| **id != Self::NONE).map(|id| TaskId(*id))
    }

    fn set(&mut self, pid: u32, task: TaskId) {
        if pid >= Self::SMALL {
            self.others.insert(pid, task);
            return;
        }
        let index = pid as usize;
        if self.small.len() <= index {
            self.small.resize(index + 1, Self::NONE);
        }
        self.small[index] = task.0;
    }
}

/// Makes the events of a trace from events in order of time.
pub(super) struct Builder<'p> {
    /// What the header told and, unless parts are wanted, the events so far.
    pub(super) trace: Trace,
    /// Holds the identities and names of the events.
    pub(super) interner: Interner,
    pub(super) renames: Renames,
    parts: PartWriter<'p>,
    has_renames: bool,
    known: Vec<Known>,
    current: Pids,
    /// Tasks of the header that have not appeared yet, by pid.
    awaited: HashMap<u32, VecDeque<TaskId>>,
    has_list: bool,
    /// What each CPU runs; [`Builder::UNKNOWN`] where no switch has told it.
    running: Vec<TaskId>,
    /// Cgroups by path, without the `/` in front.
    paths: HashMap<String, CgroupId>,
}

impl<'p> Builder<'p> {
    const UNKNOWN: TaskId = TaskId(u32::MAX);

    pub(super) fn new() -> Self {
        let mut current = Pids::default();
        current.set(0, TaskId::IDLE);
        Self {
            trace: Trace::new(0),
            interner: Interner::default(),
            renames: Renames::default(),
            parts: PartWriter::default(),
            has_renames: false,
            known: vec![Known { listed: true, ..Known::default() }],
            current,
            awaited: HashMap::new(),
            has_list: false,
            running: Vec::new(),
            paths: HashMap::new(),
        }
    }

    /// To be called once, before the first event, when the header is complete. `listed` are the header's tasks in
    /// order.
    pub(super) fn begin(&mut self, listed: Vec<TaskInfo>, parts: PartWriter<'p>) {
        self.parts = parts;
        self.has_renames = self.renames.any();
        self.has_list = !listed.is_empty();
        for (i, info) in listed.into_iter().enumerate() {
            let (pid, nice, cgroup) = (info.pid, info.nice, info.cgroup);
            if i == 0 && pid == 0 {
                *self.trace.task_mut(TaskId::IDLE) = info;
                continue;
            }
            let id = self.trace.add_task(info);
            let listed =
                Known { listed: true, class_known: true, nice, cgroup, ..Known::default() };
            self.known.push(listed);
            self.awaited.entry(pid).or_default().push_back(id);
        }
    }

    /// Returns the trace when there are no more events.
    pub(super) fn finish(mut self) -> Trace {
        self.parts.flush(&self.trace);
        self.trace
    }

    /// Adds an event. Times must not decrease.
    #[inline]
    pub(super) fn push(&mut self, event: &PendingEvent) {
        match event.kind {
            PendingKind::Switch { prev, prev_state, next } => {
                self.switch(event, prev, prev_state, next);
            }
            PendingKind::Waking { task, waker, target_cpu } => {
                let waker = self.running_task(event, waker);
                let task = self.meet(event, task, Reference::Living);
                self.event(event, EventKind::Waking { task, waker, target_cpu });
            }
            PendingKind::Wakeup { task, target_cpu } => {
                let task = self.meet(event, task, Reference::Living);
                self.event(event, EventKind::Wakeup { task, target_cpu });
            }
            rare => {
                if let Some(kind) = self.rare(event, rare) {
                    self.event(event, kind);
                }
            }
        }
    }

    /// The less frequent events. `None` where the trace gets no event.
    fn rare(&mut self, event: &PendingEvent, kind: PendingKind) -> Option<EventKind> {
        Some(match kind {
            PendingKind::WakeupNew { task, target_cpu } => {
                let task = self.meet(event, task, Reference::FirstWake);
                EventKind::WakeupNew { task, target_cpu }
            }
            PendingKind::Migrate { task, from_cpu, to_cpu } => {
                let task = self.meet(event, task, Reference::Any);
                EventKind::Migrate { task, from_cpu, to_cpu }
            }
            PendingKind::Fork { parent, child } => {
                let parent = self.meet(event, parent, Reference::Any);
                EventKind::Fork { parent, child: self.meet(event, child, Reference::Birth) }
            }
            PendingKind::Exit { task } => {
                let task = self.meet(event, task, Reference::Any);
                self.known[task.index()].exited = true;
                EventKind::Exit { task }
            }
            PendingKind::Tick { running } => {
                EventKind::Tick { task: self.running_task(event, running) }
            }
            PendingKind::Lost { count } => {
                let (count, loss) = (count.value(), &mut self.trace.loss);
                loss.lost_events = loss.lost_events.saturating_add(count);
                self.set_running(event.cpu, Self::UNKNOWN);
                EventKind::Lost { count }
            }
            kind => return self.by_pid(kind),
        })
    }

    /// Events that name tasks by their pids alone, or name none. `None` where the trace gets no event.
    fn by_pid(&mut self, kind: PendingKind) -> Option<EventKind> {
        Some(match kind {
            PendingKind::Nice { pid, nice } => {
                let task = self.task(pid, None, Reference::Any);
                let known = &mut self.known[task.index()];
                (known.nice, known.class_known, known.met_as) = (Some(nice), true, None);
                EventKind::Nice { task, nice }
            }
            PendingKind::Callback { kind, pid } => {
                EventKind::Callback { kind, task: self.task(pid, None, Reference::Any) }
            }
            PendingKind::Mark { pid, label, value } => {
                let task = self.task(pid, None, Reference::Any);
                EventKind::Mark { task, label, value: value.value() }
            }
            PendingKind::CgroupMove { pid, path } => {
                let task = self.task(pid, None, Reference::Any);
                let to = self.cgroup(path)?;
                let from = self.known[task.index()].cgroup.replace(to);
                EventKind::CgroupMove { task, from: from.unwrap_or(CgroupId::ROOT), to }
            }
            PendingKind::CgroupWeight { cgroup, weight } => {
                if cgroup as usize >= self.trace.cgroups().len() {
                    self.trace.loss.unreadable += 1;
                    return None;
                }
                EventKind::CgroupWeight { cgroup: CgroupId(cgroup), weight }
            }
            PendingKind::ContentionBegin { pid, holder, flags, lock } => {
                let task = self.task(pid, None, Reference::Any);
                let holder = self.task(holder, None, Reference::Any);
                EventKind::ContentionBegin { task, lock, flags, holder }
            }
            PendingKind::ContentionEnd { pid, lock } => {
                EventKind::ContentionEnd { task: self.task(pid, None, Reference::Any), lock }
            }
            PendingKind::Param { label } => EventKind::Param { label },
            PendingKind::Print { label } => EventKind::Print { label },
            PendingKind::Stack { pid, label } => {
                EventKind::Stack { task: self.task(pid, None, Reference::Any), label }
            }
            // The others name tasks by their identities.
            _ => return None,
        })
    }

    /// The cgroup of a path (`/web/front`). An unknown one is added without a weight, with its parents. `None` when
    /// there are too many.
    fn cgroup(&mut self, path: NameId) -> Option<CgroupId> {
        let whole = self.interner.text(path).trim_matches('/');
        if self.paths.is_empty() && self.trace.cgroups().is_empty() {
            let path = "/".to_owned();
            self.trace.add_cgroup(CgroupInfo { path, parent: None, weight: None });
        }
        for (index, known) in self.trace.cgroups().iter().enumerate().skip(self.paths.len()) {
            let plain = known.path.trim_matches('/').to_owned();
            self.paths.entry(plain).or_insert(CgroupId(index as u32));
        }
        let mut at = CgroupId::ROOT;
        let ends = whole.match_indices('/').map(|(end, _)| end).chain([whole.len()]);
        for end in ends.filter(|end| *end > 0) {
            let prefix = &whole[..end];
            at = match self.paths.get(prefix) {
                Some(known) => *known,
                None if self.trace.cgroups().len() >= CGROUPS_MAX => {
                    self.trace.loss.unreadable += 1;
                    return None;
                }
                None => {
                    let info =
                        CgroupInfo { path: prefix.to_owned(), parent: Some(at), weight: None };
                    let id = self.trace.add_cgroup(info);
                    self.paths.insert(prefix.to_owned(), id);
                    id
                }
            };
        }
        Some(at)
    }

    #[inline(always)]
    fn event(&mut self, event: &PendingEvent, kind: EventKind) {
        let event = Event { time_ns: event.time_ns, cpu: event.cpu, insns: 0, kind };
        self.parts.event(&mut self.trace, event);
    }

    #[inline]
    fn switch(
        &mut self,
        event: &PendingEvent,
        prev: IdentityId,
        prev_state: TaskState,
        next: IdentityId,
    ) {
        let prev = self.meet(event, prev, Reference::Any);
        if prev_state == TaskState::Dead && !prev.is_idle() {
            self.known[prev.index()].dead = true;
        }
        let next = self.meet(event, next, Reference::Living);
        let known = self.set_running(event.cpu, next);
        self.trace.loss.broken_switches += u64::from(known != prev && known != Self::UNKNOWN);
        self.event(event, EventKind::Switch { prev, prev_state, next });
    }

    /// Notes what a CPU runs; returns what it was known to run.
    #[inline]
    fn set_running(&mut self, cpu: u32, task: TaskId) -> TaskId {
        let index = cpu as usize;
        if self.running.len() <= index {
            self.running.resize(index + 1, Self::UNKNOWN);
        }
        std::mem::replace(&mut self.running[index], task)
    }

    /// The task that an event names as running; where it names none, the one that the CPU is known to run.
    #[inline]
    fn running_task(&mut self, event: &PendingEvent, named: Option<IdentityId>) -> TaskId {
        let Some(identity) = named.map(|id| self.interner.get(id)) else {
            let running = self.running.get(event.cpu as usize).copied();
            return running.filter(|task| *task != Self::UNKNOWN).unwrap_or(TaskId::IDLE);
        };
        let found = self.current.get(identity.pid);
        if let Some(id) = found
            && (!self.has_renames || id.is_idle() || self.known[id.index()].name_looked_up)
        {
            return id;
        }
        let name = match self.has_renames {
            true => self.renames.at(event.time_ns, identity.pid),
            false => KnownName::Name(identity.name),
        };
        let id = found.unwrap_or_else(|| self.enter(identity.pid, Some(name)));
        self.known[id.index()].name_looked_up = true;
        id
    }

    /// A task that the event's own fields name: their name and class count.
    #[inline]
    fn meet(&mut self, event: &PendingEvent, id: IdentityId, reference: Reference) -> TaskId {
        let identity = self.interner.get(id);
        let task = self.task(identity.pid, Some(identity.name), reference);
        let known = &mut self.known[task.index()];
        if task.is_idle() || known.met_as == Some(id) {
            return task;
        }
        known.met_as = Some(id);
        self.take_name_and_class(event, task, identity.name, identity.class);
        task
    }

    #[cold]
    fn take_name_and_class(
        &mut self,
        event: &PendingEvent,
        task: TaskId,
        name: NameId,
        class: Class,
    ) {
        let known = &mut self.known[task.index()];
        if !known.listed && known.name != Some(name) {
            known.name = Some(name);
            self.interner.text(name).clone_into(&mut self.trace.task_mut(task).comm);
        }
        let Class::Nice(nice) = class else {
            known.class_known |= class == Class::Other;
            return;
        };
        let is_change = known.class_known && known.nice != Some(nice);
        if !known.class_known {
            self.trace.task_mut(task).nice = Some(nice);
            self.parts.nice(task, nice);
        }
        known.class_known = true;
        known.nice = Some(nice);
        if is_change {
            self.event(event, EventKind::Nice { task, nice });
        }
    }

    /// The task that a pid means now.
    #[inline]
    fn task(&mut self, pid: u32, name: Option<NameId>, reference: Reference) -> TaskId {
        if pid == 0 {
            return TaskId::IDLE;
        }
        match self.current.get(pid) {
            Some(id) if !self.is_another(pid, id, reference) => id,
            found => {
                self.trace.loss.pid_reuses += u64::from(found.is_some());
                self.enter(pid, name.map(KnownName::Name))
            }
        }
    }

    /// Whether a reference cannot mean the task that had the pid so far.
    #[inline]
    fn is_another(&self, pid: u32, id: TaskId, reference: Reference) -> bool {
        let Known { exited, dead, .. } = self.known[id.index()];
        let is_another = match reference {
            Reference::Birth => true,
            Reference::FirstWake => dead || exited,
            Reference::Living => dead,
            Reference::Any => false,
        };
        // A header that lists the tasks tells how many had this pid.
        is_another
            && (!self.has_list || self.awaited.get(&pid).is_some_and(|rest| !rest.is_empty()))
    }

    /// Makes a new task, or the next one of the header's, the one that a pid means.
    fn enter(&mut self, pid: u32, name: Option<KnownName>) -> TaskId {
        let listed = self.awaited.get_mut(&pid).and_then(VecDeque::pop_front);
        let id = listed.unwrap_or_else(|| {
            self.known.push(Known::default());
            let info = match name {
                Some(KnownName::Name(name)) => TaskInfo::new(pid, self.interner.text(name)),
                Some(KnownName::Pid(of)) => TaskInfo::new(pid, &format!(":{of}")),
                None => TaskInfo::new(pid, "<...>"),
            };
            self.trace.add_task(info)
        });
        self.current.set(pid, id);
        id
    }
}
