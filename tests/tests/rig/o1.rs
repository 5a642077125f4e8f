//! The state of `o1` per task and CPU, as tests read and write it.

use fairground_trace::TaskId;

use super::{Bench, Run};

/// `struct o1_task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub key: u64,
    pub sleep_avg_ns: u64,
    pub timestamp_ns: u64,
    pub time_slice: u32,
    pub prio: u32,
    pub static_prio: u32,
    pub sleep_type: u32,
    pub weight: u32,
    pub array: u8,
}

/// `enum sleep_type`.
pub const NORMAL: u32 = 0;
pub const NONINTERACTIVE: u32 = 1;
pub const INTERACTIVE: u32 = 2;
pub const INTERRUPTED: u32 = 3;

/// Offset of a member of `struct o1_task`.
#[derive(Clone, Copy, Debug)]
pub enum Member {
    SleepAvg = 8,
    TimeSlice = 32,
    Prio = 36,
    SleepType = 48,
}

/// `struct o1_queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub expired_timestamp: u64,
    pub best_expired_prio: u32,
    pub active: u8,
    pub curr_pid: u32,
    pub curr_prio: u32,
}

/// The scheduler with tasks that start with no `sleep_avg`, as if their launcher had never slept.
pub fn bench() -> Bench {
    super::bench("o1").set("rule_launcher_slept", "off")
}

/// The scheduler's state of a task.
pub fn task(run: &Run, id: TaskId) -> Task {
    let u64_at = |at: usize| {
        run.machine
            .task_storage("task_ctx", id, at / 8)
            .expect("the scheduler keeps something of it")
    };
    let u32_at = |at: usize| (u64_at(at) >> (at % 8 * 8)) as u32;
    Task {
        key: u64_at(0),
        sleep_avg_ns: u64_at(8),
        timestamp_ns: u64_at(16),
        time_slice: u32_at(32),
        prio: u32_at(36),
        static_prio: u32_at(40),
        sleep_type: u32_at(48),
        weight: u32_at(56),
        array: u32_at(60) as u8,
    }
}

/// Overwrites a member.
pub fn set(run: &mut Run, id: TaskId, member: Member, value: u64) {
    let size = if matches!(member, Member::SleepAvg) { 8 } else { 4 };
    let bytes = &value.to_le_bytes()[..size];
    assert!(run.machine.set_task_storage("task_ctx", id, member as u64, bytes), "the task exists");
}

/// The state of a CPU.
pub fn queue(run: &Run, cpu: usize) -> Queue {
    Queue {
        expired_timestamp: run.queue_field(cpu, 8, 8),
        best_expired_prio: run.queue_field(cpu, 16, 4) as u32,
        active: run.queue_field(cpu, 20, 4) as u8,
        curr_pid: run.queue_field(cpu, 24, 4) as u32,
        curr_prio: run.queue_field(cpu, 28, 4) as u32,
    }
}

/// The task that runs on a CPU.
pub fn current(run: &Run, cpu: usize) -> Option<TaskId> {
    let pid = queue(run, cpu).curr_pid;
    let tasks = run.machine.trace().tasks().iter().enumerate().skip(1);
    let mut current =
        tasks.filter(|(_, info)| info.pid == pid).map(|(number, _)| TaskId(number as u32));
    if pid == 0 { None } else { current.next_back() }
}

/// Whether it is in the active array of CPU 0.
pub fn is_active(run: &Run, id: TaskId) -> bool {
    task(run, id).array == queue(run, 0).active
}

/// `DELTA` of a nice value: bonus above neutral that makes a task interactive.
pub fn delta(nice: i32) -> i32 {
    (nice + 20) * 10 / 40 - 5 + 2
}

/// Time slice of a nice value in ticks: the formula of 2.6.22.
pub fn slice(nice: i32, hz: u32) -> u32 {
    let base = 100 * hz / 1000 * if nice < 0 { 4 } else { 1 };
    (base * (20 - nice) as u32 / 20).max((5 * hz / 1000).max(1))
}
