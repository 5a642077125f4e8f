//! The accounting of `cfs_2_6_23`, as tests read it: the queue's record word by word, and what a task is owed.

use fairground_trace::TaskId;

use super::{Run, diff, weight};

/// A CPU's `cpu_queues` entry (`struct cfs2623_queue`).
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub fair_clock: u64,
    pub exec_clock: u64,
    pub sleeper_bonus: u64,
    pub curr_key: u64,
    pub curr_wait_runtime: i64,
    pub bonus_granted_ns: u64,
    pub bonus_paid_ns: u64,
    pub clamped_ns: i64,
    pub curr_pid: u32,
}

impl Queue {
    /// Reads it through a function that returns the entry's 64-bit words.
    pub fn read(word: impl Fn(usize) -> u64) -> Queue {
        Queue {
            fair_clock: word(0),
            exec_clock: word(1),
            sleeper_bonus: word(2),
            curr_key: word(3),
            curr_wait_runtime: word(4) as i64,
            bonus_granted_ns: word(9),
            bonus_paid_ns: word(10),
            clamped_ns: word(11) as i64,
            curr_pid: word(12) as u32,
        }
    }
}

pub fn queue(run: &Run, cpu: usize) -> Queue {
    Queue::read(|word| run.queue_u64(cpu, word))
}

/// What a runnable task is owed now, ns: `wait_runtime`, for a waiting one with the wait so far.
pub fn owed(run: &Run, id: TaskId, nice: i8) -> i64 {
    let view = run.task(id);
    assert!(view.runnable, "{id:?} can run");
    let q = queue(run, view.cpu as usize);
    if q.curr_pid == run.machine.trace().tasks()[id.index()].pid {
        return q.curr_wait_runtime;
    }
    let word = |word| run.machine.task_storage("task_ctx", id, word).expect("init_task made it");
    let waited = diff(q.fair_clock, word(1)).max(0) as u64;
    word(0) as i64 + (waited * weight(nice) / 1024) as i64
}

/// The stored `wait_runtime`, ns: without the present wait.
pub fn booked(run: &Run, id: TaskId) -> i64 {
    let q = queue(run, run.task(id).cpu as usize);
    if q.curr_pid == run.machine.trace().tasks()[id.index()].pid {
        return q.curr_wait_runtime;
    }
    run.machine.task_storage("task_ctx", id, 0).expect("init_task made it") as i64
}
