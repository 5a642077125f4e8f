//! From records in order of time to a trace: which task a pid means at a moment, and what contradicts what.

use std::collections::{HashMap, VecDeque};

use super::collect::CGROUPS_MAX;
use super::names::{Class, Mirror, Name, Roster, Who};
use super::parts::Making;
use super::records::{Record, What};
use super::renames::{Called, Renames};
use crate::{CgroupId, CgroupInfo, Event, EventKind, TaskId, TaskInfo, TaskState, Trace};

/// How an event touches a task: some ways only a living task is touched, so that a dead one's pid must be another's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    /// It is born.
    Birth,
    /// It is woken for the first time.
    FirstWake,
    /// It starts to run, or is woken.
    Life,
    /// Anything that a dying task may still meet.
    Any,
}

/// What is known of a task while building.
#[derive(Clone, Copy, Default)]
struct Known {
    exited: bool,
    dead: bool,
    /// The header named it; its entry is not to be touched.
    listed: bool,
    /// A line told its class.
    class_said: bool,
    nice: Option<i8>,
    cgroup: Option<CgroupId>,
    /// Its last name.
    name: Option<Name>,
    /// As whom it was met last, if that still holds all there is to know: the face that `met` has of it.
    who: Option<Who>,
    /// Its name while it ran was asked for.
    asked: bool,
    /// As whom it ran last: the face that `ran` has of it.
    ran_as: Option<Who>,
}

/// Which task has which pid.
#[derive(Default)]
struct Pids {
    /// Pids that a kernel can give, by number; `u32::MAX` is none.
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

/// Makes the events of a trace out of records in order of time.
pub(super) struct Builder<'p> {
    /// Here only while records are added.
    trace: Trace,
    renames: Renames,
    making: Making<'p>,
    names: Mirror,
    has_renames: bool,
    known: Vec<Known>,
    /// By number of the face: the task that is met with it, where there is nothing new about it then; else [`Builder::NOBODY`].
    met: Vec<TaskId>,
    /// The same for the task that a CPU was running.
    ran: Vec<TaskId>,
    current: Pids,
    /// Tasks of the header that were not met yet, by pid.
    awaited: HashMap<u32, VecDeque<TaskId>>,
    has_list: bool,
    /// What each CPU runs; [`Builder::NOBODY`] where no switch has told it.
    running: Vec<TaskId>,
    /// Cgroups by path, without the `/` in front.
    paths: HashMap<String, CgroupId>,
}

impl<'p> Builder<'p> {
    const NOBODY: TaskId = TaskId(u32::MAX);

    /// `trace` holds what the header said, and no events. `listed` are the header's tasks in order.
    pub(super) fn new(
        trace: &mut Trace,
        listed: Vec<TaskInfo>,
        has_renames: bool,
        making: Making<'p>,
    ) -> Self {
        let mut awaited: HashMap<u32, VecDeque<TaskId>> = HashMap::new();
        let mut known = vec![Known { listed: true, ..Known::default() }];
        let has_list = !listed.is_empty();
        for (i, info) in listed.into_iter().enumerate() {
            let (pid, nice, cgroup) = (info.pid, info.nice, info.cgroup);
            if i == 0 && pid == 0 {
                *trace.task_mut(TaskId::IDLE) = info;
                continue;
            }
            let id = trace.add_task(info);
            known.push(Known { listed: true, class_said: true, nice, cgroup, ..Known::default() });
            awaited.entry(pid).or_default().push_back(id);
        }
        let mut current = Pids::default();
        current.set(0, TaskId::IDLE);
        Self {
            trace: Trace::new(0),
            renames: Renames::default(),
            making,
            names: Mirror::default(),
            has_renames,
            met: Vec::new(),
            ran: Vec::new(),
            known,
            current,
            awaited,
            has_list,
            running: Vec::new(),
            paths: HashMap::new(),
        }
    }

    /// Looks at whom records name since the last call. To be called before they are added.
    pub(super) fn follow(&mut self, roster: &Roster) {
        self.names.follow(roster);
        self.met.resize(self.names.faces(), Self::NOBODY);
        self.ran.resize(self.names.faces(), Self::NOBODY);
    }

    /// Adds what `add` says, to the trace; the names that tasks had at a time are told by `renames`.
    pub(super) fn adding(
        &mut self,
        trace: &mut Trace,
        renames: &mut Renames,
        add: impl FnOnce(&mut Self),
    ) {
        std::mem::swap(&mut self.trace, trace);
        std::mem::swap(&mut self.renames, renames);
        add(self);
        std::mem::swap(&mut self.trace, trace);
        std::mem::swap(&mut self.renames, renames);
    }

    /// There are no more: hands out what there is.
    pub(super) fn finish(mut self, trace: &Trace) {
        self.making.hand_out(trace);
    }

    /// Adds a record; none may lie before the one before it.
    pub(super) fn push(&mut self, record: &Record) {
        match record.what {
            What::Switch { prev, prev_state, next } => {
                self.switch(record, prev, prev_state, next);
            }
            What::Waking { task, waker, target_cpu } => {
                let waker = self.header_task(record, waker);
                let task = self.meet(record, task, Touch::Life);
                self.event(record, EventKind::Waking { task, waker, target_cpu });
            }
            What::Wakeup { task, target_cpu } => {
                let task = self.meet(record, task, Touch::Life);
                self.event(record, EventKind::Wakeup { task, target_cpu });
            }
            rare => {
                if let Some(kind) = self.rare(record, rare) {
                    self.event(record, kind);
                }
            }
        }
    }

    /// What does not happen all the time. `None` where it makes no event.
    fn rare(&mut self, record: &Record, what: What) -> Option<EventKind> {
        Some(match what {
            What::WakeupNew { task, target_cpu } => {
                EventKind::WakeupNew { task: self.meet(record, task, Touch::FirstWake), target_cpu }
            }
            What::Migrate { task, from_cpu, to_cpu } => {
                EventKind::Migrate { task: self.meet(record, task, Touch::Any), from_cpu, to_cpu }
            }
            What::Fork { parent, child } => {
                let parent = self.meet(record, parent, Touch::Any);
                EventKind::Fork { parent, child: self.meet_anew(record, child, Touch::Birth) }
            }
            What::Exit { task } => {
                let task = self.meet(record, task, Touch::Any);
                self.known[task.index()].exited = true;
                self.forget(task);
                EventKind::Exit { task }
            }
            What::Tick { running } => EventKind::Tick { task: self.header_task(record, running) },
            What::Lost { count } => {
                let count = count.value();
                self.trace.loss.lost_events = self.trace.loss.lost_events.saturating_add(count);
                self.set_running(record.cpu, Self::NOBODY);
                EventKind::Lost { count }
            }
            what => return self.by_pid(what),
        })
    }

    /// What names tasks by their pids alone, or none. `None` where it makes no event.
    fn by_pid(&mut self, what: What) -> Option<EventKind> {
        Some(match what {
            What::Nice { pid, nice } => {
                let task = self.task(pid, None, Touch::Any);
                let known = &mut self.known[task.index()];
                (known.nice, known.class_said) = (Some(nice), true);
                self.forget(task);
                EventKind::Nice { task, nice }
            }
            What::Callback { kind, pid } => {
                EventKind::Callback { kind, task: self.task(pid, None, Touch::Any) }
            }
            What::Mark { pid, label, value } => {
                let task = self.task(pid, None, Touch::Any);
                EventKind::Mark { task, label, value: value.value() }
            }
            What::CgroupMove { pid, path } => {
                let task = self.task(pid, None, Touch::Any);
                let to = self.cgroup(path)?;
                let from = self.known[task.index()].cgroup.replace(to);
                EventKind::CgroupMove { task, from: from.unwrap_or(CgroupId::ROOT), to }
            }
            What::CgroupWeight { cgroup, weight } => {
                if cgroup as usize >= self.trace.cgroups().len() {
                    self.trace.loss.unreadable += 1;
                    return None;
                }
                EventKind::CgroupWeight { cgroup: CgroupId(cgroup), weight }
            }
            What::ContentionBegin { pid, holder, flags, lock } => {
                let task = self.task(pid, None, Touch::Any);
                let holder = self.task(holder, None, Touch::Any);
                EventKind::ContentionBegin { task, lock, flags, holder }
            }
            What::ContentionEnd { pid, lock } => {
                EventKind::ContentionEnd { task: self.task(pid, None, Touch::Any), lock }
            }
            What::Param { label } => EventKind::Param { label },
            What::Print { label } => EventKind::Print { label },
            What::Stack { pid, label } => {
                EventKind::Stack { task: self.task(pid, None, Touch::Any), label }
            }
            // The others name tasks with more than a pid.
            _ => return None,
        })
    }

    /// The cgroup of a path (`/web/front`); one that is not known yet is entered, with those above it, without weights. `None`
    /// when there are too many.
    fn cgroup(&mut self, path: Name) -> Option<CgroupId> {
        let whole = self.names.text(path).trim_matches('/');
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

    /// Inlined, so that no kind of event is put together only to be copied.
    #[inline(always)]
    fn event(&mut self, record: &Record, kind: EventKind) {
        let event = Event { time_ns: record.time_ns, cpu: record.cpu, insns: 0, kind };
        self.making.event(&mut self.trace, event);
    }

    #[inline(always)]
    fn switch(&mut self, record: &Record, prev: Who, prev_state: TaskState, next: Who) {
        let prev = self.meet(record, prev, Touch::Any);
        if prev_state == TaskState::Dead && !prev.is_idle() {
            self.known[prev.index()].dead = true;
            self.forget(prev);
        }
        let next = self.meet(record, next, Touch::Life);
        let known = self.set_running(record.cpu, next);
        self.trace.loss.broken_switches += u64::from(known != prev && known != Self::NOBODY);
        self.event(record, EventKind::Switch { prev, prev_state, next });
    }

    /// Notes what a CPU runs; gives what it was known to run.
    #[inline(always)]
    fn set_running(&mut self, cpu: u32, task: TaskId) -> TaskId {
        let index = cpu as usize;
        if self.running.len() <= index {
            self.running.resize(index + 1, Self::NOBODY);
        }
        std::mem::replace(&mut self.running[index], task)
    }

    /// The task of the first columns; where they do not say, the one that the CPU is known to run.
    #[inline(always)]
    fn header_task(&mut self, record: &Record, named: Option<Who>) -> TaskId {
        match named {
            Some(who) if self.ran[who.0 as usize] != Self::NOBODY => self.ran[who.0 as usize],
            _ => self.header_task_anew(record, named),
        }
    }

    #[cold]
    fn header_task_anew(&mut self, record: &Record, named: Option<Who>) -> TaskId {
        let Some(who) = named else {
            let running = self.running.get(record.cpu as usize).copied();
            return running.filter(|task| *task != Self::NOBODY).unwrap_or(TaskId::IDLE);
        };
        let face = self.names.face(who);
        if face.pid == 0 {
            self.ran[who.0 as usize] = TaskId::IDLE;
            return TaskId::IDLE;
        }
        let id = self.named_by_header(record, face.pid, face.name);
        self.ran[who.0 as usize] = id;
        if let Some(before) = self.known[id.index()].ran_as.replace(who).filter(|of| *of != who) {
            self.ran[before.0 as usize] = Self::NOBODY;
        }
        id
    }

    fn named_by_header(&mut self, record: &Record, pid: u32, name: Name) -> TaskId {
        let found = self.current.get(pid);
        if let Some(id) = found
            && (self.known[id.index()].asked || !self.has_renames)
        {
            return id;
        }
        let called = match self.has_renames {
            true => self.renames.at(record.time_ns, pid),
            false => Called::Name(name),
        };
        let id = found.unwrap_or_else(|| self.enter(pid, Some(called)));
        self.known[id.index()].asked = true;
        id
    }

    /// A task of the event's own fields, whose name and priority count.
    #[inline(always)]
    fn meet(&mut self, record: &Record, who: Who, touch: Touch) -> TaskId {
        let id = self.met[who.0 as usize];
        if id != Self::NOBODY { id } else { self.meet_anew(record, who, touch) }
    }

    /// Whoever is met as this task is looked at again.
    fn forget(&mut self, task: TaskId) {
        if let Some(who) = self.known[task.index()].who.take() {
            self.met[who.0 as usize] = Self::NOBODY;
        }
    }

    /// The same for a task of which something may have changed.
    #[cold]
    fn meet_anew(&mut self, record: &Record, who: Who, touch: Touch) -> TaskId {
        let face = self.names.face(who);
        let id = self.task(face.pid, Some(face.name), touch);
        self.forget(id);
        let known = &mut self.known[id.index()];
        // Of one that is about to leave, the next event may be another's.
        if !(known.dead || known.exited) {
            self.met[who.0 as usize] = id;
            known.who = Some(who).filter(|_| !id.is_idle());
        }
        if id.is_idle() {
            return id;
        }
        if !known.listed && known.name != Some(face.name) {
            known.name = Some(face.name);
            self.names.text(face.name).clone_into(&mut self.trace.task_mut(id).comm);
        }
        let Class::Nice(nice) = face.class else {
            known.class_said |= face.class == Class::Other;
            return id;
        };
        let changed = known.class_said && known.nice != Some(nice);
        if !known.class_said {
            self.trace.task_mut(id).nice = Some(nice);
            self.making.nice(id, nice);
        }
        known.class_said = true;
        known.nice = Some(nice);
        if changed {
            self.event(record, EventKind::Nice { task: id, nice });
        }
        id
    }

    /// The task that a pid means now.
    fn task(&mut self, pid: u32, name: Option<Name>, touch: Touch) -> TaskId {
        if pid == 0 {
            return TaskId::IDLE;
        }
        let called = name.map(Called::Name);
        match self.current.get(pid) {
            Some(id) if !self.is_another(pid, id, touch) => id,
            Some(_) => {
                self.trace.loss.pid_reuses += 1;
                self.enter(pid, called)
            }
            None => self.enter(pid, called),
        }
    }

    /// Whether a touch cannot be meant for the task that had the pid so far.
    fn is_another(&self, pid: u32, id: TaskId, touch: Touch) -> bool {
        let Known { exited, dead, .. } = self.known[id.index()];
        let other = match touch {
            Touch::Birth => true,
            Touch::FirstWake => dead || exited,
            Touch::Life => dead,
            Touch::Any => false,
        };
        // A header that lists the tasks knows how many had this pid.
        other && (!self.has_list || self.awaited.get(&pid).is_some_and(|rest| !rest.is_empty()))
    }

    fn enter(&mut self, pid: u32, called: Option<Called>) -> TaskId {
        let listed = self.awaited.get_mut(&pid).and_then(VecDeque::pop_front);
        let id = listed.unwrap_or_else(|| {
            self.known.push(Known::default());
            let info = match called {
                Some(Called::Name(name)) => TaskInfo::new(pid, self.names.text(name)),
                Some(Called::Pid(of)) => TaskInfo::new(pid, &format!(":{of}")),
                None => TaskInfo::new(pid, "<...>"),
            };
            self.trace.add_task(info)
        });
        // Who is met with the old one's face is the new one.
        if let Some(before) = self.current.get(pid) {
            self.forget(before);
            if let Some(who) = self.known[before.index()].ran_as.take() {
                self.ran[who.0 as usize] = Self::NOBODY;
            }
        }
        self.current.set(pid, id);
        id
    }
}
