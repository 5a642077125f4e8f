//! The objects of the laws of `sd` (docs/laws/sd.md): levels, quotas, and the state of a CPU's epochs.

use std::collections::BTreeMap;

use fairground_trace::TaskId;

use super::Run;

/// Levels of an epoch.
pub const LEVELS: u32 = 40;

/// Slots of a nice value in an epoch.
pub fn slots(nice: i8) -> u64 {
    (20 - i64::from(nice)) as u64
}

/// The matrix of Staircase Deadline by its definition: level k is allowed where floor(k * s / 40) steps up.
pub fn allowed(nice: i8) -> Vec<u32> {
    let s = slots(nice) as u32;
    (0..LEVELS).filter(|k| (k + 1) * s / LEVELS > k * s / LEVELS).collect()
}

/// The part of `struct sd_queue` that the laws use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub rotation: u64,
    pub curr_rotation: u64,
    pub curr_slice_ns: i64,
    pub curr_pid: u32,
    pub curr_level: u32,
    pub prio_level: u32,
    pub minor_rotations: u64,
}

pub fn queue(run: &Run, cpu: usize) -> Queue {
    let word = |n| run.queue_u64(cpu, n);
    Queue {
        rotation: word(0),
        curr_rotation: word(2),
        curr_slice_ns: word(4) as i64,
        curr_pid: word(5) as u32,
        curr_level: (word(5) >> 32) as u32,
        prio_level: (word(6) >> 32) as u32,
        minor_rotations: word(7),
    }
}

/// `prio_quota` of the array of that parity.
pub fn prio_quota(run: &Run, cpu: usize, parity: u64) -> Vec<i64> {
    let first = 8 + (parity & 1) as usize * LEVELS as usize;
    (first..first + LEVELS as usize).map(|n| run.queue_u64(cpu, n) as i64).collect()
}

/// Level of a task, by its key.
pub fn level(run: &Run, task: TaskId) -> u32 {
    (run.task(task).dsq_vtime >> 56) as u32
}

/// The running task of that CPU in the scheduler's state.
pub fn current(run: &Run, queue: &Queue) -> Option<TaskId> {
    let tasks = run.machine.trace().tasks();
    (1..tasks.len()).map(|n| TaskId(n as u32)).find(|id| tasks[id.index()].pid == queue.curr_pid)
}

/// Start times of the epochs of CPU 0, to a step of the run: number and time, without the first.
pub fn epochs(run: &mut Run, until_ns: u64) -> Vec<(u64, u64)> {
    let mut seen = queue(run, 0).rotation;
    let mut begun = Vec::new();
    run.watch(until_ns, |run| {
        let now = queue(run, 0).rotation;
        if now != seen {
            assert_eq!(now, seen + 1, "one epoch at a time");
            begun.push((now, run.machine.now_ns()));
            seen = now;
        }
    });
    begun
}

/// CPU time of each task in each whole epoch.
pub fn service(run: &Run, epochs: &[(u64, u64)]) -> Vec<BTreeMap<TaskId, u64>> {
    epochs.windows(2).map(|pair| run.cpu_time(pair[0].1, pair[1].1)).collect()
}
