//! Slices of each CPU and each task over time.

use fairground_analysis::states::{Cause, Change, Observer, State, States, Task, TimeKind};
use fairground_report::page::{
    Activity, Chart, Drawing, Mark, SLICES_MAX, Shape, Slice, TaskName, Timeline,
};
use fairground_trace::{Event, EventKind, TaskId, TaskState, Trace};

use super::{Pictured, grouped};

pub(super) fn timeline(runs: &[Pictured<'_>]) -> Option<Chart> {
    let of_each = SLICES_MAX / runs.len().max(1);
    let timelines: Vec<Timeline> = runs
        .iter()
        .map(|run| timeline_of(run.trace, (run.analysis.start_ns, run.analysis.end_ns), of_each))
        .collect();
    if timelines.iter().all(|timeline| timeline.turns() == 0) {
        return None;
    }
    let counts = runs.iter().zip(&timelines).map(|(run, drawn)| {
        let together = drawn.together_below_ns().map_or_else(String::new, |ns| {
            format!(" (neighbours shorter than {:.1} µs are drawn as one)", ns as f64 / 1e3)
        });
        let left_out = match drawn.instants_left_out() {
            0 => String::new(),
            count => format!(", {} ticks and marks are left out", grouped(count)),
        };
        format!("{}: {} slices{together}{left_out}", run.label, grouped(drawn.turns()))
    });
    let samples = format!("{}.", counts.collect::<Vec<_>>().join("; "));
    let drawing = |(run, timeline): (&Pictured<'_>, Timeline)| Drawing {
        of: run.label.to_owned(),
        shape: Shape::Timeline(timeline),
    };
    Some(Chart {
        id: "timeline".to_owned(),
        title: "Who ran where".to_owned(),
        definition: "A row for each CPU, where each colour is a task and what is empty is idle, \
                     and one for each task, the busiest first, with what it did \
                     (docs/reference/charts.md). Times count from the begin of the run. Where \
                     slices are narrower than a pixel, the height of a colour is its share of the \
                     time."
            .to_owned(),
        samples,
        drawings: runs.iter().zip(timelines).map(drawing).collect(),
        table: None,
    })
}

fn timeline_of(trace: &Trace, window: (u64, u64), slices_max: usize) -> Timeline {
    let name =
        |task: &fairground_trace::TaskInfo| TaskName { name: task.comm.clone(), pid: task.pid };
    let tasks: Vec<TaskName> = trace.tasks().iter().map(name).collect();
    let cpus = trace.cpus as usize;
    let states = States::of(trace, trace.origin.is_simulated());
    let mut collector = Collector {
        trace,
        now_ns: states.now_ns(),
        next: TaskId::IDLE,
        tasks: vec![None; tasks.len()],
        cpus: states.cpus().iter().map(|cpu| (states.now_ns(), cpu.running)).collect(),
        locks: Vec::new(),
        lock_numbers: vec![0; trace.labels().len()],
        timeline: Timeline::new(window, cpus, tasks, slices_max),
    };
    states.observe(trace, &mut collector);
    collector.finish()
}

/// Activity of a task since a moment.
#[derive(Clone, Copy, Debug)]
struct Open {
    since_ns: u64,
    doing: Activity,
    cpu: u32,
    by: u32,
}

/// Enters each change of a task or CPU as a slice that ends.
struct Collector<'t> {
    trace: &'t Trace,
    now_ns: u64,
    /// Task that the CPU of the present event runs next.
    next: TaskId,
    tasks: Vec<Option<Open>>,
    /// Task that each CPU runs, and since when; `None`: not known.
    cpus: Vec<(u64, Option<TaskId>)>,
    locks: Vec<String>,
    /// By label: one more than the number of the lock; 0: not seen yet.
    lock_numbers: Vec<u32>,
    timeline: Timeline,
}

impl Observer for Collector<'_> {
    fn on_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn on_event(&mut self, trace: &Trace, _: &States, event: &Event) {
        match event.kind {
            EventKind::Switch { next, .. } => self.next = next,
            EventKind::Tick { .. } => self.timeline.push_tick(event.cpu as usize, event.time_ns),
            EventKind::Mark { task, label, value } => self.timeline.push_mark(Mark {
                time_ns: event.time_ns,
                task: task.0,
                text: format!("{} {value}", trace.label(label)),
            }),
            _ => {}
        }
    }

    fn on_cpu(&mut self, cpu: u32, _: Option<TaskId>, after: Option<TaskId>, disowned: bool) {
        let index = cpu as usize;
        let (since_ns, before) = std::mem::replace(&mut self.cpus[index], (self.now_ns, after));
        self.end_cpu(index, since_ns, before.filter(|_| !disowned));
    }

    fn on_change(&mut self, task: &Task, change: &Change) {
        let is_early = change.from == State::WokenEarly && change.time == TimeKind::Waking;
        if let Some(open) = self.tasks[task.id.index()].as_mut().filter(|_| is_early) {
            // It did not sleep.
            (open.doing, open.by) = (Activity::Woken, task.waker.map_or(0, |waker| waker.0));
        }
        let open = self.tasks[task.id.index()];
        // Only the queue is another.
        if task.state.waits()
            && change.from.waits()
            && change.time != TimeKind::Sleep
            && let Some(open) = open
        {
            self.tasks[task.id.index()] = Some(Open { cpu: task.cpu, ..open });
            return;
        }
        self.end_task(task.id.index());
        let now = self.doing(task, change.cause);
        let open = |(doing, by)| Open { since_ns: self.now_ns, doing, cpu: task.cpu, by };
        self.tasks[task.id.index()] = now.map(open);
    }
}

impl Collector<'_> {
    /// Activity of a task after a change, and its cause.
    fn doing(&mut self, task: &Task, cause: Cause) -> Option<(Activity, u32)> {
        match task.state {
            State::Running => Some((Activity::Running, 0)),
            State::Waking | State::Waiting if task.preempted => {
                Some((Activity::Preempted, self.next.0))
            }
            State::Waking | State::Waiting => {
                Some((Activity::Woken, task.waker.map_or(0, |w| w.0)))
            }
            State::Asleep | State::WokenEarly => match (task.lock, cause) {
                (Some(lock), Cause::SwitchOut { .. }) => {
                    Some((Activity::AtLock, self.lock(lock.0 as usize)))
                }
                (None, Cause::SwitchOut { left, .. }) => Some((asleep(left), 0)),
                _ => None,
            },
            State::Initial | State::Unknown | State::Absent => None,
        }
    }

    /// One more than the number of a lock.
    fn lock(&mut self, label: usize) -> u32 {
        let Some(number) = self.lock_numbers.get_mut(label) else { return 0 };
        if *number == 0 {
            self.locks.push(self.trace.labels()[label].clone());
            *number = self.locks.len() as u32;
        }
        *number
    }

    fn end_task(&mut self, task: usize) {
        let Some(Open { since_ns, doing, cpu, by }) = self.tasks[task].take() else { return };
        let slice = Slice::of_task(since_ns, self.now_ns, doing, cpu, by);
        self.timeline.push_task(task, slice);
    }

    fn end_cpu(&mut self, cpu: usize, since_ns: u64, ran: Option<TaskId>) {
        // The idle task's number says what is not known: what is idle is empty.
        let task = match ran {
            Some(TaskId::IDLE) => return,
            Some(task) => task.0,
            None => TaskId::IDLE.0,
        };
        self.timeline.push_cpu(cpu, Slice::of_cpu(since_ns, self.now_ns, task));
    }

    fn finish(mut self) -> Timeline {
        self.now_ns = self.now_ns.max(self.trace.end_ns);
        (0..self.tasks.len()).for_each(|task| self.end_task(task));
        let cpus = std::mem::take(&mut self.cpus);
        for (cpu, (since_ns, ran)) in cpus.into_iter().enumerate() {
            self.end_cpu(cpu, since_ns, ran);
        }
        self.timeline.set_locks(self.locks);
        self.timeline.finished()
    }
}

fn asleep(left: TaskState) -> Activity {
    match left {
        TaskState::Uninterruptible => Activity::Blocked,
        TaskState::Stopped | TaskState::Traced | TaskState::Parked => Activity::Stopped,
        _ => Activity::Sleeping,
    }
}

#[cfg(test)]
mod tests {
    use fairground_trace::TaskInfo;

    use super::*;

    /// Two tasks on two CPUs: `b` preempts `a`, which then sleeps and is woken by `b`.
    fn trace() -> (Trace, TaskId, TaskId) {
        let mut trace = Trace::new(2);
        let (a, b) = (trace.add_task(TaskInfo::new(7, "a")), trace.add_task(TaskInfo::new(8, "b")));
        let switch = |prev, prev_state, next| EventKind::Switch { prev, prev_state, next };
        let (idle, runs) = (TaskId::IDLE, TaskState::Runnable);
        for (time_ns, cpu, kind) in [
            (10, 0, switch(idle, runs, a)),
            (10, 1, switch(idle, runs, idle)),
            (20, 0, EventKind::Tick { task: a }),
            (30, 0, switch(a, runs, b)),
            (40, 1, switch(idle, runs, a)),
            (60, 1, switch(a, TaskState::Uninterruptible, idle)),
            (70, 0, EventKind::Waking { task: a, waker: b, target_cpu: 1 }),
            (72, 0, EventKind::Wakeup { task: a, target_cpu: 0 }),
            (90, 0, switch(b, TaskState::Sleeping, a)),
        ] {
            trace.push(Event { time_ns, cpu, insns: 0, kind });
        }
        trace.end_ns = 100;
        (trace, a, b)
    }

    #[test]
    fn each_change_is_a_slice_with_its_cause() {
        let (trace, a, b) = trace();
        let names = trace.tasks().iter().map(|t| TaskName { name: t.comm.clone(), pid: t.pid });
        let mut expected = Timeline::new((15, 95), 2, names.collect(), 100);
        for (cpu, start_ns, end_ns, task) in [(0, 10, 30, a), (0, 30, 90, b), (0, 90, 100, a)] {
            expected.push_cpu(cpu, Slice::of_cpu(start_ns, end_ns, task.0));
        }
        // What runs on CPU 1 is not known before its first switch; that lies before the window.
        expected.push_cpu(1, Slice::of_cpu(40, 60, a.0));
        for (task, start_ns, end_ns, doing, cpu, by) in [
            (a, 10, 30, Activity::Running, 0, 0),
            (a, 30, 40, Activity::Preempted, 0, b.0),
            (a, 40, 60, Activity::Running, 1, 0),
            (a, 60, 70, Activity::Blocked, 1, 0),
            (a, 70, 90, Activity::Woken, 0, b.0),
            (a, 90, 100, Activity::Running, 0, 0),
            (b, 30, 90, Activity::Running, 0, 0),
            (b, 90, 100, Activity::Sleeping, 0, 0),
        ] {
            let slice = Slice::of_task(start_ns, end_ns, doing, cpu, by);
            expected.push_task(task.index(), slice);
        }
        expected.push_tick(0, 20);
        assert_eq!(timeline_of(&trace, (15, 95), 100), expected.finished());
    }

    #[test]
    fn a_task_asleep_at_a_lock_names_it() {
        let mut trace = Trace::new(1);
        let a = trace.add_task(TaskInfo::new(7, "a"));
        let (idle, lock) = (TaskId::IDLE, trace.intern("inode_lock"));
        let flags = fairground_trace::LockFlags::MUTEX;
        let switch = |prev, prev_state, next| EventKind::Switch { prev, prev_state, next };
        for (time_ns, kind) in [
            (0, switch(idle, TaskState::Runnable, a)),
            (5, EventKind::ContentionBegin { task: a, lock, flags, holder: idle }),
            (10, switch(a, TaskState::Uninterruptible, idle)),
        ] {
            trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
        }
        trace.end_ns = 30;
        let json = serde_json::to_value(timeline_of(&trace, (0, 30), 100)).expect("JSON");
        assert_eq!(json["locks"], serde_json::json!(["inode_lock"]));
        assert_eq!(json["counts"], serde_json::json!([1, 0, 2]));
    }
}
