//! Joins successive recordings of one machine into one stream.

use std::collections::{BTreeMap, VecDeque};

use crate::{Event, EventKind, TaskId, Trace};

/// Joins parts of a recording that is still being made. A task keeps its number from part to part.
///
/// Cgroups are left out: their numbers differ from part to part.
#[derive(Clone, Debug)]
pub struct Joiner {
    trace: Trace,
    origin_ns: u64,
    /// The last task of each pid.
    by_pid: BTreeMap<u32, TaskId>,
    /// By task: it has exited, so that its pid means another task from now on.
    ended: Vec<bool>,
    /// Events that earlier ones may still precede.
    held: VecDeque<Event>,
    last_ns: u64,
}

impl Joiner {
    /// Begins with no tasks and no events. `origin_ns` of the recordings' clock becomes time 0.
    pub fn new(cpus: u32, origin_ns: u64) -> Joiner {
        Joiner {
            trace: Trace::new(cpus),
            origin_ns,
            by_pid: BTreeMap::new(),
            ended: vec![false],
            held: VecDeque::new(),
            last_ns: 0,
        }
    }

    /// The stream: the tasks so far, and the events since the last [`Joiner::forget_events`].
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Removes the events that [`Joiner::trace`] holds.
    pub fn forget_events(&mut self) {
        self.trace.clear_events();
    }

    /// Takes the next part. Before `complete_ns` of its clock nothing can come any more; what happened later waits for
    /// the next one. Returns that instant in the clock of the stream. An event that comes too late is taken to happen
    /// at the time of the last one, and counted among [`crate::Loss::clock_jumps`].
    pub fn add(&mut self, part: &Trace, complete_ns: u64) -> u64 {
        let tasks = self.tasks_of(part);
        let mut merged: Vec<Event> = self.held.drain(..).collect();
        for event in part.events() {
            let Some(kind) = self.translate(part, &tasks, event.kind) else { continue };
            let time_ns = event.time_ns.saturating_sub(self.origin_ns);
            merged.push(Event { time_ns, kind, ..event });
        }
        // Stable: events of one time keep the order of their parts.
        merged.sort_by_key(|event| event.time_ns);
        let complete_ns = complete_ns.saturating_sub(self.origin_ns).max(self.last_ns);
        for event in merged {
            if event.time_ns >= complete_ns {
                self.held.push_back(event);
                continue;
            }
            self.trace.loss.clock_jumps += u64::from(event.time_ns < self.last_ns);
            self.last_ns = self.last_ns.max(event.time_ns);
            self.trace.push(Event { time_ns: self.last_ns, ..event });
        }
        self.last_ns = complete_ns;
        self.trace.end_ns = complete_ns;
        self.add_loss(part);
        complete_ns
    }

    fn add_loss(&mut self, part: &Trace) {
        let (loss, new) = (&mut self.trace.loss, &part.loss);
        loss.lost_events += new.lost_events;
        loss.unreadable += new.unreadable;
        loss.skipped += new.skipped;
        loss.prints += new.prints;
        loss.stacks += new.stacks;
        loss.pid_reuses += new.pid_reuses;
        loss.first = loss.first.take().or_else(|| new.first.clone());
    }

    /// The numbers in the stream of the tasks of a part.
    fn tasks_of(&mut self, part: &Trace) -> Vec<TaskId> {
        let mut numbers = vec![TaskId::IDLE];
        let mut met = BTreeMap::new();
        for info in part.tasks().iter().skip(1) {
            let again = met.insert(info.pid, ()).is_some();
            let known = self.by_pid.get(&info.pid).copied();
            let id = match known.filter(|id| !again && !self.ended[id.index()]) {
                Some(id) => {
                    let task = self.trace.task_mut(id);
                    task.comm.clone_from(&info.comm);
                    if task.rt_prio.is_none() && task.nice.is_none() {
                        (task.nice, task.rt_prio) = (info.nice, info.rt_prio);
                    }
                    id
                }
                None => {
                    let mut info = info.clone();
                    info.cgroup = None;
                    self.ended.push(false);
                    self.trace.add_task(info)
                }
            };
            self.by_pid.insert(info.pid, id);
            numbers.push(id);
        }
        numbers
    }

    /// An event with the stream's numbers; `None` if it is left out: it is of cgroups, or the table of labels is full.
    fn translate(&mut self, part: &Trace, tasks: &[TaskId], kind: EventKind) -> Option<EventKind> {
        if matches!(kind, EventKind::CgroupMove { .. } | EventKind::CgroupWeight { .. }) {
            return None;
        }
        let number = |task: TaskId| tasks.get(task.index()).copied().unwrap_or(TaskId::IDLE);
        let mut kind = kind.map_tasks(number);
        if let EventKind::Switch { prev, prev_state, .. } = kind
            && prev_state.is_dead()
            && !prev.is_idle()
        {
            self.ended[prev.index()] = true;
        }
        if let Some(label) = kind.label_mut() {
            *label = self.trace.intern_print(part.label(*label))?;
        }
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskInfo, TaskState};

    const R: TaskState = TaskState::Runnable;

    /// A part of the recording of one CPU: (time, prev, state, next) with pids.
    fn part(switches: &[(u64, u32, TaskState, u32)]) -> Trace {
        let mut trace = Trace::new(1);
        let mut pids = vec![0];
        let mut id = |trace: &mut Trace, pid: u32| match pids.iter().position(|p| *p == pid) {
            Some(at) => TaskId(at as u32),
            None => {
                pids.push(pid);
                trace.add_task(TaskInfo::new(pid, &format!("t{pid}")))
            }
        };
        for (time_ns, prev, prev_state, next) in switches {
            let (prev, next) = (id(&mut trace, *prev), id(&mut trace, *next));
            let kind = EventKind::Switch { prev, prev_state: *prev_state, next };
            trace.push(Event { time_ns: *time_ns, cpu: 0, insns: 0, kind });
        }
        trace
    }

    fn switches(trace: &Trace) -> Vec<(u64, u32, u32)> {
        trace
            .events()
            .map(|event| match event.kind {
                EventKind::Switch { prev, next, .. } => (event.time_ns, prev.0, next.0),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_task_keeps_its_number_and_what_may_be_preceded_waits() {
        let mut joiner = Joiner::new(1, 1_000);
        let complete =
            joiner.add(&part(&[(1_010, 0, R, 7), (1_020, 7, R, 8), (1_031, 8, R, 7)]), 1_030);
        assert_eq!(complete, 30);
        assert_eq!(switches(joiner.trace()), [(10, 0, 1), (20, 1, 2)]);
        joiner.forget_events();
        // Its tasks are numbered the other way round.
        let complete = joiner.add(&part(&[(1_030, 8, R, 9), (1_040, 9, R, 7)]), 1_050);
        assert_eq!(complete, 50);
        assert_eq!(switches(joiner.trace()), [(30, 2, 3), (31, 2, 1), (40, 3, 1)]);
        assert_eq!(joiner.trace().tasks().len(), 4);
        assert_eq!(joiner.trace().loss.clock_jumps, 0);
    }

    #[test]
    fn a_pid_that_comes_again_is_another_task() {
        let mut joiner = Joiner::new(1, 0);
        joiner.add(&part(&[(10, 0, R, 7), (20, 7, TaskState::Dead, 8)]), 100);
        joiner.add(&part(&[(110, 8, R, 7)]), 200);
        let pids: Vec<u32> = joiner.trace().tasks().iter().map(|task| task.pid).collect();
        assert_eq!(pids, [0, 7, 8, 7]);
        assert_eq!(switches(joiner.trace()).last(), Some(&(110, 2, 3)));
    }

    #[test]
    fn what_comes_too_late_is_counted() {
        let mut joiner = Joiner::new(1, 0);
        joiner.add(&part(&[(10, 0, R, 7)]), 100);
        joiner.add(&part(&[(90, 7, R, 8)]), 200);
        assert_eq!(switches(joiner.trace()), [(10, 0, 1), (100, 1, 2)]);
        assert_eq!(joiner.trace().loss.clock_jumps, 1);
    }
}
