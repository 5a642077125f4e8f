//! From events in order of time to a trace: which task a pid means at a moment, and which events contradict each other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::interner::{Class, IdentityId, Interner, NOT_NAMED, TaskIdentity, UNNAMED};
use super::renames::Renames;
use super::segments::SegmentWriter;
use super::stated::LEFT_OUT;
use crate::packed::{Packed, PackedKind};
use crate::{CgroupId, CgroupInfo, EventKind, RtPrio, TaskId, TaskInfo, Trace};

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
    /// Includes a dying task.
    Any,
    /// By its pid, because the CPU was running it or in a mark.
    Pid,
}

impl Reference {
    /// How an event other than a switch or the beginning of a wake-up refers to its tasks ([`EventKind::map_tasks`]).
    #[inline]
    fn of(kind: &EventKind<IdentityId>) -> [Self; 2] {
        match kind {
            EventKind::Wakeup { .. } => [Self::Living; 2],
            EventKind::WakeupNew { .. } => [Self::FirstWake; 2],
            EventKind::Fork { .. } => [Self::Any, Self::Birth],
            EventKind::Migrate { .. } | EventKind::Exit { .. } => [Self::Any; 2],
            _ => [Self::Pid; 2],
        }
    }
}

/// When and on which CPU an event happened.
#[derive(Clone, Copy)]
struct Moment {
    time_ns: u64,
    cpu: u32,
}

/// The state of a task while building.
#[derive(Clone, Default)]
pub(super) struct TaskRecord {
    exited: bool,
    dead: bool,
    /// The header names it; its entry is not to be changed.
    listed: bool,
    /// Its class is known from an event.
    class_known: bool,
    nice: Option<i8>,
    rt_prio: Option<RtPrio>,
    pub(super) cgroup: Option<CgroupId>,
    /// The identity of the last event that named it, if a further event with it changes nothing.
    met_as: Option<IdentityId>,
    /// Its last name.
    name: Option<Arc<str>>,
    /// Its name while it ran was looked up in [`Renames`].
    name_looked_up: bool,
}

impl TaskRecord {
    /// A task whose class may be known.
    pub(super) fn of_class(nice: Option<i8>, rt_prio: Option<RtPrio>) -> Self {
        let class_known = nice.is_some() || rt_prio.is_some();
        Self { class_known, nice, rt_prio, ..Self::default() }
    }
}

/// The event names a cgroup by its path: one of [`Builder::paths_named`].
pub(super) const BY_PATH: u32 = 1 << 31;

/// In place of a task: none is known.
const UNKNOWN: TaskId = TaskId(u32::MAX);

/// Makes the events of a trace from events in order of time whose tasks are numbers of identities.
pub(super) struct Builder<'p> {
    /// The header's content and, unless parts are wanted, the events so far.
    pub(super) trace: Trace,
    pub(super) renames: Renames,
    /// Paths of cgroups that events name. Those events have the index and [`BY_PATH`] as [`CgroupId`].
    pub(super) paths_named: Vec<String>,
    interner: Interner,
    /// The identities by number, as far as events have named them.
    identities: Vec<TaskIdentity>,
    parts: SegmentWriter<'p>,
    /// The recording has no `sched_waking`: wake-ups begin when the task is queued.
    wakes_at_wakeups: bool,
    has_renames: bool,
    pub(super) known: Vec<TaskRecord>,
    /// The task that has a pid, by the number of the pid; [`UNKNOWN`] where none has it.
    current: Vec<TaskId>,
    /// Tasks of the header that have not appeared yet, by pid.
    awaited: HashMap<u32, VecDeque<TaskId>>,
    has_list: bool,
    /// The attributes of tasks at the beginning of the recording, by pid, until they appear.
    pub(super) at_start: HashMap<u32, TaskInfo>,
    pub(super) has_start: bool,
    /// The cgroups of those tasks, which are not in the trace's table yet.
    pub(super) start_cgroups: Vec<CgroupInfo>,
    /// Tasks with the indices of those cgroups.
    pub(super) start_places: HashMap<TaskId, usize>,
    /// The task that each CPU runs; [`UNKNOWN`] before its first switch and after lost events.
    running: Vec<TaskId>,
    /// Cgroups by path, without the `/` in front.
    paths: HashMap<String, CgroupId>,
}

impl<'p> Builder<'p> {
    /// `interner` has the identities of the events.
    pub(super) fn new(interner: Interner) -> Self {
        Self {
            trace: Trace::new(0),
            renames: Renames::default(),
            paths_named: Vec::new(),
            interner,
            identities: Vec::new(),
            parts: SegmentWriter::default(),
            wakes_at_wakeups: false,
            has_renames: false,
            known: vec![TaskRecord { listed: true, ..TaskRecord::default() }],
            current: Vec::new(),
            awaited: HashMap::new(),
            has_list: false,
            at_start: HashMap::new(),
            has_start: false,
            start_cgroups: Vec::new(),
            start_places: HashMap::new(),
            running: Vec::new(),
            paths: HashMap::new(),
        }
    }

    /// To be called once, before the first event, when the header is complete. `listed` are the header's tasks in
    /// order. `wakes_at_wakeups`: for each queued task there is an event for the request to wake it, too.
    pub(super) fn begin(
        &mut self,
        listed: Vec<TaskInfo>,
        parts: SegmentWriter<'p>,
        wakes_at_wakeups: bool,
    ) {
        self.parts = parts;
        self.wakes_at_wakeups = wakes_at_wakeups;
        self.has_renames = self.renames.any();
        self.has_list = !listed.is_empty();
        for (i, info) in listed.into_iter().enumerate() {
            let TaskInfo { pid, nice, rt_prio, cgroup, .. } = info;
            if i == 0 && pid == 0 {
                *self.trace.task_mut(TaskId::IDLE) = info;
                continue;
            }
            let id = self.trace.add_task(info);
            let known = TaskRecord { nice, rt_prio, cgroup, ..TaskRecord::default() };
            self.known.push(TaskRecord { listed: true, class_known: true, ..known });
            self.awaited.entry(pid).or_default().push_back(id);
        }
    }

    /// Returns the trace when there are no more events.
    pub(super) fn finish(mut self) -> Trace {
        self.place_tasks();
        self.parts.flush(&self.trace);
        self.trace
    }

    /// Adds an event. Times must not decrease.
    #[inline]
    pub(super) fn push(&mut self, mut event: Packed) {
        let moment = Moment { time_ns: event.time_ns, cpu: event.cpu };
        match event.kind::<IdentityId>() {
            EventKind::Switch { prev, prev_state, next } => {
                let prev = self.meet(moment, prev, Reference::Any);
                let next = self.meet(moment, next, Reference::Living);
                if prev_state.is_dead() && !prev.is_idle() {
                    self.known[prev.index()].dead = true;
                }
                let ran = self.set_running(event.cpu, next);
                self.trace.loss.broken_switches += u64::from(ran != prev && ran != UNKNOWN);
                event.set_tasks(prev, next);
            }
            EventKind::Waking { task, waker, .. } => {
                let waker = self.by_pid(moment, waker);
                event.set_tasks(self.meet(moment, task, Reference::Living), waker);
            }
            EventKind::Wakeup { task, target_cpu } if self.wakes_at_wakeups => {
                let waker = self.by_pid(moment, event.wakeup_waker());
                let task = self.meet(moment, task, Reference::Living);
                for kind in [
                    EventKind::Waking { task, waker, target_cpu },
                    EventKind::Wakeup { task, target_cpu },
                ] {
                    let event = Packed::of(event.time_ns, event.cpu, PackedKind::new(kind));
                    self.parts.event(&mut self.trace, event);
                }
                return;
            }
            kind => match self.other(moment, kind) {
                Some(kind) => event = Packed::of(event.time_ns, event.cpu, PackedKind::new(kind)),
                None => return,
            },
        }
        self.parts.event(&mut self.trace, event);
    }

    /// An event that is less frequent, with the tasks that its pids mean. `None` where the trace gets no event.
    fn other(&mut self, moment: Moment, kind: EventKind<IdentityId>) -> Option<EventKind> {
        let mut references = Reference::of(&kind).into_iter();
        let mut kind = kind.map_tasks(|id| match references.next() {
            Some(reference) if reference != Reference::Pid && id != NOT_NAMED => {
                self.meet(moment, id, reference)
            }
            _ => self.by_pid(moment, id),
        });
        self.note(moment.cpu, &mut kind)?;
        if let EventKind::Fork { parent, child } = kind {
            self.inherit(parent, child);
        }
        Some(kind)
    }

    /// Notes what an event changes. `None` where the trace gets no event.
    fn note(&mut self, cpu: u32, kind: &mut EventKind) -> Option<()> {
        match kind {
            EventKind::Exit { task } => self.known[task.index()].exited = true,
            EventKind::Lost { count } => {
                let loss = &mut self.trace.loss;
                loss.lost_events = loss.lost_events.saturating_add(*count);
                self.set_running(cpu, UNKNOWN);
            }
            EventKind::CgroupMove { task, from, to } => {
                *to = self.cgroup_named(*to)?;
                let known = &mut self.known[task.index()].cgroup;
                *from = known.replace(*to).unwrap_or(CgroupId::ROOT);
            }
            EventKind::CgroupWeight { cgroup, .. } if cgroup.0 & BY_PATH != 0 => {
                *cgroup = self.cgroup_named(*cgroup)?;
            }
            EventKind::CgroupWeight { cgroup, .. }
                if cgroup.index() >= self.trace.cgroups().len() =>
            {
                self.trace.loss.unreadable += 1;
                return None;
            }
            EventKind::Print { label: LEFT_OUT } => return None,
            EventKind::Nice { task, nice } => {
                let known = &mut self.known[task.index()];
                (known.nice, known.rt_prio) = (Some(*nice), None);
                (known.class_known, known.met_as) = (true, None);
            }
            EventKind::RtPrio { task, prio } => {
                let known = &mut self.known[task.index()];
                (known.nice, known.rt_prio) = (None, Some(*prio));
                (known.class_known, known.met_as) = (true, None);
            }
            _ => {}
        }
        Some(())
    }

    /// The cgroup that an event names by its path.
    fn cgroup_named(&mut self, number: CgroupId) -> Option<CgroupId> {
        let path = self.paths_named.get_mut((number.0 & !BY_PATH) as usize).map(std::mem::take);
        self.cgroup(&path.unwrap_or_default())
    }

    /// The cgroup of a path (`/web/front`). An unknown one is added without a weight, with its
    /// parents. `None` when there are too many.
    pub(super) fn cgroup(&mut self, path: &str) -> Option<CgroupId> {
        let whole = path.trim_matches('/');
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
            if let Some(known) = self.paths.get(prefix) {
                at = *known;
                continue;
            }
            if self.trace.cgroups().len() >= CGROUPS_MAX {
                self.trace.loss.unreadable += 1;
                return None;
            }
            let path = prefix.to_owned();
            at = self.trace.add_cgroup(CgroupInfo { path, parent: Some(at), weight: None });
            self.paths.insert(prefix.to_owned(), at);
        }
        Some(at)
    }

    /// Notes what a CPU runs; returns what it was known to run.
    #[inline]
    fn set_running(&mut self, cpu: u32, task: TaskId) -> TaskId {
        let index = cpu as usize;
        if self.running.len() <= index {
            self.running.resize(index + 1, UNKNOWN);
        }
        std::mem::replace(&mut self.running[index], task)
    }

    /// A task that the event names by its pid; where it names none, the one that the CPU is known to run.
    #[inline]
    fn by_pid(&mut self, moment: Moment, id: IdentityId) -> TaskId {
        if id == NOT_NAMED {
            let running = self.running.get(moment.cpu as usize).copied();
            return running.filter(|task| *task != UNKNOWN).unwrap_or(TaskId::IDLE);
        }
        let (pid, pid_number) = self.pid(id);
        let found = self.found(pid, pid_number);
        if let Some(task) = found
            && (!self.has_renames || task.is_idle() || self.known[task.index()].name_looked_up)
        {
            return task;
        }
        let name = match self.has_renames {
            true => self.renames.at(moment.time_ns, pid),
            false => Arc::clone(&self.identities[id.index()].name),
        };
        let task = found.unwrap_or_else(|| self.enter(pid, pid_number, &name, false));
        self.known[task.index()].name_looked_up = true;
        task
    }

    /// The pid of an identity, and its number.
    #[inline]
    fn pid(&mut self, id: IdentityId) -> (u32, usize) {
        if id.index() >= self.identities.len() {
            self.interner.extend(&mut self.identities);
        }
        let identity = &self.identities[id.index()];
        (identity.pid, identity.pid_number)
    }

    /// The task that has a pid now.
    #[inline]
    fn found(&self, pid: u32, pid_number: usize) -> Option<TaskId> {
        if pid == 0 {
            return Some(TaskId::IDLE);
        }
        self.current.get(pid_number).copied().filter(|task| *task != UNKNOWN)
    }

    /// A task that the event's own fields name: their name and class count.
    #[inline]
    fn meet(&mut self, moment: Moment, id: IdentityId, reference: Reference) -> TaskId {
        let (pid, pid_number) = self.pid(id);
        let task = match self.found(pid, pid_number) {
            Some(TaskId::IDLE) => return TaskId::IDLE,
            Some(task) if !self.is_another(pid, task, reference) => task,
            found => {
                self.trace.loss.pid_reuses += u64::from(found.is_some());
                let name = Arc::clone(&self.identities[id.index()].name);
                let is_new = matches!(reference, Reference::Birth | Reference::FirstWake);
                self.enter(pid, pid_number, &name, is_new || found.is_some())
            }
        };
        let known = &mut self.known[task.index()];
        if known.met_as != Some(id) {
            known.met_as = Some(id);
            self.take_name_and_class(moment, task, id);
        }
        task
    }

    #[cold]
    fn take_name_and_class(&mut self, moment: Moment, task: TaskId, id: IdentityId) {
        let known = &mut self.known[task.index()];
        let TaskIdentity { name, class, .. } = &self.identities[id.index()];
        if !known.listed && known.name.as_ref() != Some(name) && **name != *UNNAMED {
            known.name = Some(Arc::clone(name));
            (**name).clone_into(&mut self.trace.task_mut(task).comm);
        }
        let (nice, rt_prio) = match *class {
            Class::Nice(nice) => (Some(nice), None),
            Class::Above(prio) => (None, Some(prio)),
            Class::Unknown | Class::Other => {
                known.class_known |= *class == Class::Other;
                return;
            }
        };
        let was_known = std::mem::replace(&mut known.class_known, true);
        let before = (known.nice, known.rt_prio);
        (known.nice, known.rt_prio) = (nice, rt_prio);
        if !was_known {
            let info = self.trace.task_mut(task);
            (info.nice, info.rt_prio) = (nice, rt_prio);
            self.parts.class(task, nice, rt_prio);
        } else if before != (nice, rt_prio) {
            let nice = nice.map(|nice| EventKind::Nice { task, nice });
            let change = nice.or(rt_prio.map(|prio| EventKind::RtPrio { task, prio }));
            if let Some(kind) = change.map(PackedKind::new) {
                let change = Packed::of(moment.time_ns, moment.cpu, kind);
                self.parts.event(&mut self.trace, change);
            }
        }
    }

    /// Whether a reference cannot mean the task that had the pid so far.
    #[inline]
    fn is_another(&self, pid: u32, id: TaskId, reference: Reference) -> bool {
        let TaskRecord { exited, dead, .. } = self.known[id.index()];
        let is_another = match reference {
            Reference::Birth => true,
            Reference::FirstWake => dead || exited,
            Reference::Living => dead,
            Reference::Any | Reference::Pid => false,
        };
        // A header that lists the tasks has an entry for each that had this pid.
        is_another
            && (!self.has_list || self.awaited.get(&pid).is_some_and(|rest| !rest.is_empty()))
    }

    /// Makes a new task, or the next one of the header's, the one that a pid means.
    /// `is_new`: it did not exist when the recording began.
    fn enter(&mut self, pid: u32, pid_number: usize, name: &str, is_new: bool) -> TaskId {
        let listed = self.awaited.get_mut(&pid).and_then(VecDeque::pop_front);
        let task = listed.unwrap_or_else(|| {
            let start = self.at_start.remove(&pid).filter(|_| !is_new);
            self.add_task(start.unwrap_or_else(|| TaskInfo::new(pid, "")), name)
        });
        if self.current.len() <= pid_number {
            self.current.resize(pid_number + 1, UNKNOWN);
        }
        self.current[pid_number] = task;
        task
    }
}
