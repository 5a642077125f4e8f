//! Slices of each CPU and each task over time, small enough for a page.
//!
//! Each CPU and each task is a lane of slices in order of time; what lies between slices is idle time of a CPU, or time
//! in which a task did not exist. A lane of a task says in each slice what it did ([`Activity`]), on which CPU, and which
//! other task made it so.

mod columns;
mod merge;

use serde::{Serialize, Serializer};
use serde_json::json;

use self::columns::{Columns, Numbers};
use self::merge::{Drawn, put_together};

/// Slices that the timelines of one page keep. Beyond that the shortest are merged.
pub const SLICES_MAX: usize = 1_500_000;
/// Ticks and marks of one timeline. Beyond that they are left out and counted.
const INSTANTS_MAX: usize = 500_000;
/// The shortest length below which slices are merged, ns; where that is not enough, twice as much, and so on.
const TOGETHER_MIN_NS: u64 = 64;
/// CPUs of a timeline: a slice keeps the number in what [`Activity`] leaves of 31 bits.
const CPUS_MAX: u32 = 1 << 24;

/// Activity of a task in a slice of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// It runs.
    Running,
    /// It waits for a CPU after a wake-up.
    Woken,
    /// It waits for a CPU that it had to give up while it was runnable.
    Preempted,
    /// It sleeps and can be interrupted (`S`).
    Sleeping,
    /// It sleeps and cannot be interrupted (`D`).
    Blocked,
    /// It sleeps at a lock that the trace names.
    AtLock,
    /// It is stopped, traced or parked.
    Stopped,
}

/// An uninterrupted time of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its begin, ns.
    pub start_ns: u64,
    /// Its end, ns.
    pub end_ns: u64,
    /// The task on a CPU, or the activity of a task.
    value: u32,
    /// Who, or what, made it so; 0: not known.
    by: u32,
}

impl Slice {
    /// On a CPU's lane: one of the timeline's tasks runs. Task 0: what runs there is not known.
    pub fn of_cpu(start_ns: u64, end_ns: u64, task: u32) -> Self {
        Self { start_ns, end_ns, value: task, by: 0 }
    }

    /// On a task's lane. `cpu`: where it runs, in whose queue it waits, or where it ran last. `by`: the task that woke
    /// or preempted it, or one more than the number of the lock; 0: not known.
    pub fn of_task(start_ns: u64, end_ns: u64, doing: Activity, cpu: u32, by: u32) -> Self {
        Self { start_ns, end_ns, value: cpu.min(CPUS_MAX - 1) << 3 | doing as u32, by }
    }

    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// A task's name and pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskName {
    /// The name.
    pub name: String,
    /// The pid.
    pub pid: u32,
}

/// A value that a task reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When, ns.
    pub time_ns: u64,
    /// The task.
    pub task: u32,
    /// The text that it reported.
    pub text: String,
}

/// Slices of CPUs and tasks between two moments.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Timeline {
    start_ns: u64,
    end_ns: u64,
    tasks: Vec<TaskName>,
    /// The CPUs' lanes, then the tasks'.
    lanes: Vec<Vec<Drawn>>,
    cpus: usize,
    /// By CPU, ns.
    ticks: Vec<Vec<u64>>,
    marks: Vec<Mark>,
    locks: Vec<String>,
    instants: usize,
    instants_left_out: u64,
    slices: usize,
    slices_max: usize,
    /// How many slices were entered for CPUs.
    turns: u64,
    /// Slices shorter than this were merged, ns; 0: nothing was.
    together_below_ns: u64,
}

impl Timeline {
    /// Without slices yet, of the time between two moments. Task 0 is what runs on an idle CPU. At most about
    /// `slices_max` slices are kept.
    pub fn new(
        (start_ns, end_ns): (u64, u64),
        cpus: usize,
        tasks: Vec<TaskName>,
        slices_max: usize,
    ) -> Self {
        let lanes = vec![Vec::new(); cpus + tasks.len()];
        let ticks = vec![Vec::new(); cpus];
        Self { start_ns, end_ns, tasks, lanes, cpus, ticks, slices_max, ..Self::default() }
    }

    /// Names the locks, by number.
    pub fn set_locks(&mut self, locks: Vec<String>) {
        self.locks = locks;
    }

    /// Adds what a CPU ran after the slices that its lane has. What lies outside the timeline, or on no CPU of it, is
    /// left out.
    pub fn push_cpu(&mut self, cpu: usize, slice: Slice) {
        if cpu < self.cpus {
            self.turns += u64::from(self.push(cpu, slice));
        }
    }

    /// Adds what a task did after the slices that its lane has.
    pub fn push_task(&mut self, task: usize, slice: Slice) {
        self.push(self.cpus.saturating_add(task), slice);
    }

    /// Whether anything of it lies within the timeline.
    fn push(&mut self, lane: usize, slice: Slice) -> bool {
        let (start_ns, end_ns) = (slice.start_ns.max(self.start_ns), slice.end_ns.min(self.end_ns));
        let Some(lane) = self.lanes.get_mut(lane).filter(|_| start_ns < end_ns) else {
            return false;
        };
        lane.push(Drawn { slice: Slice { start_ns, end_ns, ..slice }, is_several: false });
        self.slices += 1;
        // Twice as many, so that merging is rare.
        if self.slices > self.slices_max.saturating_mul(2) {
            self.merge();
        }
        true
    }

    /// Adds a tick of a CPU.
    pub fn push_tick(&mut self, cpu: usize, time_ns: u64) {
        if self.has_room(time_ns)
            && let Some(ticks) = self.ticks.get_mut(cpu)
        {
            ticks.push(time_ns);
        }
    }

    /// Adds a mark.
    pub fn push_mark(&mut self, mark: Mark) {
        if self.has_room(mark.time_ns) {
            self.marks.push(mark);
        }
    }

    fn has_room(&mut self, time_ns: u64) -> bool {
        let is_within = (self.start_ns..=self.end_ns).contains(&time_ns);
        let has_room = self.instants < INSTANTS_MAX;
        self.instants += usize::from(is_within && has_room);
        self.instants_left_out += u64::from(is_within && !has_room);
        is_within && has_room
    }

    /// Merges what is too much. Called after the last slice.
    #[must_use]
    pub fn finished(mut self) -> Self {
        self.merge();
        self
    }

    fn merge(&mut self) {
        let max = self.slices_max.max(self.lanes.len());
        // What came since the last time may be enough.
        if self.slices > max && self.together_below_ns > 0 {
            self.merge_below();
        }
        while self.slices > max && self.together_below_ns <= self.end_ns - self.start_ns {
            self.together_below_ns = (2 * self.together_below_ns).max(TOGETHER_MIN_NS);
            self.merge_below();
        }
    }

    fn merge_below(&mut self) {
        for lane in &mut self.lanes {
            *lane = put_together(lane, self.together_below_ns);
        }
        self.slices = self.lanes.iter().map(Vec::len).sum();
    }

    /// Slices shorter than this were merged, ns; `None`: nothing was merged.
    pub fn together_below_ns(&self) -> Option<u64> {
        (self.together_below_ns > 0).then_some(self.together_below_ns)
    }

    /// The slices that are drawn.
    pub fn slices(&self) -> usize {
        self.slices
    }

    /// The slices that were entered for CPUs, before any was merged.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Ticks and marks that are not kept, because there are too many.
    pub fn instants_left_out(&self) -> u64 {
        self.instants_left_out
    }
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lanes = Columns::of(self.start_ns, &self.lanes);
        let mut ticks = Numbers::default();
        for ticks_of_cpu in &self.ticks {
            ticks.put_rising(self.start_ns, ticks_of_cpu.iter().copied());
        }
        let mut marks = Numbers::default();
        marks.put_rising(self.start_ns, self.marks.iter().map(|mark| mark.time_ns));
        let drawn = json!({
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "together_below_ns": self.together_below_ns,
            "cpus": self.cpus,
            "names": self.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(),
            "pids": self.tasks.iter().map(|task| task.pid).collect::<Vec<_>>(),
            "locks": self.locks,
            "counts": self.lanes.iter().map(Vec::len).collect::<Vec<_>>(),
            "tick_counts": self.ticks.iter().map(Vec::len).collect::<Vec<_>>(),
            "mark_tasks": self.marks.iter().map(|mark| mark.task).collect::<Vec<_>>(),
            "mark_texts": self.marks.iter().map(|mark| mark.text.as_str()).collect::<Vec<_>>(),
            "columns": {
                "gaps": lanes.gaps.packed(),
                "lengths": lanes.lengths.packed(),
                "values": lanes.values.packed(),
                "bys": lanes.bys.packed(),
                "ticks": ticks.packed(),
                "marks": marks.packed(),
            },
        });
        drawn.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<TaskName> {
        (0..count).map(|pid| TaskName { name: "a".into(), pid: pid as u32 }).collect()
    }

    fn slice(start_ns: u64, end_ns: u64, task: u32) -> Slice {
        Slice::of_cpu(start_ns, end_ns, task)
    }

    #[test]
    fn few_slices_stay_as_they_are_and_end_with_the_timeline() {
        let mut timeline = Timeline::new((5, 200), 1, names(2), 3);
        timeline.push_cpu(0, slice(0, 6, 0));
        timeline.push_cpu(0, slice(6, 300, 1));
        timeline.push_cpu(0, slice(300, 400, 1));
        timeline.push_cpu(1, slice(6, 300, 1));
        let timeline = timeline.finished();
        assert_eq!(
            (timeline.slices(), timeline.turns(), timeline.together_below_ns()),
            (2, 2, None)
        );
        let kept: Vec<Slice> = timeline.lanes[0].iter().map(|drawn| drawn.slice).collect();
        assert_eq!(kept, [slice(5, 6, 0), slice(6, 200, 1)]);
    }

    #[test]
    fn many_short_ones_become_few_and_keep_the_time_of_the_longest() {
        let mut timeline = Timeline::new((0, 10_000), 1, names(2), 100);
        (0..1000).for_each(|i| {
            timeline.push_cpu(0, slice(i * 10, i * 10 + 4 + i % 2, (i % 2) as u32));
        });
        let timeline = timeline.finished();
        assert_eq!(timeline.turns(), 1000);
        assert!(timeline.slices() <= 100, "{}", timeline.slices());
        assert!(timeline.together_below_ns().is_some_and(|ns| ns >= 100));
        assert!(timeline.lanes[0].iter().all(|drawn| drawn.is_several));
        assert_eq!(timeline.lanes[0].last().map(|drawn| drawn.slice.end_ns), Some(9_995));
    }

    #[test]
    fn slices_are_merged_no_more_than_is_needed_however_many_come() {
        const SLICES: u64 = 300_000;
        let mut timeline = Timeline::new((0, SLICES * 10), 1, names(2), 1000);
        (0..SLICES).for_each(|i| timeline.push_cpu(0, slice(i * 10, i * 10 + 10, (i % 2) as u32)));
        let timeline = timeline.finished();
        let below_ns = timeline.together_below_ns().expect("they are merged");
        assert!(timeline.slices() <= 1000 && timeline.slices() > 300, "{}", timeline.slices());
        assert!(below_ns <= 4 * SLICES * 10 / 1000, "{below_ns} ns");
    }

    #[test]
    fn ticks_beyond_the_limit_are_counted() {
        let mut timeline = Timeline::new((0, u64::MAX), 1, names(1), 100);
        (0..INSTANTS_MAX as u64 + 3).for_each(|ns| timeline.push_tick(0, ns));
        assert_eq!((timeline.ticks[0].len(), timeline.instants_left_out()), (INSTANTS_MAX, 3));
    }
}
